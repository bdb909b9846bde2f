"""Models of several inputs, for methods that know one tensor.

A method may repeat its input, cut it or pass parts of it; it never looks inside. So the
inputs of an item are laid side by side as one row of float64, which holds integers up
to 2^53 exactly, and are taken apart again in front of the model.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn


class InputLayout(NamedTuple):
    """Layout of the inputs of an item in a row."""

    names: tuple[str, ...] | None
    """Arguments of the model; None where they are passed by position."""
    shapes: tuple[tuple[int, ...], ...]
    """Of an item."""
    types: tuple[torch.dtype, ...]

    def take_apart(self, rows: Tensor) -> list[Tensor]:
        """Return the inputs (B, *shape) that `rows` (B, F) hold."""
        sizes = [math.prod(shape) for shape in self.shapes]
        parts = torch.split_with_sizes(rows, sizes, 1)
        return [
            part.reshape(-1, *shape).to(kind)
            for part, shape, kind in zip(parts, self.shapes, self.types, strict=True)
        ]


class SeveralInputs(nn.Module):
    """A model that reads rows in which its inputs lie side by side."""

    def __init__(self, model: nn.Module, layout: InputLayout) -> None:
        super().__init__()
        self.model = model
        self.layout = layout

    def forward(self, rows: Tensor) -> Any:
        """Return what the model returns for the inputs in `rows` (B, F)."""
        inputs = self.layout.take_apart(rows)
        if self.layout.names is None:
            return self.model(*inputs)
        return self.model(**dict(zip(self.layout.names, inputs, strict=True)))


def is_several(x: Any, target: Any) -> bool:
    """Return whether the inputs of a batch are more than one array.

    A loader makes a list of what was a tuple; a list may also hold one tensor for each
    item, so that it counts as several inputs only if the targets say so.
    """
    if isinstance(x, Mapping):
        return True
    if not isinstance(x, list | tuple) or not all(isinstance(p, Tensor) for p in x):
        return False
    if isinstance(x, tuple):
        return True
    items = len(target) if hasattr(target, "__len__") else -1
    return len(x) != items and all(len(part) == items for part in x if part.ndim)


def joined(
    inputs: Mapping[str, Tensor] | Sequence[Tensor], name: str
) -> tuple[Tensor, InputLayout]:
    """Lay the inputs of a batch side by side, (B, F).

    Raises:
        ValueError: If they are not of the same items.
    """
    names = tuple(inputs) if isinstance(inputs, Mapping) else None
    tensors = list(inputs.values()) if isinstance(inputs, Mapping) else list(inputs)
    counts = {len(tensor) if tensor.ndim else 0 for tensor in tensors}
    if len(counts) != 1 or not tensors:
        shapes = ", ".join(str(tuple(tensor.shape)) for tensor in tensors)
        raise ValueError(
            f"all inputs in a batch of {name} must have one entry for each item along"
            f" axis 0, got shapes {shapes or 'of no input'}"
        )
    layout = InputLayout(
        names=names,
        shapes=tuple(tuple(tensor.shape[1:]) for tensor in tensors),
        types=tuple(tensor.dtype for tensor in tensors),
    )
    rows = [tensor.reshape(len(tensor), -1).double() for tensor in tensors]
    return torch.cat(rows, 1), layout
