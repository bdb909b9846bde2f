"""Our corruptions beside `imagecorruptions` 1.1.2, which has the code of ImageNet-C.

    python bench/corruption_references.py

runs in an environment of its own, since that package needs NumPy 1:

    uv venv refs
    uv pip install --python refs "imagecorruptions==1.1.2" "numpy<2" "setuptools<80" \
        numba filelock threadpoolctl safetensors typer rich
    PYTHONPATH=src refs/bin/python bench/corruption_references.py

Elastic transforms are defined otherwise there, and frost is made of photographs. It
prints a table, and with `--cases FILE` writes what the other package gives, for the
tests: pictures where nothing is random, else how much they change on average.
"""

import argparse
import warnings
from pathlib import Path

import numpy as np

from qualms.corruptions import corrupt

SIDE = 224
FIXED = ("defocus_blur", "zoom_blur", "brightness", "contrast", "pixelate")
RANDOM = (
    *("gaussian_noise", "shot_noise", "impulse_noise", "glass_blur", "motion_blur"),
    *("snow", "fog"),
)
SEVERITIES, DRAWS = (1, 3, 5), 24


def picture(side=SIDE):
    """Return a made-up picture in colour, with edges, waves and some noise."""
    y, x = np.mgrid[:side, :side] / side
    waves = [0.5 + 0.3 * np.sin(9 * x + c) * np.cos(7 * y - c) for c in range(3)]
    image = np.stack(waves, axis=-1)
    image[side // 4 : side // 2, side // 3 : side // 2] = 0.9, 0.3, 0.2
    image[np.hypot(x - 0.7, y - 0.65) < 0.15] = 0.1, 0.2, 0.6
    noise = np.random.default_rng(0).normal(0, 0.02, image.shape)
    return (255 * np.clip(image + noise, 0, 1)).round().astype(np.uint8)


def theirs_of(image, name, severity):
    import imagecorruptions

    changed = imagecorruptions.corrupt(image, corruption_name=name, severity=severity)
    return np.asarray(changed)


def mend():
    """Let their code call the `gaussian` of a newer scikit-image."""
    from imagecorruptions import corruptions
    from skimage.filters import gaussian

    def smoothed(image, sigma, multichannel=False, **options):
        axis = -1 if multichannel else None
        return gaussian(image, sigma=sigma, channel_axis=axis, **options)

    corruptions.gaussian = smoothed


def change(images, image):
    """Return the mean absolute change of a pixel, in grey levels."""
    return float(np.mean([np.abs(i.astype(float) - image).mean() for i in images]))


def main():
    warnings.simplefilter("ignore")
    parser = argparse.ArgumentParser()
    parser.add_argument("--cases", type=Path)
    asked = parser.parse_args()
    mend()
    image, cases = picture(), {}
    print("| corruption | severity | theirs | ours | largest gap |")
    print("|---|---|---|---|---|")
    for name in (*FIXED, "jpeg_compression", *RANDOM):
        for severity in SEVERITIES:
            draws = DRAWS if name in RANDOM else 1
            np.random.seed(0)  # noqa: NPY002 - theirs draws from the global state
            theirs = [theirs_of(image, name, severity) for _ in range(draws)]
            ours = [corrupt(image, name, severity, item=f"{i}") for i in range(draws)]
            cells = [f"{change(each, image):.2f}" for each in (theirs, ours)]
            gap = ""
            if draws == 1:
                gap = f"{np.abs(theirs[0].astype(int) - ours[0]).max()}"
                if severity == 3:
                    cases[name] = theirs[0][::3, ::3]
            else:
                cases[f"{name}-{severity}"] = np.float64(change(theirs, image))
            row = f"| `{name}` | {severity} | {' | '.join(cells)} | {gap} |"
            print(row, flush=True)
    if asked.cases:
        np.savez_compressed(asked.cases, **cases)


if __name__ == "__main__":
    main()
