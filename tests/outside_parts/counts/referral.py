"""Referral of counts, by the spread that Poisson's law and the draws explain."""

import numpy as np

from qualms.evaluate.subsets import known_items
from qualms.referral import Referral, ReferredOutcomes


def deviation(predictions):
    """Return the standard deviation (N,) of a new count."""
    rates = predictions.arrays["rate"]
    return np.sqrt(rates.mean(0) + rates.var(0))


def _expected(predictions):
    return predictions.arrays["rate"].mean(0)


def _judged(predictions, _gallery):
    rows = known_items(predictions)
    cluster = predictions.get("cluster")
    return ReferredOutcomes(
        rows=rows,
        correct=np.zeros(len(rows), np.bool_),
        loss=np.abs(_expected(predictions) - predictions.arrays["target"])[rows],
        positive=np.zeros(len(rows)),
        unit=None if cluster is None else cluster[rows],
    )


REFERRAL = Referral(
    computed={"spread": "root of the mean rate plus the variance of the draws' rates"},
    usual=lambda _: "spread",
    compute=lambda predictions, _: deviation(predictions),
    lacking=lambda *_: "",
    predicted=_expected,
    judged=_judged,
    is_decided=False,
)
