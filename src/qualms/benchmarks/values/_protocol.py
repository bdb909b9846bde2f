"""Protocol of VALUES: five tasks of an uncertainty, and whether its types differ.

The protocol of Kahl et al. (2024, arXiv:2401.08501): segmentation (Dice), detection of
shifted items (AUROC on the unlabelled pool, or on the test items where there is none),
failures (AURC), calibration (ACE) and ambiguity (NCC, GED), for every measure and
aggregation of an uncertainty map; and what a second training gains by querying the
pool.

A row is judged once and gives the numbers of all its measures and aggregations. Each
number has the labels that it depends on: Dice and GED none, NCC and ACE `measure`, and
what ranks items `measure` and `aggregation`, for the aggregations of `Variant.only`.
Its label `type` says what the measure stands for, by the header of the predictions: PU,
AU or EU. A second
training states in its settings which row is the "first", and gives its Dice; its gain
stands in the first row, for the settings of the row `<first>_queried` over the row
`<first>_random`.

A variant may state among its labels and settings:

- "ood_split": split in which shifted items are detected; else `pool`, if the runs
  predict it, and the test split if not.
- "threshold_from": "method" (as the paper has it), one threshold from the validation
  items of all repeats of a row; "run" for one of each repeat.
- "swaps" and "swap_share": classes with a second name, and how often raters give it.
  The released code takes their disagreement from that.
- "background": "none" if all classes are foreground, or the name or number of the
  class that is background, for macro Dice and sizes.
- "feature": the feature that it screens, for Dice alone and what the shift costs.
"""

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from threading import RLock
from typing import Any, NamedTuple, TypeVar

import numpy as np

from qualms.arrays import Index
from qualms.benchmarks.values._entries import (
    JudgedItems,
    detection_entries,
    drop_entry,
    failure_entries,
    gain_entry,
)
from qualms.benchmarks.values._rows import is_second, type_of
from qualms.evaluate.entry import (
    Entry,
    Judgement,
    MapSlice,
    Scatter,
    ScoreOptions,
)
from qualms.evaluate.protocol import AbsentError, Protocol, Repeat
from qualms.evaluate.segmented import (
    MapScores,
    Reading,
    Validation,
    map_kind,
    measure_items,
    measured_maps,
    quality_entries,
    undivided_note,
    validate,
)
from qualms.evaluate.slices import disputed_slices, size_scatters
from qualms.evaluate.subsets import design_of
from qualms.predictions import Predictions, PredictionsError
from qualms.spec import Part
from qualms.study import Line, RunPlan, TableRow, Variant

T = TypeVar("T")


class FileCache:
    """Results computed from files, so that each is read once for all lines.

    One file is read at a time, several of its items at once: memory is bounded by the
    number of threads or processes, and not by its square.
    """

    def __init__(self) -> None:
        self._lock = RLock()
        self._dataset: Part | None = None
        self._computed: dict[Hashable, tuple[Sequence[object], Any]] = {}

    def keep_only(self, dataset: Part) -> None:
        """Forget the files of other datasets, which are judged before or after."""
        with self._lock:
            if dataset != self._dataset:
                self._computed.clear()
                self._dataset = dataset

    def once(self, what: Hashable, of: Sequence[object], make: Callable[[], T]) -> T:
        """Return `make()`, or what it returned for the same objects before."""
        key = (what, *map(id, of))
        with self._lock:
            if key not in self._computed:
                # The objects are kept, so that no other gets their address.
                self._computed[key] = of, make()
            value: T = self._computed[key][1]
            return value


def values_protocol() -> Protocol:
    """Judge every score by the right rule, and by that of the released code."""
    return Protocol(judge=partial(_judge, FileCache()), notes=_notes)


def _judge(cache: FileCache, repeat: Repeat) -> Judgement:
    variant = repeat.line.variant
    cache.keep_only(variant.dataset)
    test = repeat.read(variant.test)
    if test.task != "segmentation":
        raise AbsentError(f"{test.source} holds {test.task}, not segmented items")
    if is_second(repeat.line.row) or "feature" in repeat.line.settings:
        return _overlap_alone(cache, repeat, test)
    return _everything(cache, repeat, test)


def _overlap_alone(cache: FileCache, repeat: Repeat, test: Predictions) -> Judgement:
    """Judge Dice, and what a shift costs: second trainings and shift screenings."""
    measured = _measured(cache, test, _reading(repeat, dice_only=True), repeat)
    judged = _judged(test, measured, repeat)
    entries = _quality(judged)
    if is_second(repeat.line.row):
        # These rows stand for what another one gained, and compete with none.
        entries = [replace(entry, ranked=False) for entry in entries]
    else:
        entries += drop_entry(judged)
    return Judgement(entries=tuple(entries), design=design_of(test))


def _everything(cache: FileCache, repeat: Repeat, test: Predictions) -> Judgement:
    fitted = _fitted(cache, repeat)
    reading = _reading(repeat, fitted=fitted)
    measured = _measured(cache, test, reading, repeat)
    judged = _judged(test, measured, repeat)
    pool = repeat.read(_ood_split(repeat))
    design, first = design_of(test), 0
    if pool is not test:
        design, first = design.joined(design_of(pool)), test.n
    measured_pool = _measured(cache, pool, reading, repeat)
    entries = (
        *_quality(judged),
        *failure_entries(judged),
        *detection_entries(measured_pool, _shifted(pool), first, _is_published(repeat)),
        *_gains(cache, repeat, judged),
    )
    row = repeat.line.row
    judgement = Judgement(
        entries=tuple(
            _typed(e, row, test.header.draws) for e in entries if _fits(e, repeat.line)
        ),
        design=design,
    )
    if repeat.part_of is not None:
        return judgement
    return replace(
        judgement,
        scatters=tuple(_scatters(judged, row, test.header.draws)),
        slices=tuple(_slices(test, judged)),
        warnings=tuple(_warnings(fitted, repeat.line.variant)),
    )


def _warnings(fitted: Validation | None, variant: Variant) -> Iterator[str]:
    """Yield a sentence on every threshold that divides no pixels, if it is judged."""
    shown = variant.only.get("aggregation", ("threshold",))
    if fitted is not None and "threshold" in shown:
        yield from map(undivided_note, fitted.undivided)


def _judged(test: Predictions, measured: MapScores, repeat: Repeat) -> JudgedItems:
    """Return the test items that have labels; others cannot be judged."""
    labelled = ((n, measured.labelled(rows)) for n, rows in subsets_of(test).items())
    subsets = {name: rows for name, rows in labelled if len(rows)}
    return JudgedItems(measured, subsets, _is_published(repeat))


def _quality(judged: JudgedItems) -> list[Entry]:
    return [
        entry
        for subset, index in judged.subsets.items()
        for entry in quality_entries(judged.measured, subset, index)
    ]


def _fits(entry: Entry, line: Line) -> bool:
    """Return whether an entry belongs to a line, which may fix some of its settings."""
    only = line.variant.only
    return all(
        line.at.get(name, value) == value and value in only.get(name, (value,))
        for name, value in entry.settings.items()
    )


def _typed(entry: Entry, row: TableRow, draws: str | None) -> Entry:
    """Return an entry with the type of uncertainty that its measure stands for."""
    if "measure" not in entry.settings:
        return entry
    kind = type_of(row, entry.settings["measure"], draws)
    return replace(entry, labels={"type": kind})


def _is_published(repeat: Repeat) -> bool:
    return not repeat.line.row.beyond and repeat.part_of is None


def subsets_of(predictions: Predictions) -> dict[str, Index]:
    """Return the in-domain items and, where there are some, the shifted ones."""
    shifted = _shifted(predictions)
    parts = {"in_domain": np.flatnonzero(~shifted), "shifted": np.flatnonzero(shifted)}
    return {name: index for name, index in parts.items() if len(index)}


def _shifted(predictions: Predictions) -> Any:
    shifted = predictions.get("shifted")
    return np.zeros(predictions.n, np.bool_) if shifted is None else shifted


def _ood_split(repeat: Repeat) -> str:
    variant = repeat.line.variant
    usual = "pool" if "pool" in variant.splits else variant.test
    return str(repeat.line.settings.get("ood_split", usual))


def _reading(
    repeat: Repeat, *, fitted: Validation | None = None, dice_only: bool = False
) -> Reading:
    settings = repeat.line.settings
    swaps: Mapping[int, int] = settings.get("swaps", {})
    return Reading(
        fitted=fitted,
        published=_is_published(repeat),
        dice_only=dice_only,
        swaps=tuple(sorted({*swaps, *swaps.values()})),
        swap_share=settings.get("swap_share", 1 / 3),
        background=settings.get("background"),
    )


def _measured(
    cache: FileCache, predictions: Predictions, reading: Reading, repeat: Repeat
) -> MapScores:
    what = replace(reading, fitted=None)
    make = partial(measure_items, predictions, reading, repeat.options)
    return cache.once(what, (predictions, reading.fitted), make)


def _fitted(cache: FileCache, repeat: Repeat) -> Validation | None:
    """Fit thresholds of all repeats of the row together, or of each where stated."""
    if "val" not in repeat.line.variant.splits:
        return None
    if repeat.part_of is not None and repeat.every is not None:
        val = repeat.every("val")[repeat.part_of]
    else:
        val = repeat.read("val")
    runs: Sequence[Predictions] = [val]
    rule = repeat.line.settings.get("threshold_from", "method")
    if rule not in ("method", "run"):
        raise ValueError(f"threshold_from must be 'method' or 'run', got {rule!r}")
    if rule == "method" and repeat.every is not None:
        runs = repeat.every("val")
    published = not repeat.line.row.beyond
    make = partial(validate, runs, repeat.options, published=published)
    fits = cache.once(("fit", published), runs, make)
    return fits[next(i for i, run in enumerate(runs) if run is val)]


class _SecondDice(NamedTuple):
    """Dice of the items after a second training, or why it is missing."""

    dice: MapScores | None
    why: str = ""


def _gains(cache: FileCache, repeat: Repeat, judged: JudgedItems) -> Iterator[Entry]:
    """Yield what querying the pool by each uncertainty gained over random items."""
    name = repeat.line.row.name
    queried = repeat.beside(f"{name}_queried")
    at_random = repeat.beside(f"{name}_random")
    if not queried or not at_random or "shifted" not in judged.subsets:
        return

    def second(read: Callable[[str], Predictions]) -> _SecondDice:
        try:
            test = read(repeat.line.variant.test)
            reading = _reading(repeat, dice_only=True)
            return _SecondDice(_measured(cache, test, reading, repeat))
        except (AbsentError, PredictionsError) as error:
            return _SecondDice(None, str(error))

    random = second(at_random[0].read)
    for query in queried:
        after = second(query.read), random
        yield gain_entry(
            judged,
            [each.dice for each in after],
            settings=query.at,
            why=next(filter(None, (each.why for each in after)), ""),
        )


def _scatters(
    judged: JudgedItems, row: TableRow, draws: str | None
) -> Iterator[Scatter]:
    measured = judged.measured
    for subset, index in judged.subsets.items():
        summed = {
            name: measured.of("uncertainty", name, "image")[index]
            for name in measured.built_in
        }
        scatters = size_scatters(
            measured.of("predicted_size")[index],
            measured.of("reference_size")[index],
            summed,
            subset=subset,
        )
        for scatter in scatters:
            measure = scatter.settings.get("measure")
            kind = {"type": type_of(row, measure, draws)} if measure else {}
            yield replace(scatter, settings={**scatter.settings, **kind})


def _slices(test: Predictions, judged: JudgedItems) -> list[MapSlice]:
    disagreement = judged.measured.of("disagreement")
    maps = partial(measured_maps, map_kind(test))
    slices = disputed_slices(test, disagreement, judged.subsets, maps)
    return [replace(each, draws=test.header.draws) for each in slices]


def _notes(plan: RunPlan, _options: ScoreOptions) -> tuple[str, ...]:
    rules = {v.settings.get("threshold_from", "method") for v in plan.variants}
    repeats = "each repeat of a row" if rules == {"run"} else "all repeats of a row"
    notes: tuple[str, ...] = (
        "ours: Dice of two empty masks is 1, ignored pixels count in uncertainties of "
        "items alone, GED is the mean over pairs, NCC is Pearson's, one Platt fit for "
        "all validation pixels of a run, ties shared; beside the paper: its released "
        "code",
        f"the aggregation threshold is chosen on the validation items of {repeats} "
        "(the released code pools both shifts of nodules as well); thresholds and "
        "Platt fits are held fixed in intervals",
        "threshold_aurc and threshold_eaurc are the paper's equations 7 and 8; the "
        "released code computes neither them nor aurc",
    )
    if any("first" in row.settings for row in plan.rows):
        notes += (
            "gain: relative Dice on shifted test items after querying half of the "
            "pool, minus that after drawing as many at random",
        )
    return notes
