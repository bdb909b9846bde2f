"""The schema as data: which arrays a task has, with their axes, kind and range.

Axes: N items, M draws, C classes, D embedding dimensions, K vote columns, H and W
pixels; a digit is that very size. Where an array may lack the axis of draws, both forms
are listed. A name that ends in '/' is a family, for example `uncertainty/<name>`.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from math import inf
from typing import Literal

Kind = Literal["real", "class", "flag", "item", "name", "byte"]

AXES = {
    "N": "row",
    "M": "draw",
    "R": "rater",
    "C": "class",
    "D": "dimension",
    "K": "column",
    "H": "line",
    "W": "column",
    "3": "channel",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """One array of the schema."""

    name: str
    axes: tuple[str, ...] = ("N",)
    kind: Kind = "real"
    low: float = -inf
    high: float = inf
    dtype: str = "float64"
    # Class probabilities are renormalised, and may be given as logits.
    probability: bool = False
    # The size of an axis that the array settles without having it.
    implies: tuple[tuple[str, int], ...] = ()
    hint: str = ""

    @property
    def family(self) -> bool:
        """Whether the name stands for any number of arrays."""
        return self.name.endswith("/")

    @property
    def shown(self) -> str:
        """The name as a sentence writes it."""
        return f"'{self.name}<name>'" if self.family else f"'{self.name}'"

    @property
    def draws(self) -> bool:
        """Whether the normal form has an axis of draws."""
        return any("M" in axes for axes in self.axes)

    def covers(self, name: str) -> bool:
        """Whether the array `name` is this one, or a member of this family."""
        if self.family:
            return name.startswith(self.name) and len(name) > len(self.name)
        return name == self.name


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskSchema:
    """The arrays of one task: what it must have, what gives it away, what it may have.

    `needs` holds alternatives: of each inner tuple at least one array must be there.
    `given` pairs an array with another that must come with it, `instead` with one that
    must not.
    """

    needs: tuple[tuple[str, ...], ...]
    marks: tuple[str, ...]
    fields: tuple[Field, ...]
    given: tuple[tuple[str, str], ...] = ()
    instead: tuple[tuple[str, str], ...] = ()


_TARGET = Field(name="target", kind="class", hint="number the classes from 0")
_UNCERTAINTY = Field(name="uncertainty/")
_EVERYWHERE = (
    Field(name="item", kind="item"),
    Field(name="group", kind="name"),
    Field(name="cluster", kind="name"),
    Field(name="shifted", kind="flag"),
)
_THUMBNAIL = Field(name="thumbnail", axes=("NHW3",), kind="byte")

TASKS = {
    "classification": TaskSchema(
        needs=(("target",), ("probs", "prob")),
        marks=("probs", "prob"),
        instead=(("probs", "prob"),),
        fields=(
            _TARGET,
            Field(
                name="probs",
                axes=("MNC", "NC"),
                probability=True,
                hint="P(y=1) of two classes alone is called 'prob'",
            ),
            Field(
                name="prob",
                axes=("MN", "N"),
                probability=True,
                implies=(("C", 2),),
                hint="class probabilities of shape (N, C) are called 'probs'",
            ),
            _UNCERTAINTY,
            Field(name="target_probs", axes=("NC",), probability=True),
            *_EVERYWHERE,
            _THUMBNAIL,
        ),
    ),
    "regression": TaskSchema(
        needs=(("target",), ("mean", "lower")),
        marks=("mean", "var", "lower", "upper"),
        given=(("lower", "upper"), ("upper", "lower"), ("var", "mean")),
        fields=(
            Field(name="target"),
            Field(name="mean", axes=("MN", "N")),
            Field(name="var", axes=("MN", "N"), low=0.0),
            Field(name="lower"),
            Field(name="upper"),
            Field(name="select/", axes=("MN", "N")),
            *_EVERYWHERE,
            _THUMBNAIL,
        ),
    ),
    "embedding": TaskSchema(
        needs=(("target",), ("embedding",), ("uncertainty/",)),
        marks=("embedding",),
        fields=(
            _TARGET,
            Field(name="embedding", axes=("ND",), dtype="float32"),
            _UNCERTAINTY,
            Field(name="uncertainty_cropped/"),
            Field(name="predicted", kind="class"),
            Field(name="votes", axes=("NK",), low=0.0),
            Field(name="upstream", kind="flag"),
            *_EVERYWHERE,
            _THUMBNAIL,
        ),
    ),
    "segmentation": TaskSchema(
        needs=(),
        marks=("maps", "mean_probs", "expected_entropy", "draw_labels", "raters"),
        fields=_EVERYWHERE,
    ),
}

# What people call an array elsewhere; named in a sentence, never taken for granted.
ELSEWHERE = {
    "label": "target",
    "labels": "target",
    "y": "target",
    "y_true": "target",
    "y_test": "target",
    "logits": "probs",
    "probabilities": "probs",
    "softmax": "probs",
    "y_prob": "probs",
    "y_pred": "probs",
    "prediction": "mean",
    "predictions": "mean",
    "variance": "var",
    "features": "embedding",
}


def array_field(task: str, name: str) -> Field | None:
    """The field of `task` that the array `name` belongs to, or None."""
    return next((f for f in TASKS[task].fields if f.covers(name)), None)


def is_array_name(name: str) -> bool:
    """Whether any task has an array of this name."""
    return any(array_field(task, name) for task in TASKS) or name in marks(
        "segmentation"
    )


def marks(task: str) -> tuple[str, ...]:
    """The arrays that give `task` away."""
    return TASKS[task].marks


def listed(names: Iterable[str]) -> str:
    """Names in quotes, for a sentence."""
    return ", ".join(f"'{name}'" for name in names) or "nothing"
