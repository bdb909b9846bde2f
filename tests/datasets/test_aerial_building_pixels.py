import numpy as np
import pytest
from PIL import Image

from qualms.datasets import DatasetError, prepare
from qualms.datasets.aerial_building_pixels import aerial_building_pixels

CITIES = ("austin", "chicago", "kitsap", "tyrol-w", "vienna")
SIDE = 1_000


def write(home, name, colour, blocks):
    """A tile of one colour; each block marks the given number of pixels of a patch."""
    mask = np.zeros((SIDE, SIDE), np.uint8)
    for (row, column), pixels in blocks.items():
        mask[64 * row, 64 * column : 64 * column + pixels] = 255
    for part, array in (
        ("images", np.full((SIDE, SIDE, 3), colour, np.uint8)),
        ("gt", mask),
    ):
        folder = home / "train" / part
        folder.mkdir(parents=True, exist_ok=True)
        Image.fromarray(array).save(folder / f"{name}.tif", compression="tiff_lzw")


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    home = tmp_path_factory.mktemp("inria") / "AerialImageDataset"
    for number, city in enumerate(CITIES):
        for tile in (1, 2):
            blocks = {(0, 0): 3, (14, 14): 5, (7, tile): 60, (15, 3): 9}
            write(home, f"{city}{tile}", (10 * number + tile, 20, 30), blocks)
    return home.parent


def made(root, tmp_path):
    recipe = aerial_building_pixels(root)
    return prepare(recipe, tmp_path / "cache", workers=1, check_counts=False)


def test_two_cities_are_divided_and_a_third_is_test(root, tmp_path):
    result = made(root, tmp_path)
    assert result.skipped == ()
    # three patches of each tile; the marks in row 15 are beyond the 15 x 15 grid
    further = {"test/kitsap": 6, "test/vienna": 6}
    assert result.counts == {"train": 9, "val": 3, "test": 6} | further
    splits = result.dataset.splits
    test = splits["test"]
    assert test.item.tolist()[:3] == [
        "tyrol-w1/00-00",
        "tyrol-w1/07-01",
        "tyrol-w1/14-14",
    ]
    assert test.target.tolist() == [3, 60, 5] * 2
    assert test.extra["cluster"].tolist() == ["tyrol-w1"] * 3 + ["tyrol-w2"] * 3
    assert (test.image[0] == [31, 20, 30]).all()
    assert (test.image[5] == [32, 20, 30]).all()
    both = [*splits["train"].extra["group"], *splits["val"].extra["group"]]
    assert sorted(both) == ["austin"] * 6 + ["chicago"] * 6


@pytest.mark.parametrize("city", ["kitsap", "vienna"])
def test_further_cities_are_test_splits_beside_the_first(root, tmp_path, city):
    dataset = made(root, tmp_path).dataset
    test = dataset.splits[f"test/{city}"]
    assert set(test.extra["cluster"]) == {f"{city}1", f"{city}2"}
    assert test.target.tolist() == [3, 60, 5] * 2
    assert dataset.shifts.keys() == {"test", "test/kitsap", "test/vienna"}


def test_the_paper_s_numbers_are_asserted(root, tmp_path):
    recipe = aerial_building_pixels(root)
    assert recipe.counts == {"train": 11_184, "val": 2_797, "test": 3_890}
    assert int(recipe.divide["trainval"].first * 13_981) == 11_184
    with pytest.raises(DatasetError, match="11184"):
        prepare(recipe, tmp_path / "cache", workers=1)


def test_larger_tiles_are_shrunk_first(tmp_path):
    home = tmp_path / "raw"
    for part in ("images", "gt"):
        (home / "train" / part).mkdir(parents=True)
    image = np.random.default_rng(0).integers(0, 256, (3000, 3000, 3), dtype=np.uint8)
    mask = np.zeros((3000, 3000), np.uint8)
    mask[0:9, 0:9] = 255
    for city in CITIES:
        Image.fromarray(image).save(home / "train" / "images" / f"{city}1.tif")
        Image.fromarray(mask).save(home / "train" / "gt" / f"{city}1.tif")
    recipe = aerial_building_pixels(home)
    examples = recipe.load(recipe.units[0])
    assert examples.item == ("austin1/00-00",)
    assert examples.target.tolist() == [9]
    np.testing.assert_array_equal(examples.image[0], image[1:192:3, 1:192:3])


def test_unreadable_tiles_are_named(tmp_path):
    home = tmp_path / "raw" / "AerialImageDataset"
    for city in CITIES:
        write(home, f"{city}1", 7, {(0, 0): 3})
    write(home, "austin2", 7, {(0, 0): 3})
    write(home, "chicago2", 7, {(0, 0): 3})
    (home / "train" / "images" / "austin1.tif").write_bytes(b"II*\x00 cut")
    (home / "train" / "gt" / "austin2.tif").unlink()
    (home / "train" / "images" / "tyrol-w1.tif").unlink()
    write(home, "tyrol-w2", 7, {(0, 0): 3})
    result = made(home, tmp_path)
    reason = {one.key: one.reason for one in result.skipped}
    assert reason.keys() == {"austin1.tif", "austin2.tif", "tyrol-w1.tif"}
    assert "cannot read" in reason["austin1.tif"]
    assert "gt/austin2.tif" in reason["austin2.tif"]
    assert "images/tyrol-w1.tif" in reason["tyrol-w1.tif"]


def test_a_wrong_place_is_said(tmp_path):
    with pytest.raises(DatasetError, match=r"expected train in .* is empty"):
        aerial_building_pixels(tmp_path)
    (tmp_path / "train").mkdir()
    with pytest.raises(DatasetError, match=r"expected a folder .*images; .* is empty"):
        aerial_building_pixels(tmp_path)
    for part in ("images", "gt"):
        (tmp_path / "train" / part).mkdir()
    with pytest.raises(DatasetError, match=r"files like austin1\.tif in"):
        aerial_building_pixels(tmp_path)
