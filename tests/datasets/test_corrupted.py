"""Splits that are corrupted when they are taken: the same bits however they are."""

import numpy as np
import pytest

from qualms.corruptions import corrupt, corrupt_labels
from qualms.datasets import Corrupted, Encoded, Ragged, SharedRows, Split, is_ragged
from qualms.datasets._encoded import jpeg
from qualms.datasets._ragged import ragged

ITEMS = np.array([f"item {number}" for number in range(6)])


def pictures():
    rng = np.random.default_rng(0)
    return rng.integers(0, 256, (6, 12, 14, 3)).astype(np.uint8)


def encoded(images):
    files = [np.frombuffer(jpeg(i, quality=95), np.uint8) for i in images]
    ends = np.cumsum([len(file) for file in files])
    span = np.stack([np.concatenate([[0], ends[:-1]]), ends], axis=1)
    return Encoded(data=np.concatenate(files), span=span, side=12)


def stored(kind):
    images = pictures()
    if kind == "encoded":
        return encoded(images)
    if kind == "shared":
        return SharedRows(data=images, rows=np.arange(6)[::-1])
    if kind == "ragged":
        sides = np.array([image.shape for image in images])
        return ragged(images.ravel(), sides)
    return images


@pytest.mark.parametrize("kind", ["array", "encoded", "shared", "ragged"])
def test_items_are_the_same_alone_in_batches_and_in_parts(kind):
    split = Split(image=stored(kind), target=np.arange(6), item=ITEMS)
    image = split.corrupted("gaussian_noise", 2).image
    alone = [
        corrupt(split.image[row], "gaussian_noise", 2, item=str(ITEMS[row]))
        for row in range(6)
    ]
    assert isinstance(image, Corrupted)
    assert (len(image), image.dtype, image.ndim) == (6, np.uint8, 4)
    assert image.shape == split.image.shape
    assert image.nbytes == split.image.nbytes
    for row in range(6):
        np.testing.assert_array_equal(image[row], alone[row])
    np.testing.assert_array_equal(image.take([4, 1]), [alone[4], alone[1]])
    np.testing.assert_array_equal(image[2:4], alone[2:4])
    np.testing.assert_array_equal(image.only(np.array([5, 0]))[0], alone[5])
    if kind != "ragged":
        np.testing.assert_array_equal(np.asarray(image), alone)
    assert is_ragged(image) == isinstance(split.image, Ragged)


def test_label_maps_move_with_their_images_and_numbers_stay():
    maps = np.random.default_rng(1).integers(0, 3, (6, 2, 12, 14)).astype(np.uint8)
    split = Split(image=pictures(), target=maps, item=ITEMS)
    moved = split.corrupted("elastic_transform", 1)
    for row in range(6):
        own = corrupt_labels(maps[row], "elastic_transform", 1, item=str(ITEMS[row]))
        np.testing.assert_array_equal(moved.target[row], own)
    assert moved.target.shape == maps.shape
    numbers = np.arange(6.0)
    split = Split(image=pictures(), target=numbers, item=ITEMS)
    assert split.corrupted("elastic_transform", 1).target is numbers


def test_a_split_is_corrupted_once():
    split = Split(image=pictures(), target=np.arange(6), item=ITEMS)
    with pytest.raises(ValueError, match="corrupted once, got 'fog' for one that is"):
        split.corrupted("contrast", 1).corrupted("fog", 1)
    with pytest.raises(ValueError, match="become an array only as a copy"):
        np.asarray(split.corrupted("contrast", 1).image, copy=False)
    with pytest.raises(ValueError, match="taken along axis 0, got axis 1"):
        split.corrupted("contrast", 1).image.take([0], axis=1)
