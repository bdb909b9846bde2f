"""Thresholds in `qualms.score`: chosen, promised, per cluster, and their targets."""

import math

import numpy as np
import pytest

import qualms
from qualms import scores
from qualms.evaluate import PointOptions
from qualms.evaluate.operating_points import targets, threshold_rule

TARGET = {"sensitivity": 0.85, "specificity": 0.8}


def made(n=400, *, seed=0, effect=2.0, **more):
    rng = np.random.default_rng(seed)
    target = (rng.random(n) < 0.3).astype(int)
    prob = 1 / (1 + np.exp(1.0 - rng.normal(size=n) - effect * target))
    return {"target": target, "prob": prob, **more}


def scored(arrays, *, val=None, **options):
    return qualms.score(arrays, val=val, points=PointOptions(**options))


def test_a_given_threshold_is_judged_by_hand():
    arrays = {"target": [1, 1, 1, 0, 0, 0, 0], "prob": [0.9, 0.3, 0.1, 0.8, 0.2, 0, 0]}
    results = scored(arrays, thresholds=(0.3,))
    by_hand = {
        "sensitivity": 2 / 3,
        "specificity": 3 / 4,
        "ppv": 2 / 3,
        "npv": 3 / 4,
        "lr_positive": (2 / 3) / (1 / 4),
        "lr_negative": (1 / 3) / (3 / 4),
        "called_share": 3 / 7,
    }
    for name, value in by_hand.items():
        row = results.row(name, threshold="0.3")
        assert row.value == pytest.approx(value)
        assert row.low < value < row.high


RULES = {
    "sensitivity=0.9": lambda s, y: scores.threshold_at_sensitivity(
        score=s, positive=y, sensitivity=0.9
    ),
    "specificity=0.8": lambda s, y: scores.threshold_at_specificity(
        score=s, positive=y, specificity=0.8
    ),
    "youden": lambda s, y: scores.youden_threshold(score=s, positive=y),
    "cost=5": lambda s, y: scores.cost_threshold(score=s, positive=y, cost=5),
    "promised-sensitivity=0.9": lambda s, y: scores.threshold_at_sensitivity(
        score=s, positive=y, sensitivity=0.9, confidence=0.9
    ),
    "promised-specificity=0.8": lambda s, y: scores.threshold_at_specificity(
        score=s, positive=y, specificity=0.8, confidence=0.9
    ),
}


@pytest.mark.parametrize("rule", RULES)
def test_a_threshold_is_chosen_on_validation_items(rule):
    test, val = made(), made(300, seed=1)
    results = scored(test, val=val, thresholds=(rule,))
    (point,) = results.points
    assert point.threshold == RULES[rule](val["prob"], val["target"] == 1)
    assert "300 validation items" in point.source
    called = test["prob"] >= point.threshold
    row = results.row("ppv", threshold=rule)
    assert row.value == scores.ppv(called=called, positive=test["target"] == 1)


def test_no_threshold_is_chosen_on_the_items_that_are_scored():
    with pytest.raises(ValueError, match="chosen on validation items, and there are"):
        scored(made(), thresholds=("youden",))


def test_clusters_are_called_by_their_worst_item():
    arrays = {
        "target": [1, 0, 0, 0, 1],
        "prob": [0.1, 0.9, 0.2, 0.1, 0.2],
        "cluster": ["a", "a", "b", "b", "c"],
    }
    results = scored(arrays, thresholds=(0.5,), per_cluster=True)
    # a is positive and called, by its other item; b is neither; c is missed.
    row = results.row("sensitivity", threshold="0.5", unit="cluster")
    assert (row.value, row.n) == (0.5, 3)
    assert results.row("specificity", threshold="0.5", unit="cluster").value == 1.0
    assert results.row("sensitivity", threshold="0.5").value == 0.0


def test_clusters_need_to_be_known():
    with pytest.raises(ValueError, match="need an array 'cluster'"):
        scored(made(), thresholds=(0.5,), per_cluster=True)


@pytest.mark.parametrize(
    ("effect", "n", "answer"),
    [(6.0, 400, "yes"), (0.5, 400, "no"), (2.8, 60, "cannot be told")],
)
def test_a_target_is_met_missed_or_open(effect, n, answer):
    arrays = made(n, effect=effect, seed=3)
    results = scored(arrays, thresholds=(0.75,), meets=TARGET)
    at_threshold, curve = results.points
    assert (at_threshold.answer, curve.answer) == (answer, answer)
    assert at_threshold.because.count("asked for") == 2
    assert curve.rule == "any threshold"
    assert math.isnan(curve.threshold)
    row = results.row("sensitivity_at_specificity", specificity=0.8)
    assert f"{row.value:.3f} [{row.low:.3f}, {row.high:.3f}]" in curve.because


def test_a_target_of_one_class_cannot_be_told():
    arrays = {"target": [0, 0, 0], "prob": [0.1, 0.2, 0.9]}
    points = scored(arrays, thresholds=(0.5,), meets=TARGET).points
    assert {point.answer for point in points} == {"cannot be told"}


def test_several_classes_need_to_know_which_are_positive():
    rng = np.random.default_rng(0)
    arrays = {"target": rng.integers(5, size=80), "probs": rng.dirichlet([1] * 5, 80)}
    with pytest.raises(ValueError, match="has 5 classes: say which of them"):
        scored(arrays, thresholds=(0.5,))
    with pytest.raises(ValueError, match="some, but not all, of the classes 0 to 4"):
        scored(arrays, thresholds=(0.5,), positive=(7,))
    results = scored(arrays, thresholds=(0.5,), positive=(2, 3, 4))
    called = arrays["probs"][:, 2:].sum(axis=1) >= 0.5
    wanted = scores.sensitivity(called=called, positive=arrays["target"] >= 2)
    assert results["sensitivity"].value == wanted


def test_prevalences_have_rows_of_their_own():
    results = scored(made(), thresholds=(0.5,), prevalences=(0.05, 0.2))
    values = [
        results.row("ppv", threshold="0.5", prevalence=prevalence).value
        for prevalence in (0.05, 0.2)
    ]
    assert values[0] < values[1]


def test_subsets_have_their_own_answers():
    arrays = made(400)
    arrays["shifted"] = np.arange(400) % 2 == 0
    results = scored(arrays, thresholds=(0.5,), meets=TARGET)
    subsets = {point.subset for point in results.points}
    assert subsets == {"all", "in_domain", "shifted"}
    assert {point.subset for point in results.shown().points} == {
        "in_domain",
        "shifted",
    }


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"thresholds": ("sensitvity=0.9",)}, "Did you mean 'sensitivity'"),
        ({"thresholds": ("high",)}, "a threshold must be a number such as 0.3"),
        ({"thresholds": ("sensitivity=90",)}, "must lie between 0 and 1, got 90"),
        ({"thresholds": ("cost=-1",)}, "how many false alarms a miss costs"),
        ({"meets": {"recall": 0.9}}, "meets must name sensitivity"),
        ({"meets": {"sensitivity": 0.9}}, "meets needs a threshold"),
        ({"meets": {"ppv": 2}}, "the ppv to meet must lie between 0 and 1"),
        ({"prevalences": (5.0,)}, "prevalence must lie between 0 and 1"),
        ({"positive": (-1,)}, "numbers of classes from 0 on"),
        ({"confidence": 90}, "confidence must lie between 0 and 1"),
    ],
)
def test_mistakes_are_sentences(options, words):
    with pytest.raises(ValueError, match=words):
        PointOptions(**options)


def test_targets_are_read_from_a_text():
    assert targets("sensitivity=0.85, specificity=0.8") == TARGET
    with pytest.raises(ValueError, match="meets must be written as"):
        targets("sensitivity")


def test_other_tasks_have_no_thresholds():
    arrays = {"target": [1.0, 2.0], "mean": [1.0, 2.0]}
    with pytest.raises(ValueError, match="are for classification"):
        scored(arrays, thresholds=(0.5,))


def test_a_number_is_a_rule():
    assert threshold_rule(0.25).text == "0.25"
    assert not threshold_rule("0.25").chosen


@pytest.mark.parametrize("n", [1, 3, 10])
def test_few_items_are_judged_without_a_failure(n):
    rng = np.random.default_rng(n)
    arrays = {"target": rng.integers(2, size=n), "prob": rng.random(n)}
    results = scored(arrays, thresholds=(0.5,), meets=TARGET, prevalences=(0.1,))
    for row in results.rows:
        if row.settings.get("threshold") and not math.isnan(row.low):
            assert row.low <= row.value <= row.high
