"""What the whole protocol of each paper costs: GPU hours from measured rates.

    python bench/costs.py

Counts the trainings of every preset `paper`, multiplies their epochs by the items of an
epoch, and divides by the rates in bench/RESULTS.md and results/README.md, all of one
NVIDIA H200. Runs whose rate was never measured are listed and not counted. Prints the
tables of docs/scale.md.
"""

import argparse
from collections import defaultdict
from typing import NamedTuple

from qualms.launch import RunRequest, plans_of
from qualms.spec import RunSpec

GPUS = (1, 8, 64)
TRAIN = {
    "eyepacs": 35_126,
    "cells": 10_000,
    "cell200": 10_000,
    "ventricular_volume": 7_460,
    "brain_tumour_pixels": 20_614,
    "skin_lesion_pixels": 6_592,
    "histology_nuclei_pixels": 10_808,
    "aerial_building_pixels": 11_184,
    "asset_wealth": 9_797,
    "lidc": 513,
    "gta5_cityscapes": 13_157,
    "imagenet": 1_281_167,
    "toy_shapes": 160,
    "rc49": 17_640,
    "chairs": 17_640,
}
"""Items of an epoch, at most: variants of a dataset may train on fewer."""
_COMPILED = {
    "map": 1_373,
    "mc_dropout": 1_261,
    "fsvi": 1_370,
    "rank1": 1_106,
    "mfvi": 807,
    "radial": 802,
}
_STEP_MS = {
    "map": 32.6,
    "infonce": 62.6,
    "mcinfonce": 65.4,
    "elk": 34.0,
    "nivmf": 36.3,
    "hib": 34.0,
    "hetxl": 33.5,
    "sngp": 32.6,
    "losspred": 32.9,
    "head_ensemble": 34.0,
    "mc_dropout": 36.3,
}
RATES = {
    ("retina", "resnet50"): _COMPILED,
    ("url", "timm:resnet50.a1_in1k"): {n: 128_000 / ms for n, ms in _STEP_MS.items()},
    ("regression", "resnet34_ddu"): dict.fromkeys(
        ("map", "gaussian", "quantile", "mc_dropout"), 20_147
    ),
    ("values", "unet"): {"map": 836, "mc_dropout": 836, "tta": 836, "ssn": 473},
}
"""Images or volumes a second that train, by benchmark, network and method."""
SOURCES = {
    "retina": "RESULTS.md, methods of RETINA, compiled, batch 128",
    "url": "RESULTS.md, methods of URL, ResNet-50, batch 128, images on the device",
    "regression": "results/README.md, training speed, 5 runs together, compiled, bf16",
    "values": "RESULTS.md, U-Net of VALUES, one run, groups of 4 voxels; SSN recorded",
}


class Cost(NamedTuple):
    """What the trainings of a benchmark cost."""

    runs: int
    images: float
    hours: float
    longest: float
    """Hours of the longest run."""

    def wall(self, gpus: int) -> float:
        """Return hours on so many GPUs; no run is divided."""
        return max(self.hours / gpus, self.longest)


def main() -> None:
    argparse.ArgumentParser(description=__doc__).parse_args()
    head = " | ".join(f"{n} GPU{'s' * (n > 1)}, h" for n in GPUS)
    print(f"| benchmark | trainings | images, millions | {head} | rate from |")
    print("|---|---:|---:|---:|---:|---:|---|")
    missing: dict[str, int] = defaultdict(int)
    for name, source in SOURCES.items():
        cost = cost_of(name, missing)
        hours = " | ".join(f"{cost.wall(gpus):,.1f}" for gpus in GPUS)
        millions = f"{cost.images / 1e6:,.0f}"
        print(f"| `{name}` | {cost.runs:,} | {millions} | {hours} | {source} |")
    print()
    for words, runs in missing.items():
        print(f"- not measured, not counted: {words}: {runs} trainings")


def cost_of(name: str, missing: dict[str, int]) -> Cost:
    """Return the cost of a benchmark; add to `missing` what has no rate."""
    (plan,) = plans_of(name, RunRequest(preset="paper"))
    images, hours = 0.0, []
    for run in plan.runs:
        epochs = int(run.training.get("epochs", 0))
        rate = RATES.get((name, run.network.name), {}).get(run.method.name)
        if not epochs:
            continue
        if rate is None:
            missing[f"{name} with {run.network.name}"] += 1
            continue
        items = epochs * items_of_epoch(run)
        images += items
        hours.append(items / rate / 3600)
    return Cost(len(hours), images, sum(hours), max(hours, default=0.0))


def items_of_epoch(run: RunSpec) -> int:
    """Return how many items an epoch trains on."""
    sizes = run.dataset.options.get("sizes") or {}
    items = int(sizes.get("train") or TRAIN.get(run.dataset.name) or default_size(run))
    return items * int(run.training.get("epoch_passes", 1))


def default_size(run: RunSpec) -> int:
    """Return the items of the split `train` of a simulator, as it declares them."""
    from qualms.shelf import find

    return find("datasets", run.dataset.name)(**run.dataset.options).counts["train"]


if __name__ == "__main__":
    main()
