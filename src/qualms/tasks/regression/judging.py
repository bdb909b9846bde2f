"""TaskJudging regression: point error, density, intervals, and selection."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from qualms import scores
from qualms.arrays import Array, Index
from qualms.evaluate.chosen_uncertainty import LENGTH
from qualms.evaluate.drawings import Z
from qualms.evaluate.entry import Curve, Entry, Judgement, ScoreOptions, bound_entry
from qualms.evaluate.judging import ShownScores, TaskJudging
from qualms.evaluate.main_scores import MainScore
from qualms.evaluate.subsets import (
    design_of,
    drawn_subsets,
    subsets,
    unknown_notes,
)
from qualms.inference import wilson_ends
from qualms.predictions import Predictions
from qualms.tasks.regression._intervals import (
    Forecast,
    ValidationItems,
    calibrated_entries,
    entries_by_group,
    entries_by_size,
    forecast_of,
    interval_entries,
    offsets_by_group,
    selection_scores,
    validation_items,
)
from qualms.tasks.regression._verdict import RULES

SHOWN = ("all", "in_domain", "shifted")
"""Subsets whose coverage is computed by the size of predictions."""
# Beyond this the ends of a Gaussian interval are infinite.
SMALLEST_ALPHA = 1e-12
NO_DENSITY = (
    "the variance is 0 on some items: there is no density there, so NLL, CRPS and "
    "regression ECE are left out"
)


def judge_values(
    predictions: Predictions, val: Predictions | None, options: ScoreOptions
) -> Judgement:
    """Judge one regression file; `val` adds conformal and selective rows."""
    alpha = _alpha(predictions, options)
    items = forecast_of(predictions, alpha)
    validation = None if val is None else validation_items(predictions, val, alpha)
    chosen = subsets(predictions, by_group=options.by_group, seed=options.seed)
    design = design_of(predictions)
    entries: list[Entry] = []
    own = predictions.named("uncertainty")
    by_group = offsets_by_group(predictions, val, validation, alpha)
    for subset, index in chosen.items():
        entries += _points(predictions, items, subset, index)
        entries += interval_entries(items, alpha, subset, index)
        entries += _selective(predictions, items, own, subset, index)
        if validation is not None:
            entries += calibrated_entries(
                predictions, items, validation, alpha, subset, index
            )
        entries += entries_by_group(by_group, items, alpha, subset, index)
        if subset in SHOWN:
            offset = None if validation is None else validation.offset
            entries += entries_by_size(items, offset, alpha, subset, index)
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


def _points(
    predictions: Predictions, items: Forecast, subset: str, index: Index
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


def _selective(
    predictions: Predictions,
    items: Forecast,
    own: Mapping[str, Array],
    subset: str,
    index: Index,
) -> Iterator[Entry]:
    """Yield AURC by interval length, selection scores and the user's uncertainties."""
    if items.mean is None:
        return
    ranked = {} if items.rule == "point" else {LENGTH: items.upper - items.lower}
    risk = np.abs(items.mean[index] - items.target[index])
    for name, value in {**ranked, **selection_scores(predictions), **own}.items():
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
        items = forecast_of(predictions, further)
        validation = (
            None if val is None else validation_items(predictions, val, further)
        )
        for subset, index in chosen.items():
            entries = [*interval_entries(items, further, subset, index)]
            if validation is not None:
                entries += calibrated_entries(
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


def _inside(items: Forecast, offset: float) -> NDArray[np.bool_]:
    above = items.lower - offset <= items.target
    return above & (items.target <= items.upper + offset)


def _curves(
    items: Forecast, offset: float | None, chosen: Mapping[str, Index]
) -> Iterator[Curve]:
    """Yield coverage along the target: marginal coverage hides local failure."""
    rules = {items.rule: 0.0} | ({} if offset is None else {"conformal": offset})
    for subset, index in drawn_subsets(chosen).items():
        part = items.part(index)
        for rule, shift in rules.items():
            if rule != "point":
                yield replace(_coverage_by_target(part, shift, rule), subset=subset)
        if part.var is not None and part.mean is not None:
            moments = part._replace(mean=part.mean[index], var=part.var[index])
            yield _pit_curve(moments, subset)


def _coverage_by_target(items: Forecast, offset: float, rule: str) -> Curve:
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


def _pit_curve(items: Forecast, subset: str) -> Curve:
    """Return the share of items with a PIT in each tenth, times ten."""
    assert items.mean is not None
    assert items.var is not None
    transform = scores.item_pit(mean=items.mean, var=items.var, target=items.target)
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


def _own_note(items: Forecast, own: Mapping[str, Array]) -> tuple[str, ...]:
    if items.mean is not None or not own:
        return ()
    return (
        f"uncertainties of your own ({', '.join(own)}) are not judged: there are no"
        " point predictions whose errors they could announce",
    )


def _density_note(items: Forecast) -> tuple[str, ...]:
    absent = items.rule == "gaussian" and items.var is None
    return (NO_DENSITY,) if absent else ()


def _notes(
    alpha: float, validation: ValidationItems | None, val: Predictions | None
) -> tuple[str, ...]:
    notes = [f"intervals aim at coverage {1 - alpha:g}"]
    if val is not None and validation is not None:
        notes.append(
            f"conformal offset {validation.offset:.4g} from {len(validation.rows)} "
            f"validation items of {val.source}"
        )
    return tuple(notes)


_CONFORMAL = {"interval": "conformal"}
_SHOWN = ShownScores(
    main=(
        MainScore("mae"),
        MainScore("rmse"),
        MainScore("gaussian_nll"),
        MainScore("crps_gaussian"),
        MainScore("crps_ensemble"),
        MainScore("regression_ece"),
        MainScore("aurc", beside=True),
        MainScore("coverage"),
        MainScore("interval_length"),
        MainScore("coverage", _CONFORMAL),
        MainScore("interval_length", _CONFORMAL),
        MainScore("interval_score"),
        MainScore("prediction_rate"),
    ),
    grouped=("mae", "crps_gaussian", "coverage", "interval_length"),
)
JUDGING = TaskJudging(
    judge=judge_values, rules=RULES, shown=lambda _: _SHOWN, baseline="a constant"
)
