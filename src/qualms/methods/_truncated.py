"""A normal distribution without its tails, as some papers begin weights with."""

import math

import torch
from torch import Tensor


def truncated_normal(like: Tensor) -> Tensor:
    """Standard normal numbers between -2 and 2, with the shape of `like`.

    By the inverse distribution function, so that no value must be looked at.
    """
    tail = math.erfc(math.sqrt(2)) / 2
    inner = torch.rand_like(like) * (1 - 2 * tail) + tail
    numbers: Tensor = torch.special.ndtri(inner)
    return numbers
