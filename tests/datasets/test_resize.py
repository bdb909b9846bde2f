import numpy as np
import pytest
import torch

from qualms.datasets._resize import bilinear, nearest

SIZES = [(450, 600), (240, 240), (112, 112), (224, 224), (67, 131), (40, 64)]


def interpolate(image, side):
    batch = torch.from_numpy(np.moveaxis(image, 2, 0)[None].copy())
    small = torch.nn.functional.interpolate(
        batch, (side, side), mode="bilinear", align_corners=False, antialias=False
    )
    return np.moveaxis(small[0].numpy(), 0, 2)


@pytest.mark.parametrize("size", SIZES)
def test_bilinear_on_floats_is_what_torch_does_without_antialias(size):
    image = np.random.default_rng(0).normal(size=(*size, 8)).astype(np.float32)
    small = bilinear(image, 64)
    assert small.dtype == np.float32
    np.testing.assert_allclose(small, interpolate(image, 64), rtol=0, atol=2e-6)


@pytest.mark.parametrize("size", SIZES)
def test_bilinear_on_bytes_is_within_one_grey_level_of_exact_arithmetic(size):
    image = np.random.default_rng(1).integers(0, 256, (*size, 3), dtype=np.uint8)
    small = bilinear(image, 64)
    assert small.dtype == np.uint8
    exact = interpolate(image.astype(np.float64), 64)
    assert np.abs(small - exact).max() < 1


def test_bilinear_reads_the_middle_pixel_when_shrinking_by_five():
    image = np.random.default_rng(2).integers(0, 256, (320, 320, 3), dtype=np.uint8)
    np.testing.assert_array_equal(bilinear(image, 64), image[2::5, 2::5])


def test_bilinear_keeps_a_single_channel():
    assert bilinear(np.zeros((80, 90, 1), np.uint8), 64).shape == (64, 64, 1)


@pytest.mark.parametrize("size", [*SIZES, (5000, 1000)])
def test_nearest_reads_the_floor_of_the_scaled_index(size):
    mask = np.random.default_rng(3).random(size) < 0.5
    rows, columns = (np.floor(np.arange(64) * (n / 64)).astype(int) for n in size)
    np.testing.assert_array_equal(nearest(mask, 64), mask[rows][:, columns])
