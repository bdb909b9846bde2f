"""Optimisers whose learning rate is a tensor, so that a recorded step follows it."""

from collections.abc import Hashable
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.optim import SGD, Adam, Optimizer, RMSprop

from qualms.training.lamb import Lamb
from qualms.training.options import Training

Groups = list[dict[str, Any]]


class Rate(NamedTuple):
    """The learning rate of one parameter group, and its share of the common one."""

    value: Tensor
    scale: float


class Tuned(NamedTuple):
    """An optimiser and the learning rates it reads at every step."""

    optimiser: Optimizer
    rates: list[Rate]


def make_optimiser(options: Training, groups: Groups, device: torch.device) -> Tuned:
    """The optimiser of `options` for a method's parameter groups.

    A group may state `lr_scale`, which multiplies the learning rate, and any option of
    the optimiser.
    """
    # Fused kernels on a GPU read float32; elsewhere the rate is exact.
    dtype = torch.float32 if device.type == "cuda" else torch.float64
    rates, held = [], []
    for group in _merged(groups, options):
        value = torch.tensor(options.lr, dtype=dtype, device=device)
        rates.append(Rate(value, group["lr_scale"]))
        kept = {key: entry for key, entry in group.items() if key != "lr_scale"}
        held.append({**kept, "lr": value})
    return Tuned(_build(options, held, device.type == "cuda"), rates)


def set_rates(rates: list[Rate], lr: Tensor) -> None:
    """Give every group its share of `lr`, on the device."""
    for value, scale in rates:
        value.copy_(lr * scale if scale != 1.0 else lr)


def optimiser_state(tuned: Tuned) -> dict[str, Any]:
    """What a checkpoint keeps of it; learning rates follow from the epoch."""
    state = tuned.optimiser.state_dict()
    groups = [{**group, "lr": 0.0} for group in state["param_groups"]]
    return {"state": state["state"], "param_groups": groups}


def restore_optimiser(tuned: Tuned, state: dict[str, Any]) -> None:
    """Go on from what `optimiser_state` gave."""
    tuned.optimiser.load_state_dict(state)
    for group, rate in zip(tuned.optimiser.param_groups, tuned.rates, strict=True):
        group["lr"] = rate.value


def _merged(groups: Groups, options: Training) -> Groups:
    """Groups that state the same as one: each costs kernels of its own."""
    merged: dict[Hashable, dict[str, Any]] = {}
    for group in groups:
        stated = {"weight_decay": options.weight_decay, "lr_scale": 1.0, **group}
        params = stated.pop("params")
        key = tuple(sorted(stated.items()))
        merged.setdefault(key, {"params": [], **stated})["params"].extend(params)
    return list(merged.values())


def _build(options: Training, groups: Groups, cuda: bool) -> Optimizer:
    lr, decay = groups[0]["lr"], options.weight_decay
    match options.optimiser:
        case "adam":
            return Adam(groups, lr, weight_decay=decay, fused=True, capturable=cuda)
        case "sgd":
            return _sgd(groups, options)
        case "rmsprop":
            return RMSprop(
                groups,
                lr,
                weight_decay=decay,
                momentum=options.momentum,
                foreach=cuda,
                capturable=cuda,
            )
        case "lamb":
            return Lamb(groups, lr=lr, weight_decay=decay)


def _sgd(groups: Groups, options: Training) -> SGD:
    """SGD with momentum; the velocity is in units of the gradient.

    Keras folds the learning rate into the velocity, which is the same only while the
    rate is constant.
    """
    optimiser = SGD(
        groups,
        groups[0]["lr"],
        momentum=options.momentum,
        weight_decay=options.weight_decay,
        nesterov=options.nesterov and options.momentum > 0,
        fused=True,
    )
    if options.momentum:
        # The fused kernel cannot start some velocities later than others, as a phase
        # that leaves weights without a gradient would ask of it.
        for group in optimiser.param_groups:
            for weight in group["params"]:
                velocity = torch.zeros_like(weight, memory_format=torch.preserve_format)
                optimiser.state[weight]["momentum_buffer"] = velocity
    return optimiser
