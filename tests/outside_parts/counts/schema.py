"""Arrays of counts: expected numbers of events, with draws or without."""

from qualms.predictions.schema import OF_FILES, UNCERTAINTY, Field, TaskSchema

SCHEMA = TaskSchema(
    required=(("rate",),),
    marks=("rate",),
    fields=(
        Field(name="target", low=0.0),
        Field(name="rate", axes=("MN", "N"), low=0.0),
        UNCERTAINTY,
        *OF_FILES,
    ),
)
