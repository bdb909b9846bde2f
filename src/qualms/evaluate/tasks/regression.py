"""Judging regression: point error, density, intervals, and selection."""

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from qualms import scores
from qualms.evaluate.entry import Curve, Entry, Judgement, ScoreOptions
from qualms.evaluate.subsets import sample_of, subsets
from qualms.predictions import Predictions, pool

Array = NDArray[np.float64]
Index = NDArray[np.int64]


# Below this the density of a target would no longer be a finite number.
SMALLEST_VARIANCE = 1e-100
# Beyond this the ends of a Gaussian interval are infinite.
SMALLEST_ALPHA = 1e-12
NO_DENSITY = (
    "the variance is 0 on some items: there is no density there, so NLL, CRPS and "
    "regression ECE are left out"
)


class _Forecast(NamedTuple):
    """What a regression file says about its items, draws pooled."""

    mean: Array | None
    var: Array | None
    lower: Array
    upper: Array
    target: Array
    rule: str
    """How the raw interval came about."""


def regression(
    predictions: Predictions, val: Predictions | None, options: ScoreOptions
) -> Judgement:
    """Entries of one regression file; `val` adds conformal and selective rows."""
    alpha = _alpha(predictions, options)
    items = _pooled(predictions, alpha)
    offset = None if val is None else _offset(predictions, val, alpha)
    accepted = {} if val is None else _accepted(predictions, val)
    chosen = subsets(predictions, by_group=options.by_group, seed=options.seed)
    entries: list[Entry] = []
    for subset, index in chosen.items():
        entries += _points(predictions, items, subset, index)
        entries += _intervals(items, 0.0, alpha, subset, index, items.rule)
        if offset is not None:
            entries += _intervals(items, offset, alpha, subset, index, "conformal")
            entries += _selected(items, offset, accepted, subset, index)
    return Judgement(
        entries=tuple(entries),
        curves=_curves(items, offset),
        notes=(*_density_note(items), *_notes(alpha, offset, val)),
        samples=(sample_of(predictions),),
    )


def _alpha(predictions: Predictions, options: ScoreOptions) -> float:
    alpha = predictions.header.alpha or options.alpha
    if not SMALLEST_ALPHA <= alpha <= 1.0 - SMALLEST_ALPHA:
        raise ValueError(
            f"alpha must be at least {SMALLEST_ALPHA:g} away from 0 and 1, got "
            f"{alpha} for {predictions.source}; state it in the header or by --alpha"
        )
    return alpha


def _pooled(predictions: Predictions, alpha: float) -> _Forecast:
    target = predictions.arrays["target"]
    mean, var = predictions.get("mean"), predictions.get("var")
    moments = None if mean is None else scores.pool_gaussian(mean, var)
    if "lower" in predictions.arrays or moments is None:
        centre = None if moments is None else moments.mean
        lower, upper = predictions.arrays["lower"], predictions.arrays["upper"]
        return _Forecast(centre, None, lower, upper, target, "as predicted")
    if var is None and predictions.draws == 1:
        # A bare point prediction: the interval is a point until it is calibrated.
        return _Forecast(
            moments.mean, None, moments.mean, moments.mean, target, "point"
        )
    interval = scores.gaussian_interval(moments.mean, moments.var, alpha=alpha)
    density = moments.var if moments.var.min() > SMALLEST_VARIANCE else None
    return _Forecast(
        moments.mean, density, interval.lower, interval.upper, target, "gaussian"
    )


def _offset(predictions: Predictions, val: Predictions, alpha: float) -> float:
    if (val.header.alpha or alpha) != alpha:
        raise ValueError(
            f"val must have the alpha of {predictions.source}, {alpha}, "
            f"got {val.header.alpha} in {val.source}"
        )
    known = _pooled(val, alpha)
    return scores.conformal_offset(known.lower, known.upper, known.target, alpha=alpha)


def _accepted(
    predictions: Predictions, val: Predictions
) -> dict[str, NDArray[np.bool_]]:
    """Which items each selection score accepts, thresholds set on validation."""
    known = _selects(val)
    return {
        name: scores.accept(values, scores.selection_threshold(known[name]))
        for name, values in _selects(predictions).items()
        if name in known
    }


def _selects(predictions: Predictions) -> dict[str, Array]:
    """One value per item of each selection score; draws joined by their stated rule."""
    joined = predictions if predictions.draws == 1 else pool([predictions])
    return {name: values[0] for name, values in joined.named("select").items()}


def _points(
    predictions: Predictions, items: _Forecast, subset: str, index: Index
) -> Iterator[Entry]:
    if items.mean is None:
        return
    mean, target = items.mean[index], items.target[index]
    yield _entry(scores.mae, (mean, target), subset, index)
    yield _entry(scores.rmse, (mean, target), subset, index)
    if items.var is not None:
        for score in (scores.gaussian_nll, scores.crps_gaussian, scores.regression_ece):
            yield _entry(score, (mean, items.var[index], target), subset, index)
    elif predictions.draws > 1:
        draws = predictions.arrays["mean"][:, index]
        yield _entry(scores.crps_ensemble, (draws, target), subset, index)


def _intervals(
    items: _Forecast, offset: float, alpha: float, subset: str, index: Index, rule: str
) -> Iterator[Entry]:
    if rule == "point":
        return
    ends = (items.lower[index] - offset, items.upper[index] + offset)
    target = items.target[index]
    penalised = partial(scores.interval_score, alpha=alpha)
    at = {"interval": rule}
    yield _entry(scores.coverage, (*ends, target), subset, index, at)
    yield _entry(scores.interval_length, ends, subset, index, at)
    yield _entry(penalised, (*ends, target), subset, index, at)
    yield _entry(scores.inverted_fraction, ends, subset, index, at)


def _selected(
    items: _Forecast,
    offset: float,
    accepted: dict[str, NDArray[np.bool_]],
    subset: str,
    index: Index,
) -> Iterator[Entry]:
    inside = _inside(items, offset)[index].astype(float)
    for name, accept in accepted.items():
        kept = accept[index].astype(float)
        rows = (
            (scores.coverage, scores.ratio_plan(inside * kept, kept)),
            (scores.prediction_rate, scores.mean_plan(kept)),
        )
        for score, plan in rows:
            yield Entry(
                score=score,
                plan=plan,
                index=index,
                subset=subset,
                settings={"interval": "conformal", "select": name},
                why="no item is accepted",
            )


def _entry(
    score: Callable[..., float],
    arrays: tuple[Array, ...],
    subset: str,
    index: Index,
    settings: Mapping[str, str] | None = None,
) -> Entry:
    return Entry(
        score=score.func if isinstance(score, partial) else score,
        plan=scores.plan_of(score, *arrays),
        index=index,
        subset=subset,
        settings=settings or {},
    )


def _inside(items: _Forecast, offset: float) -> NDArray[np.bool_]:
    above = items.lower - offset <= items.target
    return above & (items.target <= items.upper + offset)


def _curves(items: _Forecast, offset: float | None) -> tuple[Curve, ...]:
    """Coverage along the target's range: marginal coverage hides local failure."""
    rules = {items.rule: 0.0} | ({} if offset is None else {"conformal": offset})
    return tuple(
        _coverage_by_target(items, shift, rule)
        for rule, shift in rules.items()
        if rule != "point"
    )


def _coverage_by_target(items: _Forecast, offset: float, rule: str) -> Curve:
    inside = _inside(items, offset)
    order = np.argsort(items.target, kind="stable")
    pieces = np.array_split(order, min(20, len(order)))
    return Curve(
        name="coverage_by_target",
        label="coverage",
        subset="all",
        settings={"interval": rule},
        x_label="target",
        x=np.array([items.target[piece].mean() for piece in pieces]),
        y=np.array([inside[piece].mean() for piece in pieces]),
    )


def _density_note(items: _Forecast) -> tuple[str, ...]:
    absent = items.rule == "gaussian" and items.var is None
    return (NO_DENSITY,) if absent else ()


def _notes(
    alpha: float, offset: float | None, val: Predictions | None
) -> tuple[str, ...]:
    notes = [f"intervals aim at coverage {1 - alpha:g}"]
    if val is not None and offset is not None:
        notes.append(
            f"conformal offset {offset:.4g} from the {val.n} validation items "
            f"of {val.source}"
        )
    return tuple(notes)
