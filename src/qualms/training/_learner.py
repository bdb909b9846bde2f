"""A network in training, with the method that built it and its optimiser."""

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
from qualms.training._checkpoint import read_checkpoint, state_from_dict
from qualms.training._error import TrainingError
from qualms.training._features import check_cacheable, head_on_features, layers_of
from qualms.training._inputs import Inputs
from qualms.training._optimiser import (
    OptimiserWithRates,
    make_optimiser,
    optimiser_state,
    restore_optimiser,
)
from qualms.training.machine import Machine
from qualms.training.options import Training
from qualms.training.seeds import seed


@dataclass(frozen=True, slots=True, kw_only=True)
class Learner:
    """A network in training."""

    method: Method
    network: nn.Module
    """The complete network, for checkpoints and predictions."""
    trained: nn.Module
    """The network, or its head if features are cached; the loss is computed of it."""
    tuned: OptimiserWithRates
    scaler: torch.amp.GradScaler

    def state(self) -> dict[str, Any]:
        """Return everything that training changes, for a checkpoint."""
        return {
            "network": self.network.state_dict(),
            "optimiser": optimiser_state(self.tuned.optimiser),
            "scaler": self.scaler.state_dict(),
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Load a checkpoint; that of a fitted run has the network alone."""
        self.network.load_state_dict(state["network"])
        if "optimiser" in state:
            restore_optimiser(self.tuned, state["optimiser"])
            self.scaler.load_state_dict(state["scaler"])


def make_learner(
    spec: RunSpec, task: Task, options: Training, inputs: Inputs, machine: Machine
) -> Learner:
    """Return the network of `spec` with fresh weights, and its optimiser."""
    device, cached = machine.device, options.objective.features == "cached"
    execution = options.execution
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
    _adapt_momentum(backbone, options.steps.accumulate)
    network = method.build(backbone, task).to(device, memory_format=inputs.layout)
    if execution.compile:
        # In place, so that all callers run the compiled code; and only now, as building
        # may have replaced layers.
        bare_backbone(network).compile()
    trained = head_on_features(network, before) if cached else network
    return Learner(
        method=method,
        network=network,
        trained=trained,
        tuned=make_optimiser(options.optimisation, method.groups(trained), device),
        scaler=torch.amp.GradScaler(device.type, enabled=execution.precision == "fp16"),
    )


def _adapt_momentum(backbone: nn.Module, accumulate: int) -> None:
    """Make running statistics cover as many steps with accumulation as without it."""
    for layer in backbone.modules():
        if isinstance(layer, _BatchNorm) and layer.momentum is not None:
            layer.momentum = 1 - (1 - layer.momentum) ** (1 / accumulate)


def bare_backbone(network: nn.Module) -> nn.Module:
    """Return the backbone of a network, or the network if it has no head."""
    headed = (part for part in network.modules() if isinstance(part, Headed))
    return next((part.backbone for part in headed), network)


def backbone_note(network: nn.Module) -> str:
    """Return a note on the initial weights of a backbone, or ''."""
    return as_backbone(bare_backbone(network)).note


def start_from(
    network: nn.Module, folder: Path, run: str, message: Callable[[str], None] | None
) -> float:
    """Load the weights of the finished run `run`, whose folder is beside `folder`.

    If the head of that run has another form, as for other classes, the backbone and the
    parts of the head that fit are loaded, and `message` is called with the others.
    Without `message`, such weights are refused.

    Returns:
        The seconds that `run` took.
    """
    parent = sibling(folder, run)
    checkpoint = read_checkpoint(parent, run, lambda _: None)
    state = None if checkpoint is None else state_from_dict(checkpoint["stand"])
    if checkpoint is None or state is None or not state.fitted:
        raise TrainingError(f"this run continues from run {run}, {_why_none(parent)}")
    weights, fresh = checkpoint["network"], network.state_dict()
    seconds = state.seconds + state.fit_seconds
    if _shapes(weights) == _shapes(fresh):
        network.load_state_dict(weights)
        return seconds
    alike = isinstance(network, Headed) and _same_backbone(weights, fresh)
    if message is None or not alike:
        raise TrainingError(
            f"this run continues from run {run}, whose network is another one; start"
            " from a run of the same network"
        )
    fitting = {
        name: part
        for name, part in weights.items()
        if name in fresh and part.shape == fresh[name].shape
    }
    network.load_state_dict(fitting, strict=False)
    if new := sorted(name for name in fresh if name not in fitting):
        message(
            f"the head of run {run} is for another task; these parts begin anew:"
            f" {', '.join(new)}"
        )
    return seconds


def _why_none(parent: Path) -> str:
    """Return why a run has no weights to continue from, and what to do."""
    if was_finished(parent):
        return (
            "which is finished, but its checkpoint is missing or damaged; delete"
            f" {parent} and run the same command: it trains that run again"
        )
    return f"which is not finished in {parent}; finish that one first"


_HEAD = ("head.", "fitted.")
"""Prefixes of the names of weights outside the backbone."""


def _same_backbone(weights: Mapping[str, Tensor], other: Mapping[str, Tensor]) -> bool:
    """Return whether everything but the heads has the same shape."""
    backbones = (
        {name: part for name, part in each.items() if not name.startswith(_HEAD)}
        for each in (weights, other)
    )
    first, second = map(_shapes, backbones)
    return first == second


def _shapes(weights: Mapping[str, Tensor]) -> dict[str, torch.Size]:
    return {name: part.shape for name, part in weights.items()}
