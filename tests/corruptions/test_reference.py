"""Corruptions beside other libraries, and beside what their papers say."""

from io import BytesIO
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from scipy.ndimage import gaussian_filter, map_coordinates

from qualms.corruptions import corrupt
from qualms.corruptions._plasma import plasma
from qualms.corruptions._smooth import trail
from qualms.corruptions.defocus_blur import _disk
from qualms.corruptions.elastic_transform import _affine

cv2 = pytest.importorskip("cv2")
SIZES = [(32, 32), (224, 224), (40, 56)]


def picture(size, channels=3):
    rng = np.random.default_rng(len(size))
    coarse = rng.random((8, 8, channels))
    return (255 * cv2.resize(coarse, size[::-1])).astype(np.uint8).reshape(*size, -1)


def constants(size, small, large):
    return small if min(size) < 96 else large


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("severity", [1, 5])
def test_jpeg_is_that_of_pillow(size, severity):
    quality = constants(size, (80, 65, 58, 50, 40), (25, 18, 15, 10, 7))[severity - 1]
    file = BytesIO()
    Image.fromarray(picture(size)).save(file, "JPEG", quality=quality)
    ours = corrupt(picture(size), "jpeg_compression", severity)
    np.testing.assert_array_equal(ours, np.asarray(Image.open(file)))


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("severity", [1, 2, 3, 4, 5])
def test_pixels_are_those_of_pillow(size, severity):
    share = constants(size, (0.95, 0.9, 0.85, 0.75, 0.65), (0.6, 0.5, 0.4, 0.3, 0.25))[
        severity - 1
    ]
    few = tuple(int(side * share) for side in size[::-1])
    shrunk = Image.fromarray(picture(size)).resize(few, Image.Resampling.BOX)
    theirs = np.asarray(shrunk.resize(size[::-1], Image.Resampling.BOX))
    ours = corrupt(picture(size), "pixelate", severity)
    # Pillow rounds to bytes after each of four steps.
    assert np.abs(ours.astype(int) - theirs).max() <= 2


@pytest.mark.parametrize(
    ("radius", "rim", "side"), [(3, 0.1, 3), (6, 0.5, 3), (8, 0.5, 3), (10, 0.5, 5)]
)
def test_the_disk_is_that_of_opencv(radius, rim, side):
    reach = 8 if radius <= 8 else radius
    axis = np.arange(-reach, reach + 1)
    disk = (axis[:, None] ** 2 + axis**2 <= radius**2).astype(np.float64)
    theirs = cv2.GaussianBlur(disk / disk.sum(), ksize=(side, side), sigmaX=rim)
    np.testing.assert_allclose(_disk(radius, rim), theirs, atol=1e-12)


def test_defocus_is_a_filter_of_opencv():
    image = picture((224, 224)) / 255
    theirs = cv2.filter2D(image, -1, _disk(6, 0.5))
    np.testing.assert_allclose(
        corrupt(image, "defocus_blur", 3), theirs.clip(0, 1), atol=1e-9
    )


def test_brightness_is_added_to_the_value_of_hsv():
    color = pytest.importorskip("skimage.color")
    image = picture((40, 40))
    image[:3] = 0
    hsv = color.rgb2hsv(image / 255)
    hsv[..., 2] = np.clip(hsv[..., 2] + 0.15, 0, 1)
    ours = corrupt(image, "brightness", 3).astype(float)
    assert np.abs(ours - 255 * color.hsv2rgb(hsv)).max() < 0.51


def test_contrast_is_a_share_of_the_distance_from_the_mean():
    image = picture((224, 224)) / 255
    mean = image.mean(axis=(0, 1))
    changed = corrupt(image, "contrast", 5)
    np.testing.assert_allclose(changed - mean, 0.05 * (image - mean), atol=1e-12)


def test_a_trail_is_a_mean_with_weights_of_half_a_gaussian():
    point = np.zeros((21, 21, 1))
    point[10, 10] = 1.0
    along = trail(point, 5, 3.0, 0.0)[10, :, 0]
    weight = np.exp(-np.square(np.arange(11)) / 18)
    np.testing.assert_allclose(along[10::-1], weight / weight.sum())
    assert trail(point, 5, 3.0, 37.0).sum() == pytest.approx(1.0)
    assert np.argwhere(trail(point, 5, 3.0, 90.0)[..., 0])[:, 1].tolist() == [10] * 11


def test_noise_has_the_stated_size():
    grey = np.full((200, 200, 3), 0.5)
    noise = corrupt(grey, "gaussian_noise", 1) - grey
    assert noise.std() == pytest.approx(0.08, rel=0.02)
    counted = corrupt(grey, "shot_noise", 2) * 25
    np.testing.assert_allclose(counted, np.rint(counted), atol=1e-9)
    assert counted[counted < 25].mean() == pytest.approx(12.5, rel=0.02)
    hit = corrupt(grey, "impulse_noise", 5)
    assert (hit != grey).mean() == pytest.approx(0.27, rel=0.03)
    assert (hit == 1).mean() == pytest.approx((hit == 0).mean(), rel=0.05)
    half = np.zeros((200, 200, 1))
    half[:100] = 1.0
    scanned = corrupt(half, "scanner_noise", 4) - half
    assert scanned.std() == pytest.approx(0.2 * half.std(), rel=0.02)


def test_fog_fades_and_lightens():
    half = np.full((64, 64, 1), 0.5)
    fog = corrupt(half, "fog", 5)
    # (x + 1.5 clouds) max / (max + 1.5), with clouds from 0 to 1.
    assert fog.min() == pytest.approx(0.5 * 0.5 / 2.0, rel=0.2)
    assert fog.max() == pytest.approx(2.0 * 0.5 / 2.0, rel=0.2)
    clouds = plasma((32, 32), 2.0, np.random.default_rng(0))
    assert (clouds.min(), clouds.max()) == (0.0, 1.0)
    smooth = plasma((32, 32), 4.0, np.random.default_rng(0))

    def roughness(c):
        return np.abs(np.diff(c, axis=0)).mean()

    assert roughness(smooth) < roughness(clouds)


def test_frost_is_neither_black_nor_white_and_varies():
    black = np.zeros((224, 224, 3), np.uint8)
    ice = [corrupt(black, "frost", 3, item=item) / (255 * 0.7) for item in "abcdef"]
    assert 0.3 < np.mean(ice) < 0.6
    assert np.mean([each.std() for each in ice]) > 0.1


def test_the_affine_map_is_that_of_three_points():
    matrix, shift = _affine((32, 32), 3.0, np.random.default_rng(1))
    rng = np.random.default_rng(1)
    corners = 16 + 10 * np.array([[1.0, 1], [1, -1], [-1, -1]])
    moved = corners + rng.uniform(-3, 3, corners.shape)
    np.testing.assert_allclose(moved @ matrix.T + shift, corners, atol=1e-9)
    theirs = cv2.getAffineTransform(
        moved.astype(np.float32), corners.astype(np.float32)
    )
    np.testing.assert_allclose(matrix, theirs[:, :2], atol=1e-5)


def test_an_elastic_transform_without_noise_is_an_affine_map():
    image = picture((32, 32)) / 255
    ours = corrupt(image, "elastic_transform", 1, item="x")
    assert np.abs(ours - image).mean() > 0.005
    y, x = np.mgrid[:32, :32].astype(float)
    # Values are interpolated, so none leaves the range of the picture.
    assert image.min() <= ours.min()
    assert ours.max() <= image.max()
    again = map_coordinates(image[..., 0], [y, x], order=1)
    np.testing.assert_allclose(again, image[..., 0])


def test_gamma_raises_to_one_of_two_powers():
    image = picture((32, 32)) / 255
    powers = {
        float(np.round(np.median(np.log(corrupt(image, "gamma", 3, item=i)[image > 0])
        / np.log(image[image > 0])), 6))
        for i in "abcdefgh"
    }  # fmt: skip
    assert powers == {round(np.exp(-0.3), 6), round(np.exp(0.3), 6)}


def test_a_bias_field_multiplies_by_a_smooth_field():
    field = corrupt(np.full((32, 48, 1), 0.01), "bias_field", 5, item="q") / 0.01
    assert field.min() > 0
    assert np.abs(np.diff(np.log(field[..., 0]), 4, axis=0)).max() < 1e-9  # a cubic
    assert np.abs(np.log(field)).max() <= 0.5 * 10 + 1e-9


def test_ghosts_weaken_planes_of_the_spectrum():
    image = picture((32, 32), 1)[..., :1] / 255
    ghostly = corrupt(image, "ghosting", 3, item="g")
    shift = np.fft.fftshift
    before, after = (shift(np.fft.fft2(i[..., 0])) for i in (image, ghostly))
    ratio = np.abs(after) / np.abs(before)
    weak = np.abs(ratio - 0.4) < 1e-6
    # The image is real, so a plane and its mirror share what is lost.
    assert weak.any()
    assert ratio[16, 16] == pytest.approx(1.0)  # the mean stays


def test_motion_keeps_the_middle_of_the_spectrum():
    image = picture((64, 64), 1)[..., :1] / 255
    moved = corrupt(image, "patient_motion", 5, item="m")
    assert moved.mean() == pytest.approx(image.mean(), rel=1e-6)
    assert np.abs(moved - image).mean() > 0.005


def made_picture(side=224):
    """The picture of `bench/corruption_references.py`."""
    y, x = np.mgrid[:side, :side] / side
    waves = [0.5 + 0.3 * np.sin(9 * x + c) * np.cos(7 * y - c) for c in range(3)]
    image = np.stack(waves, axis=-1)
    image[side // 4 : side // 2, side // 3 : side // 2] = 0.9, 0.3, 0.2
    image[np.hypot(x - 0.7, y - 0.65) < 0.15] = 0.1, 0.2, 0.6
    noise = np.random.default_rng(0).normal(0, 0.02, image.shape)
    return (255 * np.clip(image + noise, 0, 1)).round().astype(np.uint8)


CASES = dict(np.load(Path(__file__).with_name("imagecorruptions.npz")))


@pytest.mark.parametrize("name", [name for name in CASES if "-" not in name])
def test_pictures_are_those_of_imagecorruptions(name):
    """That package has the code of ImageNet-C, and cuts values where ours rounds."""
    ours = corrupt(made_picture(), name, 3)[::3, ::3]
    assert np.abs(ours.astype(int) - CASES[name]).max() <= 1


@pytest.mark.parametrize("name", [name for name in CASES if "-" in name])
def test_chance_changes_as_much_as_that_of_imagecorruptions(name):
    corruption, severity = name.rsplit("-")
    image = made_picture()
    changed = [
        np.abs(
            corrupt(image, corruption, int(severity), item=item) - image.astype(float)
        )
        for item in "abcdef"
    ]
    share = 0.15 if corruption in ("fog", "snow", "motion_blur") else 0.03
    assert np.mean(changed) == pytest.approx(float(CASES[name]), rel=share)


MEDICAL = dict(np.load(Path(__file__).with_name("torchio.npz")))


@pytest.mark.parametrize("name", MEDICAL)
def test_volumes_are_those_of_torchio(name):
    """With the same parameters, by `bench/corruption_torchio.py`."""
    smooth = gaussian_filter(np.random.default_rng(0).random((24, 28, 20)), 2)
    image = (smooth - smooth.min()) / np.ptp(smooth)
    corruption, severity = name.rsplit("-")
    ours = corrupt(image[..., None], corruption, int(severity), item="a")[..., 0]
    np.testing.assert_allclose(ours[::2, ::2, ::2], MEDICAL[name], atol=1e-5)
