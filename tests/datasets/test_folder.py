"""Images of users: what their folders and tables become, and what is refused."""

import csv
from collections import Counter

import nibabel
import numpy as np
import pytest
from PIL import Image

from qualms.datasets import DatasetError, cache_folder, prepare
from qualms.datasets.folder import folder
from qualms.datasets.folder._fitting import ItemSize, fit_labels, fit_pixels

RNG = np.random.default_rng(0)  # of pixels that mean nothing


def save(path, pixels):
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.name.endswith((".nii", ".nii.gz")):
        nibabel.save(nibabel.Nifti1Image(pixels, np.diag([-2.0, 1, 1, 1])), path)
    elif pixels.dtype == np.uint16 and pixels.ndim == 3:
        import cv2

        last = [2, 1, 0, 3] if pixels.shape[2] == 4 else [2, 1, 0]
        cv2.imwrite(str(path), pixels[..., last])
    else:
        Image.fromarray(pixels).save(path)


def noise(*shape, dtype=np.uint8):
    return RNG.integers(0, np.iinfo(dtype).max, shape, dtype)


def table(path, *rows):
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    return path


def made(root, place, **options):
    recipe = folder(root, **options)
    return prepare(recipe, cache_folder(place, recipe), workers=1).dataset


def of_test(dataset):
    """The split `test`, in one array after the other."""
    split = dataset.splits["test"]
    return np.asarray(split.image), np.asarray(split.target)


@pytest.fixture
def pictures(tmp_path):
    """Forty tiny pictures of two classes."""
    for number in range(40):
        kind = "owl" if number % 4 else "cat"
        save(tmp_path / "own" / kind / f"{number:02d}.png", noise(4, 4))
    return tmp_path / "own"


def listed(pictures, **more):
    """A table of all pictures, and its path."""
    names = sorted(p.relative_to(pictures).as_posix() for p in pictures.rglob("*.png"))
    rows = [{"path": n, "target": n.split("/")[0]} for n in names]
    for name, values in more.items():
        for row, value in zip(rows, values, strict=True):
            row[name] = value
    return rows


def test_class_folders_are_divided_by_class_and_keep_their_pixels(pictures, tmp_path):
    dataset = made(pictures, tmp_path)
    sizes = {name: len(split) for name, split in dataset.splits.items()}
    assert sizes == {"train": 28, "val": 6, "test": 6}
    assert dataset.task.classes == 2
    assert dataset.options["classes"] == ["cat", "owl"]
    for split in dataset.splits.values():
        assert Counter(split.target.tolist())[0] in (1, 2, 7)
        for name, image, target in zip(
            split.item, split.image, split.target, strict=True
        ):
            assert str(name).split("/")[0] == ["cat", "owl"][target]
            stored = np.asarray(Image.open(pictures / str(name)))
            np.testing.assert_array_equal(image[..., 0], stored, strict=True)


def test_another_seed_divides_otherwise_and_another_place_alike(pictures, tmp_path):
    copy = pictures.rename(tmp_path / "moved")
    first, again, other = (folder(copy, seed=seed) for seed in (0, 0, 1))
    assert first.units == again.units != other.units
    assert cache_folder("x", first) == cache_folder("x", again)
    copy.rename(pictures)
    assert folder(pictures).options == first.options


def test_changed_files_and_words_make_another_dataset(pictures):
    first = folder(pictures).options["contents"]
    save(pictures / "cat" / "00.png", noise(4, 4))
    second = folder(pictures).options["contents"]
    rows = listed(pictures)
    table(pictures / "items.csv", *rows)
    third = folder(pictures).options["contents"]
    rows[0]["target"] = "owl"
    table(pictures / "items.csv", *rows)
    assert len({first, second, third, folder(pictures).options["contents"]}) == 4 - (
        second == third
    )
    with pytest.raises(DatasetError, match="have changed since; leave 'contents' out"):
        folder(pictures, contents=first)


def test_folders_of_splits_are_kept_and_val_is_drawn_from_train(tmp_path):
    for split, count in {"train": 20, "test": 4, "shifted": 2}.items():
        for kind in ("a", "b"):
            for number in range(count):
                save(tmp_path / "own" / split / kind / f"{number}.png", noise(4, 4))
    dataset = made(tmp_path / "own", tmp_path)
    sizes = {name: len(split) for name, split in dataset.splits.items()}
    assert sizes == {"train": 33, "val": 7, "test": 8, "test/shifted": 4}
    assert set(dataset.shifts) == {"test/shifted"}
    assert all(str(name).startswith("train/") for name in dataset.split("val").item)
    (tmp_path / "own" / "notes").mkdir()
    with pytest.raises(DatasetError, match="got 'notes' beside 'train'; move it away"):
        folder(tmp_path / "own")


def test_clusters_stay_together_and_shifted_ones_are_of_test(pictures):
    cluster = [f"p{number // 4}" for number in range(40)]
    shifted = [int(number >= 38) for number in range(40)]
    rows = listed(pictures, cluster=cluster, shifted=shifted, group=["g"] * 40)
    table(pictures / "items.csv", *rows)
    recipe = folder(pictures)
    where = {unit.key: unit.split for unit in recipe.units}
    places = {c: set() for c in cluster}
    for row in rows:
        places[row["cluster"]].add(where[row["path"]])
    assert places.pop("p9") == {"test", "test/shifted"}
    assert all(len(result) == 1 for result in places.values())
    assert Counter(where.values())["test/shifted"] == 2


def test_numbers_are_regressed_and_few_whole_ones_are_classes(pictures, tmp_path):
    values = [0.5 * number for number in range(40)]
    table(pictures / "items.csv", *listed(pictures, target=values))
    dataset = made(pictures, tmp_path)
    assert dataset.task.name == "regression"
    targets = np.concatenate([split.target for split in dataset.splits.values()])
    assert targets.dtype == np.float32
    assert sorted(targets.tolist()) == values
    assert (
        dataset.splits["test"].target.min()
        < 8
        < 12
        < dataset.split("test").target.max()
    )
    table(pictures / "items.csv", *listed(pictures, target=[*range(10)] * 4))
    assert folder(pictures).options["classes"] == [str(n) for n in range(10)]
    assert folder(pictures, task="regression").task.name == "regression"


SIXTEEN = noise(4, 4, 3, dtype=np.uint16)
ALPHA = np.array([[[200, 100, 50, 255], [200, 100, 50, 0]]] * 2, np.uint8)


@pytest.mark.parametrize(
    ("name", "stored", "expected"),
    [
        ("a.png", ALPHA[..., :3], ALPHA[..., :3]),
        ("a.png", ALPHA, ALPHA[..., :3] * np.array([[[1], [0]]] * 2, np.uint8)),
        ("a.bmp", ALPHA[..., 0], ALPHA[..., :1]),
        ("a.png", SIXTEEN[..., 0], SIXTEEN[..., :1] / np.float32(65535)),
        ("a.png", SIXTEEN, SIXTEEN / np.float32(65535)),
        ("a.tif", SIXTEEN, SIXTEEN / np.float32(65535)),
        ("a.tif", SIXTEEN[..., 0], SIXTEEN[..., :1] / np.float32(65535)),
    ],
)
def test_every_kind_of_picture_keeps_its_values(name, stored, expected, tmp_path):
    own = tmp_path / "own"
    kinds = ["train", "val", "test"]
    for split in kinds:
        for kind in ("a", "b"):
            save(own / split / kind / name, stored)
    image, _ = of_test(made(own, tmp_path, side="keep"))
    np.testing.assert_array_equal(image[0], expected, strict=True)


def test_mixed_depths_and_colours_become_the_richest(tmp_path):
    own = tmp_path / "own"
    for split in ("train", "val", "test"):
        save(own / split / "a" / "1.png", SIXTEEN)
        save(own / split / "b" / "2.png", np.full((4, 4), 51, np.uint8))
    image, target = of_test(made(own, tmp_path))
    assert image.dtype == np.float32
    np.testing.assert_allclose(image[target == 1], np.full((1, 4, 4, 3), 0.2))


@pytest.mark.parametrize("shape", [(9, 5), (3, 4), (1, 30)])
def test_resizing_is_that_of_pillow(shape):
    pixels = noise(*shape, 3)
    ours = fit_pixels(pixels, ItemSize((6, 6))).astype(int)
    theirs = Image.fromarray(pixels).resize((6, 6), Image.Resampling.BILINEAR)
    assert np.abs(ours - np.asarray(theirs)).max() <= 1
    grey = pixels[..., :1].astype(np.float32)
    exact = Image.fromarray(grey[..., 0]).resize((6, 6), Image.Resampling.BILINEAR)
    ours = fit_pixels(grey, ItemSize((6, 6)))[..., 0]
    np.testing.assert_allclose(ours, np.asarray(exact), rtol=1e-5, atol=1e-4)


def test_padding_keeps_all_and_cropping_the_middle():
    wide = np.arange(8, dtype=np.float32).reshape(1, 8, 1).repeat(4, 0)
    padded = fit_pixels(wide, ItemSize((4, 4), "pad"))[..., 0]
    assert not padded[[0, 3]].any()
    assert padded[1].mean() == pytest.approx(3.5)
    cropped = fit_pixels(wide, ItemSize((4, 4), "crop"))[..., 0]
    np.testing.assert_array_equal(cropped, np.tile([2, 3, 4, 5], (4, 1)))
    labels = np.ones((2, 4), np.uint8)
    assert fit_labels(labels, ItemSize((4, 4), "pad"), 255).tolist() == [
        *([[255] * 4]),
        *([[1] * 4] * 2),
        *([[255] * 4]),
    ]


@pytest.fixture
def masked(tmp_path):
    """Eight pictures with the masks of two raters, and the rows of their table."""
    rows = []
    for number in range(8):
        save(tmp_path / "own" / f"{number}.png", noise(4, 6))
        for rater in (0, 1):
            mask = np.zeros((4, 6), np.uint8)
            mask[:2, : 2 + rater] = 255
            save(tmp_path / "own" / f"{number}_{rater}.png", mask)
        rows.append(
            {"path": f"{number}.png", "masks": f"{number}_0.png;{number}_1.png"}
        )
    return tmp_path / "own", rows


def test_masks_of_several_raters_become_label_maps(masked, tmp_path):
    own, rows = masked
    table(own / "items.csv", *rows)
    dataset = made(own, tmp_path)
    assert (dataset.task.name, dataset.task.classes) == ("segmentation", 2)
    assert dataset.task.ignore is None
    _, target = of_test(dataset)
    assert target.shape[1:] == (2, 4, 6)
    assert target[0].sum((1, 2)).tolist() == [4, 6]
    pairs = [(row["path"], *row["masks"].split(";")) for row in rows]
    names = ("path", "mask_a", "mask_b")
    table(own / "items.csv", *(dict(zip(names, pair, strict=True)) for pair in pairs))
    np.testing.assert_array_equal(of_test(made(own, tmp_path))[1], target)


def test_folders_of_images_and_masks_are_paired_by_name(tmp_path):
    own = tmp_path / "own"
    for split in ("train", "val", "test", "shifted"):
        for number in range(2):
            save(own / split / "images" / f"{number}.jpg", noise(4, 4))
            for rater in ("masks", "masks_2"):
                mask = np.full((4, 4), number, np.uint8)
                save(own / split / rater / f"{number}.png", mask)
    dataset = made(own, tmp_path)
    assert dataset.task.name == "segmentation"
    assert {name: len(split) for name, split in dataset.splits.items()} == {
        **dict.fromkeys(("train", "val", "test", "test/shifted"), 2)
    }
    test = dataset.split("test")
    assert test.target.shape == (2, 2, 4, 4)
    assert [str(name) for name in test.item] == [
        *("test/images/0.jpg", "test/images/1.jpg"),
    ]
    assert test.target.reshape(2, -1).mean(1).tolist() == [0, 1]
    (own / "val" / "masks_2" / "1.png").unlink()
    with pytest.raises(DatasetError, match=r"val/images/1\.jpg must have a mask"):
        folder(own)


def test_dots_belong_to_the_names_that_pair_images_and_masks(tmp_path):
    own = tmp_path / "own"
    for number in range(6):
        save(own / "images" / f"scan.{number}.png", noise(4, 4))
        save(own / "masks" / f"scan.{number}.png", np.eye(4, dtype=np.uint8))
    assert len(folder(own).units) == 6
    save(own / "images" / "scan.0.jpg", noise(4, 4))
    with pytest.raises(DatasetError, match=r"has the name of scan\.0\.jpg"):
        folder(own)


def test_label_255_counts_nowhere_beside_others(masked, tmp_path):
    own, rows = masked
    save(own / "0_0.png", np.array([[0, 1, 2, 255, 0, 0]] * 4, np.uint8))
    table(own / "items.csv", *rows)
    dataset = made(own, tmp_path, side=3, fit="pad")
    assert (dataset.task.classes, dataset.task.ignore) == (3, 255)
    (row,) = np.flatnonzero(dataset.split("train").item == "0.png")[:1]
    assert dataset.split("train").target[row, 0, 2].tolist() == [255] * 3


def test_volumes_of_nifti_are_turned_and_keep_their_values(tmp_path):
    rows = []
    volume = np.random.default_rng(0).normal(size=(3, 4, 5)).astype(np.float32) * 1000
    mask = (volume > 0).astype(np.uint8)
    for number in range(8):
        save(tmp_path / "own" / f"{number}.nii.gz", volume)
        save(tmp_path / "own" / f"mask{number}.nii", mask)
        rows.append({"path": f"{number}.nii.gz", "mask": f"mask{number}.nii"})
    table(tmp_path / "own" / "items.csv", *rows)
    dataset = made(tmp_path / "own", tmp_path)
    assert dataset.task.space == 3
    image, target = of_test(dataset)
    np.testing.assert_array_equal(image[0, ..., 0], volume[::-1])
    np.testing.assert_array_equal(target[0, 0], mask[::-1])
    smaller = made(tmp_path / "own", tmp_path, side=2)
    assert of_test(smaller)[0].shape[1:] == (2, 2, 2, 1)
    spacing, smaller_spacing = (
        d.split("test").extra["spacing"][0] for d in (dataset, smaller)
    )
    np.testing.assert_allclose(spacing, [2.0, 1.0, 1.0])
    np.testing.assert_allclose(smaller_spacing, [3.0, 2.0, 2.5])
    assert dataset.split("test").extra["tilt"][0] == 0.0


def test_pictures_of_different_sizes_get_a_side_unless_they_are_to_be_kept(pictures):
    save(pictures / "cat" / "00.png", noise(5, 4))
    assert folder(pictures).options["side"] == 128
    with pytest.raises(DatasetError, match=r"got 5 x 4 in cat/00.png and 4 x 4 in cat"):
        folder(pictures, side="keep")


MISTAKES = {
    "a misspelt column": (
        lambda rows: [r.update(traget=r.pop("target")) for r in rows],
        r"has a column 'traget'\. Did you mean 'target'\?",
    ),
    "decimal commas": (
        lambda rows: [r.update(target=f"{n % 6},5") for n, r in enumerate(rows)],
        r"a decimal point, got '0,5' in line 2 of items\.csv; write 0\.5",
    ),
    "a missing file": (
        lambda rows: rows[2].update(path="none.png"),
        r"line 4 of items\.csv names 'none\.png', and there is no file",
    ),
    "a split of no name": (
        lambda rows: [r.update(split="trian") for r in rows],
        r"the split in line 2 of items\.csv must be train, val or test, got 'trian'\."
        " Did you mean 'train'",
    ),
    "a split left out": (
        lambda rows: [r.update(split="train" if n else "") for n, r in enumerate(rows)],
        r"line 2 of items\.csv must state a split as line 3 of items\.csv does",
    ),
    "no target": (
        lambda rows: rows[1].update(target=""),
        r"line 3 of items\.csv must have a target, got none; add",
    ),
    "a class that is not trained on": (
        lambda rows: [
            r.update(split="test" if r["target"] == "cat" else "train") for r in rows
        ],
        r"class 'cat' in the split test, and no item of it is in train, whose classes"
        " are owl; add some there",
    ),
    "a cluster in two splits": (
        lambda rows: [
            r.update(cluster="p", split="test" if n % 9 else "train")
            for n, r in enumerate(rows)
        ],
        r"the cluster 'p' must be in one split, got train in line 2 of items\.csv and"
        r" test in line 3",
    ),
    "shifted items to train on": (
        lambda rows: [r.update(split="train", shifted="yes") for r in rows],
        r"line 2 of items\.csv is shifted and in the split train",
    ),
    "no flag": (
        lambda rows: [r.update(shifted="maybe") for r in rows],
        r"'shifted' in line 2 of items\.csv must be 1 or 0, true or false, got 'maybe'",
    ),
    "the same image twice": (
        lambda rows: rows[1].update(path=rows[0]["path"]),
        r"line 3 of items\.csv and line 2 of items\.csv name the same image",
    ),
    "a number that is missing": (
        lambda rows: [
            r.update(target=n / 9 if n else "NA") for n, r in enumerate(rows)
        ],
        r"the target in line 2 of items\.csv must be a number .*, got 'NA'; correct it",
    ),
    "one class": (
        lambda rows: [r.update(target="1") for r in rows],
        r"at least two classes, got 1; if targets are numbers, state the task, reg",
    ),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistakes_in_a_table_are_refused_with_their_line(mistake, pictures):
    change, message = MISTAKES[mistake]
    rows = listed(pictures)
    change(rows)
    table(pictures / "items.csv", *rows)
    with pytest.raises(DatasetError, match=message):
        folder(pictures)


def test_columns_that_are_not_known_are_noted_and_not_read(pictures):
    rows = listed(pictures, age=range(40), hospital="AB" * 20)
    table(pictures / "items.csv", *rows)
    note = folder(pictures).notes[0]
    assert note == (
        "columns of items.csv that are not read: age, hospital; one that is called"
        " extra/age is kept in the predictions"
    )


def test_columns_called_extra_are_kept(pictures, tmp_path):
    ages = [*range(39), ""]
    rows = listed(pictures, **{"extra/age": ages, "extra/who": ["a b", "c"] * 20})
    table(pictures / "items.csv", *rows)
    recipe = folder(pictures)
    assert not [note for note in recipe.notes if "not read" in note]
    splits = prepare(recipe, tmp_path / "cache", workers=1).dataset.splits
    by_item = {row["path"]: row for row in rows}
    for split in splits.values():
        for name, age, who in zip(
            split.item, split.extra["extra/age"], split.extra["extra/who"], strict=True
        ):
            assert who == by_item[name]["extra/who"]
            text = by_item[name]["extra/age"]
            assert age == float(text) if text != "" else np.isnan(age)
    rows[0]["extra/age"] = 77
    table(pictures / "items.csv", *rows)
    assert folder(pictures).options != recipe.options


def test_a_table_of_another_name_is_offered(pictures, tmp_path):
    table(pictures / "labels.csv", *listed(pictures))
    note = folder(pictures).notes[0]
    assert f"labels.csv in {pictures} is not read" in note
    assert f"--from {pictures / 'labels.csv'}" in note
    (tmp_path / "flat").mkdir()
    table(tmp_path / "flat" / "labels.csv", *listed(pictures))
    with pytest.raises(DatasetError, match=r"--from .*labels\.csv reads it"):
        folder(tmp_path / "flat")


def test_one_file_in_two_classes_or_splits_is_noted(pictures, tmp_path):
    rows = listed(pictures, split=["train", "val", "test", "train"] * 10)
    for path in ("owl/03.png", "owl/05.png"):
        (pictures / path).write_bytes((pictures / "cat/00.png").read_bytes())
    table(pictures / "items.csv", *rows)
    twice, leak = folder(pictures).notes[:2]
    assert twice.startswith("the same file has different targets (1 image): ")
    assert "cat/00.png (cat) and owl/03.png (owl)" in twice
    assert "(train)" in leak
    assert "scores there are too good" in leak


def test_classes_that_are_spelt_nearly_alike_are_noted(pictures):
    names = ["cat", "Cat", "owl", "snowy owl", "snowy_owl"] * 8
    table(pictures / "items.csv", *listed(pictures, target=names))
    (note,) = [note for note in folder(pictures).notes if "alike" in note]
    assert note.endswith(": 'Cat' and 'cat'; 'snowy owl' and 'snowy_owl'")


def test_classes_that_are_not_tested_are_noted(pictures):
    split = ["train", "val", "test", "train"] * 10
    names = ["fox" if n in (4, 7) else "owl" if n % 3 else "cat" for n in range(40)]
    table(pictures / "items.csv", *listed(pictures, target=names, split=split))
    (note,) = folder(pictures).notes
    assert note.startswith("no item of test is of the class fox: nothing there tells")


@pytest.mark.parametrize("code", [-999.0, 9999.0])
def test_a_number_that_stands_for_a_missing_one_is_noted(pictures, code):
    values = [n * 1.5 for n in range(40)]
    table(pictures / "items.csv", *listed(pictures, target=values))
    assert not [note for note in folder(pictures).notes if "targets" in note]
    values[3] = values[9] = code
    table(pictures / "items.csv", *listed(pictures, target=values))
    (note,) = [note for note in folder(pictures).notes if "targets" in note]
    assert note.startswith(f"2 of 40 targets are {code:g}, far from the others (0 to ")


def test_small_test_sets_are_noted(pictures):
    split = ["test"] * 4 + ["val"] * 6 + ["train"] * 30
    rows = listed(pictures, split=split)
    for row in rows[:2]:
        row["target"] = "owl"
    for row in rows[-2:]:
        row["target"] = "cat"
    table(pictures / "items.csv", *rows)
    (note,) = folder(pictures).notes
    assert note.startswith("test has 4 items: with fewer than 10")


def test_a_mask_of_0_and_255_among_those_of_0_and_1_is_noted(masked):
    own, rows = masked
    table(own / "items.csv", *rows)
    assert not [note for note in folder(own).notes if "255" in note]
    for path in sorted(own.glob("*_?.png")):
        if path.name != "3_1.png":
            Image.fromarray(np.asarray(Image.open(path)) // np.uint8(255)).save(path)
    (note,) = [note for note in folder(own).notes if "255" in note]
    assert "3_1.png" in note


def test_a_mask_without_its_image_is_noted(tmp_path):
    for number in range(30):
        save(tmp_path / "images" / f"{number}.png", noise(4, 6))
    for number in range(35):
        save(tmp_path / "masks" / f"{number}.png", noise(4, 6) // 200)
    (note,) = [note for note in folder(tmp_path).notes if "masks" in note]
    assert note == (
        "masks that are not read, since no image has their name: masks/30.png,"
        " masks/31.png, masks/32.png and 2 more"
    )


@pytest.mark.parametrize(
    ("first", "second", "meant"),
    [("training", "test", "train"), ("training", "testing", "test")],
)
def test_splits_under_other_names_are_not_taken_for_classes(
    tmp_path, first, second, meant
):
    for split in (first, second):
        for label in ("cat", "owl"):
            save(tmp_path / split / label / "1.png", noise(4, 6))
    with pytest.raises(DatasetError, match=f"Did you mean '{meant}'. Rename it"):
        folder(tmp_path)


def test_classes_may_have_folders_and_nearly_the_name_of_a_split(tmp_path):
    for label in ("vest", "coat"):
        for year in ("2020", "2021"):
            for number in range(8):
                save(tmp_path / label / year / f"{number}.png", noise(4, 6))
        save(tmp_path / label / "0.png", noise(4, 6))
    assert folder(tmp_path).options["classes"] == ["coat", "vest"]


def test_links_to_nothing_are_refused(pictures):
    (pictures / "owl" / "99.png").symlink_to("elsewhere.png")
    with pytest.raises(DatasetError, match=r"99\.png is a link to elsewhere\.png"):
        folder(pictures)
    (pictures / "owl" / "98.png").symlink_to("gone.png")
    with pytest.raises(
        DatasetError, match=r"so are 99\.png beside it; mend or remove "
    ):
        folder(pictures)


def test_a_constant_is_nothing_to_learn(pictures):
    table(pictures / "items.csv", *listed(pictures, target=[2.5] * 40))
    with pytest.raises(DatasetError, match=r"targets must differ, got 2\.5 for each"):
        folder(pictures)


def test_all_damaged_pictures_are_named(pictures):
    for name in ("01", "02", "03"):
        (pictures / "owl" / f"{name}.png").write_bytes(b"no picture")
    with pytest.raises(DatasetError) as caught:
        folder(pictures)
    message = str(caught.value)
    assert all(f"{name}.png" in message for name in ("01", "02", "03"))
    assert "BytesIO" not in message
    assert "cannot read 3 files (its bytes are those of no image): " in message
    assert message.endswith("repair them or remove them")


def test_text_is_no_number(pictures):
    table(pictures / "items.csv", *listed(pictures))
    with pytest.raises(
        DatasetError, match=r"line 2 of items\.csv must be a finite number, got 'cat'"
    ):
        folder(pictures / "items.csv", task="regression")


def test_a_table_with_semicolons_is_refused(pictures):
    (pictures / "items.csv").write_text("path;target\ncat/00.png;cat\n")
    with pytest.raises(DatasetError, match=r"separated by commas, .* 'path;target'"):
        folder(pictures)


def test_pictures_that_pillow_takes_for_an_attack_are_read(pictures, monkeypatch):
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 1)
    assert folder(pictures).task.classes == 2
    assert Image.MAX_IMAGE_PIXELS == 1


def test_masks_that_do_not_fit_are_refused(masked):
    own, rows = masked
    table(own / "items.csv", *rows)
    good = (own / "3_1.png").read_bytes()
    for mask, message in (
        (noise(6, 4), r"got 6 x 4 in '3_1\.png' and 4 x 6 in '3\.png' \(line 5 of"),
        (
            noise(4, 6, 3),
            r"3_1\.png \(.*\): a mask has one label for each pixel, got colours",
        ),
        (np.full((4, 6), 99, np.uint8), r"got 0, 99, 255, the largest 99 in 3_1\.png"),
    ):
        save(own / "3_1.png", mask)
        with pytest.raises(DatasetError, match=message):
            folder(own)
    (own / "3_1.png").write_bytes(good)
    rows[5]["masks"] = "5_0.png"
    table(own / "items.csv", *rows)
    with pytest.raises(DatasetError, match=r"got 2 masks in line 2 .* and 1 in line 7"):
        folder(own)


def test_files_that_are_damaged_or_foreign_are_named(pictures, tmp_path):
    victim = pictures / "owl" / "01.png"
    full = victim.read_bytes()
    victim.write_bytes(full[:50])
    with pytest.raises(DatasetError, match=r"1 of 40 items .* loaded: owl/01\.png"):
        made(pictures, tmp_path)
    victim.write_bytes(b"no picture")
    with pytest.raises(DatasetError, match=r"cannot read .*01\.png.*; repair it"):
        folder(pictures)
    victim.write_bytes(full)
    (pictures / "owl" / "scan.dcm").write_bytes(b"")
    with pytest.raises(DatasetError, match=r"owl/scan\.dcm must be an image"):
        folder(pictures)


@pytest.fixture
def volumes(tmp_path):
    """Eight volumes of different shapes, voxels of 1 x 2 x 3 mm, two raters each."""
    import nibabel

    rows, rng = [], np.random.default_rng(0)
    for number in range(8):
        values = rng.normal(size=(4 + number, 6, 5)).astype(np.float32)
        masks = [(values > level).astype(np.uint8) for level in (0, 1)]
        (tmp_path / "own").mkdir(exist_ok=True)
        for name, array in zip("iab", (values, *masks), strict=True):
            stored = nibabel.Nifti1Image(array, np.diag([1.0, 2.0, 3.0, 1.0]))
            nibabel.save(stored, tmp_path / "own" / f"{number}{name}.nii.gz")
        named = [f"{number}{name}.nii.gz" for name in "iab"]
        rows.append(dict(zip(("path", "mask_a", "mask_b"), named, strict=True)))
    table(tmp_path / "own" / "items.csv", *rows)
    return tmp_path / "own"


def test_masked_images_of_different_sizes_keep_their_own(volumes, tmp_path):
    dataset = made(volumes, tmp_path)
    assert dataset.options["side"] == "keep"
    assert (dataset.task.space, dataset.task.ignore) == (3, 255)
    split = dataset.splits["train"]
    assert split.image.shape[1:] == (-1, 6, 5, 1)
    assert split.target.shape[1:] == (2, -1, 6, 5)
    for row, name in enumerate(split.item):
        assert split.image[row].shape == (4 + int(name[0]), 6, 5, 1)
        above = split.image[row][..., 0] > 1
        np.testing.assert_array_equal(split.target[row][1], above)


def test_volumes_are_resampled_to_voxels_that_are_stated_and_only_then(
    volumes, tmp_path
):
    split = made(volumes, tmp_path, side="2x2x1mm").splits["train"]
    for row, name in enumerate(split.item):
        sides = (round((4 + int(name[0])) / 2), 6, 15)
        assert split.image[row].shape == (*sides, 1)
        assert split.target[row].shape == (2, *sides)
    full = made(volumes, tmp_path, side="1x2x3mm").splits["train"]
    kept = made(volumes, tmp_path).splits["train"]
    np.testing.assert_array_equal(full.image[1], kept.image[1])


@pytest.mark.parametrize(
    ("side", "message"),
    [
        ("2cm", "'keep', or sides of a voxel such as '1mm' or '1x1x3mm', got '2cm'"),
        ("0mm", "sides of a voxel"),
        ("1x1mm", "must state one length or 3"),
    ],
)
def test_sides_of_voxels_that_mean_nothing_are_refused(volumes, side, message):
    with pytest.raises(ValueError, match=message):
        folder(volumes, side=side)


def test_a_mask_that_is_turned_another_way_than_its_image_is_refused(volumes):
    import nibabel

    path = volumes / "3b.nii.gz"
    mask = nibabel.load(path)
    turned = nibabel.Nifti1Image(np.asarray(mask.dataobj), np.diag([-1, -2, 3, 1]))
    nibabel.save(turned, path)
    with pytest.raises(DatasetError, match=r"got LPS in '3b.*' and RAS in '3i"):
        folder(volumes)


def test_voxels_are_of_nifti_files_with_masks(masked, pictures):
    own, rows = masked
    table(own / "items.csv", *rows)
    for root in (own, pictures):
        with pytest.raises(DatasetError, match="states voxels of NIfTI files"):
            folder(root, side="1mm")


def segmented(root, images, masks, name="{}.png", count=12):
    """Pictures in one folder and their masks in another."""
    for number in range(count):
        save(root / images / name.format(number), noise(4, 4))
        save(root / masks / f"{number}.png", np.eye(4, dtype=np.uint8))
    return root


@pytest.mark.parametrize(
    ("images", "masks"),
    [
        ("imgs", "labels"),
        ("img", "mask"),
        ("image", "label"),
        ("Images", "Labels"),
        ("images", "annotations"),
        ("images", "ground_truth"),
    ],
)
def test_pairs_of_folders_by_any_usual_name_are_images_and_masks(
    images, masks, tmp_path
):
    recipe = folder(segmented(tmp_path, images, masks))
    assert recipe.task.name == "segmentation"
    assert len(recipe.units) == 12


def test_folders_of_nnunet_are_images_and_masks(tmp_path):
    root = segmented(tmp_path, "imagesTr", "labelsTr", "{}_0000.png")
    save(root / "imagesTs" / "1_0000.png", noise(4, 4))
    recipe = folder(root)
    assert recipe.task.name == "segmentation"
    assert (
        "images that are not read, since they have no masks: imagesTs" in recipe.notes
    )
    save(root / "labelsTs" / "1.png", np.eye(4, dtype=np.uint8))
    split = {unit.key: unit.split for unit in folder(root).units}
    assert split["imagesTs/1_0000.png"] == "test"
    assert set(split.values()) == {"train", "val", "test"}
    save(root / "imagesTr" / "3_0001.png", noise(4, 4))
    with pytest.raises(DatasetError, match="is one channel of '3', and an image is on"):
        folder(root)


@pytest.mark.parametrize(
    ("images", "masks"),
    [("train", "train_masks"), ("photos", "masks"), ("cells", "cells-labels")],
)
def test_masks_are_no_class(images, masks, tmp_path):
    with pytest.raises(DatasetError, match="looks like masks of the images in"):
        folder(segmented(tmp_path, images, masks))


def test_faces_with_and_without_a_mask_are_two_classes(tmp_path):
    recipe = folder(segmented(tmp_path, "no_mask", "mask"))
    assert recipe.task.name == "classification"


@pytest.mark.parametrize("side", [10**9, 30_000])
def test_a_side_that_would_fill_the_memory_is_refused(pictures, side):
    with pytest.raises(
        DatasetError, match=f"would have {side} x {side}; state a small"
    ):
        folder(pictures, side=side)


def test_a_third_folder_beside_images_and_masks_is_no_class(tmp_path):
    root = segmented(tmp_path, "images", "masks")
    save(root / "preview" / "1.png", noise(4, 4))
    with pytest.raises(DatasetError, match="got 'preview' beside them; move it away"):
        folder(root)


def test_a_class_may_be_called_train(pictures):
    for number in range(40):
        save(pictures / "train" / f"{number:02d}.png", noise(4, 4))
    recipe = folder(pictures)
    assert recipe.options["classes"] == ["cat", "owl", "train"]
    assert any("'train' is a class here" in note for note in recipe.notes)
    (pictures / "train" / "cats").mkdir()
    with pytest.raises(DatasetError, match="all be splits or all be classes"):
        folder(pictures)


@pytest.mark.parametrize("name", ["patient_id", "PatientID", "subject", "slide no"])
def test_a_column_of_patients_is_offered_as_clusters(name, pictures):
    paths = sorted(pictures.rglob("*.png"))
    rows = [
        {
            "path": path.relative_to(pictures).as_posix(),
            "target": path.parent.name,
            name: f"p{number // 4}",
        }
        for number, path in enumerate(paths)
    ]
    file = table(pictures / "items.csv", *rows)
    words = "10 different values in 40 lines: items of one of them must not be trained"
    with pytest.raises(DatasetError, match=words):
        folder(pictures)
    file.write_text(file.read_text().replace(name, "cluster"))
    of_cluster = {}
    for unit in folder(pictures).units:
        of_cluster.setdefault(unit.args[3], set()).add(unit.split)
    assert all(len(splits) == 1 for splits in of_cluster.values())
    unique = [{**row, name: row["path"]} for row in rows]
    table(file, *unique)
    assert any(f"not read: {name}" in note for note in folder(pictures).notes)


def test_folders_inside_those_of_classes_are_told(pictures):
    for path in sorted((pictures / "owl").iterdir()):
        save(pictures / "owl" / "p1" / path.name, noise(4, 4))
        path.unlink()
    (note,) = (note for note in folder(pictures).notes if "'cluster'" in note)
    assert "images lie in 1 folder inside those of classes, such as owl/p1" in note


@pytest.mark.parametrize(
    ("target", "said"),
    [
        ("2020-01-{}", "got the date '2020-01-1' in line 2 of items.csv; write a numb"),
        ("{}.1.2020", "got the date '1.1.2020'"),
        ("case {}", "got a class for each of 12 items, such as 'case 1'"),
    ],
)
def test_dates_and_names_are_no_classes(target, said, tmp_path):
    rows = []
    for number in range(1, 13):
        save(tmp_path / f"{number}.png", noise(4, 4))
        rows.append({"path": f"{number}.png", "target": target.format(number)})
    with pytest.raises(DatasetError, match=said):
        folder(table(tmp_path / "items.csv", *rows))
