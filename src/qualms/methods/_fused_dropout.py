"""Dropout that a compiler makes part of the layers around it.

On a GPU whether an entry stays is a hash of its position and of two random numbers per
call. These are a few integer operations, cheap enough to be repeated in the backward
pass. The usual generator takes ten rounds for every entry, and its mask, a byte per
entry, is kept until the backward pass. Uncompiled, each of these operations would be a
pass over memory, so there `functional.dropout` is faster.
"""

import torch
from torch import Tensor
from torch.nn import functional

_MOST = 2**31
"""Entries that 32 bits can count, with one bit for the sign."""
_STRIDE = 0x9E3779B9 - 2**32
"""From the golden ratio: it puts neighbours far apart. As a signed number."""
_SHIFTS = (16, 15)
_FACTORS = (0x7FEB352D, 0x846CA68B - 2**32)
"""Constants of a hash with little bias (Wellons, 2018)."""


def fused_dropout(x: Tensor, rate: float) -> Tensor:
    """Set each entry of `x` to 0 with probability `rate`, else divide by 1 - `rate`."""
    if torch.compiler.is_compiling() and _on_gpu(x) and x.numel() < _MOST:
        ends = (-_MOST, _MOST)
        numbers = torch.randint(*ends, (2,), dtype=torch.int32, device=x.device)
        return torch.where(keep_mask(x, rate, numbers), x / (1 - rate), 0.0)
    return functional.dropout(x, rate)


def keep_mask(x: Tensor, rate: float, numbers: Tensor) -> Tensor:
    """Return which entries of `x` stay, by two random integers of 32 bits."""
    # The number is added first: a compiler multiplies positions alone as integers
    # without a limit, which it then cannot write in 32 bits.
    mixed = (_positions(x) + numbers[0]) * _STRIDE
    # With one number alone, another call would have the same sequence, shifted; with
    # this one any later, calls with positions in common would be correlated.
    mixed = mixed ^ numbers[1]
    mixed = (mixed ^ _shifted(mixed, _SHIFTS[0])) * _FACTORS[0]
    mixed = (mixed ^ _shifted(mixed, _SHIFTS[1])) * _FACTORS[1]
    # The highest bits decide, and another shift would leave them as they are.
    least = round(rate * 2 * _MOST) - _MOST
    # A rate close to 1 would ask for a number past the last one.
    return mixed.ge(min(least, _MOST - 1))


def _on_gpu(x: Tensor) -> bool:
    return x.is_cuda


def _positions(x: Tensor) -> Tensor:
    """Return the position of each entry in memory, which a kernel has at hand."""
    order = sorted(range(x.dim()), key=x.stride, reverse=True)
    positions = torch.arange(x.numel(), dtype=torch.int32, device=x.device)
    sizes = [x.shape[axis] for axis in order]
    axes = [order.index(axis) for axis in range(x.dim())]
    return positions.view(sizes).permute(axes)


def _shifted(number: Tensor, bits: int) -> Tensor:
    """Shift `number`, taken as unsigned, to the right."""
    return number.bitwise_right_shift(bits).bitwise_and(2 ** (32 - bits) - 1)
