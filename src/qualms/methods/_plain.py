"""The plain network: the head of each task, its likelihood, and what it predicts.

How a network is laid out, and what `network(x)` is, stands in `_headed.py`. Two classes
are told apart by one logit z, that of class 1: it stands for the logits (0, z).
"""

from collections.abc import Iterable

import torch
from torch import Tensor, nn
from torch.nn import functional

from qualms.methods._batch import Batch, Moment
from qualms.methods._headed import (
    Headed,
    Readout,
    class_readout,
    features_of,
    headed,
    regression_readout,
)
from qualms.spec import Task


def plain_head(backbone: nn.Module, task: Task, outputs: int | None = None) -> Headed:
    """`backbone` with the head of `task`; regression has one hidden layer of 512.

    Args:
        backbone: what the head reads.
        task: what is predicted.
        outputs: logits of a classifier; None for one per class, or one in all for two
            classes. Nothing to choose for other tasks.
    """
    width = features_of(backbone)
    if task.name == "regression":
        return Headed(backbone, regression_readout(width), task)
    if task.classes is None or task.name == "embedding":
        raise ValueError(
            "the plain head serves regression, and classification and segmentation "
            f"with a number of classes, got {task}"
        )
    if task.name == "classification":
        fewest = 1 if task.classes == 2 else task.classes
        return Headed(backbone, class_readout(backbone, outputs or fewest), task)
    convolution = nn.Conv3d if task.space == 3 else nn.Conv2d
    last = convolution(width, task.classes, 1)
    return Headed(backbone, Readout(nn.Identity(), last), task)


def plain_loss(network: nn.Module, batch: Batch, _moment: Moment) -> Tensor:
    """Mean negative log-likelihood: cross-entropy, or the squared error."""
    return likelihood_loss(headed(network)(batch.x), batch, headed(network).task)


def likelihood_loss(outputs: Tensor, batch: Batch, task: Task) -> Tensor:
    """Mean loss of `outputs` (B, K, *space): cross-entropy, or the squared error.

    Pixels with the task's `ignore` label do not count; outputs (B, 1) of a classifier
    are the logit of class 1 of two.
    """
    if task.name == "regression":
        error = (outputs[:, 0] - batch.target.float()).square()
        return weighted_mean(error, batch)
    target = batch.target.long()
    loss = functional.cross_entropy(
        _logits(outputs), target, ignore_index=_ignored(task), reduction="none"
    )
    counted = _counted(target, task).to(loss.dtype)
    return weighted_mean(loss, batch) * counted.numel() / counted.sum().clamp(min=1)


def likelihood_terms(batch: Batch, task: Task) -> Tensor | int:
    """Terms of the likelihood that an item has: 1, or labelled pixels in the mean, 0-d.

    What `likelihood_loss` divides an item's own loss by, so a KL term has to be divided
    by it as well. A batch without a label counts as one that has all.
    """
    if task.name != "segmentation":
        return 1
    counted = _counted(batch.target.long(), task)
    labels = counted.sum()
    return torch.where(labels > 0, labels, counted.numel()) / len(counted)


def weighted_mean(loss: Tensor, batch: Batch) -> Tensor:
    """Mean of `loss` (B, *space), each item times its weight."""
    if batch.weight is None:
        return loss.mean()
    weight = batch.weight.view(-1, *(1,) * (loss.ndim - 1))
    return (loss * weight).mean()


def plain_predict(network: nn.Module, x: Tensor, task: Task) -> dict[str, Tensor]:
    """One draw: class probabilities, the mean, or the statistics of label maps."""
    return summarise([network(x)], task)


def passes(draws: int, network: nn.Module, x: Tensor, task: Task) -> dict[str, Tensor]:
    """As many draws as passes, each of another state of what is random in a network."""
    return summarise((network(x) for _ in range(draws)), task)


def check_epochs(*, warmup: int, frozen: int = 0) -> None:
    """Refuse lengths of training phases that are negative."""
    if warmup < 0 or frozen < 0:
        raise ValueError(
            "warmup and frozen are numbers of epochs, from 0 on, got "
            f"{warmup} and {frozen}"
        )


def summarise(draws: Iterable[Tensor], task: Task) -> dict[str, Tensor]:
    """Draws of the outputs (B, K, *space) as the arrays of the predictions schema.

    Classification: probs (M, B, C). Regression: mean (M, B). Segmentation: what scores
    need of M draws and no more, mean_probs (B, C, *space), expected_entropy
    (B, *space) in nats and draw_labels (M, B, *space).
    """
    if task.name == "regression":
        return {"mean": torch.stack([outputs[:, 0] for outputs in draws])}
    if task.name == "classification":
        probs = [_logits(outputs).softmax(1) for outputs in draws]
        return {"probs": torch.stack(probs)}
    return _label_maps(draws)


def _counted(target: Tensor, task: Task) -> Tensor:
    """Which of the labels count."""
    return target != _ignored(task)


def _ignored(task: Task) -> int:
    return -100 if task.ignore is None else task.ignore


def _logits(outputs: Tensor) -> Tensor:
    """One logit for each class."""
    if outputs.shape[1] > 1:
        return outputs
    return torch.cat([torch.zeros_like(outputs), outputs], 1)


def _label_maps(draws: Iterable[Tensor]) -> dict[str, Tensor]:
    labels = []
    probs = entropy = torch.zeros(())
    for outputs in draws:
        logs = outputs.log_softmax(1)
        here = logs.exp()
        probs = probs.to(here) + here
        entropy = entropy.to(here) - (here * logs).sum(1)
        labels.append(outputs.argmax(1).to(torch.uint8))
    return {
        "mean_probs": probs / len(labels),
        "expected_entropy": entropy / len(labels),
        "draw_labels": torch.stack(labels),
    }
