"""Predictions of nnU-Net, on files that its own export function wrote.

`tools/write_nnunet.py` wrote the folder `written/nnunet`: `labels` has five folds of
six cases with three classes, `regions` two cases with two regions, and `reoriented` a
case that nnU-Net turned to RAS. Images are turned and mirrored against their arrays.
"""

import json
import os
import shutil
from pathlib import Path

import nibabel
import numpy as np
import pytest
from typer.testing import CliRunner

import qualms
from qualms.cli import app
from qualms.predictions import PredictionsError, facts, pool, read
from qualms.shelf import find

WRITTEN = Path(__file__).parent / "written" / "nnunet"
LABELS = WRITTEN / "labels"
CASE = "case_000"


@pytest.fixture
def fold(tmp_path):
    """A copy of one fold, to be spoiled."""
    folder = tmp_path / "fold_0"
    shutil.copytree(LABELS / "fold_0", folder)
    return folder


def canonical(path):
    """What nibabel makes of a volume whose axes it turns to RAS."""
    return np.asarray(nibabel.as_closest_canonical(nibabel.load(path)).dataobj)


def share_alike(predictions, row=0):
    maps = predictions.maps[row]
    return min(np.mean(draw == maps.raters[0]) for draw in maps.draw_labels)


def test_folds_of_the_same_cases_are_draws_and_the_header_is_filled_in():
    found = read(LABELS)
    assert (found.n, found.draws, found.classes) == (6, 5, 3)
    assert found.arrays["item"].tolist() == [f"case_{row:03d}" for row in range(6)]
    header = found.header
    assert header.dataset == "Dataset900_Made"
    assert (header.method, header.pooled) == ("ensemble", 5)
    assert header.classes == ("background", "liver", "tumour")
    assert found.notes == (
        "read as predictions of nnU-Net: 6 cases of 5 folds, which are draws; classes"
        " background, liver, tumour",
        f"labels of 1 rater from {LABELS / 'labelsTs'}",
    )
    assert any(line.startswith("raters: 1") for line in facts(found))


def test_probabilities_have_the_axes_that_the_header_of_the_label_map_states():
    maps = read(LABELS).maps[0]
    folds = [LABELS / f"fold_{number}" for number in range(5)]
    label_maps = [canonical(fold / f"{CASE}.nii.gz") for fold in folds]
    np.testing.assert_array_equal(maps.draw_labels, label_maps)
    # The volume of each class, with the header of the label map, turned by nibabel.
    affine = nibabel.load(folds[0] / f"{CASE}.nii.gz").affine
    stored = [np.load(fold / f"{CASE}.npz")["probabilities"] for fold in folds]
    for number, wanted in enumerate(np.mean(stored, axis=0)):
        volume = nibabel.Nifti1Image(wanted.transpose(2, 1, 0), affine)
        turned = np.asarray(nibabel.as_closest_canonical(volume).dataobj)
        np.testing.assert_allclose(maps.mean_probs[number], turned, atol=1e-6)
    assert share_alike(read(LABELS)) > 0.9


def test_the_folds_together_are_the_pool_of_the_folds():
    each = [
        read(LABELS / f"fold_{number}", raters=LABELS / "labelsTs")
        for number in range(5)
    ]
    pooled, together = pool(each).maps[2], read(LABELS).maps[2]
    for name in ("mean_probs", "expected_entropy", "draw_labels", "raters"):
        np.testing.assert_array_equal(getattr(pooled, name), getattr(together, name))


def test_an_image_that_nnunet_turned_is_read_as_plans_json_says():
    found = read(WRITTEN / "reoriented")
    assert share_alike(found) > 0.9
    assert found.maps[0].raters.shape == (1, 6, 8, 10)


def test_regions_have_sigmoids_of_their_own_and_several_raters():
    folder = WRITTEN / "regions_raters"
    found = read(WRITTEN / "regions", raters=folder)
    assert found.header.regions == ("whole", "core")
    assert (found.header.ignore, found.classes) == (3, None)
    maps = found.maps[0]
    assert maps.raters.shape == (2, 2, 8, 6, 10)
    anna = canonical(folder / "anna" / f"{CASE}.nii.gz")
    assert (anna == 3).any()
    wanted = np.where(anna == 3, 3, np.isin(anna, (1, 2)))
    np.testing.assert_array_equal(maps.raters[0, 0], wanted)
    # nnU-Net writes 1 into the whole and then 2 into the core.
    shown = canonical(WRITTEN / "regions" / f"{CASE}.nii.gz")
    core = maps.draw_labels[0, 1] == 1
    np.testing.assert_array_equal(core, shown == 2)
    np.testing.assert_array_equal(maps.draw_labels[0, 0] & ~core, shown == 1)


def test_several_folders_are_several_raters_of_the_cases_they_have():
    second = WRITTEN / "second_reader"
    found = read(LABELS, raters=[LABELS / "labelsTs", second])
    assert [len(found.maps[row].raters) for row in (0, 5)] == [2, 1]
    alone = read(LABELS, raters=second)
    assert len(alone.maps[5].raters) == 0
    assert alone.notes[1] == f"labels of 1 rater from {second}; 1 without any: case_005"


def test_five_folds_give_a_verdict_by_one_command():
    told = CliRunner().invoke(app, ["score", str(LABELS)])
    assert told.exit_code == 0, told.output
    assert "segmentation, 6 items, 5 draws, method ensemble" in told.output
    assert "Accurate?" in told.output
    assert "read as predictions of nnU-Net" in told.output


def test_what_is_converted_has_the_same_scores(tmp_path):
    words = ["convert", "nnunet", str(LABELS), "--out", str(tmp_path / "kept")]
    told = CliRunner().invoke(app, words)
    assert told.exit_code == 0, told.output
    assert "6 items, 5 draws" in told.output
    once, again = (
        {(row.score, str(row.settings)): row.value for row in qualms.score(path).rows}
        for path in (LABELS, tmp_path / "kept")
    )
    assert once == pytest.approx(again, nan_ok=True)
    assert read(tmp_path / "kept").header.classes == ("background", "liver", "tumour")


def test_folds_with_cases_of_their_own_are_one_cross_validation(tmp_path):
    for number in range(3):
        folder = tmp_path / f"fold_{number}" / "validation"
        folder.mkdir(parents=True)
        for case in (2 * number, 2 * number + 1):
            for path in (LABELS / "fold_0").glob(f"case_{case:03d}.*"):
                shutil.copy(path, folder)
    for name in ("dataset.json", "plans.json"):  # where nnU-Net keeps them
        shutil.copy(LABELS / "fold_0" / name, tmp_path)
    found = read(tmp_path, raters=LABELS / "labelsTs")
    assert (found.n, found.draws) == (6, 1)
    assert found.arrays["group"].tolist() == [f"fold_{k // 2}" for k in range(6)]
    assert "3 folds, each with cases of its own" in found.notes[0]


def test_the_pickle_is_never_opened(fold, monkeypatch):
    (fold / f"{CASE}.pkl").write_bytes(b"cos\nsystem\n(S'exit 1'\ntR.")
    opened = []
    usual = os.open

    def watched(path, *arguments, **options):
        opened.append(Path(path).suffix)
        return usual(path, *arguments, **options)

    monkeypatch.setattr(os, "open", watched)
    facts(read(fold))
    assert ".npz" in opened
    assert ".pkl" not in opened


def spoil_label_map(fold):
    (fold / f"{CASE}.nii.gz").unlink()


def spoil_probabilities(fold):
    (fold / f"{CASE}.npz").unlink()


def spoil_all_probabilities(fold):
    for path in fold.glob("*.npz"):
        path.unlink()


def spoil_dataset(fold):
    (fold / "dataset.json").unlink()


def spoil_names(fold):
    (fold / "dataset.json").write_text('{"labels": {"background": 0, "liver": 1}}')


def spoil_json(fold):
    (fold / "dataset.json").write_text("[1]")


def spoil_array(fold):
    np.savez(fold / f"{CASE}.npz", softmax=np.ones((3, 10, 8, 6)))


def spoil_shape(fold):
    np.savez(fold / f"{CASE}.npz", probabilities=np.ones((3, 10, 8, 5)))


def spoil_order(fold):
    stored = np.load(fold / f"{CASE}.npz")["probabilities"]
    np.savez(fold / f"{CASE}.npz", probabilities=stored[:, ::-1])


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (spoil_label_map, "case_000 must have a label map beside the probabilities"),
        (spoil_probabilities, r"case_000 must have probabilities .* --save_prob"),
        (spoil_all_probabilities, "case_000, case_001, case_002 and 3 more must have"),
        (spoil_dataset, "needs dataset.json, which names the labels"),
        (spoil_names, r"probabilities of 2 heads \(background, liver\), got shape"),
        (spoil_json, "dataset.json must be a JSON object, got"),
        (spoil_array, "must hold an array 'probabilities', found 'softmax'"),
        (spoil_shape, r"must have the shape of case_000.nii.gz, \(8, 6, 10\) after"),
        (spoil_order, "case_000.nii.gz must be the label map of the probabilities"),
    ],
)
def test_what_is_missing_or_wrong_is_refused_by_name(fold, spoil, said):
    spoil(fold)
    with pytest.raises(PredictionsError, match=said):
        read(fold)


def test_folds_that_share_some_cases_are_refused(tmp_path):
    for number, gone in ((0, 1), (1, 2)):
        folder = tmp_path / f"fold_{number}"
        shutil.copytree(LABELS / "fold_0", folder)
        for path in folder.glob(f"case_{gone:03d}.*"):
            path.unlink()
    with pytest.raises(PredictionsError, match="case_000 is in fold_0 and fold_1"):
        read(tmp_path)


def test_raters_that_do_not_fit_are_refused(fold, tmp_path):
    with pytest.raises(PredictionsError, match=r"no folder of raters .*nowhere; check"):
        read(fold, raters=tmp_path / "nowhere")
    (tmp_path / "empty").mkdir()
    with pytest.raises(PredictionsError, match="empty holds no label maps"):
        read(fold, raters=tmp_path / "empty")
    labels = tmp_path / "labels"
    labels.mkdir()
    shutil.copy(LABELS / "labelsTs" / f"{CASE}.nii.gz", labels / "other.nii.gz")
    with pytest.raises(PredictionsError, match="hold no label map of any case"):
        read(fold, raters=labels)
    stored = nibabel.load(labels / "other.nii.gz")
    voxels = np.asarray(stored.dataobj)
    path = labels / f"{CASE}.nii.gz"
    nibabel.save(nibabel.Nifti1Image(voxels, np.eye(4)), path)
    with pytest.raises(PredictionsError, match="must have the shape of the prediction"):
        read(fold, raters=labels)
    moved = stored.affine.copy()
    moved[0, 3] += 5
    nibabel.save(nibabel.Nifti1Image(voxels, moved), path)
    with pytest.raises(PredictionsError, match=r"must lie where case_000.nii"):
        read(fold, raters=labels)
    nibabel.save(nibabel.Nifti1Image(voxels + 7, stored.affine), path)
    with pytest.raises(PredictionsError, match=r"labels that dataset.json names"):
        read(fold, raters=labels)


def test_a_rater_may_have_stored_the_axes_in_another_order(fold, tmp_path):
    path = LABELS / "labelsTs" / f"{CASE}.nii.gz"
    (tmp_path / "labels").mkdir()
    nibabel.save(
        nibabel.as_closest_canonical(nibabel.load(path)),
        tmp_path / "labels" / path.name,
    )
    usual, turned = (
        read(fold, raters=folder).maps[0].raters
        for folder in (LABELS / "labelsTs", tmp_path / "labels")
    )
    np.testing.assert_array_equal(usual, turned)


def test_pictures_of_two_sides_have_png_label_maps(tmp_path):
    from PIL import Image

    rng = np.random.default_rng(0)
    probs = rng.dirichlet(np.ones(2), (1, 9, 7)).transpose(3, 0, 1, 2)
    np.savez_compressed(tmp_path / "a.npz", probabilities=probs.astype(np.float32))
    Image.fromarray(probs.argmax(0)[0].astype(np.uint8)).save(tmp_path / "a.png")
    about = {"labels": {"background": 0, "vessel": 1}, "file_ending": ".png"}
    (tmp_path / "dataset.json").write_text(json.dumps(about))
    maps = read(tmp_path).maps[0]
    np.testing.assert_allclose(maps.mean_probs, probs[:, 0], atol=1e-6)


def test_files_of_our_own_take_no_raters(tmp_path):
    np.savez(tmp_path / "mine.npz", target=[0, 1], prob=[0.2, 0.9])
    with pytest.raises(PredictionsError, match="leave out --raters"):
        read(tmp_path / "mine.npz", raters=LABELS / "labelsTs")


def test_the_reader_is_named_for_convert():
    reader = find("readers", "nnunet")()
    assert reader.recognise(LABELS)
    assert reader.recognise(LABELS / "fold_0")
    assert not reader.recognise(LABELS / "labelsTs")
    with pytest.raises(PredictionsError, match="holds no predictions of nnU-Net"):
        read(LABELS / "labelsTs", reader=reader)
    told = CliRunner().invoke(app, ["convert", "nnUNet", str(LABELS), "--out", "x"])
    assert "no 'nnUNet' in readers. Did you mean 'nnunet'?" in str(told.exception)
