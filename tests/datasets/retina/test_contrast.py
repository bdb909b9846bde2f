import json
from pathlib import Path

import cv2
import numpy as np
import pytest
from skimage.data import retina

from qualms.datasets._encoded import jpeg
from qualms.datasets._retina.contrast import _eye_radius, enhance

GOLDEN = Path(__file__).parents[2] / "golden" / "retina.json"
EXPECTED = json.loads(GOLDEN.read_text())["preprocessing_case"]["expected"]


@pytest.fixture(scope="module")
def photograph():
    """The fundus photograph that scikit-image carries, in RGB."""
    return retina()


def golden_input():
    y, x = np.mgrid[:480, :640]
    colours = [30 + 20 * np.sin(x / 37), 80 + 30 * np.cos(y / 29)]
    colours.append(150 + 40 * np.sin((x + y) / 53))
    noise = np.random.default_rng(11).integers(-8, 9, (480, 640, 3))
    image = np.stack(colours, axis=-1) + noise
    image[np.hypot(x - 320, y - 240) >= 210] = 0
    return np.clip(image, 0, 255).astype(np.uint8)


def plainly(image, radius=300, blur=30):
    """Every step on the whole photograph, as the winning entry did it."""
    x = image[image.shape[0] // 2].sum(axis=1, dtype=int)
    r = (x > x.mean() / 10).sum() / 2
    scale = radius / (r if r >= 1 else image.shape[0] / 2)
    scaled = cv2.resize(image, (0, 0), fx=scale, fy=scale)
    mean = cv2.GaussianBlur(scaled, (0, 0), radius / blur)
    contrast = cv2.addWeighted(scaled, 4, mean, -4, 128)
    disc, kept = np.zeros(contrast.shape), int(0.9 * radius)
    row, column = contrast.shape[0] // 2, contrast.shape[1] // 2
    cv2.circle(disc, (column, row), kept, (1, 1, 1), -1, 8, 0)
    full = contrast * disc + 128 * (1 - disc)
    return full[max(0, row - kept) : row + kept, max(0, column - kept) : column + kept]


def test_the_golden_case_is_reproduced_to_the_last_digit():
    image = golden_input()
    assert image.sum() == EXPECTED["input"]["sum"]
    assert _eye_radius(image) == EXPECTED["radius"]
    result, golden = enhance(image), EXPECTED["masked_cropped"]
    assert list(result.shape) == golden["shape"]
    assert result.dtype == np.uint8
    assert result.mean(axis=(0, 1)).round(4).tolist() == golden["mean_bgr"]
    assert result[0, 0].tolist() == golden["corner"]
    assert result[270, 270].tolist() == golden["centre"]


def test_the_golden_case_as_jpeg_is_close_in_colour_and_size():
    # Encoders of other versions may round or write their headers in another way, hence
    # no equality; but a quality of 71 or 73 would miss every one of these by far.
    result, golden = enhance(golden_input()), EXPECTED["jpeg72"]
    data = jpeg(result, quality=72)
    decoded = cv2.imdecode(np.frombuffer(data, np.uint8), cv2.IMREAD_COLOR)
    assert list(decoded.shape) == golden["shape"]
    np.testing.assert_allclose(decoded.mean(axis=(0, 1)), golden["mean_bgr"], atol=1e-3)
    assert len(data) == pytest.approx(golden["bytes"], rel=2e-3)
    difference = np.abs(decoded.astype(float) - result).mean()
    assert difference == pytest.approx(golden["mean_abs_diff"], abs=2e-3)


# the wide blurs are slow, and as good a test on a smaller eye
@pytest.mark.parametrize(
    ("blur", "radius"), [(3, 100), (5, 100), (10, 100), (20, 300), (30, 300)]
)
def test_a_real_photograph_is_as_if_every_step_saw_all_of_it(photograph, blur, radius):
    result = enhance(photograph, blur=blur, radius=radius)
    assert result.shape == (1.8 * radius, 1.8 * radius, 3)
    np.testing.assert_array_equal(result, plainly(photograph, radius, blur))
    assert (result[0, 0] == 128).all()
    # the vessels and the optic disc stand out
    assert result.std() > 12


def test_a_larger_blur_constant_leaves_less_of_the_illumination(photograph):
    result = [enhance(photograph, blur=b, radius=100) for b in (3, 5, 10, 20, 30)]
    left = [cv2.GaussianBlur(one, (0, 0), 10).std() for one in result]
    assert left == sorted(left, reverse=True)
    assert left[0] > 3 * left[-1]
    # the photograph is red, the contrast is not
    assert abs(result[-1].mean() - 128) < 3


@pytest.mark.parametrize(
    "cut", [np.s_[90:390], np.s_[:, 130:510], np.s_[150:330, 20:], np.s_[:, :330]]
)
@pytest.mark.parametrize(("radius", "blurs"), [(300, [30]), (64, [3, 30]), (31, [3])])
def test_photographs_that_cut_the_eye_off_give_smaller_pictures(cut, radius, blurs):
    image = golden_input()[cut]
    for blur in blurs:
        result = enhance(image, radius=radius, blur=blur)
        np.testing.assert_array_equal(result, plainly(image, radius, blur))
        assert max(result.shape) <= 2 * int(0.9 * radius)


def test_the_order_of_channels_and_the_memory_do_not_matter():
    image = golden_input()
    before = image.copy()
    result = enhance(image[..., ::-1])
    np.testing.assert_array_equal(result[..., ::-1], enhance(image))
    np.testing.assert_array_equal(image, before)


def test_a_black_photograph_is_grey():
    result = enhance(np.zeros((200, 300, 3), np.uint8))
    assert (result == 128).all()


def test_a_photograph_without_an_eye_is_refused_rather_than_blown_up():
    image = np.zeros((1000, 1500, 3), np.uint8)
    image[:, 700:702] = 255
    with pytest.raises(ValueError, match=r"eye must be visible .* 1000 x 1500 pixels"):
        enhance(image)


@pytest.mark.parametrize("shape", [(1, 4000, 3), (4000, 1, 3), (1, 1200, 3)])
def test_a_photograph_that_vanishes_when_scaled_is_refused(shape):
    message = rf"at least a pixel high and wide .* got {shape[0]} x {shape[1]} pixels"
    with pytest.raises(ValueError, match=message):
        enhance(np.full(shape, 200, np.uint8))
    assert enhance(np.full((1, 1199, 3), 200, np.uint8)).shape == (1, 540, 3)


@pytest.mark.parametrize(
    ("image", "options", "message"),
    [
        (np.zeros((9, 9), np.uint8), {}, r"\(H, W, 3\) uint8, got \(9, 9\) uint8"),
        (np.zeros((9, 9, 3)), {}, "got .* float64"),
        (np.zeros((0, 9, 3), np.uint8), {}, "must have pixels"),
        (np.zeros((9, 9, 3), np.uint8), {"blur": 0}, "blur at least 1, got 300 and 0"),
        (np.zeros((9, 9, 3), np.uint8), {"radius": 1}, "radius must be at least 2"),
    ],
)
def test_what_is_no_photograph_is_refused(image, options, message):
    with pytest.raises(ValueError, match=message):
        enhance(image, **options)
