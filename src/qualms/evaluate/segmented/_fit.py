"""What validation items fix: thresholds of uncertainty maps, and Platt scaling."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple

import numpy as np

from qualms import scores
from qualms.evaluate.entry import ScoreOptions
from qualms.evaluate.segmented._stream import (
    measured_maps,
    segmented_labels,
    streamed,
)
from qualms.predictions import Header, Maps, Predictions
from qualms.scores import Platt, PooledValues, UncertaintyHistogram


@dataclass(frozen=True, slots=True, kw_only=True)
class Validation:
    """What the validation items of one run fix, by measure."""

    threshold: Mapping[str, float]
    platt: Mapping[str, Platt]
    """One fit on all pixels of the run."""
    mean_platt: Mapping[str, Platt] = field(default_factory=dict)
    """The mean of one fit per item, as the released code of VALUES has it."""


def validate(
    runs: Sequence[Predictions], options: ScoreOptions, *, published: bool = False
) -> list[Validation]:
    """Thresholds that all `runs` share, and a Platt fit for each of them.

    One pass over their validation items, whose number memory does not grow with.
    `published` adds the Platt scaling of the released code.
    """
    shares: list[float] = []
    values: dict[str, PooledValues] = {}
    fits = []
    for run in runs:
        pooled: dict[str, UncertaintyHistogram] = {}
        single: dict[str, list[Platt]] = defaultdict(list)
        work = partial(_known, run.header, published, values)
        for part in streamed(work, run, options):
            shares.append(part.background)
            for name, histogram in part.histogram.items():
                known = pooled.get(name)
                pooled[name] = histogram if known is None else known + histogram
            for name, fit in part.platt.items():
                single[name].append(fit)
        fits.append((pooled, single))
    share = float(np.mean(shares))
    threshold = {name: pool.quantile(share) for name, pool in values.items()}
    return [
        Validation(
            threshold=threshold,
            platt={name: _fitted(found) for name, found in pooled.items()},
            mean_platt={name: _mean(found) for name, found in single.items()},
        )
        for pooled, single in fits
    ]


class _ValidationItem(NamedTuple):
    background: float
    """Share of class 0 over the draws' label maps and the mean prediction."""
    histogram: dict[str, UncertaintyHistogram]
    platt: dict[str, Platt]


def _known(
    header: Header, published: bool, values: dict[str, PooledValues], maps: Maps
) -> _ValidationItem:
    """What is known of an item; the values of its maps are added to `values`."""
    measures = measured_maps(header, maps)
    for name, measured in measures.items():
        # Here, in one of several threads, as sorting values takes long.
        values.setdefault(name, PooledValues()).add(measured)
    predicted = segmented_labels(maps)
    labels = np.concatenate([maps.draw_labels, predicted[None]])
    agreed = scores.rater_agreement(predicted, maps.raters, ignore=header.ignore)
    high = float(np.log(len(maps.mean_probs)))
    histogram = {
        name: scores.uncertainty_histogram(
            np.maximum(measured, 0), agreed.correct, total=agreed.total, high=high
        )
        for name, measured in measures.items()
    }
    rated = bool(agreed.total.any())
    return _ValidationItem(
        float(scores.background_share([labels])),
        histogram,
        {n: _fitted(h) for n, h in histogram.items()} if published and rated else {},
    )


def _fitted(pooled: UncertaintyHistogram) -> Platt:
    filled = pooled.total > 0
    parts = (part[filled] for part in (pooled.mean, pooled.correct, pooled.total))
    mean, correct, total = parts
    return scores.fit_platt(mean, correct, total=total)


def _mean(fits: Sequence[Platt]) -> Platt:
    return Platt(
        a=float(np.mean([fit.a for fit in fits])),
        b=float(np.mean([fit.b for fit in fits])),
    )
