import pickle
from functools import reduce
from itertools import pairwise
from operator import add

import numpy as np
import pytest
from sklearn.calibration import _sigmoid_calibration
from threadpoolctl import threadpool_limits

from qualms.scores.arguments import called_in_order
from qualms.scores.decomposition import decompose
from qualms.scores.platt import Platt, ace, fit_platt, uncertainty_histogram
from qualms.scores.raters import rater_agreement
from scores.segmentation_items import GOLDEN, ball, tiles

BALL = GOLDEN["A_3d_binary"]


def pixels(seed, n=400):
    rng = np.random.default_rng(seed)
    uncertainty = rng.random(n) * 0.7
    correct = rng.random(n) > uncertainty
    return uncertainty, correct


def test_a_fit_is_the_same_on_any_number_of_threads():
    uncertainty, correct = pixels(5, n=60_000)
    found = set()
    for threads in (1, 2):
        with threadpool_limits(threads):
            found.add(fit_platt(uncertainty=uncertainty, correct=correct))
    assert len(found) == 1


def slow_ace(confidence, correct, bins=20):
    edges = np.linspace(0, 1 + 1e-8, bins + 1)
    gaps = []
    for low, high in pairwise(edges):
        inside = (confidence >= low) & (confidence < high)
        if inside.any():
            gaps.append(abs(correct[inside].mean() - confidence[inside].mean()))
    return np.mean(gaps)


def near_the_optimum(platt, uncertainty, correct):
    """Gradient of the smoothed likelihood, written from Platt's paper."""
    right = correct.astype(bool)
    target = np.where(
        right, (right.sum() + 1) / (right.sum() + 2), 1 / ((~right).sum() + 2)
    )
    residual = 1 / (1 + np.exp(-platt.a * uncertainty + platt.b)) - target
    return abs(residual.mean()) < 1e-12 and abs((residual * uncertainty).mean()) < 1e-12


@pytest.mark.parametrize("seed", range(5))
def test_the_fit_is_the_optimum_that_scikit_learn_looks_for(seed):
    uncertainty, correct = pixels(seed)
    platt = fit_platt(uncertainty=uncertainty, correct=correct)
    a, b = _sigmoid_calibration(-uncertainty, correct.astype(int))
    assert platt.a == pytest.approx(a, rel=1e-6)
    assert platt.b == pytest.approx(b, rel=1e-6)
    assert near_the_optimum(platt, uncertainty, correct)


@pytest.mark.parametrize("scale", [1e-200, 1e-6, 1.0, 1e6])
def test_the_fit_of_separable_pixels_is_finite_at_any_scale(scale):
    uncertainty = scale * np.arange(50.0)
    correct = np.arange(50) < 20
    platt = fit_platt(uncertainty=uncertainty, correct=correct)
    unit = fit_platt(uncertainty=np.arange(50.0), correct=correct)
    assert platt.a * scale == pytest.approx(unit.a, rel=1e-8)
    assert platt.b == pytest.approx(unit.b, rel=1e-8)
    assert near_the_optimum(unit, np.arange(50.0), correct)


@pytest.mark.parametrize("seed", [101, 102])
def test_fits_of_the_balls_are_golden(seed):
    item = ball(seed)
    agreement = rater_agreement(item.prediction, item.raters)
    for name, values in zip(
        ("PE", "EE", "MI"), decompose(item.probs, class_axis=1), strict=True
    ):
        platt = fit_platt(
            uncertainty=values, correct=agreement.correct, total=agreement.total
        )
        golden = BALL["platt_params_per_val_image"][f"v{seed}"][name]
        assert [platt.a, platt.b] == pytest.approx(golden, rel=1e-6)


def test_a_pixel_that_counts_thrice_is_the_same_as_three_pixels():
    uncertainty, _ = pixels(6)
    raters = np.random.default_rng(7).random((3, 400)) > uncertainty
    tiled = np.tile(uncertainty, 3)
    right, three = raters.sum(axis=0), np.full(400, 3)
    platt = fit_platt(uncertainty=uncertainty, correct=right, total=three)
    once = fit_platt(uncertainty=tiled, correct=raters.ravel())
    assert (platt.a, platt.b) == pytest.approx((once.a, once.b), rel=1e-9)
    confidence = platt.confidence(uncertainty)
    expected = ace(confidence=np.tile(confidence, 3), correct=raters.ravel())
    assert ace(confidence=confidence, correct=right, total=three) == pytest.approx(
        expected, rel=1e-12
    )


def test_a_pixel_with_total_zero_does_not_count():
    uncertainty, correct = pixels(8)
    kept = np.arange(400) % 3 > 0
    fit = fit_platt(
        uncertainty=uncertainty, correct=correct & kept, total=kept.astype(int)
    )
    expected = fit_platt(uncertainty=uncertainty[kept], correct=correct[kept])
    assert (fit.a, fit.b) == pytest.approx((expected.a, expected.b), rel=1e-9)
    confidence = fit.confidence(uncertainty)
    actual = ace(confidence=confidence, correct=correct & kept, total=kept)
    assert actual == pytest.approx(
        ace(confidence=confidence[kept], correct=correct[kept]), rel=1e-12
    )
    assert np.isnan(
        ace(confidence=confidence, correct=np.zeros(400), total=np.zeros(400))
    )


def test_pixels_that_are_all_right_get_the_smoothed_accuracy():
    uncertainty, _ = pixels(9)
    platt = fit_platt(uncertainty=uncertainty, correct=np.ones(400))
    assert platt.confidence([0.0, 0.7]) == pytest.approx([401 / 402] * 2)


def test_uncertainty_that_does_not_vary_gets_no_slope():
    platt = fit_platt(uncertainty=np.full(10, 0.3), correct=np.arange(10) < 6)
    assert platt.a == 0.0
    smoothed = (6 * 7 / 8 + 4 / 6) / 10
    assert platt.confidence(0.3) == pytest.approx(smoothed)


def test_the_histogram_of_several_items_gives_the_fit_of_all_their_pixels():
    items = [pixels(seed, n=2000) for seed in range(10, 13)]
    histograms = [
        uncertainty_histogram(uncertainty=u, correct=c, high=0.7) for u, c in items
    ]
    pooled = reduce(add, histograms)
    fit = fit_platt(uncertainty=pooled.mean, correct=pooled.correct, total=pooled.total)
    values, right = (np.concatenate(parts) for parts in zip(*items, strict=True))
    exact = fit_platt(uncertainty=values, correct=right)
    assert (fit.a, fit.b) == pytest.approx((exact.a, exact.b), rel=1e-8)
    assert pooled.total.sum() == 6000
    assert pooled.correct.sum() == right.sum()


def test_a_histogram_travels_by_its_filled_bins():
    here = called_in_order(uncertainty_histogram, *pixels(20), high=0.7)
    packed = pickle.dumps(here)
    there = pickle.loads(packed)
    assert len(packed) < here.total.nbytes / 10
    assert there.high == here.high
    assert np.array_equal(there.total, here.total)
    assert np.array_equal(there.summed, here.summed)


def test_values_outside_the_histogram_join_its_end_bins():
    actual = uncertainty_histogram(
        uncertainty=[-1e-8, 0.2, 5.0], correct=[1, 1, 0], high=1.0, bins=2
    )
    assert actual.total.tolist() == [[0.0, 1.0], [2.0, 0.0]]
    assert actual.mean == pytest.approx(np.array([[0.0, 5.0], [0.1, 0.0]]), abs=1e-7)


def test_histograms_of_different_bins_do_not_add():
    a = uncertainty_histogram(uncertainty=[0.1], correct=[1], high=1.0)
    for other in ({"high": 2.0}, {"high": 1.0, "bins": 8}):
        with pytest.raises(ValueError, match="share their range"):
            a + uncertainty_histogram(uncertainty=[0.1], correct=[1], **other)


def test_ace_of_the_ball_is_golden():
    item = ball(100)
    agreement = rater_agreement(item.prediction, item.raters)
    confidence = item.probs.mean(axis=0).max(axis=0)
    actual = ace(
        confidence=confidence, correct=agreement.correct, total=agreement.total
    )
    assert actual == pytest.approx(
        BALL["ace_no_platt_conf_is_mean_softmax_max"], abs=1e-10
    )


@pytest.mark.parametrize("bins", [1, 7, 20])
def test_ace_is_the_mean_gap_of_the_bins_that_are_not_empty(bins):
    rng = np.random.default_rng(13)
    # Values on the edges themselves belong to the bin above.
    confidence = np.concatenate(
        [rng.random(200) ** 2, np.linspace(0, 1 + 1e-8, bins + 1)[:-1], [0.0, 1.0]]
    )
    correct = rng.random(len(confidence)) < confidence
    expected = slow_ace(confidence, correct, bins)
    assert ace(confidence=confidence, correct=correct, bins=bins) == pytest.approx(
        expected, abs=1e-12
    )


def test_an_item_that_is_all_right_is_scored_as_such():
    assert ace(confidence=np.full(50, 0.97), correct=np.ones(50)) == pytest.approx(0.03)
    assert ace(confidence=np.full(50, 0.97), correct=np.zeros(50)) == pytest.approx(
        0.97
    )


def test_confidence_follows_the_sign_convention_of_the_paper():
    actual = Platt(a=-14.5, b=-10.0).confidence([0.0, 0.5])
    assert actual == pytest.approx(1 / (1 + np.exp(np.array([-10.0, 7.25 - 10.0]))))


def test_float_kinds_give_the_same_fit():
    values = tiles(7).probs.mean(axis=0).max(axis=0).astype(np.float16)
    correct = tiles(7).prediction == tiles(7).raters[0]
    low, high = (
        fit_platt(uncertainty=values.astype(kind), correct=correct)
        for kind in (np.float16, float)
    )
    assert (low.a, low.b) == (high.a, high.b)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda u, c: ace(confidence=u + 1, correct=c),
            r"must lie in \[0, 1\].*fit_platt",
        ),
        (lambda u, c: ace(confidence=u, correct=c[1:]), "must cover the same pixels"),
        (lambda u, c: ace(confidence=u, correct=c, bins=0), "bins must be at least 1"),
        (lambda u, c: ace(confidence=u, correct=c * 0.5), "correct must be 0 or 1"),
        (lambda u, c: ace(confidence=u[:0], correct=c[:0]), "at least one pixel"),
        (lambda u, c: fit_platt(uncertainty=u, correct=c + 2, total=c), r"0\.\.total"),
        (
            lambda u, c: fit_platt(uncertainty=u, correct=c * 0, total=c * 0),
            "at least one pixel to fit",
        ),
        (
            lambda u, c: fit_platt(uncertainty=np.where(c, np.nan, u), correct=c),
            "must be finite",
        ),
        (
            lambda u, c: uncertainty_histogram(uncertainty=u, correct=c, high=0.0),
            "high positive",
        ),
    ],
)
def test_what_cannot_be_calibrated_is_refused(call, message):
    uncertainty, correct = pixels(14)
    with pytest.raises(ValueError, match=message):
        call(uncertainty, correct.astype(float))
