"""TaskJudging segmentation: items are streamed, and a few numbers of each are kept.

Five questions per file, as in VALUES: is the segmentation right (Dice), does an image's
uncertainty announce failures (AURC) and shifted images (AUROC), is it calibrated (ACE),
and does it follow the raters' disagreement (NCC, GED)?
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import TypeVar

import numpy as np

from qualms import scores
from qualms.arrays import Index
from qualms.evaluate.chosen_uncertainty import PATCH
from qualms.evaluate.draws import draws_notes
from qualms.evaluate.entry import Curve, Entry, Judgement, ScoreOptions, entry_of
from qualms.evaluate.judging import ShownScores, TaskJudging
from qualms.evaluate.main_scores import MainScore
from qualms.evaluate.segmented import (
    OWN,
    MapScores,
    Reading,
    Validation,
    is_single,
    map_kind,
    measure_items,
    measure_settings,
    quality_entries,
    reversed_note,
    undivided_note,
    validate,
)
from qualms.evaluate.subsets import (
    design_of,
    drawn_subsets,
    outside,
    subsets,
    unknown_notes,
)
from qualms.predictions import STATED, Background, Predictions, background_of
from qualms.tasks.segmentation._verdict import RULES, unasked

Part = TypeVar("Part", Entry, Curve)
_CLASSES = {"macro_dice": "foreground", "dice": "pooled"}

NO_VAL = (
    "threshold aggregation and ACE after Platt scaling need validation predictions:"
    " --val"
)


def judge_maps(
    predictions: Predictions, val: Predictions | None, options: ScoreOptions
) -> Judgement:
    """Judge one segmentation folder; `val` fits thresholds and Platt scaling."""
    if val is not None:
        _refuse_unlike(predictions, val)
    fitted = None if val is None else validate([val], options)[0]
    measured = measure_items(predictions, Reading(fitted=fitted), options)
    type_of = partial(scores.uncertainty_type, draws=predictions.header.draws)
    chosen = subsets(predictions, by_group=options.by_group, seed=options.seed)
    chosen = {
        name: measured.labelled(index)
        for name, index in chosen.items()
        if name != "balanced"
    }
    if not len(chosen["all"]) and outside(predictions) is None:
        raise ValueError(_nothing_to_score(predictions))
    entries: list[Entry] = []
    for subset, index in chosen.items():
        if not len(index):
            continue
        quality = quality_entries(measured, subset, index)
        entries += (_with_classes(entry, predictions, measured) for entry in quality)
        entries += _failure(measured, subset, index)
    entries += _shift(predictions, measured)
    undivided = () if fitted is None else fitted.undivided
    named = partial(_named, type_of)
    warnings = tuple(undivided_note(named(measure)) for measure in undivided)
    return Judgement(
        entries=tuple(_with_type(entry, type_of) for entry in entries),
        curves=tuple(_with_type(c, type_of) for c in _curves(measured, chosen)),
        notes=(
            *_notes(predictions, measured, fitted, named),
            *unknown_notes(predictions),
        ),
        warnings=(
            *_axes_note(predictions, measured, chosen["all"]),
            *warnings,
            *_background_note(predictions, measured),
            *_draws_note(predictions),
        ),
        design=design_of(predictions),
        drawn=measured.drawn,
    )


def _axes_note(
    predictions: Predictions, measured: MapScores, labelled: Index
) -> tuple[str, ...]:
    """Return a note if raters with a low Dice seem to have other axes than the maps."""
    if not len(labelled) or predictions.maps is None:
        return ()
    dice = measured.overlap[1][labelled]
    return reversed_note(map_kind(predictions), predictions.maps, labelled, dice)


def _nothing_to_score(predictions: Predictions) -> str:
    ignore = predictions.header.ignore
    label = "" if ignore is None else f", or {ignore}, which its header ignores"
    return (
        f"some pixel must have a label that counts, and no item of {predictions.source}"
        f" has any (no 'raters'{label}); store the labels of raters, or mark shifted"
        " items, whose detection needs no label"
    )


def _refuse_unlike(predictions: Predictions, val: Predictions) -> None:
    """Raise unless both hold maps of one kind, so that fits are transferable."""
    files = (predictions, val)
    kinds = [
        (
            file.classes,
            file.header.regions,
            is_single(map_kind(file)),
        )
        for file in files
    ]
    stated = {file.header.draws for file in files} - {None}
    if kinds[0] != kinds[1] or len(stated) > 1:
        expected, actual = (
            f"method {file.header.method}, {file.draws} draws, {_channels(file)}"
            for file in files
        )
        raise ValueError(
            f"val must hold the same kind of maps as {predictions.source} "
            f"({expected}), got {actual} in {val.source}; predict both splits with the "
            "same run"
        )


def _channels(file: Predictions) -> str:
    regions = file.header.regions
    return f"regions {', '.join(regions)}" if regions else f"{file.classes} classes"


def _with_classes(entry: Entry, predictions: Predictions, measured: MapScores) -> Entry:
    """Return an entry that says over which of several classes a Dice is."""
    if measured.overlap[0] == "dice" or entry.score_name not in _CLASSES:
        return entry
    classes = _CLASSES[entry.score_name]
    if entry.score_name == "macro_dice" and _background(predictions).number is None:
        classes = "all"
    return replace(entry, settings={**entry.settings, "classes": classes})


def _draws_note(predictions: Predictions) -> list[str]:
    """Return what the draws vary, unless there is one measure."""
    single = is_single(map_kind(predictions))
    return [] if single else draws_notes(predictions.header)


def _background(predictions: Predictions) -> Background:
    assert predictions.classes is not None
    return background_of(predictions.header, predictions.classes)


def _background_note(predictions: Predictions, measured: MapScores) -> tuple[str, ...]:
    """Return which classes the Dice of an item is averaged over, and why."""
    if measured.overlap[0] == "dice":
        return ()
    number, why = _background(predictions)
    reason = "" if why == STATED else f", as {why}"
    over, taken = "classes", f"no class is taken as background{reason}"
    if number is not None:
        over, taken = "foreground classes", f"background is class {number}{reason}"
    return (
        f"macro Dice and risk are of the {over} that an item's prediction or rater"
        f" marks; {taken} (--background)",
    )


def _failure(measured: MapScores, subset: str, index: Index) -> Iterator[Entry]:
    risk = 1.0 - measured.overlap[1][index]
    for at, value in measured.aggregated.items():
        for score in (scores.aurc, scores.eaurc, scores.augrc):
            yield entry_of(
                score,
                (risk, value[index]),
                index,
                subset=subset,
                settings=measure_settings(*at),
            )


def _shift(predictions: Predictions, measured: MapScores) -> Iterator[Entry]:
    shifted = outside(predictions)
    if shifted is None:
        return
    everyone = np.arange(predictions.n)
    for at, value in measured.aggregated.items():
        yield entry_of(
            scores.ood_auroc, (value, shifted), everyone, settings=measure_settings(*at)
        )


def _curves(measured: MapScores, chosen: Mapping[str, Index]) -> Iterator[Curve]:
    for subset, index in drawn_subsets(chosen).items():
        if not len(index):
            continue
        score, dice = measured.overlap
        risk = 1.0 - dice[index]
        for at, value in measured.aggregated.items():
            curve = scores.risk_coverage_curve(risk=risk, uncertainty=value[index])
            yield Curve(
                name="risk_coverage",
                label=f"1 - {scores.about(getattr(scores, score)).label} of the kept"
                " items",
                subset=subset,
                settings=measure_settings(*at),
                x_label="share kept",
                x=curve.coverage,
                y=curve.risk,
            )


def _with_type(part: Part, type_of: Callable[[str], str]) -> Part:
    """Return `part` with its measure named after its type of uncertainty."""
    if "measure" not in part.settings:
        return part
    kind = type_of(part.settings["measure"])
    return replace(part, settings={**part.settings, "measure": kind})


def _named(type_of: Callable[[str], str], measure: str) -> str:
    """Return the name of a measure in messages: its type, or the user's own name."""
    return measure if measure.startswith(OWN) else type_of(measure)


def _notes(
    predictions: Predictions,
    measured: MapScores,
    fitted: Validation | None,
    named: Callable[[str], str],
) -> tuple[str, ...]:
    notes = [] if fitted is not None else [NO_VAL]
    labelled = measured.labelled(np.arange(predictions.n))
    bare = predictions.n - len(labelled)
    if bare:
        notes.append(
            f"items without a labelled pixel: {bare}; they are left out of all scores"
            " but those of shifted items"
        )
    if fitted is not None:
        lacking = [m for m in measured.measures if m not in fitted.threshold]
        notes += [
            f"{named(measure)} is not in the validation predictions: no threshold"
            " aggregation and no ACE of it"
            for measure in lacking
        ]
    notes += _empty_notes(predictions, measured)
    for name in measured.measures:
        left_out = int(np.isnan(measured.of("ncc", name)[labelled]).sum())
        if left_out:
            notes.append(
                f"NCC ({named(name)}) is undefined on {left_out} of {len(labelled)}"
                " items, which are left out: there the map is constant, or raters agree"
                " everywhere"
            )
    return tuple(notes)


def _empty_notes(predictions: Predictions, measured: MapScores) -> Iterator[str]:
    labelled = measured.labelled(np.arange(predictions.n))
    empty = int((measured.of("reference_size")[labelled] == 0).sum())
    if empty and predictions.classes is not None:
        yield (
            f"items in which no rater marks anything: {empty}; a prediction that marks"
            " nothing has Dice 1 there, any other 0"
        )


_PATCH = {"aggregation": PATCH}
_SHOWN = ShownScores(
    main=(
        MainScore("macro_dice"),
        MainScore("dice"),
        MainScore("ged"),
        MainScore("ncc"),
        MainScore("ncc", {"measure": "aleatoric"}),
        MainScore("ncc", {"measure": "epistemic"}),
        MainScore("ncc", {"measure": "expected_entropy"}),
        MainScore("ncc", {"measure": "mutual_information"}),
        MainScore("stated_ace"),
        MainScore("aurc", _PATCH, beside=True),
        MainScore("ood_auroc", _PATCH),
        MainScore("ace"),
        MainScore("augrc", _PATCH),
        MainScore("eaurc", _PATCH),
    ),
    grouped=("macro_dice", "dice", "ged", "stated_ace", "aurc"),
)
JUDGING = TaskJudging(
    judge=judge_maps,
    rules=RULES,
    shown=lambda _: _SHOWN,
    baseline="",
    unasked=unasked,
)
