"""The centre of each image in full size: does an uncertainty notice what is lost?

The crop test of URL (Kirchhof et al., 2023). How much of an image is kept follows from
the name of the item alone, so it is the same for all methods, runs and orders. In the
released code it is drawn once for each length of a dataset.
"""

import hashlib
from collections.abc import Iterable

import torch
from torch import Tensor
from torch.nn import functional

_LEAST, _MOST = 0.1, 0.75
_BYTES = 8


def crop_shares(names: Iterable[object]) -> Tensor:
    """(B,) the share of its side that is kept of each item, even in 0.1 to 0.75.

    >>> crop_shares(["bird 1"]).tolist() == crop_shares(["bird 1"]).tolist()
    True
    """
    digests = (hashlib.blake2b(str(n).encode(), digest_size=_BYTES) for n in names)
    even = [int.from_bytes(found.digest()) / 2 ** (8 * _BYTES) for found in digests]
    return _LEAST + (_MOST - _LEAST) * torch.tensor(even, dtype=torch.float64)


def centre_crops(x: Tensor, share: Tensor) -> Tensor:
    """The middle square of images (B, channels, H, W), bilinear in their full size.

    Its side is `share` (B,) of the shorter one, in whole pixels.
    """
    high, wide = x.shape[2:]
    side = (min(high, wide) * share.to(x.device)).round().clamp(min=1)
    down, across = (_places(n, side, x.dtype) for n in (high, wide))
    grid = torch.stack(
        [
            across[:, None, :].expand(-1, high, -1),
            down[:, :, None].expand(-1, -1, wide),
        ],
        -1,
    )
    return functional.grid_sample(x, grid, padding_mode="border", align_corners=False)


def _places(length: int, side: Tensor, dtype: torch.dtype) -> Tensor:
    """(B, length) where pixels come from, -1 to 1 along the axis.

    They stay inside of the crop, as if it had been cut out first.
    """
    first = ((length - side) / 2).round()[:, None]
    step = (torch.arange(length, device=side.device) + 0.5) * side[:, None] / length
    place = first + (step - 0.5).clamp(min=0).minimum(side[:, None] - 1)
    return (2 * (place + 0.5) / length - 1).to(dtype)
