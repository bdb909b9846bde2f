"""Training speed on a CPU, beside a bare loop of PyTorch.

    python bench/cpu_train.py

Both train the same network on the same batches of 32 items of 64x64 with Adam, on one
thread; the bare loop has its images as normalised floats in memory already and writes
no checkpoints. They take turns, an epoch each, because the speed of a shared machine
changes within seconds. Figures are medians, in images per second of CPU time.
"""

import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).resolve()
sys.path.insert(0, str(HERE.parents[1] / "src"))

# ruff: noqa: E402
import noise
import numpy as np
import torch

from qualms.networks import make_network
from qualms.shelf import find
from qualms.spec import Part, RunSpec, Task
from qualms.training import run_alone
from qualms.training._callbacks import NoCallbacks

BATCH = 32
MEAN = torch.tensor([0.485, 0.456, 0.406]).view(3, 1, 1)
STD = torch.tensor([0.229, 0.224, 0.225]).view(3, 1, 1)


class Case(NamedTuple):
    """A network, and what it is trained on."""

    network: str
    items: int
    epochs: int
    channels_last: bool


CASES = (
    Case("resnet_small", 640, 30, False),
    Case("resnet_small", 640, 30, True),
    Case("resnet34_ddu", 256, 4, False),
)


class Turns(NoCallbacks):
    """Callbacks that let the bare loop go on whenever an epoch has ended."""

    def __init__(self, bare):
        self.ours, self.theirs = [], []
        self._bare = bare
        self._since = None

    def epoch(self, *_):
        """Note the seconds of both; the first epoch also builds the network."""
        if self._since is not None:
            self.ours.append(time.process_time() - self._since)
        self.theirs.append(next(self._bare))
        self._since = time.process_time()


def dataset(items):
    sizes = {"train": items, "val": 8}
    splits = {
        name: noise.split((count, 64, 64, 1), 0, noise.brightness)
        for name, count in sizes.items()
    }
    return noise.dataset(Task(name="regression"), splits)


def spec(case):
    return RunSpec(
        benchmark="bench",
        dataset=Part(name="noise"),
        network=Part(name=case.network),
        method=Part(name="map"),
        seed=0,
        training={"epochs": case.epochs, "channels_last": case.channels_last},
        splits=("val",),
    )


def seconds(case):
    """Median seconds of an epoch: ours with checkpoint and log, and the bare loop's."""
    data = dataset(case.items)
    callbacks = Turns(bare(case, data))
    with tempfile.TemporaryDirectory() as folder:
        run_alone(
            spec(case), data, Path(folder) / "run", device="cpu", callbacks=callbacks
        )
    return float(np.median(callbacks.ours)), float(np.median(callbacks.theirs[1:]))


def bare(case, data):
    """Seconds of each epoch of a loop as one would write it down."""
    layout = torch.channels_last if case.channels_last else torch.contiguous_format
    torch.manual_seed(0)
    backbone = make_network(spec(case).network, channels=3)
    network = find("methods", "map")().build(backbone, data.task)
    network = network.to(memory_format=layout).train()
    optimiser = torch.optim.Adam(network.parameters(), lr=1e-3, fused=True)
    train = data.splits["train"]
    raw = torch.from_numpy(train.image).permute(0, 3, 1, 2)
    images = ((raw.float() / 255).expand(-1, 3, -1, -1) - MEAN) / STD
    images = images.contiguous(memory_format=layout)
    targets = torch.from_numpy(train.target)
    while True:
        since = time.process_time()
        for rows in torch.randperm(len(targets)).split(BATCH):
            optimiser.zero_grad()
            error = network(images[rows])[:, 0] - targets[rows]
            error.square().mean().backward()
            optimiser.step()
        yield time.process_time() - since


def main():
    torch.set_num_threads(1)
    print("| network | layout | ours, images/s | bare loop | ours / bare |")
    print("|---|---|---:|---:|---:|")
    for case in CASES:
        mine, plain = seconds(case)
        layout = "channels last" if case.channels_last else "channels first"
        print(
            f"| {case.network} | {layout} | {case.items / mine:,.1f} |"
            f" {case.items / plain:,.1f} | {plain / mine:.3f} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
