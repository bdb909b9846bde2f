"""Scores as the code of URL (Kirchhof et al., 2023, arXiv:2307.03810) computes them.

That code drops the first of the two best matches of an item instead of the item
itself, and passes AUROC scores through a float32 sigmoid. It also rounds every value
but the mixed and OOD ones to 4 decimals before averaging over datasets, which is left
to the caller. Its crop rate agrees with the plain one.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit

from qualms.arrays import Array, Flags, Index
from qualms.jit import jit
from qualms.scores.arguments import by_name, finite, flags, matrix, vector
from qualms.scores.human import Alignment, spearman
from qualms.scores.ranking import auroc_by_rule

Single = NDArray[np.float32]


def nearest_neighbour(embedding: ArrayLike, *, block: int = 512) -> Index:
    """Return second of the two best cosine matches (N,) of each item, itself included.

    With exact duplicates in `embedding` (N, D) the item may be returned as its own
    neighbour, and which of several equal matches comes second follows the search
    library's heap: an item enters if it beats the weaker of the two held, and of two
    equal ones the earlier counts as weaker. Similarities are compared in float32;
    nan entries count as 0.

    >>> nearest_neighbour([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    array([0, 0, 1])
    """
    single = _normalised(np.asarray(embedding, dtype=np.float32))
    wide = single.astype(np.float64)
    index = np.empty(len(wide), dtype=np.int64)
    for start in range(0, len(wide), block):
        # Rounded from float64, equal vectors are equally similar on every machine.
        similarity = wide[start : start + block] @ wide.T
        index[start : start + block] = _second_best(similarity.astype(np.float32))
    return index


def retrieval_hits(embedding: ArrayLike, target: ArrayLike) -> Flags:
    """Return a mask (N,) of items with the target of `nearest_neighbour`.

    >>> retrieval_hits([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]], [0, 1, 1])
    array([ True, False,  True])
    """
    index = nearest_neighbour(embedding)
    truth = vector("target", target, length=len(index))
    hits: Flags = truth[index] == truth
    return hits


def recall_at_1(
    embedding: ArrayLike, target: ArrayLike, *, hits: ArrayLike | None = None
) -> float:
    """Return the share of `retrieval_hits`: too high where items have exact duplicates.

    `hits` saves the search, if they are at hand.

    >>> recall_at_1([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]], [0, 1, 2])
    0.3333333333333333
    """
    return float(_hits(embedding, target, hits).mean())


@by_name
def r_auroc(
    *,
    embedding: ArrayLike,
    target: ArrayLike,
    uncertainty: ArrayLike,
    hits: ArrayLike | None = None,
) -> float:
    """Return the AUROC of minus the uncertainty for right retrievals, squashed.

    The AUROC of torchmetrics takes scores outside [0, 1] for logits, and minus an
    uncertainty always is. In float32 their sigmoid is 1 for every uncertainty below
    about -16.6 and 0 above about 88, so that distinct uncertainties tie: a
    log-determinant scores exactly 0.5. One class alone scores 0.

    >>> r_auroc(
    ...     embedding=[[1, 0], [2, 0.1], [0, 1]],
    ...     target=[0, 0, 1],
    ...     uncertainty=[-400.0, -300.0, -200.0],
    ... )
    0.5
    """
    right = _hits(embedding, target, hits)
    values = vector("uncertainty", uncertainty, length=len(right))
    return _squashed_auroc(-values, right)


@by_name
def ood_auroc(*, uncertainty: ArrayLike, shifted: ArrayLike) -> float:
    """Return AUROC of the uncertainty (N,) for shifted items, after a sigmoid at times.

    As `r_auroc`, but of plus the uncertainty: the sigmoid applies only if some value
    lies outside [0, 1], and then values above about 16.6 tie.

    >>> ood_auroc(uncertainty=[20.0, 30.0, 40.0], shifted=[False, True, True])
    0.5
    """
    moved = flags("shifted", shifted)
    return _squashed_auroc(vector("uncertainty", uncertainty, length=len(moved)), moved)


@by_name
def mixed_r_auroc(
    *,
    embedding: ArrayLike,
    target: ArrayLike,
    uncertainty: ArrayLike,
    upstream: ArrayLike,
    sampled: ArrayLike | None = None,
) -> float:
    """Return `r_auroc` of upstream and downstream items, whose targets may collide.

    Upstream targets are moved past the largest target of the first n downstream rows,
    where n is how many downstream items were sampled. Where those are not the sampled
    rows themselves (`sampled`, item indices; by default every item) a downstream class
    may share its number with an upstream one.

    >>> mixed_r_auroc(
    ...     embedding=[[1, 0], [2, 0.1], [0, 1]],
    ...     target=[0, 0, 0],
    ...     uncertainty=[3, 2, 9],
    ...     upstream=[1, 1, 0],
    ... )
    1.0
    """
    above = flags("upstream", upstream)
    rows = np.arange(len(above)) if sampled is None else np.asarray(sampled)
    rows = rows[np.argsort(~above[rows], kind="stable")]
    number = vector("target", target, length=len(above))
    first = number[~above][: int((~above[rows]).sum())]
    moved = number + np.where(above, first.max(initial=-1) + 1, 0)
    values = vector("uncertainty", uncertainty, length=len(above))
    return r_auroc(
        embedding=np.asarray(embedding)[rows],
        target=moved[rows],
        uncertainty=values[rows],
    )


@by_name
def human_alignment(*, uncertainty: ArrayLike, votes: ArrayLike) -> Alignment:
    """Return the Spearman correlation of uncertainty (N,) and float32 vote entropy.

    Summed in float32 and in the order of the classes, the entropies of (6, 3, 1) and
    (1, 6, 3) votes may differ in their last bit: a tie becomes an order at random.

    >>> human_alignment(
    ...     uncertainty=[0.1, 0.5, 0.9, 0.3], votes=[[4, 0], [3, 1], [2, 2], [0, 0]]
    ... )
    Alignment(value=1.0, dropped=1)
    """
    values = vector("uncertainty", uncertainty)
    counts = matrix("votes", votes, length=len(values)).astype(np.float32)
    voted = counts.any(axis=1)
    share = counts[voted] / counts[voted].sum(axis=1, keepdims=True)
    entropy = -(share * np.log(np.where(share > 0, share, np.float32(1)))).sum(axis=1)
    value = spearman(values[voted], entropy.astype(np.float64), tie=0.0)
    return Alignment(value, int((~voted).sum()))


def _hits(embedding: ArrayLike, target: ArrayLike, hits: ArrayLike | None) -> Flags:
    if hits is None:
        return retrieval_hits(embedding, target)
    return flags("hits", hits, length=len(np.asarray(target)))


def _squashed_auroc(values: Array, positive: Flags) -> float:
    scores = values.astype(np.float32)
    if scores.min() < 0 or scores.max() > 1:
        scores = expit(scores)
    if positive.all() or not positive.any():
        return 0.0
    return auroc_by_rule(scores, positive, tie=0.0)


def _normalised(single: Single) -> Single:
    if single.ndim != 2 or len(single) < 2:
        raise ValueError(
            f"embedding must have shape (N, D), N at least 2, got {single.shape}"
        )
    rows = single.copy()
    rows[np.isnan(rows)] = 0
    finite("embedding", rows)
    length = np.sqrt(np.square(rows).sum(axis=1))
    if np.mean(length == 0) > 0.9:
        raise ValueError(
            "embedding must not be zero for more than 90 % of the items, got "
            f"{np.mean(length == 0):.0%}"
        )
    length[length == 0] = 1
    rows /= length[:, None]
    return rows


@jit
def _second_best(similarity: NDArray[Any]) -> Index:
    second = np.empty(len(similarity), dtype=np.int64)
    for row in range(len(similarity)):
        weak, strong = -1, -1
        low, high = -np.inf, -np.inf
        for column in range(similarity.shape[1]):
            value = similarity[row, column]
            if value > low:
                if value < high:
                    low, weak = value, column
                else:
                    low, weak = high, strong
                    high, strong = value, column
        second[row] = weak
    return second
