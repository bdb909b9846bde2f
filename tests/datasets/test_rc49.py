import h5py
import numpy as np
import pytest

from qualms.datasets import DatasetError, prepare
from qualms.datasets.rc49 import SIZES, rc49

CHAIRS = 3
TENTHS = np.arange(1, 900)


def write(path, *, tenths=TENTHS, chairs=CHAIRS, types=True, images=True):
    """Rows in the order angle, then chair; odd tenths are in the training list."""
    tenth, chair = (
        a.ravel() for a in np.meshgrid(tenths, range(chairs), indexing="ij")
    )
    shape = (len(tenth), 3, 64, 64)
    with h5py.File(path, "w") as file:
        pictures = file.create_dataset("images", shape, np.uint8)
        if images:
            pictures[:, 0, 0, 0] = tenth % 251
            pictures[:, 2, 0, 0] = chair + 1
        file["labels"] = (tenth / 10).astype(np.float32)
        file["indx_train"] = np.flatnonzero(tenth % 2 == 1)
        if types:
            file["types"] = chair
    return path


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    """30 angles around 30 degrees and 30 around 15, three chairs each."""
    tenths = np.concatenate([np.arange(136, 166), np.arange(286, 316)])
    return write(tmp_path_factory.mktemp("rc") / "RC-49_64x64.h5", tenths=tenths)


def made(recipe, tmp_path):
    return prepare(
        recipe, tmp_path / "cache", workers=1, check_counts=False
    ).dataset.splits


@pytest.mark.parametrize("variant", ["plain", "tails", "gap"])
def test_a_file_of_full_length_gives_the_paper_s_numbers(tmp_path, variant):
    path = write(tmp_path / "RC-49_64x64.h5", chairs=49, images=False)
    recipe = rc49(path, variant=variant)
    for split, size in SIZES[variant].items():
        rows = [row for u in recipe.units if u.split == split for row in u.args]
        assert len(rows) == len(set(rows)) == size
    assert recipe.counts == SIZES[variant]


def test_test_angles_are_even_and_have_at_most_25_chairs(tmp_path):
    path = write(tmp_path / "RC-49_64x64.h5", tenths=TENTHS[:20], chairs=30)
    split = made(rc49(path), tmp_path)["test"]
    tenth, times = np.unique(np.rint(split.target * 10), return_counts=True)
    assert tenth.tolist() == list(range(2, 21, 2))
    assert times.tolist() == [25] * 10


def test_pictures_targets_and_chairs_belong_together(small, tmp_path):
    splits = made(rc49(small.parent), tmp_path)
    assert {name: len(s) for name, s in splits.items()} == {
        "train": 72,
        "val": 18,
        "test": 90,
    }
    for split in splits.values():
        np.testing.assert_array_equal(
            split.image[:, 0, 0, 0], np.rint(split.target * 10) % 251
        )
        chair = [f"chair {n - 1}" for n in split.image[:, 0, 0, 2]]
        assert split.extra["cluster"].tolist() == chair
    items = np.concatenate([s.item for s in splits.values()])
    assert len(set(items.tolist())) == 180


@pytest.mark.parametrize(
    ("variant", "inside"),
    [("tails", lambda y: 15 < y < 75), ("gap", lambda y: not 30 <= y <= 60)],
)
def test_ranges_are_open_and_test_is_whole(small, tmp_path, variant, inside):
    splits = made(rc49(small, variant=variant), tmp_path)
    trained = [*splits["train"].target, *splits["val"].target]
    assert all(inside(round(float(y), 1)) for y in trained)
    test = splits["test"]
    assert len(test) == 90
    outside = [not inside(round(float(y), 1)) for y in test.target]
    assert test.extra["shifted"].tolist() == outside
    assert 0 < sum(outside) < 90


def test_only_gap_has_graded_subsets(small):
    assert list(rc49(small, variant="gap").subsets) == ["test/v1", "test/v2", "test/v3"]
    assert not rc49(small, variant="tails").subsets


def test_smaller_sizes_are_the_beginning_of_the_full_splits(small):
    full = rc49(small)
    part = rc49(small, sizes={"train": 7})
    assert part.units[0].args == full.units[0].args[:7]
    assert part.counts["train"] == 7


def test_the_seed_decides_the_splits(small):
    assert rc49(small).units == rc49(small).units
    assert rc49(small).units != rc49(small, seed=1).units


def test_chairs_are_optional(tmp_path):
    path = write(tmp_path / "RC-49_64x64.h5", tenths=TENTHS[:9], types=False)
    splits = made(rc49(path), tmp_path)
    assert set(splits["train"].extra) == set()
    assert set(splits["test"].extra) == {"shifted"}


def test_too_few_items_are_refused_by_their_number(small, tmp_path):
    with pytest.raises(DatasetError, match="17640"):
        prepare(rc49(small), tmp_path / "cache", workers=1)


def test_a_wrong_place_or_file_is_said(tmp_path):
    with pytest.raises(DatasetError, match=r"expected RC-49_64x64\.h5 in"):
        rc49(tmp_path)
    path = tmp_path / "RC-49_64x64.h5"
    path.write_bytes(b"nothing")
    with pytest.raises(DatasetError, match=r"cannot read .*RC-49_64x64\.h5"):
        rc49(tmp_path)
    with h5py.File(path, "w") as file:
        file["images"] = np.zeros((2, 3, 64, 64), np.uint8)
    with pytest.raises(DatasetError, match="images, labels, indx_train, got images"):
        rc49(tmp_path)


def test_labels_off_the_grid_and_wrong_rows_are_refused(tmp_path):
    path = write(tmp_path / "RC-49_64x64.h5", tenths=TENTHS[:4])
    with h5py.File(path, "r+") as file:
        file["labels"][5] = 0.25
    with pytest.raises(
        DatasetError, match=r"whole tenths of a degree, got 0\.25 in row"
    ):
        rc49(path)
    with h5py.File(path, "r+") as file:
        file["labels"][5] = 0.2
        file["indx_train"][0] = 12
    with pytest.raises(DatasetError, match="indx_train must hold row numbers below 12"):
        rc49(path)
