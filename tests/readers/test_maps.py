"""Maps of probabilities: those that MONAI's SaveImage wrote, and folders of masks.

`tools/write_monai.py` wrote `written/monai`: three cases of two networks, as classes
and as P(foreground) alone, a case with two regions, and a picture.
"""

import shutil
from pathlib import Path

import nibabel
import numpy as np
import pytest
from PIL import Image
from typer.testing import CliRunner

from qualms.cli import app
from qualms.predictions import PredictionsError, facts, read
from qualms.readers.monai import monai

WRITTEN = Path(__file__).parent / "written" / "monai"
CLASSES = WRITTEN / "classes"


def share_alike(predictions, row=0):
    maps = predictions.maps[row]
    return min(np.mean(draw == maps.raters[0]) for draw in maps.draw_labels)


def test_networks_are_draws_and_labels_lie_beside_them():
    found = read(CLASSES)
    assert (found.n, found.draws, found.classes) == (3, 2, 2)
    assert found.notes == (
        "read as maps of MONAI: 3 cases, 2 draws (model_0, model_1)",
        f"labels of 1 rater from {CLASSES / 'labels'}",
    )
    assert share_alike(found) > 0.9
    path = CLASSES / "model_0" / "scan_0" / "scan_0_trans.nii.gz"
    volume = nibabel.as_closest_canonical(nibabel.load(path))
    alone = read(CLASSES / "model_0", raters=CLASSES / "labels").maps[0]
    wanted = np.moveaxis(np.asarray(volume.dataobj), -1, 0)
    np.testing.assert_allclose(alone.mean_probs, wanted, atol=1e-6)
    assert facts(found)


def test_one_channel_is_the_foreground_of_two_classes():
    both = read(CLASSES).maps[1]
    alone = read(WRITTEN / "sigmoid", raters=CLASSES / "labels").maps[1]
    np.testing.assert_allclose(alone.mean_probs, both.mean_probs, atol=1e-6)
    np.testing.assert_array_equal(alone.raters, both.raters)


def test_a_volume_of_one_slice_is_a_picture():
    assert read(WRITTEN / "flat").maps[0].mean_probs.shape == (2, 8, 6)


def test_sigmoids_of_regions_are_named_or_refused(tmp_path):
    with pytest.raises(PredictionsError, match="sum to 1 over its 2 channels, got"):
        read(WRITTEN / "regions")
    words = ["convert", "monai", str(WRITTEN / "regions"), "--out", tmp_path / "kept"]
    option = 'regions=["whole","core"]'
    told = CliRunner().invoke(app, [*map(str, words), "-o", option])
    assert told.exit_code == 0, told.output
    assert read(tmp_path / "kept").header.regions == ("whole", "core")
    with pytest.raises(PredictionsError, match=r"each of the 3 regions \(a, b, c\)"):
        read(WRITTEN / "regions", reader=monai(regions=("a", "b", "c")))


def test_several_files_of_a_case_are_told_apart_by_their_postfix(tmp_path):
    folder = tmp_path / "scan_0"
    shutil.copytree(CLASSES / "model_0" / "scan_0", folder)
    shutil.copy(CLASSES / "labels" / "scan_0.nii.gz", folder / "scan_0_seg.nii.gz")
    with pytest.raises(PredictionsError, match="are of one case; say which holds"):
        read(tmp_path)
    assert read(tmp_path, reader=monai(postfix="trans")).n == 1
    with pytest.raises(PredictionsError, match=r"whole numbers .uint8., a label map"):
        read(tmp_path, reader=monai(postfix="seg"))


def test_pickles_are_never_opened(tmp_path):
    (tmp_path / "scan_0_prob.pt").write_bytes(b"cos\nsystem\n(S'exit 1'\ntR.")
    with pytest.raises(PredictionsError, match=r"torch.save, and such files are never"):
        read(tmp_path)


def test_draws_of_other_cases_are_refused(tmp_path):
    shutil.copytree(WRITTEN / "sigmoid", tmp_path / "all")
    (tmp_path / "all" / "model_1" / "scan_2_prob.nii.gz").unlink()
    with pytest.raises(PredictionsError, match="and scan_2 is in only one of"):
        read(tmp_path / "all")


@pytest.fixture
def pictures(tmp_path):
    """A folder of masks and maps with two draws, for three pictures."""
    rng = np.random.default_rng(0)
    for name in ("eye_1", "eye_2", "eye_10"):
        disc = np.hypot(*(np.mgrid[:12, :9] - 5.0)) < 4
        for draw in range(2):
            folder = tmp_path / "probabilities" / f"draw_{draw}"
            folder.mkdir(parents=True, exist_ok=True)
            prob = np.clip(disc * 0.6 + rng.uniform(0, 0.4, disc.shape), 0, 1)
            Image.fromarray(np.rint(255 * prob).astype(np.uint8)).save(
                folder / f"{name}.png"
            )
        for rater in ("anna", "ben"):
            folder = tmp_path / "masks" / rater
            folder.mkdir(parents=True, exist_ok=True)
            mask = np.roll(disc, rater == "ben", axis=0)
            Image.fromarray(mask.astype(np.uint8)).save(folder / f"{name}.png")
    return tmp_path


def test_folders_of_pictures_have_draws_and_raters(pictures):
    found = read(pictures)
    assert found.arrays["item"].tolist() == ["eye_1", "eye_2", "eye_10"]
    maps = found.maps[0]
    assert (found.draws, maps.raters.shape) == (2, (2, 12, 9))
    stored = [
        np.asarray(Image.open(path)) / 255
        for path in sorted(pictures.glob("probabilities/*/eye_1.png"))
    ]
    np.testing.assert_allclose(maps.mean_probs[1], np.mean(stored, 0), atol=1e-6)
    told = CliRunner().invoke(app, ["score", str(pictures)])
    assert told.exit_code == 0, told.output
    assert "3 items, 2 draws" in told.output


def test_masks_whose_labels_have_names_may_have_any_numbers(pictures):
    for path in pictures.glob("masks/*/*.png"):
        Image.fromarray(255 * np.asarray(Image.open(path))).save(path)
    with pytest.raises(
        PredictionsError, match=r"labels that dataset.json names, \[0, 1"
    ):
        facts(read(pictures))
    stated = '{"labels": {"background": 0, "disc": 255}}'
    (pictures / "dataset.json").write_text(stated)
    found = read(pictures)
    assert found.header.classes == ("background", "disc")
    assert set(np.unique(found.maps[0].raters)) == {0, 1}


@pytest.mark.parametrize(
    ("stated", "said"),
    [
        ("{}", "dataset.json must name the labels, as in"),
        ('{"labels": {"a": 0, "b": -1}}', "label 'b' must be a whole number from 0"),
        ('{"labels": {"a": 0, "b": 1, "c": 2}}', r"each of the 3 classes \(a, b, c\)"),
        (
            '{"labels": {"a": [1, 2], "b": [2]}, "regions_class_order": 3}',
            "'regions_class_order' has 1 entries; give one for each region",
        ),
        (
            '{"labels": {"a": [1, 2], "b": [2]}, "regions_class_order": [1, "2"]}',
            "label 'regions_class_order' must be a whole number from 0 to 255, or a",
        ),
        ('{"a":' * 90000, "dataset.json must be a JSON object, got"),
        ("{", "dataset.json must be a JSON object, got '{'"),
    ],
)
def test_a_dataset_json_that_does_not_fit_is_refused(pictures, stated, said):
    (pictures / "dataset.json").write_text(stated)
    with pytest.raises(PredictionsError, match=said):
        read(pictures)


def test_arrays_hold_several_classes_and_logits_are_refused(tmp_path):
    folder = tmp_path / "probs"
    folder.mkdir()
    probs = np.random.default_rng(0).dirichlet(np.ones(3), (6, 5)).transpose(2, 0, 1)
    np.savez(folder / "a.npz", probs)
    found = read(tmp_path)
    np.testing.assert_allclose(found.maps[0].mean_probs, probs, atol=1e-6)
    np.save(folder / "a.npy", probs)
    with pytest.raises(PredictionsError, match=r"one file for each case, got a.npy"):
        read(tmp_path)
    (folder / "a.npz").unlink()
    np.save(folder / "a.npy", np.log(probs))
    with pytest.raises(PredictionsError, match="must hold probabilities from 0 to 1"):
        read(tmp_path)
    np.save(folder / "a.npy", probs[0])
    with pytest.raises(
        PredictionsError, match=r"must be probabilities \(classes, \*sp"
    ):
        read(tmp_path)


def test_colours_and_empty_folders_are_refused(tmp_path):
    folder = tmp_path / "probs"
    folder.mkdir()
    with pytest.raises(PredictionsError, match="probs holds no maps of probabilities"):
        read(tmp_path)
    Image.fromarray(np.zeros((4, 5, 3), np.uint8)).save(folder / "a.png")
    with pytest.raises(PredictionsError, match=r"grey picture of P.foreground., got"):
        read(tmp_path)


def test_a_table_says_more_of_the_cases(pictures):
    table = pictures / "items.csv"
    rows = "item,patient,shifted,cluster\neye_10,x,true,p\neye_1,x,false,p\n"
    table.write_text(rows)
    with pytest.raises(PredictionsError, match="and has none for eye_2; add it"):
        read(pictures)
    table.write_text(rows + "eye_2,y,true,q\nother,y,true,q\n")
    found = read(pictures)
    assert found.arrays["shifted"].tolist() == [False, True, True]
    assert found.arrays["cluster"].tolist() == ["p", "q", "p"]
    assert "patient" not in found.arrays
    table.write_text(rows + "eye_2,y,true,q\neye_10,y,false,q\n")
    with pytest.raises(PredictionsError, match="rows 0 and 3 are both 'eye_10'; remov"):
        read(pictures)
    table.write_text("case\neye_1\n")
    with pytest.raises(PredictionsError, match="must have a column 'item' with the"):
        read(pictures)
