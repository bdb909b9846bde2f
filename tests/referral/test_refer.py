"""Check `qualms.refer`: the choice by brute force, the promise by simulation."""

import json
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

import qualms
from qualms import inference, predictions, scores
from qualms.referral import ReferralOptions
from qualms.report import plan_to_json


def binary(n=400, seed=0, **more):
    rng = np.random.default_rng(seed)
    target = (rng.random(n) < 0.4).astype(int)
    prob = 1 / (1 + np.exp(-2 * (2 * target - 1 + rng.standard_normal(n))))
    return {"target": target, "prob": prob, **more}


def labelled(correct, uncertainty, target=None, **more):
    """Return predictions that are right where `correct` is true."""
    target = np.zeros(len(correct), int) if target is None else target
    prob = np.where(np.asarray(correct, bool) == (target == 1), 0.9, 0.1)
    named = {"uncertainty/own": np.asarray(uncertainty, float)}
    return {"target": target, "prob": prob, **named, **more}


OWN = ReferralOptions(uncertainty="own")
tiny_items = st.lists(
    st.tuples(st.booleans(), st.integers(0, 5), st.booleans()), min_size=1, max_size=14
).map(lambda rows: tuple(np.array(column) for column in zip(*rows, strict=True)))


def kept_by(threshold, uncertainty):
    return np.asarray(uncertainty) < threshold


@settings(max_examples=40)
@given(tiny_items, st.sampled_from([0.0, 0.1, 0.25, 0.3, 0.5, 0.75, 1.0]))
def test_a_budget_is_used_up_by_whole_ties_and_never_overrun(items, budget):
    correct, uncertainty, _ = items
    plan = qualms.refer(labelled(correct, uncertainty), budget=budget, options=OWN)
    thresholds = [*np.unique(uncertainty).astype(float), np.inf]
    within = [t for t in thresholds if np.mean(~kept_by(t, uncertainty)) <= budget]
    assert plan.threshold == min(within)
    kept = kept_by(plan.threshold, uncertainty)
    (outcome,) = plan.outcomes
    assert outcome.kept == kept.sum()
    assert outcome.referred.value == pytest.approx(np.mean(~kept))
    accuracy = outcome.measure("accuracy")
    assert accuracy.before.value == pytest.approx(correct.mean())
    if kept.any():
        assert accuracy.kept.value == pytest.approx(correct[kept].mean())
    else:
        assert np.isnan(accuracy.kept.value)
        assert accuracy.why == "no item is kept"
    assert accuracy.with_expert == pytest.approx(np.mean(correct | ~kept))


def recall(correct, target, kept, side):
    chosen = kept & (target == side)
    return correct[chosen].mean() if chosen.any() else np.nan


@settings(max_examples=40)
@given(tiny_items)
def test_several_targets_are_observed_with_the_fewest_referrals(items):
    correct, uncertainty, target = items
    if target.all() or not target.any():
        return
    options = ReferralOptions(uncertainty="own", sensitivity=0.6, specificity=0.5)
    plan = qualms.refer(
        labelled(correct, uncertainty, target.astype(int)),
        accuracy=0.7,
        options=options,
    )
    good = [
        t
        for t in [*np.unique(uncertainty).astype(float), np.inf]
        if (kept := kept_by(t, uncertainty)).any()
        and correct[kept].mean() >= 0.7
        and recall(correct, target, kept, 1) >= 0.6
        and recall(correct, target, kept, 0) >= 0.5
    ]
    observed = plan.observed
    assert (observed.threshold if observed else None) == (max(good) if good else None)


def test_one_accuracy_is_promised_as_by_the_score_of_thresholds():
    rng = np.random.default_rng(0)
    for n in (1, 40, 700, 5000):
        uncertainty = rng.random(n).round(2)
        correct = rng.random(n) >= 0.3 * uncertainty
        for accuracy in (0.8, 0.9, 0.95):
            expected = scores.referral_threshold(
                correct=correct, uncertainty=uncertainty, accuracy=accuracy
            )
            plan = qualms.refer(
                labelled(correct, uncertainty), accuracy=accuracy, options=OWN
            )
            np.testing.assert_equal(plan.threshold, expected.guaranteed_threshold)
            observed = plan.observed.threshold if plan.observed else np.nan
            np.testing.assert_equal(observed, expected.threshold)
            assert plan.found == (not np.isnan(expected.guaranteed_threshold))


def test_a_promised_budget_is_that_of_the_score_of_thresholds():
    arrays = binary(500)
    entropy = scores.entropy(arrays["prob"], class_axis=None)
    correct = scores.correct(arrays["prob"], arrays["target"])
    expected = scores.referral_threshold(
        correct=correct, uncertainty=entropy, budget=0.2, confidence=0.95
    )
    plan = qualms.refer(arrays, budget=0.2, confidence=0.95)
    assert plan.threshold == pytest.approx(expected.guaranteed_threshold, rel=1e-12)
    assert plan.promise.budget == 0.2
    assert plan.observed.referred == pytest.approx(0.2)
    assert plan.promised.referred < 0.2
    assert plan.outcomes[0].referred.value == plan.promised.referred


def too_many(violations, runs, delta):
    return violations / runs > delta + 3 * np.sqrt(delta * (1 - delta) / runs)


def promised_too_much(seed, n=400):
    """Return whether a plan promises too much.

    P(right | u) = 1 - 0.3 u, so that keeping u < t is right with 1 - 0.15 t.
    """
    rng = np.random.default_rng(seed)
    uncertainty = rng.random(n)
    correct = rng.random(n) >= 0.3 * uncertainty
    plan = qualms.refer(
        labelled(correct, uncertainty), accuracy=0.92, confidence=0.8, options=OWN
    )
    return plan.found and plan.threshold > 0.08 / 0.15


def test_the_promise_is_broken_no_more_often_than_said():
    assert not too_many(sum(map(promised_too_much, range(150))), 150, 0.2)


def test_two_copies_of_every_item_promise_too_much_unless_clustered():
    def trap(seed, clustered):
        # Every threshold misses 0.8 by a hair, so any promise is broken.
        rng = np.random.default_rng(seed)
        correct = np.repeat(rng.random(150) < 0.8 - 1e-9, 4)
        uncertainty = np.repeat(rng.random(150), 4)
        cluster = {"cluster": np.repeat(np.arange(150), 4)} if clustered else {}
        items = labelled(correct, uncertainty, **cluster)
        return qualms.refer(items, accuracy=0.8, confidence=0.8, options=OWN).found

    assert not too_many(sum(trap(s, True) for s in range(80)), 80, 0.2)
    assert too_many(sum(trap(s, False) for s in range(80)), 80, 0.2)


def test_promises_of_two_targets_hold_together():
    broken = 0
    for seed in range(150):
        rng = np.random.default_rng(seed)
        target = (rng.random(500) < 0.5).astype(int)
        uncertainty = rng.random(500)
        # Sensitivity of the kept is 1 - 0.15 t; specificity is 0.9 - 1e-9 throughout.
        wrong = np.where(target == 1, 0.3 * uncertainty, 0.1 + 1e-9)
        correct = rng.random(500) >= wrong
        options = ReferralOptions(uncertainty="own", sensitivity=0.9, specificity=0.9)
        plan = qualms.refer(
            labelled(correct, uncertainty, target), confidence=0.8, options=options
        )
        broken += plan.found
    assert not too_many(broken, 150, 0.2)


def rare(seed, n, share):
    """Return items of which few are positive; sensitivity of the kept is 1 - 0.15 t."""
    rng = np.random.default_rng(seed)
    target = (rng.random(n) < share).astype(int)
    uncertainty = rng.random(n)
    correct = rng.random(n) >= np.where(target == 1, 0.3 * uncertainty, 0.05)
    return labelled(correct, uncertainty, target)


def test_the_sensitivity_of_a_rare_class_is_promised_and_kept():
    found = broken = 0
    options = ReferralOptions(uncertainty="own", sensitivity=0.87)
    for seed in range(60):
        plan = qualms.refer(rare(seed, 800, 0.15), confidence=0.8, options=options)
        found += plan.found
        broken += plan.found and plan.threshold > 0.13 / 0.15
    # Fifty tests at ranks of all 800 items, each at a fiftieth of the risk, found 9.
    assert found > 20
    assert not too_many(broken, 60, 0.2)


def test_fewer_items_are_referred_than_by_fifty_tests():
    referred = []
    for seed in range(40):
        rng = np.random.default_rng(seed)
        uncertainty = rng.random(500)
        correct = rng.random(500) >= 0.5 * uncertainty**2
        plan = qualms.refer(labelled(correct, uncertainty), accuracy=0.9, options=OWN)
        referred.append(plan.shown.referred if plan.found else 1.0)
    # Fifty tests, each at a fiftieth of the risk, referred 47 % of these items.
    assert np.mean(referred) < 0.42


def test_starts_are_counted_among_the_items_that_are_asked_about():
    arrays = rare(0, 800, 0.1)
    positives = int(arrays["target"].sum())
    assert 50 <= positives < 100

    def starts(**asked):
        options = ReferralOptions(uncertainty="own", **asked)
        accuracy = None if asked else 0.8
        return qualms.refer(arrays, accuracy=accuracy, options=options).promise.tested

    # All, half, ... down to 25 of 800 items, and three quarters; fewer than 100 are
    # positives, 701 to 750 negatives.
    assert starts() == 7
    assert starts(sensitivity=0.7) == 2
    assert starts(specificity=0.7) == 6
    assert starts(sensitivity=0.7, specificity=0.7) == 2


def test_the_overview_promises_hold_all_at_once():
    broken = 0
    for seed in range(120):
        rng = np.random.default_rng(seed)
        uncertainty = rng.random(300)
        correct = rng.random(300) >= 0.3 * uncertainty
        plan = qualms.refer(
            labelled(correct, uncertainty), budget=0.2, confidence=0.8, options=OWN
        )
        true = [1 - 0.15 * min(o.cutoff.threshold, 1.0) for o in plan.offers]
        promised = [o.promised for o in plan.offers]
        broken += any(p > t for p, t in zip(promised, true, strict=True))
    assert not too_many(broken, 120, 0.2)


def test_what_cannot_be_promised_is_said_with_the_best_that_can():
    arrays = binary(150)
    plan = qualms.refer(arrays, accuracy=0.99)
    assert not plan.found
    assert np.isnan(plan.threshold)
    assert plan.promised is None
    bound = plan.promise.at_least["accuracy"]
    kept = kept_by(
        plan.shown.threshold, scores.entropy(arrays["prob"], class_axis=None)
    )
    correct = scores.correct(arrays["prob"], arrays["target"])[kept]
    limit = stats.binomtest(int(correct.sum()), len(correct), alternative="greater")
    expected = limit.proportion_ci(1 - 0.1 / plan.promise.tested, "exact").low
    assert bound == pytest.approx(expected)
    assert qualms.refer(arrays, accuracy=bound - 1e-6).found
    assert not qualms.refer(arrays, accuracy=bound + 1e-6).found
    assert plan.outcomes[0].kept == kept.sum()
    repeated = {
        name: np.tile(array, plan.needed // 150) for name, array in arrays.items()
    }
    assert qualms.refer(repeated, accuracy=0.99).found


@pytest.mark.parametrize("size", [1, 3])
@pytest.mark.parametrize(
    # Twenty items have one start, three times as many have two.
    ("n", "wrong", "accuracy"),
    [(20, 0, 0.95), (30, 1, 0.95), (45, 2, 0.98), (150, 2, 0.98)],
)
def test_as_many_items_as_are_said_to_be_needed_are_enough(n, wrong, accuracy, size):
    """Repeat the items, which is more like them than new items could be."""
    rng = np.random.default_rng(0)
    correct = np.repeat(np.arange(n) < n - wrong, size)
    uncertainty = np.repeat(rng.random(n), size) + 0.5 * ~correct
    arrays = labelled(correct, uncertainty)
    cluster = np.repeat(np.arange(n), size)
    plan = qualms.refer(arrays | {"cluster": cluster}, accuracy=accuracy, options=OWN)
    assert not plan.found
    times, rest = divmod(plan.needed, n * size)
    assert (times > 1, rest) == (True, 0)
    repeated = {name: np.tile(array, times) for name, array in arrays.items()}
    repeated["cluster"] = np.repeat(np.arange(n * times), size)
    assert len(repeated["prob"]) == plan.needed
    assert qualms.refer(repeated, accuracy=accuracy, options=OWN).found


def unequal_clusters(large_right, small_right):
    """Return ten clusters of fifty items and ninety of one item."""
    cluster = np.concatenate([np.repeat(np.arange(10), 50), np.arange(10, 100)])
    rng = np.random.default_rng(0)
    right = np.where(cluster < 10, large_right, small_right)
    return labelled(rng.random(590) < right, rng.random(590), cluster=cluster)


def test_large_clusters_that_break_the_promise_are_warned_about():
    plan = qualms.refer(unequal_clusters(0.6, 1.0), accuracy=0.75, options=OWN)
    kept = plan.outcomes[0].measure("accuracy").kept
    assert plan.found
    assert kept.high < 0.75
    (warning,) = plan.warnings
    assert "below the 75% promised of one random item per cluster" in warning
    assert "large clusters are worse than small ones" in warning
    assert any("one random item per cluster" in note for note in plan.notes)
    good = qualms.refer(unequal_clusters(1.0, 0.9), accuracy=0.75, options=OWN)
    assert good.found
    assert good.warnings == ()


def test_large_clusters_that_overrun_the_budget_are_warned_about():
    arrays = unequal_clusters(0.9, 0.9)
    arrays["uncertainty/own"] += arrays["cluster"] < 10
    plan = qualms.refer(arrays, budget=0.2, confidence=0.9, options=OWN)
    assert plan.outcomes[0].referred.low > 0.2
    (warning,) = plan.warnings
    assert "beyond the 20% promised of one random item per cluster" in warning
    spent = qualms.refer(arrays, budget=0.2, options=OWN)
    assert spent.outcomes[0].referred.value <= 0.2
    assert spent.warnings == ()
    assert any("one random item per new cluster" in note for note in spent.notes)


def test_what_cannot_be_promised_of_clusters_is_compared_with_them_too():
    plan = qualms.refer(unequal_clusters(0.6, 1.0), accuracy=0.99, options=OWN)
    assert not plan.found
    bound = plan.promise.at_least["accuracy"]
    assert plan.outcomes[0].measure("accuracy").kept.high < bound < 0.99
    assert "large clusters are worse" in plan.warnings[0]


def test_more_is_referred_for_a_higher_accuracy_and_a_larger_budget():
    arrays = binary(3000)
    by_budget = [qualms.refer(arrays, budget=b).threshold for b in (0.05, 0.2, 0.6)]
    assert by_budget == sorted(by_budget, reverse=True)
    plans = [qualms.refer(arrays, accuracy=a) for a in (0.8, 0.85, 0.9, 0.95)]
    assert all(plan.found for plan in plans)
    referred = [plan.shown.referred for plan in plans]
    assert referred == sorted(referred)
    sure = [qualms.refer(arrays, accuracy=0.9, confidence=c) for c in (0.6, 0.9, 0.999)]
    referred = [plan.shown.referred for plan in sure]
    assert referred == sorted(referred)


def floats(value):
    """Return the numbers of JSON in order."""
    if isinstance(value, dict):
        return [x for key in value for x in floats(value[key])]
    if isinstance(value, list):
        return [x for each in value for x in floats(each)]
    return [value] if isinstance(value, (int, float)) else []


@pytest.mark.parametrize("clustered", [False, True])
def test_item_order_does_not_matter(clustered):
    rng = np.random.default_rng(0)
    arrays = binary(600, shifted=rng.random(600) < 0.3)
    arrays["prob"] = arrays["prob"].round(2)
    if clustered:
        arrays["cluster"] = np.array([f"p{i // 2}" for i in range(600)])
    order = rng.permutation(600)
    shuffled = {name: array[order] for name, array in arrays.items()}
    for request in ({"accuracy": 0.85}, {"budget": 0.2}):
        plan, shuffled_plan = (
            plan_to_json(qualms.refer(each, **request)) for each in (arrays, shuffled)
        )
        assert plan["threshold"] == shuffled_plan["threshold"]
        assert plan["notes"] == shuffled_plan["notes"]
        np.testing.assert_allclose(floats(plan), floats(shuffled_plan), rtol=1e-9)


def test_the_threshold_is_rounded_to_the_digits_that_decide_alike():
    arrays = binary(3000)
    entropy = scores.entropy(arrays["prob"], class_axis=None)
    for budget in (0.0, 0.1, 0.37, 1.0):
        cutoff = qualms.refer(arrays, budget=budget).shown
        assert cutoff.rounded <= cutoff.threshold
        kept = kept_by(cutoff.threshold, entropy)
        assert (kept_by(cutoff.rounded, entropy) == kept).all()
    assert len(repr(qualms.refer(arrays, budget=0.1).shown.rounded)) <= 8


def test_ties_that_leave_budget_unused_are_mentioned():
    uncertainty = [0, 0, 1, 1, 1, 1, 1, 1, 2, 2]
    plan = qualms.refer(labelled(np.ones(10), uncertainty), budget=0.5, options=OWN)
    assert plan.outcomes[0].referred.value == pytest.approx(0.2)
    assert any("6 items share the uncertainty 1" in note for note in plan.notes)
    assert any("3 referrals of the budget unused" in note for note in plan.notes)
    exact = qualms.refer(labelled(np.ones(10), uncertainty), budget=0.2, options=OWN)
    assert not any("share the uncertainty" in note for note in exact.notes)


def test_values_are_the_public_scores_of_the_kept_items():
    arrays = binary(500)
    outcome = qualms.refer(arrays, budget=0.3).outcomes[0]
    entropy = scores.entropy(arrays["prob"], class_axis=None)
    threshold = np.quantile(entropy, 0.7, method="higher")
    for chosen, side in ((entropy < threshold, "kept"), (entropy < 9, "before")):
        prob, target = arrays["prob"][chosen], arrays["target"][chosen]
        expected = {
            "accuracy": scores.accuracy(prob, target),
            "sensitivity": np.mean(prob[target == 1] > 0.5),
            "specificity": np.mean(prob[target == 0] <= 0.5),
            "auroc": scores.auroc(score=prob, positive=target == 1),
            "nll": scores.nll(prob, target),
        }
        for name, value in expected.items():
            found = outcome.measure(name)
            actual = found.kept if side == "kept" else found.before
            assert actual.value == pytest.approx(value, rel=1e-12), name
            assert actual.low <= actual.value <= actual.high
    each = outcome.per_thousand
    assert each.referred + each.kept == pytest.approx(1000)
    assert each.missed + each.false_alarms == pytest.approx(each.wrong)
    curve = scores.referral_curve("accuracy", arrays["prob"], arrays["target"])
    np.testing.assert_allclose(outcome.curve.y, curve.value)


def test_several_classes_have_accuracy_balanced_accuracy_and_nll():
    rng = np.random.default_rng(0)
    target = rng.integers(0, 4, 800)
    logit = rng.standard_normal((3, 800, 4)) + 2.5 * np.eye(4)[target]
    probs = np.exp(logit) / np.exp(logit).sum(-1, keepdims=True)
    items = {"target": target, "probs": probs}
    plan = qualms.refer(items, accuracy=0.9)
    outcome = plan.outcomes[0]
    names = ["accuracy", "balanced_accuracy", "nll"]
    assert [m.score for m in outcome.measures] == names
    kept = scores.decompose(probs).total < plan.threshold
    for name in names:
        expected = getattr(scores, name)(probs[:, kept], target[kept])
        assert outcome.measure(name).kept.value == pytest.approx(expected)
    assert np.isnan(outcome.per_thousand.missed)
    other = qualms.refer(
        items,
        budget=0.2,
        options=ReferralOptions(uncertainty="epistemic", draws="models"),
    )
    assert other.uncertainty.name == "mutual_information"
    assert other.threshold == pytest.approx(
        np.quantile(scores.decompose(probs).epistemic, 0.8, method="higher")
    )


def test_the_epistemic_uncertainty_needs_to_know_what_the_draws_vary():
    probs = np.random.default_rng(0).dirichlet([1, 1], (4, 200))
    items = {"probs": probs, "target": np.arange(200) % 2}
    wanted = ReferralOptions(uncertainty="epistemic", draws="labels")
    plan = qualms.refer(items, budget=0.2, options=wanted)
    assert plan.uncertainty.name == "expected_entropy"
    expected = np.quantile(scores.decompose(probs).aleatoric, 0.8, method="higher")
    assert plan.threshold == pytest.approx(expected)
    assert plan.apply({"probs": probs}).refer.sum() == 40  # whatever its header says
    with pytest.raises(ValueError, match=r"depends on what the draws vary.*--draws"):
        qualms.refer(items, budget=0.2, options=replace(wanted, draws=None))


def test_shares_of_independent_items_have_the_exact_interval():
    items = clustered_or_not(300)
    outcome = qualms.refer(items, budget=0.3).outcomes[0]
    right = int(scores.correct(items["prob"], items["target"]).sum())
    exact = stats.binomtest(right, 300).proportion_ci(0.95, "exact")
    share = outcome.measure("accuracy").before
    assert (share.low, share.high) == pytest.approx((exact.low, exact.high))
    exact = stats.binomtest(90, 300).proportion_ci(0.95, "exact")
    share = outcome.referred
    assert (share.low, share.high) == pytest.approx((exact.low, exact.high))


def clustered_or_not(n, size=None, seed=0):
    rng = np.random.default_rng(seed)
    cluster = np.arange(n) // (size or 1)
    shared = rng.standard_normal(n)[cluster] if size else 0.0
    target = (rng.random(n) < 0.4).astype(int)
    evidence = 1.2 * (2 * target - 1) + shared + rng.standard_normal(n)
    items = {"target": target, "prob": 1 / (1 + np.exp(-evidence))}
    return items | ({"cluster": cluster} if size else {})


@pytest.mark.parametrize("size", [None, 3])
def test_other_scores_have_the_interval_of_their_influence(size):
    items = clustered_or_not(900, size)
    outcome = qualms.refer(items, budget=0.0).outcomes[0]
    arrays = items["prob"], items["target"]
    design = inference.sampling_design(900, cluster=items.get("cluster"))
    for name in ("auroc", "nll"):
        influence = inference.influence_of(getattr(scores, name), *arrays)
        expected = inference.interval_of(influence, design=design)
        estimate = outcome.measure(name).kept
        assert (estimate.low, estimate.high) == pytest.approx(
            (expected.low, expected.high)
        )


def test_items_of_no_known_class_take_no_part():
    items = clustered_or_not(200)
    with_unknown = {name: np.append(v, v[:40]) for name, v in items.items()}
    with_unknown["target"][200:] = -1
    plan, without = (qualms.refer(each, budget=0.2) for each in (with_unknown, items))
    assert plan.threshold == without.threshold
    assert plan.outcomes[0].n == 200
    assert "40 items of arrays have no known class: left out" in plan.notes


def test_a_plan_needs_labels():
    with pytest.raises(ValueError, match="add it as 'target'"):
        qualms.refer({"prob": [0.2, 0.7]}, budget=0.5)


def falling(n, seed, slope):
    rng = np.random.default_rng(seed)
    uncertainty = rng.random(n)
    return labelled(rng.random(n) < 0.8 + slope * (uncertainty - 0.5), uncertainty)


def test_a_falling_curve_is_found_and_noise_is_not():
    rising = qualms.refer(falling(1500, 0, -0.3), budget=0.2, options=OWN)
    assert rising.outcomes[0].fall is None
    falling_plan = qualms.refer(falling(1500, 0, 0.3), budget=0.2, options=OWN)
    fall = falling_plan.outcomes[0].fall
    assert fall.to_referred > fall.from_referred
    assert fall.to_accuracy < fall.from_accuracy - 0.05
    assert any(
        "the referral curve falls" in warning for warning in falling_plan.warnings
    )
    alarms = sum(
        qualms.refer(falling(300, seed, 0.0), budget=0.2, options=OWN).outcomes[0].fall
        is not None
        for seed in range(120)
    )
    assert not too_many(alarms, 120, 0.05)


def test_the_same_threshold_is_applied_to_other_files_and_judged_there():
    plan_items = falling(3000, 0, -0.3)
    later, shifted = falling(2000, 1, -0.4), falling(2000, 2, 0.3)
    plan = qualms.refer(plan_items, accuracy=0.85, on=[later, shifted], options=OWN)
    first, second, third = plan.outcomes
    assert first.verdicts == {}
    assert second.verdicts == {"accuracy": "met"}
    assert third.verdicts == {"accuracy": "missed"}
    kept = kept_by(plan.threshold, shifted["uncertainty/own"])
    correct = scores.correct(shifted["prob"], shifted["target"])
    assert third.measure("accuracy").kept.value == pytest.approx(correct[kept].mean())
    assert third.fall is not None
    assert second.fall is None
    assert len(plan.warnings) == 2
    assert "below the 85% asked for" in plan.warnings[0]
    few = {name: array[:12] for name, array in later.items()}
    unclear = qualms.refer(plan_items, accuracy=0.85, on=[few], options=OWN)
    assert unclear.outcomes[1].verdicts == {"accuracy": "undecided"}
    spent = qualms.refer(
        falling(3000, 0, 0),
        budget=0.2,
        on=[labelled(np.ones(500), np.full(500, 0.99))],
        options=OWN,
    )
    assert spent.outcomes[1].verdicts == {"budget": "missed"}
    assert "100% are referred, beyond the budget of 20%" in spent.warnings[0]


def test_shifted_items_take_no_part_in_the_choice():
    inside, outside = binary(500), binary(300, seed=1)
    joint = {k: np.concatenate([inside[k], outside[k]]) for k in inside}
    joint["shifted"] = np.arange(800) >= 500
    plan = qualms.refer(joint, budget=0.2)
    assert plan.threshold == qualms.refer(inside, budget=0.2).threshold
    assert [o.subset for o in plan.outcomes] == ["in_domain", "shifted"]
    assert [o.n for o in plan.outcomes] == [500, 300]
    assert any("without the 300 items marked as shifted" in n for n in plan.notes)


def test_a_plan_for_shifted_items_alone_says_so():
    note = "all items are marked shifted: the plan is for shifted items"
    shifted = binary(200, shifted=np.ones(200, bool))
    assert note in qualms.refer(shifted, budget=0.2).notes
    for flags in (np.zeros(200, bool), np.arange(200) < 9):
        plan = qualms.refer(shifted | {"shifted": flags}, budget=0.2)
        assert note not in plan.notes


@pytest.mark.parametrize("split", ["val", "validation", "val/shifted"])
def test_items_that_may_have_chosen_the_network_are_noted(tmp_path, split):
    def split_notes(split):
        header = {"split": split} if split else {}
        file = predictions.write(tmp_path / "a.npz", binary(200), header=header)
        notes = qualms.refer(file, accuracy=0.8).notes
        return [note for note in notes if "an epoch or a configuration" in note]

    (note,) = split_notes(split)
    assert f"the split '{split}'" in note
    assert "too good" in note
    assert not split_notes("test")
    assert not split_notes(None)


def test_groups_are_described_on_request():
    group = np.where(np.arange(400) % 3 == 0, "left", "right")
    arrays = binary(400, group=group)
    options = ReferralOptions(by_group=True)
    outcome = qualms.refer(arrays, budget=0.2, options=options).outcomes[0]
    assert [g.subset for g in outcome.groups] == ["group=left", "group=right"]
    assert sum(g.kept for g in outcome.groups) == outcome.kept
    assert qualms.refer(arrays, budget=0.2).outcomes[0].groups == ()


def test_a_file_without_groups_is_noted_where_they_are_asked_for():
    note = "has no array 'group', so its groups are not shown"
    options = ReferralOptions(by_group=True)
    plan = qualms.refer(binary(100), budget=0.2, options=options)
    assert [n.endswith(note) for n in plan.notes].count(True) == 1
    assert not [n for n in qualms.refer(binary(100), budget=0.2).notes if note in n]


def test_why_a_budget_cannot_be_promised_is_told():
    def why(items):
        notes = qualms.refer(items, budget=0.2).notes
        (note,) = (note for note in notes if "to promise a budget of 20%" in note)
        return note

    number = np.arange(1000)
    tied = {"target": number % 2, "prob": np.where(number % 3, 0.2, 0.8)}
    assert why(tied).startswith("1000 items share the highest uncertainty, which is")
    assert why(binary(5)).startswith("these items are too few")


def test_a_check_on_the_items_of_the_plan_is_no_check(tmp_path):
    arrays = binary(200, item=np.array([f"eye {i}" for i in range(200)]))
    plan = qualms.refer(arrays, budget=0.2, on=[arrays])
    assert "so it is no check" in plan.warnings[0]
    part = {name: array[:50] for name, array in arrays.items()}
    plan = qualms.refer(arrays, budget=0.2, on=[part])
    assert plan.warnings[0].startswith("50 items of arrays (2) have the names")
    file = predictions.write(tmp_path / "t.npz", arrays, header={"split": "train"})
    labels = [out.name for out in qualms.refer(file, budget=0.2, on=[file]).outcomes]
    assert labels == ["t.npz (1)", "t.npz (2)"]
    assert "training items" in qualms.refer(file, budget=0.2).warnings[0]


def test_one_class_leaves_scores_undefined_and_says_why():
    arrays = binary(100) | {"target": np.zeros(100, int)}
    outcome = qualms.refer(arrays, budget=0.2).outcomes[0]
    assert outcome.measure("auroc").why == "only one class among the kept items"
    assert outcome.measure("sensitivity").why == "there is no positive item"
    json.dumps(plan_to_json(qualms.refer(arrays, budget=1.0)), allow_nan=False)


REGRESSION = {"target": np.arange(5.0), "mean": np.arange(5.0)}
THREE = {"target": [0, 1, 2], "probs": np.eye(3)}


@pytest.mark.parametrize(
    ("items", "asked", "options", "sentence"),
    [
        (binary(), {}, {}, "got neither; give for example --budget 0.2"),
        (binary(), {"budget": 0.2, "accuracy": 0.9}, {}, "got both"),
        (binary(), {"budget": 0.2}, {"sensitivity": 0.9}, "got both"),
        (binary(), {"budget": 1.2}, {}, r"budget must lie in \[0, 1\].*got 1\.2"),
        (binary(), {"budget": np.nan}, {}, "budget must lie"),
        (binary(), {"accuracy": 1.0}, {}, "accuracy must lie between 0 and 1, got 1.0"),
        (binary(), {"accuracy": 95.0}, {}, "accuracy must lie between 0 and 1"),
        (binary(), {"accuracy": 0.9, "confidence": 1.0}, {}, "confidence must lie"),
        (binary(), {"accuracy": 0.9, "confidence": 0.4}, {}, "between 0.5 and 1"),
        (binary(), {"budget": 0.2}, {"level": 1.0}, "level must lie"),
        (binary(), {"budget": 0.2}, {"seed": -1}, "seed must be 0 or more"),
        (REGRESSION, {"budget": 0.2}, {}, "the std uncertainty needs 'var'"),
        (REGRESSION, {"accuracy": 0.9}, {}, "accuracy needs classes.*ask for a budget"),
        (THREE, {}, {"sensitivity": 0.8}, "sensitivity needs two classes.*has 3"),
        (
            binary() | {"target": np.zeros(400, int)},
            {},
            {"sensitivity": 0.8},
            "sensitivity needs positive items, arrays has none",
        ),
        ({"prob": [0.1]}, {"budget": 0.2}, {}, "has no 'target'"),
        (
            {"target": [0, 1], "prob": [-3.0, 2.0]},
            {"budget": 0.2},
            {},
            r"\[0, 1\]",
        ),
        (
            binary(),
            {"budget": 0.2},
            {"uncertainty": "epistemic"},
            "epistemic uncertainty needs several draws",
        ),
        (
            binary(),
            {"budget": 0.2, "on": [THREE]},
            {},
            "must have the 2 classes of arrays, got 3",
        ),
    ],
)
def test_bad_requests_are_refused_with_a_sentence(items, asked, options, sentence):
    with pytest.raises(ValueError, match=sentence):
        qualms.refer(items, **asked, options=ReferralOptions(**options))


def test_an_unknown_uncertainty_is_answered_with_the_closest():
    items = binary() | {"uncertainty/distance": np.arange(400.0)}
    with pytest.raises(LookupError, match="Did you mean 'distance'"):
        qualms.refer(items, budget=0.2, options=ReferralOptions(uncertainty="distanse"))
    with pytest.raises(LookupError, match="one of entropy, expected_entropy, mut"):
        qualms.refer(binary(), budget=0.2, options=OWN)


def test_logits_are_taken_when_said():
    arrays = binary()
    logit = np.log(arrays["prob"] / (1 - arrays["prob"]))
    plan = qualms.refer(
        arrays | {"prob": logit}, budget=0.2, options=ReferralOptions(logits=True)
    )
    expected = qualms.refer(arrays, budget=0.2)
    assert plan.threshold == pytest.approx(expected.threshold)


def test_a_sensitivity_is_asked_for_as_an_accuracy_is():
    items = clustered_or_not(900, None)
    options = ReferralOptions(sensitivity=0.9)
    expected = qualms.refer(items, options=options)
    plan = qualms.refer(items, sensitivity=0.9)
    assert plan.request == expected.request
    assert plan.threshold == expected.threshold
    assert qualms.refer(items, specificity=0.8).request.at_least == {"specificity": 0.8}
