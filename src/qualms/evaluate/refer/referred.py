"""The list of items to refer: what a clinic works off."""

import csv
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from qualms.atomic import replacing
from qualms.evaluate.notebook import pandas_frame
from qualms.predictions import Predictions

Array = NDArray[np.float64]
Index = NDArray[np.int64]

SHOWN = 10
"""Items that a notebook shows of a list."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ReferredItems:
    """The items to refer, most uncertain first; all arrays are (R,)."""

    row: Index = field(repr=False)
    """Their places in the file, from 0."""
    item: NDArray[np.str_] = field(repr=False)
    """Their names; their places where the file has none."""
    uncertainty: Array = field(repr=False)
    predicted: Index | Array = field(repr=False)
    """The class, or the value, that the network predicts."""
    beside: dict[str, NDArray[Any]] = field(default_factory=dict, repr=False)
    """cluster and group, where the file has them."""

    def __len__(self) -> int:
        return len(self.row)

    @property
    def columns(self) -> dict[str, NDArray[Any]]:
        """What a table of them holds, by the names of its columns."""
        return {
            "item": self.item,
            "row": self.row,
            "uncertainty": self.uncertainty,
            "predicted": self.predicted,
            **self.beside,
        }

    def first(self, count: int) -> list[tuple[Any, ...]]:
        """The lines of the `count` most uncertain ones, in the order of `columns`."""
        held = (values[:count].tolist() for values in self.columns.values())
        return list(zip(*held, strict=True))

    def save(self, path: str | PathLike[str]) -> Path:
        """Write them as CSV; the file appears whole or not at all."""
        where = Path(path)
        with replacing(where) as temporary, _opened(temporary) as file:
            lines = csv.writer(file, lineterminator="\n")
            lines.writerow(self.columns)
            lines.writerows(self.first(len(self)))
            file.flush()
        return where

    def to_frame(self) -> Any:
        """A DataFrame of pandas, with a line for each item.

        Raises:
            ImportError: If pandas is not installed.
        """
        return pandas_frame(self.columns, instead="use .save(path)")

    def __repr__(self) -> str:
        some = ", ".join(map(repr, self.item[:3].tolist()))
        first = f": {some}{', ...' if len(self) > 3 else ''}" if len(self) else ""
        return f"<{len(self)} items to refer{first}; see .save(path), .to_frame()>"


def _opened(path: Path) -> IO[str]:
    return path.open("w", encoding="utf-8", newline="")


def referred_items(
    predictions: Predictions,
    uncertainty: Array,
    predicted: Index | Array,
    threshold: float,
) -> ReferredItems:
    """All items of `predictions` at or above `threshold`."""
    row = np.flatnonzero(uncertainty >= threshold)
    row = row[np.argsort(-uncertainty[row], kind="stable")]
    names = predictions.get("item")
    beside = {name: predictions.get(name) for name in ("cluster", "group")}
    return ReferredItems(
        row=row,
        item=row.astype(np.str_) if names is None else names[row],
        uncertainty=uncertainty[row],
        predicted=predicted[row],
        beside={k: held[row] for k, held in beside.items() if held is not None},
    )
