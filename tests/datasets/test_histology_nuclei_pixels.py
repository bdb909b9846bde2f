import h5py
import numpy as np
import pytest
from PIL import Image
from scipy.io import savemat

from qualms.datasets import DatasetError, prepare
from qualms.datasets.histology_nuclei_pixels import histology_nuclei_pixels

TILES = {
    "CoNSeP/Train": ("CoNSeP/Train/Images/train_1.png", "CoNSeP/Train/Labels"),
    "CoNSeP/Test": ("CoNSeP/Test/Images/test_1.png", "CoNSeP/Test/Labels"),
    "kumar/train": ("kumar/train/Images/TCGA-18.tif", "kumar/train/Labels"),
    "kumar/test_same": ("kumar/test_same/Images/TCGA-21.tif", "kumar/test_same/Labels"),
    "kumar/test_diff": ("kumar/test_diff/Images/TCGA-AY.tif", "kumar/test_diff/Labels"),
    "tnbc": ("tnbc/Images/5784/01_1.png", "tnbc/Labels"),
}


def instances():
    """150 x 130: nuclei in the patches 0-0 (5 x 7 pixels) and 1-1 (all of it)."""
    results = np.zeros((150, 130))
    results[2:7, 3:10] = 4
    results[64:128, 64:128] = 9
    results[128:] = 2
    return results


def save_v73(path, **variables):
    with h5py.File(path, "w", userblock_size=512) as file:
        for name, value in variables.items():
            file[name] = value.T
    with path.open("r+b") as file:
        file.write(b"MATLAB 7.3 MAT-file, written by a test")


@pytest.fixture
def root(tmp_path):
    home = tmp_path / "raw"
    for number, (picture, labels) in enumerate(TILES.values()):
        image = np.full((150, 130, 4), (number, 50, 100, 255), np.uint8)
        image[64:, 64:, 1] = 60
        path = home / picture
        path.parent.mkdir(parents=True)
        mode = "RGBA" if path.suffix == ".png" else "RGB"
        Image.fromarray(image).convert(mode).save(path)
        (home / labels).mkdir(exist_ok=True)
        mat = home / labels / f"{path.stem}.mat"
        if number % 2:
            save_v73(mat, inst_map=instances())
        else:
            savemat(mat, {"inst_map": instances(), "type_map": np.zeros(3)})
    return home


def made(root, tmp_path):
    recipe = histology_nuclei_pixels(root)
    return prepare(recipe, tmp_path / "cache", workers=1, check_counts=False)


def test_tnbc_is_test_and_the_patches_of_the_others_are_divided(root, tmp_path):
    result = made(root, tmp_path)
    assert result.skipped == ()
    assert result.counts == {"train": 8, "val": 2, "test": 2}
    test = result.dataset.splits["test"]
    assert test.item.tolist() == ["tnbc/01_1/00-00", "tnbc/01_1/01-01"]
    assert test.extra["group"].tolist() == ["TNBC"] * 2
    train, val = (result.dataset.splits[name] for name in ("train", "val"))
    groups = [*train.extra["group"], *val.extra["group"]]
    assert sorted(groups) == ["CoNSeP"] * 4 + ["Kumar"] * 6
    assert len({*train.item.tolist(), *val.item.tolist()}) == 10


def test_nuclei_are_counted_and_both_kinds_of_matlab_file_agree(root, tmp_path):
    for split in made(root, tmp_path).dataset.splits.values():
        for row, item in enumerate(split.item):
            first = item.endswith("00-00")
            assert split.target[row] == (35 if first else 4096)
            tile = item.rsplit("/", 1)[0]
            assert split.extra["cluster"][row] == tile
            number = list(TILES).index(tile.rsplit("/", 1)[0])
            pixel = [number, 50 if first else 60, 100]
            assert (split.image[row] == pixel).all()


def test_the_paper_s_numbers_are_asserted(root, tmp_path):
    recipe = histology_nuclei_pixels(root)
    assert recipe.counts == {"train": 10_808, "val": 2_702, "test": 2_267}
    assert int(recipe.divide["trainval"].first * 13_510) == 10_808
    with pytest.raises(DatasetError, match="10808"):
        prepare(recipe, tmp_path / "cache", workers=1)


def test_unreadable_tiles_are_named(root, tmp_path):
    (root / "CoNSeP/Train/Images/train_2.png").write_bytes(b"x")
    savemat(root / "CoNSeP/Train/Labels/train_2.mat", {"inst_map": instances()})
    savemat(root / "CoNSeP/Test/Labels/test_2.mat", {"inst_map": instances()})
    (root / "kumar/train/Labels/TCGA-18.mat").write_bytes(b"not a MATLAB file")
    savemat(root / "kumar/test_same/Labels/TCGA-21.mat", {"other": np.ones(3)})
    save_v73(root / "kumar/test_diff/Labels/TCGA-AY.mat", other=np.ones(3))
    good = (root / "tnbc/Images/5784/01_1.png").read_bytes()
    (root / "tnbc/Images/5784/01_2.png").write_bytes(good)
    reason = {one.key: one.reason for one in made(root, tmp_path).skipped}
    expected = {
        "CoNSeP/Train/train_2": "cannot read",
        "CoNSeP/Test/test_2": "there is no file",
        "kumar/train/TCGA-18": "cannot read",
        "kumar/test_same/TCGA-21": "TCGA-21.mat: it must have a variable inst_map",
        "kumar/test_diff/TCGA-AY": "TCGA-AY.mat: it must have a variable inst_map",
        "tnbc/01_2": "01_2.mat",
    }
    assert reason.keys() == expected.keys()
    for key, sentence in expected.items():
        assert sentence in reason[key]


def test_labels_of_another_size_are_refused(root):
    savemat(root / "tnbc/Labels/01_1.mat", {"inst_map": instances()[:140]})
    recipe = histology_nuclei_pixels(root)
    with pytest.raises(ValueError, match="of tnbc/01_1 must have the same size"):
        recipe.load(recipe.units[-1])


def test_a_wrong_place_is_said(root, tmp_path):
    with pytest.raises(DatasetError, match="expected CoNSeP and kumar and tnbc in"):
        histology_nuclei_pixels(tmp_path / "other")
    for path in (root / "kumar/train/Labels").iterdir():
        path.unlink()
    with pytest.raises(DatasetError, match=r"files like \*\.mat in .* is empty"):
        histology_nuclei_pixels(root)
    (root / "kumar/train/Labels").rmdir()
    with pytest.raises(DatasetError, match=r"expected a folder .*Labels; .* Images"):
        histology_nuclei_pixels(root)
