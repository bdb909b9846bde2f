"""Simulated graders: known odds, known disagreement, published shares."""

import numpy as np
import pytest
from scipy import stats

from qualms.datasets.fundus._graders import (
    BURDENS,
    cuts,
    grade_probs,
    population,
    readings,
    severity,
)

TRAIN = (25_810, 2_443, 5_292, 873, 708)
ABROAD = (1_418, 309, 814, 158, 230)


def noise(quality):
    """The standard deviation of a reading, as the docstring's constants say."""
    return 0.15 * quality + 0.85 * (1 - quality)


def test_the_probabilities_are_those_of_repeated_readings():
    rng = np.random.default_rng(0)
    for burden, quality in ((-0.5, 0.2), (0.8, 0.9), (1.4, 0.5), (2.4, 1.0)):
        probs = grade_probs(np.array([burden]), np.array([quality]))[0]
        read = burden + noise(quality) * rng.standard_normal(200_000)
        result = np.bincount(np.digitize(read, cuts()), minlength=5) / len(read)
        assert probs.sum() == pytest.approx(1)
        np.testing.assert_allclose(probs, result, atol=0.005)


@pytest.mark.parametrize("shares", [TRAIN, ABROAD, (3, 1, 3, 1, 2)])
def test_readings_have_the_wanted_shares_in_any_population(shares):
    result = readings(np.random.default_rng(1), 60_000, shares).grade
    expected = np.array(shares) / sum(shares)
    np.testing.assert_allclose(np.bincount(result) / len(result), expected, atol=0.008)


def test_at_home_the_burden_is_standard_normal():
    np.testing.assert_allclose(
        population(TRAIN), stats.norm.cdf(BURDENS), atol=3e-3, rtol=0
    )
    drawn = readings(np.random.default_rng(2), 20_000, TRAIN)
    assert stats.kstest(drawn.burden[::2], "norm").pvalue > 1e-3
    assert stats.kstest(drawn.quality, "beta", (4.0, 1.5)).pvalue > 1e-3


def test_abroad_is_the_closest_population_that_gives_these_shares():
    # Moving away along any direction that keeps the shares raises the divergence.
    abroad, home = (np.diff(population(of)) for of in (ABROAD, TRAIN))
    middle = (BURDENS[1:] + BURDENS[:-1]) / 2
    steps = stats.beta.ppf((np.arange(64) + 0.5) / 64, 4.0, 1.5)
    read = np.mean([grade_probs(middle, np.full_like(middle, q)) for q in steps], 0)
    np.testing.assert_allclose(abroad @ read, np.array(ABROAD) / 2_929, atol=2e-4)
    inner = (np.abs(middle) < 2.5) & (abroad > 0)
    slope = np.log(abroad[inner] / home[inner])
    fitted, *_ = np.linalg.lstsq(read[inner], slope, rcond=None)
    np.testing.assert_allclose(read[inner] @ fitted, slope, atol=0.02)


def test_bad_photographs_are_read_with_more_disagreement():
    burden = np.full(5, cuts()[1] + 0.4)
    quality = np.linspace(0, 1, 5)
    probs = grade_probs(burden, quality)
    entropy = stats.entropy(probs, axis=1)
    assert np.all(np.diff(entropy) < 0)


def test_two_graders_agree_on_about_four_photographs_in_five():
    drawn = readings(np.random.default_rng(3), 30_000, TRAIN)
    probs = grade_probs(drawn.burden, drawn.quality)
    assert np.mean(np.sum(probs**2, axis=1)) == pytest.approx(0.797, abs=0.008)
    own = probs[np.arange(len(probs)), drawn.grade]
    by_grade = [own[drawn.grade == grade].mean() for grade in range(5)]
    assert int(np.argmin(by_grade)) == 1
    assert by_grade[1] < 0.3 < by_grade[0]


def test_the_whole_part_of_the_severity_is_the_true_grade():
    burden = np.random.default_rng(4).normal(0.5, 1.3, 10_000)
    result = severity(burden)
    assert np.all((result >= 0) & (result <= 5))
    full = np.floor(result).clip(max=4)
    np.testing.assert_array_equal(full, np.searchsorted(cuts(), burden))
    assert np.all(np.diff(result[np.argsort(burden)]) >= 0)


def test_higher_grades_are_read_in_worse_eyes():
    drawn = readings(np.random.default_rng(5), 30_000, TRAIN)
    shown = severity(drawn.burden)
    means = [shown[drawn.grade == grade].mean() for grade in range(5)]
    assert np.all(np.diff(means) > 0.25)


def test_the_two_eyes_of_a_patient_are_alike():
    drawn = readings(np.random.default_rng(6), 20_000, TRAIN)
    right, left = drawn.burden[::2], drawn.burden[1::2]
    assert np.corrcoef(right, left)[0, 1] == pytest.approx(0.92, abs=0.01)
    assert np.corrcoef(right[1:], left[:-1])[0, 1] == pytest.approx(0, abs=0.03)


@pytest.mark.parametrize(
    ("shares", "message"),
    [
        ((1, 2, 3), "shares must be five weights of at least 0, got"),
        ((1, 2, -3, 4, 5), "shares must be five weights of at least 0, got"),
        (
            (0, 1, 0, 0, 0),
            "no population has grades in .* a positive weight",
        ),
    ],
)
def test_impossible_shares_are_refused_with_a_sentence(shares, message):
    with pytest.raises(ValueError, match=message):
        readings(np.random.default_rng(0), 10, shares)
