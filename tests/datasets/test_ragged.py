"""Items of different shapes: stored, opened, divided and refused."""

from functools import partial

import numpy as np
import pytest

from qualms.datasets import (
    Card,
    DatasetError,
    Divide,
    LoadedItems,
    Ragged,
    Recipe,
    Unit,
    open_dataset,
    prepare,
    verify_dataset,
)
from qualms.spec import Task

CARD = Card(title="t", licence="l", citation="c", url="u", obtain="o", simulated=True)
SHAPES = {"a": (5, 4), "b": (3, 7), "c": (6, 6), "d": (5, 4), "e": (2, 9)}
RATERS = {"a": 1, "b": 2, "c": 3, "d": 2, "e": 1}


def image_of(name: str, channels: int = 3) -> np.ndarray:
    shape = (*SHAPES[name], channels)
    return np.random.default_rng(ord(name)).integers(0, 256, shape).astype(np.uint8)


def maps_of(name: str) -> np.ndarray:
    shape = (RATERS[name], *SHAPES[name])
    return np.random.default_rng(ord(name)).integers(0, 2, shape).astype(np.uint8)


def load(channels: dict[str, int], unit: Unit) -> LoadedItems:
    name = unit.key
    image = image_of(name, channels.get(name, 3))
    return LoadedItems(image=image[None], target=maps_of(name)[None], item=(name,))


def recipe(split: str = "test", names: str = "abcde", **options: object) -> Recipe:
    options = {"any_shape": True, "load": partial(load, {}), **options}
    return Recipe(
        name="made",
        options={},
        card=CARD,
        task=Task(name="segmentation", classes=2),
        units=tuple(Unit(key=name, split=split) for name in names),
        **options,
    )


def test_items_of_any_shape_come_back_as_they_were(tmp_path):
    result = prepare(recipe(), tmp_path / "data", workers=1).dataset
    split = result.splits["test"]
    assert isinstance(split.image, Ragged)
    assert split.image.shape == (5, -1, -1, 3)
    assert split.target.ndim == split.image.ndim == 4
    assert split.image.nbytes == sum(image_of(name).nbytes for name in SHAPES)
    for row, name in enumerate(split.item):
        assert np.array_equal(split.image[row], image_of(name))
        assert np.array_equal(split.target[row], maps_of(name))
    verify_dataset(tmp_path / "data")


def test_only_the_pages_of_an_item_are_mapped(tmp_path):
    split = prepare(recipe(), tmp_path / "data", workers=1).dataset.splits["test"]
    assert isinstance(split.image.data, np.memmap)
    assert np.shares_memory(split.image[2], split.image.data)


def test_divided_items_keep_their_own_images(tmp_path):
    halves = Divide(into=("train", "val"), first=0.6, seed=3)
    full = recipe("trainval", divide={"trainval": halves})
    dataset = prepare(full, tmp_path / "data", workers=1).dataset
    calls = []
    for split in dataset.splits.values():
        for row, name in enumerate(split.item):
            assert np.array_equal(split.image[row], image_of(name))
            assert np.array_equal(split.target[row], maps_of(name))
            calls.append(str(name))
    assert sorted(calls) == list("abcde")
    assert [len(split) for split in dataset.splits.values()] == [3, 2]


def test_items_of_one_shape_are_one_array(tmp_path):
    dataset = prepare(recipe(names="ad"), tmp_path / "data", workers=1).dataset
    split = dataset.splits["test"]
    assert isinstance(split.image, np.ndarray)
    assert isinstance(split.target, Ragged)  # one has one rater, the other two
    assert split.target.shape == (2, -1, 5, 4)


def test_a_changed_file_is_noticed(tmp_path):
    prepare(recipe(), tmp_path / "data", workers=1)
    (path,) = (tmp_path / "data").glob("arrays-*/test.image%2Fsides.npy")
    sides = np.load(path)
    np.save(path, sides[:, ::-1])
    with pytest.raises(DatasetError, match="changed after the dataset was prepared"):
        verify_dataset(tmp_path / "data")
    assert open_dataset(tmp_path / "data").name == "made"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"any_shape": False}, r"got image \(5, 4, 3\) uint8 from 'a'"),
        ({"load": partial(load, {"c": 1})}, r"got image \(-1, -1, 3\) .* from 'a'"),
    ],
)
def test_shapes_that_may_not_differ_are_refused(tmp_path, options, message):
    with pytest.raises(DatasetError, match=message):
        prepare(recipe(**options), tmp_path / "data", workers=1)


def test_items_of_different_shapes_are_taken_one_by_one(tmp_path):
    split = prepare(recipe(), tmp_path / "data", workers=1).dataset.splits["test"]
    with pytest.raises(TypeError, match="one by one"):
        split.image[:2]
    with pytest.raises(ValueError, match="one shape"):
        split.image.take([0, 1])
    assert split.image.take([0, 3]).shape == (2, 5, 4, 3)
    some = split.image.only([4, 1])
    assert np.array_equal(some[0], image_of("e"))
    assert np.array_equal(some[1], image_of("b"))
