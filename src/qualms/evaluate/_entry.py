"""What a task's judge hands over: values with the plans that resample them."""

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qualms.evaluate._results import Bars, Curve
from qualms.scores import Plan

Index = NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A score's value on a subset, before its interval is known."""

    score: Callable[..., Any]
    """The public score: its name and `About` label the row."""
    plan: Plan
    """Weights over `index` to a value; ones give the score itself."""
    index: Index
    """The items the plan is about, repeats allowed (the balanced joint set)."""
    subset: str = "all"
    variant: str = ""
    why: str = ""
    """Why the value is undefined, where it is."""
    value: float | None = None
    """The score itself, where the plan is coarser; else the plan at weights 1."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """All entries of one file, with what is drawn and said about it."""

    entries: tuple[Entry, ...]
    curves: tuple[Curve, ...] = ()
    bars: tuple[Bars, ...] = ()
    notes: tuple[str, ...] = ()
    strata: Index | None = None
    """Resampling keeps the size of each stratum: class, and in-domain or shifted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
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
