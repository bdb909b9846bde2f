"""Spectral-normalised neural Gaussian process (Liu et al., 2020, arXiv:2006.10108).

The last layer is a Gaussian process: linear in random cosine features of the embedding,
with the posterior covariance (I + Phi' Phi)^-1 of the weights over the training split.
Logits are shrunk by their variance (the mean-field approximation). Every layer but the
first may be bounded in how much it stretches its input, so that distances between
embeddings are meaningful.

As in URL (Kirchhof et al., 2023, arXiv:2307.03810, equation 7), but with a covariance:
in its released code that is never fitted. During training it is updated with the
batches of an epoch; after training it is computed anew, exactly, for the final weights.
"""

import math
from functools import partial

import torch
from torch import Tensor, nn

from qualms.methods._batch import Batch, Batches, Moment
from qualms.methods._headed import (
    Draw,
    FittedBuffers,
    Headed,
    Readout,
    features_of,
    headed,
    last_inputs,
)
from qualms.methods._method import Method
from qualms.methods._plain import (
    check_smoothing,
    classes_of,
    likelihood_loss,
    summarise,
)
from qualms.networks.resnet34_ddu import bound_convolution
from qualms.spec import Task

_START = 0.01
"""Standard deviation of the initial weights of the last layer."""
_SIDE = 16
"""Side of the maps on which a convolution is bounded; on larger maps its norm is hardly
larger, and on smaller ones it is smaller."""


def sngp(
    *,
    features: int = 1024,
    layer_norm: bool = True,
    spectral_bound: float | None = None,
    length_scale: float = 1.0,
    ridge: float = 1.0,
    smoothing: float = 0.0,
) -> Method:
    """Predict classes or embeddings, with the entropy and `uncertainty/variance`.

    The variance is that of the logits.

    Args:
        features: number of random features.
        layer_norm: whether embeddings are normalised before the random features.
        spectral_bound: bound on the operator norm of 2-D convolutions but the first;
            None for no bound. URL's best for ResNet-50 is 3.0035; it has none for
            ViT-Medium.
        length_scale: distance of embeddings at which the kernel has fallen to 0.61.
        ridge: variance of the noise, added to the diagonal of the precision.
        smoothing: share of each label that is spread over all classes in the loss.
    """
    if features < 1 or min(length_scale, ridge) <= 0:
        raise ValueError(
            "features must be at least 1, length_scale and ridge positive, got "
            f"{features}, {length_scale} and {ridge}"
        )
    if spectral_bound is not None and spectral_bound <= 0:
        raise ValueError(f"spectral_bound must be positive, got {spectral_bound}")
    check_smoothing(smoothing)
    process = partial(
        RandomFeatures,
        features=features,
        layer_norm=layer_norm,
        length_scale=length_scale,
        ridge=ridge,
    )
    return Method(
        build=partial(_build, process, spectral_bound),
        loss=partial(_loss, smoothing),
        predict=_predict,
        epoch=_epoch,
        after=_after,
        needs=("items classes",),
        header={"draws": "models"},
    )


class RandomFeatures(nn.Module):
    """Logits (B, C) that are linear in random features of embeddings (B, D)."""

    weight: Tensor
    bias: Tensor
    precision: Tensor

    def __init__(
        self,
        width: int,
        classes: int,
        *,
        features: int,
        layer_norm: bool,
        length_scale: float,
        ridge: float,
    ) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width) if layer_norm else nn.Identity()
        self.ridge = ridge
        self.linear = nn.Linear(features, classes, bias=False)
        nn.init.normal_(self.linear.weight, std=_START)
        self.register_buffer("weight", orthogonal_rows(features, width) / length_scale)
        self.register_buffer("bias", 2 * math.pi * torch.rand(features))
        empty = torch.zeros(features, features, dtype=torch.float64)
        self.register_buffer("precision", empty)
        self.reset()

    def phi(self, embedding: Tensor) -> Tensor:
        """Return the random features (B, features)."""
        projected: Tensor = nn.functional.linear(
            self.norm(embedding), self.weight, self.bias
        )
        return projected.cos()

    def forward(self, embedding: Tensor) -> Tensor:
        """Return the logits (B, C), as in training."""
        logits: Tensor = self.linear(self.phi(embedding))
        return logits

    def reset(self) -> None:
        """Set the precision to that of the prior."""
        self.precision.zero_()
        self.precision.diagonal().fill_(self.ridge)

    def update(self, phi: Tensor) -> None:
        """Add random features (B, features) of training items to the precision."""
        rows = phi.detach().double()
        self.precision.add_(rows.T @ rows)

    def factor(self) -> Tensor:
        """Return a matrix whose product with phi squares to the variance of a logit."""
        lower: Tensor = torch.linalg.cholesky(self.precision)
        identity = torch.eye(len(lower), dtype=lower.dtype, device=lower.device)
        inverse: Tensor = torch.linalg.solve_triangular(lower, identity, upper=False)
        return inverse.T * math.sqrt(self.ridge)


def orthogonal_rows(rows: int, width: int) -> Tensor:
    """Draw directions (rows, width), orthogonal in blocks, as long as normal vectors.

    Yu et al. (2016): the kernel has less variance than with independent normals.
    """
    blocks: list[Tensor] = [
        torch.linalg.qr(torch.randn(width, width)).Q.T for _ in range(-(-rows // width))
    ]
    lengths: Tensor = torch.linalg.vector_norm(torch.randn(rows, width), dim=1)
    return torch.cat(blocks)[:rows] * lengths[:, None]


def mean_field(logits: Tensor, variance: Tensor) -> Tensor:
    """Shrink logits (B, C) by their common variance (B,), to average the softmax."""
    return logits / (1 + variance).sqrt()[:, None]


def _build(
    process: partial[RandomFeatures],
    bound: float | None,
    backbone: nn.Module,
    task: Task,
) -> Headed:
    if bound is not None:
        _bound(backbone, bound)
    last = process(features_of(backbone), classes_of(task, "sngp"))
    buffers = FittedBuffers(("factor",))
    return Headed(backbone, Readout(nn.Identity(), last), task, buffers)


def _bound(backbone: nn.Module, bound: float) -> None:
    """Bound all convolutions but the first, which sees the image itself."""
    layers = [layer for layer in backbone.modules() if isinstance(layer, nn.Conv2d)]
    if not layers:
        raise ValueError(
            "spectral_bound is for networks with 2-D convolutions, and this one has "
            "none; leave it out"
        )
    for layer in layers[1:]:
        bound_convolution(layer, (1, layer.in_channels, _SIDE, _SIDE), bound)


def _loss(
    smoothing: float, network: nn.Module, batch: Batch, _moment: Moment
) -> Tensor:
    network = headed(network)
    process, embedding = _process(network), last_inputs(network, batch.x)
    with torch.autocast(embedding.device.type, enabled=False):
        phi = process.phi(embedding)
        if network.training:
            process.update(phi)
        logits = process.linear(phi)
        return likelihood_loss(logits, batch, network.task, smoothing=smoothing)


def _epoch(network: nn.Module, _moment: Moment, _batches: Batches) -> None:
    _process(network).reset()


def _after(network: nn.Module, batches: Batches) -> None:
    network = headed(network)
    process = _process(network)
    process.reset()
    for batch in batches():
        process.update(process.phi(last_inputs(network, batch.x)))
    assert isinstance(network.fitted, FittedBuffers)
    network.fitted.keep("factor", process.factor().float())


def _predict(network: nn.Module, x: Tensor, task: Task) -> dict[str, Tensor]:
    network = headed(network)
    process, buffers = _process(network), network.fitted
    assert isinstance(buffers, FittedBuffers)
    factor = buffers.get("factor") if buffers.ready else process.factor().float()
    embedding = last_inputs(network, x)
    with torch.autocast(embedding.device.type, enabled=False):
        phi = process.phi(embedding)
        variance = (phi @ factor).square().sum(1)
        outputs = mean_field(process.linear(phi), variance)
    uncertainty = {"uncertainty/variance": variance}
    return {**summarise([Draw(outputs, embedding)], task), **uncertainty}


def _process(network: nn.Module) -> RandomFeatures:
    head = headed(network).head
    assert isinstance(head, Readout)
    assert isinstance(head.last, RandomFeatures)
    return head.last
