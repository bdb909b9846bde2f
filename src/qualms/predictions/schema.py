"""The schema as data: arrays with their axes, kind and range; tasks list theirs.

Axes: N items, M draws, C classes, D embedding dimensions, K vote columns, H and W
pixels; a digit is a fixed size. An array whose axis of draws may be left out has both
forms. A name that ends in '/' is a family, for example `uncertainty/<name>`.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from math import inf
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from numpy.typing import NDArray

from qualms.shelf import names, task_part

if TYPE_CHECKING:
    from qualms.predictions._record import Predictions

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


def _nothing(_: "Predictions") -> Iterator[str]:
    return iter(())


def _no_notes(_: dict[str, NDArray[Any]]) -> tuple[str, ...]:
    return ()


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
    facts: Callable[["Predictions"], Iterator[str]] = _nothing
    """From predictions to lines that describe their contents, for `qualms check`."""
    complete: Callable[[dict[str, NDArray[Any]]], tuple[str, ...]] = _no_notes
    """Called with the arrays of a file that brings no `uncertainty/<name>`; it may add
    one, and returns notes."""
    folder: bool = False
    """True if items lie in a folder, one file each."""
    open_classes: bool = False
    """True if targets may be names or any numbers: there are no outputs by class."""
    unpooled: str = ""
    """Why several runs cannot be pooled, after "cannot pool 'x': "; '' if they can."""


CLASS = Field(
    name="target",
    kind="class",
    unknown=True,
    hint="number the classes from 0; -1 marks an item of no known class",
)
UNCERTAINTY = Field(name="uncertainty/")
EVERYWHERE = (
    Field(name="item", kind="item"),
    Field(name="group", kind="name"),
    Field(name="cluster", kind="name"),
    Field(name="shifted", kind="flag"),
    Field(name="known", kind="flag"),
)
# Items in a folder have a single `group`, in the index.
OF_FILES = (
    *EVERYWHERE,
    Field(name="group/", kind="name"),
    Field(name="thumbnail", axes=("NHW3",), kind="byte"),
    Field(name="extra/", axes=(), kind="any"),
)
"""Fields that every task has whose items lie in one file."""

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


class _Index(NamedTuple):
    """The fields of a task by name, and its families of names."""

    plain: Mapping[str, Field]
    families: tuple[Field, ...]


def schemas() -> Mapping[str, TaskSchema]:
    """Return the schema of every task by name."""
    return _schemas(names("tasks"))


@cache
def _schemas(tasks: tuple[str, ...]) -> Mapping[str, TaskSchema]:
    return {task: task_part(task, "schema") for task in tasks}


@cache
def _index(schema: TaskSchema) -> _Index:
    return _Index(
        {field.name: field for field in schema.fields if not field.family},
        tuple(field for field in schema.fields if field.family),
    )


def array_field(task: str, name: str) -> Field | None:
    """Return the field of `task` that array `name` belongs to, or None."""
    plain, families = _index(schemas()[task])
    field = plain.get(name)
    if field is not None or "/" not in name:
        return field
    return next((f for f in families if f.covers(name)), None)


def is_array_name(name: str) -> bool:
    """Return whether any task has an array of this name."""
    return any(
        name in about.marks or array_field(task, name) is not None
        for task, about in schemas().items()
    )


def folder_task() -> str:
    """Return the task whose items lie in a folder, one file each."""
    return next(task for task, about in schemas().items() if about.folder)
