"""GTA5 and Cityscapes, from a small tree laid out as the publishers ship them."""

import shutil
from dataclasses import replace

import cv2
import numpy as np
import pytest
from PIL import Image
from sklearn.model_selection import KFold

from qualms.datasets import DatasetError, prepare
from qualms.datasets import gta5_cityscapes as module
from qualms.datasets._folds import fold_rows
from qualms.datasets._street import CLASSES, COLOURS, SWAPS
from qualms.datasets.gta5_cityscapes import _split_images, gta5_cityscapes

CITIES = {"train": {"aachen": 3, "ulm": 2}, "val": {"munster": 2}}
GAMES = 29
SMALL = (32, 60)
"""Crop of the small tree: images are 8 x 15 pixels in the end."""


def save(path, array):
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(array).save(path)


def picture(number, size):
    """An image and a map of train ids that both depend on the number."""
    rng = np.random.default_rng(number)
    ids = rng.integers(0, 19, (size[0] // 4 + 1, size[1] // 4 + 1), np.uint8)
    ids = ids.repeat(4, 0).repeat(4, 1)[: size[0], : size[1]]
    if size[0] > 1000:  # quick to write
        return np.full((*size, 3), number % 256, np.uint8), ids
    return rng.integers(0, 256, (*size, 3), np.uint8), ids


def write_game(root, number, size=(36, 62)):
    """An image of GTA5; its labels are a picture with a palette."""
    image, ids = picture(number, size)
    save(root / "images" / f"{number:05d}.png", image)
    palette = np.concatenate([np.array(COLOURS).ravel(), [20, 20, 20]])
    labels = Image.fromarray(ids, mode="P")
    labels.putpalette(palette.astype(np.uint8).tobytes())
    (root / "labels").mkdir(exist_ok=True)
    labels.save(root / "labels" / f"{number:05d}.png")


def write_city(root, part, city, number, size=(32, 64)):
    """An image of Cityscapes; its labels are ids of all classes."""
    image, ids = picture(1000 + number, size)
    known = np.array(list(module.TRAIN_IDS), np.uint8)
    name = f"{city}_{number:06d}_000019"
    save(root / "leftImg8bit" / part / city / f"{name}_leftImg8bit.png", image)
    labels = np.where(image[..., 0] < 20, 4, known[ids]).astype(np.uint8)
    save(root / "gtFine" / part / city / f"{name}_gtFine_labelIds.png", labels)
    save(root / "gtFine" / part / city / f"{name}_gtFine_instanceIds.png", labels)


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    root = tmp_path_factory.mktemp("publishers")
    for number in range(1, GAMES + 1):
        write_game(root / "gta5", number)
    number = 0
    for part, cities in CITIES.items():
        for city, count in cities.items():
            for _ in range(count):
                write_city(root / "cityscapes", part, city, number)
                number += 1
    return root


@pytest.fixture
def root(tree, tmp_path, monkeypatch):
    monkeypatch.setattr(module, "CROP", SMALL)
    return shutil.copytree(tree, tmp_path / "raw")


def made(root, folder, **options):
    recipe = gta5_cityscapes(root, **options)
    return prepare(recipe, folder, workers=1, check_counts=False)


def test_splits_are_those_of_figure_7(root, tmp_path):
    result = made(root, tmp_path / "cache")
    # Of 29, 5 go to the pool (as many as Cityscapes trains on), 6 of 24 to the test.
    assert result.counts == {"train": 14, "val": 4, "pool": 10, "test": 8}
    splits = result.dataset.splits
    assert splits["pool"].extra["shifted"].sum() == 5
    assert splits["test"].extra["shifted"].sum() == 2
    assert not splits["train"].extra["shifted"].any()
    every = [item for split in splits.values() for item in split.item]
    assert len(set(every)) == len(every) == GAMES + 7
    shown = splits["test"].item[splits["test"].extra["shifted"]]
    assert all("/val/munster/" in item for item in shown)
    assert result.dataset.task.classes == 24
    assert result.dataset.swaps == SWAPS


def test_the_papers_files_give_the_papers_numbers():
    games = [f"{n:05d}.png" for n in range(24_904)]
    cities = {"train": ["c"] * 2_975, "val": ["c"] * 500}
    results = {}
    for split, _, names in _split_images(games, cities, 123):
        results[split] = results.get(split, 0) + len(names)
    assert results == module.COUNTS
    assert results == {"train": 13_157, "val": 3_290, "pool": 5_950, "test": 5_982}


def test_splits_use_the_random_numbers_of_the_released_code():
    games = [f"{n:05d}.png" for n in range(60)]
    parts = _split_images(games, {"train": ["c"] * 8, "val": []}, 123)
    names = {(split, where): list(some) for split, where, some in parts}
    legacy = np.random.RandomState(123)
    pool = sorted(legacy.permutation(60)[:8])
    assert names["pool", "gta5"] == [games[row] for row in pool]
    rest = [name for name in games if name not in names["pool", "gta5"]]
    test = sorted(legacy.permutation(52)[:13])
    assert names["test", "gta5"] == [rest[row] for row in test]
    rest = [name for name in rest if name not in names["test", "gta5"]]
    train, val = next(KFold(5, shuffle=True, random_state=123).split(rest))
    assert names["val", "gta5"] == [rest[row] for row in val]
    assert names["train", "gta5"] == [rest[row] for row in train]


def test_folds_are_those_of_scikit_learn():
    for count in (16_447, 23):
        folds = KFold(5, shuffle=True, random_state=7).split(np.zeros(count))
        for fold, (_, rows) in enumerate(folds):
            assert fold_rows(count, seed=7, fold=fold) == set(rows.tolist())


def test_images_and_labels_are_cropped_and_shrunk(root, tmp_path):
    train = made(root, tmp_path / "cache").dataset.splits["train"]
    assert train.image.shape == (14, 8, 15, 3)
    assert train.target.shape == (14, 1, 8, 15)
    for row, item in enumerate(train.item):
        image, ids = picture(int(item.removeprefix("gta5/")), (36, 62))
        image, ids = image[2:34, 1:61], ids[2:34, 1:61]
        np.testing.assert_array_equal(train.target[row, 0], ids[::4, ::4])
        # At a quarter, bilinear is the mean of the two middle pixels on each axis.
        middle = image.reshape(8, 4, 15, 4, 3)[:, 1:3, :, 1:3].mean(axis=(1, 3))
        assert np.abs(train.image[row] - middle).max() <= 1


def test_the_papers_crop_gives_the_papers_size(tmp_path):
    root = tmp_path / "raw"
    write_game(root / "gta5", 1, size=(1052, 1914))
    write_city(root / "cityscapes", "train", "ulm", 0, size=(1024, 2048))
    write_city(root / "cityscapes", "val", "bonn", 1, size=(1024, 2048))
    recipe = gta5_cityscapes(root)
    assert recipe.counts == module.COUNTS
    for unit in recipe.units:
        one = recipe.load(unit)
        assert one.image.shape == (1, 256, 478, 3)
        assert one.target.shape == (1, 5, 256, 478)


def test_ids_of_cityscapes_become_train_ids_and_the_rest_is_ignored(root, tmp_path):
    pool = made(root, tmp_path / "cache").dataset.splits["pool"]
    back = np.arange(256, dtype=np.uint8)
    back[list(SWAPS.values())] = list(SWAPS)
    rows = np.flatnonzero(pool.extra["shifted"])
    for row in rows:
        number = int(pool.item[row].split("_")[1])
        image, ids = picture(1000 + number, (32, 64))
        reference = np.where(image[..., 0] < 20, 255, ids)[:, 2:62][::4, ::4]
        for labels in pool.target[row]:
            np.testing.assert_array_equal(back[labels], reference)
    drawn = pool.target[rows]
    assert (drawn != drawn[:, :1]).any()


def test_all_classes_have_an_id_and_a_colour():
    assert sorted(module.TRAIN_IDS.values()) == list(range(len(CLASSES)))
    assert not set(COLOURS) & set(module.IGNORED)


def test_reference_draws_are_fixed_by_item_and_seed(root, tmp_path):
    first = made(root, tmp_path / "first").dataset
    again = made(root, tmp_path / "again").dataset
    assert first.fingerprint == again.fingerprint
    other = made(root, tmp_path / "other", seed=5).dataset.splits["test"]
    one = first.splits["test"]
    both = [item for item in one.item if item in other.item]
    assert any("cityscapes" in item for item in both)
    mine = [one.target[one.item.tolist().index(item)] for item in both]
    theirs = [other.target[other.item.tolist().index(item)] for item in both]
    assert (np.stack(mine) != np.stack(theirs)).any()


def test_images_without_fitting_labels_are_named_and_left_out(root, tmp_path):
    write_game(root / "gta5", 15188)
    _, ids = picture(3, (20, 62))
    save(root / "gta5" / "labels" / "00003.png", ids)
    result = made(root, tmp_path / "cache")
    reasons = dict(result.skipped)
    assert list(reasons) == ["gta5/00003.png", "gta5/15188.png"]
    assert reasons["gta5/00003.png"] == (
        "image and labels must have the same size, got (62, 36) and (62, 20)"
    )
    assert "damaged" in reasons["gta5/15188.png"]
    assert sum(result.counts.values()) == GAMES - 1 + 7
    # With the numbers of the paper nothing is left to repair, and no shard is kept.
    recipe = replace(gta5_cityscapes(root), counts={})
    for _ in range(2):
        assert prepare(recipe, tmp_path / "full", workers=1).skipped == result.skipped
        assert not (tmp_path / "full" / "shards").exists()


def test_unreadable_files_are_named(root, tmp_path):
    image = root / "gta5" / "images" / "00002.png"
    image.write_bytes(image.read_bytes()[:200])
    (root / "gta5" / "labels" / "00004.png").unlink()
    odd = np.full((36, 62, 3), 7, np.uint8)
    save(root / "gta5" / "labels" / "00005.png", odd)
    city = root / "cityscapes" / "gtFine" / "val" / "munster"
    next(city.glob("*_labelIds.png")).unlink()
    reasons = dict(made(root, tmp_path / "cache").skipped)
    assert len(reasons) == 4
    assert "cannot read" in reasons["gta5/00002.png"]
    assert "00004.png" in reasons["gta5/00004.png"]
    assert (
        "colours must be those of Cityscapes, got (7, 7, 7)"
        in reasons["gta5/00005.png"]
    )
    assert any("munster" in key and "labelIds" in reasons[key] for key in reasons)


def test_bytes_that_are_no_picture_are_not_taken_for_a_size(root, tmp_path):
    noise = np.random.default_rng(0).bytes(500)
    (root / "gta5" / "images" / "00002.png").write_bytes(noise)
    ((key, reason),) = made(root, tmp_path / "cache").skipped
    assert key == "gta5/00002.png"
    assert reason.endswith("00002.png: it is not a PNG picture; copy it again")


@pytest.mark.parametrize("odd", [34, 200])
def test_ids_that_cityscapes_does_not_have_are_named(root, tmp_path, odd):
    city = root / "cityscapes" / "gtFine" / "val" / "munster"
    path = next(city.glob("*_labelIds.png"))
    ids = np.array(Image.open(path))
    ids[0, :3] = (0, 255, odd)
    save(path, ids)
    ((key, reason),) = made(root, tmp_path / "cache").skipped
    assert "munster" in key
    assert path.name in reason
    assert reason.endswith(
        f"label ids must be those of Cityscapes, 0 to 33 or 255, got {odd}"
    )


def test_images_that_are_too_small_are_named(root, tmp_path):
    write_game(root / "gta5", 6, size=(30, 62))
    (reason,) = dict(made(root, tmp_path / "cache").skipped).values()
    assert reason == "images must have at least 32 x 60 pixels, got 30 x 62"


def test_the_layout_of_the_released_code_is_read_too(root, tmp_path):
    other = tmp_path / "other"
    for old, new in {
        "gta5": "OriginalData",
        "cityscapes/leftImg8bit": "CityScapesOriginalData/images/leftImg8bit",
        "cityscapes/gtFine": "CityScapesOriginalData/labels/gtFine",
    }.items():
        shutil.copytree(root / old, other / new)
    expected = made(root, tmp_path / "first").dataset
    assert made(other, tmp_path / "second").dataset.fingerprint == expected.fingerprint


def test_shrinking_is_opencvs(root, tmp_path):
    one = made(root, tmp_path / "cache").dataset.splits["val"]
    number = int(one.item[0].removeprefix("gta5/"))
    image, _ = picture(number, (36, 62))
    small = cv2.resize(image[2:34, 1:61], (0, 0), fx=0.25, fy=0.25)
    np.testing.assert_array_equal(one.image[0], small)


def test_a_wrong_place_is_said(root, tmp_path):
    (tmp_path / "nothing").mkdir()
    with pytest.raises(
        DatasetError, match=r"expected images and labels in .* is empty"
    ):
        gta5_cityscapes(tmp_path / "nothing")
    shutil.rmtree(root / "cityscapes" / "gtFine")
    with pytest.raises(DatasetError, match="expected leftImg8bit and gtFine in "):
        gta5_cityscapes(root)


def test_other_numbers_than_the_papers_are_refused(root, tmp_path):
    with pytest.raises(DatasetError, match="train 14 instead of 13157"):
        prepare(gta5_cityscapes(root), tmp_path / "cache", workers=1)
