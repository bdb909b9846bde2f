"""Write predictions of made-up volumes with MONAI's own `SaveImage`.

Run it in an environment with monai and nibabel: `python write_monai.py DIR`.
"""

import sys
from pathlib import Path

import nibabel
import numpy as np
import torch
from monai.data import MetaTensor
from monai.transforms import LoadImage, SaveImage

AFFINE = np.array([[0, 2.0, 0, -3], [-2.0, 0, 0, 2], [0, 0, -2.0, 7], [0, 0, 0, 1]])
SHAPE = (8, 6, 5)


def truth(case):
    rng = np.random.default_rng([1, case])
    x, y, z = np.indices(SHAPE)
    middle = np.array([3.5, 2.5, 2.0]) + rng.uniform(-0.7, 0.7, 3)
    square = (x - middle[0]) ** 2 + (y - middle[1]) ** 2 + (z - middle[2]) ** 2
    return (square < 6).astype(np.uint8)


def probabilities(case, member, classes):
    rng = np.random.default_rng([2, case, member])
    wanted = np.stack([truth(case) == label for label in range(classes)])
    logits = np.round(2 * (3 * wanted + rng.normal(0, 1, wanted.shape))) / 2
    return torch.softmax(torch.from_numpy(logits), dim=0).float()


def save(folder, array, image, **options):
    meta = MetaTensor(array, meta=image.meta)
    saver = SaveImage(output_dir=folder, print_log=False, **options)
    saver(meta)


def main(root):
    images = root.parent / "images_monai"
    images.mkdir(parents=True, exist_ok=True)
    load = LoadImage(ensure_channel_first=True)
    for case in range(3):
        path = images / f"scan_{case}.nii.gz"
        nibabel.save(nibabel.Nifti1Image(np.zeros(SHAPE, np.float32), AFFINE), path)
        image = load(path)
        # As MONAI's ensembles do: a folder for each network.
        for member in range(2):
            probs = probabilities(case, member, 2)
            save(root / "classes" / f"model_{member}", probs, image)
            # One channel, the probability of the foreground, in a flat folder.
            save(
                root / "sigmoid" / f"model_{member}",
                probs[1:],
                image,
                output_postfix="prob",
                separate_folder=False,
            )
        labels = torch.from_numpy(truth(case))[None]
        save(
            root / "classes" / "labels",
            labels,
            image,
            output_postfix="",
            separate_folder=False,
            output_dtype=np.uint8,
        )
        if case == 0:
            whole = probabilities(case, 0, 2)[1:]
            both = torch.cat([whole, whole * 0.4])
            save(root / "regions", both, image, output_postfix="pred")
    flat = MetaTensor(probabilities(0, 0, 2)[..., 2])
    SaveImage(output_dir=root / "flat", print_log=False, output_postfix="prob")(flat)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
