"""A network in training: with the method that made it and its optimiser."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

from qualms.methods import Headed, Method
from qualms.networks import as_backbone, make_network
from qualms.runs import sibling, was_finished
from qualms.shelf import find
from qualms.spec import RunSpec, Task
from qualms.training._error import TrainingError
from qualms.training.checkpoint import read_checkpoint
from qualms.training.features import check_cacheable, head_on_features, layers_of
from qualms.training.inputs import Inputs
from qualms.training.machine import Machine
from qualms.training.optimiser import (
    Tuned,
    make_optimiser,
    optimiser_state,
    restore_optimiser,
)
from qualms.training.options import Training
from qualms.training.seeds import seed


@dataclass(frozen=True, slots=True, kw_only=True)
class Learner:
    """A network in training."""

    method: Method
    network: nn.Module
    """The whole network: what checkpoints hold and predictions are made by."""
    trained: nn.Module
    """What the loss is of: the network, or its head on features that are cached."""
    tuned: Tuned
    scaler: torch.amp.GradScaler

    def state(self) -> dict[str, Any]:
        """Everything that training changes."""
        return {
            "network": self.network.state_dict(),
            "optimiser": optimiser_state(self.tuned),
            "scaler": self.scaler.state_dict(),
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from a state; that of a finished training has the network alone."""
        self.network.load_state_dict(state["network"])
        if "optimiser" in state:
            restore_optimiser(self.tuned, state["optimiser"])
            self.scaler.load_state_dict(state["scaler"])


def make_learner(
    spec: RunSpec, task: Task, options: Training, inputs: Inputs, machine: Machine
) -> Learner:
    """The network of `spec` with fresh weights on the machine, and its optimiser."""
    device, cached = machine.device, options.features == "cached"
    seed(spec.seed, "build")
    method = find("methods", spec.method.name)(**spec.method.options)
    if task.name not in method.tasks:
        raise TrainingError(
            f"method {spec.method.name!r} is for {', '.join(sorted(method.tasks))}, and"
            f" {spec.dataset.name!r} is {task.name}; choose another method"
        )
    backbone = make_network(spec.network, channels=inputs.channels)
    before = layers_of(backbone)
    if cached:
        check_cacheable(options, method, machine)
    _remember_steps(backbone, options.accumulate)
    network = method.build(backbone, task).to(device, memory_format=inputs.layout)
    if options.compile:
        # In place, so that whoever calls it runs the compiled one; and only now, as
        # building may have replaced its layers.
        _backbone(network).compile()
    trained = head_on_features(network, before) if cached else network
    return Learner(
        method=method,
        network=network,
        trained=trained,
        tuned=make_optimiser(options, method.groups(trained), device),
        scaler=torch.amp.GradScaler(device.type, enabled=options.precision == "fp16"),
    )


def _remember_steps(backbone: nn.Module, accumulate: int) -> None:
    """Make running statistics cover as many steps with accumulation as without it."""
    for layer in backbone.modules():
        if isinstance(layer, _BatchNorm) and layer.momentum is not None:
            layer.momentum = 1 - (1 - layer.momentum) ** (1 / accumulate)


def _backbone(network: nn.Module) -> nn.Module:
    """The backbone of a network, or all of it if it has no head."""
    found = (part for part in network.modules() if isinstance(part, Headed))
    return next((part.backbone for part in found), network)


def backbone_note(network: nn.Module) -> str:
    """What the user should know of the weights that a backbone starts with, or ''."""
    return as_backbone(_backbone(network)).note


def start_from(
    network: nn.Module, folder: Path, run: str, say: Callable[[str], None] | None
) -> float:
    """Begin with the weights of the finished run `run`, which lies beside `folder`.

    Where the head of that run has another form, as for other classes, the backbone
    continues with the parts of the head that fit, and that is said. Without `say` such
    weights are refused.

    Returns:
        The seconds that `run` took.
    """
    parent = sibling(folder, run)
    state = read_checkpoint(parent, run, lambda _: None)
    if state is None or not state["stand"]["fitted"]:
        raise TrainingError(f"this run continues from run {run}, {_lacks(parent)}")
    held, own = state["network"], network.state_dict()
    spent: float = state["stand"]["seconds"] + state["stand"]["fit_seconds"]
    if _forms(held) == _forms(own):
        network.load_state_dict(held)
        return spent
    if say is None or not isinstance(network, Headed) or not _same_body(held, own):
        raise TrainingError(
            f"this run continues from run {run}, whose network is another one; start"
            " from a run of the same network"
        )
    fitting = {
        name: part
        for name, part in held.items()
        if name in own and part.shape == own[name].shape
    }
    network.load_state_dict(fitting, strict=False)
    if new := sorted(name for name in own if name not in fitting):
        say(
            f"the head of run {run} is for another task; these parts begin anew:"
            f" {', '.join(new)}"
        )
    return spent


def _lacks(parent: Path) -> str:
    """Why a run without weights to continue from has none, and what to do."""
    if was_finished(parent):
        return (
            "which is finished, but its checkpoint is missing or damaged; delete"
            f" {parent} and run the same command: it trains that run again"
        )
    return f"which is not finished in {parent}; finish that one first"


_HEAD = ("head.", "fitted.")
"""How names of weights begin that are not of the backbone."""


def _same_body(one: Mapping[str, Tensor], other: Mapping[str, Tensor]) -> bool:
    """Whether all but the heads have the same form."""
    bodies = (
        {name: part for name, part in weights.items() if not name.startswith(_HEAD)}
        for weights in (one, other)
    )
    first, second = map(_forms, bodies)
    return first == second


def _forms(weights: Mapping[str, Tensor]) -> dict[str, torch.Size]:
    return {name: part.shape for name, part in weights.items()}
