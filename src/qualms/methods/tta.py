"""Test-time augmentation (Wang et al., 2019; Kahl et al., 2024).

Trained as `map`, whose weights it can take over. An item is predicted unflipped and
flipped along its axes, each time clean and with noise; the noise is drawn once for an
item. Maps of outputs are flipped back before the softmax. Volumes are flipped along all
axes, which gives 16 draws, and images from left to right, which gives 4.

Noise is added after normalisation. Its standard deviation is drawn for every item
between 0 and 0.1, as in the released code for volumes, which adds it to volumes of mean
0 and variance 1. For street scenes that code adds noise of variance 10 to 50 to 8-bit
images: after normalisation by ImageNet's colours these are standard deviations of 0.055
to 0.123. It draws new noise for a flipped scene; here the noise is flipped as well.
"""

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import combinations
from typing import Literal, NamedTuple, get_args

import torch
from torch import Tensor, nn

from qualms.methods._headed import Draw
from qualms.methods._method import Method
from qualms.methods._plain import one_pass, summarise
from qualms.spec import Task

Flips = Literal["all", "horizontal", "none"]


def tta(*, flips: Flips | None = None, noise: Sequence[float] = (0.0, 0.1)) -> Method:
    """Predict one draw for each flip of an item, clean and with noise.

    Args:
        flips: "all" for every combination of axes, "horizontal" for the last axis,
            "none" for no flip, where a target depends on the side. None is "all" for
            volumes, "horizontal" for images and "none" for other inputs.
        noise: least and largest standard deviation of the noise, uniform in between;
            (0, 0) leaves the noisy draws out.
    """
    if flips is not None and flips not in get_args(Flips):
        raise ValueError(f"flips must be 'all', 'horizontal' or 'none', got {flips!r}")
    if len(noise) != 2 or not 0 <= noise[0] <= noise[1]:
        raise ValueError(
            "noise must be two standard deviations, the smaller one first, got "
            f"{tuple(noise)}"
        )
    return Method(
        predict=partial(_predict, flips, noise),
        trained_as="map",
        header={"draws": "models"},
    )


class _View(NamedTuple):
    x: Tensor
    axes: tuple[int, ...]
    """Axes along which the input is flipped."""


def _predict(
    flips: Flips | None,
    noise: Sequence[float],
    network: nn.Module,
    x: Tensor,
    task: Task,
) -> dict[str, Tensor]:
    views = _views(x, _flipped_axes(flips, x.ndim - 2), noise)
    return summarise((_draw(network, view, task) for view in views), task)


def _flipped_axes(flips: Flips | None, space: int) -> list[tuple[int, ...]]:
    """Return every set of axes to flip along, the empty one first."""
    name = flips or {3: "all", 2: "horizontal"}.get(space, "none")
    if name != "none" and space < 1:
        raise ValueError(
            f"flips={name!r} is for inputs with axes of space, and these have none;"
            " say flips='none'"
        )
    axes = {"all": range(-space, 0), "horizontal": (-1,), "none": ()}[name]
    return [sets for size in range(len(axes) + 1) for sets in combinations(axes, size)]


def _views(
    x: Tensor, flipped: Sequence[tuple[int, ...]], noise: Sequence[float]
) -> Iterator[_View]:
    yield from (_View(x.flip(axes) if axes else x, axes) for axes in flipped)
    if noise[1] == 0:
        return
    share = torch.rand(len(x), *(1,) * (x.ndim - 1), dtype=x.dtype, device=x.device)
    scale = noise[0] + (noise[1] - noise[0]) * share
    noisy = torch.addcmul(x, scale, torch.randn_like(x))
    yield from (_View(noisy.flip(axes) if axes else noisy, axes) for axes in flipped)


def _draw(network: nn.Module, view: _View, task: Task) -> Draw:
    draw = one_pass(network, view.x, task)
    back = view.axes if draw.outputs.ndim == view.x.ndim else ()
    return draw._replace(outputs=draw.outputs.flip(back)) if back else draw
