"""The judgement of one repeat: which sets are read, and what is taken from them."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import reduce
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from qualms.arrays import Index
from qualms.benchmarks.url._entries import (
    EmbeddedSet,
    average_entries,
    contrast_entries,
    set_entries,
    top_one_entry,
)
from qualms.evaluate.chosen_uncertainty import chosen_uncertainty
from qualms.evaluate.entry import Entry, Histogram, Judgement
from qualms.evaluate.protocol import AbsentError, Repeat
from qualms.evaluate.subsets import design_of
from qualms.inference import Design, joined_clusters, sampling_design
from qualms.predictions import Predictions
from qualms.scores.retrieval import retrieved

UPSTREAM = "upstream"
FEWEST_CLASSES = 10
"""Least number of unseen classes of which an interval may speak: with 10 or more it
covers new classes in 92 % of samples or more (`bench/unseen_classes.py`)."""
MOST = 50_000
"""Most items of either side that are compared."""
_NORM_EDGES = np.linspace(-4.0, 4.0, 49)
_SEED = 0


class _Uncertainties(NamedTuple):
    """The uncertainties that a row is judged by."""

    chosen: str
    named: tuple[str, ...]
    """Those that have numbers of their own as well, by name."""


def judge_url(repeat: Repeat) -> Judgement:
    """Return all numbers of one repeat."""
    settings = repeat.line.settings
    if "taught" in settings:
        return _judge_few_shot(repeat, str(settings["taught"]))
    retrieval, votes = tuple(settings["retrieval"]), tuple(settings["votes"])
    splits = {name: f"{name}:test" for name in (*retrieval, *votes)}
    has_upstream = bool(settings.get("upstream", True))
    if has_upstream:
        splits = {UPSTREAM: repeat.line.variant.test, **splits}
    val = {f"val_{name}": f"{name}:val" for name in retrieval}
    if set(val.values()) <= set(repeat.line.variant.splits):
        splits |= val
    unseen = {*retrieval, *val}
    sets = _read_sets(repeat, splits, unseen)
    upstream = [sets[UPSTREAM]] if has_upstream else []
    u = _uncertainties(repeat, sets[next(iter(splits))].predictions)
    own_entries = {
        name: tuple(_entries_of_set(embedded, u)) for name, embedded in sets.items()
    }
    against = {
        name: tuple(
            entry
            for contrast in upstream
            for entry in _contrast_with(contrast, sets[name], u)
        )
        for name in retrieval
    }
    means = {
        "all": [(*own_entries[name], *against[name]) for name in retrieval],
        "soft": [own_entries[name] for name in votes],
        "val": [own_entries[name] for name in val if name in own_entries],
    }
    entries = (
        *(entry for contrast in upstream for entry in top_one_entry(contrast)),
        *(entry for name in splits if name not in val for entry in own_entries[name]),
        *(entry for entries_of in against.values() for entry in entries_of),
        *(
            entry
            for subset, entries_of in means.items()
            for entry in average_entries(entries_of, subset)
        ),
    )
    return Judgement(
        entries=entries,
        design=reduce(Design.joined, (embedded.design for embedded in sets.values())),
        histograms=tuple(
            _norms(contrast, [sets[name] for name in retrieval])
            for contrast in upstream
        ),
        warnings=tuple(_warnings(sets[name] for name in retrieval)),
    )


def _judge_few_shot(repeat: Repeat, data: str) -> Judgement:
    """Judge a second training on the set of whose classes it saw some items."""
    (embedded,) = _read_sets(repeat, {data: f"{data}:test/odd"}).values()
    u = _uncertainties(repeat, embedded.predictions)
    # These rows are not ranked, since other rows are judged on more items.
    entries = (
        replace(entry, subset="all", ranked=False)
        for entry in _entries_of_set(embedded, u)
    )
    return Judgement(entries=tuple(entries), design=embedded.design)


def _read_sets(
    repeat: Repeat, splits: dict[str, str], unseen: Collection[str] = ()
) -> dict[str, EmbeddedSet]:
    """Read the sets, whose items are numbered one set after the other.

    Intervals of the `unseen` ones speak of other classes.
    """
    sets: dict[str, EmbeddedSet] = {}
    first = 0
    for name, split in splits.items():
        predictions = repeat.read(split)
        if predictions.task != "embedding":
            raise AbsentError(f"{predictions.source} has no embeddings")
        search = retrieved(
            predictions.arrays["embedding"], predictions.arrays["target"]
        )
        sets[name] = EmbeddedSet(
            name=name,
            predictions=predictions,
            hits=search.hits,
            design=_design(predictions, search.unit, unseen=name in unseen),
            first=first,
        )
        first += predictions.n
    return sets


def _design(predictions: Predictions, unit: Index, *, unseen: bool) -> Design:
    """Return the design of a set.

    Classes that no network was trained on are a sample of all such classes: each is one
    cluster. Where there are too few of them, and where classes are known, items that
    retrieve each other are one unit.
    """
    by_class = unseen and _classes(predictions) >= FEWEST_CLASSES
    drawn_together = predictions.arrays["target"] if by_class else unit
    cluster = joined_clusters(drawn_together, predictions.get("cluster"))
    sample = design_of(predictions).sample
    return sampling_design(predictions.n, sample=sample, cluster=cluster)


def _classes(predictions: Predictions) -> int:
    return len(np.unique(predictions.arrays["target"]))


def _warnings(sets: Iterable[EmbeddedSet]) -> Iterator[str]:
    """Yield a note on each set with too few classes."""
    for embedded in sets:
        count = _classes(embedded.predictions)
        if count < FEWEST_CLASSES:
            yield (
                f"{embedded.name} has {count} classes: intervals speak of other items"
                f" of these classes, as {FEWEST_CLASSES} or more are needed to speak of"
                " other classes"
            )


def _uncertainties(repeat: Repeat, predictions: Predictions) -> _Uncertainties:
    """Return the uncertainties in the predictions that the row is judged by."""
    settings = repeat.line.settings
    stored = predictions.named("uncertainty")
    names: Sequence[str] = settings.get("us", tuple(stored))
    missing = [name for name in names if name not in stored]
    if missing:
        raise AbsentError(
            f"{predictions.source} has no uncertainty {', '.join(missing)}; it has "
            f"{', '.join(stored)}"
        )
    row = settings.get("first", repeat.line.row.name)
    paper = names[0] if "us" in settings else chosen_uncertainty(predictions, names)
    chosen = settings.get("chosen", {}).get(row, paper)
    # A declared row with a single uncertainty has no second name for it.
    several = len(names) > 1 or "us" not in settings
    return _Uncertainties(chosen, tuple(names) if several else ())


def _entries_of_set(embedded: EmbeddedSet, u: _Uncertainties) -> Iterator[Entry]:
    """Yield entries of a set: by the chosen uncertainty, and by each of several."""
    yield from set_entries(embedded, u.chosen, released=True)
    for name in u.named:
        for entry in set_entries(embedded, name, released=False):
            if entry.score.__name__ != "recall_at_1":
                yield replace(entry, settings={"uncertainty": name}, ranked=False)


def _contrast_with(
    upstream: EmbeddedSet, downstream: EmbeddedSet, u: _Uncertainties
) -> Iterator[Entry]:
    """Yield entries of upstream items against those of a set, as many of each."""
    n = min(upstream.predictions.n, downstream.predictions.n, MOST)
    rows = tuple(
        _draw_items(side.predictions.n, n, number)
        for number, side in enumerate((upstream, downstream))
    )
    yield from contrast_entries((upstream, downstream), rows, u.chosen, released=True)
    for name in u.named:
        for entry in contrast_entries(
            (upstream, downstream), rows, name, released=False
        ):
            yield replace(entry, settings={"uncertainty": name}, ranked=False)


def _draw_items(items: int, n: int, side: int) -> Index:
    """Draw `n` of the items, the same in every repeat and row."""
    if n == items:
        return np.arange(items)
    rng = np.random.default_rng([_SEED, side, items, n])
    return np.sort(rng.permutation(items)[:n])


def _norms(upstream: EmbeddedSet, sets: Sequence[EmbeddedSet]) -> Histogram:
    """Return a histogram of embeddings' length, in doublings of the upstream median."""
    unit = float(np.median(_length(upstream)))
    parts = {}
    for embedded in (upstream, *sets):
        doubled = np.log2(_length(embedded) / unit)
        counts = np.histogram(doubled.clip(-4.0, 4.0), _NORM_EDGES)[0]
        parts[embedded.name] = counts / counts.sum()
    return Histogram(
        name="norm",
        label="doublings of the median upstream length",
        subset="all",
        edges=_NORM_EDGES,
        parts=parts,
    )


def _length(embedded: EmbeddedSet) -> NDArray[np.float64]:
    embedding = embedded.predictions.arrays["embedding"].astype(np.float64)
    length: NDArray[np.float64] = np.sqrt(np.square(embedding).sum(axis=1))
    return np.maximum(length, np.finfo(np.float32).tiny)
