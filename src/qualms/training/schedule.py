"""Learning rates of the four papers, one number per step.

"constant" is that of Gustafsson et al. (2023). "step" and "linear" are those of RETINA
(Band et al., 2021), "polynomial" and "plateau" those of VALUES (Kahl et al., 2024),
"cosine" that of URL (Kirchhof et al., 2023). A method may have a schedule of its own,
which then takes their place. All begin with a linear warm-up where one is asked for.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from qualms.training.options import Training

_DECAY_AT = (30, 60)
_DECAY = 0.2
_FULL_LENGTH = 90
"""RETINA: the rate falls to a fifth at epochs 30 and 60 of 90."""
_POWER = 0.9
_REDUCE = 0.1
_THRESHOLD = 1e-4
"""VALUES: to a tenth after some epochs that did not lower the validation loss."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plateau:
    """The memory of the schedule "plateau" between epochs."""

    best: float = math.inf
    waited: int = 0
    factor: float = 1.0

    def after(self, loss: float, patience: int = 10) -> "Plateau":
        """The memory once an epoch ended with this validation loss."""
        # A loss with a Dice term may be negative; lower is then further from zero.
        lower = 1 - math.copysign(_THRESHOLD, self.best)
        if loss < self.best * lower:
            return Plateau(best=loss, factor=self.factor)
        if self.waited < patience:
            return Plateau(best=self.best, waited=self.waited + 1, factor=self.factor)
        return Plateau(best=self.best, factor=self.factor * _REDUCE)


def rates(
    options: Training,
    *,
    epoch: int,
    steps: int,
    plateau: Plateau,
    own: Callable[[Tensor, int], Tensor] | None = None,
) -> Tensor:
    """Learning rate of each of the `steps` of `epoch`, (steps,) float64.

    `own` is the `schedule` of a method, which replaces that of the options.
    """
    time = epoch + torch.arange(steps, dtype=torch.float64) / steps
    if own is not None:
        return _warmed(options.lr * own(time, options.epochs), time, options)
    if options.schedule == "cosine":  # with a warm-up of its own
        return torch.full_like(time, _cosine(epoch, options))
    return _warmed(_scheduled(time, options, plateau), time, options)


def _scheduled(time: Tensor, options: Training, plateau: Plateau) -> Tensor:
    match options.schedule:
        case "step":
            return _stairs(time, options)
        case "linear":
            return _line(time, options)
        case "polynomial":
            return options.lr * (1 - time / options.epochs) ** _POWER
        case "plateau":
            return torch.full_like(time, options.lr * plateau.factor)
        case _:
            return torch.full_like(time, options.lr)


def _warmed(rate: Tensor, time: Tensor, options: Training) -> Tensor:
    """From 0 to the full rate over the warm-up, in place of `rate`."""
    if not options.warmup_epochs:
        return rate
    warm = options.lr * time / options.warmup_epochs
    return torch.where(time < options.warmup_epochs, warm, rate)


def _stairs(time: Tensor, options: Training) -> Tensor:
    rate = torch.full_like(time, options.lr)
    for start in _DECAY_AT:
        rate[time >= start * options.epochs // _FULL_LENGTH] *= _DECAY
    return rate


def _line(time: Tensor, options: Training) -> Tensor:
    # The released code counts the decay from step 0, as if there were no warm-up.
    length = max(1, options.epochs - options.warmup_epochs)
    done = (time / length).clamp(max=1)
    return options.lr * (1 - done * (1 - options.final_factor))


def _cosine(epoch: int, options: Training) -> float:
    """Constant within an epoch; the cosine is not shifted by the warm-up."""
    if epoch < options.warmup_epochs:
        rise = (options.lr - options.warmup_lr) / options.warmup_epochs
        return options.warmup_lr + epoch * rise
    return 0.5 * options.lr * (1 + math.cos(math.pi * epoch / options.epochs))
