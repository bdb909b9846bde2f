"""Last-layer Laplace (Daxberger et al., 2021, arXiv:2106.14806).

The network is trained as it is. Then its last linear layer becomes a Gaussian over
weights, all else stays. For regression that posterior is exact and has a closed form,
mean included; for classes it is Laplace's approximation at the trained weights, with
the full generalised Gauss-Newton matrix as curvature. The prior's precision and the
noise are those of largest marginal likelihood, so nothing needs tuning.
"""

from functools import partial

import torch
from torch import Tensor, nn

from qualms.methods._evidence import LinearPosterior, linear_posterior, prior_precision
from qualms.methods._found import Found
from qualms.methods._headed import Headed, Readout, headed, last_inputs
from qualms.methods._method import Batches, Method
from qualms.methods._plain import plain_head, plain_predict, summarise
from qualms.spec import Task

# A full curvature of more weights takes gigabytes, and hours to decompose.
_MOST_WEIGHTS = 12_000


def laplace(*, draws: int = 20) -> Method:
    """A mean and variance for regression, `draws` of the last layer for classes.

    Args:
        draws: of the last layer's weights, each one network for all items.
    """
    if draws < 1:
        raise ValueError(f"draws must be at least 1, got {draws}")
    return Method(build=_build, predict=_predict, after=partial(_after, draws))


def _build(backbone: nn.Module, task: Task) -> Headed:
    # One logit for each class: the curvature below is that of a softmax.
    network = plain_head(backbone, task, task.classes)
    regression = task.name == "regression"
    network.found = Found(LinearPosterior._fields if regression else ("weights",))
    count = sum(weight.numel() for weight in _last(network).parameters())
    if not regression and count > _MOST_WEIGHTS:
        raise ValueError(
            f"laplace keeps the full curvature of at most {_MOST_WEIGHTS} last-layer "
            f"weights, got {count}; choose a network with fewer features"
        )
    return network


def _after(draws: int, network: nn.Module, batches: Batches) -> None:
    whole = headed(network)
    if whole.task.name == "regression":
        _fit_values(whole, batches)
    else:
        _fit_classes(whole, batches, draws)


def _fit_values(network: Headed, batches: Batches) -> None:
    gram = moment = square = torch.zeros((), dtype=torch.float64)
    count = 0
    for batch in batches():
        rows = _rows(last_inputs(network, batch.x))
        target = batch.target.double()
        gram, moment = rows.T @ rows + gram.to(rows), rows.T @ target + moment.to(rows)
        square = target @ target + square.to(rows)
        count += len(rows)
    posterior = linear_posterior(gram, moment, square, count)
    for name, values in zip(posterior._fields, posterior, strict=True):
        _found(network).keep(name, values)


def _fit_classes(network: Headed, batches: Batches, draws: int) -> None:
    last = _last(network)
    assert last.bias is not None
    trained = torch.cat([last.weight.flatten(1), last.bias[:, None]], 1).double()
    curvature = trained.new_zeros(*trained.shape * 2)
    for batch in batches():
        inputs = last_inputs(network, batch.x)
        probs = _outputs(inputs, trained.float()).softmax(1).double()
        ignore = -1 if network.task.ignore is None else network.task.ignore
        counted = batch.target.flatten() != ignore
        _add_curvature(curvature, _rows(inputs)[counted], _flat(probs)[counted])
    values, basis = torch.linalg.eigh(curvature.view(trained.numel(), -1))
    precision = prior_precision(values, trained.square().sum())
    noise = torch.randn(draws, len(values), dtype=values.dtype, device=values.device)
    shifts = (noise / (values.clamp(min=0.0) + precision).sqrt()) @ basis.T
    drawn = trained + shifts.view(draws, *trained.shape)
    _found(network).keep("weights", drawn.float())


def _add_curvature(curvature: Tensor, rows: Tensor, probs: Tensor) -> None:
    """Add the Gauss-Newton blocks (C, P, C, P) of rows (n, P) with probs (n, C)."""
    for c in range(probs.shape[1]):
        for other in range(c + 1):
            slope = probs[:, c] * (float(c == other) - probs[:, other])
            block = rows.T @ (slope[:, None] * rows)
            curvature[c, :, other] += block
            if other < c:
                curvature[other, :, c] += block


def _predict(network: nn.Module, x: Tensor, task: Task) -> dict[str, Tensor]:
    whole = headed(network)
    found = _found(whole)
    if not found.ready:
        return plain_predict(network, x, task)
    inputs = last_inputs(whole, x)
    if task.name != "regression":
        drawn = found.held("weights")
        return summarise((_outputs(inputs, weights) for weights in drawn), task)
    rows = _rows(inputs)
    var = (rows @ found.held("factor")).square().sum(1) + found.held("noise")
    return {"mean": (rows @ found.held("mean"))[None], "var": var[None]}


def _last(network: Headed) -> nn.Linear | nn.Conv2d | nn.Conv3d:
    head = network.head
    assert isinstance(head, Readout)
    assert isinstance(head.last, nn.Linear | nn.Conv2d | nn.Conv3d)
    return head.last


def _found(network: Headed) -> Found:
    assert isinstance(network.found, Found)
    return network.found


def _rows(inputs: Tensor) -> Tensor:
    """(n, F + 1) float64: one row for each item or pixel, 1 at its end for the bias."""
    rows = _flat(inputs).double()
    return torch.cat([rows, torch.ones_like(rows[:, :1])], 1)


def _flat(maps: Tensor) -> Tensor:
    return maps.movedim(1, -1).flatten(0, -2)


def _outputs(inputs: Tensor, weights: Tensor) -> Tensor:
    """Outputs (B, K, *space) of a last layer with weights (K, F + 1), bias last."""
    bias = weights[:, -1].view(-1, *(1,) * (inputs.ndim - 2))
    return torch.einsum("bf...,kf->bk...", inputs, weights[:, :-1]) + bias
