"""Last-layer Laplace (Daxberger et al., 2021, arXiv:2106.14806).

Trained as `map`, whose weights it can take over. Then the weights of the last linear
layer get a Gaussian posterior; all other weights stay fixed. For regression that
posterior is exact and has a closed form, mean included. For classes it is Laplace's
approximation at the trained weights, with the full generalised Gauss-Newton matrix as
curvature, or with its Kronecker factors (Ritter et al., 2018): one of the features, one
of the outputs. The factors are exact where all items have the same probabilities.

The logits of an item are then Gaussian, and its mean probabilities have a closed form
(`_gaussian_logits.py`). The mean of a few draws of the weights, which are the same for
all items, errs alike on all of them: with 20 draws of a wide posterior a classifier
loses much of its accuracy. Draws therefore only say how the probabilities spread around
the mean. The pixels of an image need draws of the weights themselves; these come in
mirrored pairs, whose mean outputs are those of the trained network.

The prior's precision and the noise maximise the marginal likelihood (`_evidence.py`),
so nothing needs tuning.
"""

import math
from collections.abc import Callable, Iterator
from functools import partial
from typing import Literal, NamedTuple, get_args

import torch
from torch import Tensor, nn

from qualms.methods._batch import Batch, Batches
from qualms.methods._evidence import (
    LinearPosterior,
    linear_posterior,
    prior_precision,
)
from qualms.methods._gaussian_logits import draw_probs, even_noise
from qualms.methods._headed import (
    Draw,
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
)
from qualms.methods._windows import Windows
from qualms.shelf import traits
from qualms.spec import Task

Curvature = Literal["full", "kron"]
Mean = Literal["probit", "draws"]

# A full curvature of more weights takes gigabytes, and hours to decompose.
_MOST_WEIGHTS = 12_000
_ROWS = 2**18
"""Pixels whose curvature is added at once; in float64 they take 2 MB per feature."""
_EXACT = 3000
"""Most weights whose full covariance is kept."""
_DIRECTIONS = 1000
"""Draws that stand for the covariance of more weights: a checkpoint would grow with the
square of their number. A variance then errs by 4 %."""
_SUMMARISED = 200
"""Least number of draws where predictions hold only what follows from all of them."""
_NUMBERS = 2**23
"""Numbers that the outputs of items in the eigenbasis take at once."""
_CHANNELS = 32
"""Outputs of draws that are stitched at once, where images are seen through windows."""


def laplace(
    *, draws: int = 20, curvature: Curvature = "full", mean: Mean = "probit"
) -> Method:
    """Predict a mean and variance in regression, `draws` of the last layer for classes.

    Args:
        draws: draws of the logits of each item; for embeddings at least 200, as only
            their entropies are kept. For segmentation, draws of the weights of the last
            layer, each of which serves all pixels.
        curvature: "full" for at most 12,000 weights, "kron" for the Kronecker factors,
            which take a large last layer. A regression is exact with either.
        mean: "probit" for mean probabilities in closed form (for segmentation, draws in
            mirrored pairs). "draws" for the mean of independent draws of the weights,
            which all items share; it takes hundreds of them.
    """
    if draws < 1:
        raise ValueError(f"draws must be at least 1, got {draws}")
    if curvature not in get_args(Curvature):
        raise ValueError(f"curvature must be 'full' or 'kron', got {curvature!r}")
    if mean not in get_args(Mean):
        raise ValueError(f"mean must be 'probit' or 'draws', got {mean!r}")
    return Method(
        build=partial(_build, curvature),
        predict=_predict,
        after=partial(_after, draws, curvature, mean),
        trained_as="map",
        header={"draws": "models"},
    )


def _build(curvature: Curvature, backbone: nn.Module, task: Task) -> Headed:
    regression = "values" in traits(task.name)
    if not regression and task.classes is None:
        raise ValueError(f"laplace needs a number of classes, got {task}")
    network = plain_head(backbone, task)
    network.fitted = FittedBuffers(
        LinearPosterior._fields if regression else _OF_CLASSES
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
    draws: int,
    curvature: Curvature,
    mean: Mean,
    network: nn.Module,
    batches: Batches,
) -> None:
    network = headed(network)
    kind = traits(network.task.name)
    if "values" in kind:
        _fit_regression(network, batches)
        return
    posterior = _fit_classes(network, batches, _full if curvature == "full" else _kron)
    if mean == "draws" or "pixels" in kind:
        _keep_weights(network, posterior, draws, mirrored=mean != "draws")
    else:
        _keep_posterior(network, posterior, draws)


def _fit_regression(network: Headed, batches: Batches) -> None:
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
        _buffers(network).keep(name, values)


_OF_CLASSES = ("weights", "factor", "of_outputs", "of_inputs", "variances", "noise")
"""Buffers of a classifier: draws of its `weights`; or its posterior, as one `factor` or
as bases of the Kronecker factors with `variances`, and the `noise` of draws."""


class ClassPosterior(NamedTuple):
    """Gaussian over the K x P weights of a classifier, in an eigenbasis."""

    mean: Tensor
    """(K, P) trained weights."""
    bases: tuple[Tensor, ...]
    """Eigenvectors (KP, KP) as columns; or those of the Kronecker factors, of the
    outputs (K, K) and of the inputs (P, P)."""
    roots: Tensor
    """(KP,) roots of the precisions along them."""

    def weights(self, noise: Tensor) -> Tensor:
        """Return draws (M, K, P) of the weights, from standard normal `noise`."""
        return self.mean + to_weights(self.bases, noise / self.roots, self.mean)


def to_weights(bases: tuple[Tensor, ...], coordinates: Tensor, like: Tensor) -> Tensor:
    """Return weights (M, K, P) of coordinates (M, KP) along the eigenvectors."""
    if len(bases) == 1:
        return (coordinates @ bases[0].T).view(-1, *like.shape)
    outputs, inputs = bases
    return outputs @ coordinates.view(-1, *like.shape) @ inputs.T


def _fit_classes(
    network: Headed,
    batches: Batches,
    decompose: Callable[[Tensor, Iterator[Tensor]], tuple[Tensor, ...]],
) -> ClassPosterior:
    last = _last(network)
    assert last.bias is not None
    trained = torch.cat([last.weight.flatten(1), last.bias[:, None]], 1).double()
    parts = (r for batch in batches() for r in _labelled_rows(network, batch))
    values, *bases = decompose(trained, parts)
    precision = prior_precision(values, trained.square().sum())
    roots = (values.clamp(min=0.0) + precision).sqrt()
    return ClassPosterior(trained, tuple(bases), roots)


def _keep_weights(
    network: Headed, posterior: ClassPosterior, draws: int, *, mirrored: bool
) -> None:
    """Keep draws of the weights: independent ones, or `mirrored` pairs."""
    like = posterior.roots
    number = -(-draws // 2) if mirrored else draws
    noise = torch.randn(number, len(like), dtype=like.dtype, device=like.device)
    if mirrored:
        noise = torch.cat([noise, -noise])[:draws]
    _buffers(network).keep("weights", posterior.weights(noise).float())


def _keep_posterior(network: Headed, posterior: ClassPosterior, draws: int) -> None:
    """Keep the Gaussian of the weights, and noise for draws of the logits."""
    buffers, roots = _buffers(network), posterior.roots
    shape = posterior.mean.shape
    if len(posterior.bases) == 1:
        factor = _factor(posterior).view(*shape, -1)
        buffers.keep("factor", factor.movedim(1, 0).contiguous().float())
    else:
        of_outputs, of_inputs = posterior.bases
        buffers.keep("of_outputs", of_outputs.float())
        buffers.keep("of_inputs", of_inputs.float())
        buffers.keep("variances", roots.square().reciprocal().view(shape).float())
    summarised = "vectors" in traits(network.task.name)
    number = max(draws, _SUMMARISED) if summarised else draws
    buffers.keep("noise", even_noise(number, shape[0], roots.device))


def _factor(posterior: ClassPosterior) -> Tensor:
    """Return a matrix (KP, R) whose product with its transpose is the covariance."""
    (basis,), roots = posterior.bases, posterior.roots
    count = len(roots)
    if count <= _EXACT:
        return basis / roots
    noise = torch.randn(count, _DIRECTIONS, dtype=basis.dtype, device=basis.device)
    return basis @ (noise / roots[:, None]) / math.sqrt(_DIRECTIONS)


def _full(trained: Tensor, parts: Iterator[Tensor]) -> tuple[Tensor, Tensor]:
    """Return eigenvalues and vectors of the full curvature, from rows (n, P)."""
    curvature = trained.new_zeros(*trained.shape * 2)
    for rows in parts:
        _add_curvature(curvature, rows, _output_probs(rows @ trained.T))
    values, basis = torch.linalg.eigh(curvature.view(trained.numel(), -1))
    return values, basis


def _kron(trained: Tensor, parts: Iterator[Tensor]) -> tuple[Tensor, Tensor, Tensor]:
    """Decompose the Kronecker factors: means over items, times their number."""
    classes, width = trained.shape
    inputs = trained.new_zeros(width, width)
    outputs = trained.new_zeros(classes, classes)
    count = 0
    for rows in parts:
        probs = _output_probs(rows @ trained.T)
        inputs += rows.T @ rows
        outputs += probs.sum(0).diag() - probs.T @ probs
        count += len(rows)
    a, of_inputs = torch.linalg.eigh(inputs)
    b, of_outputs = torch.linalg.eigh(outputs / max(count, 1))
    values = torch.outer(b.clamp(min=0.0), a.clamp(min=0.0)).flatten()
    return values, of_outputs, of_inputs


def _labelled_rows(network: Headed, batch: Batch) -> Iterator[Tensor]:
    """Yield inputs (n, P) of the last layer for items, or for pixels with a label.

    Pixels come item by item and in parts, as there are millions of them.
    """
    inputs = last_inputs(network, batch.x)
    size = len(inputs) if inputs.ndim == 2 else 1
    parts = (torch.split(values, size) for values in (inputs, batch.x, batch.target))
    ignore = -1 if network.task.ignore is None else network.task.ignore
    for features, image, target in zip(*parts, strict=True):
        pixels = torch.split(_flat(upsampled(features, image)), _ROWS)
        labels = torch.split(target.flatten(), _ROWS)
        for some_pixels, their_labels in zip(pixels, labels, strict=True):
            yield _rows(some_pixels)[their_labels != ignore]


def _output_probs(outputs: Tensor) -> Tensor:
    """Return the probabilities (n, K) of outputs (n, K): of class 1 alone if K is 1."""
    return class_logits(outputs).softmax(1)[:, -outputs.shape[1] :]


def _add_curvature(curvature: Tensor, rows: Tensor, probs: Tensor) -> None:
    """Add the Gauss-Newton blocks (C, P, C, P) of rows (n, P) with probs (n, C).

    For one logit of two classes `probs` (n, 1) is that of class 1.
    """
    for c in range(probs.shape[1]):
        for other in range(c + 1):
            slope = probs[:, c] * (float(c == other) - probs[:, other])
            block = rows.T @ (slope[:, None] * rows)
            curvature[c, :, other] += block
            if other < c:
                curvature[other, :, c] += block


def _predict(network: nn.Module, x: Tensor, task: Task) -> dict[str, Tensor]:
    network = headed(network)
    buffers = _buffers(network)
    if "values" in traits(task.name):
        return _regression(network, x, task)
    if buffers.has("weights"):
        return _weight_draws(network, x, task)
    if not buffers.has("noise"):
        return plain_predict(network, x, task)
    inputs = last_inputs(network, x)
    probs = _logit_draws(network, inputs)
    if "vectors" not in traits(task.name):
        return {"probs": probs.float()}
    logs = probs.clamp(min=torch.finfo(probs.dtype).tiny).log()
    return summarise((Draw(each, inputs) for each in logs), task)


def _regression(network: Headed, x: Tensor, task: Task) -> dict[str, Tensor]:
    buffers = _buffers(network)
    if not buffers.ready:
        return plain_predict(network, x, task)
    rows = _rows(last_inputs(network, x))
    var = (rows @ buffers.get("factor")).square().sum(1) + buffers.get("noise")
    return {"mean": (rows @ buffers.get("mean"))[None], "var": var[None]}


def _weight_draws(network: Headed, x: Tensor, task: Task) -> dict[str, Tensor]:
    """Predict by draws of the weights, which all items and pixels share."""
    if "pixels" in traits(task.name) and network.windows is not None:
        return summarise(_stitched(network, network.windows, x), task)
    inputs = last_inputs(network, x)
    draws = (_outputs(inputs, weights) for weights in _buffers(network).get("weights"))
    outputs = (Draw(upsampled(draw, x), inputs) for draw in draws)
    return summarise(outputs, task)


def _logit_draws(network: Headed, inputs: Tensor) -> Tensor:
    """Return probabilities (M, B, C) of draws, whose mean is in closed form."""
    buffers = _buffers(network)
    together = max(1, _NUMBERS // _numbers_each(buffers))
    with torch.autocast(inputs.device.type, enabled=False):
        parts = [
            draw_probs(
                _last(network)(some).double(),
                _output_covariance(buffers, _rows(some).float()),
                buffers.get("noise"),
            )
            for some in torch.split(inputs, together)
        ]
    return torch.cat(parts, 1)


def _numbers_each(buffers: FittedBuffers) -> int:
    """Return how many numbers the draws of one item need on the way."""
    if buffers.has("factor"):
        numbers = buffers.get("factor")[0].numel()
    else:
        numbers = buffers.get("of_outputs").numel()
    return max(numbers, buffers.get("noise").numel())


def _output_covariance(buffers: FittedBuffers, rows: Tensor) -> Tensor:
    """Return the covariance (B, K, K) of the outputs of rows (B, P), in float64."""
    if buffers.has("factor"):
        factor = buffers.get("factor")
        turned = (rows @ factor.flatten(1)).view(-1, *factor.shape[1:]).double()
        return turned @ turned.mT
    basis = buffers.get("of_outputs").double()
    lengths = (rows @ buffers.get("of_inputs")).square() @ buffers.get("variances").T
    return (basis * lengths.double()[:, None]) @ basis.T


def _stitched(network: Headed, windows: Windows, x: Tensor) -> Iterator[Tensor]:
    """Yield draws of the outputs; one pass over the windows gives a few of them."""
    weights = _buffers(network).get("weights")
    for sets in torch.split(weights, max(1, _CHANNELS // weights.shape[1])):

        def side_by_side(window: Tensor, sets: Tensor = sets) -> Tensor:
            inputs = last_inputs(network, window)
            draws = torch.cat([_outputs(inputs, weights) for weights in sets], 1)
            return upsampled(draws, window)

        yield from windows.stitched(side_by_side, x).chunk(len(sets), 1)


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


def _buffers(network: Headed) -> FittedBuffers:
    assert isinstance(network.fitted, FittedBuffers)
    return network.fitted


def _rows(inputs: Tensor) -> Tensor:
    """Return a row (F + 1,) for each item or pixel in float64, with 1 for the bias."""
    rows = _flat(inputs).double()
    return torch.cat([rows, torch.ones_like(rows[:, :1])], 1)


def _flat(maps: Tensor) -> Tensor:
    return maps.movedim(1, -1).flatten(0, -2)


def _outputs(inputs: Tensor, weights: Tensor) -> Tensor:
    """Return outputs (B, K, *space) for weights (K, F + 1), bias last."""
    bias = weights[:, -1].view(-1, *(1,) * (inputs.ndim - 2))
    return torch.einsum("bf...,kf->bk...", inputs, weights[:, :-1]) + bias
