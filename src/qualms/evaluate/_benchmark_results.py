"""What judging a benchmark gives: cells with intervals, and what is missing."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from qualms.benchmarks import Benchmark, Expectation, Preset, Variant
from qualms.scores import TieGroup

Array = NDArray[np.float64]


class Key(NamedTuple):
    """Where a cell stands, by name."""

    variant: str
    alpha: float | None
    row: str
    score: str


class DrawnKey(NamedTuple):
    """Where something to draw stands, by name."""

    variant: str
    row: str
    subset: str
    """in_domain, shifted, joint, balanced or rebalanced."""
    name: str
    """What is drawn: roc, ood_roc, referral_accuracy, referral_nll, referral_auroc,
    referral_auprc, uncertainty/grade=<grade> ..."""


class Band(NamedTuple):
    """A curve of repeats: their mean and its standard error, all (points,)."""

    x: Array
    mean: Array
    stderr: Array
    """nan where there is one repeat only."""


class Sides(NamedTuple):
    """A histogram of uncertainty on both sides: decisions that are right and wrong."""

    edges: Array
    """(bins + 1,)"""
    correct: Array
    """(bins,) share of all items of the histogram, mean over repeats."""
    incorrect: Array
    """(bins,)"""


class Summary(NamedTuple):
    """Mean and population standard deviation over repeats."""

    mean: float
    std: float
    """nan where there is one repeat only, so that nothing varies."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """One score of one row on one dataset: repeats, interval, and the paper's rule."""

    key: Key
    values: tuple[float, ...] = ()
    """One per repeat, by the correct rule: ranks that give the guarantee, ties shared;
    () where it is undefined in all."""
    as_published: tuple[float, ...] = ()
    """One per repeat, by the rule of the released code; what stands beside the
    published number. () for what that code does not have."""
    low: float = math.nan
    high: float = math.nan
    samples: Array | None = field(default=None, repr=False, compare=False)
    """Bootstrap replicates over items and repeats; cells of one dataset are paired."""
    why: str = ""
    """Why there is no value."""

    @property
    def ours(self) -> Summary:
        """Over `values`."""
        return summary(self.values)

    @property
    def by_their_rule(self) -> Summary:
        """Over `as_published`."""
        return summary(self.as_published)


def summary(values: tuple[float, ...]) -> Summary:
    """Mean and population standard deviation; nan for nothing, and for one alone.

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
class Missing:
    """A run without readable predictions."""

    hash: str
    dataset: str
    method: str
    seed: int
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """An expectation, with the numbers that decide it."""

    expectation: Expectation
    values: Mapping[str, float]
    """By row; nan where a number is missing."""

    @property
    def known(self) -> bool:
        """Whether every number is there."""
        return all(math.isfinite(value) for value in self.values.values())

    @property
    def held(self) -> bool:
        """Whether it holds for every row."""
        low, high = self.expectation.low, self.expectation.high
        return all(low <= value <= high for value in self.values.values())


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchmarkResults:
    """Every number of a benchmark at one preset, from predictions alone."""

    benchmark: Benchmark
    preset: Preset
    cells: Mapping[Key, Cell]
    ties: Mapping[Key, TieGroup] = field(default_factory=dict)
    """By dataset, alpha and score (the row is ''): the best row and its equals. For
    coverage the best is the one nearest to 1 - alpha."""
    bands: Mapping[DrawnKey, Band] = field(default_factory=dict)
    """Curves over repeats, for figures."""
    sides: Mapping[DrawnKey, Sides] = field(default_factory=dict)
    """Histograms, for figures."""
    checks: tuple[Check, ...] = ()
    missing: tuple[Missing, ...] = ()
    hardware: tuple[str, ...] = ()
    """Machines named by the predictions."""
    seconds: float | None = None
    """Seconds of all runs together, as far as the predictions state them."""
    notes: tuple[str, ...] = ()
    level: float = 0.95
    resamples: int = 1000
    seed: int = 0

    def cell(self, variant: str, alpha: float | None, row: str, score: str) -> Cell:
        """The cell there; one without values, saying so, if it was not judged."""
        key = Key(variant, alpha, row, score)
        why = f"not part of preset {self.preset.name}"
        return self.cells.get(key, Cell(key=key, why=why))

    def variants(self, label: str) -> tuple[Variant, ...]:
        """The datasets the paper calls `label`: real ones first, then simulated."""
        found = [v for v in self.preset.variants if v.label == label]
        return tuple(sorted(found, key=lambda v: v.simulated))
