"""Write predictions of made-up volumes with nnU-Net's own export function.

Run it in an environment with nnunetv2: `python write_nnunet.py DIR`. Nothing is
trained: logits are made up, and nnU-Net turns them into probabilities, label maps and
their files exactly as `nnUNetv2_predict --save_probabilities` does.
"""

import json
import sys
from pathlib import Path

import nibabel
import numpy as np
import SimpleITK
import torch
from nibabel.orientations import io_orientation, ornt_transform
from nnunetv2.inference.export_prediction import export_prediction_from_logits
from nnunetv2.utilities.plans_handling.plans_handler import PlansManager

SHAPE = (10, 8, 6)  # z, y, x
FOLDS, CASES = 5, 6
LABELS = {"background": 0, "liver": 1, "tumour": 2}
REGIONS = {"background": 0, "whole": [1, 2], "core": 2, "ignore": 3}
AFFINE = np.array([[0, 1, 0, -3.0], [-1, 0, 0, 2.0], [0, 0, -1, 7.0], [0, 0, 0, 1.0]])
DIRECTION = (0.0, -1.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, -1.0)


def plans(reader):
    return {
        "dataset_name": "Dataset900_Made",
        "plans_name": "nnUNetPlans",
        "image_reader_writer": reader,
        "transpose_forward": [0, 1, 2],
        "transpose_backward": [0, 1, 2],
        "experiment_planner_used": "ExperimentPlanner",
        "label_manager": "LabelManager",
        "configurations": {
            "3d_fullres": {
                "spacing": [1.0, 1.0, 1.0],
                "patch_size": list(SHAPE),
                "architecture": {"network_class_name": "none", "arch_kwargs": {}},
                "resampling_fn_probabilities": "resample_data_or_seg_to_shape",
                "resampling_fn_probabilities_kwargs": {
                    "is_seg": False,
                    "order": 1,
                    "order_z": 0,
                    "force_separate_z": None,
                },
            }
        },
    }


def dataset(labels):
    stated = {
        "channel_names": {"0": "CT"},
        "labels": labels,
        "numTraining": CASES,
        "file_ending": ".nii.gz",
    }
    if labels is REGIONS:
        stated["regions_class_order"] = [1, 2]
    return stated


def image(array):
    """An image whose axes are turned and mirrored against those of the array."""
    made = SimpleITK.GetImageFromArray(array)
    made.SetSpacing((1.0, 1.0, 1.0))
    made.SetOrigin((3.0, -2.0, 7.0))
    made.SetDirection(DIRECTION)
    return made


def truth(case):
    """Labels (z, y, x): a ball, and a smaller one on one side of it."""
    rng = np.random.default_rng([1, case])
    z, y, x = np.indices(SHAPE)
    middle = np.array([4.5, 3.5, 2.0]) + rng.uniform(-0.7, 0.7, 3)
    liver = np.sqrt((z - middle[0]) ** 2 + (y - middle[1]) ** 2 + (x - middle[2]) ** 2)
    core = np.sqrt(
        (z - middle[0] - 1) ** 2 + (y - middle[1]) ** 2 + (x - middle[2]) ** 2
    )
    return (liver < 3.2).astype(np.uint8) + (core < 1.6)


def logits(case, fold, heads):
    rng = np.random.default_rng([2, case, fold])
    target = truth(case)
    if heads == 3:
        wanted = np.stack([target == label for label in range(3)])
    else:
        wanted = np.stack([target >= 1, target == 2])
    noise = rng.normal(0, 1.5, (heads, *SHAPE))
    # Few different values pack well.
    made = np.round((4 * wanted - 2 * (heads == 2) + noise) * 2) / 2
    return torch.from_numpy(made.astype(np.float32))


def properties(reader):
    shape = list(SHAPE)
    stated = {
        "spacing": [1.0, 1.0, 1.0],
        "shape_before_cropping": shape,
        "bbox_used_for_cropping": [[0, n] for n in shape],
        "shape_after_cropping_and_before_resampling": shape,
    }
    if reader == "SimpleITKIO":
        stated["sitk_stuff"] = {
            "spacing": (1.0, 1.0, 1.0),
            "origin": (3.0, -2.0, 7.0),
            "direction": DIRECTION,
        }
        return stated
    # As NibabelIOWithReorient reads an image: turned to RAS.
    original = nibabel.Nifti1Image(np.zeros((8, 6, 10), np.uint8), AFFINE)
    stated["nibabel_stuff"] = {
        "original_affine": AFFINE,
        "reoriented_affine": turned(original).affine,
    }
    return stated


def turned(volume):
    return volume.as_reoriented(io_orientation(volume.affine))


def write(folder, labels, *, folds, cases, reader="SimpleITKIO", subfolder="fold_{}"):
    manager = PlansManager(plans(reader))
    configuration = manager.get_configuration("3d_fullres")
    about = dataset(labels)
    for fold in range(folds):
        out = folder / subfolder.format(fold)
        out.mkdir(parents=True)
        (out / "dataset.json").write_text(json.dumps(about))
        (out / "plans.json").write_text(json.dumps(plans(reader)))
        (out / "predict_from_raw_data_args.json").write_text("{}")
        for case in range(cases):
            export_prediction_from_logits(
                logits(case, fold, 2 if labels is REGIONS else 3),
                properties(reader),
                configuration,
                manager,
                about,
                str(out / f"case_{case:03d}"),
                save_probabilities=True,
            )


def write_labels(folder, labels, *, cases, seed):
    folder.mkdir(parents=True)
    for case in range(cases):
        rng = np.random.default_rng([3, seed, case])
        seg = truth(case).astype(np.uint8)
        # The second rater moves the border a little.
        moved = np.roll(seg, seed * int(rng.integers(-1, 2)), axis=1)
        if labels is REGIONS and seed == 0:
            moved[0, 0] = 3  # ignored
        SimpleITK.WriteImage(image(moved), str(folder / f"case_{case:03d}.nii.gz"))


def write_turned_labels(folder, *, cases):
    """Labels in the axes of images that nnU-Net turns to RAS before it predicts."""
    folder.mkdir(parents=True)
    for case in range(cases):
        ras = turned(nibabel.Nifti1Image(np.zeros((8, 6, 10), np.uint8), AFFINE))
        labels = nibabel.Nifti1Image(truth(case).transpose(2, 1, 0), ras.affine)
        back = ornt_transform(io_orientation(ras.affine), io_orientation(AFFINE))
        stored = labels.as_reoriented(back)
        assert np.allclose(stored.affine, AFFINE)
        nibabel.save(stored, folder / f"case_{case:03d}.nii.gz")


def main(root):
    write(root / "labels", LABELS, folds=FOLDS, cases=CASES)
    write_labels(root / "labels" / "labelsTs", LABELS, cases=CASES, seed=0)
    write_labels(root / "second_reader", LABELS, cases=CASES - 1, seed=1)
    write(root / "regions", REGIONS, folds=1, cases=2, subfolder="")
    write_labels(root / "regions_raters" / "anna", REGIONS, cases=2, seed=0)
    write_labels(root / "regions_raters" / "ben", REGIONS, cases=2, seed=1)
    write(
        root / "reoriented",
        LABELS,
        folds=1,
        cases=1,
        reader="NibabelIOWithReorient",
        subfolder="",
    )
    write_turned_labels(root / "reoriented" / "labelsTs", cases=1)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
