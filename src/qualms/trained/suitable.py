"""Methods that can serve a network that is trained already, by what they are made of.

A method can if training with it is that of the plain network: the plain loss, nothing
done in an epoch, one view of each item; and if it adds no weights, which nobody would
have trained. What it fits after training, or on held-out items, it can fit now.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from inspect import signature
from typing import Any

import torch
from torch import nn

from qualms.methods import Method
from qualms.shelf import find, names
from qualms.spec import Task
from qualms.trained.backbone import TrainedBackbone, make_backbone
from qualms.trained.outputs import make_reader
from qualms.wording import suggest

PLAIN = "map"
"""What the shelf calls the plain network."""
_ASIDE = ("loss", "epoch", "phase", "schedule", "views")
"""Parts of a method that act in training."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Suited:
    """A method and the trained network that it was given."""

    method: Method
    network: nn.Module

    @property
    def fits(self) -> bool:
        """Whether it needs training items."""
        return self.method.after is not Method().after


def make_method(name: str, options: Mapping[str, Any]) -> Method:
    """The method of the shelf, or from outside, with its options."""
    function = find("methods", name)
    known = signature(function).parameters
    for option in options:
        if option not in known:
            raise LookupError(
                f"no option {option!r} for method {name!r}.{suggest(option, known)}"
                f" Known: {', '.join(known) or 'none'}."
            )
    made: Method = function(**options)
    return made


def suited(name: str, method: Method, backbone: TrainedBackbone, task: Task) -> Suited:
    """`method` on a trained network; one that must be trained with it is refused."""
    if task.name not in method.tasks:
        raise ValueError(
            f"method {name!r} is for {', '.join(sorted(method.tasks))}, and this task"
            f" is {task.name}; {_others(task)}"
        )
    network = None if _acts_in_training(method) else _built(method, backbone, task)
    if network is None:
        raise ValueError(
            f"a network must be trained with method {name!r}, so it cannot serve one"
            f" that is trained already; {_others(task)}"
        )
    return Suited(method=method, network=network)


def suitable_methods(task: Task) -> list[str]:
    """Every method that can serve a trained network of `task`."""
    return [name for name in names("methods") if _can(name, task)]


def _others(task: Task) -> str:
    return f"these can: {', '.join(suitable_methods(task))}"


def _can(name: str, task: Task) -> bool:
    function = find("methods", name)
    needed = [
        p for p in signature(function).parameters.values() if p.default is p.empty
    ]
    if needed:
        return False
    method: Method = function()
    if task.name not in method.tasks or _acts_in_training(method):
        return False
    try:
        return _built(method, _example(task), task) is not None
    except (ValueError, LookupError, TypeError):  # it wants another network
        return False


def _acts_in_training(method: Method) -> bool:
    plain = Method()
    return any(getattr(method, part) != getattr(plain, part) for part in _ASIDE)


def _built(method: Method, backbone: TrainedBackbone, task: Task) -> nn.Module | None:
    """What the method makes of a trained network; None if it adds weights."""
    network = method.build(backbone, task)
    known = {id(weight) for weight in backbone.parameters()}
    added = [weight for weight in network.parameters() if id(weight) not in known]
    return None if added else network.eval()


def _example(task: Task) -> TrainedBackbone:
    """The smallest network that has all that methods look for."""
    count = task.classes or 1
    last: nn.Module = nn.Linear(2, count)
    x = torch.zeros(2, 2)
    if task.name == "segmentation":
        last = (nn.Conv3d if task.space == 3 else nn.Conv2d)(2, count, 1)
        x = torch.zeros(2, 2, *(4,) * task.space)
    model = nn.Sequential(nn.ReLU(), nn.Dropout(0.5), last).eval()
    outputs = None if task.name == "regression" else "logits"
    return make_backbone(model, x, make_reader(task.name, outputs), None).backbone
