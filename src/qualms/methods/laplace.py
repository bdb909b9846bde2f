"""Last-layer Laplace (Daxberger et al., 2021, arXiv:2106.14806).

Trained as `map`, with whose weights it can predict. Then the weights of the last linear
layer get a Gaussian posterior; all else stays fixed. For regression that posterior is
exact and has a closed form, mean included. For classes it is Laplace's approximation at
the trained weights, with the full generalised Gauss-Newton matrix as curvature, or with
its Kronecker factors (Ritter et al., 2018): one of the features, one of the outputs.
The factors are exact where all items have the same probabilities.

The prior's precision and the noise maximise the marginal likelihood (MacKay, 1992), so
nothing needs tuning. The search works in an eigenbasis, on a logarithmic grid that
zooms in, so that it does not end in a local maximum.
"""

import math
from collections.abc import Callable, Iterator
from functools import partial
from typing import Literal, NamedTuple, get_args

import torch
from torch import Tensor, nn

from qualms.methods._batch import Batch, Batches
from qualms.methods._headed import (
    Embedded,
    FittedBuffers,
    Headed,
    Readout,
    headed,
    last_inputs,
    upsampled,
)
from qualms.methods._method import Method
from qualms.methods._plain import (
    class_logits,
    plain_head,
    plain_predict,
    summarise,
    summarise_embeddings,
)
from qualms.methods._windows import Windows
from qualms.spec import Task

Curvature = Literal["full", "kron"]

# A full curvature of more weights takes gigabytes, and hours to decompose.
_MOST_WEIGHTS = 12_000
_TOGETHER = 2**16
"""Eigenvalues that the search looks at together, for all its points."""
_ROWS = 2**18
"""Pixels whose curvature is added at once; in float64 they take 2 MB per feature."""
_CHANNELS = 32
"""Outputs of draws that are stitched at once, where images are seen through windows."""
_POINTS = 200
_ZOOMS = 6
# The range of the search, as factors of the largest eigenvalue: from no prior to a
# prior that outweighs the data.
_LOWEST, _HIGHEST = 1e-15, 1e6


def laplace(*, draws: int = 20, curvature: Curvature = "full") -> Method:
    """A mean and variance for regression, `draws` of the last layer for classes.

    Args:
        draws: draws of the last layer's weights, each of which serves all items.
        curvature: "full" for at most 12,000 weights, "kron" for the Kronecker factors,
            which take a large last layer. A regression is exact with either.
    """
    if draws < 1:
        raise ValueError(f"draws must be at least 1, got {draws}")
    if curvature not in get_args(Curvature):
        raise ValueError(f"curvature must be 'full' or 'kron', got {curvature!r}")
    return Method(
        build=partial(_build, curvature),
        predict=_predict,
        after=partial(_after, draws, curvature),
        trained_as="map",
    )


def _build(curvature: Curvature, backbone: nn.Module, task: Task) -> Headed:
    if task.name != "regression" and task.classes is None:
        raise ValueError(f"laplace needs a number of classes, got {task}")
    network = plain_head(backbone, task)
    regression = task.name == "regression"
    network.found = FittedBuffers(
        LinearPosterior._fields if regression else ("weights",)
    )
    last = _last(network)
    if regression and len(last.weight) != 1:
        raise ValueError(
            f"laplace needs one output of a regression, got {len(last.weight)}; it fits"
            " the variance itself"
        )
    if not regression:
        _check_size(last, curvature)
    return network


def _check_size(last: nn.Module, curvature: Curvature) -> None:
    count = sum(weight.numel() for weight in last.parameters())
    if curvature == "full" and count > _MOST_WEIGHTS:
        raise ValueError(
            f"laplace keeps the full curvature of at most {_MOST_WEIGHTS} last-layer "
            f"weights, got {count}; say curvature='kron', or choose a network with "
            "fewer features"
        )


def _after(
    draws: int, curvature: Curvature, network: nn.Module, batches: Batches
) -> None:
    whole = headed(network)
    if whole.task.name == "regression":
        _fit_values(whole, batches)
    else:
        _fit_classes(whole, batches, draws, _full if curvature == "full" else _kron)


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


class Spectrum(NamedTuple):
    """The curvature of K x P weights."""

    values: Tensor
    """(KP,) eigenvalues, the largest last."""
    weights: Callable[[Tensor], Tensor]
    """(M, KP) coordinates along the eigenvectors to weights (M, K, P)."""


def _fit_classes(
    network: Headed,
    batches: Batches,
    draws: int,
    decompose: Callable[[Tensor, Iterator[Tensor]], Spectrum],
) -> None:
    last = _last(network)
    assert last.bias is not None
    trained = torch.cat([last.weight.flatten(1), last.bias[:, None]], 1).double()
    parts = (r for batch in batches() for r in _labelled_rows(network, batch))
    values, weights = decompose(trained, parts)
    precision = prior_precision(values, trained.square().sum())
    noise = torch.randn(draws, len(values), dtype=values.dtype, device=values.device)
    shifts = weights(noise / (values.clamp(min=0.0) + precision).sqrt())
    _found(network).keep("weights", (trained + shifts).float())


def _full(trained: Tensor, parts: Iterator[Tensor]) -> Spectrum:
    """The spectrum of the whole curvature at weights (K, P), of rows (n, P)."""
    curvature = trained.new_zeros(*trained.shape * 2)
    for rows in parts:
        _add_curvature(curvature, rows, _output_probs(rows @ trained.T))
    values, basis = torch.linalg.eigh(curvature.view(trained.numel(), -1))
    return Spectrum(values, lambda noise: (noise @ basis.T).view(-1, *trained.shape))


def _kron(trained: Tensor, parts: Iterator[Tensor]) -> Spectrum:
    """The spectrum of the Kronecker factors: means over items, times their number."""
    wide, tall = trained.shape[1], len(trained)
    inputs, outputs = trained.new_zeros(wide, wide), trained.new_zeros(tall, tall)
    count = 0
    for rows in parts:
        probs = _output_probs(rows @ trained.T)
        inputs += rows.T @ rows
        outputs += probs.sum(0).diag() - probs.T @ probs
        count += len(rows)
    (a, across), (b, along) = map(torch.linalg.eigh, (inputs, outputs / max(count, 1)))
    values = torch.outer(b.clamp(min=0.0), a.clamp(min=0.0)).flatten()
    return Spectrum(values, lambda noise: along @ noise.view(-1, tall, wide) @ across.T)


def _labelled_rows(network: Headed, batch: Batch) -> Iterator[Tensor]:
    """The inputs (n, P) of the last layer for items, or for pixels with a label.

    Pixels come one item after another and in parts, as there are millions of them.
    """
    inputs = last_inputs(network, batch.x)
    size = len(inputs) if inputs.ndim == 2 else 1
    parts = (torch.split(values, size) for values in (inputs, batch.x, batch.target))
    ignore = -1 if network.task.ignore is None else network.task.ignore
    for some, image, target in zip(*parts, strict=True):
        flat = torch.split(_flat(upsampled(some, image)), _ROWS)
        known = torch.split(target.flatten(), _ROWS)
        for part, labels in zip(flat, known, strict=True):
            yield _rows(part)[labels != ignore]


def _output_probs(outputs: Tensor) -> Tensor:
    """Probabilities (n, K) of outputs (n, K): of class 1 alone if K is 1."""
    return class_logits(outputs).softmax(1)[:, -outputs.shape[1] :]


def _add_curvature(curvature: Tensor, rows: Tensor, probs: Tensor) -> None:
    """Add the Gauss-Newton blocks (C, P, C, P) of rows (n, P) with probs (n, C).

    One logit for two classes has the probabilities (n, 1) of class 1.
    """
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
    if task.name == "segmentation" and whole.windows is not None:
        return summarise(_stitched(whole, whole.windows, x), task)
    inputs = last_inputs(whole, x)
    if task.name != "regression":
        draws = (_outputs(inputs, weights) for weights in found.held("weights"))
        outputs = (upsampled(draw, x) for draw in draws)
        if task.name == "embedding":
            return summarise_embeddings((Embedded(inputs, o) for o in outputs), task)
        return summarise(outputs, task)
    rows = _rows(inputs)
    var = (rows @ found.held("factor")).square().sum(1) + found.held("noise")
    return {"mean": (rows @ found.held("mean"))[None], "var": var[None]}


def _stitched(network: Headed, windows: Windows, x: Tensor) -> Iterator[Tensor]:
    """Draws of the outputs; one pass over the windows gives a few of them."""
    weights = _found(network).held("weights")
    for some in torch.split(weights, max(1, _CHANNELS // weights.shape[1])):

        def side_by_side(window: Tensor, some: Tensor = some) -> Tensor:
            inputs = last_inputs(network, window)
            draws = torch.cat([_outputs(inputs, one) for one in some], 1)
            return upsampled(draws, window)

        yield from windows.stitched(side_by_side, x).chunk(len(some), 1)


def _last(network: Headed) -> nn.Linear | nn.Conv2d | nn.Conv3d:
    head = network.head
    assert isinstance(head, Readout)
    last = head.last
    if not isinstance(last, nn.Linear | nn.Conv2d | nn.Conv3d):
        raise ValueError(
            "laplace needs a network whose outputs are those of its last linear layer,"
            " and none is known here; name it, e.g. last='fc', or choose another method"
        )
    return last


def _found(network: Headed) -> FittedBuffers:
    assert isinstance(network.found, FittedBuffers)
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


class LinearPosterior(NamedTuple):
    """Gaussian over the P weights of a linear model with Gaussian noise."""

    mean: Tensor
    """(P,)."""
    factor: Tensor
    """(P, P) whose product with its transpose is the covariance."""
    noise: Tensor
    """0-d, variance of the noise."""


def linear_posterior(
    gram: Tensor, moment: Tensor, square: Tensor, count: int
) -> LinearPosterior:
    """The exact posterior of y = X w + noise, w Gaussian around 0, from float64 sums.

    `gram` (P, P) is X'X, `moment` (P,) is X'y, `square` is y'y and `count` the number
    of items. Only the ratio of the prior's precision to that of the noise is searched:
    given the ratio, all else has a closed form, the best noise included.
    """
    values, basis = torch.linalg.eigh(gram)
    values = values.clamp(min=0.0)
    turned = basis.T @ moment
    floor = square * 1e-14

    def residual(ratio: Tensor) -> Tensor:
        explained = (turned.square() / (values + ratio[:, None])).sum(1)
        left: Tensor = (square - explained).maximum(floor)
        return left

    def evidence(ratio: Tensor) -> Tensor:
        spread: Tensor = (ratio[:, None] / (values + ratio[:, None])).log().sum(1)
        return spread / 2 - count / 2 * residual(ratio).log()

    ratio = _most_probable(evidence, scale=values[-1])
    noise = residual(ratio[None])[0] / count
    mean = basis @ (turned / (values + ratio))
    return LinearPosterior(mean, basis * (noise / (values + ratio)).sqrt(), noise)


def prior_precision(values: Tensor, norm: Tensor) -> Tensor:
    """The precision of a Gaussian prior that makes the data most probable, 0-d.

    `values` (P,) are eigenvalues of the curvature at weights of squared length `norm`
    (Laplace's approximation).
    """
    values = values.clamp(min=0.0)

    def evidence(precision: Tensor) -> Tensor:
        point = precision[:, None]
        parts = torch.split(values, _TOGETHER)
        sums = [(point / (some + point)).log().sum(1) for some in parts]
        return (torch.stack(sums).sum(0) - precision * norm) / 2

    return _most_probable(evidence, scale=values[-1])


def _most_probable(evidence: Callable[[Tensor], Tensor], scale: Tensor) -> Tensor:
    """0-d argument at which `evidence` of points (K,) is largest."""
    low = scale.clamp(min=1e-12).log() + math.log(_LOWEST)
    high = low + math.log(_HIGHEST / _LOWEST)
    steps = torch.linspace(0.0, 1.0, _POINTS, dtype=low.dtype, device=low.device)
    for _ in range(_ZOOMS):
        points = low + (high - low) * steps
        best = int(evidence(points.exp()).argmax())
        low, high = points[max(best - 1, 0)], points[min(best + 1, _POINTS - 1)]
    return points[best].exp()
