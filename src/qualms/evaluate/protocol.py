"""Protocols of benchmarks, and the default protocol."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from qualms.evaluate.entry import Judgement, ScoreOptions
from qualms.evaluate.scoring import judge_file
from qualms.labels import Labels
from qualms.predictions import Predictions, join_maps
from qualms.study import Benchmark, Line, RunPlan, Variant
from qualms.wording import plural


class AbsentError(Exception):
    """The error of a number that cannot be computed; the message says why."""


class Beside(NamedTuple):
    """The repeat of another row with the same seeds, on the same variant."""

    at: Labels
    """The settings of the other line."""
    read: Callable[[str], Predictions]
    """Reads its pooled predictions of a split; raises `AbsentError` without a run."""


def _nothing_beside(_row: str) -> Sequence[Beside]:
    return ()


class Repeat(NamedTuple):
    """One pooled repeat of one line, which a protocol judges."""

    line: Line
    read: Callable[[str], Predictions]
    """Reads the pooled predictions of a split."""
    options: ScoreOptions
    every: Callable[[str], Sequence[Predictions]] | None = None
    """Reads the pooled predictions of a split in all repeats of the line, this one
    included; None if this is the only repeat."""
    beside: Callable[[str], Sequence[Beside]] = _nothing_beside
    """Returns the repeats with these seeds of the row with this name, one for each of
    its lines."""
    part_of: int | None = None
    """Number of the repeat of which it is a part, a pool without one of its runs. Only
    the values of such a part are used, not those as published."""


def _no_notes(_plan: RunPlan, _options: ScoreOptions) -> tuple[str, ...]:
    return ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Protocol:
    """Functions that judge the repeats of a benchmark."""

    judge: Callable[[Repeat], Judgement]
    """Returns the entries and curves of one repeat; raises `AbsentError` if the
    predictions lack something that they need."""
    notes: Callable[[RunPlan, ScoreOptions], tuple[str, ...]] = _no_notes
    """Returns notes for readers of the tables."""


def protocol_of(benchmark: Benchmark) -> Protocol:
    """Return the protocol of a benchmark, or the default one of its task."""
    if benchmark.protocol is None:
        return Protocol(judge=judge_by_task, notes=_unjudged)
    protocol = benchmark.protocol()
    if not isinstance(protocol, Protocol):
        raise ValueError(
            f"the protocol of {benchmark.name} must be a Protocol, got"
            f" {type(protocol).__name__}; correct the function that returns it"
        )
    return protocol


def _unjudged(plan: RunPlan, _options: ScoreOptions) -> tuple[str, ...]:
    """Return a note on predicted splits that the default protocol does not judge."""
    read = {
        split
        for variant in plan.variants
        for split in (variant.test, _shifted_split(variant), "val")
    }
    skipped = dict.fromkeys(
        split
        for variant in plan.variants
        for split in variant.splits
        if split not in read
    )
    if not skipped:
        return ()
    names = ", ".join(skipped)
    return (
        f"not judged: {plural(len(skipped), 'split')} {names}. Benchmark "
        f"{plan.benchmark.name} names no protocol, so each variant is judged on its "
        "test items, and shifted ones beside them; Benchmark.protocol judges others",
    )


def judge_by_task(repeat: Repeat) -> Judgement:
    """Judge all scores of the task on the test items, including shifted ones.

    The split `val` is used for recalibration if runs predict it.
    """
    variant = repeat.line.variant
    shifted = _shifted_split(variant)
    predictions = repeat.read(variant.test)
    if shifted in variant.splits:
        predictions = _joined(predictions, repeat.read(shifted))
    val = repeat.read("val") if "val" in variant.splits else None
    return judge_file(predictions, val, repeat.options)


def _shifted_split(variant: Variant) -> str:
    """Return the split with the shifted items."""
    return variant.shifted or f"{variant.test}/shifted"


def _joined(inside: Predictions, outside: Predictions) -> Predictions:
    """Join both splits as one file, with the items of the second marked as shifted.

    An item of both splits, such as a corrupted one, forms a cluster: it is drawn once.
    """
    inside, outside = (_with_known(one, (inside, outside)) for one in (inside, outside))
    shared = [name for name in inside.arrays if name in outside.arrays]
    arrays: dict[str, NDArray[Any]] = {}
    for name in shared:
        axis = inside.item_axis(name)
        if axis is not None and axis == outside.item_axis(name):
            both = inside.arrays[name], outside.arrays[name]
            arrays[name] = np.concatenate(both, axis=axis)
    arrays["shifted"] = np.repeat([False, True], [inside.n, outside.n])
    if "cluster" not in arrays and _share_items(inside, outside):
        arrays["cluster"] = arrays["item"]
    maps = None
    if inside.maps is not None and outside.maps is not None:
        maps = join_maps(inside.maps, outside.maps)
    return replace(
        inside,
        arrays=arrays,
        maps=maps,
        n=inside.n + outside.n,
        draws=max(inside.draws, outside.draws),
    )


def _share_items(one: Predictions, other: Predictions) -> bool:
    items, other_items = one.get("item"), other.get("item")
    return (
        items is not None
        and other_items is not None
        and bool(np.isin(items, other_items).any())
    )


def _with_known(one: Predictions, both: Sequence[Predictions]) -> Predictions:
    """Add the array 'known' to a split without it, if the other split has one."""
    if "known" in one.arrays or all("known" not in other.arrays for other in both):
        return one
    return replace(one, arrays={**one.arrays, "known": np.ones(one.n, np.bool_)})
