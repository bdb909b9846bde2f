"""The frozen table that every judgement ends in: scores with intervals, and curves."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from html import escape

import numpy as np
from numpy.typing import NDArray

from qualms.predictions import Header
from qualms.scores import Better

Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One score on one subset, with its interval."""

    score: str
    """The function in `qualms.scores` that gave the value."""
    label: str
    subset: str
    """Which items: all, in-domain, shifted, balanced, or group=<name>."""
    variant: str
    """Which uncertainty, interval rule or recalibration; '' where there is only one."""
    better: Better
    value: float
    low: float
    high: float
    n: int
    why: str = ""
    """Why the value is undefined, or a remark that belongs beside it."""
    samples: Array | None = field(default=None, repr=False, compare=False)
    """The bootstrap replicates; what makes comparisons between files paired."""

    @property
    def key(self) -> tuple[str, str, str]:
        """What the row is about: score, subset, variant."""
        return (self.score, self.subset, self.variant)


@dataclass(frozen=True, slots=True, kw_only=True)
class Curve:
    """A line to draw: referral curves, coverage against risk, ROC."""

    name: str
    label: str
    subset: str
    variant: str
    x_label: str
    x: Array
    y: Array
    low: Array | None = None
    high: Array | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Bars:
    """A histogram to draw: shares per bin for each named part."""

    name: str
    label: str
    subset: str
    edges: Array
    parts: Mapping[str, Array]
    """Counts per bin, e.g. {"correct": ..., "wrong": ...}."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Results:
    """Everything `qualms score` says about one predictions file."""

    name: str
    header: Header
    task: str
    n: int
    draws: int
    """Draws of the predictions (M)."""
    rows: tuple[Row, ...]
    curves: tuple[Curve, ...] = ()
    bars: tuple[Bars, ...] = ()
    notes: tuple[str, ...] = ()
    level: float = 0.95
    resamples: int = 1000
    seed: int = 0
    identity: str = ""
    """Hash of items, order and targets: files compare in pairs only when it agrees."""

    def row(
        self, score: str, *, subset: str = "all", variant: str | None = None
    ) -> Row:
        """The row of `score`; the first variant where none is named."""
        for row in self.rows:
            fits = variant is None or row.variant == variant
            if row.score == score and row.subset == subset and fits:
                return row
        known = sorted({row.score for row in self.rows})
        raise LookupError(
            f"no {score!r} on {subset!r} items in {self.name}; "
            f"it has {', '.join(known)}"
        )

    def _repr_html_(self) -> str:
        # Jupyter shows results as a table; the report package owns the real page.
        cells = "".join(
            f"<tr><td>{escape(row.label)}</td><td>{escape(row.subset)}</td>"
            f"<td>{escape(row.variant)}</td><td>{row.value:.4g}</td>"
            f"<td>{row.low:.4g} to {row.high:.4g}</td></tr>"
            for row in self.rows
        )
        head = "<tr><th>score</th><th>items</th><th>variant</th><th>value</th>"
        interval = f"<th>{self.level:.0%} interval</th></tr>"
        return f"<table>{head}{interval}{cells}</table>"
