"""Arrays in the order of another library give no other number."""

from inspect import signature
from itertools import permutations

import numpy as np
import pytest

from qualms import scores
from scores.laws import all_cases

CASES = [
    case for case in all_cases() if len(case.make(np.random.default_rng(0), 5)) > 1
]
RNG = np.random.default_rng(3)
Y_TRUE = RNG.integers(2, size=300)
Y_PRED = np.where(RNG.random(300) < 0.7, Y_TRUE, 1 - Y_TRUE)
Y_PROB = RNG.random(300)
Y = RNG.normal(size=300)
LOW, HIGH = Y - RNG.random(300), Y + RNG.random(300)
THEIRS = [
    (scores.sensitivity, (Y_TRUE, Y_PRED), {}, "sensitivity(called=y_pred, positive=y"),
    (scores.ppv, (Y_TRUE, Y_PRED), {}, "ppv(called=y_pred, positive=y_true)"),
    (scores.auroc, (Y_TRUE, Y_PRED), {}, "auroc(score=y_score, positive=y_true)"),
    (scores.coverage, (Y, LOW, HIGH), {}, "(lower=lower, upper=upper, target=y_true)"),
    (scores.interval_score, (Y, LOW, HIGH), {"alpha": 0.1}, "target=y_true, alpha=al"),
    (scores.gaussian_nll, (Y, LOW, HIGH - LOW), {}, "(mean=mean, var=var, target=y_t"),
    (scores.pinball, (Y, LOW), {"level": 0.1}, "pinball(prediction=prediction, targ"),
    (scores.aurc, (Y_PROB, Y_TRUE), {}, "aurc(risk=y_pred != y_true, uncertainty=unc"),
    (scores.calibration_curve, (Y_TRUE, Y_PROB, [0.5]), {}, "(prob=y_prob, positive="),
    (scores.ece, (Y_TRUE, Y_PROB), {}, "(probs=y_prob, target=y_true)"),
    (scores.brier, (Y_TRUE.astype(float), Y_PROB), {}, "(probs=y_prob, target=y_true)"),
    (scores.balanced_accuracy, (Y_TRUE, Y_PRED), {}, "(probs=y_prob, target=y_true)"),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.label)
def test_arrays_by_place_are_in_order_or_refused(case):
    """Every order of the arrays is refused, or gives the same number."""
    arrays = case.make(np.random.default_rng(1), 60)
    names = signature(case.score).parameters
    places = [
        name for name in arrays if names[name].kind is not names[name].KEYWORD_ONLY
    ]
    more = {name: array for name, array in arrays.items() if name not in places}
    expected = case.value(case.score(**arrays, **case.options))
    for order in permutations(places):
        try:
            found = case.score(
                *(arrays[name] for name in order), **more, **case.options
            )
        except (TypeError, ValueError):
            continue
        assert case.value(found) == pytest.approx(expected, nan_ok=True), order


@pytest.mark.parametrize(("score", "arrays", "options", "call"), THEIRS)
def test_the_call_of_another_library_is_answered_with_ours(
    score, arrays, options, call
):
    with pytest.raises((TypeError, ValueError)) as refused:
        score(*arrays, **options)
    assert call in str(refused.value)


def test_names_of_another_library_are_answered_with_ours():
    with pytest.raises(TypeError, match=r"ppv\(called=y_pred, positive=y_true\)"):
        scores.ppv(y_true=Y_TRUE, y_pred=Y_PRED)
    with pytest.raises(TypeError, match=r"by name.*coverage\(lower=lower, upper=upper"):
        scores.coverage(lower=LOW, upper=HIGH)


def test_no_public_function_takes_two_kinds_of_item_by_place():
    """What is not by name has `probs` and `target`, or is in this list."""
    told_apart = {
        # Another shape, a scalar, or a text: refused in another order.
        *("accept", "aggregate_boundary", "aggregate_object", "average_precisions"),
        *("called_positive", "hits_within", "map_at_r", "nearest_items"),
        *("prediction_rate", "rater_agreement", "recall_at_1", "recall_at_k"),
        *("region_maps", "retrieval_hits", "right_ranks", "set_coverage"),
        *("size_stratified_coverage", "threshold_from_validation", "uncertainty_maps"),
        *("uncertainty_type", "bootstrap", "bootstrap_interval", "referral_curve"),
        *("kept_means", "nearby_counts", "label_shift_weights", "fit_label_shift_sets"),
        # The order has no effect, or is that of a comparison.
        *("mae", "rmse", "ncc", "spearman", "is_less"),
    }
    by_place = set()
    for name in scores.__all__:
        function = getattr(scores, name)
        if isinstance(function, type) or not hasattr(function, "__module__"):
            continue
        if not callable(function) or not function.__module__.startswith(
            "qualms.scores"
        ):
            continue
        places = [
            one.name
            for one in signature(function).parameters.values()
            if one.kind is not one.KEYWORD_ONLY
        ]
        if len(places) > 1 and places != ["probs", "target"]:
            by_place.add(name)
    assert by_place == told_apart
