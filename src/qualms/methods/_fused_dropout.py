"""Dropout that a compiler makes part of the layers around it.

Whether an entry stays is a hash of where it lies and of two random numbers per call: a
few integer operations, cheap enough to do once more in the backward pass. The usual
generator takes ten rounds for every entry, and its mask, a byte per entry, is kept
until the backward pass. Uncompiled, every one of these operations would be a pass over
memory, so `functional.dropout` is the faster one there.
"""

import torch
from torch import Tensor
from torch.nn import functional

_MOST = 2**31
"""Entries that 32 bits can count, with one of them for the sign."""
_STRIDE = 0x9E3779B9 - 2**32
"""The golden ratio's, which puts neighbours far apart, as a signed number."""
_SHIFTS = (16, 15)
_FACTORS = (0x7FEB352D, 0x846CA68B - 2**32)
"""Of a hash with little bias (Wellons, 2018)."""


def fused_dropout(x: Tensor, rate: float) -> Tensor:
    """Each entry of `x` 0 with probability `rate`, else divided by 1 - `rate`."""
    if torch.compiler.is_compiling() and _on_gpu(x) and x.numel() < _MOST:
        ends = (-_MOST, _MOST)
        numbers = torch.randint(*ends, (2,), dtype=torch.int32, device=x.device)
        return torch.where(kept(x, rate, numbers), x / (1 - rate), 0.0)
    return functional.dropout(x, rate)


def kept(x: Tensor, rate: float, numbers: Tensor) -> Tensor:
    """Which entries of `x` stay, by two random integers of 32 bits."""
    # Added before anything else: a compiler multiplies places alone as numbers without
    # a limit, which it then cannot write in 32 bits.
    mixed = (_places(x) + numbers[0]) * _STRIDE
    # With one number alone, another one would give the same sequence from elsewhere;
    # with this one any later, calls with some places in common would be correlated.
    mixed = mixed ^ numbers[1]
    mixed = (mixed ^ _shifted(mixed, _SHIFTS[0])) * _FACTORS[0]
    mixed = (mixed ^ _shifted(mixed, _SHIFTS[1])) * _FACTORS[1]
    # The highest bits decide, which another shift would leave as they are.
    least = round(rate * 2 * _MOST) - _MOST
    # A rate next to 1 would ask for a number past the last, which is the first one.
    return mixed.ge(min(least, _MOST - 1))


def _on_gpu(x: Tensor) -> bool:
    return x.is_cuda


def _places(x: Tensor) -> Tensor:
    """Where each entry lies in memory, so that a kernel has the number at hand."""
    order = sorted(range(x.dim()), key=x.stride, reverse=True)
    places = torch.arange(x.numel(), dtype=torch.int32, device=x.device)
    sizes = [x.shape[axis] for axis in order]
    return places.view(sizes).permute([order.index(axis) for axis in range(x.dim())])


def _shifted(number: Tensor, bits: int) -> Tensor:
    """`number` without a sign, shifted to the right."""
    return number.bitwise_right_shift(bits).bitwise_and(2 ** (32 - bits) - 1)
