"""Training of a segmentation: a 1x1 convolution, and the cross-entropy of pixels.

Predictions hold only what scores need of the draws, as all draws would not fit.
"""

from collections.abc import Iterable

import torch
from torch import Tensor, nn
from torch.nn import functional

from qualms.methods import (
    Batch,
    Draw,
    Learning,
    Readout,
    class_likelihood,
    counted_classes,
    counted_labels,
    features_of,
)
from qualms.spec import Task


def _head(
    backbone: nn.Module, task: Task, outputs: int | None, _projection: int | None
) -> nn.Module:
    classes = counted_classes(task)
    convolution = nn.Conv3d if task.space == 3 else nn.Conv2d
    last = convolution(features_of(backbone), outputs or classes, 1)
    return Readout(nn.Identity(), last)


def _terms(batch: Batch, task: Task) -> Tensor:
    """Return the mean number of labelled pixels; without labels, as if all had one."""
    counted = counted_labels(batch.target.long(), task)
    labels = counted.sum()
    return torch.where(labels > 0, labels, counted.numel()) / len(counted)


def _summarise(draws: Iterable[Draw], _task: Task) -> dict[str, Tensor]:
    """Return mean_probs, expected_entropy (B, *space) in nats, and draw_labels.

    `mean_probs` is (B, C, *space) and `draw_labels` (M, B, *space).
    """
    labels: list[Tensor] = []
    probs = entropy = torch.zeros(())
    for outputs, _ in draws:
        if not labels:
            shape = (len(outputs), max(outputs.shape[1], 2), *outputs.shape[2:])
            probs = outputs.new_zeros(shape)
            entropy = outputs.new_zeros(probs[:, 0].shape)
        add = _add_two_classes if probs.shape[1] == 2 else _add_classes
        labels.append(add(outputs.detach(), probs, entropy))
    return {
        "mean_probs": probs.div_(len(labels)),
        "expected_entropy": entropy.div_(len(labels)),
        "draw_labels": torch.stack(labels),
    }


def _add_classes(logits: Tensor, probs: Tensor, entropy: Tensor) -> Tensor:
    """Add a draw to the sums of probabilities and entropies; return its labels."""
    logs = logits.log_softmax(1)
    labels = logits.argmax(1)
    draw_probs = logs.exp()
    probs.add_(draw_probs)
    # The log of the largest probability has lost the digits of the others where these
    # are small; log1p of their sum keeps them.
    others = draw_probs.scatter_(1, labels[:, None], 0)
    entropy.sub_(logs.mul_(others).sum(1))
    rest = others.sum(1)
    entropy.addcmul_(rest.neg().log1p_(), 1 - rest, value=-1)
    return labels.to(torch.uint8)


def _add_two_classes(outputs: Tensor, probs: Tensor, entropy: Tensor) -> Tensor:
    """Add a draw as `_add_classes` does, faster, from the difference of two logits."""
    logit = outputs[:, -1] if outputs.shape[1] == 1 else outputs[:, 1] - outputs[:, 0]
    probs[:, 1].add_(logit.sigmoid())
    probs[:, 0].add_(logit.neg().sigmoid_())
    # H = log(1 + exp(-|z|)) + |z| p, where p is the smaller probability.
    size = logit.abs().neg_()
    entropy.add_(functional.softplus(size)).addcmul_(size, size.sigmoid(), value=-1)
    return (logit > 0).view(torch.uint8)


IGNORED = 255


def _example_target(x: Tensor, _level: Tensor) -> Tensor:
    target = (x[:, 0] > 0.3).long() + (x[:, 0] > 0.7).long()
    target[:, 0] = IGNORED
    return target


LEARNING = Learning(
    head=_head,
    loss=class_likelihood,
    summarise=_summarise,
    terms=_terms,
    example=Task(name="segmentation", classes=3, ignore=IGNORED),
    example_target=_example_target,
    needed=(("mean_probs",), ("expected_entropy",), ("draw_labels",)),
)
