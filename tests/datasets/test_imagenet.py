"""ImageNet, from small trees in the layouts that people keep it in."""

import numpy as np
import pytest

from datasets.fake_retrieval import photograph, write_classes
from qualms.datasets import DatasetError, cache_folder, prepare
from qualms.datasets._albums import albums_of
from qualms.datasets._pictures import read_rgb
from qualms.datasets._retrieval.pictures import Fit, fit_picture
from qualms.datasets.imagenet import imagenet

TRAIN = {"n02": 3, "n01": 2, "n10": 1}
VAL = {"n02": 2, "n01": 1, "n10": 2}
FLAT = ["n10", "n02", "n01", "n02", "n10"]
"""Classes of the validation images in their order."""


def file_name(number):
    return f"ILSVRC2012_val_{number:08d}.JPEG"


@pytest.fixture
def root(tmp_path):
    write_classes(tmp_path / "raw" / "train", TRAIN)
    return tmp_path / "raw"


def write_flat(folder):
    for number in range(1, len(FLAT) + 1):
        photograph(folder / file_name(number))


def test_classes_are_sorted_folders_and_validation_images_are_the_test(root, tmp_path):
    write_classes(root / "val", VAL)
    recipe = imagenet(root, side=16)
    assert recipe.counts == {"train": 1_281_167, "test": 50_000}
    prepared = prepare(
        recipe, cache_folder(tmp_path, recipe), workers=1, check_counts=False
    )
    splits = prepared.dataset.splits
    assert list(splits) == ["train", "test"]
    assert splits["train"].target.tolist() == [0, 0, 1, 1, 1, 2]
    assert splits["test"].target.tolist() == [0, 1, 1, 2, 2]
    assert prepared.dataset.task.classes == 3
    # Items have the same names in both parts, which are albums of their own.
    for part, share, split in (("train", 1.0, "train"), ("val", 0.95, "test")):
        for row, item in enumerate(splits[split].item):
            picture = fit_picture(read_rgb(root / part / item), Fit(16, share))
            assert np.abs(splits[split].image[row] - picture.astype(int)).mean() < 3
    assert len(albums_of(recipe)) == 2


def told(name, number, wnid):
    """A line of one of the lists."""
    if name == "LOC_val_solution.csv":
        return f"{file_name(number).removesuffix('.JPEG')},{wnid} 85 1 499 272"
    if name == "val.txt":
        return f"{file_name(number)} {sorted(TRAIN).index(wnid)}"
    return wnid


@pytest.mark.parametrize(
    "name",
    ["LOC_val_solution.csv", "val.txt", "imagenet_2012_validation_synset_labels.txt"],
)
def test_validation_images_without_folders_are_looked_up(root, name):
    write_flat(root / "val")
    lines = [told(name, number, wnid) for number, wnid in enumerate(FLAT, 1)]
    head = ["ImageId,PredictionString"] if name.endswith(".csv") else []
    (root / name).write_text("\n".join([*head, *lines]) + "\n")
    labels = imagenet(root).shown["test"].labels
    result = dict(zip(labels.item.tolist(), labels.target.tolist(), strict=True))
    expected = {
        file_name(number): sorted(TRAIN).index(wnid)
        for number, wnid in enumerate(FLAT, 1)
    }
    assert result == expected
    assert labels.target.tolist() == sorted(labels.target.tolist())


def test_the_layout_of_kaggle_is_read(root, tmp_path):
    place = tmp_path / "kaggle" / "ILSVRC" / "Data" / "CLS-LOC"
    place.parent.mkdir(parents=True)
    root.rename(place)
    write_flat(place / "val")
    name = "LOC_val_solution.csv"
    lines = [told(name, number, wnid) for number, wnid in enumerate(FLAT, 1)]
    (tmp_path / "kaggle" / name).write_text("\n".join(["ImageId,P", *lines]))
    labels = imagenet(tmp_path / "kaggle").shown["test"].labels
    assert labels.target.tolist() == [0, 1, 1, 2, 2]


def test_what_is_wrong_with_a_list_is_said(root):
    write_flat(root / "val")
    with pytest.raises(DatasetError, match="or one of the lists LOC_val_solution"):
        imagenet(root)
    path = root / "val.txt"
    path.write_text(f"{file_name(1)} 2\n")
    with pytest.raises(DatasetError, match=r"expected a class for .*00002\.JPEG in"):
        imagenet(root)
    path.write_text(f"{file_name(1)} n99\n")
    with pytest.raises(DatasetError, match="those of the training images, got 'n99'"):
        imagenet(root)
    path.write_text("n01\nn02\n")
    with pytest.raises(DatasetError, match="a line for each of 5 images, got 2"):
        imagenet(root)


def test_other_numbers_than_the_publishers_are_refused(root, tmp_path):
    write_classes(root / "val", VAL)
    recipe = imagenet(root)
    with pytest.raises(DatasetError, match="train 6 instead of 1281167"):
        prepare(recipe, cache_folder(tmp_path, recipe), workers=1)
