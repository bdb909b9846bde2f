"""CUB, CARS196 and Stanford Online Products, from small trees in their layouts."""

import cv2
import numpy as np
import pytest
from PIL import Image

from datasets.fake_retrieval import (
    BIRDS,
    CARS,
    photograph,
    write_classes,
    write_products,
)
from qualms.datasets import DatasetError, Encoded, cache_folder, prepare
from qualms.datasets._albums import albums_of
from qualms.datasets._pictures import read_rgb
from qualms.datasets._retrieval.pictures import Fit, fit_picture
from qualms.datasets._retrieval.splits import _spread
from qualms.datasets.cars196 import cars196
from qualms.datasets.cub import cub
from qualms.datasets.sop import sop
from qualms.training._item_rules import Candidates, choose

SPLITS = {
    "train": "train",
    "val": "validation",
    "test": "test",
    "test/even": "trainontest",
    "test/odd": "testontest",
}
"""Our splits and the names of the released code."""


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    root = tmp_path_factory.mktemp("publishers")
    write_classes(root / "CUB_200_2011" / "images", BIRDS)
    write_classes(root / "cars196" / "images", CARS)
    return root


@pytest.fixture(scope="module")
def products(tmp_path_factory, splits):
    root = tmp_path_factory.mktemp("products")
    write_products(root / "Stanford_Online_Products", splits["SOP_fake"])
    return root


@pytest.fixture(scope="module")
def splits(golden):
    return golden("url")["I_dataset_splits"]


def pairs(recipe, split):
    labels = recipe.shown[split].labels
    return [
        list(pair)
        for pair in zip(labels.item.tolist(), labels.target.tolist(), strict=True)
    ]


@pytest.mark.parametrize("split", SPLITS)
@pytest.mark.parametrize(("make", "name"), [(cub, "CUB"), (cars196, "CARS")])
def test_splits_are_those_of_the_released_code(root, splits, make, name, split):
    recipe = make(root, validation="images")
    assert pairs(recipe, split) == splits[f"{name}_{SPLITS[split]}"]


@pytest.mark.parametrize("split", SPLITS)
def test_products_are_split_by_kind_as_in_the_released_code(products, splits, split):
    assert pairs(sop(products), split) == splits[f"SOP_{SPLITS[split]}"]


@pytest.mark.parametrize(("make", "name"), [(cub, "CUB"), (cars196, "CARS")])
def test_few_shots_are_those_of_the_released_code(root, splits, make, name):
    labels = make(root).shown["test/even"].labels
    candidates = Candidates(
        split="test/even",
        item=labels.item,
        target=labels.target,
        seed=0,
        predictions=lambda _: [],
    )
    rows = choose("few_shot", candidates, {"k": 2, "spaced": True})
    chosen = [[str(labels.item[row]), int(labels.target[row])] for row in rows]
    assert chosen == splits[f"{name}_trainontest_fewshot2"]


def test_images_for_training_are_spread_as_in_the_released_code(splits):
    for count, known in splits["cub_cars_train_val_index_rule"].items():
        assert _spread(int(count)) == known["train"]


def test_by_default_validation_classes_are_others_than_those_trained_on(root):
    recipe = cub(root)
    assert {target for _, target in pairs(recipe, "train")} == {0}
    assert {target for _, target in pairs(recipe, "val")} == {1, 2}
    assert len(pairs(recipe, "val")) == 4 + 7
    by_image = cub(root, validation="images")
    for split in ("test", "test/even", "test/odd"):
        assert pairs(recipe, split) == pairs(by_image, split)
    assert cache_folder("x", recipe) != cache_folder("x", by_image)
    assert albums_of(recipe).keys() == albums_of(by_image).keys()


def test_classes_are_ordered_by_their_number_not_by_their_name(tmp_path):
    names = {f"{number}.bird": 2 for number in (2, 10, 1, 9)}
    write_classes(tmp_path / "images", names)
    recipe = cub(tmp_path)
    assert pairs(recipe, "test") == [
        ["9.bird/i00.jpg", 2],
        ["9.bird/i01.jpg", 2],
        ["10.bird/i00.jpg", 3],
        ["10.bird/i01.jpg", 3],
    ]


def test_the_papers_numbers_are_stated(root, products):
    assert cub(root).counts == {"test": 5_924}
    images = cub(root, validation="images").counts
    assert images == {"train": 2_922, "val": 2_942, "test": 5_924}
    images = cars196(root, validation="images").counts
    assert images == {"train": 4_002, "val": 4_052, "test": 8_131}
    assert sop(products).counts == {"train": 29_136, "val": 30_415, "test": 60_502}
    (album,) = albums_of(cub(root)).values()
    assert album.counts == {"pictures": 11_788}
    (album,) = albums_of(cars196(root)).values()
    assert album.counts == {"pictures": 16_185}


def test_even_classes_give_the_stated_validation_sizes():
    # CUB has 100 classes of 41 to 60 images, CARS196 98; halves lose at most one each.
    assert all(len(_spread(n)) == n // 2 for n in range(1, 200))


def test_other_numbers_than_the_papers_are_refused(root, products, tmp_path):
    for recipe, message in (
        (cub(root), "test 10 instead of 5924"),
        (cars196(root), "test 16 instead of 8131"),
        (sop(products), "val 10 instead of 30415"),
    ):
        with pytest.raises(DatasetError, match=message):
            prepare(recipe, cache_folder(tmp_path, recipe), workers=1)


def test_a_picture_is_that_of_torchvision(tmp_path):
    from qualms.networks._timm import load_torchvision

    load_torchvision()
    from torchvision import transforms
    from torchvision.transforms import InterpolationMode

    for number, size in enumerate([(50, 31), (31, 50), (64, 64), (20, 97), (33, 35)]):
        path = tmp_path / f"{number}.png"
        photograph(path, size)
        for fit in (Fit(24, 0.875), Fit(24, 0.95), Fit(40, 1.0)):
            resize = transforms.Resize(
                int(fit.side / fit.crop_share), InterpolationMode.BICUBIC
            )
            expected = transforms.CenterCrop(fit.side)(resize(Image.open(path)))
            np.testing.assert_array_equal(fit_picture(read_rgb(path), fit), expected)


def test_pictures_are_kept_with_little_loss_and_once(root, tmp_path):
    recipe = cub(root, side=16, crop_share=0.875)
    prepared = prepare(
        recipe, cache_folder(tmp_path, recipe), workers=1, check_counts=False
    )
    splits = prepared.dataset.splits
    for split in splits.values():
        assert isinstance(split.image, Encoded)
        assert split.image.shape == (len(split), 16, 16, 3)
        for row, item in enumerate(split.item):
            original = read_rgb(root / "CUB_200_2011" / "images" / item)
            expected = fit_picture(original, Fit(16, 0.875)).astype(int)
            assert np.abs(split.image[row] - expected).mean() < 3
    test = splits["test"]
    both = [*splits["test/even"].item, *splits["test/odd"].item]
    assert sorted(both) == sorted(test.item)
    # All splits show one file, which has every picture once.
    stored = {tuple(span) for split in splits.values() for span in split.image.span}
    assert len(stored) == sum(BIRDS.values())
    assert prepared.dataset.task.name == "embedding"
    assert prepared.dataset.task.classes == len(BIRDS)


def test_corrupt_and_missing_files_are_named(products, tmp_path, splits):
    root = tmp_path / "raw"
    write_products(root, splits["SOP_fake"])
    spoilt = root / "sup1_final" / "8_1.JPG"
    spoilt.write_bytes(spoilt.read_bytes()[:200])
    (root / "sup2_final" / "4_0.JPG").unlink()
    recipe = sop(root, side=16)
    prepared = prepare(
        recipe, cache_folder(tmp_path, recipe), workers=1, check_counts=False
    )
    reasons = dict(prepared.skipped)
    assert set(reasons) == {"sup1_final/8_1.JPG", "sup2_final/4_0.JPG"}
    assert "cannot read" in reasons["sup1_final/8_1.JPG"]
    assert "there is no file" in reasons["sup2_final/4_0.JPG"]
    assert prepared.counts["test"] == 5
    assert prepared.counts["test/odd"] == 2


def test_the_layout_of_the_released_code_is_read_too(products, tmp_path, splits):
    root = tmp_path / "online_products"
    write_products(root / "images", splits["SOP_fake"])
    (root / "Info_Files").mkdir()
    for part in ("train", "test"):
        name = f"Ebay_{part}.txt"
        (root / "images" / name).rename(root / "Info_Files" / name)
    assert pairs(sop(tmp_path), "val") == pairs(sop(products), "val")
    one = next(iter(albums_of(sop(tmp_path)).values()))
    assert len(one.load(one.units[0]).image) == 1


def test_what_is_wrong_with_a_folder_is_said(tmp_path, products):
    with pytest.raises(DatasetError, match="expected images in"):
        cub(tmp_path)
    (tmp_path / "images" / "birds").mkdir(parents=True)
    with pytest.raises(DatasetError, match=r"expected folders like 001\.Black_footed"):
        cub(tmp_path)
    with pytest.raises(DatasetError, match=r"expected files like 0001.jpg in .*empty"):
        cars196(tmp_path)
    (tmp_path / "images" / "birds").rmdir()
    with pytest.raises(DatasetError, match="expected a folder for each class, like AM"):
        cars196(tmp_path)
    (tmp_path / "Ebay_train.txt").write_text("a b c\n")
    (tmp_path / "Ebay_test.txt").write_text("")
    with pytest.raises(DatasetError, match="must begin with the line 'image_id class"):
        sop(tmp_path)
    lines = (products / "Stanford_Online_Products" / "Ebay_train.txt").read_text()
    (tmp_path / "Ebay_train.txt").write_text(lines + "19 x 2 sup/9.JPG\n")
    with pytest.raises(DatasetError, match=r"line 20 of .*got '19 x 2 sup/9.JPG'"):
        sop(tmp_path)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"side": 0}, "side must be at least 1, got 0"),
        ({"crop_share": 0}, "crop_share must be larger than 0 and at most 1, got 0"),
        ({"crop_share": 1.5}, "crop_share must be .* got 1.5"),
        ({"crop_share": "all"}, "crop_share must be .* got 'all'"),
        ({"validation": "items"}, "validation must be one of classes, images, got 'i"),
    ],
)
def test_options_are_checked(root, options, message):
    with pytest.raises(ValueError, match=message):
        cub(root, **options)


def test_colours_are_kept_in_full(root, tmp_path):
    red = np.zeros((32, 32, 3), np.uint8)
    red[::2, :, 0] = 255
    Image.fromarray(red).save(tmp_path / "red.png")
    write_classes(tmp_path / "images", {"1.a": 1, "2.b": 1})
    Image.fromarray(red).save(tmp_path / "images" / "1.a" / "i00.png")
    (album,) = albums_of(cub(tmp_path, side=32, crop_share=1.0)).values()
    unit = next(unit for unit in album.units if unit.key.endswith(".png"))
    (data,) = album.load(unit).image
    kept = cv2.imdecode(np.frombuffer(data, np.uint8), cv2.IMREAD_COLOR)[..., ::-1]
    assert np.abs(kept.astype(int) - red).mean() < 6
