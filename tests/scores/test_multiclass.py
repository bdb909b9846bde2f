"""Scores of several classes against scikit-learn, brute force and their intervals."""

import numpy as np
import pytest
from sklearn.metrics import f1_score, roc_auc_score, top_k_accuracy_score

from qualms import scores
from qualms.inference import influence_of, interval_of


def items(seed, n=200, classes=7):
    rng = np.random.default_rng(seed)
    probs = rng.dirichlet([0.4] * classes, n)
    return probs, np.array([rng.choice(classes, p=row) for row in probs])


@pytest.mark.parametrize("seed", range(5))
def test_scores_are_those_of_scikit_learn(seed):
    probs, target = items(seed)
    f1 = f1_score(target, probs.argmax(axis=1), average="macro")
    assert scores.macro_f1(probs, target) == pytest.approx(f1, abs=1e-12)
    area = roc_auc_score(target, probs, multi_class="ovr", average="macro")
    assert scores.macro_auroc(probs, target) == pytest.approx(area, abs=1e-12)
    for k in (1, 2, 5):
        first = top_k_accuracy_score(target, probs, k=k, labels=range(7))
        assert scores.top_k_accuracy(probs, target, k=k) == pytest.approx(first)


def test_ties_at_the_last_place_count_by_their_chance():
    probs, target = [[0.4, 0.2, 0.2, 0.2]] * 4, [0, 1, 2, 3]
    # Of three tied classes two get the places that are left.
    expected = (1 + 3 * 2 / 3) / 4
    assert scores.top_k_accuracy(probs, target, k=3) == pytest.approx(expected)


def test_as_many_places_as_classes_hold_every_target():
    assert scores.top_k_accuracy(*items(0), k=7) == 1.0
    with pytest.raises(ValueError, match="k must be 1 or more, got 0"):
        scores.top_k_accuracy(*items(0), k=0)


def test_macro_auroc_of_two_classes_is_auroc():
    probs, target = items(3, classes=2)
    expected = scores.auroc(score=probs[:, 1], positive=target == 1)
    assert scores.macro_auroc(probs, target) == pytest.approx(expected)


def test_classes_without_items_are_left_out():
    probs, target = items(1, classes=4)
    wider = np.insert(probs, 2, 0.0, axis=1)
    moved = np.where(target >= 2, target + 1, target)
    for score in (scores.macro_f1, scores.macro_auroc):
        assert score(wider, moved) == pytest.approx(score(probs, target))


@pytest.mark.parametrize(
    "score", [scores.macro_f1, scores.macro_auroc, scores.top_k_accuracy]
)
def test_influence_is_what_leaving_an_item_out_changes(score):
    probs, target = items(5, n=400)
    influence = influence_of(score, probs, target)
    assert influence.value == pytest.approx(score(probs, target))
    for item in range(0, 400, 40):
        less = np.arange(400) != item
        change = influence.value - score(probs[less], target[less])
        assert influence.values[item] == pytest.approx(change, rel=0.05, abs=1e-5)


@pytest.mark.parametrize("score", [scores.macro_f1, scores.macro_auroc])
def test_intervals_hold_as_often_as_they_say(score):
    truth = score(*items(99, n=40_000, classes=4))
    hits = 0
    for seed in range(200):
        interval = interval_of(influence_of(score, *items(seed, n=80, classes=4)))
        hits += interval.low <= truth <= interval.high
    assert hits >= 0.91 * 200


@pytest.mark.parametrize("score", [scores.macro_f1, scores.macro_auroc])
def test_a_hundred_classes_with_few_items_each_have_no_interval(score):
    rng = np.random.default_rng(0)
    target = rng.integers(100, size=600)
    probs = rng.random((600, 100))
    probs[np.arange(600), target] += 2.0
    probs /= probs.sum(axis=1, keepdims=True)
    few = interval_of(influence_of(score, probs[:400], target[:400]))
    assert "fewer than 5 of each" in few.reason
    assert not interval_of(influence_of(score, probs, target)).reason
