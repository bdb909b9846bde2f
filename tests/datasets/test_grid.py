import numpy as np
import pytest

from qualms.datasets._grid import Tile, patches


def tile(height, width):
    image = np.zeros((height, width, 3), np.uint8)
    return Tile("t1", "city", image, np.zeros((height, width), bool))


def test_patches_are_cut_row_by_row_and_counted():
    big = tile(130, 200)
    big.image[64:128, 128:192] = 7
    big.mask[63, 0] = True
    big.mask[64:66, 128:131] = True
    cut = patches(big)
    assert cut.item == ("t1/00-00", "t1/01-02")
    assert cut.target.tolist() == [1, 6]
    assert cut.image.shape == (2, 64, 64, 3)
    assert cut.image[0].max() == 0
    assert cut.image[1].min() == 7
    assert cut.extra["cluster"].tolist() == ["t1", "t1"]
    assert cut.extra["group"].tolist() == ["city", "city"]


def test_the_remainder_is_dropped():
    big = tile(130, 130)
    big.mask[128:] = True
    big.mask[:, 128:] = True
    assert patches(big).item == ()


def test_a_tile_without_marks_gives_no_items():
    cut = patches(tile(128, 64))
    assert cut.image.shape == (0, 64, 64, 3)
    assert cut.target.shape == (0,)
    assert cut.extra["cluster"].shape == (0,)


def test_a_mask_of_another_size_is_refused():
    with pytest.raises(ValueError, match="of t1 must have the same size"):
        patches(tile(64, 64)._replace(mask=np.ones((64, 65), bool)))
