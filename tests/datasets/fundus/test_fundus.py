"""The simulated fundus photographs: shares, shifts, readings and their true odds."""

from collections import Counter

import cv2
import numpy as np
import pytest

from qualms.datasets import Unit, open_dataset, prepare, verify_dataset
from qualms.datasets._retina.contrast import enhance
from qualms.datasets._retina.protocol import largest
from qualms.datasets.fundus import fundus
from qualms.datasets.fundus._clinic import Clinic, eye_readings, eyes, target_probs

DEFAULT = {
    "train": 10_000,
    "val": 2_000,
    "val/shifted": 500,
    "test": 5_000,
    "test/shifted": 2_000,
}
FEW = {"train": 12, "val": 4, "val/shifted": 4, "test": 6, "test/shifted": 8}
EYEPACS = {
    "train": (25_810, 2_443, 5_292, 873, 708),
    "val": (8_130, 720, 1_579, 237, 240),
    "test": (31_403, 3_042, 6_282, 977, 966),
}
APTOS = {
    "val/shifted": (387, 61, 185, 35, 65),
    "test/shifted": (1_418, 309, 814, 158, 230),
}
BOTH = pytest.mark.parametrize("shift", ["country", "severity"])


def planned(recipe, split):
    """(n, 2) number and grade of every eye of a split, in order."""
    units = [unit for unit in recipe.units if unit.split == split]
    return np.concatenate([np.array(unit.args).T for unit in units])


def loaded(recipe, split):
    unit = next(unit for unit in recipe.units if unit.split == split)
    return recipe.load(unit)


@BOTH
def test_the_default_sizes_are_those_of_the_small_preset(shift):
    recipe = fundus(shift=shift)
    assert recipe.counts == DEFAULT
    assert {split: len(planned(recipe, split)) for split in DEFAULT} == DEFAULT
    assert recipe.shifts == {"val/shifted": shift, "test/shifted": shift}


@BOTH
def test_a_smaller_set_is_the_beginning_of_a_larger_one(shift):
    small, full = fundus(shift=shift, sizes=FEW), fundus(shift=shift)
    for split, size in FEW.items():
        np.testing.assert_array_equal(
            planned(small, split), planned(full, split)[:size]
        )
        assert len(np.unique(planned(full, split)[:, 0])) == DEFAULT[split]


def test_grades_have_the_published_shares_of_either_country():
    recipe = fundus(sizes=largest())
    for split, published in (EYEPACS | APTOS).items():
        grade = planned(recipe, split)[:, 1]
        share = np.array(published) / sum(published)
        result = np.bincount(grade, minlength=5) / len(grade)
        # Two eyes of a patient tell less than two patients, at worst as much as one.
        error = np.sqrt(2 * share * (1 - share) / len(grade))
        assert np.all(np.abs(result - share) < 4 * error), split


@pytest.mark.parametrize(("onset", "last"), [("mild", 1), ("moderate", 2)])
def test_severity_shift_trains_up_to_the_onset_and_tests_beyond(onset, last):
    recipe = fundus(shift="severity", onset=onset)
    for split in DEFAULT:
        kept = set(planned(recipe, split)[:, 1])
        beyond = split.endswith("/shifted")
        assert kept == set(range(last + 1, 5) if beyond else range(last + 1)), split
    train = Counter(planned(recipe, "train")[:, 1].tolist())
    share = np.array(EYEPACS["train"][: last + 1])
    result = np.array([train[grade] for grade in range(last + 1)])
    np.testing.assert_allclose(result / 10_000, share / share.sum(), atol=0.02)


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    folder = tmp_path_factory.mktemp("fundus")
    prepare(fundus(size=64, sizes=FEW, seed=3), folder, workers=1)
    verify_dataset(folder)
    return open_dataset(folder)


def test_the_prepared_set_has_every_split_and_array(small):
    assert list(small.splits) == list(DEFAULT)
    for name, split in small.splits.items():
        n = FEW[name]
        assert split.image.shape == (n, 64, 64, 3)
        assert split.image.dtype == np.uint8
        assert split.target.dtype.kind == "i"
        np.testing.assert_array_equal(split.target, split.extra["group"] >= 2)
        assert split.extra["target_probs"].shape == (n, 2)
        np.testing.assert_allclose(split.extra["target_probs"].sum(axis=1), 1)
        assert np.all(split.extra["shifted"] == name.endswith("/shifted"))
    assert small.task.classes == 2


def test_no_item_and_no_patient_is_in_two_splits(small):
    for name in ("item", "cluster"):
        result = [
            set(split.item if name == "item" else split.extra[name])
            for split in small.splits.values()
        ]
        assert len(set.union(*result)) == sum(len(of) for of in result)
    train = small.splits["train"]
    assert Counter(train.extra["cluster"].tolist()).most_common(1)[0][1] == 2
    assert {item.rsplit("-", 1)[1] for item in train.item} == {"left", "right"}
    for item, patient in zip(train.item, train.extra["cluster"], strict=True):
        assert item.startswith(f"{patient}-")


def test_an_image_does_not_depend_on_what_else_is_made(small):
    recipe = fundus(size=64, seed=3)
    first = next(unit for unit in recipe.units if unit.split == "test/shifted")
    alone = Unit(key="x", split=first.split, args=tuple((a[5],) for a in first.args))
    shown = small.splits["test/shifted"]
    one = recipe.load(alone)
    np.testing.assert_array_equal(one.image[0], shown.image[5])
    assert one.item[0] == shown.item[5]
    np.testing.assert_array_equal(
        one.extra["target_probs"][0], shown.extra["target_probs"][5]
    )


def test_the_seed_changes_images_and_readings(small):
    other = loaded(fundus(size=64, sizes=FEW, seed=4), "train")
    assert np.all((other.image != small.splits["train"].image).any(axis=(1, 2, 3)))


def test_an_eye_looks_the_same_under_either_shift_and_onset(small):
    train = small.splits["train"]
    recipe = fundus(shift="severity", onset="mild", size=64, sizes=FEW, seed=3)
    other = loaded(recipe, "train")
    shared = [item for item in other.item if item in set(train.item)]
    assert len(shared) >= 6
    for item in shared:
        here = list(train.item).index(item)
        np.testing.assert_array_equal(
            other.image[other.item.index(item)], train.image[here]
        )


def test_shifted_splits_have_other_eyes_under_the_other_shift(small):
    abroad = small.splits["test/shifted"]
    recipe = fundus(shift="severity", size=64, sizes=FEW, seed=3)
    number = int(abroad.item[0].split("-")[2]) * 2 + abroad.item[0].endswith("left")
    unit = Unit(key="x", split="test/shifted", args=((number,), (3,)))
    home = recipe.load(unit)
    assert home.item[0] == abroad.item[0]
    assert (home.image[0] != abroad.image[0]).mean() > 0.5
    onset = fundus(onset="mild", size=64, sizes=FEW, seed=3)
    np.testing.assert_array_equal(onset.load(unit).image[0], abroad.image[0])


@pytest.mark.parametrize(
    ("shift", "onset", "split"),
    [
        ("country", 2, "train"),
        ("country", 1, "test"),
        ("country", 2, "test/shifted"),
        ("severity", 2, "train"),
        ("severity", 1, "test"),
    ],
)
def test_target_probs_are_the_odds_of_the_readings(shift, onset, split):
    clinic = Clinic(shift, onset, 8)
    numbers, grades = eyes(clinic, split, 40_000)
    prob = target_probs(clinic, split, eye_readings(clinic, split, numbers))[:, 1]
    target = np.array(grades) >= onset
    assert 0 < target.mean() < 1
    bins = np.floor(10 * prob).astype(int)
    filled = [of for of in range(10) if np.sum(bins == of) > 100]
    assert len(filled) >= 6
    for of in filled:
        chosen = bins == of
        error = np.sqrt((prob * (1 - prob))[chosen].sum()) / chosen.sum()
        assert abs(target[chosen].mean() - prob[chosen].mean()) < 4 * error + 1e-4
    # Brier's score of the truth is its expectation, not only its calibration.
    spread = np.sqrt(np.sum(prob * (1 - prob) * (1 - 2 * prob) ** 2)) / len(prob)
    brier = np.mean((target - prob) ** 2) - np.mean(prob * (1 - prob))
    assert abs(brier) < 4 * spread


@pytest.mark.parametrize("onset", [1, 2])
@pytest.mark.parametrize("split", ["train", "val", "val/shifted", "test"])
def test_target_probs_sum_to_one_where_the_split_keeps_some_grades(split, onset):
    clinic = Clinic("severity", onset, 5)
    numbers, _ = eyes(clinic, split, 2_000)
    result = target_probs(clinic, split, eye_readings(clinic, split, numbers))
    np.testing.assert_allclose(result.sum(axis=1), 1, rtol=1e-12)
    assert result.min() >= 0


def test_beyond_the_trained_severity_every_target_is_certain():
    clinic = Clinic("severity", 2, 0)
    numbers, grades = eyes(clinic, "test/shifted", 500)
    prob = target_probs(
        clinic, "test/shifted", eye_readings(clinic, "test/shifted", numbers)
    )
    np.testing.assert_array_equal(prob, np.tile([0.0, 1.0], (500, 1)))
    assert min(grades) == 3


def test_the_pictures_show_the_burden_and_not_the_reading():
    recipe = fundus(size=64, seed=6)
    clinic = Clinic("country", 2, 6)
    unit = next(unit for unit in recipe.units if unit.split == "train")
    numbers, grades = unit.args
    few = Unit(key="a", split="train", args=(numbers[:4], grades[:4]))
    lies = Unit(key="b", split="train", args=(numbers[:4], (4, 4, 4, 4)))
    honest, lied = recipe.load(few), recipe.load(lies)
    np.testing.assert_array_equal(honest.image, lied.image)
    np.testing.assert_array_equal(
        honest.extra["target_probs"], lied.extra["target_probs"]
    )
    read = eye_readings(clinic, "train", numbers)
    assert read.grade.tolist() == list(grades)


def test_the_other_country_has_other_colours_and_the_worse_severity_has_not():
    def colour(recipe, split):
        image = loaded(recipe, split).image.astype(float)
        return image.mean(axis=(1, 2)) / image.sum(axis=-1).mean(axis=(1, 2))[:, None]

    sizes = dict.fromkeys(DEFAULT, 40)
    country = fundus(size=64, sizes=sizes)
    severity = fundus(shift="severity", size=64, sizes=sizes)
    home = colour(country, "test")
    spread = home.std(axis=0).max()
    away = np.abs(colour(country, "test/shifted").mean(axis=0) - home.mean(axis=0))
    worse = np.abs(colour(severity, "test/shifted").mean(axis=0) - home.mean(axis=0))
    assert away.max() > 1.1 * spread
    assert worse.max() < 0.6 * spread


def test_a_small_photograph_is_a_large_one_made_small():
    sizes = dict.fromkeys(DEFAULT, 6)
    large = loaded(fundus(size=256, sizes=sizes), "train").image
    tiny = loaded(fundus(size=64, sizes=sizes), "train").image.astype(float)
    for big, little in zip(large, tiny, strict=True):
        shrunk = cv2.resize(big, (64, 64), interpolation=cv2.INTER_AREA).astype(float)
        assert np.corrcoef(shrunk.ravel(), little.ravel())[0, 1] > 0.98
        assert np.abs(shrunk - little).mean() < 6


@pytest.mark.parametrize("size", [48, 75, 512])
def test_any_size_can_be_had(size):
    sizes = dict.fromkeys(DEFAULT, 1)
    image = loaded(fundus(size=size, sizes=sizes), "val").image
    assert image.shape == (1, size, size, 3)
    assert image[0, size // 2 - 3 : size // 2 + 3].max() > 60
    assert image[0, :2, :2].max() < 12


def test_blur_stores_the_local_contrast_of_the_photograph():
    sizes = dict.fromkeys(DEFAULT, 3)
    plain = loaded(fundus(size=90, sizes=sizes), "train").image
    for blur in (3, 30):
        result = loaded(fundus(size=90, sizes=sizes, blur=blur), "train").image
        assert result.shape == plain.shape
        expected = cv2.resize(enhance(plain[0], radius=50, blur=blur), (90, 90))
        np.testing.assert_array_equal(result[0], expected)
        assert np.all(np.abs(result[:, :4, :4].astype(int) - 128) <= 1)


def test_everything_that_changes_the_images_is_an_option():
    base = dict(fundus(sizes=FEW).options)
    assert set(base) == {"shift", "onset", "size", "sizes", "seed", "blur"}
    for name, value in {"size": 64, "seed": 1, "blur": 30, "onset": "mild"}.items():
        assert fundus(sizes=FEW, **{name: value}).options == base | {name: value}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"shift": "camera"}, "shift must be one of country, severity, got 'camera'"),
        ({"onset": "severe"}, "onset must be one of mild, moderate, got 'severe'"),
        ({"size": 32}, "size must be at least 48 pixels to show an eye, got 32"),
        ({"blur": 4}, "blur must be None or one of 3, 5, 10, 20, 30, got 4"),
        ({"seed": -1}, "seed must be at least 0, got -1"),
        ({"sizes": {"train": 35_127}}, "size of 'train' must lie in 1..35126"),
        ({"sizes": {"val": 0}}, "size of 'val' must lie in 1..10906, got 0"),
        ({"sizes": {"shifted": 5}}, "sizes must name train, val, .*, got 'shifted'"),
        ({"size": 64.0}, "size must be a whole number, got 64.0"),
        ({"size": "64"}, "size must be a whole number, got '64'"),
        ({"blur": 30.0}, "blur must be a whole number, got 30.0"),
        ({"blur": True}, "blur must be a whole number, got True"),
    ],
)
def test_wrong_options_are_refused_with_a_sentence(options, message):
    with pytest.raises(ValueError, match=message):
        fundus(**options)
