"""Speed of the URL benchmark: neighbours, uncertainties, training steps and heads.

    python bench/gpu_url.py [--limit 170] [--device cuda] [--tiny]

Four tables. How long R@1 and R-AUROC of 60,502 embeddings of 2048 numbers take, beside
the bare matrix product of all pairs. What each method's uncertainty costs when it
predicts, beside the embedding alone. What a training step of each method costs, beside
that of cross-entropy and beside Table 1 of the paper. How many items a head sees per
second on cached features. `--tiny` measures nothing, but runs everything in a minute on
a CPU. Tables go to $OUT/gpu_url.md where OUT is set. It needs no installation of
qualms.
"""

import argparse
import os
import resource
import sys
import tempfile
import time
from dataclasses import replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).resolve()
sys.path.insert(0, str(HERE.parents[1] / "src"))

# ruff: noqa: E402
import noise
import numpy as np
import torch
from turns import all_lines, seconds

from qualms.methods import Batch
from qualms.networks import make_network
from qualms.scores import retrieval_hits, weighted_auroc
from qualms.shelf import find
from qualms.spec import Part, RunSpec, Task
from qualms.training import run_together
from qualms.training._neighbours import find_nearest

METHODS = (
    *("map", "infonce", "mcinfonce", "elk", "nivmf", "hib"),
    *("hetxl", "sngp", "losspred", "head_ensemble", "mc_dropout"),
)
TWO_VIEWS = ("infonce", "mcinfonce")
PAPER = {
    **{"map": 5971, "infonce": 6703, "mcinfonce": 6656, "elk": 6703, "nivmf": 6256},
    **{"hib": 7279, "losspred": 6526, "mc_dropout": 7105, "head_ensemble": 6002},
    "sngp": 7632,
}
"""Seconds of an epoch of ResNet-50, Table 1; that of HET-XL is of another GPU."""
DRAWN = 3.6
"""How much longer the paper's MCDropout takes for an image."""


class Sizes(NamedTuple):
    """How large everything is."""

    items: int
    width: int
    network: str
    side: int
    classes: int
    batch: int
    steps: int
    cached: int


FULL = Sizes(60_502, 2048, "timm:resnet50", 224, 1000, 128, 10, 131_072)
TINY = Sizes(1500, 64, "resnet_small", 32, 10, 8, 2, 64)


class Ticks:
    """Callbacks that note when each epoch ended, and messages."""

    def __init__(self):
        self.times, self.said = [], []

    def epoch(self, _, *_values):
        """Note the end of an epoch."""
        self.times.append(time.monotonic())

    def message(self, _, text):
        """Note a message."""
        self.said.append(text)


def memory(device):
    """The most GiB that were held since the last call; of the process on a CPU."""
    if device == "cpu":
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    most = torch.cuda.max_memory_allocated() / 2**30
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    return most


def product(rows, tile):
    """The similarities of all pairs, in tiles that are thrown away."""
    buffer = torch.empty(tile * tile, device=rows.device)
    for first in range(0, len(rows), tile):
        one = rows[first : first + tile]
        for start in range(0, len(rows), tile):
            other = rows[start : start + tile]
            size = len(one), len(other)
            torch.mm(one, other.T, out=buffer[: size[0] * size[1]].view(size))


def neighbours(sizes, device):
    """R@1 and R-AUROC beside the bare product."""
    rng = torch.Generator().manual_seed(0)
    classes = sizes.items // 5  # about five of each, as in Online Products
    target = torch.arange(sizes.items) % classes
    centre = torch.randn(classes, sizes.width, generator=rng)
    rows = centre[target] + 3 * torch.randn(sizes.items, sizes.width, generator=rng)
    del centre
    rows, target = rows.to(device), target.to(device)
    uncertainty = np.random.default_rng(0).random(sizes.items)
    weighted_auroc(
        score=np.arange(4.0), positive_weight=np.eye(4)[0], negative_weight=np.eye(4)[1]
    )  # compiled before
    tile, repeats = (8192, 5) if device == "cuda" else (512, 1)

    def scored():
        if device == "cuda":
            hits = find_nearest(rows, target).hits.cpu().numpy()
        else:  # as `qualms score` does
            hits = retrieval_hits(rows.numpy(), target.numpy())
        return hits.mean(), weighted_auroc(
            score=uncertainty, positive_weight=1 - hits, negative_weight=hits
        )

    memory(device)
    held = rows.nbytes / 2**30
    torch.set_float32_matmul_precision("high")  # TF32, where a GPU has it
    bare = seconds(partial(product, rows, tile), device, repeats)
    torch.set_float32_matmul_precision("highest")
    whole = seconds(scored, device, repeats)
    recall, _ = scored()
    return (
        f"| R@1 and R-AUROC, {sizes.items:,} x {sizes.width} | {whole:.3f} s |"
        f" {whole / bare:.2f} x | product of all pairs {bare:.3f} s; R@1 {recall:.3f};"
        f" {memory(device):.2f} GiB, {held:.2f} of them the embeddings |"
    )


def predicted(sizes, device, name, known):
    """What predicting with an uncertainty costs beside the embedding alone."""
    task = Task(name="embedding", classes=sizes.classes)
    torch.manual_seed(0)
    method = find("methods", name)()
    backbone = make_network(Part(name=sizes.network), channels=3)
    network = method.build(backbone, task).to(device).eval()
    x = torch.randn(2 * sizes.batch, 3, sizes.side, sizes.side, device=device)
    first = Batch(x=x, target=torch.arange(len(x), device=device) % sizes.classes)
    with torch.no_grad():
        method.after(network, lambda: iter([first]))
    torch.set_float32_matmul_precision("high")
    torch.backends.cudnn.allow_tf32 = True
    if "plain" not in known:
        known["plain"] = seconds(partial(network.backbone, x), device)
    taken = seconds(partial(method.predict, network, x, task), device)
    torch.set_float32_matmul_precision("highest")
    more = taken / known["plain"]
    beside = (
        f"{more:.2f} x (paper {DRAWN})" if name == "mc_dropout" else f"{more:.3f} x"
    )
    return (
        f"| predicting, {name} | {1000 * taken / len(x):.3f} ms an image | {beside} |"
        f" of the embedding alone; {memory(device):.1f} GiB |"
    )


def dataset(sizes):
    """Noise images of many classes."""
    task = Task(name="embedding", classes=sizes.classes)

    def target(image):
        return np.arange(len(image)) % sizes.classes

    shape = (sizes.side, sizes.side, 3)
    count = sizes.batch * sizes.steps
    splits = {
        "train": noise.split((count, *shape), 0, target),
        "test": noise.split((8, *shape), 1, target),
    }
    return noise.dataset(task, splits)


def spec(name, network, **training):
    """A run of the method `name`."""
    return RunSpec(
        benchmark="bench",
        dataset=Part(name="noise"),
        network=Part(name=network),
        method=Part(name=name),
        seed=0,
        training=training,
        splits=("test",),
    )


def passed(one, data, device):
    """Seconds of the fastest epoch after the first two, and messages."""
    callbacks = Ticks()
    with tempfile.TemporaryDirectory() as folder:
        run_together([one], data, [Path(folder)], device=device, callbacks=callbacks)
    return min(b - a for a, b in pairwise(callbacks.times[1:])), callbacks.said


def trained(sizes, device, name, known):
    """What a training step of a method costs beside cross-entropy."""
    views = ["crop", "hue_jitter", "grey", "blur", "hflip"]
    changes = views if name in TWO_VIEWS else ["crop", "jitter", "hflip"]
    options = {"optimiser": "lamb", "lr": 1e-4, "weight_decay": 2e-5}
    options |= {"precision": "bf16" if device == "cuda" else "float32"}
    options |= {"batch": sizes.batch, "augment": changes}
    if "data" not in known:
        known["data"] = dataset(sizes)
    one = spec(name, sizes.network, epochs=5, channels_last=device == "cuda", **options)
    taken, said = passed(one, known["data"], device)
    known.setdefault("step", taken)
    paper = f"{PAPER[name] / PAPER['map']:.2f}" if name in PAPER else "of another GPU"
    told = "".join(f"; {text}" for text in dict.fromkeys(said))
    return (
        f"| training, {name} | {1000 * taken / sizes.steps:.1f} ms a step |"
        f" {taken / known['step']:.2f} x of CE | paper {paper};"
        f" {sizes.batch * sizes.steps / taken:,.0f} items/s;"
        f" {memory(device):.1f} GiB{told} |"
    )


def cached(sizes, device, **head):
    """Items per second of a ranking head on features of a frozen network."""
    small = sizes._replace(side=32, batch=min(16_384, sizes.cached), steps=1)
    count = sizes.cached // small.batch
    data = dataset(small._replace(steps=count))
    options = {"features": "cached", "precision": "tf32", "batch": small.batch}
    ranking = {"goal": "ranking"}
    one = spec("losspred", sizes.network, epochs=12, lr=1e-4, **options)
    one = replace(one, method=Part(name="losspred", options=ranking | head))
    taken, _ = passed(one, data, device)
    return (
        f"| a head on cached features, {head or 'width 1024'} |"
        f" {sizes.cached / taken:,.0f} items/s | {sizes.cached / taken / 1e6:.2f} |"
        f" million; batch {small.batch:,}; {memory(device):.1f} GiB |"
    )


def jobs(sizes, device):
    """(seconds it may take, what is measured), the most important first."""
    known = {}
    slow = 5 if device == "cuda" else 0
    yield slow, partial(neighbours, sizes, device)
    yield 2 * slow, partial(cached, sizes, device)
    for name in METHODS:
        yield slow, partial(predicted, sizes, device, name, known)
    for name in METHODS:
        yield 2 * slow, partial(trained, sizes, device, name, known)
    yield 2 * slow, partial(cached, sizes, device, width=512)


def main():
    """Measure, and write the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--limit", type=float, default=170)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--tiny", action="store_true")
    parser.add_argument("--neighbours", action="store_true", help="only these")
    given = parser.parse_args()
    sizes = TINY if given.tiny else FULL
    work = list(jobs(sizes, given.device))
    if given.neighbours:
        work = work[:1]
    lines = ["| what | time | ratio | |", "|---|---|---|---|"]
    lines += all_lines(work, given.limit)
    if "OUT" in os.environ:
        text = "\n".join(lines) + "\n"
        Path(os.environ["OUT"], "gpu_url.md").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
