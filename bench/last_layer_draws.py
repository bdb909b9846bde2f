"""Whether noise of draws that all items share costs accuracy, for last-layer methods.

    python bench/last_layer_draws.py

Ten or fifty Gaussian classes in 20 dimensions, and a small network. Each method is
trained once and predicts with its usual number of draws, three times, and with many.
"""

import argparse

import torch
from torch import nn

from qualms.methods import Batch, Moment
from qualms.shelf import find
from qualms.spec import Task

DIMENSIONS, TEST, BATCH, EPOCHS, MANY, TIMES = 20, 2000, 64, 60, 500, 3
SETTINGS = ((10, 0.5, 1000), (10, 1.0, 1000), (50, 1.0, 3000))
"""Classes, how far apart they are, and training items."""
TRAINED = ("fsvi", "hetxl", "ssn", "mfvi", "rank1")


class Features(nn.Module):
    """A backbone for vectors."""

    features = 32

    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(DIMENSIONS, 64), nn.ReLU(), nn.Linear(64, 32), nn.ReLU()
        )

    def forward(self, x):
        """Return features (B, 32) of vectors (B, 20)."""
        return self.layers(x)


def draw_items(seed, count, classes, apart):
    centre = torch.randn(
        classes, DIMENSIONS, generator=torch.Generator().manual_seed(0)
    )
    generator = torch.Generator().manual_seed(seed)
    target = torch.randint(classes, (count,), generator=generator)
    noise = torch.randn(count, DIMENSIONS, generator=generator)
    return Batch(x=apart * centre[target] + noise, target=target)


def batches_of(items):
    def once():
        order = torch.randperm(len(items.x))
        for rows in order[: len(order) // BATCH * BATCH].split(BATCH):
            yield Batch(x=items.x[rows], target=items.target[rows])

    return once


def trained(name, task, items, seed):
    """Return the network of a method after training."""
    torch.manual_seed(seed)
    method = find("methods", name)()
    network = method.build(Features(), task)
    rate = 3e-3
    groups = [
        {**group, "lr": rate * group.pop("lr_scale", 1.0)}
        for group in method.groups(network)
    ]
    optimiser = torch.optim.Adam(groups, lr=rate)
    batches, steps = batches_of(items), len(items.x) // BATCH
    for epoch in range(EPOCHS):
        network.train()
        for step, batch in enumerate(batches()):
            progress = torch.tensor((epoch * steps + step) / (EPOCHS * steps))
            moment = Moment(
                epoch=epoch,
                epochs=EPOCHS,
                items=len(items.x),
                batch=BATCH,
                progress=progress,
            )
            optimiser.zero_grad()
            method.loss(network, batch, moment).backward()
            optimiser.step()
    return network.eval()


def accuracy(name, network, task, test, seed, **options):
    method = find("methods", name)(**options)
    torch.manual_seed(seed)
    with torch.no_grad():
        probs = method.predict(network, test.x, task)["probs"].mean(0)
    return (probs.argmax(1) == test.target).double().mean().item()


def laplace_accuracy(plain, task, items, test, seed, **options):
    method = find("methods", "laplace")(**options)
    network = method.build(Features(), task).eval()
    network.load_state_dict(plain.state_dict(), strict=False)
    torch.manual_seed(seed)
    with torch.no_grad():
        method.after(network, batches_of(items))
    return accuracy("laplace", network, task, test, seed, **options)


def with_draws(name, network, task, test, seed, draws):
    if name == "hetxl":  # its draws belong to the network
        network.head.last.draws = draws
        return accuracy(name, network, task, test, seed)
    return accuracy(name, network, task, test, seed, draws=draws)


def show(classes, apart, name, usual, many):
    usual = ", ".join(f"{value:.3f}" for value in usual)
    print(f"| {classes}, {apart} | {name} | {usual} | {many:.3f} |", flush=True)


def main():
    """Print accuracy with the usual number of draws, and with many."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    seed = parser.parse_args().seed
    print(f"| classes, apart | method | usual draws | {MANY} draws |")
    print("|---|---|---|---|")
    for classes, apart, count in SETTINGS:
        task = Task(name="classification", classes=classes)
        items, test = (
            draw_items(s, n, classes, apart)
            for s, n in ((100 + seed, count), (7, TEST))
        )
        given = task, items, test
        plain = trained("map", task, items, seed)
        exact = accuracy("map", plain, task, test, seed)
        show(classes, apart, "map", [exact], exact)
        former = {"mean": "draws"}
        show(
            *(classes, apart, "laplace, shared draws"),
            [laplace_accuracy(plain, *given, s, **former) for s in range(TIMES)],
            laplace_accuracy(plain, *given, seed, **former, draws=MANY),
        )
        show(
            *(classes, apart, "laplace"),
            [laplace_accuracy(plain, *given, s) for s in range(TIMES)],
            laplace_accuracy(plain, *given, seed, draws=MANY),
        )
        for name in TRAINED:
            network = trained(name, task, items, seed)
            usual = {"hetxl": 10, "ssn": 10}.get(name, 5)
            show(
                *(classes, apart, f"{name}, {usual} draws"),
                [with_draws(name, network, task, test, s, usual) for s in range(TIMES)],
                with_draws(name, network, task, test, seed, MANY),
            )


if __name__ == "__main__":
    main()
