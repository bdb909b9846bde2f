"""Calibration errors against torchmetrics, netcal, relplot and direct sums."""

import warnings

import numpy as np
import pytest
import relplot
import torch
from scipy.optimize import brentq
from torchmetrics.functional.classification import (
    binary_calibration_error,
    multiclass_calibration_error,
)

from qualms.scores.calibration import (
    adaptive_ece,
    classwise_ece,
    ece,
    reliability,
    smooth_ece,
)
from scores.retina_golden import CASES, RTOL, inputs, scalars


def items(n=2000, classes=2, sharpness=1.6, seed=0):
    """Predictions that are too sure of themselves, with targets from the truth."""
    rng = np.random.default_rng(seed)
    truth = rng.dirichlet([0.8] * classes, n)
    target = (truth.cumsum(axis=1) > rng.random(n)[:, None]).argmax(axis=1)
    probs = truth**sharpness
    return probs / probs.sum(axis=1, keepdims=True), target


def confidence_of(probs, target):
    return probs.max(axis=1), (probs.argmax(axis=1) == target).astype(float)


@pytest.fixture(scope="module")
def netcal_metrics():
    # Its docstrings hold escapes that Python warns of whenever it compiles them.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import netcal.metrics
    return netcal.metrics


@pytest.mark.parametrize("case", CASES)
def test_retina_golden_ece(case):
    p, y = inputs(case)["p"], inputs(case)["y"]
    np.testing.assert_allclose(ece(p, y), scalars(case)["ece_15bins"], rtol=RTOL)


def test_binary_ece_equals_torchmetrics():
    probs, target = items()
    confidence, correct = confidence_of(probs, target)
    expected = binary_calibration_error(
        torch.tensor(confidence), torch.tensor(correct).int(), n_bins=15
    )
    assert ece(probs[:, 1], target) == pytest.approx(float(expected), abs=1e-6)


@pytest.mark.parametrize("bins", [7, 15])
def test_multi_class_ece_equals_torchmetrics_and_netcal(netcal_metrics, bins):
    probs, target = items(classes=5)
    theirs = multiclass_calibration_error(
        torch.tensor(probs), torch.tensor(target), num_classes=5, n_bins=bins
    )
    value = ece(probs, target, bins=bins)
    assert value == pytest.approx(float(theirs), abs=1e-6)
    assert value == pytest.approx(netcal_metrics.ECE(bins).measure(probs, target))


def test_full_confidence_falls_into_the_last_bin():
    # The textbook value, where some libraries open a bin of its own for 1.0.
    assert ece([0.95, 1.0], [1, 0], bins=10) == pytest.approx(0.475)


def test_adaptive_ece_is_the_plain_equal_mass_error_where_bins_divide_the_items():
    probs, target = items(n=1500, classes=4)
    confidence, correct = confidence_of(probs, target)
    order = np.argsort(confidence)
    gap = (correct - confidence)[order].reshape(15, 100).mean(axis=1)
    assert adaptive_ece(probs, target) == pytest.approx(np.abs(gap).mean(), rel=1e-12)


def test_adaptive_ece_takes_the_mean_over_tie_orders_in_every_bin():
    rng = np.random.default_rng(5)
    p, target = rng.integers(5, 9, 60) / 10 + 0.05, rng.integers(0, 2, 60)
    gaps = []
    for _ in range(4000):
        order = np.lexsort([rng.random(60), p])
        gaps.append((target - p)[order].reshape(6, 10).mean(axis=1))
    expected = np.abs(np.mean(gaps, axis=0)).mean()
    assert adaptive_ece(p, target, bins=6) == pytest.approx(expected, abs=2e-3)


def test_adaptive_ece_shares_an_item_across_an_edge():
    # Three items in two bins: the middle one is half in each.
    gap = np.array([-0.6, 0.3, 0.1])
    expected = (abs(gap[0] + gap[1] / 2) + abs(gap[1] / 2 + gap[2])) / 3
    assert adaptive_ece([0.6, 0.7, 0.9], [0, 1, 1], bins=2) == pytest.approx(expected)


def test_classwise_ece_equals_a_loop_over_classes_and_bins():
    probs, target = items(classes=4)
    per_class = []
    for k in range(4):
        bin_of = np.minimum(np.floor(probs[:, k] * 15), 14)
        parts = [
            np.mean(bin_of == b)
            * abs(np.mean((target == k)[bin_of == b]) - probs[bin_of == b, k].mean())
            for b in np.unique(bin_of)
        ]
        per_class.append(sum(parts))
    assert classwise_ece(probs, target) == pytest.approx(np.mean(per_class), rel=1e-12)


def smoothed_directly(confidence, correct):
    """The fixed point by summing the reflected kernel item by item."""
    grid = (np.arange(2000) + 0.5) / 2000
    mirrored = [
        2 * k + sign * confidence for k in (-2, -1, 0, 1, 2) for sign in (1, -1)
    ]

    def size(sigma):
        total = sum(
            (correct - confidence) @ np.exp(-(((grid - at[:, None]) / sigma) ** 2) / 2)
            for at in mirrored
        )
        return np.abs(total).mean() / (len(correct) * sigma * np.sqrt(2 * np.pi))

    return brentq(lambda sigma: size(sigma) - sigma, 1e-3, 1, xtol=1e-9)


@pytest.mark.parametrize(("n", "sharpness"), [(40, 1.0), (40, 3.0), (150, 1.6)])
def test_smooth_ece_equals_the_direct_sum(n, sharpness):
    probs, target = items(n=n, sharpness=sharpness)
    expected = smoothed_directly(*confidence_of(probs, target))
    assert smooth_ece(probs, target) == pytest.approx(expected, abs=2e-6)


def test_smooth_ece_counts_saturated_items_in_full():
    # Where relplot 1.0 drops half of what stands exactly at confidence 1.
    p, target = np.repeat([1.0, 0.7], 20), np.repeat([1, 0, 1, 0], [17, 3, 8, 12])
    expected = smoothed_directly(p, target)
    assert smooth_ece(p, target) == pytest.approx(expected, abs=2e-6)


@pytest.mark.parametrize("sharpness", [1.0, 1.6, 3.0])
@pytest.mark.parametrize("classes", [2, 5])
def test_smooth_ece_equals_relplot_away_from_full_confidence(classes, sharpness):
    probs, target = items(classes=classes, sharpness=sharpness)
    unsure = 0.98 * probs + 0.02 / classes
    expected = relplot.smECE(*confidence_of(unsure, target))
    assert smooth_ece(unsure, target) == pytest.approx(expected, abs=1e-3)


def test_right_and_certain_has_no_calibration_error():
    for score in (ece, adaptive_ece, classwise_ece, smooth_ece):
        assert score([1.0, 0.0, 1.0], [1, 0, 1]) == pytest.approx(0.0, abs=1e-12)
        assert score([1.0, 0.0, 1.0], [0, 1, 0]) == pytest.approx(1.0, rel=1e-6)


def test_the_points_of_the_diagram_add_up_to_the_ece():
    probs, target = items(classes=3)
    points = reliability(probs, target, bins=10)
    gap = np.abs(points.accuracy - points.confidence)
    total = np.nansum(gap * points.count) / points.count.sum()
    assert total == pytest.approx(ece(probs, target, bins=10))
    assert points.count.sum() == len(target)
    assert np.isnan(points.accuracy[points.count == 0]).all()


@pytest.mark.parametrize("score", [ece, adaptive_ece, classwise_ece, reliability])
def test_no_bins_are_refused(score):
    with pytest.raises(ValueError, match="bins must be at least 1, got 0"):
        score([0.2, 0.8], [0, 1], bins=0)
