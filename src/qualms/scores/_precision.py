"""Average precision among the nearest items, and without each of them.

In a file whose items are both queries and candidates, an item counts twice: by its own
neighbours, and as one of the neighbours of others. Both belong to its influence.

Candidates that are equally near count as in a random order of them: of t with r of the
class, the one at place j has it with probability r / t, and then of those before it
(j - 1)(r - 1) / (t - 1) are expected to have it, too.
"""

from typing import NamedTuple

import numpy as np

from qualms.arrays import Array, Flags, Index
from qualms.jit import jit

NOWHERE = -2.0
"""A value below any cosine."""


class Places(NamedTuple):
    """The nearest candidates of a query by place, (P,) each."""

    order: Index
    hit: Array
    """Chance that the candidate at this place is of the class."""
    counted: Array
    """Number of the class up to here, if it is."""
    group: Index
    """Number of the candidates that are equally near."""


class Roles(NamedTuple):
    """How the sum of average precisions changes without each candidate."""

    nearest: Array
    """(G,) changes of queries that have it among their nearest, less `beyond`."""
    beyond: Array
    """(classes,) changes of queries of a class without any further one of it."""
    own: Array
    """(G,) the part of `beyond` that is due to the query itself."""

    def of(self, classes: Index) -> Array:
        """Return the change (G,) without each candidate; `classes` (G,)."""
        return self.nearest + self.beyond[classes] - self.own


@jit
def _placed(near: Array, alike: Flags, least_place: int, tie: float) -> Places:
    """Return the candidates (G,) up to a place, counted from the farthest, and ties."""
    least = np.partition(near, least_place)[least_place]
    among = np.flatnonzero(near >= max(least - tie, NOWHERE + 0.5))
    order = among[np.argsort(-near[among])]
    places = len(order)
    hit, counted = np.zeros(places), np.zeros(places)
    group = np.zeros(places, np.int64)
    start = right = groups = 0
    while start < places:
        stop = start + 1
        while stop < places and near[order[stop - 1]] - near[order[stop]] <= tie:
            stop += 1
        tied = stop - start
        among_tied = int(np.count_nonzero(alike[order[start:stop]]))
        for place in range(tied):
            expected = 0.0
            if tied > 1:
                expected = place * (among_tied - 1) / (tied - 1)
            hit[start + place] = among_tied / tied
            counted[start + place] = right + 1 + expected
            group[start + place] = groups
        right += among_tied
        groups += 1
        start = stop
    return Places(order, hit, counted, group)


@jit
def block_precisions(near: Array, alike: Flags, tie: float) -> Array:
    """Return (B,) average precisions among the nearest of (B, G) candidates."""
    values = np.zeros(len(near))
    for query in range(len(near)):
        sought = int(np.count_nonzero(alike[query]))
        if not sought:
            continue
        found = _placed(near[query], alike[query], near.shape[1] - sought, tie)
        total = 0.0
        for place in range(sought):
            total += found.hit[place] * (found.counted[place] / (place + 1))
        values[query] = total / sought
    return values


@jit
def add_roles(
    near: Array, alike: Flags, tie: float, row: Index, classes: Index, roles: Roles
) -> None:
    """Add the roles of candidates for the queries at `row` (B,), given (B, G) arrays.

    Candidates that are equally near share the mean of their places.
    """
    for query in range(len(near)):
        sought = int(np.count_nonzero(alike[query]))
        if not sought:
            continue
        # One place more than is sought: the candidate there moves up.
        least = max(near.shape[1] - sought - 1, 0)
        found = _placed(near[query], alike[query], least, tie)
        outside = _add_places(found, sought, alike[query], roles.nearest)
        roles.beyond[classes[row[query]]] += outside
        roles.own[row[query]] += outside


@jit
def _add_places(found: Places, sought: int, alike: Flags, nearest: Array) -> float:
    """Add the roles at every place; return that of the class beyond these places."""
    places, fewer = len(found.order), max(sought - 1, 1)
    part = found.hit * found.counted / np.arange(1.0, places + 1.0)
    whole: float = part[:sought].sum()
    outside: float = (whole - part[sought - 1]) / fewer - whole / sought
    moving = 0.0
    if places > sought:
        moving = found.hit[sought] * found.counted[sought] / sought
    ahead, thinned = whole, 0.0
    of_right, of_wrong, size = np.zeros((3, found.group[-1] + 1))
    # From the last place on: the sums of what comes after, one place further up.
    for place in range(places - 1, -1, -1):
        group = found.group[place]
        size[group] += 1.0
        if place >= sought:
            of_right[group] += outside
            continue
        ahead -= part[place]
        without = (ahead + thinned) / fewer if sought > 1 else 0.0
        of_right[group] += without - whole / sought
        of_wrong[group] += (ahead + moving - whole) / sought
        if place:
            moving += found.hit[place] * found.counted[place] / place
            thinned += found.hit[place] * (found.counted[place] - 1.0) / place
    for place in range(places):
        item, group = found.order[place], found.group[place]
        if alike[item]:
            nearest[item] += of_right[group] / size[group] - outside
        else:
            nearest[item] += of_wrong[group] / size[group]
    return outside
