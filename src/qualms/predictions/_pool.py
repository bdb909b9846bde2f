"""Pooling: an ensemble of runs of any method, made from files alone."""

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import fields, replace
from functools import partial
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from qualms.predictions._errors import PredictionsError
from qualms.predictions._files import read
from qualms.predictions._header import Header
from qualms.predictions._names import NO_TARGET
from qualms.predictions._pairing import check_same, check_same_item
from qualms.predictions._record import LazyMaps, Maps, Predictions, are_on_disk
from qualms.predictions.schema import schemas

_Array = NDArray[Any]
Source = str | PathLike[str] | Predictions
OWN_MAPS = "own uncertainty maps belong to single runs and were left out of the pool"
_DATA_FIELDS = (
    "benchmark",
    "dataset",
    "split",
    "fingerprint",
    "alpha",
    "ignore",
    "classes",
    "background",
)


def pool(sources: Iterable[Source]) -> Predictions:
    """Return predictions with the draws of all `sources`.

    Draws are concatenated (`probs`, or `mean` with `var`). Segmentation statistics are
    averaged, each source weighted by its number of draws, and draw labels concatenated,
    on access to an item. `select/<name>` is combined over all draws by its rule. An
    `uncertainty/<name>` or `extra/<name>` belongs to one run and is left out, with a
    note, unless it is equal in all sources.

    Raises:
        PredictionsError: If the sources differ in task, data, items, order or targets.
    """
    members = _members(sources)
    names = _labels(members)
    for row, member in enumerate(members):
        _check_poolable(member, names[row])
        check_same(members[0], member, (names[0], names[row]))
    first = members[0]
    # Of arrays that several members have, the first is taken.
    arrays = {k: a for member in reversed(members) for k, a in member.arrays.items()}
    pooled = replace(
        first,
        header=_header(members),
        arrays={name: arrays[name] for name in arrays if "/" not in name},
        source=f"pool of {', '.join(names)}",
        notes=(*_notes(members, arrays), *_equal_notes(members)),
        draws=sum(member.draws for member in members),
    )
    if first.maps is not None:
        return _with_families(_with_maps(pooled, members, names), members)
    return _with_families(_with_draws(pooled, members, names), members)


def _notes(members: Sequence[Predictions], arrays: Iterable[str]) -> tuple[str, ...]:
    notes = dict.fromkeys(note for member in members for note in member.notes)
    # The targets of one file are the targets of all.
    if "target" in arrays:
        notes.pop(NO_TARGET, None)
    return tuple(notes)


def _members(sources: Iterable[Source]) -> list[Predictions]:
    if isinstance(sources, str | PathLike | Predictions):
        raise PredictionsError(
            f"pool takes a list of predictions, got {type(sources).__name__}; write "
            "pool([...])"
        )
    each = list(sources)
    _refuse_twice(each)
    members = [s if isinstance(s, Predictions) else read(s) for s in each]
    if not members:
        raise PredictionsError("there is nothing to pool; give at least one source")
    return members


def _refuse_twice(sources: Sequence[Source]) -> None:
    """Raise if a file, or a record in memory, is given twice."""
    keys: set[int | Path] = set()
    for source in sources:
        if isinstance(source, Predictions):
            key: int | Path = id(source)
            name = source.source
        else:
            key, name = Path(source).resolve(), str(source)
        if key in keys:
            raise PredictionsError(
                f"cannot pool '{name}' with itself: the mean of a run and the same run "
                "is that run; give each run once"
            )
        keys.add(key)


def _equal_notes(members: Sequence[Predictions]) -> list[str]:
    """Return a note if two members predict the same: they may be one run."""
    first: dict[bytes, str] = {}
    for member, name in zip(members, _labels(members), strict=True):
        digest = _digest(member)
        if digest in first:
            return [f"the draws of '{first[digest]}' and '{name}' are equal: one run?"]
        first[digest] = name
    return []


def _digest(member: Predictions) -> bytes:
    """Return a digest of the draws of a run; of segmentations, of the folder's name."""
    total = hashlib.sha256()
    if member.maps is not None:
        # Maps are read when an item is asked for.
        name = member.source if are_on_disk(member.maps) else str(id(member))
        return name.encode(errors="surrogateescape")
    for name, array in member.arrays.items():
        if member.item_axis(name) == 1:
            total.update(np.ascontiguousarray(array).data)
    return total.digest()


def _labels(members: Sequence[Predictions]) -> list[str]:
    sources = [member.source for member in members]
    return [
        name if sources.count(name) == 1 else f"{name} (number {row + 1})"
        for row, name in enumerate(sources)
    ]


def _check_poolable(member: Predictions, name: str) -> None:
    if reason := schemas()[member.task].unpooled:
        raise PredictionsError(f"cannot pool '{name}': {reason}")
    if member.get("lower") is not None:
        raise PredictionsError(
            f"cannot pool '{name}': 'lower' and 'upper' are intervals, not draws; pool "
            "runs that give 'mean' and 'var'"
        )


def _with_draws(
    pooled: Predictions, members: Sequence[Predictions], names: Sequence[str]
) -> Predictions:
    arrays = dict(pooled.arrays)
    for name in [name for name in arrays if pooled.item_axis(name) == 1]:
        having = [n for n, m in zip(names, members, strict=True) if name in m.arrays]
        missing = [n for n in names if n not in having]
        if missing:
            raise PredictionsError(
                f"cannot pool '{having[0]}' and '{missing[0]}': only the first has "
                f"'{name}'; pool runs of one kind"
            )
        arrays[name] = np.concatenate([member.arrays[name] for member in members])
    return replace(pooled, arrays=arrays)


def _with_maps(
    pooled: Predictions, members: Sequence[Predictions], names: Sequence[str]
) -> Predictions:
    if len(members) == 1:
        return pooled
    own = any(member.own_maps for member in members)
    return replace(
        pooled,
        maps=_pooled_maps(members, names),
        own_maps=(),
        notes=(*pooled.notes, *([OWN_MAPS] if own else [])),
    )


def _with_families(pooled: Predictions, members: Sequence[Predictions]) -> Predictions:
    arrays, notes, rules = dict(pooled.arrays), list(pooled.notes), {}
    families = dict.fromkeys(n for m in members for n in m.arrays if "/" in n)
    for name in families:
        parts = [m.arrays[name] for m in members if name in m.arrays]
        if len(parts) < len(members):
            notes.append(f"array '{name}' is not in all that were pooled: left out")
        elif name.startswith("select/"):
            rules[name[7:]] = rule = _rule(name[7:], members)
            arrays[name] = _combined(parts, [member.draws for member in members], rule)
        elif all(np.array_equal(parts[0], part) for part in parts):
            arrays[name] = parts[0]
        else:
            notes.append(
                f"array '{name}' belongs to single runs and was left out of the pool"
            )
    header = replace(pooled.header, select=rules)
    return replace(pooled, arrays=arrays, header=header, notes=tuple(notes))


def _rule(name: str, members: Sequence[Predictions]) -> str:
    rules = sorted({member.header.select[name] for member in members})
    if len(rules) > 1:
        raise PredictionsError(
            f"cannot pool: the header's rule for 'select/{name}' is '{rules[0]}' in "
            f"one file and '{rules[1]}' in another; state the same in all"
        )
    return rules[0]


def _combined(parts: Sequence[_Array], draws: Sequence[int], rule: str) -> _Array:
    # A row may be the combination of several draws. It is weighted by their number, so
    # that pools can be pooled again.
    weights = np.concatenate(
        [
            np.full(len(part), n / len(part))
            for part, n in zip(parts, draws, strict=True)
        ]
    )
    values = np.concatenate(parts)
    if rule == "mean":
        return _weighted_mean(values, weights)[np.newaxis]
    # Minus the logarithm of the mean likelihood. The largest likelihood is factored
    # out, so that not all likelihoods are rounded to zero.
    least = values.min(axis=0)
    likelihood = _weighted_mean(np.exp(least - values), weights)
    return np.asarray(least - np.log(likelihood))[np.newaxis]


def _weighted_mean(values: _Array, weights: _Array) -> _Array:
    # Sorted, so that the order of the runs changes no bit.
    terms = np.sort(values * weights[:, np.newaxis], axis=0)
    return np.asarray(terms.sum(axis=0) / weights.sum())


class _MapSource(NamedTuple):
    """The name and the maps of one run of a pool."""

    name: str
    maps: Sequence[Maps]


def _pooled_maps(members: Sequence[Predictions], names: Sequence[str]) -> LazyMaps:
    parts = [
        _MapSource(name, member.maps or ())
        for name, member in zip(names, members, strict=True)
    ]
    on_disk = all(are_on_disk(part.maps) for part in parts)
    return LazyMaps(partial(_maps, parts), range(members[0].n), on_disk=on_disk)


def _maps(parts: Sequence[_MapSource], row: int) -> Maps:
    first: Maps | None = None
    labels = []
    probs: Any = np.float64(0.0)
    entropy: Any = np.float64(0.0)
    for name, all_maps in parts:
        maps = all_maps[row]
        first = maps if first is None else first
        check_same_item(first, maps, row, (parts[0].name, name))
        draws = len(maps.draw_labels)
        # Weighted by whole numbers and divided at the end: such sums of float32 are
        # exact in float64, so that the order of the runs changes no bit.
        probs = probs + maps.mean_probs * np.float64(draws)
        entropy = entropy + maps.expected_entropy * np.float64(draws)
        labels.append(maps.draw_labels)
    assert first is not None
    total = sum(map(len, labels))
    return Maps(
        mean_probs=(probs / total).astype(np.float32),
        expected_entropy=(entropy / total).astype(np.float32),
        draw_labels=np.concatenate(labels),
        raters=first.raters,
        grid=first.grid,
    )


def _header(members: Sequence[Predictions]) -> Header:
    headers = [member.header for member in members]
    shared: dict[str, Any] = {}
    for field in fields(Header):
        values = [getattr(header, field.name) for header in headers]
        # Fields on the data may come from any file. Fields on the runs are kept only if
        # all files agree.
        if field.name in _DATA_FIELDS:
            values = [value for value in values if value not in (None, ())]
        if values and all(value == values[0] for value in values):
            shared[field.name] = values[0]
    seconds = [h.seconds for h in headers if h.seconds is not None]
    shared["seconds"] = sum(seconds) if len(seconds) == len(headers) else None
    shared["draws"] = _draws(members)
    shared["pooled"] = sum(header.pooled or 1 for header in headers)
    return Header(**shared)


def _draws(members: Sequence[Predictions]) -> str | None:
    """Return what the draws of a pool vary; None if that is not one thing.

    Models of one draw each are draws of models. Models that draw labels vary both.
    """
    first = members[0].header.draws
    if len(members) == 1:
        return first
    known = (m.header.draws or ("models" if m.draws == 1 else None) for m in members)
    return "models" if set(known) == {"models"} else None
