"""The von Mises-Fisher distribution: its normaliser, its mean cosine, and draws of it.

Its density at a unit vector z of dimension p is C_p(kappa) exp(kappa mean'z), with
C_p(kappa) = kappa^v / ((2 pi)^(p/2) I_v(kappa)) and v = p/2 - 1. Logarithms of the
Bessel function I come from its uniform expansion for large orders (DLMF 10.41.3), which
holds for every kappa; small orders follow from large ones by recurrence. All of it is
in float64 and differentiable, and no code depends on a value.
"""

import math
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional

_LEAST_ORDER = 64
"""Order from which on the expansion is exact to about 1e-11."""
_TERMS = (
    (1 / 24, (3, -5)),
    (1 / 1152, (81, -462, 385)),
    (1 / 414720, (30375, -369603, 765765, -425425)),
    (1 / 39813120, (4465125, -94121676, 349922430, -446185740, 185910725)),
)
"""A factor and the coefficients of 1, t^2, t^4 ... in U_k(t) / t^k, for k from 1 on."""
_TRIES = 32
"""Proposals for each draw. At most one in three is rejected, so all of them are in less
than one of 10^14 draws; the first one is then taken."""
_NODES = 33
_ENDS = 2.7
_REACH = 9.0
"""Quadrature of gradients: number of nodes, last node before the transformation, and
length in standard deviations."""


def log_normaliser(kappa: Tensor, dimension: int) -> Tensor:
    """Return the logarithm of C_p of `kappa`, in float64."""
    scaled = _log_bessel(kappa.double(), dimension / 2 - 1)
    return -scaled - dimension / 2 * math.log(2 * math.pi)


def mean_cosine(kappa: Tensor, dimension: int) -> Tensor:
    """Return the mean cosine between a draw and the mean direction, in float64.

    It is the ratio of Bessel functions I_(v+1) / I_v, and minus the derivative of the
    logarithm of the normaliser.
    """
    kappa, order = kappa.double(), dimension / 2 - 1
    above = _log_bessel(kappa, order + 1)
    return kappa * (above - _log_bessel(kappa, order)).exp()


def draw_vmf(mean: Tensor, kappa: Tensor, draws: int) -> Tensor:
    """Draw vectors (draws, B, D) around unit vectors `mean` (B, D), by `kappa` (B,).

    The cosine to the mean is exact for every concentration and dimension (Wood, 1994).
    Gradients are those of the implicit function that keeps the quantile of the cosine
    (Figurnov et al., 2018), so they have no bias from the rejection of proposals.
    """
    gap = _gap(kappa.double(), mean.shape[1], draws)
    noise = torch.randn(draws, *mean.shape, dtype=mean.dtype, device=mean.device)
    beside = noise - (noise * mean).sum(2, keepdim=True) * mean
    sine = (gap * (2 - gap)).sqrt().to(mean.dtype)[..., None]
    return (1 - gap).to(mean.dtype)[..., None] * mean + sine * functional.normalize(
        beside, dim=2
    )


def _log_bessel(kappa: Tensor, order: float) -> Tensor:
    """Return log(I_order(kappa) / kappa^order), which is finite at 0 too."""
    high = order + max(0, math.ceil(_LEAST_ORDER - order))
    value = _expanded(kappa, high)
    if high == order:
        return value
    square = kappa.square()
    ratio = (_expanded(kappa, high + 1) - value).exp()
    while high > order:
        high -= 1
        # I_(k+1) / (kappa I_k), from that of the next order.
        ratio = 1 / (2 * (high + 1) + square * ratio)
        value = value - ratio.log()
    return value


def _expanded(kappa: Tensor, order: float) -> Tensor:
    root = (kappa.square() + order**2).sqrt()
    square = (order / root).square()
    total = torch.zeros_like(root)
    for factor, coefficients in reversed(_TERMS):
        term = torch.zeros_like(root)
        for number in reversed(coefficients):
            term = term * square + number
        total = (total + factor * term) / root
    sizes = root - order * (order + root).log() - (2 * math.pi * root).log() / 2
    return sizes + total.log1p()


def _gap(kappa: Tensor, dimension: int, draws: int) -> Tensor:
    """Draw 1 minus the cosine to the mean, (draws, B)."""
    with torch.no_grad():
        gap = _draw_gap(kappa, dimension, draws)
        if not kappa.requires_grad:
            return gap
        slope = gap_slope(gap, kappa, dimension)
    # The second term is 0, and adds the gradient.
    return gap + slope * (kappa - kappa.detach())


def _draw_gap(kappa: Tensor, dimension: int, draws: int) -> Tensor:
    """Draw 1 minus the cosine without a gradient, by rejection (Wood, 1994)."""
    shape = (_TRIES, draws, len(kappa))
    first, second, third = (
        torch.rand(shape, dtype=torch.float64, device=kappa.device) for _ in range(3)
    )
    slim, around = dimension - 1, dimension - 2
    b = slim / (2 * kappa + (4 * kappa.square() + slim**2).sqrt())
    # A symmetric beta variable in closed form (Ulrich, 1984).
    radius = -(2 * first.log() / around).expm1() if around else torch.ones_like(first)
    share = (1 + radius.sqrt() * (2 * math.pi * second).cos()) / 2
    gap = 2 * b * share / (1 - (1 - b) * share)
    best = 2 * b / (1 + b)  # 1 minus the cosine of the best proposal
    ratio = (best + (1 - best) * gap) / (best * (2 - best))
    accepted = kappa * (best - gap) + slim * ratio.log() >= third.log()
    chosen = accepted.to(torch.uint8).argmax(0, keepdim=True)
    return gap.gather(0, chosen)[0]


def gap_slope(gap: Tensor, kappa: Tensor, dimension: int) -> Tensor:
    """Return the derivative by `kappa` (B,) of 1 minus the cosine, `gap` (draws, B).

    For the angle a with density g, the derivative is minus that of the distribution
    function, over g. The integral is over the side of a away from the mean, where all
    terms have the same sign.
    """
    angle = 2 * (gap / 2).sqrt().clamp(max=1).asin()
    mean = mean_cosine(kappa, dimension)
    around = dimension - 2
    root = (4 * kappa.square() + around**2).sqrt()
    # The curvature of log g where it is largest.
    curved = (
        2 * kappa.square() / (around + root).clamp(min=1e-300) + (around + root) / 2
    )
    length = _REACH / curved.clamp(min=1e-300).sqrt()
    nearer = 1 - gap > mean
    end = torch.where(
        nearer, (angle - length).clamp(min=0), (angle + length).clamp(max=math.pi)
    )
    nodes = _quadrature(gap.device)
    angles = end + (angle - end) * nodes.at
    fall = -2 * ((angles + angle) / 2).sin() * ((angles - angle) / 2).sin()
    height = kappa * fall
    if around:
        height = height + around * (angles.sin() / angle.sin()).log()
    values = (angles.cos() - mean) * height.exp()
    # Where the nodes lie beyond the angle, `angle - end` is negative, as it has to be.
    return -angle.sin() * (angle - end) * (nodes.weight * values).sum(0)


class _Nodes(NamedTuple):
    at: Tensor
    weight: Tensor


def _quadrature(device: torch.device) -> _Nodes:
    """Return nodes in 0..1 and their weights by the tanh-sinh rule, (nodes, 1, 1).

    They are computed on the device, since a captured step could not copy a table.
    """
    steps = torch.linspace(-_ENDS, _ENDS, _NODES, dtype=torch.float64, device=device)
    bent = math.pi / 2 * steps.view(-1, 1, 1).sinh()
    width = 2 * _ENDS / (_NODES - 1) * math.pi / 4
    weight = width * steps.view(-1, 1, 1).cosh() / bent.cosh().square()
    return _Nodes((1 + bent.tanh()) / 2, weight)
