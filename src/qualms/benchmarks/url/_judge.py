"""The judgement of one repeat: which sets are read, and what is taken from them."""

from collections.abc import Iterator, Sequence
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
from qualms.evaluate.entry import Entry, Histogram, Judgement
from qualms.evaluate.protocol import AbsentError, Repeat
from qualms.evaluate.subsets import design_of
from qualms.inference import Design, joined_clusters, sampling_design
from qualms.predictions import Predictions
from qualms.scores.retrieval import retrieved

UPSTREAM = "upstream"
MOST = 50_000
"""Items of either side that are compared."""
_NORM_EDGES = np.linspace(-4.0, 4.0, 49)
_SEED = 0


class _Uncertainties(NamedTuple):
    """Those that a row is judged by."""

    chosen: str
    all: tuple[str, ...]


def judge_url(repeat: Repeat) -> Judgement:
    """All numbers of one repeat."""
    settings = repeat.line.settings
    if "taught" in settings:
        return _after_few(repeat, str(settings["taught"]))
    retrieval, votes = tuple(settings["retrieval"]), tuple(settings["votes"])
    splits = {UPSTREAM: repeat.line.variant.test}
    splits |= {name: f"{name}:test" for name in (*retrieval, *votes)}
    val = {f"val_{name}": f"{name}:val" for name in retrieval}
    if set(val.values()) <= set(repeat.line.variant.splits):
        splits |= val
    sets = _read(repeat, splits)
    upstream = sets[UPSTREAM]
    u = _uncertainties(repeat, upstream.predictions)
    own = {name: tuple(_of(one, u)) for name, one in sets.items()}
    against = {name: tuple(_against(upstream, sets[name], u)) for name in retrieval}
    means = {
        "all": [(*own[name], *against[name]) for name in retrieval],
        "soft": [own[name] for name in votes],
        "val": [own[name] for name in val if name in own],
    }
    entries = (
        *top_one_entry(upstream),
        *(entry for name in (UPSTREAM, *retrieval, *votes) for entry in own[name]),
        *(entry for each in against.values() for entry in each),
        *(
            entry
            for subset, each in means.items()
            for entry in average_entries(each, subset)
        ),
    )
    return Judgement(
        entries=entries,
        design=reduce(Design.joined, (one.design for one in sets.values())),
        histograms=(_norms(upstream, [sets[name] for name in retrieval]),),
    )


def _after_few(repeat: Repeat, data: str) -> Judgement:
    """A second training, judged on the set of whose classes it saw some items."""
    (one,) = _read(repeat, {data: f"{data}:test/odd"}).values()
    u = _uncertainties(repeat, one.predictions)
    # These rows compete with none: other rows are judged on more items.
    entries = (replace(entry, subset="all", ranked=False) for entry in _of(one, u))
    return Judgement(entries=tuple(entries), design=one.design)


def _read(repeat: Repeat, splits: dict[str, str]) -> dict[str, EmbeddedSet]:
    """The sets, whose items are numbered one set after the other."""
    found: dict[str, EmbeddedSet] = {}
    first = 0
    for name, split in splits.items():
        predictions = repeat.read(split)
        if predictions.task != "embedding":
            raise AbsentError(f"{predictions.source} has no embeddings")
        known = retrieved(predictions.arrays["embedding"], predictions.arrays["target"])
        found[name] = EmbeddedSet(
            name=name,
            predictions=predictions,
            hits=known.hits,
            design=_design(predictions, known.unit),
            first=first,
        )
        first += predictions.n
    return found


def _design(predictions: Predictions, unit: Index) -> Design:
    """Items that retrieve each other are one unit, as those of a cluster are."""
    cluster = joined_clusters(unit, predictions.get("cluster"))
    sample = design_of(predictions).sample
    return sampling_design(predictions.n, sample=sample, cluster=cluster)


def _uncertainties(repeat: Repeat, predictions: Predictions) -> _Uncertainties:
    """What the row is judged by, of what its predictions hold."""
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
    return _Uncertainties(settings.get("chosen", {}).get(row, names[0]), tuple(names))


def _of(one: EmbeddedSet, u: _Uncertainties) -> Iterator[Entry]:
    """The entries of a set: by the chosen uncertainty, and by each of several."""
    yield from set_entries(one, u.chosen, theirs=True)
    for name in u.all if len(u.all) > 1 else ():
        for entry in set_entries(one, name, theirs=False):
            if entry.score.__name__ != "recall_at_1":
                yield replace(entry, settings={"uncertainty": name}, ranked=False)


def _against(
    upstream: EmbeddedSet, one: EmbeddedSet, u: _Uncertainties
) -> Iterator[Entry]:
    """Upstream items against those of a set, as many of each."""
    n = min(upstream.predictions.n, one.predictions.n, MOST)
    rows = tuple(
        _drawn(each.predictions.n, n, side) for side, each in enumerate((upstream, one))
    )
    yield from contrast_entries((upstream, one), rows, u.chosen, theirs=True)
    if len(u.all) > 1:
        for name in u.all:
            found = contrast_entries((upstream, one), rows, name, theirs=False)
            for entry in found:
                yield replace(entry, settings={"uncertainty": name}, ranked=False)


def _drawn(items: int, n: int, side: int) -> Index:
    """`n` of the items, the same in every repeat and row."""
    if n == items:
        return np.arange(items)
    rng = np.random.default_rng([_SEED, side, items, n])
    return np.sort(rng.permutation(items)[:n])


def _norms(upstream: EmbeddedSet, sets: Sequence[EmbeddedSet]) -> Histogram:
    """How long embeddings are: doublings of the median upstream length."""
    unit = float(np.median(_length(upstream)))
    parts = {}
    for one in (upstream, *sets):
        doubled = np.log2(_length(one) / unit)
        counts = np.histogram(doubled.clip(-4.0, 4.0), _NORM_EDGES)[0]
        parts[one.name] = counts / counts.sum()
    return Histogram(
        name="norm",
        label="doublings of the median upstream length",
        subset="all",
        edges=_NORM_EDGES,
        parts=parts,
    )


def _length(one: EmbeddedSet) -> NDArray[np.float64]:
    embedding = one.predictions.arrays["embedding"].astype(np.float64)
    length: NDArray[np.float64] = np.sqrt(np.square(embedding).sum(axis=1))
    return np.maximum(length, np.finfo(np.float32).tiny)
