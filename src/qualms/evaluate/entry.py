"""The records of judging: scores with the data for their intervals, and drawings.

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
from qualms.scores.arguments import called_in_order
from qualms.scores.resampling import score_of_copies
from qualms.wording import suggest

FEWEST_POINTS = 8
"""Fewest points that show the course of a curve."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Entry:
    """One score of some items, before its interval is known.

    Its influence is computed only when asked for: that of ten million items on fifty
    scores would not fit into memory at once.
    """

    score: Callable[..., Any]
    """The public score function, whose name and `About` label the row."""
    value: float
    index: Index
    """The scored items, by their number in the judgement's design. The balanced joint
    set holds items twice."""
    items: int | None = None
    """Number of scored items if `index` also holds validation items; else None."""
    influence: Callable[[], Influence | None] | None = None
    """Returns the contribution of each item at `index`; None if it is not known."""
    resampled: Callable[[Index], float] | None = None
    """Returns the score with each item at `index` counted so many times; for scores
    without a known influence."""
    subset: str = "all"
    settings: Mapping[str, Any] = field(default_factory=dict)
    """Uncertainty, interval rule, measure ...; {} if there is only one."""
    labels: Mapping[str, Any] = field(default_factory=dict)
    """Further labels of its result. Unlike settings they do not decide which rows are
    ranked together."""
    name: str = ""
    """The label `score` of its result; '' for the name of the function."""
    title: str = ""
    """What tables call it; '' for the label of the function."""
    as_published: float = float("nan")
    """The score by the rule of a paper's released code; nan if that has none."""
    why: str = ""
    """Reason why the value is undefined; '' if it is defined."""
    no_interval: str = ""
    """Reason for having no interval, if neither influence nor resampling gives one."""
    aim: float | None = None
    """The best value, if it is neither the lowest nor the highest; else None."""
    ranked: bool = True
    """True if files, or rows of a table, are ranked by it."""
    inputs: Callable[[], Mapping[str, NDArray[Any]]] = dict
    """Returns the arrays that the score reads, by the names of its parameters. Arrays
    of many items are computed on each call, to save memory. {} if nothing uses them."""
    dead: str = ""
    """Reason why the judged uncertainty is useless; '' if it is useful."""

    @property
    def score_name(self) -> str:
        """The label `score` of its result."""
        return self.name or self.score.__name__

    @property
    def label(self) -> str:
        """What tables call it."""
        return self.title or about(self.score).label

    @property
    def uncertainty(self) -> Array | None:
        """(N,) uncertainty that the score judges; None if it judges none."""
        return self.inputs().get("uncertainty")

    @property
    def risk(self) -> Array | None:
        """(N,) risk that the uncertainty should announce; None if there is none."""
        return self.inputs().get("risk")

    @property
    def better(self) -> Better:
        """Direction of better values: higher, lower or neither."""
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
        value=float(called_in_order(score, *arrays)),
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
        arrays: The arrays by name, or a function that computes them on each call, so
            that they need not stay in memory until the interval is made.
        index: The items of the arrays.
        subset: Name of the set of items.
        settings: Settings such as the judged uncertainty.
        why: Reason why the value is undefined; '' if it is defined.
    """
    by_name = arrays() if callable(arrays) else arrays
    inputs = [by_name[name] for name in parameters(score)]
    entry = entry_of(score, inputs, index, subset=subset, settings=settings, why=why)
    if not callable(arrays) or entry.influence is None:
        # A thousand replicates would compute the arrays a thousand times.
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
    """Return `entry` with its influence computed, so that its arrays can be freed."""
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
    """Values of the curve; nan where undefined."""
    settings: Mapping[str, Any] = field(default_factory=dict)
    low: Array | None = None
    high: Array | None = None
    stderr: Array | None = None
    """Standard error of `y` over repeats; nan where there is one repeat only."""
    points: int = 0
    """Points of the whole curve, if some were left out; else 0."""
    counts: tuple[int, int] = (0, 0)
    """Positive and negative items of a ROC curve; (0, 0) for other curves."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Histogram:
    """A histogram to draw: numbers or shares per bin for each named part."""

    name: str
    label: str
    subset: str
    edges: Array
    """(bins + 1,) edges of the bins."""
    parts: Mapping[str, Array]
    """(bins,) numbers or shares of each part, e.g. {"correct": ..., "wrong": ...}."""
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
    """Index of the slice along the first axis; None for an item of two dimensions."""
    raters: NDArray[np.uint8]
    """(R, H, W) labels by rater."""
    predicted: NDArray[np.uint8]
    """(H, W) predicted labels."""
    disagreement: NDArray[np.float32]
    """(H, W) disagreement of the raters; nan where undefined."""
    uncertainty: Mapping[str, NDArray[np.float32]]
    """(H, W) uncertainty maps by measure."""
    draws: str | None = None
    """What draws vary, as the header of the predictions states it."""
    settings: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """All results of one file, or one repeat of a row, except intervals."""

    entries: tuple[Entry, ...]
    design: Design
    """The sample and the cluster of each item."""
    curves: tuple[Curve, ...] = ()
    histograms: tuple[Histogram, ...] = ()
    scatters: tuple[Scatter, ...] = ()
    slices: tuple[MapSlice, ...] = ()
    notes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    """Notes that benchmarks also show, with the lines that they are about."""
    points: tuple[OperatingPoint, ...] = ()
    """Thresholds, with answers whether they meet their target."""
    drawn: Array | None = None
    """(N,) digests of the raters' labels of segmented items, which have no array of
    targets: they show whether files hold the same items."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreOptions:
    """Options of scoring: resampling, subsets, uncertainty, thresholds."""

    resamples: int = 1000
    """Bootstrap replicates of scores without an influence: a user's own scores that
    declare neither `items` nor `influence`. It changes nothing else."""
    level: float = 0.95
    seed: int = 0
    by_group: bool = False
    subset: str = ""
    """Items that the verdict, tables and pictures are about: in_domain, shifted or all.
    '' for in-domain items with the shifted ones beside them, or all if the file does
    not mark some as shifted. The rows of all sets are computed in any case."""
    uncertainty: str = ""
    """The uncertainty that the verdict and the main scores judge, such as mine for an
    array `uncertainty/mine`. '' for the one that the header names, else the first of
    the file's own, else the computed one."""
    alpha: float = 0.1
    further_alphas: tuple[float, ...] = ()
    """Further alphas at which intervals and conformal sets are judged."""
    workers: int = field(default_factory=cores)
    """Threads for intervals, and threads or processes for segmentation items; they
    change no number."""
    workforce: Workforce | None = field(default=None, repr=False, compare=False)
    """Processes for segmentation items, shared between files."""
    progress: Callable[[int, int], None] | None = None
    nearest: tuple[int, ...] = ()
    """Embeddings: further numbers k of nearest items for R@k, besides 1."""
    map_at_r: bool = False
    """Embeddings: True to compute MAP@R, which searches all neighbours."""
    ordinal: bool = False
    """Classification: True if classes are grades: near ones are nearly right."""
    points: PointOptions = field(default_factory=PointOptions)
    """Classification: thresholds that are judged."""
    curve_points: int | None = None
    """Most points of a referral curve; None for one per item, which takes more memory
    than the predictions if there are many items."""
    gallery: Predictions | None = None
    """Embeddings: items to search for neighbours, instead of those of the file."""

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
