"""A large image seen through windows, and the stitched outputs of a network.

By default a pixel is taken from the window whose centre is nearest, as in the
overlapping tiles of Ronneberger et al. (2015): the outputs of a pixel come from one
pass. Or the windows of a pixel are averaged, as in nnU-Net (Isensee et al., 2021). That
is an additional ensemble over windows, which makes draws more alike.

The network's outputs are stitched, that is logits and not probabilities. So a draw is
one map of outputs of the whole image, and everything after it is as for a small image:
temperatures, the Gaussian over logits of an SSN, evidence, flips, the labels and the
entropy of each draw. Averaged probabilities would count a disagreement of two windows
as noise of the labels.

Each window of a pass sees the same random numbers. A draw of weights is then one
network for the whole image. Dropout of activations has one pattern, which moves with
the window.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Literal, NamedTuple

import torch
from torch import Tensor
from torch.nn import functional

Blend = Literal["nearest", "gaussian", "flat"]
_Region = tuple[slice, ...]
_SIGMA = 1 / 8
"""Standard deviation of the Gaussian as a share of the side, as in nnU-Net."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Windows:
    """Windows of one shape that cover an image, evenly spread along each axis."""

    sides: tuple[int, ...]
    overlap: float = 0.25
    """Least share of a side that neighbours have in common."""
    blend: Blend = "nearest"
    """Weights of the windows over a pixel: "nearest" takes the window with the nearest
    centre, "gaussian" gives near windows more weight, "flat" gives all the same."""
    together: int = 1
    """Windows in one pass, for networks that are not random."""
    device: torch.device | None = None
    """Device of the network, if images are too large to be moved there."""

    def stitched(self, run: Callable[[Tensor], Tensor], x: Tensor) -> Tensor:
        """Return outputs (B, K, *space) of `run` for images (B, channels, *space).

        An image with a side that is shorter than that of a window has its rim repeated.
        """
        padded = _padded(x, self.sides)
        axes = [
            _spans(length, side, self, x.device)
            for length, side in zip(padded.shape[2:], self.sides, strict=True)
        ]
        windows = list(product(*axes))
        regions = [_region(window) for window in windows]
        stitched = torch.empty(0)
        passes = self._passes(run, padded, regions)
        for window, region, outputs in zip(windows, regions, passes, strict=True):
            if not len(stitched):
                stitched = outputs.new_zeros(*outputs.shape[:2], *padded.shape[2:])
            stitched[region] += outputs * _weight(window)
        return stitched[_inner(x.shape[2:], self.sides)]

    def _passes(
        self, run: Callable[[Tensor], Tensor], x: Tensor, regions: Sequence[_Region]
    ) -> Iterator[Tensor]:
        """Yield the outputs of the window at each of `regions`, in order."""
        device = self.device or x.device
        before = _random_state(device)
        yield run(x[regions[0]].to(device)).to(x.device)
        if not torch.equal(before, _random_state(device)):
            for region in regions[1:]:
                _set_random_state(before, device)
                yield run(x[region].to(device)).to(x.device)
            return
        for first in range(1, len(regions), self.together):
            batch = regions[first : first + self.together]
            outputs = run(torch.cat([x[region] for region in batch]).to(device))
            yield from outputs.to(x.device).chunk(len(batch))


class _WindowSpan(NamedTuple):
    """A window along one axis."""

    start: int
    weight: Tensor
    """(side,) share of the window in each pixel."""


def window_starts(length: int, side: int, overlap: float) -> list[int]:
    """Return where windows of `side` begin that cover `length` pixels evenly.

    >>> window_starts(10, 4, 0.5)
    [0, 2, 4, 6]
    >>> window_starts(3, 4, 0.5)
    [0]
    """
    room = length - side
    if room <= 0:
        return [0]
    step = max(1, int(side * (1 - overlap)))
    count = -(-room // step)
    return [round(room * number / count) for number in range(count + 1)]


def margins(length: int, side: int) -> tuple[int, int]:
    """Return how many pixels to add before and after `length` to fill a window."""
    missing = max(0, side - length)
    return missing // 2, missing - missing // 2


def _padded(x: Tensor, sides: Sequence[int]) -> Tensor:
    added = [margins(n, side) for n, side in zip(x.shape[2:], sides, strict=True)]
    flat = [width for pair in reversed(added) for width in pair]
    return functional.pad(x, flat, mode="replicate") if any(flat) else x


def _inner(lengths: Sequence[int], sides: Sequence[int]) -> _Region:
    """Return where the image lies in the result of `_padded`."""
    firsts = [margins(n, side)[0] for n, side in zip(lengths, sides, strict=True)]
    space = (slice(a, a + n) for a, n in zip(firsts, lengths, strict=True))
    return slice(None), slice(None), *space


def _spans(
    length: int, side: int, windows: Windows, device: torch.device
) -> list[_WindowSpan]:
    """Return the windows along one axis; their shares of a pixel sum to 1."""
    starts = window_starts(length, side, windows.overlap)
    distance = (torch.arange(side, dtype=torch.float64) - (side - 1) / 2) / side
    profile = torch.ones_like(distance)
    if windows.blend == "gaussian":
        profile = torch.exp(-0.5 * (distance / _SIGMA).square())
    weights = torch.zeros(len(starts), length, dtype=torch.float64)
    for number, start in enumerate(starts):
        weights[number, start : start + side] = profile
    if windows.blend == "nearest":
        weights = _nearest_weights(starts, distance.abs(), length)
    shares = (weights / weights.sum(0)).float().to(device)
    return [
        _WindowSpan(start, share[start : start + side])
        for start, share in zip(starts, shares, strict=True)
    ]


def _nearest_weights(starts: Sequence[int], distance: Tensor, length: int) -> Tensor:
    """Return 1 for the window whose centre is nearest, else 0: (windows, length)."""
    far = torch.ones(len(starts), length, dtype=torch.float64)
    for number, start in enumerate(starts):
        far[number, start : start + len(distance)] = distance
    first = far.argmin(0)  # the first of two that are equally near
    return functional.one_hot(first, len(starts)).T.double()


def _region(spans: Sequence[_WindowSpan]) -> _Region:
    space = (slice(span.start, span.start + len(span.weight)) for span in spans)
    return slice(None), slice(None), *space


def _weight(spans: Sequence[_WindowSpan]) -> Tensor:
    """Return the share of a window in each of its pixels, (*sides)."""
    weight = torch.ones(())
    for span in spans:
        weight = weight[..., None].to(span.weight) * span.weight
    return weight


def _random_state(device: torch.device) -> Tensor:
    if device.type == "cuda":
        return torch.cuda.get_rng_state(device)
    return torch.get_rng_state()


def _set_random_state(state: Tensor, device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.set_rng_state(state, device)
    else:
        torch.set_rng_state(state)
