"""One pass over segmentation items: from maps to a few numbers per item."""

from collections import defaultdict, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from qualms import scores
from qualms.evaluate.entry import ScoreOptions
from qualms.predictions import Header, Maps, Predictions
from qualms.scores import Platt, PooledValues, UncertaintyHistogram

Array = NDArray[np.float64]
Map = NDArray[np.floating[Any]]
R = TypeVar("R")
K = TypeVar("K")

PATCH = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Validation:
    """What validation items fix: a threshold and a Platt fit per measure."""

    threshold: Mapping[str, float]
    platt: Mapping[str, Platt]


@dataclass(frozen=True, slots=True, kw_only=True)
class MapScores:
    """Per-item numbers of a segmentation folder."""

    dice: Array
    ged: Array
    ncc: Mapping[str, Array] = field(default_factory=dict)
    ace: Mapping[str, Array] = field(default_factory=dict)
    uncertainty: Mapping["Aggregated", Array] = field(default_factory=dict)
    """Image-level uncertainty by measure and aggregation."""


class Aggregated(NamedTuple):
    """How a map became one number."""

    measure: str
    aggregation: str


class _ItemScores(NamedTuple):
    dice: float
    ged: float
    ncc: dict[str, float]
    ace: dict[str, float]
    uncertainty: dict[Aggregated, float]


def measure_items(
    predictions: Predictions, fitted: Validation | None, options: ScoreOptions
) -> MapScores:
    """Every item once, several at a time; memory does not grow with their number."""
    rows = list(
        _streamed(partial(_measure, predictions.header, fitted), predictions, options)
    )
    return MapScores(
        dice=np.array([row.dice for row in rows]),
        ged=np.array([row.ged for row in rows]),
        ncc=_columns([row.ncc for row in rows]),
        ace=_columns([row.ace for row in rows]),
        uncertainty=_columns([row.uncertainty for row in rows]),
    )


def roles(header: Header, draws: int) -> str | None:
    """The method whose table says what each map stands for."""
    single = draws == 1 and header.method != "ssn"
    return "softmax" if single else header.method


def validate(val: Predictions, options: ScoreOptions) -> Validation:
    """Thresholds and Platt fits from validation items, in one pass over them.

    Memory does not grow with their number.
    """
    shares: list[float] = []
    values: dict[str, PooledValues] = defaultdict(PooledValues)
    histograms: dict[str, UncertaintyHistogram] = {}
    for part in _streamed(partial(_known, val.header), val, options):
        shares.append(part.background)
        for name, uncertainty_map in part.maps.items():
            values[name].add(uncertainty_map)
        for name, histogram in part.histogram.items():
            known = histograms.get(name)
            histograms[name] = histogram if known is None else known + histogram
    share = float(np.mean(shares))
    return Validation(
        threshold={name: pooled.quantile(share) for name, pooled in values.items()},
        platt={
            name: scores.fit_platt(pooled.mean, pooled.correct, total=pooled.total)
            for name, pooled in histograms.items()
        },
    )


class _ValidationItem(NamedTuple):
    background: float
    """Share of class 0 over the draws' label maps and the mean prediction."""
    maps: dict[str, NDArray[np.float32]]
    histogram: dict[str, UncertaintyHistogram]


def _known(header: Header, maps: Maps) -> _ValidationItem:
    measures = _measures(header, maps)
    predicted = maps.mean_probs.argmax(axis=0).astype(np.uint8)
    labels = np.concatenate([maps.draw_labels, predicted[None]])
    agreed = scores.rater_agreement(predicted, maps.raters, ignore=header.ignore)
    high = float(np.log(len(maps.mean_probs)))
    return _ValidationItem(
        float(scores.background_share([labels])),
        {name: values.astype(np.float32) for name, values in measures.items()},
        {
            name: scores.uncertainty_histogram(
                np.maximum(values, 0), agreed.correct, total=agreed.total, high=high
            )
            for name, values in measures.items()
        },
    )


def _measure(header: Header, fitted: Validation | None, maps: Maps) -> _ItemScores:
    measures = _measures(header, maps)
    classes, ignore = len(maps.mean_probs), header.ignore
    predicted = maps.mean_probs.argmax(axis=0).astype(np.uint8)
    overlap = [
        scores.dice(predicted, rater, classes=classes, ignore=ignore)
        for rater in maps.raters
    ]
    spread = scores.rater_variance(maps.raters, ignore=ignore)
    return _ItemScores(
        float(np.mean(overlap)),
        scores.ged(maps.draw_labels, maps.raters, classes=classes, ignore=ignore),
        {
            name: scores.ncc(values, np.nan_to_num(spread), mask=np.isfinite(spread))
            for name, values in measures.items()
        },
        _calibration(header, fitted, maps, predicted, measures),
        _aggregated(measures, fitted),
    )


def _measures(header: Header, maps: Maps) -> dict[str, Map]:
    """Uncertainty maps by what they stand for; one draw has the predictive one only."""
    method = roles(header, len(maps.draw_labels))
    found = scores.uncertainty_maps(
        maps.mean_probs, maps.expected_entropy, method=method
    )
    if method == "softmax":
        return {"predictive": found.predictive}
    return {
        "predictive": found.predictive,
        "aleatoric": found.aleatoric,
        "epistemic": found.epistemic,
    }


def _calibration(
    header: Header,
    fitted: Validation | None,
    maps: Maps,
    predicted: NDArray[np.uint8],
    measures: dict[str, Map],
) -> dict[str, float]:
    if fitted is None:
        return {}
    agreed = scores.rater_agreement(predicted, maps.raters, ignore=header.ignore)
    return {
        name: scores.ace(
            fitted.platt[name].confidence(values), agreed.correct, total=agreed.total
        )
        for name, values in measures.items()
    }


def _aggregated(
    measures: dict[str, Map], fitted: Validation | None
) -> dict[Aggregated, float]:
    found = {}
    for name, values in measures.items():
        size = min(PATCH, *values.shape)
        found[Aggregated(name, "image")] = scores.aggregate_image(values)
        found[Aggregated(name, "patch")] = scores.aggregate_patch(values, size=size)
        if fitted is not None:
            threshold = fitted.threshold[name]
            found[Aggregated(name, "threshold")] = scores.aggregate_threshold(
                values, threshold=threshold
            )
    return found


def _streamed(
    work: Callable[[Maps], R], predictions: Predictions, options: ScoreOptions
) -> Iterator[R]:
    """`work` on every item, a few in flight, in order."""
    maps = predictions.maps
    if maps is None:
        raise ValueError(f"{predictions.source} holds no segmentation items")

    def job(index: int) -> R:
        return work(maps[index])

    with ThreadPoolExecutor(options.workers) as pool:
        waiting: deque[Future[R]] = deque()
        for index in range(len(maps)):
            waiting.append(pool.submit(job, index))
            if len(waiting) > options.workers:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()


def _columns(rows: Sequence[Mapping[K, float]]) -> dict[K, Array]:
    return {name: np.array([row[name] for row in rows]) for name in rows[0]}
