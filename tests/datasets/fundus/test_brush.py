"""The brush: areas are right, nothing vanishes, and views mirror."""

import numpy as np
import pytest

from qualms.datasets.fundus._brush import BLOOD, LAYERS, VEIN, RetinaView, paint

NO_STROKES, NO_BLOBS = np.empty((0, 8)), np.empty((0, 10))


def view(size, mirrored=False):
    matrix = 0.5 * size * np.diag([-1.0 if mirrored else 1.0, 1.0])
    return RetinaView(matrix, np.full(2, 0.5 * size), size)


def blob(x, y, a, b, angle=0.0, density=1.0):
    return np.array([[x, y, a, b, angle, 0.05, 0.0, 0.0, density, BLOOD]])


def test_a_blob_covers_the_area_of_its_ellipse():
    layers = paint(view(200), NO_STROKES, blob(0.1, -0.2, 0.3, 0.15, 0.4))
    assert layers.shape == (LAYERS, 200, 200)
    assert layers[BLOOD].sum() / 100**2 == pytest.approx(np.pi * 0.3 * 0.15, rel=0.02)
    assert layers[[layer for layer in range(LAYERS) if layer != BLOOD]].max() == 0
    rows, columns = np.nonzero(layers[BLOOD] > 0.5)
    assert columns.mean() == pytest.approx(109.5, abs=1)
    assert rows.mean() == pytest.approx(79.5, abs=1)


@pytest.mark.parametrize(("width", "ratio"), [(0.2, 0.9), (0.002, 1.0)])
def test_a_stroke_covers_its_width_however_thin(width, ratio):
    stroke = np.array([[-0.5, 0.02, 0.5, 0.02, width, width, 1.0, VEIN]])
    layers = paint(view(200), stroke, NO_BLOBS)
    across = layers[VEIN][:, 100].sum() / 100
    assert across == pytest.approx(ratio * width, rel=0.12)


def test_a_small_lesion_stays_visible_in_a_small_picture():
    spot = blob(0.01, 0.01, 0.01, 0.01)
    large = paint(view(512), NO_STROKES, spot)[BLOOD]
    small = paint(view(64), NO_STROKES, spot)[BLOOD]
    assert large.max() == pytest.approx(1, abs=0.01)
    assert 0.3 < small.max() < 0.7
    assert np.count_nonzero(small > 0.1) <= 9


def test_a_mirrored_view_shows_the_mirror_image():
    shapes = blob(0.3, -0.2, 0.2, 0.1, 0.7)
    stroke = np.array([[-0.5, 0.1, 0.5, 0.6, 0.05, 0.02, 1.0, VEIN]])
    plain = paint(view(64), stroke, shapes)
    mirrored = paint(view(64, mirrored=True), stroke, shapes)
    np.testing.assert_allclose(mirrored, plain[:, :, ::-1], atol=1e-5)


def test_shapes_may_reach_beyond_the_picture():
    layers = paint(view(64), NO_STROKES, blob(1.0, 5.0, 0.3, 0.3))
    assert layers.max() == 0
    half = paint(view(64), NO_STROKES, blob(1.0, 0.0, 0.5, 0.5))[BLOOD]
    assert half.sum() / 32**2 == pytest.approx(np.pi * 0.25 / 2, rel=0.05)
