"""Training of an embedding: the input of a linear classifier, if there are classes."""

from collections.abc import Iterable

import torch
from torch import Tensor, nn

from qualms.methods import (
    Draw,
    Learning,
    class_likelihood,
    class_logits,
    class_readout,
    embed,
    embedding_readout,
)
from qualms.spec import Task


def _head(
    backbone: nn.Module, task: Task, outputs: int | None, projection: int | None
) -> nn.Module:
    """Return a class head on the features, or on a linear projection of them."""
    if task.classes is None:
        return embedding_readout(backbone, projection)
    count = outputs or (1 if task.classes == 2 else task.classes)
    return class_readout(backbone, count, projection=projection)


def _summarise(draws: Iterable[Draw], task: Task) -> dict[str, Tensor]:
    """Return the mean embedding (B, D), the class `predicted` (B,) and uncertainties.

    `predicted` is the class that is most probable on average. `uncertainty/entropy`
    (B,) is that of the mean probabilities in nats; several draws also have its two
    parts, `expected_entropy` and `mutual_information`. A network without classes has
    `uncertainty/inverse_norm`, one over the length of the embedding.
    """
    draws = list(draws)
    inputs = [draw.inputs for draw in draws if draw.inputs is not None]
    embedding = torch.stack(inputs).mean(0)
    if task.classes is None:
        length: Tensor = torch.linalg.vector_norm(embedding.double(), dim=1)
        tiny = torch.finfo(torch.float32).tiny
        return {
            "embedding": embedding,
            "uncertainty/inverse_norm": 1 / length.clamp(min=tiny),
        }
    # In float64, as in float32 all very certain items would have an entropy of 0.
    logs = torch.stack([class_logits(d.outputs).double().log_softmax(1) for d in draws])
    mean = logs.exp().mean(0)
    entropy = torch.special.entr(mean).sum(1)
    arrays = {"embedding": embedding, "uncertainty/entropy": entropy}
    if len(draws) > 1:
        expected = -(logs.exp() * logs).sum(2).mean(0)
        arrays["uncertainty/expected_entropy"] = expected
        # Rounding may leave the difference slightly below zero.
        arrays["uncertainty/mutual_information"] = entropy - expected
    return {**arrays, "predicted": mean.argmax(1)}


def _example_target(_x: Tensor, level: Tensor) -> Tensor:
    return (3 * level).long()


LEARNING = Learning(
    head=_head,
    loss=class_likelihood,
    summarise=_summarise,
    one_pass=embed,
    example=Task(name="embedding", classes=3),
    example_target=_example_target,
    needed=(("embedding",),),
)
