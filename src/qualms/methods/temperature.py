"""Temperature scaling (Guo et al., 2017, arXiv:1706.04599).

Trained as `map`, whose weights it can take over. One number then divides all logits:
the one with the smallest NLL on the split `val`, which training did not see. It changes
no predicted class. Pixels of label maps share one temperature.

If `val` also chose the epoch, or the benchmark fits something else on it, it is used
twice.
"""

from typing import NamedTuple

import torch
from torch import Tensor, nn

from qualms.methods._batch import Batch, Batches
from qualms.methods._headed import FittedBuffers, Headed, headed
from qualms.methods._method import Method
from qualms.methods._plain import class_logits, plain_head, plain_predict, summarise
from qualms.spec import Task

_PIXELS = 2**12
"""Largest number of random pixels of an item that the temperature is fitted to."""


def temperature() -> Method:
    """Predict the plain network's probabilities, as one draw, calibrated on `val`."""
    return Method(
        build=_build,
        predict=_predict,
        calibrate=_calibrate,
        trained_as="map",
        needs=("probabilities",),
    )


def _build(backbone: nn.Module, task: Task) -> Headed:
    network = plain_head(backbone, task)
    network.fitted = FittedBuffers(["temperature"])
    return network


class _LabelledProbs(NamedTuple):
    """Probabilities of items or pixels with a label."""

    probs: Tensor
    """(n, C) in float64."""
    target: Tensor
    """(n,)."""


def _calibrate(network: nn.Module, batches: Batches) -> None:
    from qualms.scores import fit_temperature  # compiles kernels

    network = headed(network)
    parts = [_labelled_probs(network, batch) for batch in batches()]
    probs, target = map(torch.cat, zip(*parts, strict=True))
    if not len(target):
        raise ValueError(
            "temperature needs items with a known class in the split 'val', and there "
            "are none; label some, or take the method 'map'"
        )
    fitted = fit_temperature(probs.numpy(), target.numpy())
    device = next((w.device for w in network.parameters()), torch.device("cpu"))
    _buffers(network).keep("temperature", torch.tensor(fitted.value, device=device))


def _labelled_probs(network: Headed, batch: Batch) -> _LabelledProbs:
    outputs, target = network(batch.x), batch.target.long()
    if target.ndim > 1:
        outputs, target = _random_pixels(outputs, target)
    ignore = -1 if network.task.ignore is None else network.task.ignore
    labelled = (target != ignore) & (target >= 0)
    probs = class_logits(outputs.double()).softmax(1)
    return _LabelledProbs(probs[labelled].cpu(), target[labelled].cpu())


def _random_pixels(outputs: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
    """Return outputs (n, K) and targets (n,) of random pixels, as many of each item."""
    flat = target.flatten(1)
    pixels = torch.randperm(flat.shape[1], device=flat.device)[:_PIXELS]
    chosen = outputs.flatten(2)[:, :, pixels].movedim(1, 2)
    return chosen.flatten(0, 1), flat[:, pixels].flatten()


def _predict(network: nn.Module, x: Tensor, task: Task) -> dict[str, Tensor]:
    buffers = _buffers(headed(network))
    if not buffers.ready:
        return plain_predict(network, x, task)
    return summarise([network(x) / buffers.get("temperature")], task)


def _buffers(network: Headed) -> FittedBuffers:
    assert isinstance(network.fitted, FittedBuffers)
    return network.fitted
