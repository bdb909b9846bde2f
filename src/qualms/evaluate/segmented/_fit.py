"""Fits on validation items: thresholds of uncertainty maps, and Platt scaling."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from qualms import scores
from qualms.evaluate.entry import ScoreOptions
from qualms.evaluate.segmented._layers import (
    all_foreground,
    label_layers,
    layer_agreement,
    summed_agreement,
)
from qualms.evaluate.segmented._stream import (
    OWN,
    MapKind,
    map_kind,
    measured_maps,
    streamed,
)
from qualms.predictions import Maps, Predictions, PredictionsError
from qualms.scores import Platt, PooledCounts, UncertaintyHistogram

Sum = TypeVar("Sum", PooledCounts, UncertaintyHistogram)


@dataclass(frozen=True, slots=True, kw_only=True)
class Validation:
    """Thresholds and Platt scaling fitted to validation items of a run, by measure."""

    threshold: Mapping[str, float]
    platt: Mapping[str, Platt]
    """Fit on all pixels of the run."""
    mean_platt: Mapping[str, Platt] = field(default_factory=dict)
    """Mean of a fit for each item, as in the released code of VALUES."""

    @property
    def undivided(self) -> tuple[str, ...]:
        """The measures whose threshold is not above 0: nearly all pixels count.

        Maps of a user's own may have any range, so they are not included.
        """
        return tuple(
            name
            for name, value in self.threshold.items()
            if value <= 0 and not name.startswith(OWN)
        )


def undivided_note(measure: str) -> str:
    """Return a sentence on a measure whose threshold divides no pixels.

    >>> undivided_note("MSR")[:38]
    'threshold (MSR): it is not above 0, as'
    """
    return (
        f"threshold ({measure}): it is not above 0, as the validation pixels below it "
        "have no uncertainty at all; so this aggregation is the mean of nearly all "
        "pixels, and ranks items as `image` does"
    )


def validate(
    runs: Sequence[Predictions], options: ScoreOptions, *, published: bool = False
) -> list[Validation]:
    """Fit thresholds that all `runs` share, and Platt scaling for each of them.

    A threshold is a quantile. A first pass over the validation items finds its
    neighbourhood, and a second pass its exact value, so that memory does not grow with
    the number of items. `published` adds the Platt scaling of the released code.
    """
    shares: list[float] = []
    counts: dict[str, PooledCounts] = {}
    fits = []
    for run in runs:
        pooled: dict[str, UncertaintyHistogram] = {}
        single: dict[str, list[Platt]] = defaultdict(list)
        work = partial(_measured, map_kind(run), published)
        with closing(streamed(work, run, options)) as items:
            for part in items:
                shares.append(part.background)
                _add_each(counts, part.counts)
                _add_each(pooled, part.histogram)
                for name, fit in part.platt.items():
                    single[name].append(fit)
        _check_labelled(run, pooled)
        fits.append((pooled, single))
    second = _second_pass(runs, counts, float(np.mean(shares)), options)
    return [
        Validation(
            threshold=second.threshold,
            platt={
                **{name: _fitted(histogram) for name, histogram in pooled.items()},
                **own,
            },
            mean_platt={name: _mean(item_fits) for name, item_fits in single.items()},
        )
        for (pooled, single), own in zip(fits, second.own, strict=True)
    ]


def _check_labelled(
    run: Predictions, pooled: Mapping[str, UncertaintyHistogram]
) -> None:
    if not any(histogram.total.any() for histogram in pooled.values()):
        raise PredictionsError(
            "some pixel of the validation items must have a label that counts, and all"
            f" labels in {run.source} are {run.header.ignore}, which its header"
            " ignores; store the labels of raters, or score without validation items"
        )


class _SecondPass(NamedTuple):
    """Fits that need the range of all maps."""

    threshold: dict[str, float]
    """The quantile of all values of all maps, by measure."""
    own: list[dict[str, Platt]]
    """Platt scaling of a user's own maps, for each run."""


def _second_pass(
    runs: Sequence[Predictions],
    counts: Mapping[str, PooledCounts],
    share: float,
    options: ScoreOptions,
) -> _SecondPass:
    around = {name: leading.around(share) for name, leading in counts.items()}
    spans = {n: leading.span() for n, leading in counts.items() if n.startswith(OWN)}
    nearby: dict[str, PooledCounts] = {}
    own = []
    for run in runs:
        pooled: dict[str, UncertaintyHistogram] = {}
        work = partial(_near, map_kind(run), around, spans)
        with closing(streamed(work, run, options)) as items:
            for near, histogram in items:
                _add_each(nearby, near)
                _add_each(pooled, histogram)
        own.append({n: _shifted_fit(h, spans[n][0]) for n, h in pooled.items()})
    threshold = {
        name: leading.quantile(share, nearby[name]) for name, leading in counts.items()
    }
    return _SecondPass(threshold, own)


def _shifted_fit(histogram: UncertaintyHistogram, low: float) -> Platt:
    """Return the fit of values that were counted from `low` on."""
    fit = _fitted(histogram)
    return Platt(a=fit.a, b=fit.b + fit.a * low)


class _ValidationItem(NamedTuple):
    background: float
    """Share of the background in the labels of the draws and the mean prediction."""
    counts: dict[str, PooledCounts]
    """Counts of the values of each map by their leading bits."""
    histogram: dict[str, UncertaintyHistogram]
    platt: dict[str, Platt]


def _measured(kind: MapKind, published: bool, maps: Maps) -> _ValidationItem:
    measures = measured_maps(kind, maps)
    layers = label_layers(kind, maps)
    agreed = summed_agreement([layer_agreement(e, kind.header.ignore) for e in layers])
    high = sum(float(np.log(layer.classes)) for layer in layers)
    histogram = {
        name: scores.uncertainty_histogram(
            uncertainty=np.maximum(measured, 0),
            correct=agreed.correct,
            total=agreed.total,
            high=high,
        )
        for name, measured in measures.items()
        if not name.startswith(OWN)
    }
    rated = bool(agreed.total.any())
    return _ValidationItem(
        float(scores.background_share([all_foreground(layers)])),
        {name: scores.leading_counts(measured) for name, measured in measures.items()},
        histogram,
        {n: _fitted(h) for n, h in histogram.items()} if published and rated else {},
    )


def _near(
    kind: MapKind,
    around: Mapping[str, NDArray[np.uint32]],
    spans: Mapping[str, tuple[float, float]],
    maps: Maps,
) -> tuple[dict[str, PooledCounts], dict[str, UncertaintyHistogram]]:
    """Return counts near the quantiles, and histograms of the user's own maps."""
    measures = measured_maps(kind, maps)
    near = {
        name: scores.nearby_counts(measured, around[name])
        for name, measured in measures.items()
    }
    if not spans:
        return near, {}
    layers = label_layers(kind, maps)
    agreed = summed_agreement([layer_agreement(e, kind.header.ignore) for e in layers])
    histograms = {
        name: scores.uncertainty_histogram(
            uncertainty=measures[name] - np.float64(low),
            correct=agreed.correct,
            total=agreed.total,
            high=high - low,
        )
        for name, (low, high) in spans.items()
    }
    return near, histograms


def _add_each(total: dict[str, Sum], part: Mapping[str, Sum]) -> None:
    """Add each part to the total of the same name."""
    for name, term in part.items():
        total[name] = total[name] + term if name in total else term


def _fitted(pooled: UncertaintyHistogram) -> Platt:
    filled = pooled.total > 0
    parts = (part[filled] for part in (pooled.mean, pooled.correct, pooled.total))
    mean, correct, total = parts
    return scores.fit_platt(uncertainty=mean, correct=correct, total=total)


def _mean(fits: Sequence[Platt]) -> Platt:
    return Platt(
        a=float(np.mean([fit.a for fit in fits])),
        b=float(np.mean([fit.b for fit in fits])),
    )
