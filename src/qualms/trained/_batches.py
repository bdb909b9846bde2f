"""Batches of a user's loader: inputs, targets, and names and groups of items.

A batch is a tensor of inputs, a pair of inputs and targets, a triple with a mapping at
its end, or a mapping with the keys of `KEYS`.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sized
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.utils.data import (
    DataLoader,
    Dataset,
    RandomSampler,
    SubsetRandomSampler,
    WeightedRandomSampler,
)

from qualms.methods import Batch
from qualms.shelf import traits
from qualms.spec import Task
from qualms.trained._regions import masks_of_regions
from qualms.trained._several_inputs import InputLayout, is_several, joined

ABOUT = ("item", "group", "cluster", "shifted", "thumbnail")
KEYS = ("x", "target", *ABOUT)
Unpack = Callable[[Any], Any]
BATCH = 32
"""Items of a batch where a dataset is given instead of a loader."""
_RANDOM = (RandomSampler, SubsetRandomSampler, WeightedRandomSampler)
_END = object()


class ItemBatch(NamedTuple):
    """Items of a batch."""

    x: Tensor
    """(B, ...) on the device of the model."""
    target: Tensor | None
    about: dict[str, NDArray[Any]]
    """Arrays (B,), thumbnails (B, H, W, 3), by the names in `ABOUT`."""
    layout: InputLayout | None = None
    """Layout of several inputs in a row of `x`; None for a single one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemLoader:
    """A user's loader, as batches that a model can read."""

    loader: Iterable[Any]
    name: str
    """Argument that the user passed it as: 'loader', 'fit' or 'val'."""
    device: torch.device
    dtype: torch.dtype
    """Type of the model's numbers, to which inputs of another precision are cast."""
    unpack: Unpack | None = None
    regions: int = 0
    """Number of regions that overlap, of each of which targets have a mask."""

    def __post_init__(self) -> None:
        if isinstance(self.loader, Tensor | np.ndarray | Mapping | str):
            raise ValueError(
                f"{self.name} must give batches, got {type(self.loader).__name__}; pass"
                " a DataLoader, or a list of batches"
            )
        if _is_whole(self.loader):
            raise ValueError(
                f"{self.name} must give batches, got inputs and targets in a tuple;"
                " pass torch.utils.data.TensorDataset(x, target), or [(x, target)]"
            )
        if isinstance(self.loader, Iterator):
            raise ValueError(
                f"{self.name} can be gone through only once, and has to be read again;"
                " pass a DataLoader, or a list of batches"
            )

    def __iter__(self) -> Iterator[ItemBatch]:
        """Yield each batch, checked; all of them must have the same parts."""
        first: set[str] | None = None
        layout: InputLayout | None = None
        for number, raw in enumerate(_with_own_seed(self.loader)):
            batch = self._read(raw if self.unpack is None else self.unpack(raw))
            parts = {*batch.about, *(["target"] if batch.target is not None else [])}
            if first is not None and parts != first:
                raise ValueError(
                    f"all batches of {self.name} must have the same parts, got"
                    f" {_listed(parts)} in batch {number} after {_listed(first)}"
                )
            if first is not None and batch.layout != layout:
                raise ValueError(
                    f"inputs in all batches of {self.name} must have the same names,"
                    f" shapes and types, got others in batch {number}"
                )
            first, layout = parts, batch.layout
            if len(batch.x):
                yield batch
        if first is None:
            raise ValueError(f"{self.name} gives no batch; there must be items in it")

    def first(self) -> ItemBatch:
        """Return the first batch."""
        return next(iter(self))

    def begins_like(self, other: "ItemLoader") -> bool:
        """Return whether the first items of both loaders are the same."""
        if self.loader is other.loader:
            return True
        first, second = self.first().x, other.first().x
        count = min(len(first), len(second))
        return first.shape[1:] == second.shape[1:] and torch.equal(
            first[:count], second[:count]
        )

    def check_order(self) -> None:
        """Raise if the loader shuffles items without names, or leaves items out."""
        loader = self.loader
        if not isinstance(loader, DataLoader):
            return
        random = isinstance(loader.sampler, _RANDOM)
        if random and "item" not in self.first().about:
            raise ValueError(
                "loader shuffles its items, so nobody could tell which prediction is"
                " whose; pass DataLoader(..., shuffle=False), or batches with 'item'"
            )
        dataset, size = loader.dataset, loader.batch_size
        if loader.drop_last and size and isinstance(dataset, Sized):
            dropped = len(dataset) % size
            if dropped:
                raise ValueError(
                    f"loader leaves out the last {dropped} of {len(dataset)} items;"
                    " pass DataLoader(..., drop_last=False)"
                )

    def fitting(self, task: Task) -> Iterator[Batch]:
        """Yield the batches that a method is fitted to, which need targets."""
        for batch in self:
            if batch.target is None:
                raise ValueError(
                    f"{self.name} must have targets, as a method is fitted to them;"
                    " give batches (x, target)"
                )
            target = target_of(batch, task, self.name, regions=self.regions)
            if "pixels" in traits(task.name):
                if target.shape[1] > 1:
                    raise ValueError(
                        f"{self.name} has label maps of {target.shape[1]} raters, and a"
                        " method is fitted to one; give one for each item"
                    )
                # Each region is an item of its own, as in what the network returns.
                target = target[:, 0].flatten(0, 1) if self.regions else target[:, 0]
            yield Batch(x=batch.x, target=target)

    def _read(self, batch: Any) -> ItemBatch:
        parts = _parts(batch, self.name)
        inputs, layout = parts.pop("x"), None
        if is_several(inputs, parts.get("target")):
            x, layout = self._several(inputs)
        else:
            x = self._x(inputs)
        target = parts.pop("target", None)
        if target is not None:
            target = _tensor(target, f"the targets of {self.name}").to(self.device)
            if not target.ndim:
                raise ValueError(
                    f"a batch of {self.name} must have items along axis 0, got inputs"
                    f" {tuple(x.shape)} and a single target; these look like items:"
                    f" pass DataLoader({self.name}, batch_size={BATCH})"
                )
        about = {name: _array(values) for name, values in parts.items()}
        sizes = {name: len(values) for name, values in about.items()}
        sizes |= {} if target is None else {"target": len(target)}
        for name, size in sizes.items():
            if size != len(x):
                raise ValueError(
                    f"a batch of {self.name} has {len(x)} inputs and {size} of"
                    f" {name!r}; there must be one for each item"
                )
        return ItemBatch(x, target, about, layout)

    def _several(self, inputs: Any) -> tuple[Tensor, InputLayout]:
        """Return several inputs as rows; each is cast as a single one is."""
        if isinstance(inputs, Mapping):
            return joined(
                {str(n): self._x(part) for n, part in inputs.items()}, self.name
            )
        return joined([self._x(part) for part in inputs], self.name)

    def _x(self, inputs: Any) -> Tensor:
        x = _tensor(inputs, f"the inputs of {self.name}").to(self.device)
        if x.is_floating_point() and x.dtype != self.dtype:
            x = x.to(self.dtype)
        if not x.ndim:
            raise ValueError(f"a batch of {self.name} must have items along axis 0")
        return x


def as_loader(items: Iterable[Any] | Dataset[Any]) -> Iterable[Any]:
    """Return a loader of `items`, which may be a dataset."""
    if not isinstance(items, Dataset):
        return items
    return DataLoader(items, batch_size=BATCH)


def _is_whole(loader: Any) -> bool:
    """Return whether a tuple holds all inputs and all targets, not two batches."""
    if not isinstance(loader, tuple) or len(loader) != 2:
        return False
    if not all(isinstance(part, Tensor | np.ndarray) for part in loader):
        return False
    x, target = loader
    return len(x) == len(target) and x.ndim > target.ndim


def _with_own_seed(loader: Iterable[Any]) -> Iterator[Any]:
    """Yield each batch of `loader`, which gets random numbers of its own.

    What a method draws must not depend on how its items are loaded.
    """
    stream = torch.Generator().manual_seed(torch.initial_seed() + 1)
    loader_state, batches = stream.get_state(), None
    while True:
        outer_state = torch.get_rng_state()
        torch.set_rng_state(loader_state)
        try:
            batches = iter(loader) if batches is None else batches
            batch = next(batches, _END)
        finally:
            loader_state = torch.get_rng_state()
            torch.set_rng_state(outer_state)
        if batch is _END:
            return
        yield batch


def target_of(batch: ItemBatch, task: Task, name: str, *, regions: int = 0) -> Tensor:
    """Return the targets of a batch: (B,), or label maps (B, R, *space).

    Of regions they are masks (B, R, K, *space).
    """
    target = batch.target
    assert target is not None
    if regions:
        target = masks_of_regions(target, batch.x, regions, name)
    elif "pixels" in traits(task.name):
        if target.ndim == batch.x.ndim - 1:
            target = target[:, None]
        if target.ndim != batch.x.ndim or target.shape[2:] != batch.x.shape[2:]:
            raise ValueError(
                f"label maps of {name} must have the size of their images, got"
                f" {tuple(target.shape)} for inputs {tuple(batch.x.shape)}"
            )
    elif target.ndim > 1:
        if target[0].numel() != 1:
            raise ValueError(
                f"{name} must have one target for each item, got shape"
                f" {tuple(target.shape)}; if it is one-hot, take its argmax(1)"
            )
        target = target.flatten()
    if "values" in traits(task.name):
        return target.float() if target.dtype != torch.float64 else target
    return _classes(target, task, name, regions)


def _words(task: Task, regions: int) -> str:
    if regions:
        return "1 inside of a region and 0 outside"
    assert task.classes is not None
    return f"classes 0..{task.classes - 1}, as the model has {task.classes} of them"


def _classes(target: Tensor, task: Task, name: str, regions: int) -> Tensor:
    classes = target.long()
    if target.is_floating_point() and not bool((classes == target).all()):
        raise ValueError(
            f"targets of {name} must be the numbers of classes, got"
            f" {target.flatten()[0].item():.4g}; for values say task='regression'"
        )
    wrong = classes < -1
    if "vectors" in traits(task.name):  # of any classes, not only those of the network
        if bool(wrong.any()):
            raise ValueError(
                f"targets of {name} must be classes from 0 on, or -1 where none is"
                f" known, got {classes[wrong][0].item()}"
            )
        return classes
    assert task.classes is not None
    wrong |= classes >= task.classes
    if task.ignore is not None:
        wrong &= classes != task.ignore
    if bool(wrong.any()):
        first = classes[wrong][0].item()
        marks = first > 0 and "pixels" in traits(task.name)
        hint = "; say ignore=... if it marks pixels that do not count" if marks else ""
        hint = "; convert the masks to 0 and 1" if regions else hint
        raise ValueError(
            f"targets of {name} must be {_words(task, regions)}, got {first}{hint}"
        )
    return classes


def _parts(batch: Any, name: str) -> dict[str, Any]:
    """Return a batch as a mapping with the keys of `KEYS`."""
    if isinstance(batch, Mapping):
        return _checked_keys(dict(batch), name, required=("x",))
    if not isinstance(batch, tuple | list):
        return {"x": batch}
    if len(batch) == 3 and isinstance(batch[2], Mapping):
        more = _checked_keys(dict(batch[2]), name, required=())
        return {"x": batch[0], "target": batch[1], **more}
    if len(batch) not in (1, 2):
        raise ValueError(
            f"a batch of {name} must be x, (x, target), (x, target, mapping) or a"
            f" mapping, got {len(batch)} parts; say unpack=lambda batch: batch[:2] to"
            " take the first two, or unpack=lambda batch: (tuple(batch[:-1]),"
            " batch[-1]) if all but the last are inputs"
        )
    return dict(zip(("x", "target"), batch, strict=False))


def _checked_keys(
    batch: dict[Any, Any], name: str, required: tuple[str, ...]
) -> dict[str, Any]:
    unknown = [key for key in batch if key not in KEYS]
    missing = [key for key in required if key not in batch]
    if unknown or missing:
        wrong = f"has {unknown[0]!r}" if unknown else f"has no {missing[0]!r}"
        raise ValueError(
            f"a mapping in a batch of {name} {wrong}; its keys may be"
            f" {', '.join(KEYS)}. Say for example unpack=lambda batch:"
            " {'x': batch['image'], 'target': batch['label']}"
        )
    return batch


def _tensor(values: Any, what: str) -> Tensor:
    if isinstance(values, Tensor):
        return values
    try:
        return torch.as_tensor(np.asarray(values))
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"{what} must be a tensor, got {type(values).__name__}; say unpack=... to"
            " take it from the batch"
        ) from error


def _array(values: Any) -> NDArray[Any]:
    if isinstance(values, Tensor):
        return values.detach().cpu().numpy()
    return np.asarray(values)


def _listed(parts: set[str]) -> str:
    return ", ".join(["x", *sorted(parts)])
