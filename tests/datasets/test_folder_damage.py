"""Damaged, misplaced and packed image files of users."""

import gzip
import struct
import tracemalloc
import zlib

import nibabel
import numpy as np
import pytest
from PIL import Image

from qualms.datasets import DatasetError
from qualms.datasets.folder import folder
from qualms.datasets.folder.files import (
    mask_facts,
    picture_facts,
    read_labels,
    read_pixels,
)

RNG = np.random.default_rng(0)
AFFINE = np.array([[-2.0, 0, 0, 9], [0, 1, 0, -4], [0, 0, 1, 30], [0, 0, 0, 1]])


def volume(path, voxels, affine=AFFINE):
    path.parent.mkdir(parents=True, exist_ok=True)
    nibabel.save(nibabel.Nifti1Image(voxels, affine), path)
    return path


@pytest.mark.parametrize("read", [read_pixels, read_labels])
def test_a_flipped_bit_of_a_compressed_volume_is_refused_or_changes_nothing(
    tmp_path, read
):
    """Of 60 flipped bits 44 gave other voxels, as nobody compared the checksum."""
    voxels = RNG.integers(0, 3, (12, 11, 10)).astype(np.uint8)
    path = volume(tmp_path / "v.nii.gz", voxels)
    content, before, refused = path.read_bytes(), read(path), 0
    places = RNG.integers(11, len(content), 60)  # behind name and time of the gzip
    for at in places:
        harmed = bytearray(content)
        harmed[at] ^= 1 << at % 8
        path.write_bytes(bytes(harmed))
        try:
            after = read(path)
        except DatasetError:
            refused += 1
        else:
            assert np.array_equal(before, after), at
    assert refused > 50


@pytest.mark.parametrize("read", [read_pixels, read_labels])
def test_a_compressed_volume_that_is_cut_short_is_refused(tmp_path, read):
    path = volume(tmp_path / "v.nii.gz", RNG.integers(0, 3, (9, 9, 9)).astype(np.uint8))
    path.write_bytes(path.read_bytes()[:-4])  # only the checksum is missing
    with pytest.raises(DatasetError, match="cannot read"):
        read(path)


@pytest.mark.parametrize("name", ["m.nii", "m.nii.gz"])
@pytest.mark.parametrize("kind", [np.uint8, np.int16, np.float32, np.float64])
def test_labels_are_those_of_the_file_turned_as_its_image_is(tmp_path, name, kind):
    labels = RNG.integers(0, 5, (4, 6, 5)).astype(kind)
    path = volume(tmp_path / name, labels)
    assert np.array_equal(read_labels(path), read_pixels(path)[..., 0])
    assert np.array_equal(read_labels(path), labels[::-1])
    flat = volume(tmp_path / f"flat_{name}", labels[..., :1])
    assert read_labels(flat).shape == (4, 6)


@pytest.mark.parametrize(("wrong", "said"), [(0.5, "0 to 0.5"), (-1, "-1 to 0")])
def test_what_is_no_label_is_refused(tmp_path, wrong, said):
    voxels = np.zeros((3, 3, 3), np.float32)
    voxels[1, 1, 2] = wrong
    with pytest.raises(DatasetError, match=f"whole labels from 0 to 255.*from {said}"):
        read_labels(volume(tmp_path / "m.nii.gz", voxels))


def moved(what):
    affine = AFFINE.copy()
    if what == "origin":
        affine[2, 3] += 15.0
    elif what == "spacing":
        affine[:3, :3] *= 1.5
    elif what == "rounding":
        affine *= 1 + 1e-5
    return affine


@pytest.mark.parametrize("what", ["origin", "spacing"])
def test_a_mask_that_lies_elsewhere_than_its_image_is_refused(tmp_path, what):
    labels = RNG.integers(0, 2, (6, 6, 6)).astype(np.uint8)
    for number in range(30):
        volume(tmp_path / "d" / "images" / f"{number}.nii.gz", labels + 3)
        affine = moved(what) if number == 2 else moved("rounding")
        volume(tmp_path / "d" / "masks" / f"{number}.nii.gz", labels, affine)
    with pytest.raises(
        DatasetError, match="the spacing and the origin of its image"
    ) as e:
        folder(tmp_path / "d")
    assert "masks/2.nii.gz" in str(e.value)
    assert "voxels of 2 x 1 x 1 mm from (9, -4, 30)" in str(e.value)


def png_of(width, height, rows=1):
    """The first bytes of a PNG of any size; zeros take one byte in a thousand."""

    def chunk(name, data):
        body = name + data
        return struct.pack(">I", len(data)) + body + struct.pack(">I", zlib.crc32(body))

    head = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    data = zlib.compress(bytes((width + 1) * rows))
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", data)


@pytest.mark.parametrize("read", [read_pixels, read_labels, picture_facts, mask_facts])
def test_a_small_picture_that_would_fill_the_memory_is_refused(tmp_path, read):
    path = tmp_path / "bomb.png"
    path.write_bytes(png_of(20_000, 20_000))
    with pytest.raises(DatasetError, match=r"would take 4\.5 GiB of memory and has 0"):
        read(path)


def test_what_is_transparent_takes_no_more_memory_than_the_picture(tmp_path):
    """It was laid over black in float32, with all channels at once."""
    layers = RNG.integers(0, 256, (800, 900, 4), np.uint8)
    Image.fromarray(layers).save(tmp_path / "p.png")
    tracemalloc.start()
    pixels = read_pixels(tmp_path / "p.png")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    exact = np.rint(layers[..., :3] * (layers[..., 3:] / np.float32(255)))
    assert np.abs(pixels - exact.astype(int)).max() <= 1
    assert peak < 8 * pixels.nbytes


@pytest.mark.parametrize("slope", [None, 2.0])
def test_a_mask_of_few_bytes_takes_few_bytes_for_each_voxel(tmp_path, slope):
    path = volume(tmp_path / "m.nii.gz", np.zeros((128, 128, 128), np.uint8))
    if slope is not None:
        head = bytearray(gzip.decompress(path.read_bytes()))
        head[112:116] = struct.pack("<f", slope)
        path.write_bytes(gzip.compress(bytes(head)))
    assert path.stat().st_size < 10_000
    tracemalloc.start()
    mask_facts(path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 4 * 128**3  # 9 for each, or 20, when labels became floats


def test_a_volume_that_would_fill_the_memory_is_refused(tmp_path):
    path = volume(tmp_path / "v.nii", np.zeros((2, 2, 2), np.float64))
    header = bytearray(path.read_bytes())
    header[42:48] = struct.pack("<3h", 900, 900, 900)
    with gzip.open(tmp_path / "v.nii.gz", "wb") as file:
        file.write(bytes(header))
    for read in (read_pixels, read_labels):
        with pytest.raises(DatasetError, match=r"GiB of memory and has 0\.0 MiB"):
            read(tmp_path / "v.nii.gz")
