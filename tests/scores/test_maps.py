import numpy as np
import pytest
from scipy.stats import entropy

from qualms.scores.maps import (
    UNCERTAINTY_TYPES,
    sufficient_statistics,
    uncertainty_maps,
    uncertainty_type,
)
from scores.segmentation_items import GOLDEN, ball, tiles

BALL = GOLDEN["A_3d_binary"]


def maps_of(item, *, draws="models"):
    statistics = sufficient_statistics(item.probs)
    return uncertainty_maps(
        statistics.mean_probs, statistics.expected_entropy, draws=draws
    )


@pytest.mark.parametrize("measure", ["PE", "EE", "MI"])
def test_maps_of_the_ball_are_golden(measure):
    role = UNCERTAINTY_TYPES["models"][measure]
    actual = getattr(maps_of(ball(100)), role)
    golden = BALL["uncertainty_float64_recomputed"][measure]
    assert actual.sum() == pytest.approx(golden["sum"], rel=1e-9)
    assert actual.max() == pytest.approx(golden["max"], rel=1e-9)
    assert actual.min() == pytest.approx(golden["min"], rel=1e-6)
    assert actual[8, 8, 8] == pytest.approx(golden["[8,8,8]"], rel=1e-9)
    assert actual[3, 8, 8] == pytest.approx(golden["[3,8,8]"], rel=1e-9)


def test_one_minus_the_maximum_response_of_the_ball_is_golden():
    first = ball(100).probs[:1]
    statistics = sufficient_statistics(first)
    actual = uncertainty_maps(statistics.mean_probs, statistics.expected_entropy)
    golden = BALL["one_minus_MSR_sample0"]
    assert actual.max_softmax.sum() == pytest.approx(golden["sum"], rel=1e-9)
    assert actual.max_softmax.max() == pytest.approx(golden["max"], rel=1e-9)


def test_maps_of_the_tiles_are_scipys_entropies_and_stay_float32():
    item = tiles(7)
    actual = maps_of(item)
    double = item.probs.astype(np.float64)
    total, expected = entropy(double.mean(0), axis=0), entropy(double, axis=1).mean(0)
    assert actual.predictive.dtype == np.float32
    np.testing.assert_allclose(actual.predictive, total, atol=2e-6)
    np.testing.assert_allclose(actual.aleatoric, expected, atol=2e-6)
    np.testing.assert_allclose(actual.epistemic, total - expected, atol=2e-6)
    np.testing.assert_allclose(actual.max_softmax, 1 - double.mean(0).max(0), atol=1e-6)


def test_statistics_keep_the_mean_and_the_label_of_every_draw():
    item = tiles(8)
    statistics = sufficient_statistics(item.probs)
    np.testing.assert_allclose(
        statistics.mean_probs, item.probs.mean(axis=0), rtol=1e-6
    )
    np.testing.assert_array_equal(statistics.draw_labels, item.draws)
    assert statistics.draw_labels.dtype == np.uint8


def test_of_equally_probable_classes_the_first_is_the_label():
    probs = np.array([[[0.2], [0.4], [0.4]]])
    assert sufficient_statistics(probs).draw_labels.tolist() == [[1]]


def test_statistics_stored_in_half_precision_give_nearly_the_same_maps():
    statistics = sufficient_statistics(ball(100).probs)
    exact = uncertainty_maps(statistics.mean_probs, statistics.expected_entropy)
    stored = (array.astype(np.float16) for array in statistics[:2])
    for a, b in zip(uncertainty_maps(*stored), exact, strict=True):
        np.testing.assert_allclose(a, b, atol=2e-3)


def test_draws_of_labels_swap_the_roles_of_the_measures():
    models, labels = maps_of(ball(100)), maps_of(ball(100), draws="labels")
    np.testing.assert_array_equal(labels.predictive, models.predictive)
    np.testing.assert_array_equal(labels.aleatoric, models.epistemic)
    np.testing.assert_array_equal(labels.epistemic, models.aleatoric)


def test_the_type_of_a_measure_depends_on_what_the_draws_vary():
    assert uncertainty_type("MI", "models") == "epistemic"
    assert uncertainty_type("EE", "labels") == "epistemic"
    assert uncertainty_type("MSR", "models") == "predictive"
    assert uncertainty_type("EE", None) == "expected_entropy"
    with pytest.raises(LookupError, match=r"no measure 'EX'\. Known: PE"):
        uncertainty_type("EX", "models")
    for refused in (uncertainty_type, lambda _, draws: maps_of(ball(1), draws=draws)):
        with pytest.raises(ValueError, match="must be 'models' or 'labels', got 'ssn'"):
            refused("MI", "ssn")


def test_what_are_no_draws_is_refused():
    with pytest.raises(ValueError, match=r"shape \(M, C, \*space\)"):
        sufficient_statistics(np.full((2, 4), 0.5))
    with pytest.raises(ValueError, match="sum to 1"):
        sufficient_statistics(np.full((2, 3, 4), 0.5))
    with pytest.raises(ValueError, match="must cover the same pixels"):
        uncertainty_maps(np.full((2, 4, 4), 0.5), np.zeros((4, 5)))
