import pytest
import torch

from qualms.training.augment import augment


@pytest.fixture(autouse=True)
def seeded():
    torch.manual_seed(0)


def test_a_flip_turns_about_half_of_the_items_and_their_maps_with_them():
    image = torch.rand(400, 1, 3, 4)
    target = image[:, 0].clone()
    found = augment(("hflip",), image, target)
    same = (found.image == image).flatten(1).all(1)
    turned = (found.image == image.flip(3)).flatten(1).all(1)
    assert (same ^ turned).all()
    assert 150 < turned.sum() < 250
    assert torch.equal(found.target, found.image[:, 0])


def test_flips_turn_every_axis_of_a_volume():
    image = torch.rand(300, 1, 2, 3, 4)
    found = augment(("flips",), image, image[:, 0]).image
    forms = [
        image.flip([axis + 2 for axis in range(3) if mask >> axis & 1])
        for mask in range(8)
    ]
    equal = torch.stack([(found == form).flatten(1).all(1) for form in forms])
    assert (equal.sum(0) == 1).all()
    assert (equal.sum(1) > 10).all()


def test_noise_has_its_own_strength_for_every_item():
    image = torch.zeros(500, 1, 20, 20)
    strength = augment(("noise",), image, torch.zeros(500)).image.flatten(1).std(1)
    assert strength.max() < 0.115
    assert strength.mean() == pytest.approx(0.05, abs=0.005)


def test_jitter_stays_within_the_range_of_an_image():
    image = torch.rand(50, 3, 5, 5)
    found = augment(("jitter",), image, torch.zeros(50)).image
    assert found.min() >= 0
    assert found.max() <= 1
    assert (found != image).flatten(1).any(1).all()


def test_a_crop_shows_a_part_of_the_image_in_full_size():
    ramp = torch.linspace(0, 1, 16).expand(200, 1, 16, 16)
    found = augment(("crop",), ramp, torch.zeros(200)).image
    assert found.shape == ramp.shape
    low, high = found.amin((1, 2, 3)), found.amax((1, 2, 3))
    assert (high - low).min() > 0.1
    assert (high - low).mean() < 0.9
    assert (found.diff(dim=3) >= 0).all()
    torch.testing.assert_close(found[:, :, :1].expand_as(found), found)


def test_a_crop_of_label_maps_is_refused():
    with pytest.raises(ValueError, match="not label maps"):
        augment(("crop",), torch.rand(2, 1, 4, 4), torch.zeros(2, 4, 4))
