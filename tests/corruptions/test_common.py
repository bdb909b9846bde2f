"""What every corruption must do, whatever it is."""

import numpy as np
import pytest

from qualms.corruptions import SEVERITIES, Corruption, corrupt, corrupt_labels
from qualms.shelf import find, names

NAMES = names("corruptions")
PARTS = {name: find("corruptions", name)() for name in NAMES}
FOR_VOLUMES = [name for name in NAMES if 3 in PARTS[name].space]
MOVING = [name for name in NAMES if PARTS[name].move is not None]


def picture(high=24, wide=32, channels=3, seed=0):
    """Smooth shapes with sharp edges, so that every corruption changes something."""
    y, x = np.mgrid[:high, :wide]
    waves = [np.sin(x / 3 + c) * np.cos(y / 4) for c in range(channels)]
    image = 0.5 + 0.3 * np.stack(waves, -1)
    image[high // 4 : high // 2, wide // 3 : wide // 2] = 0.9
    noise = np.random.default_rng(seed).normal(0, 0.02, image.shape)
    return (255 * (image + noise)).clip(0, 255).astype(np.uint8)


def volume(side=16):
    axes = np.mgrid[:side, :side, :side]
    ball = np.square(axes - side / 2).sum(0) < (side / 3) ** 2
    waves = np.sin(axes[0] / 2) * np.cos(axes[2] / 3)
    return (1000.0 * ball + 200.0 * waves - 300.0).astype(np.float32)[..., None]


def test_the_fifteen_of_imagenet_c_and_six_medical_ones_are_on_the_shelf():
    families = [PARTS[name].families for name in NAMES]
    assert sum("imagenet_c" in each for each in families) == 15
    assert sum("medical" in each for each in families) == 6
    assert all(isinstance(part, Corruption) for part in PARTS.values())


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("channels", [1, 3])
def test_a_picture_keeps_its_shape_and_type_and_changes(name, channels):
    image = picture(channels=channels)
    before = image.copy()
    for severity in SEVERITIES:
        changed = corrupt(image, name, severity, item="a")
        assert changed.shape == image.shape
        assert changed.dtype == np.uint8
    assert (changed != image).any()
    np.testing.assert_array_equal(image, before)


@pytest.mark.parametrize("name", NAMES)
def test_it_depends_on_the_item_and_the_seed_and_on_nothing_else(name):
    image = picture()
    first = corrupt(image, name, 3, item="a", seed=1)
    np.random.default_rng().random(5)  # numbers that others draw
    corrupt(image, name, 5, item="b")
    np.testing.assert_array_equal(corrupt(image, name, 3, item="a", seed=1), first)
    same = [
        np.array_equal(corrupt(image, name, 3, item=item, seed=seed), first)
        for item, seed in (("b", 1), ("a", 2))
    ]
    fixed = {
        *("defocus_blur", "zoom_blur", "brightness", "contrast"),
        *("pixelate", "jpeg_compression", "scanner_blur"),
    }
    if name in fixed:
        assert all(same)
    elif name != "gamma":  # of two signs
        assert not any(same)


@pytest.mark.parametrize("name", sorted({*NAMES} - {"elastic_transform"}))
def test_a_higher_severity_changes_more(name):
    """Apart from elastic transforms, whose published severities are not in order."""
    image = picture(48, 48).astype(np.float64) / 255

    def distance(severity):
        changed = [corrupt(image, name, severity, item=item) for item in "abcd"]
        return np.mean([np.abs(each - image).mean() for each in changed])

    assert distance(1) < distance(5)
    if name != "frost":  # its picture fades, and its ice grows
        assert distance(3) < 1.02 * distance(5)


@pytest.mark.parametrize("name", NAMES)
def test_numbers_with_a_fraction_keep_their_range(name):
    image = picture().astype(np.float32) / 255
    changed = corrupt(image, name, 2, item="a")
    assert changed.dtype == np.float32
    assert np.isfinite(changed).all()
    as_bytes = corrupt(picture(), name, 2, item="a")
    if name not in ("scanner_noise", "bias_field", "ghosting", "patient_motion"):
        # Those of scanners may leave the range, which bytes cannot.
        assert np.abs(255 * changed - as_bytes).max() < 1.01


@pytest.mark.parametrize("name", FOR_VOLUMES)
def test_volumes_of_any_unit_are_corrupted(name):
    image = volume()
    changed = corrupt(image, name, 4, item="a")
    assert changed.shape == image.shape
    assert np.isfinite(changed).all()
    assert (changed != image).any()
    # Another unit gives the same volume in that unit.
    other = corrupt(2.0 * image + 50.0, name, 4, item="a")
    np.testing.assert_allclose(other, 2.0 * changed + 50.0, atol=0.02)


@pytest.mark.parametrize("name", NAMES)
def test_an_image_of_one_value_stays_finite(name):
    for value in (0, 128, 255):
        image = np.full((24, 24, 3), value, np.uint8)
        assert corrupt(image, name, 5, item="a").dtype == np.uint8
        flat = np.full((24, 24, 3), value / 2, np.float32)
        assert np.isfinite(corrupt(flat, name, 5, item="a")).all()


@pytest.mark.parametrize("name", NAMES)
def test_labels_move_with_pixels_and_only_with_them(name):
    labels = np.zeros((2, 48, 48), np.uint8)
    labels[0, 10:30, 20:40] = 3
    labels[1, 12:30, 20:36] = 255
    moved = corrupt_labels(labels, name, 2, item="a")
    assert moved.dtype == np.uint8
    assert set(np.unique(moved)) <= {0, 3, 255}
    if name not in MOVING:
        np.testing.assert_array_equal(moved, labels)
        return
    assert (moved != labels).any()
    # A picture of the mask moves like the mask.
    image = np.repeat((labels[0] == 3).astype(np.float64)[..., None], 3, axis=-1)
    changed = corrupt(image, name, 2, item="a")[..., 0]
    clear = np.abs(changed - 0.5) > 0.49
    np.testing.assert_array_equal((moved[0] == 3)[clear], (changed > 0.5)[clear])
    assert clear.mean() > 0.9


def test_only_elastic_transforms_move_pixels():
    assert MOVING == ["elastic_transform"]


@pytest.mark.parametrize(
    ("image", "name", "severity", "message"),
    [
        (picture(), "fog", 6, "severity must be 1 to 5, got 6"),
        (picture(), "fog", 0, "severity must be 1 to 5, got 0"),
        (picture(6, 40), "fog", 1, "needs images of at least 8 pixels .* got 6 x 40"),
        (volume(), "fog", 1, "'fog' is for pictures, and these are volumes; choose"),
        (np.zeros((30, 2)), "fog", 1, "two or three sides and then channels.* 2 axes"),
        (np.zeros((9, 9, 1), int), "fog", 1, "bytes or numbers with a fraction, got"),
    ],
)
def test_what_cannot_be_corrupted_is_refused(image, name, severity, message):
    with pytest.raises(ValueError, match=message):
        corrupt(image, name, severity)


def test_an_unknown_name_is_refused():
    with pytest.raises(
        LookupError, match=r"no 'fogg' in corruptions. Did you mean 'fog'"
    ):
        corrupt(picture(), "fogg", 1)
