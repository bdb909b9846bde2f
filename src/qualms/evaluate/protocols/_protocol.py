"""What a protocol is, and the one of benchmarks that have none of their own."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from qualms.benchmarks import Benchmark, Place, Preset, Settings
from qualms.evaluate.entry import Judgement, ScoreOptions
from qualms.evaluate.scoring import judge_file
from qualms.predictions import Predictions, join_maps
from qualms.shelf import find, names


class AbsentError(Exception):
    """A number cannot be computed; the message says why."""


class Beside(NamedTuple):
    """The repeat of another row that has the same seeds, on the same variant."""

    settings: Settings
    """Those of the other row's place."""
    read: Callable[[str], Predictions]
    """Its pooled predictions of a split. It raises `AbsentError` where a run lacks."""


def _nothing_beside(_row: str) -> Sequence[Beside]:
    return ()


class Repeat(NamedTuple):
    """One pooled repeat of one row on one variant: what a protocol judges."""

    place: Place
    read: Callable[[str], Predictions]
    """The pooled predictions of a split."""
    options: ScoreOptions
    every: Callable[[str], Sequence[Predictions]] | None = None
    """The pooled predictions of a split in every repeat of the row, this one among
    them; None where there is no other."""
    beside: Callable[[str], Sequence[Beside]] = _nothing_beside
    """What the row of that name has for these seeds, one for each of its places."""


def _no_notes(
    _benchmark: Benchmark, _preset: Preset, _options: ScoreOptions
) -> tuple[str, ...]:
    return ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Protocol:
    """How the repeats of a benchmark are judged."""

    judge: Callable[[Repeat], Judgement]
    """The entries of one repeat, with what is drawn. It raises `AbsentError` where the
    predictions do not carry them."""
    notes: Callable[[Benchmark, Preset, ScoreOptions], tuple[str, ...]] = _no_notes
    """What a reader of the tables must know."""


def protocol_of(benchmark: Benchmark) -> Protocol:
    """The protocol found by the benchmark's name, else its task's ordinary scores."""
    if benchmark.name in names("evaluate.protocols"):
        found: Protocol = find("evaluate.protocols", benchmark.name)()
        return found
    return Protocol(judge=_by_task)


def _by_task(repeat: Repeat) -> Judgement:
    """All scores of the task on the test items; shifted ones are a split of their own.

    The split `val`, where runs predict it, serves recalibration.
    """
    variant = repeat.place.variant
    test, shifted = variant.test, f"{variant.test}/shifted"
    predictions = repeat.read(test)
    if shifted in variant.splits:
        predictions = _joined(predictions, repeat.read(shifted))
    val = repeat.read("val") if "val" in variant.splits else None
    return judge_file(predictions, val, repeat.options)


def _joined(inside: Predictions, outside: Predictions) -> Predictions:
    """The items of both splits as one file, those of the second marked as shifted."""
    inside, outside = (_with_known(one, (inside, outside)) for one in (inside, outside))
    shared = [name for name in inside.arrays if name in outside.arrays]
    arrays: dict[str, NDArray[Any]] = {}
    for name in shared:
        axis = inside.item_axis(name)
        if axis is not None and axis == outside.item_axis(name):
            both = inside.arrays[name], outside.arrays[name]
            arrays[name] = np.concatenate(both, axis=axis)
    arrays["shifted"] = np.repeat([False, True], [inside.n, outside.n])
    maps = None
    if inside.maps is not None and outside.maps is not None:
        maps = join_maps(inside.maps, outside.maps)
    return replace(inside, arrays=arrays, maps=maps, n=inside.n + outside.n)


def _with_known(one: Predictions, both: Sequence[Predictions]) -> Predictions:
    """`one` with its array 'known' spelled out, where either split has one."""
    if "known" in one.arrays or all("known" not in other.arrays for other in both):
        return one
    return replace(one, arrays={**one.arrays, "known": np.ones(one.n, np.bool_)})
