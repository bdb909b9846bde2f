"""Weights of a network from a file: state dicts of torch, and safetensors.

The names in a file may be those of another code for the same network. Its tensors are
then taken in their order, as long as all shapes agree, and that is said. The file may
lie in an installed package that brings weights.
"""

from collections.abc import Mapping
from importlib.util import find_spec
from itertools import zip_longest
from pathlib import Path
from pickle import UnpicklingError
from typing import Any, NamedTuple

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor, nn

_UNREADABLE = (
    OSError,
    RuntimeError,
    ValueError,
    EOFError,
    UnpicklingError,
    SafetensorError,
)
_WRAPPED = ("state_dict", "model", "network", "model_state_dict")
"""Where a checkpoint keeps the weights."""
_PREFIXES = ("module.", "_orig_mod.", "network.")
_PACKAGE = "package:"
"""What `weights` begins with if an installed package brings them."""
_ENDINGS = (".safetensors", ".pth", ".pt", ".bin")
_CLASSIFIER = 2
"""Axes of the weight of a classifier, and the most tensors that it has."""


class Classifier(NamedTuple):
    """The last layer that weights were trained with."""

    weight: Tensor
    """(C, F)."""
    bias: Tensor
    """(C,)."""


class FileWeights(NamedTuple):
    """What a file had for a network."""

    classifier: Classifier | None
    note: str
    """What the user should know; '' for nothing."""


def weights_file(stated: str) -> Path:
    """The file that the option `weights` names.

    It is a path, or "package:NAME" for the one file of weights in the installed package
    NAME.
    """
    if not stated.startswith(_PACKAGE):
        return Path(stated)
    name = stated.removeprefix(_PACKAGE)
    known = find_spec(name) if name.isidentifier() else None
    if known is None or not known.submodule_search_locations:
        raise ValueError(
            f"weights={stated!r} must name an installed package, and there is no"
            f" {name!r}; install it, or give the path of a file"
        )
    files = [
        file
        for folder in known.submodule_search_locations
        for file in sorted(Path(folder).rglob("*"))
        if file.suffix in _ENDINGS
    ]
    if len(files) != 1:
        found = ", ".join(file.name for file in files) or "none"
        raise ValueError(
            f"the package {name!r} must hold one file of weights"
            f" ({', '.join(_ENDINGS)}), got {found}; give the path of a file"
        )
    return files[0]


def load_weights(network: nn.Module, path: Path) -> FileWeights:
    """Give `network`, which has no classifier, the weights of the file `path`.

    Raises:
        ValueError: In a sentence, if there is no such file or it does not fit.
    """
    held = _read(path)
    own = _counted(network.state_dict())
    if all(name in held and held[name].shape == own[name].shape for name in own):
        network.load_state_dict({name: held[name] for name in own}, strict=False)
        left = [part for name, part in held.items() if name not in own]
        return FileWeights(_classifier(left), "")
    taken = _in_order(own, held, path)
    network.load_state_dict(taken, strict=False)
    left = list(held.values())[len(own) :]
    note = (
        f"names in {path.name} are not those of the network; its {len(own)} tensors"
        " were taken in their order, and all shapes agree"
    )
    return FileWeights(_classifier(left), note)


def _read(path: Path) -> dict[str, Tensor]:
    if not path.is_file():
        raise ValueError(
            "weights must be 'random', 'pretrained', 'package:NAME' or the path of a"
            f" file, got {str(path)!r}, which is no file"
        )
    try:
        if path.suffix == ".safetensors":
            stored: Any = load_file(path)
        else:
            stored = torch.load(path, map_location="cpu", weights_only=True)
    except _UNREADABLE as error:
        why = str(error).partition("\n")[0].rstrip(".")
        if "Weights only" in why:
            why = "it is damaged, or holds more than tensors; save model.state_dict()"
        raise ValueError(
            f"{path} must be a state dict of torch or a safetensors file, and cannot be"
            f" read: {why}"
        ) from error
    return _counted(_unwrapped(stored, path))


def _unwrapped(stored: Any, path: Path) -> dict[str, Tensor]:
    for name in _WRAPPED:
        if isinstance(stored, Mapping) and isinstance(stored.get(name), Mapping):
            stored = stored[name]
    if not isinstance(stored, Mapping) or not stored:
        raise ValueError(f"{path} must hold tensors by name, and holds something else")
    held = {str(n): part for n, part in stored.items() if isinstance(part, Tensor)}
    for prefix in _PREFIXES:
        if all(name.startswith(prefix) for name in held):
            held = {name.removeprefix(prefix): part for name, part in held.items()}
    return held


def _counted(weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """All but counters of batches, which not every file has."""
    return {name: part for name, part in weights.items() if part.ndim}


def _in_order(
    own: Mapping[str, Tensor], held: Mapping[str, Tensor], path: Path
) -> dict[str, Tensor]:
    shapes = zip_longest(own.items(), held.items())
    for (name, part), found in ((one, other) for one, other in shapes if one):
        if found is None or found[1].shape != part.shape:
            there = "nothing more" if found is None else f"{tuple(found[1].shape)}"
            raise ValueError(
                f"{path} does not fit the network: {name!r} has the shape"
                f" {tuple(part.shape)}, and the file has {there} in its place; give"
                " weights of the same network"
            )
    if len(held) > len(own) + _CLASSIFIER:
        raise ValueError(
            f"{path} does not fit the network: it has {len(held)} tensors, and the"
            f" network {len(own)} and a classifier; give weights of the same network"
        )
    return dict(zip(own, held.values(), strict=False))


def _classifier(left: list[Tensor]) -> Classifier | None:
    """The classifier among tensors that the network has no place for."""
    weights = [part for part in left if part.ndim == _CLASSIFIER]
    biases = [part for part in left if part.ndim == 1]
    if len(left) != _CLASSIFIER or len(weights) != 1 or len(biases) != 1:
        return None
    weight, bias = weights[0], biases[0]
    return Classifier(weight, bias) if len(weight) == len(bias) else None
