"""Work for the processes of a team in tests; they import it."""

import os
import sys
import time
from pathlib import Path

import torch
from torch.nn import functional

from qualms.training import run_alone
from training import made


def loss(network, batch, moment):
    stopped = os.environ.get("STOPS") and os.environ.get("LOCAL_RANK") == "1"
    if stopped and moment.epoch == 1 and network.training:
        # Wait until the first process has written its first checkpoint.
        while not [*Path(os.environ["STOPS"]).glob("*/checkpoint.pt")]:
            time.sleep(0.01)
        raise RuntimeError("the second stops in the second epoch")
    logits = network(batch.x)[:, 0]
    weight = batch.weight
    return functional.binary_cross_entropy_with_logits(
        logits, batch.target.float(), weight=weight
    )


def phased(network, batch, moment):
    """Return a loss that leaves the head out in the first epoch."""
    if moment.epoch:
        return loss(network, batch, moment)
    return network.conv(batch.x).square().mean()


def predict(network, x, task):
    return {"prob": network(x)[:, 0].sigmoid()[None]}


class Patch:
    """A monkeypatch that undoes nothing."""

    def setattr(self, owner, name, value):
        setattr(owner, name, value)


def put_on_shelf():
    binary = {"loss": loss, "predict": predict, "select": {}}
    made.put_on_shelf(
        Patch(),
        network=made.Bare,
        binary=binary,
        phased={**binary, "loss": phased, "phase": lambda epoch: epoch == 0},
    )


def train(folder, *devices, method="binary", **options):
    """Train on each of `devices`, into folders below `folder` named after them."""
    spec = made.spec(method=method, partial=False, **options)
    dataset = made.dataset(kind="classification")
    for device in devices:
        sys.stdout.write(f"on {device}\n")
        run_alone(
            spec,
            dataset,
            Path(folder) / device,
            device=device,
            callbacks=PrintedCallbacks(),
        )


class PrintedCallbacks:
    def epoch(self, _, *values):
        sys.stdout.write(f"epoch {values[0]} loss {values[2]:.6f}\n")

    def message(self, _, text):
        sys.stdout.write(f"{text}\n")


def rank_of(callbacks):
    callbacks.message(made.spec(), f"rank {os.environ['LOCAL_RANK']}")


def fail_second(callbacks):
    """Fail in the second process; the first would wait for ever."""
    if os.environ["LOCAL_RANK"] == "1":
        raise ValueError("the second must not fail")
    torch.multiprocessing.get_context().Event().wait()


def leave(callbacks):
    os._exit(3)
