"""Entries of a set, of a set against upstream items, and means over sets."""

import math
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from qualms import scores
from qualms.arrays import Array, Index
from qualms.evaluate.entry import Entry
from qualms.inference import (
    Design,
    Influence,
    influence_of,
    mean_influence,
)
from qualms.predictions import Predictions
from qualms.scores.as_published import url as published

ALL_ALIKE = "every nearest neighbour is right, or every one is wrong"
NO_VOTES = "fewer than two items with votes, or all alike"
_DECIMALS = 4
_ROUNDED = ("recall_at_1", "r_auroc", "crop_rate", "human_alignment")
"""Scores that the released code rounds before it takes means over sets."""


class EmbeddedSet(NamedTuple):
    """The items of one set, and what their nearest neighbours are."""

    name: str
    predictions: Predictions
    hits: Array
    design: Design
    first: int
    """Number of its first item among those of all sets."""

    @property
    def numbers(self) -> Index:
        """Its items among those of all sets."""
        return self.first + np.arange(self.predictions.n)

    def uncertainty(self, name: str) -> Array:
        """Of each item, (N,)."""
        found: Array = self.predictions.named("uncertainty")[name]
        return found


def set_entries(one: EmbeddedSet, u: str, *, theirs: bool) -> Iterator[Entry]:
    """R@1, R-AUROC, crop rate and human alignment, of what the predictions carry.

    `theirs` adds the numbers of the released code.
    """
    predictions, right, value = one.predictions, one.hits, one.uncertainty(u)
    released = _released(one, u) if theirs else {}

    def entry(score: Any, found: float, influence: Any, why: str = "") -> Entry:
        return Entry(
            score=score,
            value=found,
            index=one.numbers,
            influence=influence,
            subset=one.name,
            as_published=released.get(score.__name__, math.nan),
            why=why,
        )

    recall = partial(mean_influence, right, about=scores.about(scores.recall_at_1))
    yield entry(scores.recall_at_1, float(right.mean()), recall)
    ranked = value, 1 - right, right
    made = partial(influence_of, scores.weighted_auroc, *ranked)
    yield entry(scores.r_auroc, scores.weighted_auroc(*ranked), made, ALL_ALIKE)
    cropped = predictions.named("uncertainty_cropped").get(u)
    if cropped is not None:
        made = partial(influence_of, scores.crop_rate, value, cropped)
        yield entry(scores.crop_rate, scores.crop_rate(value, cropped), made)
    votes = predictions.get("votes")
    if votes is not None:
        made = partial(influence_of, scores.human_alignment, value, votes)
        aligned = scores.human_alignment(value, votes).value
        yield entry(scores.human_alignment, aligned, made, NO_VOTES)


def _released(one: EmbeddedSet, u: str) -> dict[str, float]:
    """The scores of a set as the released code computes them."""
    arrays = one.predictions.arrays
    both, value = (arrays["embedding"], arrays["target"]), one.uncertainty(u)
    hits = published.retrieval_hits(*both)
    found = {
        "recall_at_1": published.recall_at_1(*both, hits=hits),
        "r_auroc": published.r_auroc(*both, value, hits=hits),
    }
    cropped = one.predictions.named("uncertainty_cropped").get(u)
    if cropped is not None:
        found["crop_rate"] = scores.crop_rate(value, cropped)
    votes = one.predictions.get("votes")
    if votes is not None:
        found["human_alignment"] = published.human_alignment(value, votes).value
    return found


def top_one_entry(upstream: EmbeddedSet) -> Iterator[Entry]:
    """Top-1 accuracy on upstream items, where classes are predicted."""
    predicted = upstream.predictions.get("predicted")
    if predicted is not None:
        right = (predicted == upstream.predictions.arrays["target"]).astype(np.float64)
        share = float(right.mean())
        yield Entry(
            score=scores.accuracy,
            value=share,
            index=upstream.numbers,
            influence=partial(
                mean_influence, right, about=scores.about(scores.accuracy)
            ),
            subset=upstream.name,
            as_published=share,
        )


Sides = tuple[EmbeddedSet, EmbeddedSet]


def contrast_entries(
    sides: Sides, rows: Sequence[Index], u: str, *, theirs: bool
) -> Iterator[Entry]:
    """A set against upstream items: told apart by `u`, and retrieved together.

    `sides` are the upstream set and the other one, `rows` the items of each that take
    part.
    """
    index = np.concatenate(
        [one.numbers[own] for one, own in zip(sides, rows, strict=True)]
    )
    upstream = np.repeat([True, False], [len(own) for own in rows])
    both = {name: _joined(sides, rows, name) for name in ("embedding", "target")}
    value = np.concatenate(
        [one.uncertainty(u)[own] for one, own in zip(sides, rows, strict=True)]
    )
    target = scores.mixed_target(both["target"], upstream)
    right = scores.retrieval_hits(both["embedding"], target)
    ranked = value, 1 - right, right
    released = _released_contrast(sides, rows, u) if theirs else {}
    for score, found, influence in (
        (
            scores.ood_auroc,
            scores.ood_auroc(value, ~upstream),
            partial(influence_of, scores.ood_auroc, value, ~upstream),
        ),
        (
            scores.mixed_r_auroc,
            scores.weighted_auroc(*ranked),
            partial(influence_of, scores.weighted_auroc, *ranked),
        ),
    ):
        yield Entry(
            score=score,
            value=float(found),
            index=index,
            influence=influence,
            subset=sides[1].name,
            as_published=released.get(score.__name__, math.nan),
            why=ALL_ALIKE,
        )


def _joined(sides: Sides, rows: Sequence[Index], name: str) -> Any:
    arrays = [one.predictions.arrays[name] for one in sides]
    return np.concatenate([a[own] for a, own in zip(arrays, rows, strict=True)])


def _released_contrast(
    sides: Sides, rows: Sequence[Index], u: str
) -> Mapping[str, float]:
    """The same by the released code, whose classes may collide where it draws items."""
    counts = [one.predictions.n for one in sides]
    everyone = [np.arange(count) for count in counts]
    upstream = np.repeat([True, False], counts)
    value = np.concatenate([one.uncertainty(u) for one in sides])
    sampled = np.concatenate([rows[0], counts[0] + rows[1]])
    return {
        "ood_auroc": published.ood_auroc(value[sampled], ~upstream[sampled]),
        "mixed_r_auroc": published.mixed_r_auroc(
            _joined(sides, everyone, "embedding"),
            _joined(sides, everyone, "target"),
            value,
            upstream,
            sampled=sampled,
        ),
    }


def average_entries(sets: Sequence[Sequence[Entry]], subset: str) -> Iterator[Entry]:
    """The unweighted mean over sets of every score that all of them have."""
    named = [{(e.score, str(e.settings)): e for e in each} for each in sets]
    for key in named[0] if named else ():
        each = [one[key] for one in named if key in one]
        if len(each) == len(named):
            yield _average(each, subset)


def _average(each: Sequence[Entry], subset: str) -> Entry:
    first = each[0]
    theirs = [entry.as_published for entry in each]
    if first.score.__name__ in _ROUNDED:
        theirs = [round(value, _DECIMALS) for value in theirs]
    return Entry(
        score=first.score,
        value=math.fsum(entry.value for entry in each) / len(each),
        index=np.concatenate([entry.index for entry in each]),
        influence=partial(_average_influence, each),
        subset=subset,
        settings=first.settings,
        as_published=math.fsum(theirs) / len(theirs),
        why=first.why,
        ranked=first.ranked,
    )


def _average_influence(each: Sequence[Entry]) -> Influence | None:
    """What each item changes in a mean over sets: as much less as there are sets."""
    found = [None if e.influence is None else e.influence() for e in each]
    known = [one for one in found if one is not None]
    if len(known) < len(each):
        return None
    lacking = [one for one in known if one.values is None]
    if lacking:
        return lacking[0]
    about = scores.about(each[0].score)
    parts = [
        np.zeros(len(e.index), np.int64) if one.part is None else one.part
        for one, e in zip(known, each, strict=True)
    ]
    return Influence(
        value=math.fsum(one.value for one in known) / len(known),
        values=np.concatenate([one.values for one in known if one.values is not None])
        / len(known),
        scale="fisher" if about.low < 0 else "logit",
        low=about.low,
        high=about.high,
        part=np.concatenate(parts),
        freedom=min(one.freedom for one in known),
        inflation=max(one.inflation for one in known),
    )
