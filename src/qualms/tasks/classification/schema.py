"""Arrays of a classification: class probabilities, with draws or without."""

from qualms.predictions import class_facts
from qualms.predictions.schema import CLASS, OF_FILES, UNCERTAINTY, Field, TaskSchema

SCHEMA = TaskSchema(
    required=(("probs", "prob"),),
    marks=("probs", "prob"),
    exclusive=(("probs", "prob"),),
    fields=(
        CLASS,
        Field(
            name="probs",
            axes=("MNC", "NC"),
            probability=True,
            single=True,
            hint="P(y=1) of two classes alone is called 'prob'",
        ),
        Field(
            name="prob",
            axes=("MN", "N"),
            probability=True,
            becomes="probs",
            implies=(("C", 2),),
            hint="class probabilities (N, C) or (M, N, C) are called 'probs'",
        ),
        UNCERTAINTY,
        Field(name="target_probs", axes=("NC",), probability=True),
        *OF_FILES,
    ),
    facts=class_facts,
)
