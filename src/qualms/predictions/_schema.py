"""The schema as data: the arrays of each task, with their axes, kind and range.

Axes: N items, M draws, C classes, D embedding dimensions, K vote columns, H and W
pixels; a digit is a fixed size. An array whose axis of draws may be left out has both
forms. A name that ends in '/' is a family, for example `uncertainty/<name>`.
"""

from dataclasses import dataclass
from math import inf
from typing import Literal

Kind = Literal["real", "class", "flag", "item", "name", "byte", "any"]

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
    # Without axes, any shape is valid.
    axes: tuple[str, ...] = ("N",)
    kind: Kind = "real"
    low: float = -inf
    dtype: str = "float64"
    # Whether float32 stays float32: these are the largest arrays. Scores reduce them in
    # float64.
    single: bool = False
    # Class probabilities are renormalised, and may be given as logits.
    probability: bool = False
    # Whether -1 is allowed, for an item of no known class.
    unknown: bool = False
    # The array that this array is converted to: P(y=1) to the probabilities of both
    # classes, a standard deviation to a variance.
    becomes: str = ""
    # Sizes of axes that the array has no axis for.
    implies: tuple[tuple[str, int], ...] = ()
    hint: str = ""

    @property
    def family(self) -> bool:
        """True if the name stands for any number of arrays."""
        return self.name.endswith("/")

    @property
    def shown(self) -> str:
        """The name as messages write it."""
        return f"'{self.name}<name>'" if self.family else f"'{self.name}'"

    @property
    def draws(self) -> bool:
        """True if the normal form has an axis of draws."""
        return any("M" in axes for axes in self.axes)

    def covers(self, name: str) -> bool:
        """Return whether array `name` is this field or a member of this family."""
        if self.family:
            return name.startswith(self.name) and len(name) > len(self.name)
        return name == self.name


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskSchema:
    """The required and optional arrays of one task.

    Of each tuple in `required` at least one array must be present, and of each tuple in
    `exclusive` at most one. `together` pairs an array with another that it requires. A
    task is recognised by its `marks`.
    """

    required: tuple[tuple[str, ...], ...]
    marks: tuple[str, ...]
    fields: tuple[Field, ...]
    together: tuple[tuple[str, str], ...] = ()
    exclusive: tuple[tuple[str, ...], ...] = ()


_TARGET = Field(
    name="target",
    kind="class",
    unknown=True,
    hint="number the classes from 0; -1 marks an item of no known class",
)
_UNCERTAINTY = Field(name="uncertainty/")
_EVERYWHERE = (
    Field(name="item", kind="item"),
    Field(name="group", kind="name"),
    Field(name="cluster", kind="name"),
    Field(name="shifted", kind="flag"),
    Field(name="known", kind="flag"),
)
# Segmented items have a single `group`, in the index.
_GROUPS = Field(name="group/", kind="name")
_THUMBNAIL = Field(name="thumbnail", axes=("NHW3",), kind="byte")
_EXTRA = Field(name="extra/", axes=(), kind="any")
# Names of a standard deviation.
_DEVIATIONS = ("std", "sigma", "scale")

TASKS = {
    "classification": TaskSchema(
        required=(("probs", "prob"),),
        marks=("probs", "prob"),
        exclusive=(("probs", "prob"),),
        fields=(
            _TARGET,
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
            _UNCERTAINTY,
            Field(name="target_probs", axes=("NC",), probability=True),
            *_EVERYWHERE,
            _GROUPS,
            _THUMBNAIL,
            _EXTRA,
        ),
    ),
    "regression": TaskSchema(
        required=(("mean", "lower"),),
        marks=("mean", "var", "lower", "upper"),
        together=(
            ("lower", "upper"),
            ("upper", "lower"),
            *((name, "mean") for name in ("var", *_DEVIATIONS)),
        ),
        exclusive=(("var", *_DEVIATIONS),),
        fields=(
            Field(name="target"),
            Field(name="mean", axes=("MN", "N")),
            Field(name="var", axes=("MN", "N"), low=0.0),
            *(
                Field(name=name, axes=("MN", "N"), low=0.0, becomes="var")
                for name in _DEVIATIONS
            ),
            Field(name="lower"),
            Field(name="upper"),
            Field(name="select/", axes=("MN", "N")),
            _UNCERTAINTY,
            *_EVERYWHERE,
            _GROUPS,
            _THUMBNAIL,
            _EXTRA,
        ),
    ),
    "embedding": TaskSchema(
        required=(("embedding",),),
        marks=("embedding",),
        fields=(
            _TARGET,
            Field(name="embedding", axes=("ND",), dtype="float32"),
            _UNCERTAINTY,
            Field(name="uncertainty_cropped/"),
            Field(name="predicted", kind="class", hint="number the classes from 0"),
            Field(name="votes", axes=("NK",), low=0.0),
            Field(name="upstream", kind="flag"),
            *_EVERYWHERE,
            _GROUPS,
            _THUMBNAIL,
            _EXTRA,
        ),
    ),
    "segmentation": TaskSchema(
        required=(),
        marks=("maps", "mean_probs", "expected_entropy", "draw_labels", "raters"),
        fields=(_UNCERTAINTY, *_EVERYWHERE),
    ),
}

# Our names of arrays by their common names. Messages suggest them; nothing is renamed.
SYNONYMS = {
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

_PLAIN = {
    task: {f.name: f for f in about.fields if not f.family}
    for task, about in TASKS.items()
}
_FAMILIES = {
    task: tuple(f for f in about.fields if f.family) for task, about in TASKS.items()
}


def array_field(task: str, name: str) -> Field | None:
    """Return the field of `task` that array `name` belongs to, or None."""
    field = _PLAIN[task].get(name)
    if field is not None or "/" not in name:
        return field
    return next((f for f in _FAMILIES[task] if f.covers(name)), None)


def is_array_name(name: str) -> bool:
    """Return whether any task has an array of this name."""
    return name in TASKS["segmentation"].marks or any(
        array_field(task, name) is not None for task in TASKS
    )
