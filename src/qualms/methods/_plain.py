"""The plain network: the head of each task, its likelihood, and its predictions.

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
from qualms.methods._headed import (
    EmbeddingDraw,
    Headed,
    Readout,
    class_readout,
    embed,
    embedding_readout,
    features_of,
    headed,
    regression_readout,
)
from qualms.methods._layers import WITH_KERNELS
from qualms.networks import as_backbone
from qualms.spec import Task

_KERNEL_AXES = 2
_SMOOTH = 1e-5
"""Added to both sides of the Dice, which is then 1 for a class that is nowhere."""
_TWO = 2


def plain_head(
    backbone: nn.Module,
    task: Task,
    outputs: int | None = None,
    *,
    projection: int | None = None,
) -> Headed:
    """Return `backbone` with the head of `task`.

    Regression has one hidden layer of 512. An embedding is the input of the class head:
    the features, or a linear projection of them. Without a number of classes it has no
    class head. A backbone that is trained already brings its own head.

    Args:
        backbone: network that gives the features.
        task: what is predicted.
        outputs: numbers of the head of a classifier, or of a segmentation for each
            pixel; None for one logit per class, and for a classifier of two classes a
            single one. Other tasks leave nothing to choose.
        projection: width of the linear projection that is the embedding; None for the
            features themselves. For embeddings only.
    """
    if projection is not None and task.name != "embedding":
        raise ValueError(
            f"a projection is for the task embedding, got {task.name}; leave it out"
        )
    trained_head = as_backbone(backbone).trained_head
    if trained_head is not None:
        return Headed(backbone, trained_head(outputs), task)
    if task.name == "regression":
        return Headed(backbone, regression_readout(features_of(backbone)), task)
    if task.name == "embedding" and task.classes is None:
        return Headed(backbone, embedding_readout(backbone, projection), task)
    if task.classes is None:
        raise ValueError(
            f"the plain head of {task.name} needs a number of classes, got {task}"
        )
    if task.name == "segmentation":
        convolution = nn.Conv3d if task.space == 3 else nn.Conv2d
        last = convolution(features_of(backbone), outputs or task.classes, 1)
        return Headed(backbone, Readout(nn.Identity(), last), task)
    count = outputs or (1 if task.classes == 2 else task.classes)
    head = class_readout(backbone, count, projection=projection)
    return Headed(backbone, head, task)


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
    if smoothing and task is not None and task.name == "regression":
        raise ValueError(
            "smoothing is for labels of classes, and a regression has none; leave it "
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
    """Return the mean cross-entropy or squared error of `outputs` (B, K, *space).

    Pixels with the task's `ignore` label do not count. Outputs (B, 1) of a classifier
    are the logit of class 1 of two. `batch.loss` adds the Dice of label maps.
    """
    if task.name == "regression":
        error = (outputs[:, 0] - batch.target.float()).square()
        return weighted_mean(error, batch)
    if task.classes is None:
        raise ValueError(
            "the cross-entropy needs a number of classes, and this task has none; "
            "choose a dataset with classes, or a method whose loss needs none"
        )
    target = batch.target.long()
    loss = class_losses(outputs, target, task, smoothing=smoothing)
    counted = _counted(target, task)
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
    if task.name != "segmentation":
        return 1
    counted = _counted(batch.target.long(), task)
    labels = counted.sum()
    return torch.where(labels > 0, labels, counted.numel()) / len(counted)


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
    if task.name == "embedding":
        network = headed(network)
        return summarise_embeddings((embed(network, x) for _ in range(draws)), task)
    return summarise((network(x) for _ in range(draws)), task)


def summarise(draws: Iterable[Tensor], task: Task) -> dict[str, Tensor]:
    """Turn draws of the outputs (B, K, *space) into arrays of the predictions schema.

    Classification: probs (M, B, C). Regression: mean (M, B), and var (M, B) where the
    outputs are pairs of a mean and a variance. Segmentation: only what scores need of M
    draws, mean_probs (B, C, *space), expected_entropy (B, *space) in nats and
    draw_labels (M, B, *space).
    """
    if task.name == "regression":
        values = torch.stack(list(draws))
        return dict(zip(("mean", "var"), values.unbind(2), strict=False))
    if task.name == "classification":
        probs = [class_logits(outputs).softmax(1) for outputs in draws]
        return {"probs": torch.stack(probs)}
    return _label_maps(draws)


def summarise_embeddings(
    draws: Iterable[EmbeddingDraw], task: Task
) -> dict[str, Tensor]:
    """Turn draws of embeddings into arrays of the predictions schema.

    `embedding` (B, D) is the mean over draws and `predicted` (B,) the class that is
    most probable on average. `uncertainty/entropy` (B,) is that of the mean
    probabilities in nats; several draws also have its two parts, `expected_entropy` and
    `mutual_information`. A network without classes has `uncertainty/inverse_norm`, one
    over the length of the embedding.
    """
    draws = list(draws)
    embedding = torch.stack([draw.embedding for draw in draws]).mean(0)
    if task.classes is None:
        length: Tensor = torch.linalg.vector_norm(embedding.double(), dim=1)
        tiny = torch.finfo(torch.float32).tiny
        uncertainty = {"inverse_norm": 1 / length.clamp(min=tiny)}
        return _embedded(embedding, uncertainty)
    # In float64, as in float32 all very certain items would have an entropy of 0.
    logs = torch.stack([class_logits(d.outputs).double().log_softmax(1) for d in draws])
    mean = logs.exp().mean(0)
    uncertainty = {"entropy": torch.special.entr(mean).sum(1)}
    if len(draws) > 1:
        expected = -(logs.exp() * logs).sum(2).mean(0)
        uncertainty["expected_entropy"] = expected
        # Rounding may leave the difference slightly below zero.
        uncertainty["mutual_information"] = uncertainty["entropy"] - expected
    return {**_embedded(embedding, uncertainty), "predicted": mean.argmax(1)}


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


def _counted(target: Tensor, task: Task) -> Tensor:
    """Return which labels count."""
    return target != _ignored(task)


def _ignored(task: Task) -> int:
    return -100 if task.ignore is None else task.ignore


def class_logits(outputs: Tensor) -> Tensor:
    """Return one logit for each class, (B, C, *space), of outputs (B, K, *space)."""
    if outputs.shape[1] > 1:
        return outputs
    return torch.cat([torch.zeros_like(outputs), outputs], 1)


def _label_maps(draws: Iterable[Tensor]) -> dict[str, Tensor]:
    labels: list[Tensor] = []
    probs = entropy = torch.zeros(())
    for outputs in draws:
        if not labels:
            shape = (len(outputs), max(outputs.shape[1], _TWO), *outputs.shape[2:])
            probs = outputs.new_zeros(shape)
            entropy = outputs.new_zeros(probs[:, 0].shape)
        add = _add_two_classes if probs.shape[1] == _TWO else _add_classes
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


def _embedded(embedding: Tensor, uncertainty: dict[str, Tensor]) -> dict[str, Tensor]:
    named = {f"uncertainty/{name}": values for name, values in uncertainty.items()}
    return {"embedding": embedding, **named}
