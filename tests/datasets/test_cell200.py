import pickle

import h5py
import numpy as np
import pytest
from PIL import Image

from qualms.datasets import DatasetError, prepare
from qualms.datasets.cell200 import cell200

SMALL = {"train": 20, "val": 6, "test": 10}


def grey(i):
    return np.random.default_rng(i).integers(0, 256, (64, 64), dtype=np.uint8)


def counts():
    """Half of 160 pictures in 51..150, the rest outside."""
    return np.tile([1, 50, 51, 60, 149, 150, 151, 200], 20)


@pytest.fixture
def folder(tmp_path):
    home = tmp_path / "raw" / "Cell200"
    home.mkdir(parents=True)
    for i, count in enumerate(counts()):
        Image.fromarray(grey(i)).save(home / f"{i}_{count}.0.png")
    (home / ".DS_Store").touch()
    (home / "readme.txt").touch()
    return tmp_path / "raw"


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "h5" / "Cell200_64x64.h5"
    path.parent.mkdir()
    with h5py.File(path, "w") as out:
        out["IMGs_grey"] = np.stack([grey(i) for i in range(160)])[:, None]
        out["CellCounts"] = counts().astype(float)
    return path


def prepared(recipe, tmp_path, **options):
    return prepare(recipe, tmp_path / "cache", workers=1, **options).dataset.splits


@pytest.mark.parametrize("variant", ["plain", "tails", "gap"])
def test_a_file_of_full_length_gives_the_paper_s_numbers(tmp_path, variant):
    path = tmp_path / "Cell200_64x64.h5"
    with h5py.File(path, "w") as out:
        out.create_dataset("IMGs_grey", (200_000, 1, 64, 64), np.uint8)
        out["CellCounts"] = np.repeat(np.arange(1, 201), 1_000)
    recipe = cell200(path, variant=variant)
    assert recipe.counts == {"train": 10_000, "val": 2_000, "test": 10_000}
    rows = [row for unit in recipe.units for row in unit.args]
    assert len(rows) == len(set(rows)) == 22_000


def test_pictures_and_targets_of_the_folder_belong_together(folder, tmp_path):
    splits = prepared(cell200(folder, sizes=SMALL), tmp_path)
    assert {name: len(split) for name, split in splits.items()} == SMALL
    values = set()
    for split in splits.values():
        for image, target, item in zip(
            split.image, split.target, split.item, strict=True
        ):
            i, count = str(item).removesuffix(".0").split("_")
            np.testing.assert_array_equal(image, grey(int(i))[..., None])
            assert target == float(count) == counts()[int(i)]
            values.add(item)
    assert len(values) == 36


def test_pictures_and_targets_of_the_file_belong_together(file, tmp_path):
    splits = prepared(cell200(file.parent, sizes=SMALL), tmp_path)
    for split in splits.values():
        for image, target, item in zip(
            split.image, split.target, split.item, strict=True
        ):
            np.testing.assert_array_equal(image, grey(int(item))[..., None])
            assert target == counts()[int(item)]
    assert splits["train"].target.dtype == np.float32


@pytest.mark.parametrize(
    ("variant", "known"), [("tails", {51, 60, 149, 150}), ("gap", {1, 150, 151, 200})]
)
@pytest.mark.parametrize("source", ["file", "folder"])
def test_a_shifted_variant_trains_inside_and_tests_on_both(
    variant, known, source, request, tmp_path
):
    root = request.getfixturevalue(source)
    recipe = cell200(root, variant=variant, sizes=SMALL)
    splits = prepared(recipe, tmp_path)
    assert set(splits["train"].target) | set(splits["val"].target) <= known
    test = splits["test"]
    outside = [target not in known for target in test.target]
    assert test.extra["shifted"].tolist() == outside
    assert sum(outside) == 5
    assert recipe.shifts["test"] == "count range"


def test_the_gap_of_the_paper_s_text_leaves_150_out(file, tmp_path):
    recipe = cell200(file, variant="gap", sizes=SMALL, gap="text")
    assert recipe.options["gap"] == "text"
    splits = prepared(recipe, tmp_path)
    targets = [*splits["train"].target, *splits["val"].target]
    assert set(targets) <= {1, 151, 200}
    test = splits["test"]
    outside = [target not in {1, 151, 200} for target in test.target]
    assert test.extra["shifted"].tolist() == outside


def test_only_tails_has_graded_subsets(file):
    graded = ["test/v1", "test/v2", "test/v3"]
    assert list(cell200(file, variant="tails", sizes=SMALL).subsets) == graded
    assert not cell200(file, variant="gap", sizes=SMALL).subsets
    assert not cell200(file, sizes=SMALL).shifts


def test_the_seed_decides_the_splits_and_nothing_else_does(folder):
    def keys(seed):
        return [unit.key for unit in cell200(folder, sizes=SMALL, seed=seed).units]

    assert keys(0) == keys(0)
    assert keys(0) != keys(1)


def test_the_file_and_the_folder_are_different_data(file, folder):
    assert cell200(file, sizes=SMALL).options["source"] == "hdf5"
    assert cell200(folder, sizes=SMALL).options["source"] == "png"
    assert cell200(folder / "Cell200", sizes=SMALL).options["source"] == "png"


@pytest.mark.parametrize("source", ["file", "folder"])
def test_other_processes_can_load_the_units(source, request):
    recipe = cell200(request.getfixturevalue(source), variant="tails", sizes=SMALL)
    load = pickle.loads(pickle.dumps(recipe.load))
    unit = recipe.units[-1]
    assert load(unit).item == recipe.load(unit).item


def test_too_few_pictures_are_refused(folder, file):
    with pytest.raises(DatasetError, match=r"need 22000 pictures in .* found 160"):
        cell200(folder)
    sizes = {"train": 1, "val": 1, "test": 9}
    with h5py.File(file, "r+") as out:
        out["CellCounts"][:] = 100
    with pytest.raises(DatasetError, match=r"need 4 pictures out of .* found 0"):
        cell200(file, variant="tails", sizes=sizes)


def test_unreadable_pictures_are_named_and_counted(folder, tmp_path):
    recipe = cell200(folder, sizes=SMALL)
    broken, missing, large = (unit.key for unit in recipe.units[:3])
    (folder / "Cell200" / broken).write_bytes(b"\x89PNG nothing")
    (folder / "Cell200" / missing).unlink()
    Image.fromarray(np.zeros((65, 64), np.uint8)).save(folder / "Cell200" / large)
    prepared_set = prepare(recipe, tmp_path / "cache", workers=1, check_counts=False)
    reasons = {one.key: one.reason for one in prepared_set.skipped}
    assert reasons.keys() == {broken, missing, large}
    assert "cannot read" in reasons[broken]
    assert "there is no file" in reasons[missing]
    assert "must be 64 x 64 pixels, got (65, 64)" in reasons[large]
    assert prepared_set.counts["train"] == 17
    with pytest.raises(DatasetError, match="17"):
        prepare(recipe, tmp_path / "again", workers=1)


def test_a_wrong_place_is_said(tmp_path):
    with pytest.raises(DatasetError, match=r"expected Cell200_64x64\.h5 or Cell200 in"):
        cell200(tmp_path / "nowhere")
    with pytest.raises(DatasetError, match=r"there is no file .*other\.h5"):
        cell200(tmp_path / "other.h5")
    with pytest.raises(DatasetError, match=r"files like 123_45\.0\.png in .* is empty"):
        cell200(tmp_path)


def test_a_wrong_file_is_said(tmp_path, file):
    with h5py.File(file, "r+") as out:
        out["counts"] = out["CellCounts"][:]
        del out["CellCounts"]
    with pytest.raises(DatasetError, match="arrays IMGs_grey, CellCounts, got"):
        cell200(file)
    file.write_bytes(b"not HDF5")
    with pytest.raises(DatasetError, match=r"cannot read .*Cell200_64x64\.h5"):
        cell200(file)


def test_pictures_of_another_shape_are_refused(file):
    with h5py.File(file, "r+") as out:
        del out["IMGs_grey"]
        out["IMGs_grey"] = np.zeros((160, 64, 64, 1), np.uint8)
    with pytest.raises(
        DatasetError, match=r"IMGs_grey must be .* got .160, 64, 64, 1."
    ):
        cell200(file)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"variant": "tail"}, "variant must be one of plain, tails, gap, got 'tail'"),
        ({"seed": -1}, "seed must be at least 0"),
        ({"sizes": {"training": 1}}, "sizes must name train, val, test"),
        ({"gap": "paper"}, "gap must be one of released, text, got 'paper'"),
        ({"source": "npz"}, "source must be one of hdf5, png, got 'npz'"),
    ],
)
def test_wrong_options_are_refused(folder, options, sentence):
    with pytest.raises(ValueError, match=sentence):
        cell200(folder, **options)
