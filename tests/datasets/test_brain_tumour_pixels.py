import nibabel
import numpy as np
import pytest

from qualms.datasets import DatasetError, prepare
from qualms.datasets.brain_tumour_pixels import brain_tumour_pixels, eight_bit

SHAPE = (240, 240, 4)


def save(array, path):
    nibabel.Nifti1Image(array, np.eye(4)).to_filename(path)


def write(home, number, *, seed=0):
    """Four slices: none, one pixel lost by shrinking, a block, one pixel kept."""
    rng = np.random.default_rng(seed)
    volume = rng.integers(0, 900, (*SHAPE, 4)).astype(np.float32)
    labels = np.zeros(SHAPE, np.uint8)
    labels[1, 1, 1] = 3
    labels[0:30, 0:15, 2] = 1
    labels[15, 30, 3] = 2
    save(volume, home / "imagesTr" / f"BRATS_{number:03d}.nii.gz")
    save(labels, home / "labelsTr" / f"BRATS_{number:03d}.nii.gz")
    return volume


@pytest.fixture
def home(tmp_path):
    folder = tmp_path / "raw" / "Task01_BrainTumour"
    for part in ("imagesTr", "labelsTr"):
        (folder / part).mkdir(parents=True)
    return folder


def test_volumes_are_split_by_number(home):
    for number in (1, 294, 295, 389, 390, 484):
        for part in ("imagesTr", "labelsTr"):
            (home / part / f"BRATS_{number:03d}.nii.gz").touch()
    (home / "imagesTr" / "._BRATS_001.nii.gz").touch()
    recipe = brain_tumour_pixels(home.parent)
    assert [(u.key[6:9], u.split) for u in recipe.units] == [
        ("001", "train"),
        ("294", "train"),
        ("295", "val"),
        ("389", "val"),
        ("390", "test"),
        ("484", "test"),
    ]
    assert recipe.counts == {"train": 20_614, "val": 6_116, "test": 6_252}


def test_slices_without_tumour_after_shrinking_are_dropped(home, tmp_path):
    volume = write(home, 7)
    prepared = prepare(
        brain_tumour_pixels(home), tmp_path / "c", workers=1, check_counts=False
    )
    split = prepared.dataset.splits["train"]
    assert split.item.tolist() == ["BRATS_007/002", "BRATS_007/003"]
    # 240 / 64 = 3.75: rows 0, 3, .., 26 and columns 0, 3, 7, 11 fall into the block;
    # pixel (15, 30) is read by (4, 8)
    assert split.target.tolist() == [8 * 4, 1]
    assert split.extra["cluster"].tolist() == ["BRATS_007"] * 2
    assert split.image.shape == (2, 64, 64, 3)
    assert split.image.dtype == np.uint8
    middle = volume[:, :, 2, :3].astype(np.float64)
    # OpenCV reads pixels 1 and 2 of the first 3.75 with weights 0.625 and 0.375
    weight = np.array([0, 0.625, 0.375, 0])
    exact = np.einsum("i,j,ijc->c", weight, weight, eight_bit(middle)[:4, :4])
    np.testing.assert_allclose(split.image[0, 0, 0], exact, atol=1)


def test_a_volume_without_tumour_has_no_items(home):
    write(home, 7)
    save(np.zeros(SHAPE, np.uint8), home / "labelsTr" / "BRATS_007.nii.gz")
    recipe = brain_tumour_pixels(home)
    examples = recipe.load(recipe.units[0])
    assert examples.image.shape == (0, 64, 64, 3)
    assert examples.target.shape == (0,)


@pytest.mark.parametrize(
    ("image", "expected"),
    [
        ([-1.0, 0.0, 3.0], [0, 64, 255]),
        ([0.0, 510.0, 255.0], [0, 255, 127]),
        ([0.0, 0.5, 1.0], [0, 127, 255]),
        ([0.25, 0.5], [64, 127]),
        ([0.0, 0.0], [0, 0]),
        ([7.0, 7.0], [7, 7]),
    ],
)
def test_floats_become_bytes_as_old_imageio_did(image, expected):
    assert eight_bit(np.array(image)).tolist() == expected


def test_unreadable_volumes_are_named(home, tmp_path):
    for number in (1, 2, 3, 4, 5, 6):
        write(home, number)
    path = home / "imagesTr" / "BRATS_001.nii.gz"
    path.write_bytes(path.read_bytes()[:5000])
    (home / "imagesTr" / "BRATS_002.nii.gz").unlink()
    (home / "labelsTr" / "BRATS_003.nii.gz").unlink()
    save(np.zeros((240, 240, 5), np.uint8), home / "labelsTr" / "BRATS_004.nii.gz")
    nan = np.full((*SHAPE, 4), np.nan, np.float32)
    save(nan, home / "imagesTr" / "BRATS_005.nii.gz")
    prepared = prepare(
        brain_tumour_pixels(home), tmp_path / "c", workers=1, check_counts=False
    )
    reason = {one.key[6:9]: one.reason for one in prepared.skipped}
    assert set(reason) == {"001", "002", "003", "004", "005"}
    assert "cannot read" in reason["001"]
    assert "BRATS_001.nii.gz" in reason["001"]
    assert "there is no file" in reason["002"]
    assert "imagesTr" in reason["002"]
    assert "labelsTr" in reason["003"]
    assert "same size as its labels" in reason["004"]
    assert "BRATS_005" in reason["005"]
    assert "not finite" in reason["005"]
    assert prepared.counts == {"train": 2}


def test_a_wrong_place_is_said(tmp_path, home):
    with pytest.raises(DatasetError, match="expected imagesTr and labelsTr in"):
        brain_tumour_pixels(tmp_path)
    with pytest.raises(
        DatasetError, match=r"files like BRATS_001\.nii\.gz in .* empty"
    ):
        brain_tumour_pixels(home)
