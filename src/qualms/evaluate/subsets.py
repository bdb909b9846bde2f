"""Sets of items in tables: all, in_domain, shifted, balanced, and groups.

If a file marks some of its items as shifted, results are about the in-domain ones, with
the shifted ones beside them. A group is then divided as well: its subsets are
`in_domain/group=a`, `shifted/group=a` and `all/group=a`; else there is `group=a`. If
several arrays group items, `group/site=a` is a group of the array `group/site`.
"""

import re
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from qualms.arrays import Flags, Index
from qualms.inference import Design, sampling_design
from qualms.predictions import Predictions
from qualms.scores import balanced_joint


class OfSubset(Protocol):
    """A score, curve or histogram of some items."""

    @property
    def subset(self) -> str:
        """Name of the set of items that it is about."""


T = TypeVar("T", bound=OfSubset)
SIDE_BY_SIDE = ("in_domain", "shifted")
"""Sets that are shown side by side if a file marks shifted items."""
CHOICES = (*SIDE_BY_SIDE, "all")
"""Sets of items that a user may choose."""
_NUMBERED = 20
"""Most groups whose names are numbers that are never taken for measured values."""
_FEW_EACH = 10
"""Fewer items than this for each number are no groups."""
_AGE = re.compile(r"(?:^|[^a-z])ages?(?:[^a-z]|$)|years|alter", re.IGNORECASE)
_GROUP = re.compile(r"(?:(in_domain|shifted|all)/)?(group(?:/[^=]*)?)=(.*)", re.DOTALL)
"""Set of items, name of the array that groups them, and name of the group."""
_WORDS = {
    "all": "every item",
    "in_domain": "items not marked as shifted",
    "shifted": "items marked as shifted",
    "balanced": "as many in-domain as shifted items; the fewer ones are repeated",
}


def subset_words(subset: str) -> str:
    """Return a description of the items of a subset.

    >>> subset_words("group=clinic A")
    "items whose array 'group' says 'clinic A'"
    >>> subset_words("shifted/group/site=a")
    "items marked as shifted whose array 'group/site' says 'a'"
    """
    group = _GROUP.fullmatch(subset)
    if group is None:
        return _WORDS[subset]
    kind, array, name = group.groups()
    items = _WORDS[kind] if kind else "items"
    return f"{items} whose array '{array}' says {name!r}"


def subset_label(subset: str) -> str:
    """Return the name of a subset in a table or legend.

    >>> subset_label("in_domain"), subset_label("in_domain/group/site=site_1")
    ('in-domain', 'in-domain, site=site_1')
    """
    group = _GROUP.fullmatch(subset)
    if group is None:
        return subset.replace("_", "-")
    kind, array, name = group.groups()
    of_kind = f"{kind.replace('_', '-')}, " if kind else ""
    return f"{of_kind}{array.removeprefix('group/')}={name}"


def is_group(subset: str) -> bool:
    """Return whether the items of a subset are those of one group."""
    return _GROUP.fullmatch(subset) is not None


def group_name(subset: str) -> str:
    """Return the name of the group in its array; '' if the subset is no group.

    >>> group_name("shifted/group=a"), group_name("group/site=a")
    ('a', 'a')
    """
    group = _GROUP.fullmatch(subset)
    return "" if group is None else group[3]


def group_array(subset: str) -> str:
    """Return the name of the array that groups the items; '' if they are no group.

    >>> group_array("shifted/group=a"), group_array("group/site=a"), group_array("all")
    ('group', 'group/site', '')
    """
    group = _GROUP.fullmatch(subset)
    return "" if group is None else group[2]


def subset_kind(subset: str) -> str:
    """Return the set of items in which the group lies, or the subset itself.

    >>> subset_kind("shifted/group=a"), subset_kind("group=a"), subset_kind("balanced")
    ('shifted', 'all', 'balanced')
    """
    group = _GROUP.fullmatch(subset)
    return subset if group is None else group[1] or "all"


def shown_subsets(available: Collection[str], *, wanted: str = "") -> tuple[str, ...]:
    """Return the sets of items that results show; verdicts are about the first.

    Args:
        available: The subsets of a file that have scores.
        wanted: The set that the user chose; '' for in-domain items with the shifted
            ones beside them, or all if the file does not mark some as shifted.
    """
    if wanted:
        return (wanted,)
    return SIDE_BY_SIDE if {*SIDE_BY_SIDE} <= {*available} else ("all",)


def shown_things(
    things: Iterable[T],
    shown: Collection[str],
    *,
    what: Callable[[T], Hashable],
) -> tuple[T, ...]:
    """Return the things, such as scores, about the shown sets of items.

    Things that exist only for all items together, such as OOD scores, are included.

    Args:
        things: Scores, curves or histograms.
        shown: Sets of items, from `shown_subsets`.
        what: Returns a key of a thing that does not depend on its items.
    """
    things = list(things)
    divided = {what(thing) for thing in things if subset_kind(thing.subset) != "all"}
    return tuple(
        thing
        for thing in things
        if subset_kind(thing.subset) in shown
        or (thing.subset == "all" and what(thing) not in divided)
    )


def require_subset(predictions: Predictions, wanted: str) -> None:
    """Raise unless a file has the set of items that the user chose."""
    if wanted in ("", "all"):
        return
    if not _some_shifted(predictions, known_items(predictions)):
        raise ValueError(
            f"subset must be all for {predictions.source}, got {wanted!r}: no item is "
            "marked as shifted there, or all are; mark some of them in 'shifted', or "
            "leave the subset out"
        )


def _some_shifted(predictions: Predictions, index: Index) -> bool:
    """Return whether some, but not all, of the items at `index` are shifted."""
    shifted = predictions.get("shifted")
    return shifted is not None and 0 < int(shifted[index].sum()) < len(index)


def subsets(
    predictions: Predictions, *, by_group: bool, seed: int
) -> Mapping[str, Index]:
    """Return item indices by subset name; 'all' always comes first.

    Items of no known class are in no subset.
    """
    everyone = known_items(predictions)
    chosen: dict[str, Index] = {"all": everyone}
    shifted = predictions.get("shifted")
    if shifted is not None and _some_shifted(predictions, everyone):
        moved = shifted[everyone]
        chosen["in_domain"] = everyone[~moved]
        chosen["shifted"] = everyone[moved]
        chosen["balanced"] = everyone[balanced_joint(moved, seed=seed)]
    if by_group:
        ungrouped = dict(chosen)
        for array, group in group_arrays(predictions).items():
            chosen |= grouped(ungrouped, group, array=array)
    return chosen


def group_arrays(predictions: Predictions) -> dict[str, NDArray[Any]]:
    """Return the arrays that group items by name: `group`, and any `group/<name>`.

    An array of measured values, such as ages, is none of them.
    """
    groups = _all_groups(predictions)
    return {name: array for name, array in groups.items() if not _measured(name, array)}


def ungrouped_notes(predictions: Predictions) -> tuple[str, ...]:
    """Return a note on each array of measured values."""
    return tuple(
        f"array '{name}' holds {len(np.unique(array))} different numbers from"
        f" {array.min()} to {array.max()}, which are values and no groups: scores by"
        " group leave it out; store ranges, such as '40-59'"
        for name, array in _all_groups(predictions).items()
        if _measured(name, array)
    )


def _all_groups(predictions: Predictions) -> dict[str, NDArray[Any]]:
    return {
        name: array
        for name, array in predictions.arrays.items()
        if name == "group" or name.startswith("group/")
    }


def _measured(name: str, array: NDArray[Any]) -> bool:
    """Return whether the names of groups seem to be measured values, such as ages."""
    if array.dtype.kind != "i" or len(values := np.unique(array)) <= _NUMBERED:
        return False
    return bool(_AGE.search(name)) or len(array) < _FEW_EACH * len(values)


def grouped(
    chosen: Mapping[str, Index], group: NDArray[Any], *, array: str = "group"
) -> dict[str, Index]:
    """Return the indices of each group, separately for in-domain and shifted items.

    Args:
        chosen: Item indices by subset, including in-domain and shifted ones, if any.
        group: (N,) name of the group of each item.
        array: Name of the array `group`.
    """
    kinds = (*SIDE_BY_SIDE, "all") if "shifted" in chosen else ("all",)
    groups: dict[str, Index] = {}
    for kind in kinds:
        index = chosen[kind]
        prefix = f"{kind}/{array}" if len(kinds) > 1 else array
        for name in np.unique(group[index]):
            groups[f"{prefix}={name}"] = index[group[index] == name]
    return groups


def drawn_subsets(chosen: Mapping[str, Index]) -> dict[str, Index]:
    """Return the subsets for which diagrams and histograms are drawn.

    Groups and the balanced set, which holds items twice, are left out.
    """
    return {
        subset: index
        for subset, index in chosen.items()
        if subset != "balanced" and not is_group(subset)
    }


def known_items(predictions: Predictions) -> Index:
    """Return the items whose class is known, by number.

    Raises:
        ValueError: If there are none.
    """
    is_known = predictions.get("known")
    if is_known is None:
        return np.arange(predictions.n)
    if not is_known.any():
        raise ValueError(
            f"{predictions.source}: no item has a known class, so there is nothing to "
            "score; give 'target' where it is known"
        )
    return np.flatnonzero(is_known)


def outside(predictions: Predictions) -> Flags | None:
    """Return a mask (N,) of shifted items and of no known class; None without both."""
    shifted, is_known = predictions.get("shifted"), predictions.get("known")
    marked = np.zeros(predictions.n, np.bool_)
    if shifted is not None:
        marked |= shifted
    if is_known is not None:
        marked |= ~is_known
    return marked if marked.any() and not marked.all() else None


def unknown_notes(
    predictions: Predictions, *, in_ood_scores: bool = True
) -> tuple[str, ...]:
    """Return a note on items of no known class; OOD scores use them if so stated."""
    is_known = predictions.get("known")
    count = 0 if is_known is None else int((~is_known).sum())
    if not count:
        return ()
    subject = "1 item has" if count == 1 else f"{count} items have"
    if in_ood_scores:
        return (
            f"{subject} no known class: counted as shifted in OOD and SCOD scores, and "
            "left out of all others",
        )
    return (f"{subject} no known target: left out of every score",)


def design_of(predictions: Predictions, *kinds: Flags | None) -> Design:
    """Return the sampling design of a file, with in-domain and shifted samples.

    `kinds` separate further samples, such as upstream and downstream items. Items of no
    known class are a sample of their own.
    """
    sample = np.zeros(predictions.n, np.int64)
    for kind in (predictions.get("shifted"), predictions.get("known"), *kinds):
        if kind is not None:
            sample = 2 * sample + kind
    return sampling_design(
        predictions.n, sample=sample, cluster=predictions.get("cluster")
    )


def rebalanced(group: NDArray[Any], shifted: Flags, *, seed: int = 0) -> Index | None:
    """Return shifted rows, their groups in in-domain proportions (Band et al., D.5).

    None where a group has no shifted row.

    >>> group = np.array([0, 0, 0, 1, 0, 1, 1, 1])
    >>> drawn = group[rebalanced(group, np.arange(8) >= 4)]
    >>> np.bincount(drawn)
    array([7500, 2500])
    """
    # Imported here because scoring a file needs no datasets.
    from qualms.datasets import rebalanced_rows

    names, counts = np.unique(group[~shifted], return_counts=True)
    rows = np.flatnonzero(shifted)
    if not np.isin(names, group[rows]).all():
        return None
    shares = {
        name.item(): int(count) for name, count in zip(names, counts, strict=True)
    }
    return rows[rebalanced_rows(group[rows], shares=shares, seed=seed)]
