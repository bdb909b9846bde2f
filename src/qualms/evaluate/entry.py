"""What a judge hands over: scores with what resamples them, and what is drawn.

The same records serve one predictions file, judged by its task, and one pooled repeat
of a benchmark's row, judged by the benchmark's protocol.
"""

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qualms.scores import Better, Plan, about

Array = NDArray[np.float64]
Index = NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Sample:
    """Items that were drawn from one population, independently of other samples."""

    n: int
    cluster: NDArray[Any] | None = None
    """(n,) what items belong to, e.g. a patient; clusters are resampled whole."""
    strata: NDArray[Any] | None = None
    """(n,) groups whose sizes resampling keeps."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Entry:
    """One score of some items, before its interval is known."""

    score: Callable[..., Any]
    """The public score: its name and `About` label the row."""
    index: Index
    """The items it is about, repeats allowed (the balanced joint set). They are
    numbered through all samples of the judgement."""
    plan: Plan | None = None
    """Weights over `index` to a value; ones give the score itself. None for a score
    that is not resampled."""
    subset: str = "all"
    settings: Mapping[str, Any] = field(default_factory=dict)
    """Which uncertainty, interval rule, measure ...; {} where there is only one."""
    name: str = ""
    """What tables call it, where that is not `<subset>/<score>`."""
    value: float | None = None
    """The score itself, where the plan is coarser; else the plan at weights 1."""
    as_published: float = float("nan")
    """The score by the rule of a paper's released code, where that has it."""
    why: str = ""
    """Why the value is undefined, where it is."""
    aim: float | None = None
    """The best value, where that is neither the lowest nor the highest."""
    ranked: bool = True
    """Whether rows of a table are ranked by it."""

    @property
    def key(self) -> str:
        """What tables call it: `in_domain/auroc`, or the score alone for all items."""
        where = "" if self.subset == "all" else f"{self.subset}/"
        return self.name or f"{where}{self.score.__name__}"

    @property
    def better(self) -> Better:
        """Which values are better."""
        return about(self.score).better

    def exact(self) -> float:
        """The value of the score on the items as they are."""
        if self.value is not None:
            return self.value
        if self.plan is None:
            return float("nan")
        return self.plan(np.ones(len(self.index), np.int32))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Curve:
    """A line to draw: referral curves, coverage against risk, ROC."""

    name: str
    label: str
    subset: str
    x_label: str
    x: Array
    y: Array
    """nan where it is undefined."""
    settings: Mapping[str, Any] = field(default_factory=dict)
    low: Array | None = None
    high: Array | None = None
    stderr: Array | None = None
    """Standard error of `y` over repeats; nan where there is one repeat only."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Histogram:
    """A histogram to draw: numbers or shares per bin for each named part."""

    name: str
    label: str
    subset: str
    edges: Array
    """(bins + 1,)"""
    parts: Mapping[str, Array]
    """(bins,) each, e.g. {"correct": ..., "wrong": ...}."""
    settings: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """Everything about one file, or one repeat of a row, but its intervals."""

    entries: tuple[Entry, ...]
    samples: tuple[Sample, ...]
    """Where the items come from; entries count through them in this order."""
    curves: tuple[Curve, ...] = ()
    histograms: tuple[Histogram, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreOptions:
    """What the caller chose: how to resample and what to split by."""

    resamples: int = 1000
    level: float = 0.95
    seed: int = 0
    by_group: bool = False
    alpha: float = 0.1
    workers: int = field(default_factory=lambda: os.cpu_count() or 1)
    """Threads for resampling and for segmentation items; they change no number."""
    progress: Callable[[int, int], None] | None = None

    def __post_init__(self) -> None:
        for name, share in (("level", self.level), ("alpha", self.alpha)):
            if not 0.0 < share < 1.0:
                raise ValueError(f"{name} must lie between 0 and 1, got {share}")
        if self.resamples < 0:
            raise ValueError(f"resamples must be 0 or more, got {self.resamples}")
