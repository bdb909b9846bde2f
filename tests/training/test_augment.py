import colorsys

import pytest
import torch

from qualms.training._augment import _blurring, _turned_hue, augment


@pytest.fixture(autouse=True)
def seeded():
    torch.manual_seed(0)


def test_a_flip_turns_about_half_of_the_items_and_their_maps_with_them():
    image = torch.rand(400, 1, 3, 4)
    target = image[:, 0].clone()
    augmented_images = augment(("hflip",), image, target)
    same = (augmented_images.image == image).flatten(1).all(1)
    turned = (augmented_images.image == image.flip(3)).flatten(1).all(1)
    assert (same ^ turned).all()
    assert 150 < turned.sum() < 250
    assert torch.equal(augmented_images.target, augmented_images.image[:, 0])


def test_flips_turn_every_axis_of_a_volume():
    image = torch.rand(300, 1, 2, 3, 4)
    augmented_images = augment(("flips",), image, image[:, 0]).image
    forms = [
        image.flip([axis + 2 for axis in range(3) if mask >> axis & 1])
        for mask in range(8)
    ]
    equal = torch.stack(
        [(augmented_images == form).flatten(1).all(1) for form in forms]
    )
    assert (equal.sum(0) == 1).all()
    assert (equal.sum(1) > 10).all()


def test_noise_has_its_own_strength_for_every_item():
    image = torch.zeros(500, 1, 20, 20)
    strength = augment(("noise",), image, torch.zeros(500)).image.flatten(1).std(1)
    assert strength.max() < 0.115
    assert strength.mean() == pytest.approx(0.05, abs=0.005)


def test_jitter_stays_within_the_range_of_an_image():
    image = torch.rand(50, 3, 5, 5)
    augmented_images = augment(("jitter",), image, torch.zeros(50)).image
    assert augmented_images.min() >= 0
    assert augmented_images.max() <= 1
    assert (augmented_images != image).flatten(1).any(1).all()


def test_a_crop_shows_a_part_of_the_image_in_full_size():
    ramp = torch.linspace(0, 1, 16).expand(200, 1, 16, 16)
    augmented_images = augment(("crop",), ramp, torch.zeros(200)).image
    assert augmented_images.shape == ramp.shape
    low, high = augmented_images.amin((1, 2, 3)), augmented_images.amax((1, 2, 3))
    assert (high - low).min() > 0.1
    assert (high - low).mean() < 0.9
    assert (augmented_images.diff(dim=3) >= 0).all()
    torch.testing.assert_close(
        augmented_images[:, :, :1].expand_as(augmented_images), augmented_images
    )


def test_jitter_keeps_what_has_no_colour_grey():
    grey = torch.rand(30, 1, 4, 4).expand(-1, 3, -1, -1)
    augmented_images = augment(("jitter", "hue_jitter"), grey, torch.zeros(30)).image
    torch.testing.assert_close(
        augmented_images[:, 1:], augmented_images[:, :1].expand(-1, 2, -1, -1)
    )


def test_hues_are_turned_as_colorsys_turns_them():
    image = torch.rand(400, 3, 1, 1)
    found = _turned_hue(image)
    moved = []
    for before, after in zip(image, found, strict=True):
        one, other = (
            colorsys.rgb_to_hsv(*i.flatten().tolist()) for i in (before, after)
        )
        assert other[1:] == pytest.approx(one[1:], abs=1e-4)
        moved.append((other[0] - one[0] + 0.5) % 1 - 0.5)
        back = colorsys.hsv_to_rgb((one[0] + moved[-1]) % 1, *one[1:])
        assert back == pytest.approx(after.flatten().tolist(), abs=1e-4)
    moved = torch.tensor(moved)
    assert moved.abs().max() < 0.1001
    assert moved.std() == pytest.approx(0.2 / 12**0.5, rel=0.1)


def test_some_items_lose_their_colour_and_most_are_jittered():
    image = torch.rand(1000, 3, 4, 4)
    grey = augment(("grey",), image, torch.zeros(1000)).image
    without = (grey.amax(1) - grey.amin(1)).amax((1, 2)) < 1e-6
    assert without.float().mean() == pytest.approx(0.2, abs=0.04)
    luma = (image * torch.tensor([0.299, 0.587, 0.114]).view(3, 1, 1)).sum(1)
    torch.testing.assert_close(grey[without, 0], luma[without])
    torch.testing.assert_close(grey[~without], image[~without])
    jittered = augment(("hue_jitter",), image, torch.zeros(1000)).image
    same = (jittered == image).flatten(1).all(1)
    assert same.float().mean() == pytest.approx(0.2, abs=0.04)


def test_a_blur_is_gaussian_with_a_radius_for_each_item():
    image = torch.zeros(200, 1, 31, 31)
    image[:, :, 15, 15] = 1
    augmented_images = augment(("blur",), image, torch.zeros(200)).image[:, 0]
    place = torch.arange(31) - 15.0
    variance = (augmented_images.sum(1) * place**2).sum(1)
    torch.testing.assert_close(augmented_images.sum((1, 2)), torch.ones(200))
    assert variance.max().sqrt() < 2.01
    assert variance.sqrt()[variance.sqrt() > 0.6].mean() == pytest.approx(1.3, abs=0.12)
    from scipy.ndimage import gaussian_filter

    wide = variance.argmax()
    smooth = torch.rand(1, 1, 31, 31)
    radius = float(variance[wide].sqrt())
    matrix = _blurring(31, torch.tensor([radius]))[0]
    inner = (matrix @ smooth[0, 0] @ matrix.T)[8:-8, 8:-8].numpy()
    wanted = gaussian_filter(smooth[0, 0].numpy(), radius, truncate=6)[8:-8, 8:-8]
    assert inner == pytest.approx(wanted, abs=1e-3)
    even = augment(("blur",), torch.full((5, 3, 8, 8), 0.3), torch.zeros(5)).image
    torch.testing.assert_close(even, torch.full((5, 3, 8, 8), 0.3))


def test_crops_are_as_wide_as_they_are_high_on_average():
    """Ratios are even in their logarithm: 4:3 is as frequent as 3:4."""
    ramp = torch.linspace(0, 1, 64)
    both = torch.stack(torch.meshgrid(ramp, ramp, indexing="ij")).expand(
        2000, -1, -1, -1
    )
    augmented_images = augment(("crop",), both, torch.zeros(2000)).image
    high, wide = (
        augmented_images[:, i].amax((1, 2)) - augmented_images[:, i].amin((1, 2))
        for i in (0, 1)
    )
    inside = (high < 0.9) & (wide < 0.9)
    ratio = (wide / high)[inside].log()
    assert ratio.mean() == pytest.approx(0, abs=0.015)
    assert ratio.abs().max() < 0.35


def test_a_crop_of_label_maps_is_refused():
    with pytest.raises(ValueError, match="not label maps"):
        augment(("crop",), torch.rand(2, 1, 4, 4), torch.zeros(2, 4, 4))


def scenes(count=400, high=24, wide=40):
    """Return images whose pixels show their label, and their label maps."""
    labels = torch.randint(1, 6, (count, high // 4, wide // 4))
    labels = labels.repeat_interleave(4, 1).repeat_interleave(4, 2).to(torch.uint8)
    return (labels[:, None] / 10).float(), labels


@pytest.mark.parametrize("name", ["rotate", "zoom"])
def test_label_maps_move_with_their_scene(name):
    image, labels = scenes()
    augmented_images = augment((name,), image, labels, outside=255)
    assert augmented_images.target.dtype == torch.uint8
    assert set(augmented_images.target.unique().tolist()) == {1, 2, 3, 4, 5, 255}
    inside = augmented_images.target != 255
    # Between two patches an image has a mean of both; elsewhere it shows its label.
    near = (augmented_images.image[:, 0] * 10 - augmented_images.target).abs()[
        inside
    ] < 0.01
    assert near.float().mean() > 0.6
    assert (
        augmented_images.image[:, 0][~inside].max() < 0.26
    )  # black, but for half a pixel


def test_a_rotation_turns_half_of_the_scenes_by_their_own_angle():
    high, wide = 60, 100
    image = torch.zeros(300, 1, high, wide)
    image[..., high // 2 - 1 : high // 2 + 1, :] = 1  # a line through the centre
    augmented_images = augment(("rotate",), image, torch.zeros(300)).image[:, 0]
    still = (augmented_images - image[:, 0]).abs().amax((1, 2)) < 1e-5
    assert 110 < still.sum() < 190
    row = torch.arange(high).float()[:, None] - (high - 1) / 2
    column = torch.arange(wide).float() - (wide - 1) / 2
    slope = (augmented_images * row * column).sum((1, 2)) / (
        augmented_images * column**2
    ).sum((1, 2))
    angle = slope.atan().rad2deg()
    assert angle.abs().max() < 23
    assert angle[~still].abs().mean() == pytest.approx(11.25, abs=1.5)
    # Pixels stay square: the line is as thick as before.
    middle = augmented_images[:, high // 4 : -high // 4, wide // 2 - 5 : wide // 2 + 5]
    thick = middle.sum((1, 2)) / 10 * angle.deg2rad().cos()
    assert thick[~still].mean() == pytest.approx(2.0, abs=0.05)


def test_a_zoom_is_between_four_and_six_fifths():
    image = torch.ones(500, 1, 50, 80)
    labels = torch.ones(500, 50, 80, dtype=torch.uint8)
    augmented_images = augment(("zoom",), image, labels, outside=9).target
    share = (augmented_images == 1).float().mean((1, 2)).sqrt()
    assert share.min() == pytest.approx(0.8, abs=0.03)
    assert (share == 1).float().mean() == pytest.approx(0.5, abs=0.08)
    ramp = torch.linspace(0, 1, 81)[:80].expand(500, 1, 50, 80)
    steps = augment(("zoom",), ramp, torch.zeros(500)).image[:, 0, 25].diff(dim=1)
    zoomed = (1 / 80) / steps[:, 40]
    assert zoomed.min() > 0.79
    assert zoomed.max() < 1.21
    assert zoomed.max() - zoomed.min() > 0.38


def test_noise_of_bytes_has_the_variance_of_the_paper_for_half_of_the_items():
    image = torch.full((600, 3, 20, 20), 0.5)
    found = augment(("byte_noise",), image, torch.zeros(600)).image * 255
    variance = found.flatten(1).var(1)
    noisy = variance > 1
    assert noisy.float().mean() == pytest.approx(0.5, abs=0.08)
    assert variance[noisy].mean() == pytest.approx(30, abs=2)
    assert variance[noisy].min() > 8
    assert variance.max() < 58


def test_a_volume_is_not_rotated():
    with pytest.raises(ValueError, match="images of two axes, not volumes"):
        augment(("rotate",), torch.rand(2, 1, 4, 4, 4), torch.zeros(2))
