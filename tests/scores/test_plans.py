"""Every plan against its score on repeated items, and against scikit-learn."""

from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn import metrics

from qualms import scores
from qualms.scores import Resampling, calibration, proper, ranking, selective
from qualms.scores.referral import referral_curve


def binary(rng, n, tied):
    prob = rng.integers(0, 9, n) / 8 if tied else rng.random(n)
    return prob, rng.random(n) < 0.2 + 0.6 * prob


def risky(rng, n, tied):
    doubt = rng.integers(0, 4, n) / 4 if tied else rng.normal(size=n)
    return rng.integers(0, 3, n) / 2, doubt


def many_classes(rng, n, tied):
    logits = rng.normal(size=(n, 3)).round(0 if tied else 9)
    probs = np.exp(logits)
    return probs / probs.sum(axis=1, keepdims=True), rng.integers(0, 3, n)


def referred(rng, n, tied):
    prob, target = binary(rng, n, tied)
    doubt = rng.integers(0, 5, n) / 4 if tied else rng.random(n)
    return prob, target.astype(int), doubt


def weighted(rng, n, tied):
    score, _ = binary(rng, n, tied)
    return score, rng.integers(0, 3, n) / 2, rng.integers(0, 3, n) / 2


def of_top_label(plan, **options):
    return lambda probs, target: plan(*scores.top_label(probs, target), **options)


def area(name):
    return lambda *arrays: referral_curve(name, *arrays).area


CASES = {
    "mean": (
        risky,
        lambda a, b: scores.mean_plan(a * b),
        lambda a, b: np.mean(a * b),
    ),
    "ratio": (
        risky,
        lambda a, b: scores.ratio_plan(a * (b > 0), b > 0),
        lambda a, b: a[b > 0].mean() if (b > 0).any() else np.nan,
    ),
    "auroc": (binary, scores.auroc_plan, ranking.auroc),
    "weighted_auroc": (weighted, scores.weighted_auroc_plan, ranking.weighted_auroc),
    "auprc": (binary, scores.auprc_plan, ranking.auprc),
    "average_precision": (
        binary,
        scores.average_precision_plan,
        ranking.average_precision,
    ),
    "fpr_at_tpr": (
        binary,
        partial(scores.fpr_at_tpr_plan, tpr=0.8),
        partial(ranking.fpr_at_tpr, tpr=0.8),
    ),
    "aurc": (risky, scores.aurc_plan, selective.aurc),
    "eaurc": (risky, scores.eaurc_plan, selective.eaurc),
    "augrc": (risky, scores.augrc_plan, selective.augrc),
    "risk_at_coverage": (
        risky,
        partial(scores.risk_at_coverage_plan, coverage=0.6),
        partial(selective.risk_at_coverage, coverage=0.6),
    ),
    "referred accuracy": (
        referred,
        partial(scores.referral_area_plan, "accuracy"),
        area("accuracy"),
    ),
    "referred nll": (referred, partial(scores.referral_area_plan, "nll"), area("nll")),
    "referred auroc": (
        referred,
        partial(scores.referral_area_plan, "auroc"),
        area("auroc"),
    ),
    "referred balanced_accuracy": (
        referred,
        partial(scores.referral_area_plan, "balanced_accuracy"),
        area("balanced_accuracy"),
    ),
    "referred auroc by entropy": (
        binary,
        partial(scores.referral_area_plan, "auroc"),
        area("auroc"),
    ),
    "ece": (
        many_classes,
        of_top_label(scores.ece_plan, bins=7),
        partial(calibration.ece, bins=7),
    ),
    "adaptive_ece": (
        many_classes,
        of_top_label(scores.adaptive_ece_plan, bins=4),
        partial(calibration.adaptive_ece, bins=4),
    ),
    "classwise_ece": (
        many_classes,
        partial(scores.classwise_ece_plan, bins=5),
        partial(calibration.classwise_ece, bins=5),
    ),
    "balanced_accuracy": (
        many_classes,
        lambda p, y: scores.balanced_accuracy_plan(p.argmax(axis=1) == y, y),
        proper.balanced_accuracy,
    ),
    "mcc": (
        many_classes,
        lambda p, y: scores.mcc_plan(p.argmax(axis=1), y),
        proper.mcc,
    ),
}

cases = pytest.mark.parametrize(
    ("make", "plan_for", "score"), CASES.values(), ids=CASES.keys()
)


def same(a, b, rtol=1e-10):
    return bool(np.isclose(a, b, rtol=rtol, atol=1e-12, equal_nan=True))


@cases
@pytest.mark.parametrize("tied", [False, True])
@settings(max_examples=30)
@given(seed=st.integers(0, 2**32 - 1), n=st.integers(1, 25))
def test_a_weight_counts_as_that_many_copies(make, plan_for, score, tied, seed, n):
    rng = np.random.default_rng(seed)
    arrays = make(rng, n, tied)
    weights = rng.integers(0, 4, n)
    weights[rng.integers(n)] += 1
    repeated = [np.repeat(array, weights, axis=0) for array in arrays]
    assert same(plan_for(*arrays)(weights), score(*repeated))


@cases
@pytest.mark.parametrize("tied", [False, True])
def test_weights_of_one_give_the_score_itself(make, plan_for, score, tied):
    arrays = make(np.random.default_rng(1), 3000, tied)
    assert same(plan_for(*arrays)(np.ones(3000, int)), score(*arrays), rtol=1e-11)


@cases
def test_bootstrap_weights_of_many_items_lose_no_digits(make, plan_for, score):
    arrays = make(np.random.default_rng(2), 3000, False)
    weights = Resampling(3000, seed=5).weights(7)
    repeated = [np.repeat(array, weights, axis=0) for array in arrays]
    assert same(plan_for(*arrays)(weights), score(*repeated), rtol=1e-11)


@cases
@pytest.mark.parametrize("tied", [False, True])
def test_replicates_beside_one_another_are_those_one_by_one(
    make, plan_for, score, tied
):
    plan = plan_for(*make(np.random.default_rng(6), 200, tied))
    weights = Resampling(200, seed=2).block(range(7))
    together = plan.value(scores.Copies(weights))
    assert together.tolist() == [plan(row) for row in weights]


def test_copies_of_some_items_are_counted_once():
    copies = scores.Copies(Resampling(6, seed=1).block(range(3)))
    index = np.array([4, 4, 1])
    some = copies.of(index)
    assert (some.weights == copies.weights[:, [4, 4, 1]]).all()
    assert copies.of(index) is some
    assert copies.of(index.copy()) is not some
    assert (some.total() == some.weights.sum(axis=1)).all()


def test_smooth_ece_counts_copies():
    rng = np.random.default_rng(3)
    probs, target = many_classes(rng, 40, False)
    weights = rng.integers(0, 4, 40)
    plan = scores.smooth_ece_plan(*scores.top_label(probs, target))
    repeated = probs.repeat(weights, axis=0), target.repeat(weights)
    assert plan(weights) == pytest.approx(calibration.smooth_ece(*repeated), abs=1e-4)


@pytest.mark.parametrize("tied", [False, True])
@pytest.mark.parametrize("seed", range(5))
def test_scikit_learn_agrees_on_the_weighted_ranking_scores(tied, seed):
    rng = np.random.default_rng(seed)
    score, positive = binary(rng, 200, tied)
    weights = rng.integers(0, 5, 200)
    kept = weights > 0
    given_to_sklearn = {
        "y_true": positive[kept],
        "y_score": score[kept],
        "sample_weight": weights[kept],
    }
    precision, recall, _ = metrics.precision_recall_curve(**given_to_sklearn)
    expected = {
        scores.auroc_plan: metrics.roc_auc_score(**given_to_sklearn),
        scores.average_precision_plan: metrics.average_precision_score(
            **given_to_sklearn
        ),
        scores.auprc_plan: metrics.auc(recall, precision),
    }
    for plan, value in expected.items():
        assert same(plan(score, positive)(weights), value), plan.__name__


def test_scikit_learn_agrees_on_the_weighted_class_scores():
    rng = np.random.default_rng(4)
    target, predicted = rng.integers(0, 4, (2, 300))
    weights = rng.integers(0, 5, 300)
    correct = predicted == target
    assert same(
        scores.balanced_accuracy_plan(correct, target)(weights),
        metrics.balanced_accuracy_score(target, predicted, sample_weight=weights),
    )
    assert same(
        scores.mcc_plan(predicted, target)(weights),
        metrics.matthews_corrcoef(target, predicted, sample_weight=weights),
    )


def test_tied_risks_are_the_mean_over_random_tie_orders():
    risk = np.array([1.0, 0.0, 0.0, 1.0, 0.5])
    doubt = np.array([2.0, 2.0, 1.0, 2.0, 3.0])
    weights = np.array([2, 1, 1, 0, 3])
    copies, ranks = risk.repeat(weights), doubt.repeat(weights)
    rng = np.random.default_rng(0)
    areas = []
    for _ in range(4000):
        order = np.lexsort([rng.random(len(copies)), ranks])
        kept = np.arange(1, len(copies) + 1)
        areas.append(np.mean(np.cumsum(copies[order]) / kept))
    error = np.std(areas) / np.sqrt(len(areas))
    assert scores.aurc_plan(risk, doubt)(weights) == pytest.approx(
        np.mean(areas), abs=4 * error
    )


@pytest.mark.parametrize("plan_for", [scores.auroc_plan, scores.fpr_at_tpr_plan])
def test_a_replicate_of_one_class_is_nan(plan_for):
    plan = plan_for([0.1, 0.7, 0.9], [0, 1, 1])
    assert np.isnan(plan(np.array([0, 1, 2])))
    assert np.isnan(plan(np.array([3, 0, 0])))


def test_no_copies_at_all_is_nan():
    assert np.isnan(scores.mean_plan([1.0, 2.0])(np.array([0, 0])))


def test_wrong_weights_are_refused():
    plan = scores.mean_plan([1.0, 2.0])
    with pytest.raises(ValueError, match=r"shape \(2,\), got \(3,\)"):
        plan(np.array([1, 1, 1]))
    with pytest.raises(TypeError, match="whole numbers, got float64"):
        plan(np.array([0.5, 1.5]))
    with pytest.raises(ValueError, match="0 or more, got -1"):
        plan(np.array([-1, 3]))


def test_wrong_options_are_refused():
    score, positive = [0.1, 0.9], [0, 1]
    with pytest.raises(ValueError, match="tpr must lie"):
        scores.fpr_at_tpr_plan(score, positive, tpr=1.5)
    with pytest.raises(ValueError, match="coverage must be above 0"):
        scores.risk_at_coverage_plan(score, positive, coverage=0.0)
    with pytest.raises(ValueError, match="bins must be at least 1"):
        scores.ece_plan(score, positive, bins=0)
    with pytest.raises(ValueError, match=r"confidence must lie in \[0, 1\], row 1"):
        scores.ece_plan([0.1, 2.0], positive)
    with pytest.raises(ValueError, match="negative_weight must not be negative, row 0"):
        scores.weighted_auroc_plan(score, positive, [-1.0, 1.0])


def test_a_replayed_score_needs_items_first_and_one_number_out():
    with pytest.raises(ValueError, match=r"lengths \[2, 3\]"):
        scores.replay_plan(np.dot, np.ones((2, 3)), np.ones(3))
    with pytest.raises(TypeError, match=r"functools\.partial"):
        scores.replay_plan(np.quantile, np.ones(3), 0.5)
    plan = scores.replay_plan(np.sort, np.ones(3))
    with pytest.raises(TypeError, match="one number, got ndarray"):
        plan(np.array([1, 1, 1]))


def test_the_plan_of_a_score_is_declared_by_the_score():
    def odd(values):
        return float(np.median(values))

    plan = scores.plan_of(odd, [1.0, 2.0, 9.0])
    assert plan(np.array([0, 1, 2])) == 9.0
    assert scores.plan_of(scores.nll, [0.2, 0.4], [0, 1])(np.array([1, 1])) == (
        pytest.approx(scores.nll([0.2, 0.4], [0, 1]))
    )
