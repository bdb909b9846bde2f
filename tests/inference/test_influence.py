"""Influence values against numerical derivatives and outside formulas."""

from functools import partial

import numpy as np
import pytest
from scipy import stats

from qualms import scores
from qualms.inference import (
    influence_of,
    interval_of,
    mean_influence,
    sampling_design,
)
from qualms.scores.arguments import called_in_order

ITEMS = 60


def _binary(*, ties, seed=0):
    rng = np.random.default_rng(seed)
    prob = rng.random(ITEMS)
    prob = np.clip(prob.round(1) if ties else prob, 0.02, 0.98)
    target = (rng.random(ITEMS) < 0.8 * prob).astype(int)
    other = rng.random(ITEMS)
    return {
        "prob": prob,
        "target": target,
        "positive": target == 1,
        "risk": (target != (prob > 0.5)).astype(float),
        "correct": target == (prob > 0.5),
        "uncertainty": other.round(1) if ties else other,
        "shifted": np.arange(ITEMS) % 3 == 0,
        "classes": rng.dirichlet([1, 1, 1], ITEMS),
        "label": rng.integers(3, size=ITEMS),
        "var": other + 0.1,
    }


def _by_weights(score, arrays, copies=300):
    """The derivative of the score by how often each item counts."""
    change = np.empty(ITEMS)
    for item in range(ITEMS):
        one = np.arange(ITEMS) == item
        more, less = (
            called_in_order(
                score,
                *(np.repeat(array, copies + step * one, axis=0) for array in arrays),
            )
            for step in (1, -1)
        )
        change[item] = (more - less) / 2 * copies
    return change - change.mean()


EXACT = [
    (scores.accuracy, ("prob", "target")),
    (scores.nll, ("prob", "target")),
    (scores.brier, ("classes", "label")),
    (scores.balanced_accuracy, ("classes", "label")),
    (scores.mcc, ("classes", "label")),
    (scores.auroc, ("prob", "positive")),
    (scores.auprc, ("prob", "positive")),
    (scores.average_precision, ("prob", "positive")),
    (scores.ood_auroc, ("uncertainty", "shifted")),
    (scores.ood_auprc, ("uncertainty", "shifted")),
    (scores.scod_auroc, ("correct", "shifted", "uncertainty")),
    (scores.mae, ("prob", "uncertainty")),
    (scores.rmse, ("prob", "uncertainty")),
    (scores.gaussian_nll, ("prob", "var", "uncertainty")),
    (scores.crps_gaussian, ("prob", "var", "uncertainty")),
]
TO_FIRST_ORDER = [
    # Repeating items moves the sum over k by a term of order 1 / N.
    (scores.aurc, ("risk", "uncertainty")),
    (scores.aurc, ("var", "prob")),
    (scores.eaurc, ("risk", "uncertainty")),
    (scores.eaurc, ("var", "prob")),
    (scores.augrc, ("risk", "uncertainty")),
    (scores.scod_aurc, ("correct", "shifted", "uncertainty")),
]


@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize(("score", "names"), EXACT)
def test_influence_is_the_derivative_by_weight(score, names, ties):
    items = _binary(ties=ties)
    arrays = [items[name] for name in names]
    influence = influence_of(score, *arrays)
    assert influence.value == pytest.approx(called_in_order(score, *arrays), abs=1e-12)
    wanted = _by_weights(score, arrays)
    assert np.abs(influence.values - wanted).max() < 1e-5 * np.abs(wanted).max()
    assert influence.values.sum() == pytest.approx(0.0, abs=1e-12)


@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize(("score", "names"), TO_FIRST_ORDER)
def test_influence_of_areas_is_the_derivative_to_first_order(score, names, ties):
    items = _binary(ties=ties)
    arrays = [items[name] for name in names]
    influence = influence_of(score, *arrays)
    assert influence.value == pytest.approx(called_in_order(score, *arrays), abs=1e-12)
    wanted = _by_weights(score, arrays)
    distance = np.linalg.norm(influence.values - wanted)
    assert distance < 0.05 * np.linalg.norm(wanted)


def test_influence_on_spearman_is_the_derivative_by_weight():
    rng = np.random.default_rng(1)
    first = rng.integers(12, size=80).astype(float)
    second = (first + rng.integers(9, size=80)).round()
    votes = np.stack([np.full(80, 30.0), second + 1], axis=1)
    entropy = scores.vote_entropy(votes)
    influence = influence_of(scores.human_alignment, uncertainty=first, votes=votes)
    assert influence.value == pytest.approx(stats.spearmanr(first, entropy)[0])
    change = np.empty(80)
    for item in range(80):
        more = np.repeat(np.arange(80), 100 + (np.arange(80) == item))
        less = np.repeat(np.arange(80), 100 - (np.arange(80) == item))
        pair = [stats.spearmanr(first[i], entropy[i])[0] for i in (more, less)]
        change[item] = (pair[0] - pair[1]) / 2 * 100
    change -= change.mean()
    assert np.abs(influence.values - change).max() < 1e-3 * np.abs(change).max()


def test_items_without_votes_have_no_influence():
    votes = np.array([[3, 1], [2, 2], [0, 0], [4, 0], [1, 3]])
    uncertainty = [0.4, 0.9, 0.7, 0.1, 0.5]
    influence = influence_of(
        scores.human_alignment, uncertainty=uncertainty, votes=votes
    )
    assert influence.values[2] == 0.0
    assert influence.value == pytest.approx(
        scores.human_alignment(uncertainty=uncertainty, votes=votes).value
    )


def _delong(score, positive):
    """Variance of the AUROC by pairs (DeLong et al., 1988)."""
    high, low = score[positive], score[~positive]
    won = (high[:, None] > low) + 0.5 * (high[:, None] == low)
    return won.mean(1).var(ddof=1) / len(high) + won.mean(0).var(ddof=1) / len(low)


@pytest.mark.parametrize("ties", [False, True])
def test_variance_of_auroc_is_delongs(ties):
    items = _binary(ties=ties)
    influence = influence_of(
        scores.auroc, score=items["prob"], positive=items["positive"]
    )
    spread = sampling_design(ITEMS).spread(influence.values, influence.part)
    wanted = _delong(items["prob"], items["positive"])
    assert spread.variance == pytest.approx(wanted, rel=1e-12)


def test_fractional_hits_count_by_their_share():
    uncertainty, hits = [0.1, 0.5, 0.3, 0.9], np.array([1.0, 0.5, 1.0, 0.0])
    embedding, target = np.eye(4), [0, 0, 1, 1]
    score = partial(scores.r_auroc, hits=hits)
    influence = influence_of(score, embedding, target, uncertainty)
    assert influence.value == pytest.approx(
        called_in_order(score, embedding, target, uncertainty)
    )


def test_a_score_without_influence_is_none():
    assert influence_of(np.mean, [1.0]) is None


def test_mean_leaves_out_undefined_items():
    found = mean_influence([0.5, np.nan, 1.0])
    assert found.value == 0.75
    np.testing.assert_allclose(found.values, [-0.125, 0.0, 0.125])


def test_one_class_has_no_interval():
    influence = influence_of(scores.auroc, score=[0.1, 0.2], positive=[True, True])
    assert "both kinds" in interval_of(influence).reason


def test_complement_mirrors_the_interval():
    items = _binary(ties=False)
    influence = influence_of(
        scores.augrc, risk=items["risk"], uncertainty=items["uncertainty"]
    )
    one, other = interval_of(influence), interval_of(influence.complement())
    assert (1 - other.high, 1 - other.low) == pytest.approx((one.low, one.high))


@pytest.mark.parametrize("seed", range(10))
def test_fpr_is_that_of_the_score(seed):
    rng = np.random.default_rng(seed)
    score = rng.integers(12, size=60) / 10 + rng.choice([0.0, 1e-15], 60)
    positive = rng.random(60) < 0.4
    for tpr in (0.5, 0.8, 0.95, 1.0):
        wanted = partial(scores.fpr_at_tpr, tpr=tpr)
        assert influence_of(wanted, score, positive).value == pytest.approx(
            wanted(score=score, positive=positive), abs=1e-12
        )


def test_every_score_of_items_has_an_influence_or_is_listed():
    known = {name for name in scores.__all__ if _is_score(getattr(scores, name))}
    lacking = {name for name in known if not _has_influence(getattr(scores, name))}
    assert lacking == {
        "ace",  # of one image; its mean over items is `mean_influence`
        "al_improvement",  # of three numbers
        "coverage_at_risk",
        "dice",
        "dice_drop",  # of two means
        "ged",
        "macro_dice",
        "ncc",
        "ood_found",
        "stated_ace",
        "threshold_aurc",
        "threshold_eaurc",
    }


def _has_influence(score):
    try:
        return influence_of(score) is not None
    except (TypeError, AttributeError):  # it lacks its arrays
        return True


def _is_score(function):
    try:
        scores.about(function)
    except LookupError:
        return False
    return True
