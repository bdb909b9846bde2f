"""Tiny datasets, networks and methods for the tests of training."""

import numpy as np
import torch
from torch import nn

from qualms.datasets import Card, Dataset, Split
from qualms.methods import Headed, Method, Readout
from qualms.networks import IMAGENET
from qualms.spec import Part, RunSpec, Task
from qualms.training import _build, _learner, _loop

CARD = Card(title="made", licence="", citation="", url="", obtain="")
SIDE = 6


def split(count, seed=0, *, channels=1, kind="regression", **extra):
    rng = np.random.default_rng(seed)
    image = rng.integers(0, 256, (count, SIDE, SIDE, channels), dtype=np.uint8)
    bright = image.mean((1, 2, 3)) / 25.5
    target = bright.astype(np.float32)
    if kind == "classification":
        target = (bright > np.median(bright)).astype(np.int64)
    if kind == "segmentation":
        target = (image[:, None, ..., 0] > 127).astype(np.uint8)
    item = np.array([f"{seed}-{i:04d}" for i in range(count)])
    return Split(image=image, target=target, item=item, extra=extra)


def dataset(train=50, val=20, test=30, *, channels=1, kind="regression"):
    classes = None if kind == "regression" else 2
    extra = {
        "shifted": np.arange(test) % 2 == 0,
        "group": np.arange(test) % 3,
        "cluster": np.array([f"c{i // 2}" for i in range(test)]),
    }
    made = {"channels": channels, "kind": kind}
    return Dataset(
        name="made",
        options={"size": train},
        card=CARD,
        task=Task(name=kind, classes=classes),
        splits={
            "train": split(train, 1, **made),
            "val": split(val, 2, **made),
            "test": split(test, 3, **made, **extra),
        },
        shifts={"test": "noise"},
        fingerprint="f" * 16,
    )


def spec(seed=0, *, method="plain", splits=("val", "test"), start=None, **training):
    chosen = {"epochs": 3, "batch": 8, "lr": 1e-2, **training}
    return RunSpec(
        benchmark="bench",
        dataset=Part(name="made"),
        network=Part(name="tiny"),
        method=Part(name=method),
        seed=seed,
        training=chosen,
        splits=splits,
        start=start,
    )


class Tiny(nn.Module):
    def __init__(self, channels, outputs=1, maps=False):
        super().__init__()
        # A bias before the normalisation would be moved by rounding alone.
        self.conv = nn.Conv2d(channels, 8, 3, padding=1, bias=False)
        self.norm = nn.BatchNorm2d(8)
        self.drop = nn.Dropout(0.2)
        self.head = nn.Conv2d(8, outputs, 1) if maps else nn.Linear(8, outputs)
        self.maps = maps

    def forward(self, x):
        features = self.drop(torch.relu(self.norm(self.conv(x))))
        return self.head(features if self.maps else features.mean((2, 3)))


class Bare(Tiny):
    """A network of single items: no statistics of the batch, no random numbers."""

    def __init__(self, channels):
        super().__init__(channels)
        self.norm = nn.Identity()
        self.drop = nn.Identity()


class Body(nn.Module):
    """A backbone for `headed`."""

    features = 8

    def __init__(self, channels):
        super().__init__()
        self.conv = nn.Conv2d(channels, 8, 3, padding=1)
        self.norm = nn.BatchNorm2d(8)
        self.drop = nn.Dropout(0.5)

    def forward(self, x):
        return self.drop(torch.relu(self.norm(self.conv(x)))).mean((2, 3))


def headed(backbone, task):
    outputs = 1 if task.classes is None else task.classes
    return Headed(backbone, Readout(nn.Identity(), nn.Linear(8, outputs)), task)


def build(backbone, task):
    return backbone


def loss(network, batch, moment):
    return (network(batch.x)[:, 0] - batch.target).square().mean()


def predict(network, x, task):
    outputs = network(x)[:, 0]
    return {"mean": outputs[None], "select/far": outputs.abs()[None]}


def draws(network, x, task):
    network.drop.train()
    found = torch.stack([network(x)[:, 0] for _ in range(3)])
    network.drop.eval()
    return {"mean": found}


PLAIN = {"build": build, "loss": loss, "predict": predict, "select": {"far": "mean"}}


def methods(**changed):
    """Return a shelf of methods by name, each the plain one with changes."""
    return {name: Method(**{**PLAIN, **change}) for name, change in changed.items()}


def put_on_shelf(monkeypatch, network=Tiny, **changed):
    always = {"plain": {}, "dropout": {"predict": draws, "select": {}}}
    shelf = methods(**{**always, **changed})
    monkeypatch.setattr(_learner, "find", lambda _, name: lambda: shelf[name])
    monkeypatch.setattr(_learner, "make_network", lambda _, channels: network(channels))
    # Looking for a network of that name would load timm.
    monkeypatch.setattr(_build, "network_colours", lambda _: IMAGENET)


def stop_after(monkeypatch, epochs, error):
    """Raise `error` in every run once it has trained `epochs` epochs."""
    end = _loop._end

    def stopping(run, *rest):
        end(run, *rest)
        if run.state.epoch == epochs:
            raise error

    monkeypatch.setattr(_loop, "_end", stopping)


class CallbackLog:
    """Callbacks that remember what they were called with."""

    def __init__(self):
        self.epochs = []
        self.messages = []

    def epoch(self, spec, *values):
        self.epochs.append((spec.seed, *values))

    def message(self, _, text):
        self.messages.append(text)
