"""Fashion-MNIST from a tiny tree in the publisher's layout."""

import gzip
import struct
from pathlib import Path

import numpy as np
import pytest

from qualms.datasets import DatasetError, prepare
from qualms.datasets.fashion_mnist import CARD, CLASSES, SIZES, fashion_mnist

EACH = {"train": 1_100, "t10k": 4}
"""Pictures of each class; `val` takes the last 1,000 of the first file."""


def write(path, array):
    shape = struct.pack(f">{array.ndim}I", *array.shape)
    header = struct.pack(">HBB", 0, 8, array.ndim)
    path.write_bytes(gzip.compress(header + shape + array.tobytes(), 1))


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Classes take turns; a picture shows its class and its row."""
    folder = tmp_path_factory.mktemp("fashion-mnist")
    for part, each in EACH.items():
        label = np.tile(np.arange(10, dtype=np.uint8), each)
        image = np.zeros((len(label), 28, 28), np.uint8)
        image[:, 0, 0] = label
        image[:, 0, 1] = np.arange(len(label)) % 251
        write(folder / f"{part}-images-idx3-ubyte.gz", image)
        write(folder / f"{part}-labels-idx1-ubyte.gz", label)
    return folder


def made(files, folder, **options):
    recipe = fashion_mnist(files, **options)
    return prepare(recipe, folder, workers=1, check_counts=False).dataset


@pytest.mark.parametrize("family", CLASSES)
def test_pictures_have_their_classes_and_occur_once(files, family, tmp_path):
    dataset = made(files, tmp_path, family=family)
    assert list(dataset.splits) == list(SIZES[family])
    classes = np.array(CLASSES[family])
    assert dataset.task.classes == len(classes)
    for split in dataset.splits.values():
        assert split.image.shape[1:] == (28, 28, 1)
        np.testing.assert_array_equal(split.image[:, 0, 0, 0], classes[split.target])
        rows = np.array([int(item.split("-")[1]) for item in split.item])
        np.testing.assert_array_equal(split.image[:, 0, 1, 0], rows % 251)
        assert len(set(np.bincount(split.target))) == 1
    every = np.concatenate([split.item for split in dataset.splits.values()])
    assert len(set(every)) == len(every) == len(classes) * sum(EACH.values())


def test_upstream_and_downstream_share_no_class():
    assert sorted(CLASSES["upstream"] + CLASSES["downstream"]) == list(range(10))


def test_val_has_the_last_pictures_of_each_class(files, tmp_path):
    dataset = made(files, tmp_path, family="downstream")
    train, val = dataset.splits["train"], dataset.splits["val"]
    assert len(val) == 4_000
    assert max(train.item) < min(val.item)


def test_halves_of_the_unseen_classes_are_for_few_shots(files, tmp_path):
    dataset = made(files, tmp_path, family="downstream")
    even, odd = dataset.split("test/even"), dataset.split("test/odd")
    np.testing.assert_array_equal(np.bincount(even.target), [2] * 4)
    assert not set(even.item) & set(odd.item)


def test_tasks_fit_the_families(files):
    tasks = {family: fashion_mnist(files, family=family).task for family in CLASSES}
    assert tasks["all"].name == "classification"
    assert tasks["upstream"].name == tasks["downstream"].name == "embedding"


def test_pictures_can_be_enlarged(files, tmp_path):
    sizes = dict.fromkeys(("train", "val", "test"), 5)
    split = made(files, tmp_path, side=56, sizes=sizes).splits["train"]
    assert split.image.shape == (5, 56, 56, 1)
    assert split.image[:, 0, 0, 0].tolist() == [0, 1, 2, 3, 4]


def test_published_numbers_are_required(files, tmp_path):
    with pytest.raises(DatasetError, match="50000"):
        prepare(fashion_mnist(files), tmp_path, workers=1)


@pytest.mark.skipif(not Path(CARD.place).is_dir(), reason="the package is missing")
def test_the_debian_package_has_the_published_numbers(tmp_path):
    made = prepare(fashion_mnist(CARD.place, family="downstream"), tmp_path, workers=1)
    assert dict(made.counts) == SIZES["downstream"]
    for split in made.dataset.splits.values():
        assert len(set(np.bincount(split.target))) == 1


def test_a_missing_file_is_named(files, tmp_path):
    for path in files.iterdir():
        if "t10k-labels" not in path.name:
            (tmp_path / path.name).symlink_to(path)
    with pytest.raises(DatasetError, match=r"expected .*t10k-labels-idx1-ubyte\.gz in"):
        fashion_mnist(tmp_path)


def test_a_damaged_file_is_named(files, tmp_path):
    for path in files.iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    path = tmp_path / "t10k-labels-idx1-ubyte.gz"
    path.write_bytes(path.read_bytes()[:-12])
    with pytest.raises(DatasetError, match=r"cannot read .*t10k-labels"):
        fashion_mnist(tmp_path)
    write(path, np.zeros((4, 2), np.uint8))
    with pytest.raises(DatasetError, match=r"shape \('N',\), .*shape \(4, 2\)"):
        fashion_mnist(tmp_path)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"family": "shoes"}, "family must be one of all, upstream, downstream"),
        ({"side": 20}, "side must be at least 28, got 20"),
        ({"sizes": {"test": 10_001}}, r"size of 'test' must lie in 1..10000"),
    ],
)
def test_wrong_options_are_refused_with_a_sentence(files, options, message):
    with pytest.raises(ValueError, match=message):
        fashion_mnist(files, **options)
