"""Our medical corruptions beside those of TorchIO 1.2.1, with the same parameters.

    uv pip install --target tio --no-deps torchio==1.2.1 simpleitk jaxtyping \
        wadler-lindig deprecated einops humanize
    PYTHONPATH=tio python bench/corruption_torchio.py

The chance of ours is drawn once more and handed to TorchIO. `--cases FILE` writes what
it gives, for the tests.
"""

import argparse
from itertools import product
from pathlib import Path

import numpy as np
import torch
from scipy.ndimage import gaussian_filter

from qualms.corruptions import corrupt
from qualms.corruptions._apply import random_numbers

ITEM, DRAWS = "a", 20


def volume():
    """Return a made-up volume (24, 28, 20) from 0 to 1."""
    smooth = gaussian_filter(np.random.default_rng(0).random((24, 28, 20)), 2)
    return (smooth - smooth.min()) / np.ptp(smooth)


def bias_coefficients(rng):
    """Return the coefficients that ours draws, in the order of TorchIO."""
    powers = [p for p in product(range(4), repeat=3) if sum(p) <= 3]
    drawn = {power: 0.5 * rng.uniform(-1.0, 1.0) for power in powers}
    return [drawn[power] for power in sorted(powers)]


def transforms():
    """Yield name, severity and the transform of TorchIO with the same parameters."""
    import torchio

    sign = random_numbers("gamma", ITEM, 0).choice((-1.0, 1.0))
    yield "gamma", 3, torchio.Gamma(gamma=(float(np.exp(0.3 * sign)),))
    yield "scanner_blur", 3, torchio.Blur(std=(1.2, 1.2, 1.2))
    rng = random_numbers("bias_field", ITEM, 0)
    coefficients = bias_coefficients(rng)
    yield "bias_field", 5, torchio.BiasField(coefficients=coefficients, order=3)
    rng = random_numbers("ghosting", ITEM, 0)
    ghosts, along = int(rng.integers(4, 11)), int(rng.integers(3))
    how = {"num_ghosts": ghosts, "axis": along, "intensity": 0.6, "restore": None}
    yield "ghosting", 3, torchio.Ghosting(**how)


def applied(transform, image):
    import torchio

    tensor = torch.tensor(image[None], dtype=torch.float32)
    return transform(torchio.ScalarImage(tensor=tensor)).data[0].numpy()


def main():
    import torchio

    parser = argparse.ArgumentParser()
    parser.add_argument("--cases", type=Path)
    asked = parser.parse_args()
    image, cases = volume(), {}
    print("| corruption | severity | largest gap |\n|---|---|---|")
    for name, severity, transform in transforms():
        theirs = applied(transform, image)
        ours = corrupt(image[..., None], name, severity, item=ITEM)[..., 0]
        print(f"| `{name}` | {severity} | {np.abs(ours - theirs).max():.0e} |")
        cases[f"{name}-{severity}"] = theirs[::2, ::2, ::2]
    noise = torchio.Noise(mean=0.0, std=0.25 * float(image.std()), seed=1)
    motion = torchio.RandomMotion(degrees=10, translation=1.0, num_transforms=2)
    torch.manual_seed(0)
    for name, transform in (("scanner_noise", noise), ("patient_motion", motion)):
        changes = [
            np.abs(corrupt(image[..., None], name, 5, item=str(i))[..., 0] - image)
            for i in range(DRAWS)
        ]
        theirs = [np.abs(applied(transform, image) - image) for _ in range(DRAWS)]
        print(f"{name}: mean change {np.mean(changes):.4f}, {np.mean(theirs):.4f}")
    if asked.cases:
        np.savez_compressed(asked.cases, **cases)


if __name__ == "__main__":
    main()
