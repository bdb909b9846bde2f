"""Post-hoc methods: those that can serve a network that is trained already.

A method is post-hoc if it trains as the plain network does, with the plain loss,
nothing to do in an epoch and one view of each item, and if it adds no weights, which
would be untrained. What it fits after training, or on held-out items, it can fit now.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from inspect import signature
from typing import Any

import torch
from torch import nn

from qualms.methods import Method
from qualms.shelf import PartError, find, names, traits
from qualms.spec import Task
from qualms.trained._backbone import TrainedBackbone, make_backbone
from qualms.trained._outputs import make_reader
from qualms.wording import suggest

PLAIN = "map"
"""Name of the plain network on the shelf."""
_IN_TRAINING = ("loss", "epoch", "phase", "schedule", "views")
"""Parts of a method that act in training."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PosthocMethod:
    """A method, and the trained network that it serves."""

    method: Method
    network: nn.Module

    @property
    def fits(self) -> bool:
        """True if the method needs training items."""
        return self.method.after is not Method().after


def make_method(name: str, options: Mapping[str, Any]) -> Method:
    """Return the method `name` of the shelf, or from outside, with its options."""
    function = find("methods", name)
    names_of_options = signature(function).parameters
    for option in options:
        if option not in names_of_options:
            raise LookupError(
                f"no option {option!r} for method {name!r}."
                f"{suggest(option, names_of_options)}"
                f" Known: {', '.join(names_of_options) or 'none'}."
            )
    method: Method = function(**options)
    return method


def posthoc_method(
    name: str, method: Method, backbone: TrainedBackbone, task: Task
) -> PosthocMethod:
    """Apply `method` to a trained network; refuse one that acts in training."""
    if task.name not in method.tasks:
        raise ValueError(
            f"method {name!r} is for {', '.join(sorted(method.tasks))}, and this task"
            f" is {task.name}; {_others(task)}"
        )
    network = None
    if not _acts_in_training(method):
        try:
            network = _built(method, backbone, task)
        except ValueError as error:
            if not backbone.is_compiled:
                raise
            raise ValueError(
                f"method {name!r} looks for layers in the network, and those of a"
                " module from torch.jit cannot be seen; pass the module that it was"
                f" compiled from ({error})"
            ) from error
    if network is None:
        raise ValueError(
            f"a network must be trained with method {name!r}, so it cannot serve one"
            f" that is trained already; {_others(task)}"
        )
    return PosthocMethod(method=method, network=network)


def posthoc_methods(task: Task) -> list[str]:
    """Return the names of all methods that can serve a trained network of `task`."""
    return [name for name in names("methods") if _is_posthoc(name, task)]


def _others(task: Task) -> str:
    return f"these can: {', '.join(posthoc_methods(task))}"


def _is_posthoc(name: str, task: Task) -> bool:
    try:
        function = find("methods", name)
    except PartError:  # a part from outside that cannot be loaded
        return False
    if any(p.default is p.empty for p in signature(function).parameters.values()):
        return False
    method: Method = function()
    if task.name not in method.tasks or _acts_in_training(method):
        return False
    try:
        return _built(method, _example(task), task) is not None
    except (ValueError, LookupError, TypeError):  # it needs another network
        return False


def _acts_in_training(method: Method) -> bool:
    plain = Method()
    return any(getattr(method, part) != getattr(plain, part) for part in _IN_TRAINING)


def _built(method: Method, backbone: TrainedBackbone, task: Task) -> nn.Module | None:
    """Return the method's form of a trained network; None if it adds weights."""
    network = method.build(backbone, task)
    trained = {id(weight) for weight in backbone.parameters()}
    adds = any(id(weight) not in trained for weight in network.parameters())
    return None if adds else network.eval()


def _example(task: Task) -> TrainedBackbone:
    """Return the smallest network with all that methods look for."""
    count = task.classes or 1
    last: nn.Module = nn.Linear(2, count)
    x = torch.zeros(2, 2)
    if "pixels" in traits(task.name):
        last = (nn.Conv3d if task.space == 3 else nn.Conv2d)(2, count, 1)
        x = torch.zeros(2, 2, *(4,) * task.space)
    model = nn.Sequential(nn.ReLU(), nn.Dropout(0.5), last).eval()
    outputs = None if "values" in traits(task.name) else "logits"
    return make_backbone(model, x, make_reader(task.name, outputs), None).backbone
