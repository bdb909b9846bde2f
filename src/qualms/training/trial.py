"""A method is tried on made-up items, which takes a blink: it learns, fits, predicts.

The items are 48 small images whose brightness decides the target, and the networks are
tiny. Whether a method is any good, they do not tell.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from qualms.methods import Batch, Batches, Method, Moment, learning_of
from qualms.networks import make_network
from qualms.shelf import traits
from qualms.spec import Part, Task
from qualms.training._error import TrainingError
from qualms.training.predict import check_returned, item_axis
from qualms.wording import error_words

ITEMS, BATCH, SIDE = 48, 16, 16
RATE = 0.01
_DENSE = Part(name="unet", options={"space": 2, "width": 4, "levels": 1})
_WHOLE = Part(name="resnet_small", options={"width": 4, "blocks": [1, 1]})


class MethodTrial(NamedTuple):
    """What a method made of the items."""

    losses: tuple[float, float]
    """Mean loss of the items before and after training, both as in the first step."""
    network: nn.Module
    """The trained network, with what the method fitted."""
    arrays: Mapping[str, NDArray[Any]]
    """Predictions of all items, as `predict` returned them."""


def try_method(
    method: Method, task: str, *, epochs: int = 1, seed: int = 0
) -> MethodTrial:
    """Train a tiny network by a method on made-up items of a task, and predict them.

    Raises:
        TrainingError: If a hook of the method fails, or predictions are not those of
            the task, with the name of the hook.
    """
    if task not in method.tasks:
        raise TrainingError(
            f"the method is for {', '.join(sorted(method.tasks))}, and not for {task}"
        )
    about = learning_of(Task(name=task)).example
    x, target = _items(about)

    def batches() -> Iterator[Batch]:
        for start in range(0, ITEMS, BATCH):
            rows = slice(start, start + BATCH)
            yield Batch(x=x[rows], target=target[rows])

    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        part = _DENSE if "pixels" in traits(task) else _WHOLE
        backbone = make_network(part, channels=1)
        with _naming("build", task):
            network = method.build(backbone, about)
        losses = _train(method, network, batches, epochs, task)
        with torch.no_grad():
            with _naming("after", task):
                method.after(network.eval(), batches)
            with _naming("calibrate", task):
                if method.calibrate is not None:
                    method.calibrate(network.eval(), batches)
            with _naming("predict", task):
                returned = method.predict(network.eval(), x, about)
        check_returned(returned, about)
        arrays = {name: _checked(name, part, about) for name, part in returned.items()}
    return MethodTrial(losses=losses, network=network, arrays=arrays)


def _train(
    method: Method,
    network: nn.Module,
    batches: Batches,
    epochs: int,
    task: str,
) -> tuple[float, float]:
    """Train a network, and return the mean loss before and after it."""
    steps = epochs * (ITEMS // BATCH)

    def moment(step: int) -> Moment:
        return Moment(
            epoch=step * BATCH // ITEMS,
            epochs=epochs,
            items=ITEMS,
            batch=BATCH,
            progress=torch.tensor((step + 1) / steps),
        )

    def loss_of(batch: Batch, step: int) -> Tensor:
        views = (method.views, *[1] * (batch.x.ndim - 1))
        viewed = Batch(x=batch.x.repeat(views), target=batch.target)
        with _naming("loss", task):
            return method.loss(network.train(), viewed, moment(step))

    def mean_loss() -> float:
        with torch.no_grad():
            return float(np.mean([loss_of(batch, 0).item() for batch in batches()]))

    before = mean_loss()
    optimiser = _optimiser(method, network)
    for epoch in range(epochs if method.trains else 0):
        first = epoch * ITEMS // BATCH
        with _naming("epoch", task), torch.no_grad():
            method.epoch(network.eval(), moment(first), batches)
        for step, batch in enumerate(batches(), first):
            optimiser.zero_grad()
            loss = loss_of(batch, step)
            with _naming("loss", task):
                torch.autograd.backward(loss)
            optimiser.step()
    after = mean_loss()
    if not np.isfinite([before, after]).all():
        raise TrainingError(
            f"loss of the method must be finite for {task}, got {before:g} before and"
            f" {after:g} after {steps} steps"
        )
    return before, after


def _optimiser(method: Method, network: nn.Module) -> torch.optim.Adam:
    groups = [
        {**group, "lr": RATE * group.get("lr_scale", 1.0)}
        for group in method.groups(network)
    ]
    return torch.optim.Adam(groups, lr=RATE)


def _items(task: Task) -> tuple[Tensor, Tensor]:
    """Return images (48, 1, 16, 16) and targets that follow from their brightness."""
    generator = torch.Generator().manual_seed(7)
    level = torch.rand(ITEMS, generator=generator)
    noise = torch.randn(ITEMS, 1, SIDE, SIDE, generator=generator)
    x = level.view(-1, 1, 1, 1) + 0.3 * noise
    return x, learning_of(task).example_target(x, level)


def _checked(name: str, part: Tensor, task: Task) -> NDArray[Any]:
    """Return an array of predictions; raise unless it is of all items, and finite."""
    maps = "pixels" in traits(task.name)
    axis = int(name == "draw_labels") if maps else item_axis(task, name, part)
    array = part.detach().cpu().numpy()
    if array.shape[axis] != ITEMS:
        raise TrainingError(
            f"predict of the method must give {name!r} for each of {ITEMS} items of"
            f" {task.name}, got shape {array.shape}"
        )
    if not np.isfinite(array).all():
        raise TrainingError(
            f"predict of the method must give finite numbers for {task.name}, and some"
            f" of {name!r} are not"
        )
    return array


@contextmanager
def _naming(hook: str, task: str) -> Iterator[None]:
    """Name the hook in which a method fails: users write methods of their own."""
    try:
        yield
    except TrainingError:
        raise
    except Exception as error:
        raise TrainingError(
            f"{hook} of the method fails on made-up items of {task}"
            f" ({error_words(error)}); correct it, or leave {task} out of its tasks"
        ) from error
