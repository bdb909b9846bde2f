"""Optimisers and learning rates.

The learning rate of an optimiser is a tensor, so that a recorded step follows it. The
schedules are those of the four papers: "constant" of Gustafsson et al. (2023), "step"
and "linear" of RETINA (Band et al., 2021), "polynomial" and "plateau" of VALUES (Kahl
et al., 2024), "cosine" of URL (Kirchhof et al., 2023). A method may bring a schedule,
which replaces them. All begin with a linear warm-up if the options ask for one.
"""

import math
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.optim import SGD, Adam, Optimizer, RMSprop

from qualms.training._lamb import Lamb
from qualms.training.options import Optimisation

Groups = list[dict[str, Any]]

_DECAY_AT = (30, 60)
_DECAY = 0.2
_FULL_LENGTH = 90
"""RETINA: the rate falls to a fifth at epochs 30 and 60 of 90."""
_POWER = 0.9
_REDUCE = 0.1
_THRESHOLD = 1e-4
"""VALUES: to a tenth after some epochs that did not lower the validation loss."""


class Rate(NamedTuple):
    """The learning rate of one parameter group, and its share of the common one."""

    value: Tensor
    scale: float


class OptimiserWithRates(NamedTuple):
    """An optimiser, and the learning rates that it reads at every step."""

    optimiser: Optimizer
    rates: list[Rate]


def make_optimiser(
    options: Optimisation, groups: Groups, device: torch.device
) -> OptimiserWithRates:
    """Return the optimiser of `options` for a method's parameter groups.

    A group may state `lr_scale`, which multiplies the learning rate, and any option of
    the optimiser.
    """
    # Fused kernels on a GPU read float32; elsewhere the rate is exact.
    dtype = torch.float32 if device.type == "cuda" else torch.float64
    rates, with_rates = [], []
    for group in _merged(groups, options):
        value = torch.tensor(options.lr, dtype=dtype, device=device)
        rates.append(Rate(value, group["lr_scale"]))
        others = {key: entry for key, entry in group.items() if key != "lr_scale"}
        with_rates.append({**others, "lr": value})
    optimiser = _build(options, with_rates, device.type == "cuda")
    return OptimiserWithRates(optimiser, rates)


def set_rates(rates: list[Rate], lr: Tensor) -> None:
    """Set the rate of every group to its share of `lr`, on the device."""
    for value, scale in rates:
        value.copy_(lr * scale if scale != 1.0 else lr)


def optimiser_state(optimiser: Optimizer) -> dict[str, Any]:
    """Return the state for a checkpoint; learning rates follow from the epoch."""
    state = optimiser.state_dict()
    groups = [{**group, "lr": 0.0} for group in state["param_groups"]]
    return {"state": state["state"], "param_groups": groups}


def restore_optimiser(with_rates: OptimiserWithRates, state: dict[str, Any]) -> None:
    """Load a state that `optimiser_state` returned."""
    optimiser, rates = with_rates
    optimiser.load_state_dict(state)
    for group, rate in zip(optimiser.param_groups, rates, strict=True):
        group["lr"] = rate.value


def _merged(groups: Groups, options: Optimisation) -> Groups:
    """Merge groups with equal options, since each group costs kernels of its own."""
    merged: dict[Hashable, dict[str, Any]] = {}
    for group in groups:
        others = {"weight_decay": options.weight_decay, "lr_scale": 1.0, **group}
        params = others.pop("params")
        key = tuple(sorted(others.items()))
        merged.setdefault(key, {"params": [], **others})["params"].extend(params)
    return list(merged.values())


def _build(options: Optimisation, groups: Groups, cuda: bool) -> Optimizer:
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


def _sgd(groups: Groups, options: Optimisation) -> SGD:
    """Return SGD with momentum; the velocity is in units of the gradient.

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
        # that leaves weights without a gradient would need.
        for group in optimiser.param_groups:
            for weight in group["params"]:
                velocity = torch.zeros_like(weight, memory_format=torch.preserve_format)
                optimiser.state[weight]["momentum_buffer"] = velocity
    return optimiser


@dataclass(frozen=True, slots=True, kw_only=True)
class Plateau:
    """State of the schedule "plateau" between epochs."""

    best: float = math.inf
    waited: int = 0
    factor: float = 1.0

    def after(self, loss: float, patience: int = 10) -> "Plateau":
        """Return the state after an epoch with this validation loss."""
        # A loss with a Dice term may be negative; lower is then further from zero.
        lower = 1 - math.copysign(_THRESHOLD, self.best)
        if loss < self.best * lower:
            return Plateau(best=loss, factor=self.factor)
        if self.waited < patience:
            return Plateau(best=self.best, waited=self.waited + 1, factor=self.factor)
        return Plateau(best=self.best, factor=self.factor * _REDUCE)


class EpochSteps(NamedTuple):
    """One epoch of a training."""

    epoch: int
    epochs: int
    """Epochs of the whole training."""
    steps: int
    """Steps of the epoch."""


def step_rates(
    options: Optimisation,
    span: EpochSteps,
    plateau: Plateau,
    schedule: Callable[[Tensor, int], Tensor] | None = None,
) -> Tensor:
    """Return the learning rate of each step of an epoch, (steps,) float64.

    `schedule` is that of a method, which replaces that of the options.
    """
    epoch, epochs, steps = span
    time = epoch + torch.arange(steps, dtype=torch.float64) / steps
    if schedule is not None:
        return _warmed(options.lr * schedule(time, epochs), time, options)
    if options.schedule == "cosine":  # with a warm-up of its own
        return torch.full_like(time, _cosine(epoch, epochs, options))
    return _warmed(_scheduled(time, epochs, options, plateau), time, options)


def _scheduled(
    time: Tensor, epochs: int, options: Optimisation, plateau: Plateau
) -> Tensor:
    match options.schedule:
        case "step":
            return _stairs(time, epochs, options)
        case "linear":
            return _line(time, epochs, options)
        case "polynomial":
            return options.lr * (1 - time / epochs) ** _POWER
        case "plateau":
            return torch.full_like(time, options.lr * plateau.factor)
        case _:
            return torch.full_like(time, options.lr)


def _warmed(rate: Tensor, time: Tensor, options: Optimisation) -> Tensor:
    """Replace the first of `rate` by a rise from 0 to the full rate."""
    if not options.warmup_epochs:
        return rate
    warm = options.lr * time / options.warmup_epochs
    return torch.where(time < options.warmup_epochs, warm, rate)


def _stairs(time: Tensor, epochs: int, options: Optimisation) -> Tensor:
    rate = torch.full_like(time, options.lr)
    for start in _DECAY_AT:
        rate[time >= start * epochs // _FULL_LENGTH] *= _DECAY
    return rate


def _line(time: Tensor, epochs: int, options: Optimisation) -> Tensor:
    # The released code counts the decay from step 0, as if there were no warm-up.
    length = max(1, epochs - options.warmup_epochs)
    done = (time / length).clamp(max=1)
    return options.lr * (1 - done * (1 - options.final_factor))


def _cosine(epoch: int, epochs: int, options: Optimisation) -> float:
    """Return the rate of an epoch; the cosine is not shifted by the warm-up."""
    if epoch < options.warmup_epochs:
        rise = (options.lr - options.warmup_lr) / options.warmup_epochs
        return options.warmup_lr + epoch * rise
    return 0.5 * options.lr * (1 + math.cos(math.pi * epoch / epochs))
