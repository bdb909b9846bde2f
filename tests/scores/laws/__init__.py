"""The law table: which laws each score obeys, as data.

Every module of this package lists `CASES`; `test_laws.py` runs every law over all of
them and fails when a public score is in no table.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

Arrays = dict[str, np.ndarray]

LAWS = frozenset(
    {
        "permutation",  # the order of the items does not matter
        "ties",  # nor does it among items whose rank array is heavily tied
        "monotone",  # a strictly increasing transform of `rank` changes nothing
        "bounds",  # the value lies in About.low .. About.high
        "empty",  # no item: ValueError with a sentence
        "dtype",  # float32 input gives the value of the same numbers in float64
        "layout",  # strided, Fortran-ordered, read-only input changes no bit
        "repeat",  # every item twice gives the same value (an average, not a sum)
        "nan",  # a nan in any float array: ValueError that names it
        "one_class",  # a single class: the value `one_class` (nan or a number)
        "batching",  # `block`-style arguments change nothing (blocks= lists them)
        "members",  # the order of draws or raters (members=) changes nothing
        "renaming",  # other numbers for the classes (classes=) change nothing
        "rounding",  # a `rank` that is a mean over members ties in any order of them
    }
)


@dataclass(frozen=True)
class Case:
    """How to call one score on random items, and which laws it obeys."""

    score: Callable[..., Any]
    """The public function; called as `score(**arrays, **options)`."""
    make: Callable[[np.random.Generator, int], Arrays]
    """Random per-item arrays for n items."""
    laws: frozenset[str]
    options: Mapping[str, Any] = field(default_factory=dict)
    axis: Mapping[str, int] = field(default_factory=dict)
    """Item axis where it is not 0 (draws (M, N, C): 1); None: not per item."""
    rank: str | None = None
    """The array that only its order matters of (laws 'ties' and 'monotone')."""
    value: Callable[[Any], float] = float
    """Reads the number out of what the score returns (a record, a curve)."""
    one_class: Callable[[np.random.Generator, int], Arrays] | None = None
    one_class_value: float | None = None
    """Expected value on `one_class` items; None: any finite number."""
    blocks: tuple[Mapping[str, Any], ...] = ()
    members: Mapping[str, int] = field(default_factory=dict)
    """Axis of the draws or raters of each array that has one (law 'members')."""
    classes: Mapping[str, int | None] = field(default_factory=dict)
    """Axis of the classes of each array, None: it holds classes (law 'renaming')."""
    rtol: float = 1e-9
    name: str = ""

    @property
    def label(self) -> str:
        return self.name or self.score.__name__


def all_cases() -> list[Case]:
    cases: list[Case] = []
    for module in pkgutil.iter_modules(__path__):
        cases += importlib.import_module(f"{__name__}.{module.name}").CASES
    return cases
