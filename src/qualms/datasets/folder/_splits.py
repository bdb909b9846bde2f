"""Splits of a user's items: stated, or drawn with a seed.

Where no item states its split, 70 of 100 train, 15 are for validation and 15 for
testing. Where `val` or `test` has no items, it gets its share of those in `train`.
Items of a cluster stay together. Shares hold within classes and groups (or tenths of
the range of a number), as far as clusters allow it, and every class has an item in
`train`. Shifted items are for testing, and so are all items of a cluster that has one.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from qualms.datasets._recipe import DatasetError
from qualms.datasets.folder.listing import OwnItem

SHARES: Mapping[str, float] = {"train": 0.7, "val": 0.15, "test": 0.15}
RANGES = 10
"""Parts of the range of a number that are divided alike."""


def assign_splits(
    items: Sequence[OwnItem], values: Sequence[float] | None, seed: int
) -> list[str]:
    """Return the split of each item; `values` are the targets if they are numbers."""
    _check_stated(items)
    _check_clusters(items)
    names = [_cluster(item) for item in items]
    split = dict[str, str]()
    for name, item in zip(names, items, strict=True):
        if item.shifted:
            split[name] = item.split or "test"
    for name, item in zip(names, items, strict=True):
        split.setdefault(name, item.split)
    shares = _drawn_shares(items)
    strata = _strata(items, values)
    free: dict[str, list[int]] = {
        name: []
        for name, name_split in split.items()
        if name_split in ("", "train") and shares
    }
    for row, name in enumerate(names):
        if name in free:
            free[name].append(row)
    split |= _draw_splits(free, strata, shares, seed)
    final = [
        f"{split[name]}/shifted" if item.shifted else split[name]
        for name, item in zip(names, items, strict=True)
    ]
    _check_all_splits(final)
    return final


def _check_all_splits(splits: Sequence[str]) -> None:
    """Raise if a split has no items."""
    missing = [split for split in SHARES if split not in splits]
    if missing:
        raise DatasetError(
            f"there must be items to train, validate and test on, and none of the"
            f" {len(splits)} is left for {' and '.join(missing)} (items of a cluster"
            " stay together, and those of one with shifted items are for testing);"
            " add items, or state splits"
        )


def _cluster(item: OwnItem) -> str:
    return f"cluster {item.cluster}" if item.cluster else f"item {item.path}"


def _check_stated(items: Sequence[OwnItem]) -> None:
    """Raise unless every item that is not shifted states its split, or none does."""
    plain = [item for item in items if not item.shifted]
    with_split = [item for item in plain if item.split]
    if with_split and len(with_split) < len(plain):
        without = next(item for item in plain if not item.split)
        raise DatasetError(
            f"{without.where} must state a split as {with_split[0].where} does; fill"
            " all of them, or none"
        )
    for item in items:
        if item.shifted and item.split == "train":
            raise DatasetError(
                f"{item.where} is shifted and in the split train; shifted items are for"
                " testing: state test, or nothing"
            )
    if with_split and not any(item.split == "train" for item in with_split):
        raise DatasetError(
            f"there must be items to train on, got none in the split train:"
            f" {with_split[0].where} is in {with_split[0].split}; state train for some"
        )


def _drawn_shares(items: Sequence[OwnItem]) -> dict[str, float]:
    """Return the shares of the splits to draw; empty where all are stated."""
    stated_splits = {item.split for item in items if not item.shifted}
    shares = {n: s for n, s in SHARES.items() if n == "train" or n not in stated_splits}
    return shares if len(shares) > 1 else {}


def _strata(items: Sequence[OwnItem], values: Sequence[float] | None) -> list[str]:
    """Return the stratum of each item, within which the shares hold, as text."""
    if values is None:
        return [f"{item.target}\n{item.group}" for item in items]
    rank = np.argsort(np.argsort(values, kind="stable"), kind="stable")
    tenth = rank * RANGES // len(items)
    return [f"{part}\n{i.group}" for part, i in zip(tenth, items, strict=True)]


def _draw_splits(
    free: Mapping[str, Sequence[int]],
    strata: Sequence[str],
    shares: Mapping[str, float],
    seed: int,
) -> dict[str, str]:
    """Draw the split of each cluster in `free`, stratum after stratum."""
    usual = {
        name: Counter(strata[row] for row in rows).most_common(1)[0][0]
        for name, rows in free.items()
    }
    shuffled = np.random.default_rng(seed).permutation(sorted(free)).tolist()
    order = sorted(shuffled, key=usual.__getitem__)
    total, count = sum(shares.values()), dict.fromkeys(shares, 0)
    trained: set[str] = set()
    split: dict[str, str] = {}
    placed = 0
    for name in order:
        rows = free[name]
        placed += len(rows)
        new = {strata[row].partition("\n")[0] for row in rows} - trained
        owed = {s: share / total * placed - count[s] for s, share in shares.items()}
        chosen = "train" if new else max(owed, key=owed.__getitem__)
        if chosen == "train":
            trained |= new
        split[name] = chosen
        count[chosen] += len(rows)
    return split


def _check_clusters(items: Iterable[OwnItem]) -> None:
    """Raise if a cluster is stated to be in two splits."""
    first: dict[str, OwnItem] = {}
    for item in items:
        if not item.cluster or not _stated_split(item):
            continue
        other = first.setdefault(item.cluster, item)
        if _stated_split(other) != _stated_split(item):
            raise DatasetError(
                f"the cluster {item.cluster!r} must be in one split, got"
                f" {_stated_split(other)} in {other.where} and {_stated_split(item)} in"
                f" {item.where}; items that belong together must not be trained and"
                " tested on"
            )


def _stated_split(item: OwnItem) -> str:
    return item.split or ("test" if item.shifted else "")
