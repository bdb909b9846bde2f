"""Referral of classified items, by the entropy of their probabilities or its parts."""

from qualms import scores
from qualms.arrays import Array, Index
from qualms.evaluate.draws import decomposed
from qualms.evaluate.subsets import known_items
from qualms.predictions import Predictions
from qualms.referral import Referral, ReferredOutcomes

# In the order of `scores.decompose`.
_COMPUTED = {
    "entropy": "entropy of the mean over draws of class probabilities, in nats",
    "expected_entropy": "mean over draws of the entropy of class probabilities, in"
    " nats",
    "mutual_information": "entropy of the mean over draws minus the mean entropy,"
    " in nats",
}
_MEASURES = {"EE": "expected_entropy", "MI": "mutual_information"}
"""Names of the measures that are aleatoric or epistemic, by what the draws vary."""
_PARTS = ("aleatoric", "epistemic")


def _compute(predictions: Predictions, name: str) -> Array:
    parts = decomposed(predictions.arrays["probs"])
    values: Array = parts[list(_COMPUTED).index(name)].astype("float64")
    return values


def _lacking(predictions: Predictions, name: str) -> str:
    several = name in (*_PARTS, *_MEASURES.values())
    if several and predictions.draws == 1:
        return "several draws (M, N, C), this file has one"
    return ""


def _named(predictions: Predictions, part: str) -> str:
    """Return the measure that is aleatoric or epistemic in this file."""
    if part not in _PARTS:
        return part
    draws = predictions.header.draws
    if draws is None:
        raise ValueError(
            f"{predictions.source}: the {part} uncertainty depends on what the draws"
            " vary, and the header does not say; add --draws models (an ensemble,"
            " dropout) or --draws labels (a network that draws labels), or name the"
            f" formula, {' or '.join(_MEASURES.values())}"
        )
    of_part = {scores.uncertainty_type(m, draws): n for m, n in _MEASURES.items()}
    return of_part[part]


def _predicted(predictions: Predictions) -> Index:
    return scores.predicted_class(predictions.arrays["probs"])


def _judged(predictions: Predictions, _gallery: Predictions | None) -> ReferredOutcomes:
    index = known_items(predictions)
    target = predictions.arrays["target"][index]
    probs = scores.mean_probabilities(predictions.arrays["probs"])[index]
    cluster = predictions.get("cluster")
    return ReferredOutcomes(
        rows=index,
        correct=scores.correct(probs, target),
        loss=scores.item_nll(probs, target),
        positive=probs[:, 1],
        unit=None if cluster is None else cluster[index],
    )


REFERRAL = Referral(
    computed=_COMPUTED,
    usual=lambda _: "entropy",
    compute=_compute,
    lacking=_lacking,
    predicted=_predicted,
    judged=_judged,
    other_names=_PARTS,
    named=_named,
    instead="use entropy, or ",
)
