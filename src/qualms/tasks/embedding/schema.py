"""Arrays of embeddings: vectors, classes, and uncertainties of one's own."""

from collections.abc import Iterator
from typing import Any

from numpy.typing import NDArray

from qualms.predictions import (
    INVERSE_NORM,
    Predictions,
    class_facts,
    inverse_norm,
    length_notes,
)
from qualms.predictions.schema import CLASS, OF_FILES, UNCERTAINTY, Field, TaskSchema


def _facts(predictions: Predictions) -> Iterator[str]:
    yield f"dimensions: {predictions.arrays['embedding'].shape[-1]}"
    yield from class_facts(predictions)


def _complete(arrays: dict[str, NDArray[Any]]) -> tuple[str, ...]:
    """Add the inverse length of embeddings without an uncertainty; return notes."""
    arrays[INVERSE_NORM] = inverse_norm(arrays["embedding"])
    return length_notes(arrays[INVERSE_NORM])


SCHEMA = TaskSchema(
    required=(("embedding",),),
    marks=("embedding",),
    fields=(
        CLASS,
        Field(name="embedding", axes=("ND",), dtype="float32"),
        UNCERTAINTY,
        Field(name="uncertainty_cropped/"),
        Field(name="predicted", kind="class", hint="number the classes from 0"),
        Field(name="votes", axes=("NK",), low=0.0),
        Field(name="upstream", kind="flag"),
        *OF_FILES,
    ),
    facts=_facts,
    complete=_complete,
    open_classes=True,
    unpooled="embeddings of different runs share no axes, so they have no mean; score"
    " each run by itself",
)
