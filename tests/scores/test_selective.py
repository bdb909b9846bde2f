"""Selective risk against all tie orders, scikit-learn and golden values."""

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import roc_auc_score

from qualms import scores
from qualms.inference import influence_of, interval_of
from qualms.scores.as_published import values
from qualms.scores.selective import (
    augrc,
    aurc,
    balanced_joint,
    coverage_at_risk,
    eaurc,
    risk_at_coverage,
    risk_coverage_curve,
    threshold_aurc,
    threshold_eaurc,
)

tiny_items = st.lists(
    st.tuples(st.sampled_from([0.0, 0.25, 0.7, 1.0]), st.integers(0, 2)),
    min_size=1,
    max_size=6,
).map(lambda rows: (np.array([r for r, _ in rows]), np.array([u for _, u in rows])))


def prefix_means(values):
    return np.cumsum(values) / np.arange(1, len(values) + 1)


def curves_of_all_tie_orders(risk, uncertainty):
    """(orders, N) selective risks, one row per order that sorts the uncertainty."""
    orders = map(list, permutations(range(len(risk))))
    rows = [
        prefix_means(risk[order])
        for order in orders
        if all(np.diff(uncertainty[order]) >= 0)
    ]
    return np.array(rows)


@given(tiny_items)
def test_curve_and_areas_are_expectations_over_tie_orders(items):
    risk, uncertainty = items
    curves = curves_of_all_tie_orders(risk, uncertainty)
    share = np.arange(1, len(risk) + 1) / len(risk)
    curve = risk_coverage_curve(risk=risk, uncertainty=uncertainty)
    np.testing.assert_allclose(curve.risk, curves.mean(axis=0), rtol=1e-12)
    np.testing.assert_array_equal(curve.coverage, share)
    assert aurc(risk=risk, uncertainty=uncertainty) == pytest.approx(
        curves.mean(), rel=1e-12
    )
    generalised = (curves * share).mean()
    assert augrc(risk=risk, uncertainty=uncertainty) == pytest.approx(
        generalised, rel=1e-12
    )


@given(tiny_items, st.sampled_from([0.01, 0.25, 0.5, 0.8, 1.0]))
def test_risk_at_coverage_is_an_expectation_over_tie_orders(items, coverage):
    risk, uncertainty = items
    kept = max(1, round(coverage * len(risk)))
    expected = curves_of_all_tie_orders(risk, uncertainty)[:, kept - 1].mean()
    value = risk_at_coverage(risk=risk, uncertainty=uncertainty, coverage=coverage)
    assert value == pytest.approx(expected, rel=1e-12)


@given(tiny_items)
def test_eaurc_is_the_distance_to_the_best_of_all_rankings(items):
    risk, uncertainty = items
    best = min(prefix_means(order).mean() for order in permutations(risk))
    excess = eaurc(risk=risk, uncertainty=uncertainty)
    assert excess == pytest.approx(
        aurc(risk=risk, uncertainty=uncertainty) - best, abs=1e-12
    )
    assert excess >= -1e-12


@given(
    st.lists(st.floats(0.0, 1.0), min_size=1, max_size=40),
    st.sampled_from(["the risk itself", "ties broken", "coarser only where equal"]),
)
def test_a_perfect_ranking_has_an_eaurc_of_exactly_zero(risks, kind):
    risk = np.round(np.array(risks), 1)
    uncertainty = {
        "the risk itself": risk,
        "ties broken": np.argsort(np.argsort(risk, kind="stable")),
        "coarser only where equal": np.unique(risk, return_inverse=True)[1],
    }[kind]
    assert eaurc(risk=risk, uncertainty=uncertainty) == 0.0


@given(tiny_items, st.sampled_from([0.0, 0.1, 0.25, 0.5, 0.7, 1.0]))
def test_coverage_at_risk_is_the_best_threshold(items, level):
    risk, uncertainty = items
    shares = [0.0] + [
        np.mean(uncertainty <= threshold)
        for threshold in np.unique(uncertainty)
        if risk[uncertainty <= threshold].mean() <= level + 1e-12
    ]
    assert coverage_at_risk(
        risk=risk, uncertainty=uncertainty, risk_level=level
    ) == max(shares)


def test_coverage_at_risk_forgives_the_rounding_of_a_mean():
    risk = np.full(10, 0.1)
    assert np.cumsum(risk)[2] / 3 > 0.1
    assert (
        coverage_at_risk(risk=risk[:3], uncertainty=np.arange(3), risk_level=0.1) == 1.0
    )


@pytest.mark.parametrize("seed", range(5))
def test_augrc_of_errors_is_the_auroc_of_the_errors(seed):
    # Traub et al. (2024): every error is paired with the correct items it outranks.
    rng = np.random.default_rng(seed)
    wrong = rng.random(300) < 0.3
    uncertainty = np.round(rng.normal(size=300) + wrong, 1)
    errors, hits = wrong.sum(), (~wrong).sum()
    misses = (1 - roc_auc_score(wrong, uncertainty)) * errors * hits
    expected = (misses + errors * (errors + 1) / 2) / 300**2
    assert augrc(risk=wrong, uncertainty=uncertainty) == pytest.approx(
        expected, rel=1e-12
    )


def test_selective_risks_agree_with_the_golden_curve(golden):
    case = golden("values")["C_image_level"]
    risk = np.array(case["inputs"]["risk"])
    uncertainty = -np.array(case["inputs"]["conf"])
    expected = case["curve_no_ties"]["selective_risks"][::-1]
    curve = risk_coverage_curve(risk=risk, uncertainty=uncertainty)
    np.testing.assert_allclose(curve.risk, expected, rtol=1e-9)
    best = case["aurc_opt_used_by_reference_mean_of_selective_risks"]
    assert aurc(risk=risk, uncertainty=risk) == pytest.approx(best, rel=1e-9)
    assert eaurc(risk=risk, uncertainty=uncertainty) == pytest.approx(
        np.mean(expected) - best, rel=1e-8
    )


@pytest.mark.parametrize(
    ("inside", "outside"), [(7, 3), (3, 7), (6, 3), (4, 4), (1, 5)]
)
def test_balanced_joint_repeats_the_smaller_side(inside, outside):
    shifted = np.random.default_rng(0).permutation(
        np.arange(inside + outside) < outside
    )
    index = balanced_joint(shifted)
    larger = max(inside, outside)
    assert len(index) == 2 * larger
    assert not shifted[index[:larger]].any()
    assert shifted[index[larger:]].all()
    times = np.bincount(index, minlength=len(shifted))
    for side in (shifted, ~shifted):
        assert times[side].min() == larger // side.sum()
        assert times[side].max() - times[side].min() <= 1


def test_balanced_joint_is_seeded():
    shifted = np.arange(100) < 37
    first = balanced_joint(shifted, seed=1)
    np.testing.assert_array_equal(first, balanced_joint(shifted, seed=1))
    assert (first != balanced_joint(shifted, seed=2)).any()


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (
            lambda: aurc(risk=[0.1, -0.2], uncertainty=[1, 2]),
            r"risk must be 0 or more, row 1 is -0\.2",
        ),
        (
            lambda: aurc(risk=[0.1, 0.2], uncertainty=[1, 2, 3]),
            r"uncertainty must have 2 items, got 3",
        ),
        (
            lambda: risk_at_coverage(risk=[0.1], uncertainty=[1], coverage=0.0),
            r"coverage must be above 0 and at most 1, got 0\.0",
        ),
        (
            lambda: risk_at_coverage(risk=[0.1], uncertainty=[1], coverage=np.nan),
            r"coverage must be above 0 and at most 1, got nan",
        ),
        (
            lambda: coverage_at_risk(risk=[0.1], uncertainty=[1], risk_level=-0.1),
            r"risk_level must be a number of 0 or more, got -0\.1",
        ),
        (lambda: balanced_joint([True, True]), r"got only shifted rows"),
        (lambda: balanced_joint([False]), r"got only in-domain rows"),
    ],
)
def test_bad_input_is_refused_with_a_sentence(call, sentence):
    with pytest.raises(ValueError, match=sentence):
        call()


def area_of_the_paper(risk, uncertainty):
    """Equation 7 of Kahl et al. (2024), over the thresholds that occur."""
    points = [
        (np.mean(uncertainty <= t), risk[uncertainty <= t].mean())
        for t in np.unique(uncertainty)
    ]
    coverage, selective = np.array(points).T
    return np.trapezoid(selective, coverage)


@given(tiny_items)
def test_the_area_by_thresholds_is_the_formula_of_the_paper(items):
    risk, uncertainty = items
    expected = area_of_the_paper(risk, uncertainty)
    assert threshold_aurc(risk=risk, uncertainty=uncertainty) == pytest.approx(
        expected, abs=1e-12
    )
    best = area_of_the_paper(risk, risk)
    excess = threshold_eaurc(risk=risk, uncertainty=uncertainty)
    assert excess == pytest.approx(expected - best, abs=1e-12)
    assert threshold_eaurc(risk=risk, uncertainty=risk) == 0.0


def test_areas_of_the_specification():
    rng = np.random.default_rng(42)
    risk, uncertainty = rng.random(12), -rng.normal(size=12)
    assert threshold_aurc(risk=risk, uncertainty=uncertainty) == pytest.approx(
        0.4990884544, abs=1e-9
    )
    assert values.aurc(risk=risk, uncertainty=uncertainty) == pytest.approx(
        0.4990884544, abs=1e-9
    )
    assert threshold_aurc(risk=risk, uncertainty=risk) == pytest.approx(
        0.3390212935, abs=1e-9
    )
    tied = np.round(2 * uncertainty) / 2
    assert threshold_aurc(risk=risk, uncertainty=tied) == pytest.approx(
        0.40905, abs=5e-6
    )
    assert aurc(risk=risk, uncertainty=tied) == pytest.approx(0.545, abs=5e-4)


def test_graded_risks_of_few_items_give_excess_risk_no_interval():
    rng = np.random.default_rng(0)
    hard = rng.standard_normal(200)
    risk = rng.beta(2.0, 6.0, 200)
    for score in (scores.aurc, scores.augrc):
        assert not interval_of(influence_of(score, risk[:30], hard[:30])).reason
    few = interval_of(influence_of(scores.eaurc, risk[:199], hard[:199]))
    assert "fewer than 200 items" in few.reason
    assert not interval_of(influence_of(scores.eaurc, risk, hard)).reason


def test_the_area_of_skewed_losses_has_half_the_degrees_of_freedom():
    risk = np.random.default_rng(1).exponential(1.0, 40)
    influence = influence_of(scores.aurc, risk, np.arange(40.0))
    errors = influence_of(scores.aurc, (risk > 1.0).astype(float), np.arange(40.0))
    assert influence.skewed
    assert not errors.skewed
