import numpy as np
import pytest

from datasets.fake_eyes import (
    APTOS,
    aptos_rows,
    eyepacs_rows,
    write_aptos,
    write_eyepacs,
    write_photographs,
)
from qualms.datasets import DatasetError, cache_folder, prepare
from qualms.datasets._albums import albums_of
from qualms.datasets.aptos import aptos
from qualms.datasets.eyepacs import eyepacs
from qualms.spec import Task

ROWS = aptos_rows({"test": (3, 1, 2, 1, 1), "val": (1, 0, 1, 0, 0)})


@pytest.fixture
def root(tmp_path):
    root = tmp_path / "raw"
    write_aptos(root / "aptos", ROWS)
    write_photographs(root, [], [], ROWS)
    return root


def made(recipe, tmp_path):
    folder = cache_folder(tmp_path / "cache", recipe)
    folder.parent.mkdir(exist_ok=True)
    return prepare(recipe, folder, workers=1, check_counts=False)


def test_the_first_four_fifths_are_test_in_the_order_of_the_file(root, tmp_path):
    done = made(aptos(root, size=20), tmp_path)
    splits = done.dataset.splits
    assert done.counts == {"val": 2, "test": 8}
    assert splits["test"].item.tolist() == [name for name, _ in ROWS[:8]]
    assert splits["val"].item.tolist() == [name for name, _ in ROWS[8:]]
    assert splits["test"].extra["group"].tolist() == [grade for _, grade in ROWS[:8]]
    assert splits["test"].image.shape == (8, 20, 20, 3)
    assert done.dataset.task == Task(name="classification", classes=2)
    # patients are not told, so every photograph stands for itself
    np.testing.assert_array_equal(splits["val"].extra["cluster"], splits["val"].item)


def test_onset_decides_who_is_referred(root, tmp_path):
    for onset, lowest in (("mild", 1), ("moderate", 2)):
        test = made(aptos(root, onset=onset, size=20), tmp_path).dataset.splits["test"]
        np.testing.assert_array_equal(test.target, test.extra["group"] >= lowest)


def test_photographs_are_those_of_the_country_shift(root):
    train, rest = eyepacs_rows(dict.fromkeys(("train", "Public", "Private"), (1,) * 5))
    write_eyepacs(root / "eyepacs", train, rest)
    (alone,) = albums_of(aptos(root))
    assert alone in albums_of(eyepacs(root))
    assert alone not in albums_of(eyepacs(root, shift="severity"))


def test_the_paper_s_numbers_are_asserted(root, tmp_path):
    assert aptos(root).counts == {"val": 733, "test": 2929}
    assert aptos(root).grades == APTOS
    with pytest.raises(DatasetError, match="test grade 4 1 instead of 230"):
        prepare(aptos(root), tmp_path / "cache", workers=1)


def test_a_missing_photograph_is_named(root, tmp_path):
    (root / "aptos" / "train_images" / f"{ROWS[3][0]}.png").unlink()
    done = made(aptos(root, size=20), tmp_path)
    assert [one.key for one in done.skipped] == [ROWS[3][0]]
    assert "train_images" in done.skipped[0].reason
    assert done.counts == {"val": 2, "test": 7}


def test_the_folder_may_be_text(root, tmp_path):
    assert made(aptos(str(root), size=20), tmp_path).counts == {"val": 2, "test": 8}


def test_wrong_choices_are_refused(root, tmp_path):
    with pytest.raises(ValueError, match="onset must be one of"):
        aptos(root, onset="late")
    with pytest.raises(ValueError, match="blur must be one of"):
        aptos(root, blur=4)
    with pytest.raises(ValueError, match=r"blur must be a whole number, got 30\.0"):
        aptos(root, blur=30.0)
    with pytest.raises(ValueError, match=r"size must be a whole number, got 64\.0"):
        aptos(root, size=64.0)
    with pytest.raises(DatasetError, match=r"expected train\.csv in"):
        aptos(tmp_path)
