"""The records of judging: scores, what their intervals need, and what to draw.

The same records serve one predictions file, judged by its task, and one pooled repeat
of a benchmark's row, judged by the benchmark's protocol.
"""

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qualms.arrays import Array, Index
from qualms.evaluate.operating_points import OperatingPoint, PointOptions
from qualms.evaluate.subsets import CHOICES
from qualms.inference import Design, Influence, influence_of
from qualms.predictions import Predictions
from qualms.processes import Workforce, cores
from qualms.scores import Better, about
from qualms.scores.resampling import score_of_copies
from qualms.wording import suggest

FEWEST_POINTS = 8
"""Fewer points of a curve would not show how it runs."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Entry:
    """One score of some items, before its interval is known.

    Its influence is computed only when asked for: that of ten million items on fifty
    scores would not fit into memory at once.
    """

    score: Callable[..., Any]
    """The public score: its name and `About` label the row."""
    value: float
    index: Index
    """The items it is about, by their number in the judgement's design. An item may
    stand there twice (the balanced joint set)."""
    items: int | None = None
    """How many items are scored, where `index` holds others (validation items)."""
    influence: Callable[[], Influence | None] | None = None
    """What each item at `index` contributes; None where that is not known."""
    resampled: Callable[[Index], float] | None = None
    """Gives the score where each item at `index` counts so many times, for scores whose
    influence is not known."""
    subset: str = "all"
    settings: Mapping[str, Any] = field(default_factory=dict)
    """Which uncertainty, interval rule, measure ...; {} where there is only one."""
    labels: Mapping[str, Any] = field(default_factory=dict)
    """Further labels of its result. Unlike settings they say nothing about which rows
    are ranked together."""
    name: str = ""
    """The label `score` of its result, where that is not the name of the function."""
    as_published: float = float("nan")
    """The score by the rule of a paper's released code, where that has it."""
    why: str = ""
    """Why the value is undefined, if it is."""
    no_interval: str = ""
    """Why it has no interval, where neither influence nor resampling gives one."""
    aim: float | None = None
    """The best value, where that is neither the lowest nor the highest."""
    ranked: bool = True
    """Whether files, or rows of a table, are ranked by it."""
    inputs: Callable[[], Mapping[str, NDArray[Any]]] = dict
    """Returns the arrays that the score reads, by the names of its parameters; those
    of many items are made anew, lest all of them stay in memory. Empty where nobody
    asks for them."""
    dead: str = ""
    """Why the uncertainty that it judges says nothing; empty where it does."""

    @property
    def score_name(self) -> str:
        """Return the label `score` of its result."""
        return self.name or self.score.__name__

    @property
    def uncertainty(self) -> Array | None:
        """Return (N,) of the items, where the score judges one."""
        return self.inputs().get("uncertainty")

    @property
    def risk(self) -> Array | None:
        """Return (N,) what the uncertainty is to announce, where there is such."""
        return self.inputs().get("risk")

    @property
    def better(self) -> Better:
        """Return whether higher or lower values are better."""
        return about(self.score).better


def entry_of(
    score: Callable[..., Any],
    arrays: Sequence[NDArray[Any]],
    index: Index,
    *,
    subset: str = "all",
    settings: Mapping[str, Any] | None = None,
    why: str = "",
) -> Entry:
    """Return the entry of `score(*arrays)`; the arrays are of the items at `index`.

    Options of the score are bound by `functools.partial`.
    """
    function = score.func if isinstance(score, partial) else score
    has_influence = about(function).influence is not None
    inputs = dict(zip(parameters(score), arrays, strict=False))
    return Entry(
        score=function,
        value=float(score(*arrays)),
        index=index,
        influence=partial(influence_of, score, *arrays) if has_influence else None,
        resampled=None
        if has_influence
        else partial(score_of_copies, score, list(arrays)),
        subset=subset,
        settings=settings or {},
        why=why,
        inputs=partial(dict, inputs),
    )


def bound_entry(
    score: Callable[..., Any],
    arrays: Mapping[str, NDArray[Any]] | Callable[[], Mapping[str, NDArray[Any]]],
    index: Index,
    *,
    subset: str = "all",
    settings: Mapping[str, Any] | None = None,
    why: str = "",
) -> Entry:
    """Return the entry of `score`, whose parameters name the arrays that it reads.

    Args:
        score: A public score.
        arrays: The arrays by name, or a function that makes them anew, so that those of
            many items need not stay in memory until the interval is made.
        index: The items that they are of.
        subset: Its name.
        settings: Such as the uncertainty that is judged.
        why: Why the value is undefined, if it is.
    """
    by_name = arrays() if callable(arrays) else arrays
    inputs = [by_name[name] for name in parameters(score)]
    entry = entry_of(score, inputs, index, subset=subset, settings=settings, why=why)
    if not callable(arrays) or entry.influence is None:
        # A thousand replicates would make the arrays a thousand times.
        return entry
    return replace(entry, influence=partial(_influence, score, arrays), inputs=arrays)


def _influence(
    score: Callable[..., Any], make: Callable[[], Mapping[str, NDArray[Any]]]
) -> Influence | None:
    arrays = make()
    return influence_of(score, *(arrays[name] for name in parameters(score)))


def parameters(score: Callable[..., Any]) -> list[str]:
    """Return the names of the parameters of `score` that have no default."""
    return [
        parameter.name
        for parameter in inspect.signature(score).parameters.values()
        if parameter.default is inspect.Parameter.empty
    ]


def with_known_influence(entry: Entry) -> Entry:
    """Return `entry` with its influence made now, so that its arrays need not stay."""
    if entry.influence is None:
        return entry
    influence = entry.influence()
    return replace(entry, influence=lambda: influence)


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
    points: int = 0
    """Points of the whole curve, where some of them were left out; else 0."""
    counts: tuple[int, int] = (0, 0)
    """Positive and negative items of a ROC curve; (0, 0) for other curves."""


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


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Scatter:
    """A point for each item to draw, such as its uncertainty against its size."""

    name: str
    label: str
    subset: str
    x_label: str
    x: Array
    y: Array
    settings: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class MapSlice:
    """Maps of one segmented item to draw: the item itself, or a slice of a volume."""

    name: str
    """Name of the choice of the item: most_disputed."""
    subset: str
    item: str
    """Its name in the predictions."""
    at: int | None
    """Which slice along the first axis; None for an item of two dimensions."""
    raters: NDArray[np.uint8]
    """(R, H, W)"""
    predicted: NDArray[np.uint8]
    """(H, W)"""
    disagreement: NDArray[np.float32]
    """(H, W) of the raters; nan where it is undefined."""
    uncertainty: Mapping[str, NDArray[np.float32]]
    """(H, W) by measure."""
    settings: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """Everything about one file, or one repeat of a row, but its intervals."""

    entries: tuple[Entry, ...]
    design: Design
    """Which sample, drawn apart from others, and which cluster each item is of."""
    curves: tuple[Curve, ...] = ()
    histograms: tuple[Histogram, ...] = ()
    scatters: tuple[Scatter, ...] = ()
    slices: tuple[MapSlice, ...] = ()
    notes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    """Notes that benchmarks show as well, with the lines that they are about."""
    points: tuple[OperatingPoint, ...] = ()
    """Thresholds, and whether they meet their target."""
    drawn: Array | None = None
    """(N,) of segmented items, which have no array of targets, a digest of what their
    raters drew: it tells whether files hold the same items."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreOptions:
    """What the caller chose: how to resample and what to split by."""

    resamples: int = 1000
    """Bootstrap replicates of scores without an influence: those of a user's own that
    say neither `items` nor `influence`. It changes nothing else."""
    level: float = 0.95
    seed: int = 0
    by_group: bool = False
    subset: str = ""
    """Items that the verdict, tables and pictures are about: in_domain, shifted or all.
    '' for in-domain ones with the shifted ones beside them, or all where the file does
    not mark some as shifted. The rows of every set are there in any case."""
    uncertainty: str = ""
    """The uncertainty that the verdict and the main scores judge, such as mine for an
    array `uncertainty/mine`. '' for the one that the header names, else the first of
    the file's own, else the one that is computed."""
    alpha: float = 0.1
    further_alphas: tuple[float, ...] = ()
    """Intervals and conformal sets are judged at these, too."""
    workers: int = field(default_factory=cores)
    """Threads for intervals, and threads or processes for segmentation items; they
    change no number."""
    workforce: Workforce | None = field(default=None, repr=False, compare=False)
    """Processes for segmentation items, shared between files."""
    progress: Callable[[int, int], None] | None = None
    nearest: tuple[int, ...] = ()
    """Embeddings: how many of the nearest items R@k counts besides the first."""
    map_at_r: bool = False
    """Embeddings: whether MAP@R is computed, which looks at all neighbours."""
    ordinal: bool = False
    """Classification: classes are grades, so that near ones are nearly right."""
    points: PointOptions = field(default_factory=PointOptions)
    """Classification: thresholds that are judged."""
    curve_points: int | None = None
    """Points of a referral curve that are kept at most; None for one per item, which
    takes more memory than the predictions where items are many."""
    gallery: Predictions | None = None
    """Embeddings: items among which neighbours are sought, instead of the file's."""

    def __post_init__(self) -> None:
        for name, share in (
            ("level", self.level),
            *(("alpha", alpha) for alpha in (self.alpha, *self.further_alphas)),
        ):
            if not 0.0 < share < 1.0:
                raise ValueError(f"{name} must lie between 0 and 1, got {share}")
        if self.resamples < 0:
            raise ValueError(f"resamples must be 0 or more, got {self.resamples}")
        if self.subset not in ("", *CHOICES):
            raise ValueError(
                f"subset must be one of {', '.join(CHOICES)}, got {self.subset!r}."
                f"{suggest(self.subset, CHOICES)}"
            )
        if self.curve_points is not None and self.curve_points < FEWEST_POINTS:
            raise ValueError(
                f"curve_points must be at least {FEWEST_POINTS}, or None for all, got "
                f"{self.curve_points}"
            )
        if any(k < 1 for k in self.nearest):
            raise ValueError(f"nearest must be 1 or more, got {min(self.nearest)}")
