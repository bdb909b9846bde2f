"""The judgement of one repeat: which files are read, and what is taken from them."""

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from threading import RLock
from typing import Any, NamedTuple, TypeVar

import numpy as np

from qualms.arrays import Index
from qualms.benchmarks import Place
from qualms.evaluate.entry import Entry, Judgement, MapSlice, Scatter
from qualms.evaluate.protocols._protocol import AbsentError, Repeat
from qualms.evaluate.protocols.values._entries import (
    JudgedItems,
    detection_entries,
    drop_entry,
    failure_entries,
    gain_entry,
)
from qualms.evaluate.segmented import (
    MapScores,
    Reading,
    Validation,
    measure_items,
    measured_maps,
    quality_entries,
    validate,
)
from qualms.evaluate.slices import disputed_slices, size_scatters
from qualms.evaluate.subsets import design_of
from qualms.predictions import Predictions, PredictionsError
from qualms.spec import Part

T = TypeVar("T")


class Found:
    """What files gave, so that each is read once however many places ask for it.

    One file is read at a time, several of its items at once: memory is bounded by the
    number of threads or processes, and not by its square.
    """

    def __init__(self) -> None:
        self._lock = RLock()
        self._dataset: Part | None = None
        self._known: dict[Hashable, tuple[Sequence[object], Any]] = {}

    def turn_to(self, dataset: Part) -> None:
        """Let go of the files of other datasets, which are judged before or after."""
        with self._lock:
            if dataset != self._dataset:
                self._known.clear()
                self._dataset = dataset

    def once(self, what: Hashable, of: Sequence[object], make: Callable[[], T]) -> T:
        """`make()`, or what it gave for the same objects before."""
        key = (what, *map(id, of))
        with self._lock:
            if key not in self._known:
                # The objects are kept, so that no other gets their address.
                self._known[key] = of, make()
            made: T = self._known[key][1]
            return made


def judge_values(found: Found, repeat: Repeat) -> Judgement:
    """All numbers of one repeat."""
    known, variant = repeat.place.known, repeat.place.variant
    found.turn_to(variant.dataset)
    test = repeat.read(known.get("test", variant.test))
    if test.task != "segmentation":
        raise AbsentError(f"{test.source} holds {test.task}, not segmented items")
    if _is_second(repeat) or "screening" in known:
        return _overlap_alone(found, repeat, test)
    return _everything(found, repeat, test)


def _overlap_alone(found: Found, repeat: Repeat, test: Predictions) -> Judgement:
    """Dice, and what a shift costs of it: of second trainings and shift screenings."""
    measured = _measured(found, test, _reading(repeat, dice_only=True), repeat)
    judged = _judged(test, measured, repeat)
    entries = _quality(judged)
    if _is_second(repeat):
        # These rows stand for what another one gained, and compete with none.
        entries = [replace(entry, ranked=False) for entry in entries]
    else:
        entries += drop_entry(judged)
    return Judgement(entries=tuple(entries), design=design_of(test))


def _everything(found: Found, repeat: Repeat, test: Predictions) -> Judgement:
    reading = _reading(repeat, fitted=_fitted(found, repeat))
    measured = _measured(found, test, reading, repeat)
    judged = _judged(test, measured, repeat)
    pool = repeat.read(_ood_split(repeat))
    design, first = design_of(test), 0
    if pool is not test:
        design, first = design.joined(design_of(pool)), test.n
    asked = _measured(found, pool, reading, repeat)
    entries = (
        *_quality(judged),
        *failure_entries(judged),
        *detection_entries(asked, _shifted(pool), first, _theirs(repeat)),
        *_gains(found, repeat, judged),
    )
    return Judgement(
        entries=tuple(e for e in entries if _fits(e, repeat.place)),
        design=design,
        scatters=tuple(_scatters(judged)),
        slices=tuple(_slices(test, judged)),
    )


def _judged(test: Predictions, measured: MapScores, repeat: Repeat) -> JudgedItems:
    """Test items that have labels; others cannot be judged."""
    labelled = ((n, measured.labelled(rows)) for n, rows in subsets_of(test).items())
    subsets = {name: rows for name, rows in labelled if len(rows)}
    return JudgedItems(measured, subsets, _theirs(repeat))


def _quality(judged: JudgedItems) -> list[Entry]:
    return [
        entry
        for subset, index in judged.subsets.items()
        for entry in quality_entries(judged.measured, subset, index)
    ]


def _is_second(repeat: Repeat) -> bool:
    """Whether the row is a second training; some predict with another's weights."""
    row = repeat.place.row
    return row.stage is not None or "first" in row.settings


def _fits(entry: Entry, place: Place) -> bool:
    """Whether an entry is judged there; a place may fix some of its settings."""
    judged = place.variant.judged
    return all(
        place.settings.get(name, value) == value and value in judged.get(name, (value,))
        for name, value in entry.settings.items()
    )


def _theirs(repeat: Repeat) -> bool:
    return not repeat.place.row.beyond


def subsets_of(predictions: Predictions) -> dict[str, Index]:
    """Items in-domain and, where there are some, shifted."""
    shifted = _shifted(predictions)
    found = {"in_domain": np.flatnonzero(~shifted), "shifted": np.flatnonzero(shifted)}
    return {name: index for name, index in found.items() if len(index)}


def _shifted(predictions: Predictions) -> Any:
    shifted = predictions.get("shifted")
    return np.zeros(predictions.n, np.bool_) if shifted is None else shifted


def _ood_split(repeat: Repeat) -> str:
    variant, known = repeat.place.variant, repeat.place.known
    own = known.get("test", variant.test)
    stated = known.get("ood_split", "pool" if "pool" in variant.splits else own)
    return str(stated)


def _reading(
    repeat: Repeat, *, fitted: Validation | None = None, dice_only: bool = False
) -> Reading:
    known = repeat.place.known
    swaps: Mapping[int, int] = known.get("swaps", {})
    return Reading(
        fitted=fitted,
        published=_theirs(repeat),
        dice_only=dice_only,
        swaps=tuple(sorted({*swaps, *swaps.values()})),
        swap_share=known.get("swap_share", 1 / 3),
    )


def _measured(
    found: Found, predictions: Predictions, reading: Reading, repeat: Repeat
) -> MapScores:
    what = replace(reading, fitted=None)
    make = partial(measure_items, predictions, reading, repeat.options)
    return found.once(what, (predictions, reading.fitted), make)


def _fitted(found: Found, repeat: Repeat) -> Validation | None:
    """Thresholds of all repeats of the row together, unless asked for one of each."""
    if "val" not in repeat.place.variant.splits:
        return None
    own = repeat.read("val")
    runs: Sequence[Predictions] = [own]
    rule = repeat.place.known.get("threshold_from", "method")
    if rule not in ("method", "run"):
        raise ValueError(f"threshold_from must be 'method' or 'run', got {rule!r}")
    if rule == "method" and repeat.every is not None:
        runs = repeat.every("val")
    make = partial(validate, runs, repeat.options, published=_theirs(repeat))
    made = found.once(("fit", _theirs(repeat)), runs, make)
    return made[next(i for i, run in enumerate(runs) if run is own)]


class _Second(NamedTuple):
    """Dice of the items after a second training, or why it is not known."""

    dice: MapScores | None
    why: str = ""


def _gains(found: Found, repeat: Repeat, judged: JudgedItems) -> list[Entry]:
    """What querying the pool by each uncertainty gained over drawing at random."""
    name = repeat.place.row.name
    queried = repeat.beside(f"{name}_queried")
    drawn = repeat.beside(f"{name}_random")
    if not queried or not drawn or "shifted" not in judged.subsets:
        return []
    split = repeat.place.known.get("test", repeat.place.variant.test)

    def second(read: Callable[[str], Predictions]) -> _Second:
        try:
            reading = _reading(repeat, dice_only=True)
            return _Second(_measured(found, read(split), reading, repeat))
        except (AbsentError, PredictionsError) as error:
            return _Second(None, str(error))

    random = second(drawn[0].read)
    found_each = []
    for other in queried:
        both = second(other.read), random
        found_each.append(
            gain_entry(
                judged,
                [part.dice for part in both],
                settings=other.settings,
                why=next(filter(None, (part.why for part in both)), ""),
            )
        )
    return found_each


def _scatters(judged: JudgedItems) -> list[Scatter]:
    measured = judged.measured
    found: list[Scatter] = []
    for subset, index in judged.subsets.items():
        summed = {
            name: measured.of("uncertainty", name, "image")[index]
            for name in measured.measures
        }
        found += size_scatters(
            measured.of("predicted_size")[index],
            measured.of("reference_size")[index],
            summed,
            subset=subset,
        )
    return found


def _slices(test: Predictions, judged: JudgedItems) -> list[MapSlice]:
    disagreement = judged.measured.of("disagreement")
    maps = partial(measured_maps, test.header)
    return list(disputed_slices(test, disagreement, judged.subsets, maps))
