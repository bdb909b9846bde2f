"""The plain network: its head, its likelihood and its predictions, as a task has them.

`_headed.py` says how a network is laid out and what `network(x)` is. Two classes have
one logit z, that of class 1: it stands for the logits (0, z).
"""

from collections.abc import Iterable, Iterator
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from qualms.methods._batch import Batch, Moment
from qualms.methods._flipout import Flipout
from qualms.methods._headed import Draw, Headed, headed
from qualms.methods._layers import WITH_KERNELS
from qualms.methods._learning import learning_of
from qualms.networks import as_backbone
from qualms.shelf import traits
from qualms.spec import Task

_KERNEL_AXES = 2
_SMOOTH = 1e-5
"""Added to both sides of the Dice, which is then 1 for a class that is nowhere."""


def plain_head(
    backbone: nn.Module,
    task: Task,
    outputs: int | None = None,
    *,
    projection: int | None = None,
) -> Headed:
    """Return `backbone` with the head of `task`.

    A backbone that is trained already brings its own head.

    Args:
        backbone: network that gives the features.
        task: what is predicted.
        outputs: numbers of the head of a classifier, or of a segmentation for each
            pixel; None for one logit per class, and for a classifier of two classes a
            single one. Other tasks leave nothing to choose.
        projection: width of the linear projection that is the embedding; None for the
            features themselves. For embeddings only.
    """
    if projection is not None and "vectors" not in traits(task.name):
        raise ValueError(
            f"a projection is for the task embedding, got {task.name}; leave it out"
        )
    trained_head = as_backbone(backbone).trained_head
    if trained_head is not None:
        return Headed(backbone, trained_head(outputs), task)
    head = learning_of(task).head(backbone, task, outputs, projection)
    return Headed(backbone, head, task)


def counted_classes(task: Task) -> int:
    """Return the number of classes that a plain head needs; raise if there is none."""
    if task.classes is None:
        raise ValueError(
            f"the plain head of {task.name} needs a number of classes, got {task}"
        )
    return task.classes


def plain_loss(network: nn.Module, batch: Batch, _moment: Moment) -> Tensor:
    """Return the mean negative log-likelihood: cross-entropy, or squared error."""
    network = headed(network)
    return likelihood_loss(network(batch.x), batch, network.task)


def smoothed_loss(
    smoothing: float, network: nn.Module, batch: Batch, _moment: Moment
) -> Tensor:
    """Return the mean cross-entropy of labels that are smoothed over all classes."""
    network = headed(network)
    return likelihood_loss(network(batch.x), batch, network.task, smoothing=smoothing)


def check_smoothing(smoothing: float, task: Task | None = None) -> None:
    """Raise unless `smoothing` is in [0, 1) and the task has class labels."""
    if not 0 <= smoothing < 1:
        raise ValueError(f"smoothing must be at least 0 and below 1, got {smoothing}")
    if smoothing and task is not None and "classes" not in traits(task.name):
        raise ValueError(
            f"smoothing is for labels of classes, and a {task.name} has none; leave it "
            "out"
        )


def classes_of(task: Task, method: str) -> int:
    """Return the number of classes of `task`; raise if it states none."""
    if task.classes is None:
        raise ValueError(
            f"{method} needs a number of classes, and this task has none; choose a "
            "dataset with classes"
        )
    return task.classes


def likelihood_loss(
    outputs: Tensor, batch: Batch, task: Task, *, smoothing: float = 0.0
) -> Tensor:
    """Return the mean negative log-likelihood of `outputs` (B, K, *space).

    For classes it is the cross-entropy, for values the squared error.
    """
    return learning_of(task).loss(outputs, batch, task, smoothing)


def class_likelihood(
    outputs: Tensor, batch: Batch, task: Task, smoothing: float
) -> Tensor:
    """Return the mean cross-entropy of `outputs` (B, K, *space).

    Pixels with the task's `ignore` label do not count. Outputs (B, 1) are the logit of
    class 1 of two. `batch.loss` adds the Dice of label maps.
    """
    if task.classes is None:
        raise ValueError(
            "the cross-entropy needs a number of classes, and this task has none; "
            "choose a dataset with classes, or a method whose loss needs none"
        )
    target = batch.target.long()
    loss = class_losses(outputs, target, task, smoothing=smoothing)
    counted = counted_labels(target, task)
    number = counted.to(loss.dtype).sum().clamp(min=1)
    likelihood = weighted_mean(loss, batch) * counted.numel() / number
    if batch.loss == "likelihood":
        return likelihood
    dice = soft_dice(class_logits(outputs).softmax(1), target, counted)
    return likelihood - weighted_mean(dice, batch)


def class_losses(
    outputs: Tensor, target: Tensor, task: Task, *, smoothing: float = 0.0
) -> Tensor:
    """Return the cross-entropy (B, *space) of items or pixels; 0 without a label."""
    return functional.cross_entropy(
        class_logits(outputs),
        target.long(),
        ignore_index=_ignored(task),
        reduction="none",
        label_smoothing=smoothing,
    )


def soft_dice(probs: Tensor, target: Tensor, counted: Tensor) -> Tensor:
    """Return the soft Dice (B,) of each item, a mean over classes (Kahl et al., 2024).

    A class that an item does not have counts as well: its Dice is near 0 if the network
    gives it more than a trace of probability.

    Args:
        probs: (B, C, *space).
        target: (B, *space) classes.
        counted: (B, *space) True where a pixel counts.
    """
    classes = torch.arange(probs.shape[1], device=probs.device)
    classes = classes.view(-1, *(1,) * (target.ndim - 1))
    true = (target[:, None] == classes) & counted[:, None]
    space = tuple(range(2, probs.ndim))
    overlap = (probs * true).sum(space)
    sizes = (probs * counted[:, None]).sum(space) + true.sum(space)
    return ((2 * overlap + _SMOOTH) / (sizes + _SMOOTH)).mean(1)


def likelihood_terms(batch: Batch, task: Task) -> Tensor | int:
    """Return the terms of the likelihood per item: 1, or the mean of labelled pixels.

    `likelihood_loss` divides the loss of an item by this number, so a KL term has to be
    divided by it as well. A batch without any label counts as if all were labelled.
    """
    return learning_of(task).terms(batch, task)


def weighted_mean(loss: Tensor, batch: Batch) -> Tensor:
    """Return the mean of `loss` (B, *space), each item times its weight."""
    if batch.weight is None:
        return loss.mean()
    weight = batch.weight.view(-1, *(1,) * (loss.ndim - 1))
    return (loss * weight).mean()


def plain_predict(network: nn.Module, x: Tensor, task: Task) -> dict[str, Tensor]:
    """Predict by one pass, as one draw."""
    return passes(1, network, x, task)


def passes(draws: int, network: nn.Module, x: Tensor, task: Task) -> dict[str, Tensor]:
    """Predict by one pass per draw, for networks that are random in each pass."""
    return summarise((one_pass(network, x, task) for _ in range(draws)), task)


def one_pass(network: nn.Module, x: Tensor, task: Task) -> Draw:
    """Return one draw of a network."""
    return learning_of(task).one_pass(network, x)


def summarise(draws: Iterable[Draw | Tensor], task: Task) -> dict[str, Tensor]:
    """Turn draws of a network into arrays of the predictions schema.

    A draw is outputs (B, K, *space), or a `Draw` for tasks that keep the inputs of the
    last layer as well.
    """
    named = (d if isinstance(d, Draw) else Draw(d) for d in draws)
    return learning_of(task).summarise(named, task)


def check_epochs(*, warmup: int, frozen: int = 0) -> None:
    """Raise unless the lengths of training phases are at least 0."""
    if warmup < 0 or frozen < 0:
        raise ValueError(
            "warmup and frozen are numbers of epochs, at least 0, got "
            f"{warmup} and {frozen}"
        )


def kernels_decay(
    network: nn.Module, apart: Iterable[Tensor] = ()
) -> list[dict[str, Any]]:
    """Return parameter groups in which weight decay acts on kernels only.

    Kernels are the weights of convolutions and linear layers. Biases, the parameters of
    normalisation, gains, and embeddings of classes and positions do not decay.
    Parameters without a gradient are left out.

    Args:
        network: network with the parameters.
        apart: parameters with a group of their own, which are left out too.
    """
    excluded = {id(weight) for weight in apart}
    kernels = {id(weight) for weight in _kernels(network)}
    trained = [
        weight
        for weight in network.parameters()
        if weight.requires_grad and id(weight) not in excluded
    ]
    decaying: dict[str, Any] = {"params": [w for w in trained if id(w) in kernels]}
    steady: dict[str, Any] = {"params": [w for w in trained if id(w) not in kernels]}
    steady["weight_decay"] = 0.0
    return [group for group in (decaying, steady) if group["params"]]


def _kernels(network: nn.Module) -> Iterator[nn.Parameter]:
    for layer in network.modules():
        if not isinstance(layer, (*WITH_KERNELS, Flipout)):
            continue
        # All within, as a parametrisation keeps the weight in a module of its own.
        for name, weight in layer.named_parameters():
            if weight.ndim >= _KERNEL_AXES and "bias" not in name:
                yield weight


def counted_labels(target: Tensor, task: Task) -> Tensor:
    """Return which labels count."""
    return target != _ignored(task)


def _ignored(task: Task) -> int:
    return -100 if task.ignore is None else task.ignore


def class_logits(outputs: Tensor) -> Tensor:
    """Return one logit for each class, (B, C, *space), of outputs (B, K, *space)."""
    if outputs.shape[1] > 1:
        return outputs
    return torch.cat([torch.zeros_like(outputs), outputs], 1)
