"""Protocol of the regression benchmark: calibrated intervals and selection.

The protocol of Gustafsson et al. (2023, arXiv:2302.03679), section 3.2: intervals by
the row's rule, one offset from all validation items, a threshold that keeps 95 % of
them, and test scores of the items that are predicted. Validation and test items are two
samples, and intervals cover what other validation items would have changed.

Beyond the paper, rows may weigh validation items by how like the test items they are
(weighted conformal prediction, Tibshirani et al., 2019). That needs the density ratio
of test to validation inputs. Predictions carry no features, but functions of them: the
mean, the variance and the selection scores. A logistic regression that tells test from
validation items by these gives the ratio, so the intervals are right as far as the
shift acts through what the predictions carry.
"""

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import rankdata

from qualms import scores
from qualms.arrays import Array
from qualms.evaluate.entry import Entry, Judgement, ScoreOptions
from qualms.evaluate.protocol import AbsentError, Protocol, Repeat
from qualms.evaluate.recalibration import (
    Forecasts,
    logistic_log_odds,
    recalibrated_influences,
)
from qualms.evaluate.subsets import design_of
from qualms.inference import Influence, mean_influence
from qualms.predictions import Predictions
from qualms.scores.arguments import called_in_order
from qualms.scores.as_published import regression as published
from qualms.study import Line, RunPlan

RATE = 0.95
"""Share of validation items that a selection threshold accepts."""
SCORES: dict[tuple[str, str], Callable[..., Any]] = {
    ("val", "mae"): scores.mae,
    ("val", "interval_length"): scores.interval_length,
    ("test", "coverage"): scores.coverage,
    ("test", "prediction_rate"): scores.prediction_rate,
    ("test", "mae"): scores.mae,
    ("test", "interval_length"): scores.interval_length,
    ("test", "inverted_fraction"): scores.inverted_fraction,
    ("test", "unbounded_fraction"): scores.inverted_fraction,
}
"""By split and name."""
NOT_FOLLOWED = "what other validation items would change is not followed here"
RANKED = (("val", "mae"), ("val", "interval_length"), ("test", "coverage"))
"""Scores that rows are ranked by; the others are good or bad only beside these."""


class Calibrated(NamedTuple):
    """Offsets of intervals, one or one per item, and the threshold of selection."""

    val_offset: float | Array
    test_offset: float | Array
    threshold: float


def _judge(repeat: Repeat) -> Judgement:
    line = repeat.line
    alpha = _alpha(line)
    splits = repeat.read("val"), _items_in_range(repeat.read(line.variant.test), line)
    val, test = (_forecasts(split, line, alpha) for split in splits)
    released = None
    if line.settings.get("weighted"):
        corrected = _calibrate_weighted(val, splits, alpha)
        influences = _fixed_offset_influences(val, test, corrected)
    else:
        corrected = _calibrate(scores, val, alpha)
        influences = recalibrated_influences(val, test, alpha=alpha, rate=RATE)
        if not line.row.beyond and repeat.part_of is None:
            released = _calibrate(published, val, alpha)
    return Judgement(
        entries=(
            *_entries(line, (val, test), (corrected, released), influences),
            *_own_entries(line, splits, (val, test), alpha),
        ),
        design=design_of(splits[0]).joined(design_of(splits[1])),
    )


def _entries(
    line: Line,
    items: tuple[Forecasts, Forecasts],
    calibrated: tuple[Calibrated, Calibrated | None],
    influences: Mapping[str, Callable[[], Influence]],
) -> Iterator[Entry]:
    corrected, released = (
        _scores_of(*items, c) if c is not None else None for c in calibrated
    )
    assert corrected is not None
    everyone = np.arange(sum(len(split.target) for split in items))
    for column, ((split, name), score) in enumerate(SCORES.items()):
        influence = influences.get(f"{split}_{name}")
        yield Entry(
            name=name,
            score=score,
            value=corrected[column],
            subset=split,
            index=everyone,
            influence=influence,
            as_published=math.nan if released is None else released[column],
            why="no test item is accepted",
            no_interval="" if influence else NOT_FOLLOWED,
            aim=1 - _alpha(line) if name == "coverage" else None,
            ranked=(split, name) in RANKED,
        )


def _own_entries(
    line: Line,
    splits: tuple[Predictions, Predictions],
    items: tuple[Forecasts, Forecasts],
    alpha: float,
) -> Iterator[Entry]:
    """Yield test scores where each uncertainty of the method's own selects the items.

    Rows that select by another score, or weigh validation items, have none of them.
    """
    if line.settings.get("select") or line.settings.get("weighted"):
        return
    of_val, of_test = (split.named("uncertainty") for split in splits)
    for name in (name for name in of_val if name in of_test):
        val, test = (
            forecasts._replace(select=values)
            for forecasts, values in zip(
                items, (of_val[name], of_test[name]), strict=True
            )
        )
        calibrated = _calibrate(scores, val, alpha)
        influences = recalibrated_influences(val, test, alpha=alpha, rate=RATE)
        for entry in _entries(line, (val, test), (calibrated, None), influences):
            if entry.subset == "test":
                yield replace(entry, settings={"uncertainty": name})


def _alpha(line: Line) -> float:
    alpha = line.settings.get("alpha")
    if alpha is None:
        raise ValueError(
            f"variant {line.variant.name!r} must state the alphas of its intervals, "
            "e.g. at=({'alpha': 0.1},)"
        )
    return float(alpha)


def _items_in_range(predictions: Predictions, line: Line) -> Predictions:
    """Return the items whose target lies in one of the variant's ranges, ends too."""
    ranges = line.settings.get("within")
    if not ranges:
        return predictions
    target = predictions.arrays["target"]
    inside = [(low <= target) & (target <= high) for low, high in ranges]
    keep = np.flatnonzero(np.any(inside, axis=0))
    if not keep.size:
        raise AbsentError(f"no test item has a target in {ranges}")
    draws = ("mean", "var", "select/")
    arrays = {
        name: array[:, keep] if name.startswith(draws) else array[keep]
        for name, array in predictions.arrays.items()
    }
    return replace(predictions, arrays=arrays, n=len(keep))


def _forecasts(predictions: Predictions, line: Line, alpha: float) -> Forecasts:
    """Return points, intervals and selection scores by the rule of the row."""
    target, rule = predictions.arrays["target"], line.settings.get("interval")
    select = _select(predictions, line.settings.get("select", ""))
    if rule == "quantile":
        lower, upper = _quantiles(predictions, alpha)
        return Forecasts((lower + upper) / 2, lower, upper, target, select)
    mean = predictions.get("mean")
    if mean is None:
        raise AbsentError(f"the predictions of {line.row.method.name} have no 'mean'")
    point, var = scores.pool_gaussian(mean=mean, var=predictions.get("var"))
    if rule == "point":
        return Forecasts(point, point, point, target, select)
    lower, upper = scores.gaussian_interval(mean=point, var=var, alpha=alpha)
    return Forecasts(point, lower, upper, target, select)


def _quantiles(predictions: Predictions, alpha: float) -> tuple[Array, Array]:
    lower, upper = predictions.get("lower"), predictions.get("upper")
    if lower is None or upper is None:
        raise AbsentError("the predictions have no 'lower' and 'upper'")
    file_alpha = predictions.header.alpha
    if file_alpha is not None and not np.isclose(file_alpha, alpha):
        raise AbsentError(f"the predictions are for alpha {file_alpha}, not {alpha}")
    return lower, upper


def _select(predictions: Predictions, name: str) -> Array:
    """Return a value per item: deviations from the draws, others from the file."""
    if not name:
        return np.zeros(predictions.n)
    mean, var = predictions.get("mean"), predictions.get("var")
    if name == "variance" and mean is not None:
        return np.sqrt(scores.pool_gaussian(mean=mean, var=var).var)
    if name == "ensemble_variance" and mean is not None:
        return np.sqrt(scores.pool_gaussian(mean=mean).var)
    draws = predictions.named("select").get(name)
    if draws is None:
        raise AbsentError(f"the predictions have no 'select/{name}'")
    values: Array = draws[0]
    return values


def _calibrate(rules: Any, val: Forecasts, alpha: float) -> Calibrated:
    """Calibrate by the ranks of `rules`.

    `scores` keeps the guarantee of Romano et al. (2019),
    `scores.as_published.regression` has the floor indices of the released code.
    """
    offset = rules.conformal_offset(
        lower=val.lower, upper=val.upper, target=val.target, alpha=alpha
    )
    threshold = rules.selection_threshold(val.select, rate=RATE)
    return Calibrated(offset, offset, threshold)


def _calibrate_weighted(
    val: Forecasts, splits: tuple[Predictions, Predictions], alpha: float
) -> Calibrated:
    """Calibrate each item; infinite where too few validation items are like it."""
    ratios = _density_ratio(*splits)
    of_val, of_test = (
        scores.weighted_conformal_offset(
            lower=val.lower,
            upper=val.upper,
            target=val.target,
            weight=ratios[0],
            test_weight=ratio,
            alpha=alpha,
        )
        for ratio in ratios
    )
    return Calibrated(
        of_val, of_test, scores.selection_threshold(val.select, rate=RATE)
    )


def _density_ratio(val: Predictions, test: Predictions) -> tuple[Array, Array]:
    """Return the density of test over validation inputs, at items of both splits."""
    val_columns, test_columns = _covariates(val), _covariates(test)
    names = [name for name in val_columns if name in test_columns]
    columns = [_ranks(np.concatenate([val_columns[n], test_columns[n]])) for n in names]
    x = np.stack([*columns, *(c**2 for c in columns)], axis=1)
    is_test = np.arange(len(x)) >= val.n
    odds = np.exp(logistic_log_odds(x, is_test)) * (val.n / test.n)
    return odds[: val.n], odds[val.n :]


def _covariates(predictions: Predictions) -> dict[str, Array]:
    moments = scores.pool_gaussian(
        mean=predictions.arrays["mean"], var=predictions.get("var")
    )
    selects = {name: a[0] for name, a in predictions.named("select").items()}
    return {"mean": moments.mean, "var": moments.var, **selects}


def _ranks(values: Array) -> Array:
    """Return mid-ranks scaled to [-1, 1]: densities of far items span many orders."""
    ranks: Array = rankdata(values)
    return 2 * (ranks - 0.5) / len(ranks) - 1


def _scores_of(
    val: Forecasts, test: Forecasts, calibrated: Calibrated
) -> tuple[float, ...]:
    """Return the scores of a repeat, in the order of `SCORES`."""
    keep = scores.accept(test.select, calibrated.threshold)
    val_ends = _widened(val, calibrated.val_offset)
    lower, upper = _widened(test, calibrated.test_offset)
    ends = lower[keep], upper[keep]
    return (
        scores.mae(val.point, val.target),
        scores.interval_length(lower=val_ends[0], upper=val_ends[1]),
        _defined(scores.coverage, *ends, test.target[keep]),
        float(keep.mean()),
        _defined(scores.mae, test.point[keep], test.target[keep]),
        _defined(scores.interval_length, *ends),
        _defined(scores.inverted_fraction, *ends),
        _defined(_unbounded_fraction, *ends),
    )


def _widened(items: Forecasts, offset: float | Array) -> tuple[Array, Array]:
    return items.lower - offset, items.upper + offset


def _defined(score: Callable[..., float], *arrays: Array) -> float:
    """Return `score`, or nan where no item is accepted."""
    return float(called_in_order(score, *arrays)) if len(arrays[0]) else math.nan


def _unbounded_fraction(lower: Array, upper: Array) -> float:
    return float(np.isinf(upper - lower).mean())


def _fixed_offset_influences(
    val: Forecasts, test: Forecasts, calibrated: Calibrated
) -> dict[str, Callable[[], Influence]]:
    """Return influences of all test items, with the offset of each item fixed."""
    widened = [
        items._replace(lower=items.lower - offset, upper=items.upper + offset)
        for items, offset in (
            (val, calibrated.val_offset),
            (test, calibrated.test_offset),
        )
    ]
    none = [np.full(len(items.target), np.nan) for items in widened]

    def of(place: int, values: Array) -> Influence:
        parts = [*none]
        parts[place] = values
        return mean_influence(np.concatenate(parts))

    val_items, test_items = widened
    covered = (test_items.outside() <= 0).astype(np.float64)
    influences = {
        "val_mae": lambda: of(0, val_items.error()),
        "test_coverage": lambda: of(1, covered),
        "test_mae": lambda: of(1, test_items.error()),
    }
    for place, name in enumerate(("val_interval_length", "test_interval_length")):
        length = widened[place].length()
        if np.isfinite(length).all():
            influences[name] = partial(of, place, length)
    return influences


def _notes(_plan: RunPlan, _options: ScoreOptions) -> tuple[str, ...]:
    return (
        "ours: finite-sample rank; beside the paper: the rank of its released code",
        "test scores are of the items that are predicted",
        "intervals cover what other validation items would change, but for weighted "
        "calibration, which is held fixed",
    )


PROTOCOL = Protocol(judge=_judge, notes=_notes)
"""Every score by the finite-sample rank, and by that of the released code."""
