"""A large image seen through windows, and the stitched outputs of a network.

By default a pixel is that of the window whose centre is nearest, as in the overlapping
tiles of Ronneberger et al. (2015): what a method says of a pixel is said by one pass.
Or the windows of a pixel are averaged, as in nnU-Net (Isensee et al., 2021). That is an
ensemble over windows, which no method has asked for: draws become more alike.

Outputs are stitched before anything is made of them: logits, not probabilities. So a
draw is one map of outputs of the whole image, and all that follows is as for a small
one: temperatures, the Gaussian over logits of an SSN, evidence, flips, the labels and
the entropy of each draw. Averaged probabilities would count a disagreement of two
windows as noise of the labels.

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
_Place = tuple[slice, ...]
_SIGMA = 1 / 8
"""Standard deviation of the Gaussian as a share of the side, as in nnU-Net."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Windows:
    """Windows of one shape that cover an image, evenly spread along each axis."""

    sides: tuple[int, ...]
    overlap: float = 0.25
    """Share of a side that neighbours have in common, at least."""
    blend: Blend = "nearest"
    """How the windows of a pixel count: the one alone whose centre is nearest, where a
    network sees the surroundings on all sides; near ones more than others; or all the
    same."""
    together: int = 1
    """Windows in one pass, of networks that are not random."""
    device: torch.device | None = None
    """Where the network is, if images are too large to lie there as a whole."""

    def stitched(self, run: Callable[[Tensor], Tensor], x: Tensor) -> Tensor:
        """Outputs (B, K, *space) of `run` for images (B, channels, *space).

        An image with a side that is shorter than that of a window has its rim repeated.
        """
        grown = _grown(x, self.sides)
        axes = [
            _along(length, side, self, x.device)
            for length, side in zip(grown.shape[2:], self.sides, strict=True)
        ]
        spans = list(product(*axes))
        places = [_place(here) for here in spans]
        whole = torch.empty(0)
        passes = self._passes(run, grown, places)
        for here, place, outputs in zip(spans, places, passes, strict=True):
            if not len(whole):
                whole = outputs.new_zeros(*outputs.shape[:2], *grown.shape[2:])
            whole[place] += outputs * _weight(here)
        return whole[_inner(x.shape[2:], self.sides)]

    def _passes(
        self, run: Callable[[Tensor], Tensor], x: Tensor, places: Sequence[_Place]
    ) -> Iterator[Tensor]:
        """Outputs of the window at each of `places`, in order."""
        there = self.device or x.device
        before = _random_state(there)
        yield run(x[places[0]].to(there)).to(x.device)
        if not torch.equal(before, _random_state(there)):
            for place in places[1:]:
                _set_random_state(before, there)
                yield run(x[place].to(there)).to(x.device)
            return
        for first in range(1, len(places), self.together):
            some = places[first : first + self.together]
            outputs = run(torch.cat([x[place] for place in some]).to(there))
            yield from outputs.to(x.device).chunk(len(some))


class _WindowSpan(NamedTuple):
    """A window along one axis."""

    start: int
    weight: Tensor
    """(side,) its share of each pixel."""


def window_starts(length: int, side: int, overlap: float) -> list[int]:
    """Where windows of `side` begin that cover `length` pixels, evenly spread.

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
    """Pixels to add before and after `length` ones, so that they fill a window."""
    missing = max(0, side - length)
    return missing // 2, missing - missing // 2


def _grown(x: Tensor, sides: Sequence[int]) -> Tensor:
    each = [margins(n, side) for n, side in zip(x.shape[2:], sides, strict=True)]
    flat = [width for pair in reversed(each) for width in pair]
    return functional.pad(x, flat, mode="replicate") if any(flat) else x


def _inner(lengths: Sequence[int], sides: Sequence[int]) -> _Place:
    """Where the image lies in what `_grown` made of it."""
    firsts = [margins(n, side)[0] for n, side in zip(lengths, sides, strict=True)]
    space = (slice(a, a + n) for a, n in zip(firsts, lengths, strict=True))
    return slice(None), slice(None), *space


def _along(
    length: int, side: int, windows: Windows, device: torch.device
) -> list[_WindowSpan]:
    """The windows along one axis; their shares of a pixel sum to 1."""
    starts = window_starts(length, side, windows.overlap)
    away = (torch.arange(side, dtype=torch.float64) - (side - 1) / 2) / side
    own = torch.ones_like(away)
    if windows.blend == "gaussian":
        own = torch.exp(-0.5 * (away / _SIGMA).square())
    each = torch.zeros(len(starts), length, dtype=torch.float64)
    for number, start in enumerate(starts):
        each[number, start : start + side] = own
    if windows.blend == "nearest":
        each = _nearest(starts, away.abs(), length)
    shares = (each / each.sum(0)).float().to(device)
    return [
        _WindowSpan(start, share[start : start + side])
        for start, share in zip(starts, shares, strict=True)
    ]


def _nearest(starts: Sequence[int], away: Tensor, length: int) -> Tensor:
    """(windows, length) 1 for the window whose centre is nearest, else 0."""
    far = torch.ones(len(starts), length, dtype=torch.float64)
    for number, start in enumerate(starts):
        far[number, start : start + len(away)] = away
    first = far.argmin(0)  # the first of two that are as near
    return functional.one_hot(first, len(starts)).T.double()


def _place(spans: Sequence[_WindowSpan]) -> _Place:
    space = (slice(one.start, one.start + len(one.weight)) for one in spans)
    return slice(None), slice(None), *space


def _weight(spans: Sequence[_WindowSpan]) -> Tensor:
    """(*sides) the share of a window of each of its pixels."""
    weight = torch.ones(())
    for one in spans:
        weight = weight[..., None].to(one.weight) * one.weight
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
