"""The record `Learning`: what a task states for training.

`tasks/<name>/learning.py` holds one as `LEARNING`; methods ask it through the functions
of the plain network, so that none of them names a task.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from torch import Tensor, nn

from qualms.methods._batch import Batch
from qualms.methods._headed import Draw, output_draw
from qualms.shelf import task_part
from qualms.spec import Task


def _one_term(_batch: Batch, _task: Task) -> int:
    return 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Learning:
    """Head, likelihood and draws of a task."""

    head: Callable[[nn.Module, Task, int | None, int | None], nn.Module]
    """From (backbone, task, outputs, projection) to the plain head."""
    loss: Callable[[Tensor, Batch, Task, float], Tensor]
    """From (outputs, batch, task, smoothing) to the mean negative log-likelihood."""
    summarise: Callable[[Iterable[Draw], Task], dict[str, Tensor]]
    """From draws to arrays of the predictions schema."""
    example: Task
    """A small task of this kind, on which methods are tried."""
    example_target: Callable[[Tensor, Tensor], Tensor]
    """From images (B, 1, *space) and their brightness (B,) from 0 to 1 to targets."""
    needed: tuple[tuple[str, ...], ...]
    """Arrays that `predict` of a method must return; of alternatives one is enough."""
    one_pass: Callable[[nn.Module, Tensor], Draw] = output_draw
    """From (network, x) to one draw."""
    terms: Callable[[Batch, Task], Tensor | int] = _one_term
    """Number of terms by which `loss` divides the likelihood of an item."""


def learning_of(task: Task) -> Learning:
    """Return what `task` states for training."""
    learning: Learning = task_part(task.name, "learning")
    return learning
