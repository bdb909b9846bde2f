"""Judging embeddings: is a wrong nearest neighbour announced by the uncertainty?"""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qualms import scores
from qualms.evaluate.drawings import histogram
from qualms.evaluate.entry import Entry, Judgement, ScoreOptions
from qualms.evaluate.subsets import sample_of, subsets
from qualms.predictions import Predictions
from qualms.scores import Plan

Array = NDArray[np.float64]
Index = NDArray[np.int64]

ALL_ALIKE = "every nearest neighbour is right, or every one is wrong"
WHY: dict[Callable[..., Any], str] = {
    scores.r_auroc: ALL_ALIKE,
    scores.mixed_r_auroc: ALL_ALIKE,
    scores.human_alignment: "fewer than two items with votes, or all alike",
}
NEIGHBOURS_FIXED = (
    "intervals resample items and keep each item's neighbour: they do not "
    "cover the choice of the gallery"
)


def embedding(
    predictions: Predictions, _val: Predictions | None, options: ScoreOptions
) -> Judgement:
    """Entries of one embedding file; upstream items, if any, serve as the contrast."""
    upstream = predictions.get("upstream")
    down = np.arange(predictions.n) if upstream is None else np.flatnonzero(~upstream)
    if down.size < 2:
        raise ValueError(
            f"{predictions.source}: there must be at least two items that are not "
            f"upstream, for one to be the other's neighbour, got {down.size}; add items"
        )
    hits = np.zeros(predictions.n)
    hits[down] = _hits(predictions, down)
    entries: list[Entry] = []
    chosen = subsets(predictions, by_group=options.by_group, seed=options.seed)
    for subset, index in chosen.items():
        kept = index if upstream is None else index[~upstream[index]]
        if kept.size:
            entries += _retrieval(predictions, hits, subset, kept)
    if upstream is not None and upstream.any() and down.size:
        entries += _contrast(predictions, upstream)
    histograms = tuple(
        histogram(
            value[down],
            {"right": hits[down] > 0.5, "wrong": hits[down] <= 0.5},
            name=name,
        )
        for name, value in predictions.named("uncertainty").items()
    )
    return Judgement(
        entries=tuple(entries),
        histograms=histograms,
        notes=(NEIGHBOURS_FIXED, *_votes_note(predictions)),
        samples=(
            sample_of(
                predictions, None if upstream is None else upstream.astype(np.int64)
            ),
        ),
    )


def _hits(predictions: Predictions, index: Index) -> Array:
    embedding, target = predictions.arrays["embedding"], predictions.arrays["target"]
    return scores.retrieval_hits(embedding[index], target[index])


def _retrieval(
    predictions: Predictions, hits: Array, subset: str, index: Index
) -> Iterator[Entry]:
    right = hits[index]
    yield _entry(scores.recall_at_1, scores.mean_plan(right), subset, index)
    cropped = predictions.named("uncertainty_cropped")
    votes = predictions.get("votes")
    for name, values in predictions.named("uncertainty").items():
        value = values[index]
        plan = scores.weighted_auroc_plan(value, 1 - right, right)
        yield _entry(scores.r_auroc, plan, subset, index, name)
        if name in cropped:
            plan = scores.plan_of(scores.crop_rate, value, cropped[name][index])
            yield _entry(scores.crop_rate, plan, subset, index, name)
        if votes is not None:
            plan = scores.replay_plan(_alignment, value, votes[index])
            yield _entry(scores.human_alignment, plan, subset, index, name)


def _contrast(predictions: Predictions, upstream: NDArray[np.bool_]) -> Iterator[Entry]:
    """Downstream items against upstream ones, and retrieval on their union."""
    everyone = np.arange(predictions.n)
    target = scores.mixed_target(predictions.arrays["target"], upstream)
    mixed = scores.retrieval_hits(predictions.arrays["embedding"], target)
    for name, value in predictions.named("uncertainty").items():
        plan = scores.auroc_plan(value, ~upstream)
        yield _entry(scores.ood_auroc, plan, "all", everyone, name)
        plan = scores.weighted_auroc_plan(value, 1 - mixed, mixed)
        yield _entry(scores.mixed_r_auroc, plan, "all", everyone, name)


def _entry(
    score: Callable[..., Any],
    plan: Plan,
    subset: str,
    index: Index,
    u: str = "",
) -> Entry:
    return Entry(
        score=score,
        plan=plan,
        index=index,
        subset=subset,
        settings={"u": u} if u else {},
        why=WHY.get(score, ""),
    )


def _alignment(uncertainty: Array, votes: Array) -> float:
    return scores.human_alignment(uncertainty, votes).value


def _votes_note(predictions: Predictions) -> tuple[str, ...]:
    votes = predictions.get("votes")
    if votes is None:
        return ()
    silent = int((votes.sum(axis=1) == 0).sum())
    return (f"{silent} items without votes are left out of human alignment",)
