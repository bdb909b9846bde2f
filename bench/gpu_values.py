"""Speed of the VALUES benchmark on a GPU: training the U-Net, and predicting with it.

    python bench/gpu_values.py [--limit 85]
    python bench/gpu_values.py --convolutions

The first trains the U-Net of 8 filters on noise volumes of 64^3 with three raters, at
batch 8, through `qualms.training` from end to end: standardised, flipped, noisy, Dice
and cross-entropy. Then it times what each prediction model predicts, as a multiple of
one pass. The second times single convolutions in several memory layouts, and as
convolutions over a few voxels at once. Tables go to $OUT/gpu_values.md where OUT is
set. Neither needs an installation of qualms.
"""

import argparse
import os
import sys
import tempfile
import time
from dataclasses import replace
from functools import partial
from itertools import pairwise
from pathlib import Path

HERE = Path(__file__).resolve()
sys.path.insert(0, str(HERE.parents[1] / "src"))

# ruff: noqa: E402
import noise
import numpy as np
import torch
from torch.nn import functional
from turns import STARTED, all_lines, seconds

from qualms.datasets import Split
from qualms.networks import make_network
from qualms.networks.unet import grouped_convolution
from qualms.shelf import find
from qualms.spec import Part, RunSpec, Task
from qualms.training import run_together

ITEMS = 160
PASSES = 8
TASK = Task(name="segmentation", classes=2, space=3)
TRAINING = {
    **{"batch": 8, "lr": 3e-4, "weight_decay": 1e-5, "loss": "dice_likelihood"},
    **{"normalise": "item", "augment": ["flips", "noise"], "epoch_passes": PASSES},
    "predict_batch": 16,
}
FAST = {"precision": "bf16"}
LAST = {**FAST, "channels_last": True}


class Ticks:
    """Callbacks that note when each epoch ended, and messages."""

    def __init__(self):
        self.times, self.said, self.losses = [], [], []

    def epoch(self, _, *values):
        """Note the end of an epoch."""
        self.times.append(time.monotonic())
        self.losses.append(values[2])

    def message(self, _, text):
        """Note a message."""
        self.said.append(text)


def volumes(side):
    """Balls in noise, drawn by three raters."""
    splits = {}
    for seed, (name, count) in enumerate({"train": ITEMS, "val": 8}.items()):
        rng = np.random.default_rng(seed)
        image = rng.random((count, side, side, side, 1), dtype=np.float32)
        axis = np.arange(side) - side / 2
        away = np.sqrt(sum(np.meshgrid(*3 * [axis**2], indexing="ij", sparse=True)))
        radius = rng.uniform(0.1, 0.3, count) * side
        ratios = (0.8, 0.9, 1.0)
        target = np.stack([away < radius[:, None, None, None] * r for r in ratios], 1)
        image[..., 0] += target[:, 1]
        item = np.arange(count).astype(str)
        splits[name] = Split(image=image, target=target.astype(np.uint8), item=item)
    return noise.dataset(TASK, splits)


def trained(data, what, *, device, method="map", epochs=4, together=1, **chosen):
    """Volumes per second: without building and recording, and from end to end."""
    group = chosen.pop("group", 1)
    spec = RunSpec(
        benchmark="bench",
        dataset=Part(name="noise"),
        network=Part(name="unet", options={"group": group}),
        method=Part(name=method, options={"mean_epochs": 1} if method == "ssn" else {}),
        seed=0,
        training={**TRAINING, "epochs": epochs, **chosen},
        splits=("val",),
    )
    specs = [replace(spec, seed=seed) for seed in range(together)]
    callbacks, since = Ticks(), time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        places = [Path(folder) / str(spec.seed) for spec in specs]
        run_together(specs, data, places, device=device, callbacks=callbacks)
    seen = ITEMS * PASSES * together
    whole = seen * epochs / (time.monotonic() - since)
    # All runs end an epoch at about the same time.
    ends = callbacks.times[together - 1 :: together]
    steady = seen / min(b - a for a, b in pairwise(ends))
    losses = " ".join(f"{loss:.4g}" for loss in callbacks.losses[::together])
    said = "".join(f"; {text}" for text in dict.fromkeys(callbacks.said))
    note = f"{memory():.1f} GiB; losses {losses}{said}"
    return f"| {what} | {method} | {steady:,.0f} | {whole:,.0f} | {note} |"


def memory():
    """The most GiB that were reserved since the last call."""
    if not torch.cuda.is_available():
        return float("nan")
    most = torch.cuda.max_memory_reserved() / 2**30
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    return most


def predicted(what, *, device, side, batch=16, layout=torch.contiguous_format):
    """What draws cost as multiples of one pass, in float32."""
    x = torch.randn(batch, 1, side, side, side, device=device)
    x = x.contiguous(memory_format=layout)
    times, lines = {}, []
    draws = {"map": 1, "tta": 16, "mc_dropout": 10, "ssn": 10}
    for name, count in draws.items():
        options = {"rate": 0.5} if name == "mc_dropout" else {}
        method = find("methods", name)(**options)
        torch.manual_seed(0)
        backbone = make_network(Part(name="unet"), channels=1)
        network = method.build(backbone, TASK).to(device, memory_format=layout).eval()
        times[name] = seconds(partial(method.predict, network, x, TASK), device)
        own = seconds(partial(network, x), device)
        passes = 1 if name == "ssn" else count
        lines.append(
            f"| predicting, {what} | {name}, {count} draws | {batch / times[name]:,.0f}"
            f" volumes/s | {times[name] / times['map'] / passes:.3f} of {passes} |"
            f" of `map`; {times[name] / own / passes:.3f} of {passes} forward passes;"
            f" {memory():.1f} GiB |"
        )
    return "\n".join(lines)


def convolution(width, before, fold, *, device, side, layout):
    """Forward and backward of one 3x3x3 convolution in bf16, in milliseconds."""
    x = torch.randn(8, before, side, side, side, device=device, dtype=torch.bfloat16)
    x = x.contiguous(memory_format=layout).requires_grad_()
    weight = torch.randn(width, before, 3, 3, 3, device=device).requires_grad_()

    def forward():
        kernel = weight.bfloat16()
        if fold == 1:
            return functional.conv3d(
                x, kernel.contiguous(memory_format=layout), padding=1
            )
        return grouped_convolution(x, kernel, None, fold)

    gradient = torch.ones_like(forward())

    def both():
        with torch.enable_grad():
            torch.autograd.grad(forward(), [x, weight], gradient)

    there = seconds(forward, device, 10)
    back = seconds(both, device, 10)
    name = "contiguous" if layout == torch.contiguous_format else "channels last"
    return (
        f"| {before} to {width} filters, {side}^3 | {name}, {fold} voxels at once |"
        f" {1000 * there:.3f} ms | {1000 * back:.3f} ms | forward, and with backward |"
    )


def convolutions(device, side):
    """Layers of the first two levels."""
    last = torch.channels_last_3d
    for size, before, width in ((side, 8, 8), (side, 16, 8), (side // 2, 16, 16)):
        for fold, layout in (
            (1, torch.contiguous_format),
            *((fold, last) for fold in (1, 2, 4, 8)),
        ):
            yield (
                3,
                partial(
                    convolution,
                    width,
                    before,
                    fold,
                    device=device,
                    side=size,
                    layout=layout,
                ),
            )


def work(device, side):
    """(seconds it may take, what is measured), the most important first."""
    measure = partial(trained, volumes(side), device=device)
    predict = partial(predicted, device=device, side=side)
    compiled = {**FAST, "compile": True}
    grouped = {**LAST, "group": 4}
    five = {"together": 5, "epochs": 3}
    return [
        (8, partial(measure, "bf16, recorded", **FAST)),
        (8, partial(measure, "bf16, recorded, channels last", **LAST)),
        (8, partial(measure, "bf16, recorded, channels last, groups of 4", **grouped)),
        (30, partial(measure, "bf16, recorded, compiled", **compiled)),
        (20, partial(measure, "5 runs, channels last", **LAST, **five)),
        (20, partial(measure, "5 runs, channels last, groups of 4", **grouped, **five)),
        (40, partial(measure, "5 runs, compiled", **compiled, **five)),
        (12, partial(predict, "float32")),
        (10, partial(measure, "bf16, recorded", method="ssn", **FAST)),
        (10, partial(measure, "float32, eager", capture=False, epochs=2)),
        (
            30,
            partial(
                measure,
                "bf16, recorded, channels last, compiled",
                **{**compiled, "channels_last": True},
            ),
        ),
        (
            30,
            partial(
                measure,
                "bf16, recorded, channels last, groups of 4, compiled",
                **{**grouped, "compile": True},
            ),
        ),
        (30, partial(measure, "bf16, recorded, compiled", method="ssn", **compiled)),
        (8, partial(predict, "channels last", layout=torch.channels_last_3d)),
        (10, partial(measure, "bf16, recorded", method="mc_dropout", **FAST)),
    ]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--limit", type=float, default=85.0)
    parser.add_argument("--convolutions", action="store_true")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--side", type=int, default=64)
    asked = parser.parse_args()
    if asked.device == "cuda" and not torch.cuda.is_available():
        sys.exit("this needs a CUDA device")
    torch.backends.cudnn.benchmark = True
    torch.backends.cudnn.allow_tf32 = False
    jobs = (convolutions if asked.convolutions else work)(asked.device, asked.side)
    lines = all_lines(jobs, asked.limit)
    if os.environ.get("OUT"):
        text = "\n".join(["| work | what | steady | whole | note |", *lines, ""])
        (Path(os.environ["OUT"]) / "gpu_values.md").write_text(text)
    print(f"{time.monotonic() - STARTED:.0f} s in all")


if __name__ == "__main__":
    main()
