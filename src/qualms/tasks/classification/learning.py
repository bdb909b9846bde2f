"""Training of a classifier: a linear head, and the cross-entropy.

Two classes have one logit, that of class 1.
"""

from collections.abc import Iterable

import torch
from torch import Tensor, nn

from qualms.methods import (
    Draw,
    Learning,
    class_likelihood,
    class_logits,
    class_readout,
    counted_classes,
)
from qualms.spec import Task


def _head(
    backbone: nn.Module, task: Task, outputs: int | None, projection: int | None
) -> nn.Module:
    classes = counted_classes(task)
    count = outputs or (1 if classes == 2 else classes)
    return class_readout(backbone, count, projection=projection)


def _summarise(draws: Iterable[Draw], _task: Task) -> dict[str, Tensor]:
    """Return probs (M, B, C)."""
    probs = [class_logits(draw.outputs).softmax(1) for draw in draws]
    return {"probs": torch.stack(probs)}


def _example_target(_x: Tensor, level: Tensor) -> Tensor:
    return (3 * level).long()


LEARNING = Learning(
    head=_head,
    loss=class_likelihood,
    summarise=_summarise,
    example=Task(name="classification", classes=3),
    example_target=_example_target,
    needed=(("probs", "prob"),),
)
