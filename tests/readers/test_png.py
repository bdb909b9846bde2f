"""A PNG with a flipped bit, or a missing end, is refused wherever pictures are read."""

import io

import numpy as np
import pytest
from PIL import Image

from qualms.datasets._pictures import read_grey, read_mask, read_rgb
from qualms.datasets._png import check_png
from qualms.datasets.folder.files import (
    mask_facts,
    read_labels,
    read_pixels,
)
from qualms.predictions import PredictionsError, read

READERS = (read_grey, read_rgb, read_mask, read_labels, read_pixels)


def picture(side=24, seed=0):
    labels = np.random.default_rng(seed).integers(0, 3, (side, side)).astype(np.uint8)
    stream = io.BytesIO()
    Image.fromarray(labels).save(stream, "PNG")
    return labels, stream.getvalue()


@pytest.mark.parametrize("reader", READERS, ids=lambda reader: reader.__name__)
def test_a_flipped_bit_is_refused_or_changes_no_pixel(tmp_path, reader):
    """Of 4,500 single flips, 748 were accepted, with up to 10,033 other pixels."""
    _, whole = picture()
    path = tmp_path / "a.png"
    path.write_bytes(whole)
    wanted, refused = reader(path), 0
    bits = np.random.default_rng(1).permutation(8 * len(whole))[:100]
    for bit in [*bits.tolist(), *range(8 * (len(whole) - 40), 8 * len(whole), 5)]:
        harmed = bytearray(whole)
        harmed[bit // 8] ^= 1 << bit % 8
        path.write_bytes(harmed)
        try:
            np.testing.assert_array_equal(reader(path), wanted)
        except ValueError:
            refused += 1
    assert refused > 100


@pytest.mark.parametrize("reader", [*READERS, mask_facts], ids=lambda r: r.__name__)
def test_a_picture_that_is_cut_short_is_refused(tmp_path, reader):
    _, whole = picture()
    path = tmp_path / "a.png"
    for length in (len(whole) - 1, len(whole) - 12, len(whole) - 20, 60, 9):
        path.write_bytes(whole[:length])
        with pytest.raises(ValueError, match=r"cannot read .*a.png: it"):
            reader(path)


def test_colours_of_16_bits_are_checked_too(tmp_path):
    cv2 = pytest.importorskip("cv2")
    colours = np.random.default_rng(0).integers(0, 2**16, (9, 8, 3)).astype(np.uint16)
    path = tmp_path / "a.png"
    assert cv2.imwrite(str(path), colours)
    np.testing.assert_allclose(read_pixels(path)[..., ::-1] * 65535, colours, atol=0.01)
    whole = path.read_bytes()
    path.write_bytes(whole[:-20] + bytes([whole[-20] ^ 4]) + whole[-19:])
    with pytest.raises(ValueError, match="part 'IDAT' does not match its checksum"):
        read_pixels(path)


def test_a_map_or_mask_of_a_case_is_refused_by_its_name(tmp_path):
    labels, _ = picture()
    for place in ("probabilities", "masks"):
        (tmp_path / place).mkdir()
    Image.fromarray(100 * labels).save(tmp_path / "probabilities" / "a.png")
    mask = tmp_path / "masks" / "a.png"
    Image.fromarray(labels % 2).save(mask)
    assert read(tmp_path).maps[0].raters.shape == (1, 24, 24)
    mask.write_bytes(mask.read_bytes()[:-18])
    with pytest.raises(PredictionsError, match=r"masks/a.png: it is cut short"):
        read(tmp_path)


def test_what_follows_the_end_is_left_alone():
    check_png(picture()[1] + b"more")
    check_png(b"GIF89a")
