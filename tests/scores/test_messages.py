"""What a wrong call is told: the remedy that helps."""

import numpy as np
import pytest

from qualms import scores
from qualms.scores.as_published import retina

MAPS = np.moveaxis(np.random.default_rng(0).dirichlet([1.0] * 3, (4, 5, 6)), -1, 1)
PROB, TARGET = np.array([0.2, 0.7, 0.4]), np.array([0, 1, 1])


def test_classes_on_another_axis_are_found():
    with pytest.raises(ValueError, match="on axis 1: pass class_axis=1"):
        scores.decompose(MAPS)
    with pytest.raises(ValueError, match="on axis 0: pass class_axis=0"):
        scores.entropy(MAPS[0])
    scores.decompose(MAPS, class_axis=1)


def test_maps_with_the_classes_last_are_told_to_move_them():
    last = np.moveaxis(MAPS, 1, -1)
    with pytest.raises(ValueError, match=r"np\.moveaxis\(probs, 3, 1\)"):
        scores.sufficient_statistics(last)
    moved = np.moveaxis(last, 3, 1)
    assert scores.sufficient_statistics(moved).draw_labels.shape == (4, 5, 6)


def test_logits_are_told_to_be_probabilities():
    with pytest.raises(ValueError, match="logits"):
        scores.decompose(np.abs(np.random.default_rng(1).normal(size=(2, 5, 3))) / 3)


def test_correlation_with_ignored_pixels_names_the_mask():
    reference = scores.rater_variance([[0, 1, 255], [1, 1, 255]], ignore=255)
    with pytest.raises(ValueError, match=r"mask=~np\.isnan\(reference\)"):
        scores.ncc([0.1, 0.2, 0.3], reference)
    kept = scores.ncc([0.1, 0.2, 0.3], reference, mask=~np.isnan(reference))
    assert kept == pytest.approx(-1.0)


def test_images_of_two_sizes_are_told_to_be_joined():
    images = [np.zeros((2, 3)), np.zeros((4, 4))]
    for call in (
        lambda: scores.fit_platt(uncertainty=images, correct=images),
        lambda: scores.auroc(score=[[0.1], [0.2, 0.3]], positive=[0, 1]),
        lambda: scores.ncc(images, images),
    ):
        with pytest.raises(ValueError, match="parts differ in shape; join them first"):
            call()


@pytest.mark.parametrize(
    "curve",
    [scores.referral_curve, retina.referral_curve],
)
def test_a_referral_curve_with_swapped_arguments_says_so(curve):
    with pytest.raises(TypeError, match="the name of the score comes first"):
        curve(PROB, TARGET, "accuracy")


def test_a_direction_that_is_none_is_answered_with_those_there_are():
    with pytest.raises(ValueError, match="one of higher, lower, neither, got 'less'"):
        scores.as_score(label="Mine", better="less")
