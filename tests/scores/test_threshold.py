"""Referral thresholds: the plain one by brute force, the guarantee by simulation."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from qualms.scores.threshold import referral_threshold

RISK = 0.05 / 7

tiny_items = st.lists(
    st.tuples(st.booleans(), st.integers(0, 5)), min_size=1, max_size=12
).map(lambda rows: tuple(np.array(column) for column in zip(*rows, strict=True)))

SHARES = [0.0, 0.1, 0.25, 0.3, 0.5, 0.75, 1.0]


def described(correct, uncertainty, threshold):
    """Share referred and accuracy kept, straight from the rule."""
    kept = uncertainty < threshold
    return np.mean(~kept), correct[kept].mean() if kept.any() else np.nan


def candidates(uncertainty):
    return [*np.unique(uncertainty).astype(float), np.inf]


@given(tiny_items, st.sampled_from(SHARES[1:]))
def test_accuracy_is_reached_with_the_fewest_referrals(items, accuracy):
    correct, uncertainty = items
    good = [
        threshold
        for threshold in candidates(uncertainty)
        if described(correct, uncertainty, threshold)[1] >= accuracy
    ]
    found = referral_threshold(
        correct=correct, uncertainty=uncertainty, accuracy=accuracy
    )
    if good:
        assert found.threshold == max(good)
        referred, kept = described(correct, uncertainty, found.threshold)
        assert (found.referred, found.accuracy) == pytest.approx((referred, kept))
    else:
        assert np.isnan([found.threshold, found.referred, found.accuracy]).all()
        assert "no threshold reaches accuracy" in found.reason


@given(tiny_items, st.sampled_from(SHARES))
def test_a_budget_is_used_up_but_not_overrun(items, budget):
    correct, uncertainty = items
    found = referral_threshold(correct=correct, uncertainty=uncertainty, budget=budget)
    good = [
        threshold
        for threshold in candidates(uncertainty)
        if described(correct, uncertainty, threshold)[0] <= budget
    ]
    assert found.threshold == min(good)
    expected = described(correct, uncertainty, found.threshold)
    np.testing.assert_allclose([found.referred, found.accuracy], expected)
    assert found.guaranteed_threshold >= found.threshold


@given(tiny_items, st.sampled_from(SHARES[1:]), st.booleans())
def test_the_guaranteed_threshold_is_described_by_the_same_rule(items, share, spend):
    correct, uncertainty = items
    correct, uncertainty = np.tile(correct, 40), np.tile(uncertainty, 40)
    asked = {"budget": share} if spend else {"accuracy": share}
    threshold = referral_threshold(
        correct=correct, uncertainty=uncertainty, **asked, confidence=0.6
    )
    if np.isnan(threshold.guaranteed_threshold):
        assert (
            "guarantees accuracy" in threshold.reason or "reaches" in threshold.reason
        )
    else:
        expected = described(correct, uncertainty, threshold.guaranteed_threshold)
        actual = [threshold.guaranteed_referred, threshold.guaranteed_accuracy]
        np.testing.assert_allclose(actual, expected)


def too_many(violations, runs, delta):
    """Whether the count cannot be explained by a chance of at most `delta`."""
    return violations / runs > delta + 3 * np.sqrt(delta * (1 - delta) / runs)


@pytest.mark.parametrize("levels", [None, 7])
def test_the_accuracy_guarantee_holds_where_every_threshold_is_a_trap(levels):
    # The population misses the target at every threshold, by a hair: any threshold
    # returned is a violation.
    rng = np.random.default_rng(0)
    violations = 0
    for _ in range(400):
        correct = rng.random(300) < 0.8 - 1e-9
        uncertainty = rng.random(300)
        if levels:
            uncertainty = np.floor(levels * uncertainty)
        threshold = referral_threshold(
            correct=correct, uncertainty=uncertainty, accuracy=0.8, confidence=0.7
        )
        violations += not np.isnan(threshold.guaranteed_threshold)
    assert violations > 0
    assert not too_many(violations, 400, 0.3)


def test_the_accuracy_guarantee_holds_where_the_plain_threshold_fails():
    # P(wrong | u) = 0.3 u, so keeping u < t is right with probability 1 - 0.15 t.
    rng = np.random.default_rng(1)
    guaranteed = plain = 0
    for _ in range(400):
        uncertainty = rng.random(400)
        correct = rng.random(400) >= 0.3 * uncertainty
        threshold = referral_threshold(
            correct=correct, uncertainty=uncertainty, accuracy=0.92
        )
        limit = 0.08 / 0.15
        guaranteed += threshold.guaranteed_threshold > limit
        plain += threshold.threshold > limit
    assert not too_many(guaranteed, 400, 0.1)
    assert too_many(plain, 400, 0.1)


def test_the_accuracy_guarantee_is_of_use_with_many_items():
    rng = np.random.default_rng(2)
    uncertainty = rng.random(20_000)
    correct = rng.random(20_000) >= 0.3 * uncertainty
    threshold = referral_threshold(
        correct=correct, uncertainty=uncertainty, accuracy=0.92
    )
    assert threshold.threshold == pytest.approx(0.533, abs=0.05)
    assert 0.42 < threshold.guaranteed_threshold < threshold.threshold
    assert threshold.reason == ""
    assert threshold.confidence == 0.9


def test_a_guaranteed_threshold_passes_the_binomial_test_of_scipy():
    rng = np.random.default_rng(3)
    uncertainty = rng.random(1000)
    correct = rng.random(1000) >= 0.3 * uncertainty
    found = referral_threshold(
        correct=correct, uncertainty=uncertainty, accuracy=0.9, confidence=0.95
    )

    def p_value(threshold):
        kept = uncertainty < threshold
        wrong = int(np.sum(~correct & kept))
        test = stats.binomtest(wrong, int(kept.sum()), 0.1, alternative="less")
        return test.pvalue

    # Seven starts: 31, 62, 125, 250, 500, 750 and 1,000 items kept. The walk begins at
    # the last one that passes and ends before the first threshold that does not.
    ascending = np.append(np.sort(uncertainty), np.inf)
    passed = [
        n for n in (31, 62, 125, 250, 500, 750, 1000) if p_value(ascending[n]) <= RISK
    ]
    assert found.guaranteed_threshold > ascending[passed[-1]]
    after = int(np.sum(uncertainty < found.guaranteed_threshold))
    walk = [p_value(ascending[n]) for n in range(passed[-1], after + 1)]
    assert max(walk) <= RISK
    assert p_value(ascending[after + 1]) > RISK


def reached_by_any_walk(correct, uncertainty, accuracy, confidence):
    """Return the largest threshold that a walk reaches, each walked on its own."""
    n, thresholds = len(correct), [-np.inf, *candidates(uncertainty)]
    starts = [n]
    while starts[-1] // 2 >= 25:
        starts.append(starts[-1] // 2)
    starts += [3 * n // 4] if n >= 200 else []

    def passes(threshold):
        kept = uncertainty < threshold
        wrong = int(np.sum(kept & ~correct))
        # The exact sum of binomial chances.
        p = stats.binom.cdf(wrong, kept.sum(), 1 - accuracy) if kept.any() else 1.0
        return p <= (1 - confidence) / len(starts)

    reached = [np.nan]
    for start in starts:
        walk = iter(
            threshold
            for i, threshold in enumerate(thresholds)
            if i + 1 == len(thresholds)
            or np.sum(uncertainty < thresholds[i + 1]) > start
        )
        while (threshold := next(walk, None)) is not None and passes(threshold):
            reached.append(threshold)
    return np.nanmax(reached) if len(reached) > 1 else np.nan


@pytest.mark.parametrize("levels", [4, 30, 10**6])
@pytest.mark.parametrize("n", [1, 3, 24, 50, 120, 260])
def test_the_guarantee_is_the_furthest_that_any_walk_reaches(n, levels):
    rng = np.random.default_rng([n, levels])
    found = 0
    for accuracy in (0.6, 0.8, 0.9):
        uncertainty = np.floor(levels * rng.random(n))
        correct = rng.random(n) >= 0.3 * uncertainty / levels
        choice = referral_threshold(
            correct=correct, uncertainty=uncertainty, accuracy=accuracy, confidence=0.8
        )
        expected = reached_by_any_walk(correct, uncertainty, accuracy, 0.8)
        np.testing.assert_equal(choice.guaranteed_threshold, expected)
        found += not np.isnan(expected)
    assert found or n < 24


@pytest.mark.parametrize(
    ("n", "accuracy", "confidence", "enough"),
    [
        # One start: 22 right items are needed for 0.9, since 0.9 ** 22 < 0.1.
        (21, 0.9, 0.9, False),
        (22, 0.9, 0.9, True),
        (1, 0.2, 0.7, True),
        (3, 0.5, 0.9, False),
        (3, 0.4, 0.9, True),
    ],
)
@pytest.mark.parametrize("constant", [False, True])
def test_few_items_that_are_all_right_guarantee_what_they_can(
    n, accuracy, confidence, enough, constant
):
    uncertainty = np.zeros(n) if constant else np.arange(n)
    choice = referral_threshold(
        correct=np.ones(n),
        uncertainty=uncertainty,
        accuracy=accuracy,
        confidence=confidence,
    )
    assert choice.guaranteed_threshold == (
        np.inf if enough else pytest.approx(np.nan, nan_ok=True)
    )
    none = referral_threshold(
        correct=np.zeros(n),
        uncertainty=uncertainty,
        accuracy=accuracy,
        confidence=confidence,
    )
    assert np.isnan(none.guaranteed_threshold)


@pytest.mark.parametrize("levels", [None, 7])
def test_the_budget_guarantee_holds(levels):
    rng = np.random.default_rng(4)
    violations = plain = 0
    for _ in range(400):
        uncertainty = rng.random(200)
        if levels:
            uncertainty = np.floor(levels * uncertainty) / levels
        threshold = referral_threshold(
            correct=np.ones(200), uncertainty=uncertainty, budget=0.2
        )
        violations += 1 - threshold.guaranteed_threshold > 0.2
        plain += 1 - threshold.threshold > 0.2
    assert not too_many(violations, 400, 0.1)
    if levels is None:
        assert violations > 10
        assert too_many(plain, 400, 0.1)


def test_the_budget_rank_is_that_of_the_beta_distribution():
    n, budget, confidence = 200, 0.2, 0.9
    rank = min(
        r
        for r in range(1, n + 1)
        if stats.beta.sf(1 - budget, r, n + 1 - r) >= confidence
    )
    threshold = referral_threshold(
        correct=np.ones(n), uncertainty=np.arange(n), budget=budget
    )
    assert threshold.guaranteed_threshold == rank


def test_too_few_items_leave_only_referring_nobody():
    threshold = referral_threshold(
        correct=np.ones(5), uncertainty=np.arange(5), budget=0.2
    )
    assert threshold.threshold == 4.0
    assert threshold.guaranteed_threshold == np.inf
    assert threshold.guaranteed_referred == 0.0
    assert "5 items are too few to guarantee a budget of 0.2" in threshold.reason


def test_perfect_accuracy_can_be_seen_but_not_guaranteed():
    threshold = referral_threshold(
        correct=np.ones(1000), uncertainty=np.arange(1000), accuracy=1.0
    )
    assert threshold.threshold == np.inf
    assert np.isnan(threshold.guaranteed_threshold)
    assert "guarantees accuracy 1.0" in threshold.reason


def test_item_order_does_not_matter():
    rng = np.random.default_rng(5)
    uncertainty = np.round(rng.random(500), 1)
    correct = rng.random(500) >= 0.5 * uncertainty
    order = rng.permutation(500)
    for asked in ({"accuracy": 0.9}, {"budget": 0.3}):
        threshold = referral_threshold(
            correct=correct, uncertainty=uncertainty, **asked
        )
        assert threshold == referral_threshold(
            correct=correct[order], uncertainty=uncertainty[order], **asked
        )


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({}, "exactly one of accuracy and budget, got neither"),
        ({"accuracy": 0.9, "budget": 0.1}, "accuracy and budget, got both"),
        ({"accuracy": 0.0}, r"accuracy must be above 0 and at most 1, got 0\.0"),
        ({"accuracy": np.nan}, "accuracy must be above 0 and at most 1, got nan"),
        ({"budget": 1.1}, r"budget must lie in \[0, 1\], got 1\.1"),
        ({"budget": 0.1, "confidence": 1.0}, "confidence must lie between 0 and 1"),
    ],
)
def test_bad_requests_are_refused_with_a_sentence(options, sentence):
    with pytest.raises(ValueError, match=sentence):
        referral_threshold(correct=[1, 0], uncertainty=[0.1, 0.2], **options)
