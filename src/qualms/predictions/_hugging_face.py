"""A `datasets.Dataset` of Hugging Face in memory, without importing that package.

Its features name the classes. Its columns are those of a table, where `label` or
`labels` stands for `target` and `probabilities` for `probs`, a list in every row.
"""

from typing import Any, Protocol, runtime_checkable

from qualms.predictions._errors import PredictionsError, listed
from qualms.predictions._tables import arrays_of_columns, wanted_columns

_CALLED = {
    "target": ("target", "label", "labels"),
    "probs": ("probs", "probabilities"),
}
"""Columns by our names, the first that is there."""
FOLDER = ("state.json", "dataset_info.json")
"""Files in a folder that `save_to_disk` wrote."""


@runtime_checkable
class HuggingFaceDataset(Protocol):
    """A `datasets.Dataset`: a table with features."""

    @property
    def column_names(self) -> Any: ...

    @property
    def features(self) -> Any: ...

    def select_columns(self, column_names: Any) -> Any: ...

    def with_format(self, type: Any) -> Any: ...  # noqa: A002 - its own name

    def __getitem__(self, key: Any, /) -> Any: ...


def dataset_arrays(dataset: HuggingFaceDataset) -> dict[str, Any]:
    """Return the arrays of a dataset; None for columns that no task has.

    Other columns, such as pictures, are not decoded.
    """
    called = _own_names(dataset)
    wanted = wanted_columns(list(called))
    chosen = dataset.select_columns([called[name] for name in wanted])
    taken = chosen.with_format("numpy")[:]
    arrays = arrays_of_columns(wanted, lambda name: taken[called[name]])
    return arrays | {called[name]: None for name in called if name not in wanted}


def feature_names(dataset: HuggingFaceDataset) -> list[str]:
    """Return the names of the classes in the feature of the target; [] without any."""
    feature = dataset.features.get(_own_names(dataset).get("target"))
    return list(map(str, getattr(feature, "names", None) or ()))


def refuse_several(splits: Any) -> None:
    """Raise for a `datasets.DatasetDict`, which holds a dataset for each split."""
    if splits and all(isinstance(each, HuggingFaceDataset) for each in splits.values()):
        raise PredictionsError(
            f"must be one dataset, got several ({listed(splits)}); pass one of them,"
            f" such as dataset[{next(iter(splits))!r}]"
        )


def _own_names(dataset: HuggingFaceDataset) -> dict[str, str]:
    """Return the names of the columns by ours."""
    names = list(dataset.column_names)
    found = {
        ours: next(name for name in theirs if name in names)
        for ours, theirs in _CALLED.items()
        if not set(theirs).isdisjoint(names)
    }
    used = found.values()
    return found | {name: name for name in names if name not in used}
