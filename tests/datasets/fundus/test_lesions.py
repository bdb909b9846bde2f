"""What each clinical grade shows, and that everything grows with the severity."""

import numpy as np
import pytest

from qualms.datasets.fundus._brush import BLOOD, COTTON, EXUDATE, VEIL
from qualms.datasets.fundus._lesions import (
    EXPECTED,
    SEVERITY,
    findings,
    lesion_blobs,
    lesion_strokes,
)

DISC = (0.66, -0.05)


def many(severity, n=200):
    return [findings(np.random.default_rng([7, i]), severity) for i in range(n)]


def total(severity, name):
    return sum(getattr(lesions, name) for lesions in many(severity))


@pytest.mark.parametrize("severity", [0.0, 0.3, 0.6])
def test_a_healthy_eye_shows_nothing(severity):
    for lesions in many(severity):
        assert sum(lesions[:7]) == 0
        assert lesions.beading == 0
        rng = np.random.default_rng(0)
        assert (
            len(lesion_blobs(rng, lesions, DISC))
            == len(lesion_strokes(rng, lesions, DISC))
            == 0
        )


@pytest.mark.parametrize("severity", [1.2, 1.5])
def test_grade_1_shows_microaneurysms_alone(severity):
    for lesions in many(severity):
        assert lesions.microaneurysms > 0
        assert sum(lesions[1:7]) == 0
        assert lesions.beading == 0


def test_grade_2_adds_haemorrhages_exudates_and_cotton_wool():
    for lesions in many(2.6):
        assert min(lesions[:4]) > 0
        assert sum(lesions[4:7]) <= 1
        assert lesions.beading == lesions.new_vessels == lesions.preretinal == 0


def test_grade_3_has_many_in_all_quadrants_and_beaded_veins():
    for i, lesions in enumerate(many(3.5, 20)):
        assert lesions.beading == 1
        assert lesions.abnormal_vessels >= 1
        assert lesions.preretinal == 0
        shapes = lesion_blobs(np.random.default_rng(i), lesions, DISC)
        bleeding = shapes[shapes[:, 9] == BLOOD]
        quadrant = 2 * (bleeding[:, 0] > 0) + (bleeding[:, 1] > 0)
        assert np.bincount(quadrant, minlength=4).min() >= 3


def test_grade_4_has_new_vessels_and_in_the_end_blood_before_the_retina():
    for lesions in many(4.2):
        assert lesions.new_vessels >= 1
        assert lesion_strokes(np.random.default_rng(0), lesions, DISC)
    for lesions in many(4.9):
        assert lesions.preretinal >= 1
        shapes = lesion_blobs(np.random.default_rng(0), lesions, DISC)
        assert VEIL in shapes[:, 9]
        assert len(np.unique(shapes[:, 9])) == 4


@pytest.mark.parametrize("name", sorted(EXPECTED))
def test_numbers_grow_with_the_severity_up_to_grade_3_and_follow_their_mean(name):
    steps = [total(severity, name) for severity in (0.5, 1.0, 1.7, 2.2, 2.8, 3.4)]
    assert np.all(np.diff(steps) >= 0)
    for severity in (1.0, 2.2, 3.4, 4.6):
        mean = np.interp(severity, SEVERITY, EXPECTED[name])
        assert total(severity, name) / 200 == pytest.approx(mean, rel=0.1, abs=0.15)


def test_early_lesions_keep_to_one_side():
    def spread(severity):
        lengths = []
        for i, lesions in enumerate(many(severity, 60)):
            shapes = lesion_blobs(np.random.default_rng(i), lesions, DISC)
            way = shapes[:, :2] / np.linalg.norm(shapes[:, :2], axis=1, keepdims=True)
            lengths.append(np.linalg.norm(way.mean(axis=0)))
        return np.mean(lengths)

    assert spread(1.5) > 0.6
    assert spread(3.5) < 0.35


def test_lesions_spare_the_disc_and_the_fovea():
    for i, lesions in enumerate(many(4.8, 40)):
        shapes = lesion_blobs(np.random.default_rng(i), lesions, DISC)
        small = shapes[np.isin(shapes[:, 9], [BLOOD, COTTON])]
        assert np.linalg.norm(small[:, :2] - DISC, axis=1).min() > 0.16
        assert np.linalg.norm(small[:, :2], axis=1).min() > 0.1
        assert np.count_nonzero(shapes[:, 9] == EXUDATE) >= 7 * lesions.exudates
