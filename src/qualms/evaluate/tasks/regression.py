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
from qualms.evaluate.drawings import Z
from qualms.evaluate.entry import Curve, Entry, Judgement, ScoreOptions, bound_entry
from qualms.evaluate.recalibration import Forecasts, recalibrated_influences
from qualms.evaluate.subsets import (
    design_of,
    drawn_subsets,
    group_arrays,
    known_items,
    subsets,
    unknown_notes,
)
from qualms.inference import Influence, interval_of, wilson_ends
from qualms.predictions import Predictions, pool

# Below this the density of a target would no longer be a finite number.
SMALLEST_VARIANCE = 1e-100
QUARTERS = ("lowest quarter", "second quarter", "third quarter", "highest quarter")
"""Quarters of the items of a subset, by their predictions."""
FEWEST_IN_QUARTERS = 20
SHOWN = ("all", "in_domain", "shifted")
"""Subsets whose coverage is computed by the size of predictions."""
RATE = 0.95
"""Share of validation items that a selection score accepts."""
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
    """Name of the construction of the raw interval."""


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
    by_group = _by_group(predictions, val, validation, alpha)
    for subset, index in chosen.items():
        entries += _points(predictions, items, subset, index)
        entries += _intervals(items, alpha, subset, index)
        entries += _selective(predictions, items, own, subset, index)
        if validation is not None:
            entries += _calibrated(predictions, items, validation, alpha, subset, index)
        entries += _grouped_entries(by_group, items, alpha, subset, index)
        if subset in SHOWN:
            offset = None if validation is None else validation.offset
            entries += _by_size(items, offset, alpha, subset, index)
    entries += _at_further(predictions, val, chosen, alpha, options)
    return Judgement(
        entries=tuple(entries),
        curves=tuple(
            _curves(items, None if validation is None else validation.offset, chosen)
        ),
        notes=(
            *_density_note(items),
            *_own_note(items, own),
            *_notes(alpha, validation, val),
            *_further_notes(predictions, alpha, options),
            *by_group.notes,
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
    """Rows of the validation items whose target is known."""
    offset: float
    selects: dict[str, Array]
    """Values of each selection score on these items."""


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
    """Return each item's selection scores; draws are pooled by their stated rule."""
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
        transformed = bound_entry(scores.pit_mean, arrays, index, subset=subset)
        yield replace(transformed, aim=0.5)
        transformed = bound_entry(scores.pit_spread, arrays, index, subset=subset)
        yield replace(transformed, aim=1.0)
    elif predictions.draws > 1:
        arrays["draws"] = predictions.arrays["mean"][:, index]
        chosen.append(scores.crps_ensemble)
    for score in chosen:
        yield bound_entry(score, arrays, index, subset=subset)


def _intervals(
    items: _Forecast, alpha: float, subset: str, index: Index
) -> Iterator[Entry]:
    """Yield scores of the predicted intervals, before calibration."""
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
    # Short intervals with too little coverage are not better.
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


def _at_further(
    predictions: Predictions,
    val: Predictions | None,
    chosen: Mapping[str, Index],
    alpha: float,
    options: ScoreOptions,
) -> Iterator[Entry]:
    """Yield scores of intervals at the further alphas, with the setting `alpha`."""
    for further in _further_alphas(predictions, alpha, options):
        items = _pooled(predictions, further)
        validation = None if val is None else _validation(predictions, val, further)
        for subset, index in chosen.items():
            entries = [*_intervals(items, further, subset, index)]
            if validation is not None:
                entries += _calibrated(
                    predictions, items, validation, further, subset, index
                )
            for entry in entries:
                if "select" not in entry.settings:
                    yield replace(entry, settings={**entry.settings, "alpha": further})


def _further_alphas(
    predictions: Predictions, alpha: float, options: ScoreOptions
) -> list[float]:
    """Return the further alphas at which the file's intervals can be made."""
    if "lower" in predictions.arrays:
        return []
    return [further for further in options.further_alphas if further != alpha]


def _further_notes(
    predictions: Predictions, alpha: float, options: ScoreOptions
) -> tuple[str, ...]:
    if not options.further_alphas or "lower" not in predictions.arrays:
        return ()
    return (
        f"intervals are judged at alpha {alpha:g} alone, at which they were predicted",
    )


class _ByGroup(NamedTuple):
    """Conformal offsets of each item by the groups of one array, for every array."""

    offsets: Mapping[str, Array]
    """(N,) by the name of the array; infinite where validation has too few items."""
    notes: tuple[str, ...] = ()


def _by_group(
    predictions: Predictions,
    val: Predictions | None,
    validation: "_ValidationItems | None",
    alpha: float,
) -> _ByGroup:
    """Return offsets by group for the arrays of groups in both files."""
    if val is None or validation is None:
        return _ByGroup({})
    offsets, notes = {}, []
    own, known = group_arrays(val), validation.items
    for array, group in group_arrays(predictions).items():
        if array not in own:
            continue
        offset = scores.mondrian_offset(
            known.lower,
            known.upper,
            known.target,
            own[array][validation.rows].astype(np.str_),
            group.astype(np.str_),
            alpha=alpha,
        )
        few = np.unique(group[np.isinf(offset)])
        if len(few):
            notes.append(
                f"conformal by {array.removeprefix('group/')} leaves out "
                f"{', '.join(map(str, few[:5]))}: too few validation items there"
            )
        if np.isfinite(offset).any():
            offsets[array] = offset
    return _ByGroup(offsets, tuple(notes))


def _grouped_entries(
    by_group: _ByGroup, items: _Forecast, alpha: float, subset: str, index: Index
) -> Iterator[Entry]:
    """Yield scores of intervals with the offset of each item's group.

    Intervals of these scores allow for other test items only.
    """
    for array, offset in by_group.offsets.items():
        rows = index[np.isfinite(offset[index])]
        if len(rows):
            at = {"interval": f"conformal by {array.removeprefix('group/')}"}
            yield from _widened(items, offset[rows], alpha, (subset, rows, at))


def _by_size(
    items: _Forecast, offset: float | None, alpha: float, subset: str, index: Index
) -> Iterator[Entry]:
    """Yield the coverage of each quarter of the items, by their predictions."""
    centre = (items.lower + items.upper) / 2.0 if items.mean is None else items.mean
    rules = {} if items.rule == "point" else {items.rule: 0.0}
    if offset is not None and math.isfinite(offset):
        rules["conformal"] = offset
    if len(index) < FEWEST_IN_QUARTERS or not np.isfinite(centre).all():
        return
    edges = np.quantile(centre[index], [0.25, 0.5, 0.75])
    quarter = np.searchsorted(edges, centre[index], side="right")
    for rule, shift in rules.items():
        for number, name in enumerate(QUARTERS):
            rows = index[quarter == number]
            if len(rows):
                at = {"interval": rule, "predicted": name}
                offsets = np.full(len(rows), shift)
                widened = _widened(items, offsets, alpha, (subset, rows, at))
                yield next(widened)


def _widened(
    items: _Forecast,
    offset: Array,
    alpha: float,
    place: tuple[str, Index, Mapping[str, str]],
) -> Iterator[Entry]:
    """Yield coverage and length of intervals that are widened by `offset`."""
    subset, rows, at = place
    arrays = {
        "lower": items.lower[rows] - offset,
        "upper": items.upper[rows] + offset,
        "target": items.target[rows],
    }
    covered = bound_entry(scores.coverage, arrays, rows, subset=subset, settings=at)
    yield replace(covered, aim=1 - alpha)
    length = bound_entry(
        scores.interval_length, arrays, rows, subset=subset, settings=at
    )
    yield replace(length, ranked=_reached(covered, alpha))


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
        if part.var is not None and part.mean is not None:
            moments = part._replace(mean=part.mean[index], var=part.var[index])
            yield _pit_curve(moments, subset)


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


def _pit_curve(items: _Forecast, subset: str) -> Curve:
    """Return the share of items with a PIT in each tenth, times ten."""
    assert items.mean is not None
    assert items.var is not None
    transform = scores.item_pit(items.mean, items.var, items.target)
    tenth = np.minimum((10.0 * transform).astype(np.int64), 9)
    share = np.bincount(tenth, minlength=10) / len(tenth)
    low, high = wilson_ends(share, np.full(10, float(len(tenth))), Z)
    return Curve(
        name="pit",
        label="items in this tenth, over a tenth of all",
        subset=subset,
        x_label="probability of a smaller target",
        x=np.linspace(0.05, 0.95, 10),
        y=10.0 * share,
        low=10.0 * low,
        high=10.0 * high,
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
