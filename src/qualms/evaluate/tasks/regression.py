"""Judging regression: point error, density, intervals, and selection."""

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from qualms import scores
from qualms.arrays import Array, Index
from qualms.evaluate._estimates import influences_of
from qualms.evaluate.chosen_uncertainty import LENGTH
from qualms.evaluate.entry import Curve, Entry, Judgement, ScoreOptions, bound_entry
from qualms.evaluate.recalibration import Forecasts, recalibrated_influences
from qualms.evaluate.subsets import (
    design_of,
    drawn_subsets,
    known_items,
    subsets,
    unknown_notes,
)
from qualms.inference import Influence, interval_of
from qualms.predictions import Predictions, pool

# Below this the density of a target would no longer be a finite number.
SMALLEST_VARIANCE = 1e-100
RATE = 0.95
"""Share of validation items that a selection score lets pass."""
# Beyond this the ends of a Gaussian interval are infinite.
SMALLEST_ALPHA = 1e-12
NOT_FOLLOWED = "how it depends on the validation items is not known"
NO_DENSITY = (
    "the variance is 0 on some items: there is no density there, so NLL, CRPS and "
    "regression ECE are left out"
)


class _Forecast(NamedTuple):
    """The predictions of a regression file, draws pooled."""

    mean: Array | None
    var: Array | None
    lower: Array
    upper: Array
    target: Array
    rule: str
    """How the raw interval was made."""


def regression(
    predictions: Predictions, val: Predictions | None, options: ScoreOptions
) -> Judgement:
    """Judge one regression file; `val` adds conformal and selective rows."""
    alpha = _alpha(predictions, options)
    items = _pooled(predictions, alpha)
    validation = None if val is None else _validation(predictions, val, alpha)
    chosen = subsets(predictions, by_group=options.by_group, seed=options.seed)
    design = design_of(predictions)
    entries: list[Entry] = []
    own = predictions.named("uncertainty")
    for subset, index in chosen.items():
        entries += _points(predictions, items, subset, index)
        entries += _intervals(items, alpha, subset, index)
        entries += _selective(predictions, items, own, subset, index)
        if validation is not None:
            entries += _calibrated(predictions, items, validation, alpha, subset, index)
    return Judgement(
        entries=tuple(entries),
        curves=tuple(
            _curves(items, None if validation is None else validation.offset, chosen)
        ),
        notes=(
            *_density_note(items),
            *_own_note(items, own),
            *_notes(alpha, validation, val),
            *unknown_notes(predictions, in_ood_scores=False),
        ),
        design=design if val is None else design.joined(design_of(val)),
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


class _ValidationItems(NamedTuple):
    """Conformal offset and selection scores of the validation items."""

    items: _Forecast
    rows: Index
    """Which of the validation items are meant: those whose target is known."""
    offset: float
    selects: dict[str, Array]
    """By selection score, that of these items."""


def _validation(
    predictions: Predictions, val: Predictions, alpha: float
) -> _ValidationItems:
    if (val.header.alpha or alpha) != alpha:
        raise ValueError(
            f"val must have the alpha of {predictions.source}, {alpha}, "
            f"got {val.header.alpha} in {val.source}"
        )
    index = known_items(val)
    items = _part(_pooled(val, alpha), index)
    offset = scores.conformal_offset(
        items.lower, items.upper, items.target, alpha=alpha
    )
    selects = {name: values[index] for name, values in _selects(val).items()}
    return _ValidationItems(items, index, offset, selects)


def _selects(predictions: Predictions) -> dict[str, Array]:
    """Return each item's selection scores; draws are joined by their stated rule."""
    joined = predictions if predictions.draws == 1 else pool([predictions])
    return {name: values[0] for name, values in joined.named("select").items()}


def _points(
    predictions: Predictions, items: _Forecast, subset: str, index: Index
) -> Iterator[Entry]:
    if items.mean is None:
        return
    arrays = {"mean": items.mean[index], "target": items.target[index]}
    chosen: list[Callable[..., float]] = [scores.mae, scores.rmse]
    if items.var is not None:
        arrays["var"] = items.var[index]
        chosen += (scores.gaussian_nll, scores.crps_gaussian, scores.regression_ece)
    elif predictions.draws > 1:
        arrays["draws"] = predictions.arrays["mean"][:, index]
        chosen.append(scores.crps_ensemble)
    for score in chosen:
        yield bound_entry(score, arrays, index, subset=subset)


def _intervals(
    items: _Forecast, alpha: float, subset: str, index: Index
) -> Iterator[Entry]:
    """Yield scores of intervals as they were predicted."""
    if items.rule == "point":
        return
    lower, upper, target = (
        items.lower[index],
        items.upper[index],
        items.target[index],
    )
    arrays = {"lower": lower, "upper": upper, "target": target}
    bound = partial(bound_entry, arrays=arrays, index=index, subset=subset)
    at = {"interval": items.rule}
    covered = bound(scores.coverage, settings=at)
    yield replace(covered, aim=1 - alpha)
    # Short intervals that do not cover are not better.
    length = bound(scores.interval_length, settings=at)
    yield replace(length, ranked=_reached(covered, alpha))
    yield bound(partial(scores.interval_score, alpha=alpha), settings=at)
    yield bound(scores.inverted_fraction, settings=at)


def _selective(
    predictions: Predictions,
    items: _Forecast,
    own: Mapping[str, Array],
    subset: str,
    index: Index,
) -> Iterator[Entry]:
    """Yield AURC by interval length, selection scores and the user's uncertainties."""
    if items.mean is None:
        return
    ranked = {} if items.rule == "point" else {LENGTH: items.upper - items.lower}
    risk = np.abs(items.mean[index] - items.target[index])
    for name, value in {**ranked, **_selects(predictions), **own}.items():
        arrays = {"risk": risk, "uncertainty": value[index]}
        at = {"uncertainty": name}
        yield bound_entry(scores.aurc, arrays, index, subset=subset, settings=at)


def _reached(covered: Entry, alpha: float) -> bool:
    """Return whether a coverage of 1 - `alpha` is possible or exceeded."""
    interval = interval_of(influences_of([covered]))
    return covered.value >= 1 - alpha or interval.high >= 1 - alpha


def _calibrated(
    predictions: Predictions,
    items: _Forecast,
    validation: _ValidationItems,
    alpha: float,
    subset: str,
    index: Index,
) -> Iterator[Entry]:
    """Yield scores of intervals widened on validation items, all or selected."""
    selects = {"": np.zeros(predictions.n)} | _selects(predictions)
    for name, values in selects.items():
        if name and name not in validation.selects:
            continue
        val_select = (
            validation.selects[name] if name else np.zeros(len(validation.items.target))
        )
        val, test = (
            Forecasts(f.lower, f.lower, f.upper, f.target, select)
            for f, select in (
                (validation.items, val_select),
                (_part(items, index), values[index]),
            )
        )
        influences = recalibrated_influences(val, test, alpha=alpha, rate=RATE)
        everyone = np.concatenate([predictions.n + validation.rows, index])
        keep = scores.accept(
            test.select, scores.selection_threshold(val_select, rate=RATE)
        )
        ends = test.lower - validation.offset, test.upper + validation.offset
        yield from _calibrated_entries(
            (*ends, test.target), keep, influences, (subset, name), everyone, alpha
        )


def _part(items: _Forecast, index: Index) -> _Forecast:
    return items._replace(
        lower=items.lower[index],
        upper=items.upper[index],
        target=items.target[index],
    )


def _calibrated_entries(
    calibrated: tuple[Array, Array, Array],
    keep: NDArray[np.bool_],
    influences: Mapping[str, Callable[[], Influence]],
    place: tuple[str, str],
    everyone: Index,
    alpha: float,
) -> Iterator[Entry]:
    subset, select = place
    lower, upper, target = (array[keep] for array in calibrated)
    at = {"interval": "conformal"} | ({"select": select} if select else {})
    shared: dict[str, Any] = {
        "index": everyone,
        "subset": subset,
        "settings": at,
        "items": len(keep),
    }
    some = bool(keep.any())
    yield Entry(
        score=scores.coverage,
        value=scores.coverage(lower, upper, target) if some else math.nan,
        influence=influences["test_coverage"],
        aim=1 - alpha,
        why="no item is accepted",
        **shared,
    )
    if select:
        yield Entry(
            score=scores.prediction_rate,
            value=float(keep.mean()),
            influence=influences["test_prediction_rate"],
            **shared,
        )
        return
    yield Entry(
        score=scores.interval_length,
        value=scores.interval_length(lower, upper),
        influence=influences["test_interval_length"],
        **shared,
    )
    penalised = scores.interval_score(lower, upper, target, alpha=alpha)
    inverted = scores.inverted_fraction(lower, upper)
    for score, value in (
        (scores.interval_score, penalised),
        (scores.inverted_fraction, inverted),
    ):
        yield Entry(score=score, value=value, no_interval=NOT_FOLLOWED, **shared)


def _inside(items: _Forecast, offset: float) -> NDArray[np.bool_]:
    above = items.lower - offset <= items.target
    return above & (items.target <= items.upper + offset)


def _curves(
    items: _Forecast, offset: float | None, chosen: Mapping[str, Index]
) -> Iterator[Curve]:
    """Yield coverage along the target: marginal coverage hides local failure."""
    rules = {items.rule: 0.0} | ({} if offset is None else {"conformal": offset})
    for subset, index in drawn_subsets(chosen).items():
        part = _part(items, index)
        for rule, shift in rules.items():
            if rule != "point":
                yield replace(_coverage_by_target(part, shift, rule), subset=subset)


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


def _own_note(items: _Forecast, own: Mapping[str, Array]) -> tuple[str, ...]:
    if items.mean is not None or not own:
        return ()
    return (
        f"uncertainties of your own ({', '.join(own)}) are not judged: there are no"
        " point predictions whose errors they could announce",
    )


def _density_note(items: _Forecast) -> tuple[str, ...]:
    absent = items.rule == "gaussian" and items.var is None
    return (NO_DENSITY,) if absent else ()


def _notes(
    alpha: float, validation: _ValidationItems | None, val: Predictions | None
) -> tuple[str, ...]:
    notes = [f"intervals aim at coverage {1 - alpha:g}"]
    if val is not None and validation is not None:
        notes.append(
            f"conformal offset {validation.offset:.4g} from {len(validation.rows)} "
            f"validation items of {val.source}"
        )
    return tuple(notes)
