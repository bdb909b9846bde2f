"""Intervals of regression: as predicted, conformal, by group and by size."""

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from qualms import scores
from qualms.arrays import Array, Index
from qualms.evaluate.entry import Entry, bound_entry
from qualms.evaluate.estimates import influences_of
from qualms.evaluate.recalibration import Forecasts, recalibrated_influences
from qualms.evaluate.subsets import group_arrays, known_items
from qualms.inference import Influence, interval_of
from qualms.predictions import Predictions, pool

# Below this the density of a target would no longer be a finite number.
SMALLEST_VARIANCE = 1e-100
QUARTERS = ("lowest quarter", "second quarter", "third quarter", "highest quarter")
"""Quarters of the items of a subset, by their predictions."""
FEWEST_IN_QUARTERS = 20
RATE = 0.95
"""Share of validation items that a selection score accepts."""
NOT_FOLLOWED = "how it depends on the validation items is not known"


class Forecast(NamedTuple):
    """The predictions of a regression file, draws pooled."""

    mean: Array | None
    var: Array | None
    lower: Array
    upper: Array
    target: Array
    rule: str
    """Name of the construction of the raw interval."""

    def part(self, index: Index) -> "Forecast":
        """Return the intervals and targets of some items."""
        return self._replace(
            lower=self.lower[index],
            upper=self.upper[index],
            target=self.target[index],
        )


def forecast_of(predictions: Predictions, alpha: float) -> Forecast:
    """Pool the draws of a file; its intervals aim at a coverage of 1 - `alpha`."""
    target = predictions.arrays["target"]
    mean, var = predictions.get("mean"), predictions.get("var")
    moments = None if mean is None else scores.pool_gaussian(mean=mean, var=var)
    if "lower" in predictions.arrays or moments is None:
        centre = None if moments is None else moments.mean
        lower, upper = predictions.arrays["lower"], predictions.arrays["upper"]
        return Forecast(centre, None, lower, upper, target, "as predicted")
    if var is None and predictions.draws == 1:
        # A bare point prediction: the interval is a point until it is calibrated.
        return Forecast(moments.mean, None, moments.mean, moments.mean, target, "point")
    interval = scores.gaussian_interval(mean=moments.mean, var=moments.var, alpha=alpha)
    density = moments.var if moments.var.min() > SMALLEST_VARIANCE else None
    return Forecast(
        moments.mean, density, interval.lower, interval.upper, target, "gaussian"
    )


class ValidationItems(NamedTuple):
    """Conformal offset and selection scores of the validation items."""

    items: Forecast
    rows: Index
    """Rows of the validation items whose target is known."""
    offset: float
    selects: dict[str, Array]
    """Values of each selection score on these items."""


def validation_items(
    predictions: Predictions, val: Predictions, alpha: float
) -> ValidationItems:
    """Calibrate intervals on the validation items whose target is known."""
    if (val.header.alpha or alpha) != alpha:
        raise ValueError(
            f"val must have the alpha of {predictions.source}, {alpha}, "
            f"got {val.header.alpha} in {val.source}"
        )
    index = known_items(val)
    items = forecast_of(val, alpha).part(index)
    offset = scores.conformal_offset(
        lower=items.lower, upper=items.upper, target=items.target, alpha=alpha
    )
    selects = {name: values[index] for name, values in selection_scores(val).items()}
    return ValidationItems(items, index, offset, selects)


def selection_scores(predictions: Predictions) -> dict[str, Array]:
    """Return each item's selection scores; draws are pooled by their stated rule."""
    joined = predictions if predictions.draws == 1 else pool([predictions])
    return {name: values[0] for name, values in joined.named("select").items()}


def interval_entries(
    items: Forecast, alpha: float, subset: str, index: Index
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


class OffsetsByGroup(NamedTuple):
    """Conformal offsets of each item by the groups of one array, for every array."""

    offsets: Mapping[str, Array]
    """(N,) by the name of the array; infinite where validation has too few items."""
    notes: tuple[str, ...] = ()


def offsets_by_group(
    predictions: Predictions,
    val: Predictions | None,
    validation: ValidationItems | None,
    alpha: float,
) -> OffsetsByGroup:
    """Return offsets by group for the arrays of groups in both files."""
    if val is None or validation is None:
        return OffsetsByGroup({})
    offsets, notes = {}, []
    own, known = group_arrays(val), validation.items
    for array, group in group_arrays(predictions).items():
        if array not in own:
            continue
        offset = scores.mondrian_offset(
            lower=known.lower,
            upper=known.upper,
            target=known.target,
            group=own[array][validation.rows].astype(np.str_),
            test_group=group.astype(np.str_),
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
    return OffsetsByGroup(offsets, tuple(notes))


def entries_by_group(
    by_group: OffsetsByGroup, items: Forecast, alpha: float, subset: str, index: Index
) -> Iterator[Entry]:
    """Yield scores of intervals with the offset of each item's group.

    Intervals of these scores allow for other test items only.
    """
    for array, offset in by_group.offsets.items():
        rows = index[np.isfinite(offset[index])]
        if len(rows):
            at = {"interval": f"conformal by {array.removeprefix('group/')}"}
            yield from _widened(items, offset[rows], alpha, (subset, rows, at))


def entries_by_size(
    items: Forecast, offset: float | None, alpha: float, subset: str, index: Index
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


def calibrated_entries(
    predictions: Predictions,
    items: Forecast,
    validation: ValidationItems,
    alpha: float,
    subset: str,
    index: Index,
) -> Iterator[Entry]:
    """Yield scores of intervals widened on validation items, all or selected."""
    selects = {"": np.zeros(predictions.n)} | selection_scores(predictions)
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
                (items.part(index), values[index]),
            )
        )
        influences = recalibrated_influences(val, test, alpha=alpha, rate=RATE)
        everyone = np.concatenate([predictions.n + validation.rows, index])
        keep = scores.accept(
            test.select, scores.selection_threshold(val_select, rate=RATE)
        )
        ends = test.lower - validation.offset, test.upper + validation.offset
        yield from _conformal_entries(
            (*ends, test.target), keep, influences, (subset, name), everyone, alpha
        )


def _conformal_entries(
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
        value=scores.coverage(lower=lower, upper=upper, target=target)
        if some
        else math.nan,
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
        value=scores.interval_length(lower=lower, upper=upper),
        influence=influences["test_interval_length"],
        **shared,
    )
    penalised = scores.interval_score(
        lower=lower, upper=upper, target=target, alpha=alpha
    )
    inverted = scores.inverted_fraction(lower=lower, upper=upper)
    for score, value in (
        (scores.interval_score, penalised),
        (scores.inverted_fraction, inverted),
    ):
        yield Entry(score=score, value=value, no_interval=NOT_FOLLOWED, **shared)


def _widened(
    items: Forecast,
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
