import cv2
import numpy as np
import pytest
from PIL import Image

from qualms.datasets import DatasetError
from qualms.datasets._pictures import (
    Tile,
    patches,
    read_grey,
    read_mask,
    read_rgb,
)

RNG = np.random.default_rng(0)
SMOOTH = cv2.resize(
    RNG.integers(0, 256, (9, 12, 3), dtype=np.uint8),
    (60, 45),
    interpolation=cv2.INTER_CUBIC,
)


@pytest.mark.parametrize("suffix", ["jpg", "png", "tif"])
def test_pixels_are_those_of_opencv_in_reversed_channel_order(tmp_path, suffix):
    path = tmp_path / f"a.{suffix}"
    Image.fromarray(SMOOTH).save(path)
    np.testing.assert_array_equal(read_rgb(path), cv2.imread(str(path))[..., ::-1])


@pytest.mark.parametrize("mode", ["RGBA", "P", "L", "1", "LA"])
def test_other_modes_are_read_as_opencv_reads_them(tmp_path, mode):
    path = tmp_path / "a.png"
    picture = Image.fromarray(SMOOTH).convert(mode)
    if mode == "RGBA":
        picture.putalpha(100)
    picture.save(path)
    np.testing.assert_array_equal(read_rgb(path), cv2.imread(str(path))[..., ::-1])


@pytest.mark.parametrize("mode", ["RGB", "L", "1", "P"])
def test_a_mask_is_the_first_channel_opencv_gives(tmp_path, mode):
    path = tmp_path / "a.png"
    Image.fromarray(SMOOTH // 100 * 100).convert(mode).save(path)
    np.testing.assert_array_equal(read_mask(path), cv2.imread(str(path))[..., 0] > 0)


def test_a_grey_picture_has_two_axes(tmp_path):
    Image.fromarray(SMOOTH[..., 0]).save(tmp_path / "a.png")
    np.testing.assert_array_equal(read_grey(tmp_path / "a.png"), SMOOTH[..., 0])


@pytest.mark.parametrize("suffix", ["jpg", "png"])
@pytest.mark.parametrize("read", [read_rgb, read_grey, read_mask])
def test_a_truncated_picture_is_refused(tmp_path, suffix, read):
    path = tmp_path / f"a.{suffix}"
    Image.fromarray(SMOOTH).save(path)
    path.write_bytes(path.read_bytes()[:-400])
    with pytest.raises(DatasetError, match=rf"cannot read .*a\.{suffix}: "):
        read(path)


def test_other_bytes_and_no_file_are_refused(tmp_path):
    (tmp_path / "a.png").write_bytes(b"not a picture")
    with pytest.raises(DatasetError, match=r"cannot read .*a\.png: "):
        read_rgb(tmp_path / "a.png")
    with pytest.raises(DatasetError, match=r"there is no file .*b\.png"):
        read_mask(tmp_path / "b.png")


def test_sixteen_bits_are_refused_instead_of_clipped(tmp_path):
    Image.fromarray(np.full((4, 4), 300, np.uint16)).save(tmp_path / "a.png")
    for read in (read_rgb, read_mask, read_grey):
        with pytest.raises(DatasetError, match="expected 8 bits per channel"):
            read(tmp_path / "a.png")


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
