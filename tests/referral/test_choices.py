"""The answers of a planner are those of `qualms.refer`, whatever is asked for."""

import numpy as np
import pytest

import qualms
from qualms.referral import ReferralOptions, plan_choices

CLOSE = {"rel": 1e-9, "abs": 1e-12, "nan_ok": True}


def two_classes(n, seed, *, noise=1.0, eyes=1, digits=12, shifted=False):
    rng = np.random.default_rng(seed)
    patient = np.repeat(np.arange(-(-n // eyes)), eyes)[:n]
    target = (rng.random(n) < 0.35).astype(int)[patient]
    evidence = 1.6 * (2 * target - 1) + noise * rng.standard_normal(n)
    arrays = {"target": target, "prob": 1 / (1 + np.exp(-2 * evidence))}
    arrays["prob"] = arrays["prob"].round(digits)
    if eyes > 1:
        arrays["cluster"] = patient
    if shifted:
        arrays["shifted"] = rng.random(n) < 0.4
    return arrays


def three_classes(n, seed):
    rng = np.random.default_rng(seed)
    target = rng.integers(0, 3, n)
    scores = rng.random((n, 3)) + 1.5 * np.eye(3)[target] * (rng.random((n, 1)) < 0.8)
    return {"target": target, "probs": scores / scores.sum(1, keepdims=True)}


def values(n, seed, *, eyes=1):
    rng = np.random.default_rng(seed)
    var = rng.random(n) + 0.1
    arrays = {
        "target": rng.standard_normal(n) * np.sqrt(var),
        "mean": np.zeros((1, n)),
        "var": var[None],
    }
    return arrays | ({"cluster": np.arange(n) // eyes} if eyes > 1 else {})


SETS = {
    "two classes": (two_classes(400, 0), [two_classes(300, 1, noise=1.7)]),
    "patients, shifted items marked": (two_classes(500, 2, eyes=2, shifted=True), []),
    "patients elsewhere": (two_classes(200, 3), [two_classes(150, 4, eyes=3)]),
    "ties": (two_classes(300, 5, digits=1), [two_classes(80, 6, digits=1)]),
    "three classes": (three_classes(250, 7), [three_classes(60, 8)]),
    "values": (values(120, 9), [values(60, 10, eyes=2)]),
    "three items": (two_classes(3, 11), [two_classes(1, 12)]),
    "one item": (two_classes(1, 13), []),
    "all right": ({"target": np.zeros(60, int), "prob": np.linspace(0, 0.4, 60)}, []),
    "all wrong": ({"target": np.ones(40, int), "prob": np.linspace(0, 0.4, 40)}, []),
    "constant": ({"target": np.arange(90) % 9 == 0, "prob": np.full(90, 0.2)}, []),
}


def asked_for(choices, seed, times):
    """Yield requests: what is asked for, its value and the confidence."""
    rng = np.random.default_rng(seed)
    kinds = ["budget", *choices.scores]
    for _ in range(times):
        kind = kinds[rng.integers(len(kinds))]
        grid = choices.budgets if kind == "budget" else choices.targets
        some = (*choices.confidences, None) if kind == "budget" else choices.confidences
        value = float(grid[rng.integers(len(grid))])
        yield kind, value, some[rng.integers(len(some))]


def refer(sets, kind, value, confidence):
    source, on = sets
    asked = {kind: value} if kind in {"budget", "accuracy"} else {}
    options = ReferralOptions(**({} if asked else {kind: value}))
    return qualms.refer(source, **asked, confidence=confidence, on=on, options=options)


def check_set(columns, place, outcome):
    assert columns.label == outcome.label
    assert (columns.n, columns.clusters) == (outcome.n, outcome.clusters)
    assert columns.kept[place] == outcome.kept
    found = [each[place] for each in columns.referred]
    share = outcome.referred
    assert found == pytest.approx([share.value, share.low, share.high], **CLOSE)
    for measure in columns.measures:
        expected = outcome.measure(measure.score)
        kept, before = expected.kept, expected.before
        found = [each[place] for each in measure.kept]
        assert found == pytest.approx([kept.value, kept.low, kept.high], **CLOSE)
        found = [measure.before.value, measure.before.low, measure.before.high]
        assert found == pytest.approx([before.value, before.low, before.high], **CLOSE)
        found = measure.with_expert[place]
        assert found == pytest.approx(expected.with_expert, **CLOSE)
        assert (measure.label, measure.better) == (expected.label, expected.better)
    for name in ("referred", "kept", "wrong", "missed", "false_alarms"):
        counts = columns.per_thousand(place)
        expected = getattr(outcome.per_thousand, name)
        assert getattr(counts, name) == pytest.approx(expected, **CLOSE)


@pytest.mark.parametrize("name", SETS)
def test_every_answer_is_that_of_refer(name):
    choices = plan_choices(SETS[name][0], on=SETS[name][1])
    for kind, value, confidence in asked_for(choices, 0, 25):
        plan = refer(SETS[name], kind, value, confidence)
        threshold = choices.threshold(kind, value, confidence)
        np.testing.assert_equal(threshold, plan.threshold)
        shown = np.array([plan.shown.threshold])
        (place,) = choices.places(shown)
        assert choices.thresholds[place] == plan.shown.threshold
        assert choices.rounded[place] == plan.shown.rounded
        if kind != "budget":
            check_score(choices, kind, value, confidence, plan)
        for columns, outcome in zip(choices.sets, plan.outcomes, strict=True):
            check_set(columns, place, outcome)
        for columns, outcome in zip(choices.sets[1:], plan.outcomes[1:], strict=True):
            row = int(np.searchsorted(grid_of(choices, kind), value))
            verdict = columns.verdicts[kind, confidence][row]
            words = {1: "met", -1: "missed", 0: "undecided"}[int(verdict)]
            assert words == outcome.verdicts[kind]


def grid_of(choices, kind):
    return choices.budgets if kind == "budget" else choices.targets


def check_score(choices, kind, value, confidence, plan):
    answers = choices.scores[kind]
    row = int(np.searchsorted(choices.targets, value))
    assert answers.starts == plan.promise.tested
    assert answers.shown(confidence)[row] == plan.shown.threshold
    assert answers.needed[confidence][row] == (plan.needed or 0)
    observed = plan.observed.threshold if plan.observed else np.nan
    np.testing.assert_equal(answers.observed[row], observed)
    if not plan.found:
        (bound,) = plan.promise.at_least.values()
        assert answers.most[confidence] == (plan.shown.threshold, bound)


def falls(values):
    return (values[1:] <= values[:-1]).all()


def test_answers_are_ordered_as_what_is_asked_for():
    choices = plan_choices(two_classes(2000, 0))
    for answers in choices.scores.values():
        for promised in answers.promised.values():
            found = promised[~np.isnan(promised)]
            assert len(found) > 20
            assert falls(found)
            # Once a target cannot be promised, no higher one can.
            assert np.isnan(promised[len(found) :]).all()
        assert falls(np.nan_to_num(list(answers.promised.values()), nan=-1.0))
    assert falls(choices.budget.observed)
    assert falls(np.array(list(choices.budget.promised.values()))[::-1])


def test_the_order_of_the_items_changes_no_answer():
    arrays = two_classes(300, 0, eyes=2, digits=2)
    order = np.random.default_rng(0).permutation(300)
    first = plan_choices(arrays)
    second = plan_choices({name: array[order] for name, array in arrays.items()})
    np.testing.assert_array_equal(first.thresholds, second.thresholds)
    for name, answers in first.scores.items():
        for confidence, promised in answers.promised.items():
            other = second.scores[name].promised[confidence]
            np.testing.assert_array_equal(promised, other)


def test_a_class_that_is_missing_is_not_asked_about():
    arrays = two_classes(80, 0) | {"target": np.zeros(80, int)}
    choices = plan_choices(arrays)
    assert list(choices.scores) == ["accuracy", "specificity"]
    assert np.isnan(choices.sets[0].measure("sensitivity").kept.value).all()


def test_notes_and_warnings_about_the_files_are_kept():
    arrays = two_classes(200, 0, eyes=2, shifted=True)
    choices = plan_choices(arrays, on=[arrays])
    assert any("marked as shifted" in note for note in choices.notes)
    assert any("intervals are over" in note for note in choices.notes)
    assert any("so it is no check of the plan" in each for each in choices.warnings)


def test_what_is_not_on_the_grid_is_refused_with_a_sentence():
    choices = plan_choices(two_classes(60, 0))
    with pytest.raises(LookupError, match=r"accuracy 0\.9123 is not one of those"):
        choices.threshold("accuracy", 0.9123)
    with pytest.raises(LookupError, match=r"confidence 0\.7 is not one of 0\.8, 0\.9"):
        choices.threshold("accuracy", 0.9, 0.7)
    with pytest.raises(LookupError, match="no 'auroc' in arrays; it has accuracy"):
        choices.sets[0].measure("auroc")
