"""Regions that overlap, each with a sigmoid of its own (segmentation).

Regions count as independent given the image, so each is two classes of its own: methods
see the K regions of B items as B * K maps of two classes, and what they predict is
brought together again.
"""

from collections.abc import Mapping, Sequence

from torch import Tensor

from qualms.shelf import tasks_with

_STATISTIC = ("mean_probs", "draw_labels")
_SPACELESS = 2
"""Axes (B, K) of maps before those of space."""


def check_regions(
    regions: Sequence[str], task: str, last: str | bool | None
) -> tuple[str, ...]:
    """Return the names of the regions; raise unless they fit the other arguments."""
    if isinstance(regions, str) or not all(isinstance(name, str) for name in regions):
        raise ValueError(
            f"regions must be a list of names, such as ['whole', 'core'], got"
            f" {regions!r:.60}"
        )
    if regions and task not in tasks_with("pixels"):
        raise ValueError(
            f"regions are for segmentation, and this task is {task}; leave them out"
        )
    if len(set(regions)) < len(regions):
        raise ValueError(f"regions must have different names, got {list(regions)}")
    if regions and isinstance(last, str):
        raise ValueError(
            "a model with regions is taken as a whole; leave 'last' out, or the regions"
        )
    return tuple(regions)


def separate_regions(maps: Tensor) -> Tensor:
    """Return maps (B, K, *space) of regions as (B * K, 1, *space).

    The logit of a sigmoid is that of class 1 of two.
    """
    return maps.flatten(0, 1)[:, None]


def joined_regions(arrays: Mapping[str, Tensor], count: int) -> dict[str, Tensor]:
    """Return predicted maps of two classes as those of `count` regions of each item.

    Entropies and uncertainties are summed over the regions.
    """
    by_item: dict[str, Tensor] = {}
    for name, values in arrays.items():
        draws = values.shape[:1] if name == "draw_labels" else ()
        space = values.shape[1 + len(draws) :]
        by_item[name] = values.reshape(*draws, -1, count, *space)
    return {
        name: values if name in _STATISTIC else values.sum(1)
        for name, values in by_item.items()
    } | {"mean_probs": by_item["mean_probs"][:, :, 1]}


def masks_of_regions(target: Tensor, image: Tensor, count: int, name: str) -> Tensor:
    """Return masks (B, R, K, *space), of one rater if the target is (B, K, *space)."""
    if target.ndim == image.ndim:
        target = target[:, None]
    space = image.shape[_SPACELESS:]
    if target.ndim != image.ndim + 1 or target.shape[2:] != (count, *space):
        sides = ", ".join(map(str, space))
        raise ValueError(
            f"masks of {name} must have shape (B, {count}, {sides}) for {count} regions"
            f", got {tuple(target.shape)} for inputs {tuple(image.shape)}"
        )
    return target
