"""Referral of queries, which are right if their nearest neighbour is of their class."""

import numpy as np

from qualms.arrays import Array
from qualms.evaluate.neighbours import query_items, retrieved_items
from qualms.inference import joined_clusters
from qualms.predictions import Predictions, inverse_norm
from qualms.referral import Referral, ReferredOutcomes
from qualms.scores import recall_at_1

CERTAIN = 1e-9
"""Largest difference from 1 of a certain hit, which rounding explains."""


def _compute(predictions: Predictions, _name: str) -> Array:
    return inverse_norm(predictions.arrays["embedding"])


def _lengths(predictions: Predictions) -> Array:
    wide = predictions.arrays["embedding"].astype(np.float64)
    length: Array = np.sqrt(np.einsum("nd,nd->n", wide, wide))
    return length


def _judged(predictions: Predictions, gallery: Predictions | None) -> ReferredOutcomes:
    """Return queries, which are right if their nearest neighbour is of their class.

    Without a gallery, queries that are each other's nearest neighbours are a cluster,
    because they are right or wrong together. A query with equally near neighbours of
    several classes counts as wrong, so that promises stay valid.
    """
    index = query_items(predictions, gallery)
    search = retrieved_items(predictions, index, gallery)
    correct = search.hits > 1.0 - CERTAIN
    cluster = predictions.get("cluster")
    units = joined_clusters(search.unit, None if cluster is None else cluster[index])
    return ReferredOutcomes(
        rows=index,
        correct=correct,
        loss=1.0 - correct.astype(np.float64),
        positive=np.zeros(len(index)),
        unit=units,
    )


REFERRAL = Referral(
    computed={"inverse_norm": "one over the length of the embedding"},
    usual=lambda _: "inverse_norm",
    compute=_compute,
    lacking=lambda *_: "",
    predicted=_lengths,
    judged=_judged,
    accuracy=recall_at_1.__name__,
    promise="of the kept queries have a nearest item of their class",
    asks="an accuracy, which is R@1 of the kept queries, or a budget",
    output="length",
    outputs="lengths",
)
