"""Entries of a set, of a set against upstream items, and means over sets."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
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
from qualms.scores import spearman
from qualms.scores.as_published import url as published
from qualms.scores.human import spearman_influence

ALL_ALIKE = "every nearest neighbour is right, or every one is wrong"
AMBIGUITY = "ambiguity"
"""The array `extra/<name>` in which a simulator says how ambiguous items are."""
ALL_EQUAL = "all values are equal"
NO_VOTES = "fewer than two items with votes, or all alike"
_DECIMALS = 4
_ROUNDED = ("recall_at_1", "r_auroc", "crop_rate", "human_alignment")
"""Scores that the released code rounds before it takes means over sets."""


class EmbeddedSet(NamedTuple):
    """The items of one set, and whether their nearest neighbours are right."""

    name: str
    predictions: Predictions
    hits: Array
    design: Design
    first: int
    """Number of its first item among those of all sets."""

    @property
    def numbers(self) -> Index:
        """Numbers of its items among those of all sets."""
        return self.first + np.arange(self.predictions.n)

    def uncertainty(self, name: str) -> Array:
        """Return the uncertainty `name` of each item, (N,)."""
        values: Array = self.predictions.named("uncertainty")[name]
        return values


def set_entries(embedded: EmbeddedSet, u: str, *, released: bool) -> Iterator[Entry]:
    """Yield R@1, R-AUROC, crop rate and human alignment, as far as arrays allow.

    `released` adds the numbers of the released code.
    """
    predictions, hits, value = (
        embedded.predictions,
        embedded.hits,
        embedded.uncertainty(u),
    )
    released_scores = _released(embedded, u) if released else {}

    def entry(score: Any, number: float, influence: Any, why: str = "") -> Entry:
        return Entry(
            score=score,
            value=number,
            index=embedded.numbers,
            influence=influence,
            subset=embedded.name,
            as_published=released_scores.get(score.__name__, math.nan),
            why=why,
        )

    recall = partial(mean_influence, hits, about=scores.about(scores.recall_at_1))
    yield entry(scores.recall_at_1, float(hits.mean()), recall)
    ranked = {"score": value, "positive_weight": 1 - hits, "negative_weight": hits}
    by_item = partial(influence_of, scores.weighted_auroc, **ranked)
    area = entry(
        scores.r_auroc,
        scores.weighted_auroc(**ranked),
        by_item,
        ALL_ALIKE,
    )
    yield replace(area, inputs=partial(dict, uncertainty=value))
    cropped = predictions.named("uncertainty_cropped").get(u)
    if cropped is not None:
        by_item = partial(
            influence_of, scores.crop_rate, uncertainty=value, cropped=cropped
        )
        yield entry(
            scores.crop_rate,
            scores.crop_rate(uncertainty=value, cropped=cropped),
            by_item,
        )
    votes = predictions.get("votes")
    if votes is not None:
        by_item = partial(
            influence_of, scores.human_alignment, uncertainty=value, votes=votes
        )
        aligned = scores.human_alignment(uncertainty=value, votes=votes).value
        yield entry(scores.human_alignment, aligned, by_item, NO_VOTES)
    truth = predictions.get(f"extra/{AMBIGUITY}")
    if truth is not None:
        yield _truth_entry(embedded, value, truth.astype(np.float64))


def _truth_entry(embedded: EmbeddedSet, value: Array, truth: Array) -> Entry:
    """Return the rank correlation of an uncertainty with the true ambiguity."""
    return Entry(
        name="ambiguity_spearman",
        score=scores.human_alignment,
        value=spearman(value, truth),
        index=embedded.numbers,
        influence=partial(spearman_influence, value, truth),
        subset=embedded.name,
        why=ALL_EQUAL,
        ranked=False,
    )


def _released(embedded: EmbeddedSet, u: str) -> dict[str, float]:
    """Return the scores of a set as the released code computes them."""
    arrays = embedded.predictions.arrays
    pair, value = (arrays["embedding"], arrays["target"]), embedded.uncertainty(u)
    hits = published.retrieval_hits(*pair)
    values = {
        "recall_at_1": published.recall_at_1(*pair, hits=hits),
        "r_auroc": published.r_auroc(
            embedding=pair[0], target=pair[1], uncertainty=value, hits=hits
        ),
    }
    cropped = embedded.predictions.named("uncertainty_cropped").get(u)
    if cropped is not None:
        values["crop_rate"] = scores.crop_rate(uncertainty=value, cropped=cropped)
    votes = embedded.predictions.get("votes")
    if votes is not None:
        values["human_alignment"] = published.human_alignment(
            uncertainty=value, votes=votes
        ).value
    return values


def top_one_entry(upstream: EmbeddedSet) -> Iterator[Entry]:
    """Yield the top-1 accuracy on upstream items, where classes are predicted."""
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
    sides: Sides, rows: Sequence[Index], u: str, *, released: bool
) -> Iterator[Entry]:
    """Yield scores of a set against upstream items: by `u`, and retrieved together.

    `sides` are the upstream set and the other one, `rows` the items of each that take
    part.
    """
    index = np.concatenate(
        [side.numbers[chosen] for side, chosen in zip(sides, rows, strict=True)]
    )
    upstream = np.repeat([True, False], [len(chosen) for chosen in rows])
    arrays = {name: _join_arrays(sides, rows, name) for name in ("embedding", "target")}
    value = np.concatenate(
        [side.uncertainty(u)[chosen] for side, chosen in zip(sides, rows, strict=True)]
    )
    target = scores.mixed_target(target=arrays["target"], upstream=upstream)
    hits = scores.retrieval_hits(arrays["embedding"], target)
    ranked = {"score": value, "positive_weight": 1 - hits, "negative_weight": hits}
    released_scores = _released_contrast(sides, rows, u) if released else {}
    for score, number, influence in (
        (
            scores.ood_auroc,
            scores.ood_auroc(uncertainty=value, shifted=~upstream),
            partial(
                influence_of, scores.ood_auroc, uncertainty=value, shifted=~upstream
            ),
        ),
        (
            scores.mixed_r_auroc,
            scores.weighted_auroc(**ranked),
            partial(influence_of, scores.weighted_auroc, **ranked),
        ),
    ):
        yield Entry(
            score=score,
            value=float(number),
            index=index,
            influence=influence,
            subset=sides[1].name,
            as_published=released_scores.get(score.__name__, math.nan),
            why=ALL_ALIKE,
        )


def _join_arrays(sides: Sides, rows: Sequence[Index], name: str) -> Any:
    arrays = [side.predictions.arrays[name] for side in sides]
    return np.concatenate([a[index] for a, index in zip(arrays, rows, strict=True)])


def _released_contrast(
    sides: Sides, rows: Sequence[Index], u: str
) -> Mapping[str, float]:
    """Return the same by the released code, whose classes may collide."""
    counts = [side.predictions.n for side in sides]
    everyone = [np.arange(count) for count in counts]
    upstream = np.repeat([True, False], counts)
    value = np.concatenate([side.uncertainty(u) for side in sides])
    sampled = np.concatenate([rows[0], counts[0] + rows[1]])
    return {
        "ood_auroc": published.ood_auroc(
            uncertainty=value[sampled], shifted=~upstream[sampled]
        ),
        "mixed_r_auroc": published.mixed_r_auroc(
            embedding=_join_arrays(sides, everyone, "embedding"),
            target=_join_arrays(sides, everyone, "target"),
            uncertainty=value,
            upstream=upstream,
            sampled=sampled,
        ),
    }


def average_entries(sets: Sequence[Sequence[Entry]], subset: str) -> Iterator[Entry]:
    """Yield the unweighted mean over sets of every score that all of them have."""
    named = [{(e.score_name, str(e.settings)): e for e in entries} for entries in sets]
    for key in named[0] if named else ():
        entries = [by_key[key] for by_key in named if key in by_key]
        if len(entries) == len(named):
            yield _average(entries, subset)


def _average(entries: Sequence[Entry], subset: str) -> Entry:
    first = entries[0]
    released = [entry.as_published for entry in entries]
    if first.score.__name__ in _ROUNDED:
        released = [round(value, _DECIMALS) for value in released]
    return Entry(
        score=first.score,
        value=math.fsum(entry.value for entry in entries) / len(entries),
        index=np.concatenate([entry.index for entry in entries]),
        influence=partial(_average_influence, entries),
        subset=subset,
        settings=first.settings,
        name=first.name,
        as_published=math.fsum(released) / len(released),
        why=first.why,
        ranked=first.ranked,
        inputs=partial(_joined_inputs, entries),
    )


def _joined_inputs(entries: Sequence[Entry]) -> Mapping[str, Array]:
    """Return the uncertainty of all items; nothing where some sets have none."""
    values = [entry.uncertainty for entry in entries]
    known = [value for value in values if value is not None]
    return {"uncertainty": np.concatenate(known)} if len(known) == len(values) else {}


def _average_influence(entries: Sequence[Entry]) -> Influence | None:
    """Return the influence of each item on a mean over sets."""
    optional = [None if e.influence is None else e.influence() for e in entries]
    influences = [influence for influence in optional if influence is not None]
    if len(influences) < len(entries):
        return None
    without_values = [influence for influence in influences if influence.values is None]
    if without_values:
        return without_values[0]
    about = scores.about(entries[0].score)
    parts = [
        np.zeros(len(e.index), np.int64) if influence.part is None else influence.part
        for influence, e in zip(influences, entries, strict=True)
    ]
    return Influence(
        value=math.fsum(influence.value for influence in influences) / len(influences),
        values=np.concatenate(
            [
                influence.values
                for influence in influences
                if influence.values is not None
            ]
        )
        / len(influences),
        scale="fisher" if about.low < 0 else "logit",
        low=about.low,
        high=about.high,
        part=np.concatenate(parts),
        freedom=min(influence.freedom for influence in influences),
        inflation=max(influence.inflation for influence in influences),
        uncompared=next((i.uncompared for i in influences if i.uncompared), ""),
    )
