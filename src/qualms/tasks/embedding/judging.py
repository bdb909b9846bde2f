"""TaskJudging embeddings: does the uncertainty announce wrong nearest neighbours?"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qualms import scores
from qualms.arrays import Array, Flags, Index
from qualms.evaluate.drawings import histograms, recall_curve
from qualms.evaluate.entry import Curve, Entry, Histogram, Judgement, ScoreOptions
from qualms.evaluate.judging import ShownScores, TaskJudging
from qualms.evaluate.main_scores import MainScore
from qualms.evaluate.neighbours import (
    NeighbourSearch,
    neighbour_search,
    query_items,
    retrieved_items,
)
from qualms.evaluate.subsets import (
    design_of,
    drawn_subsets,
    known_items,
    outside,
    subsets,
    unknown_notes,
)
from qualms.inference import (
    Design,
    Influence,
    influence_of,
    joined_clusters,
    mean_influence,
    sampling_design,
)
from qualms.predictions import Predictions
from qualms.scores.arguments import called_in_order
from qualms.scores.gallery import precision_influence
from qualms.tasks.embedding._verdict import RULES

ALL_ALIKE = "every nearest neighbour is right, or every one is wrong"
WHY: dict[Callable[..., Any], str] = {
    scores.r_auroc: ALL_ALIKE,
    scores.mixed_r_auroc: ALL_ALIKE,
    scores.human_alignment: "fewer than two items with votes, or all alike",
}
NEIGHBOURS_FIXED = (
    "intervals are over the items, each with its nearest neighbour; two items that are "
    "each other's nearest count as one"
)
GALLERY_FIXED = "intervals are over the items, each with its neighbour in the gallery"
OWN_CLASSES = (
    "accuracy compares `predicted` with the targets; it says nothing where these are "
    "other classes than the network was trained on"
)


def judge_neighbours(
    predictions: Predictions, _val: Predictions | None, options: ScoreOptions
) -> Judgement:
    """Judge one embedding file; upstream items, if any, are the contrast."""
    upstream = predictions.get("upstream")
    down = query_items(predictions, options.gallery)
    search = retrieved_items(predictions, down, options.gallery)
    hits = np.zeros(predictions.n)
    hits[down] = search.hits
    entries: list[Entry] = []
    chosen = subsets(predictions, by_group=options.by_group, seed=options.seed)
    downstream = {
        subset: items
        for subset, index in chosen.items()
        if (items := index if upstream is None else index[~upstream[index]]).size
    }
    for subset, index in downstream.items():
        entries += _retrieval(predictions, hits, subset, index)
    if upstream is not None and upstream.any():
        entries += _contrast(predictions, upstream)
    entries += (
        *_shifted(predictions),
        *_among_more(predictions, down, downstream, search.unit, options),
        *_accuracy(predictions, upstream, chosen),
    )
    return Judgement(
        entries=tuple(entries),
        curves=tuple(_curves(predictions, downstream, hits, options.curve_points)),
        histograms=tuple(_histograms(predictions, downstream, hits > 0.5)),
        notes=(
            *_gallery_note(options),
            *_array_notes(predictions),
            *unknown_notes(predictions),
        ),
        design=_design(predictions, upstream, down, search.unit),
    )


def _curves(
    predictions: Predictions,
    downstream: Mapping[str, Index],
    hits: Array,
    most: int | None,
) -> Iterator[Curve]:
    """Yield the curve of R@1 of the kept queries for each uncertainty."""
    for name, value in predictions.named("uncertainty").items():
        for subset in drawn_subsets(downstream):
            index = downstream[subset]
            yield recall_curve(
                hits[index], value[index], subset=subset, kind=name, most=most
            )


def _histograms(
    predictions: Predictions,
    downstream: Mapping[str, Index],
    right: NDArray[np.bool_],
) -> Iterator[Histogram]:
    """Yield histograms of each uncertainty, by `right` and wrong neighbours."""
    parts = {"right": right, "wrong": ~right}
    for name, value in predictions.named("uncertainty").items():
        yield from histograms(value, parts, drawn_subsets(downstream), name=name)


def _among_more(
    predictions: Predictions,
    down: Index,
    downstream: Mapping[str, Index],
    pair: Index,
    options: ScoreOptions,
) -> Iterator[Entry]:
    """Yield R@k for every requested k, and MAP@R if requested."""
    search = neighbour_search(predictions, down, options.gallery)
    if options.map_at_r:
        precisions = np.zeros(predictions.n)
        precisions[down] = scores.average_precisions(**search._asdict())
        for subset, index in downstream.items():
            entry = _share(scores.map_at_r, precisions[index], subset, index, {})
            if options.gallery is None:
                counted = np.isin(down, index)
                precise = partial(
                    _among_neighbours, search, precisions[down], counted, pair
                )
                entry = replace(entry, influence=precise)
            yield entry
    if not options.nearest:
        return
    ranks = scores.right_ranks(**search._asdict())
    for k in options.nearest:
        hits = np.zeros(predictions.n)
        hits[down] = scores.hits_within(ranks, k)
        for subset, index in downstream.items():
            yield _share(scores.recall_at_k, hits[index], subset, index, {"k": str(k)})


def _among_neighbours(
    search: NeighbourSearch, precisions: Array, counted: Flags, pair: Index
) -> Influence:
    """Return the influence on MAP@R of the `counted` queries.

    That items of a `pair` are neighbours is in their influence: that they are one unit
    of the design must not count again.
    """
    influence = precision_influence(
        search.embedding, search.target, counted=counted, values=precisions
    )
    assert influence.values is not None
    alone = float(np.square(influence.values).sum())
    together = float(np.square(np.bincount(pair[counted], influence.values)).sum())
    share = min(1.0, alone / together) if together > 0.0 else 1.0
    return replace(influence, inflation=influence.inflation * share)


def _share(
    score: Callable[..., Any],
    right: Array,
    subset: str,
    index: Index,
    settings: Mapping[str, str],
) -> Entry:
    """Return the entry of a score that is the share of right items."""
    influence = partial(mean_influence, right, about=scores.about(score))
    return _about(subset, index)(score, float(right.mean()), influence, settings)


def _gallery_note(options: ScoreOptions) -> tuple[str, ...]:
    if options.gallery is None:
        return (NEIGHBOURS_FIXED,)
    return (
        GALLERY_FIXED,
        f"neighbours are sought among the {options.gallery.n} items of "
        f"{options.gallery.source}",
    )


def _accuracy(
    predictions: Predictions,
    upstream: NDArray[np.bool_] | None,
    chosen: Mapping[str, Index],
) -> Iterator[Entry]:
    """Yield the accuracy on upstream items, or on all items if none are marked."""
    predicted = predictions.get("predicted")
    if predicted is None:
        return
    right = (predicted == predictions.arrays["target"]).astype(np.float64)
    at = {} if upstream is None else {"items": "upstream"}
    for subset, known in chosen.items():
        index = known if upstream is None else known[upstream[known]]
        if index.size:
            yield _share(scores.accuracy, right[index], subset, index, at)


def _design(
    predictions: Predictions,
    upstream: NDArray[np.bool_] | None,
    down: Index,
    pair: Index,
) -> Design:
    """Return the design, in which items that retrieve each other are one unit."""
    unit = np.arange(predictions.n)
    unit[down] = predictions.n + pair
    cluster = joined_clusters(unit, predictions.get("cluster"))
    sample = design_of(predictions, upstream).sample
    return sampling_design(predictions.n, sample=sample, cluster=cluster)


def _retrieval(
    predictions: Predictions, hits: Array, subset: str, index: Index
) -> Iterator[Entry]:
    right = hits[index]
    entry = _about(subset, index)
    yield _share(scores.recall_at_1, right, subset, index, {})
    cropped = predictions.named("uncertainty_cropped")
    votes = predictions.get("votes")
    for name, values in predictions.named("uncertainty").items():
        value, at = values[index], {"uncertainty": name}
        ranked = scores.weighted_auroc, value, 1 - right, right
        area = entry(
            scores.r_auroc, _value(*ranked), partial(influence_of, *ranked), at
        )
        yield replace(area, inputs=partial(dict, uncertainty=value))
        if name in cropped:
            pair = scores.crop_rate, value, cropped[name][index]
            yield entry(
                scores.crop_rate, _value(*pair), partial(influence_of, *pair), at
            )
        if votes is not None:
            influence = partial(
                influence_of,
                scores.human_alignment,
                uncertainty=value,
                votes=votes[index],
            )
            alignment = _alignment(value, votes[index])
            yield entry(scores.human_alignment, alignment, influence, at)


def _contrast(predictions: Predictions, upstream: NDArray[np.bool_]) -> Iterator[Entry]:
    """Yield scores of downstream items against upstream items, and of both together."""
    index = known_items(predictions)
    entry_of_all, entry = (
        _about("all", items) for items in (np.arange(predictions.n), index)
    )
    target = scores.mixed_target(
        target=predictions.arrays["target"][index], upstream=upstream[index]
    )
    mixed = scores.retrieval_hits(predictions.arrays["embedding"][index], target)
    for name, value in predictions.named("uncertainty").items():
        at = {"uncertainty": name}
        apart = scores.ood_auroc, value, ~upstream
        influence = partial(influence_of, *apart)
        yield entry_of_all(scores.ood_auroc, _value(*apart), influence, at)
        ranked = scores.weighted_auroc, value[index], 1 - mixed, mixed
        influence = partial(influence_of, *ranked)
        yield entry(scores.mixed_r_auroc, _value(*ranked), influence, at)


def _shifted(predictions: Predictions) -> Iterator[Entry]:
    """Yield scores of the detection of shifted items."""
    shifted = outside(predictions)
    if shifted is None:
        return
    entry = _about("all", np.arange(predictions.n))
    # The scores of downstream against upstream items have the same names.
    more = {} if predictions.get("upstream") is None else {"outside": "shifted"}
    for name, value in predictions.named("uncertainty").items():
        for score in (scores.ood_auroc, scores.ood_auprc, scores.ood_fpr95):
            apart = score, value, shifted
            influence = partial(influence_of, *apart)
            yield entry(score, _value(*apart), influence, {"uncertainty": name} | more)


def _value(score: Callable[..., float], *arrays: NDArray[Any]) -> float:
    return float(called_in_order(score, *arrays))


def _about(subset: str, index: Index) -> Callable[..., Entry]:
    """Return a function that makes entries of the items at `index`."""

    def entry(
        score: Callable[..., Any],
        value: float,
        influence: Callable[[], Influence | None],
        settings: Mapping[str, str] | None = None,
    ) -> Entry:
        return Entry(
            score=score,
            value=value,
            influence=influence,
            index=index,
            subset=subset,
            settings=settings or {},
            why=WHY.get(score, ""),
        )

    return entry


def _alignment(uncertainty: Array, votes: Array) -> float:
    return scores.human_alignment(uncertainty=uncertainty, votes=votes).value


def _array_notes(predictions: Predictions) -> Iterator[str]:
    yield from _votes_note(predictions)
    alone = {*predictions.named("uncertainty_cropped")}
    alone -= {*predictions.named("uncertainty")}
    for name in sorted(alone):
        yield (
            f"uncertainty_cropped/{name} has no uncertainty/{name} beside it, and is "
            "not scored"
        )
    if predictions.get("predicted") is not None and predictions.get("upstream") is None:
        yield OWN_CLASSES


def _votes_note(predictions: Predictions) -> tuple[str, ...]:
    votes = predictions.get("votes")
    if votes is None:
        return ()
    silent = int((votes.sum(axis=1) == 0).sum())
    if not silent:
        return ()
    are = "item without votes is" if silent == 1 else "items without votes are"
    return (f"{silent} {are} left out of human alignment",)


_SHOWN = ShownScores(
    main=(
        MainScore("recall_at_1"),
        MainScore("recall_at_k", every=True),
        MainScore("map_at_r"),
        MainScore("r_auroc"),
        MainScore("crop_rate"),
        MainScore("human_alignment"),
        MainScore("mixed_r_auroc"),
        MainScore("ood_auroc"),
        MainScore("accuracy"),
        MainScore("ood_auprc"),
        MainScore("ood_fpr95"),
    ),
    grouped=("recall_at_1", "r_auroc"),
)
JUDGING = TaskJudging(judge=judge_neighbours, rules=RULES, shown=lambda _: _SHOWN)
