"""One labelled number, its summary over repeats, and the columns that results have."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from qualms.labels import Labels

NUMBERS = (
    *("value", "spread", "low", "high", "released", "released_spread"),
    *("difference", "difference_low", "difference_high"),
)
TEXTS = (
    *("best", "interval_method", "no_interval", "covers", "no_winner"),
    *("why", "note"),
)
SERIES = ("values", "released_values")
TIED = "tied"
PROVENANCE = (
    *("version", "network", "epochs", "hardware", "seconds", "parameters"),
    *("seconds_of_all_runs", "command", "commit"),
)
"""Further columns of a file of results: how its numbers were made."""
_FIRST = ("benchmark", "preset", "variant", "dataset", "simulated", "selection")
_ROW, _LAST = "row", ("subset", "score")
"""Labels of the data stand before the row, settings after it, and the score is last."""


class Summary(NamedTuple):
    """A mean and a spread."""

    mean: float
    std: float
    """nan where there is one repeat only, so that nothing varies."""


def summary(values: Sequence[float]) -> Summary:
    """Return mean and population standard deviation; nan where they are undefined.

    >>> summary((1.0, 3.0))
    Summary(mean=2.0, std=1.0)
    """
    if not values:
        return Summary(math.nan, math.nan)
    if not all(map(math.isfinite, values)):
        return Summary(float(np.sum(values)) / len(values), math.nan)
    spread = float(np.std(values)) if len(values) > 1 else math.nan
    return Summary(float(np.mean(values)), spread)


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """One number, with the labels that say what it is of."""

    labels: Labels
    value: float = math.nan
    """The mean over repeats; of a published number, what is printed."""
    spread: float = math.nan
    """The deviation over repeats; of a published number, as printed."""
    low: float = math.nan
    high: float = math.nan
    released: float = math.nan
    """The mean by the rule of a paper's released code."""
    released_spread: float = math.nan
    difference: float = math.nan
    """This row's value minus that of the best row."""
    difference_low: float = math.nan
    difference_high: float = math.nan
    best: str = ""
    """The best row of its column; '' where rows are not ranked."""
    tied: bool = False
    """True if it is the best, or cannot be told apart from the best."""
    interval_method: str = ""
    """Name of the rule that made the interval."""
    no_interval: str = ""
    """Why there is none, where the value is defined."""
    covers: str = ""
    """Coverage of the interval: other "items", "items and seeds"; "these runs" where
    these are too few to say how far others lie. `values` shows their range."""
    no_winner: str = ""
    """Why no row of its column is marked as best."""
    why: str = ""
    """Why there is no value."""
    note: str = ""
    """A remark on a published number, such as a misprint."""
    values: tuple[float, ...] = ()
    """One per repeat, by the correct rule; () where it is undefined in all."""
    released_values: tuple[float, ...] = ()
    """One per repeat, by the rule of the released code."""


def result(labels: Labels, values: Sequence[float] = (), **fields: Any) -> Result:
    """Return the result with these values, one per repeat, and their summary."""
    released_values = tuple(fields.pop("released_values", ()))
    mean, spread = summary(values)
    released, released_spread = summary(released_values)
    return Result(
        labels=labels,
        value=mean,
        spread=spread,
        released=released,
        released_spread=released_spread,
        values=tuple(values),
        released_values=released_values,
        **fields,
    )


def label_order(label_names: Iterable[Sequence[str]]) -> list[str]:
    """Return all names of labels in the order of columns in files.

    >>> label_order([("row", "score"), ("variant", "shift", "row", "alpha", "score")])
    ['variant', 'shift', 'row', 'alpha', 'score']
    """
    before: dict[str, None] = {}
    after: dict[str, None] = {}
    for names in label_names:
        row = names.index(_ROW) if _ROW in names else 0
        before |= dict.fromkeys(names[:row])
        after |= dict.fromkeys(names[row:])
    first = [name for name in _FIRST if name in before or name in after]
    last = [name for name in _LAST if name in after]
    middle = [n for n in (*before, *after) if n not in first and n not in last]
    return list(dict.fromkeys([*first, *middle, *last]))
