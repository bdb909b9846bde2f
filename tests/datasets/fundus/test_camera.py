"""Photographs of simulated eyes: what cameras and eyes do to the picture."""

import cv2
import numpy as np
import pytest

from qualms.datasets.fundus import Patient, fundus_photograph
from qualms.datasets.fundus._camera import INDIA, UNITED_STATES


def taken(number, profile=UNITED_STATES, **options):
    chosen = {"left": False, "severity": 0.0, "quality": 0.9, "size": 96}
    return fundus_photograph(Patient(1, 0, number), profile=profile, **chosen | options)


def sharpness(image):
    """Mean size of the second derivative of green, inside the round image."""
    middle = image[24:72, 24:72, 1].astype(np.float32)
    return np.abs(cv2.Laplacian(middle, cv2.CV_32F)).mean()


def test_a_photograph_depends_on_its_arguments_alone():
    first = taken(5)
    taken(6)
    np.testing.assert_array_equal(first, taken(5))
    assert (first != taken(6)).any()
    assert (first != taken(5, left=True)).any()


@pytest.mark.parametrize("left", [False, True])
def test_the_disc_lies_towards_the_nose(left):
    columns = []
    for number in range(30):
        grey = taken(number, left=left)[..., 1].astype(np.float32)
        soft = cv2.GaussianBlur(grey, (0, 0), 3) - cv2.GaussianBlur(grey, (0, 0), 12)
        inner = soft[24:72]
        columns.append(np.unravel_index(inner.argmax(), inner.shape)[1])
    towards = np.mean(np.array(columns) > 48)
    assert towards > 0.85 if not left else towards < 0.15


def test_the_corners_are_black_and_the_eye_is_red():
    for number in range(10):
        image = taken(number).astype(int)
        assert image[:3, :3].max() < 15
        red, green, blue = image[30:66, 30:66].mean(axis=(0, 1))
        assert red > 1.3 * green > 1.3 * blue > 0


def test_bad_quality_blurs_and_hides():
    sharp = [
        np.mean([sharpness(taken(n, quality=q)) for n in range(12)])
        for q in (0.2, 0.5, 0.8)
    ]
    assert np.all(np.diff(sharp) > 0)


def test_worse_disease_changes_more_pixels():
    def changed(severity):
        pairs = [
            (taken(n, severity=severity, quality=1.0), taken(n, quality=1.0))
            for n in range(8)
        ]
        return np.mean([np.abs(a.astype(int) - b.astype(int)).mean() for a, b in pairs])

    steps = [changed(severity) for severity in (0.5, 1.5, 2.2, 3.0, 4.0, 4.9)]
    assert steps[0] == 0
    assert np.all(np.diff(steps) > 0)


def test_profiles_differ_in_colour_field_and_sharpness():
    home = np.stack([taken(n) for n in range(24)])
    away = np.stack([taken(n, profile=INDIA) for n in range(24)])

    def share_of_blue(images):
        return images[..., 2].mean() / images[..., 1].mean()

    def dark(images):
        return np.mean(images.sum(axis=-1) < 30)

    assert share_of_blue(away) < 0.8 * share_of_blue(home)
    assert dark(away) < 0.8 * dark(home)
    assert away.mean() != pytest.approx(home.mean(), rel=0.03)


def test_both_eyes_of_a_patient_have_the_same_skin_and_camera():
    def tint(image):
        inner = image[30:66, 30:66].reshape(-1, 3).astype(float)
        middle = np.median(inner, axis=0)
        return middle / middle.sum()

    right = np.array([tint(taken(n)) for n in range(25)])
    left = np.array([tint(taken(n, left=True)) for n in range(25)])
    same = np.abs(right - left).mean()
    other = np.abs(right[1:] - left[:-1]).mean()
    assert same < 0.7 * other
