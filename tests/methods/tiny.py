"""Tiny data and networks on which any method trains in a blink."""

import torch
from torch import nn

from qualms.methods import Batch, Moment
from qualms.networks.resnet_small import resnet_small
from qualms.shelf import find
from qualms.spec import Task

N = 48
SIZE = 16
"""Items of a batch, fewer than there are: a method must not take one for the other."""
TASKS = {
    "classification": Task(name="classification", classes=3),
    "regression": Task(name="regression"),
    "segmentation": Task(name="segmentation", classes=3, ignore=255),
    "embedding": Task(name="embedding", classes=3),
}


class Dense(nn.Module):
    """Features for every pixel."""

    features = 6

    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv2d(1, 6, 3, padding=1), nn.BatchNorm2d(6), nn.ReLU()
        )

    def forward(self, x):
        return self.layers(x)


class Volumes(nn.Module):
    """Features for every voxel of volumes with one channel."""

    features = 6

    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv3d(1, 4, 3, padding=1),
            nn.BatchNorm3d(4),
            nn.ReLU(),
            nn.Conv3d(4, 6, 3, padding=1, groups=2),
            nn.ReLU(),
        )

    def forward(self, x):
        return self.layers(x)


def backbone(task):
    if task.name == "segmentation":
        return Dense()
    return resnet_small(channels=1, width=4, blocks=(1, 1))


def data(task):
    """x (N, 1, 16, 16) and targets that follow from it."""
    generator = torch.Generator().manual_seed(7)
    level = torch.rand(N, generator=generator)
    x = level.view(-1, 1, 1, 1) + 0.3 * torch.randn(N, 1, 16, 16, generator=generator)
    if task.name == "regression":
        return x, 10 * level + 5
    if task.name in ("classification", "embedding"):
        return x, (3 * level).long()
    target = (x[:, 0] > 0.3).long() + (x[:, 0] > 0.7).long()
    target[:, 0] = task.ignore
    return x, target


def batches(task, size=SIZE):
    x, target = data(task)

    def once():
        for start in range(0, N, size):
            rows = slice(start, start + size)
            yield Batch(x=x[rows], target=target[rows])

    return once


def moment(epoch=0, epochs=100, step=1, steps=100, batch=SIZE):
    progress = torch.tensor(step / steps)
    return Moment(epoch=epoch, epochs=epochs, items=N, batch=batch, progress=progress)


def made(name, options=None):
    return find("methods", name)(**(options or {}))


def built(method, task, seed=0):
    torch.manual_seed(seed)
    return method.build(backbone(task), task)


def trained(method, task, *, seed=0, epochs=range(3), lr=0.01):
    """A network after a pass over the data in each of `epochs`, and after `after`."""
    network = built(method, task, seed)
    options = [
        {**group, "lr": lr * group.pop("lr_scale", 1.0)}
        for group in method.groups(network)
    ]
    optimiser = torch.optim.Adam(options, lr=lr)
    for epoch in epochs:
        with torch.no_grad():
            method.epoch(network.eval(), moment(epoch), batches(task))
        network.train()
        for batch in batches(task)():
            optimiser.zero_grad()
            method.loss(network, batch, moment(epoch)).backward()
            optimiser.step()
    with torch.no_grad():
        method.after(network.eval(), batches(task))
        if method.calibrate is not None:
            method.calibrate(network, batches(task))
    return network


def predicted(method, network, task, seed=3):
    torch.manual_seed(seed)
    with torch.no_grad():
        return method.predict(network.eval(), data(task)[0], task)
