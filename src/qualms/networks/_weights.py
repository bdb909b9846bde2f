"""Weights of a network from a file: state dicts of torch, and safetensors.

The names in a file may come from another implementation of the same network. Its
tensors are then taken in their order if all shapes agree, and a note says so. The file
may lie in an installed package that brings weights.
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
"""Keys under which checkpoints keep the weights."""
_PREFIXES = ("module.", "_orig_mod.", "network.")
_PACKAGE = "package:"
"""Prefix of `weights` that an installed package brings."""
_ENDINGS = (".safetensors", ".pth", ".pt", ".bin")
_CLASSIFIER = 2
"""Axes of the weight of a classifier, and the largest number of its tensors."""


class Classifier(NamedTuple):
    """Last layer that came with the weights of a network."""

    weight: Tensor
    """(C, F)."""
    bias: Tensor
    """(C,)."""


class FileWeights(NamedTuple):
    """Result of loading a file: the classifier in it, and a note."""

    classifier: Classifier | None
    note: str
    """Note for the user about the file, or ''."""


def weights_file(option: str) -> Path:
    """Return the file that the option `weights` names.

    It is a path, or "package:NAME" for the one file of weights in the installed package
    NAME.
    """
    if not option.startswith(_PACKAGE):
        return Path(option)
    name = option.removeprefix(_PACKAGE)
    package = find_spec(name) if name.isidentifier() else None
    if package is None or not package.submodule_search_locations:
        raise ValueError(
            f"weights={option!r} must name an installed package, and there is no"
            f" {name!r}; install it, or give the path of a file"
        )
    files = [
        file
        for folder in package.submodule_search_locations
        for file in sorted(Path(folder).rglob("*"))
        if file.suffix in _ENDINGS
    ]
    if len(files) != 1:
        listed = ", ".join(file.name for file in files) or "none"
        raise ValueError(
            f"the package {name!r} must hold one file of weights"
            f" ({', '.join(_ENDINGS)}), got {listed}; give the path of a file"
        )
    return files[0]


def load_weights(network: nn.Module, path: Path) -> FileWeights:
    """Load the weights of the file `path` into `network`, which has no classifier.

    Raises:
        ValueError: In a sentence, if there is no such file or it does not fit.
    """
    stored = _read(path)
    state = _without_counters(network.state_dict())
    if all(
        name in stored and stored[name].shape == state[name].shape for name in state
    ):
        network.load_state_dict({name: stored[name] for name in state}, strict=False)
        rest = [tensor for name, tensor in stored.items() if name not in state]
        return FileWeights(_classifier(rest), "")
    network.load_state_dict(_in_order(state, stored, path), strict=False)
    rest = list(stored.values())[len(state) :]
    note = (
        f"names in {path.name} are not those of the network; its {len(state)} tensors"
        " were taken in their order, and all shapes agree"
    )
    return FileWeights(_classifier(rest), note)


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
    return _without_counters(_unwrapped(stored, path))


def _unwrapped(stored: Any, path: Path) -> dict[str, Tensor]:
    for name in _WRAPPED:
        if isinstance(stored, Mapping) and isinstance(stored.get(name), Mapping):
            stored = stored[name]
    if not isinstance(stored, Mapping) or not stored:
        raise ValueError(f"{path} must hold tensors by name, and holds something else")
    tensors = {str(n): part for n, part in stored.items() if isinstance(part, Tensor)}
    for prefix in _PREFIXES:
        if all(name.startswith(prefix) for name in tensors):
            tensors = {n.removeprefix(prefix): part for n, part in tensors.items()}
    return tensors


def _without_counters(weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return all but counters of batches, which not every file has."""
    return {name: part for name, part in weights.items() if part.ndim}


def _in_order(
    expected: Mapping[str, Tensor], stored: Mapping[str, Tensor], path: Path
) -> dict[str, Tensor]:
    """Return the stored tensors under the names of the network, in their order."""
    tensors = list(stored.values())[: len(expected)]
    for (name, part), other in zip_longest(expected.items(), tensors):
        if other is None or other.shape != part.shape:
            shape = "nothing more" if other is None else f"{tuple(other.shape)}"
            raise ValueError(
                f"{path} does not fit the network: {name!r} has the shape"
                f" {tuple(part.shape)}, and the file has {shape} in its place; give"
                " weights of the same network"
            )
    if len(stored) > len(expected) + _CLASSIFIER:
        raise ValueError(
            f"{path} does not fit the network: it has {len(stored)} tensors, and the"
            f" network {len(expected)} and a classifier; give weights of the same"
            " network"
        )
    return dict(zip(expected, stored.values(), strict=False))


def _classifier(tensors: list[Tensor]) -> Classifier | None:
    """Return the classifier among tensors that the network does not have."""
    weights = [part for part in tensors if part.ndim == _CLASSIFIER]
    biases = [part for part in tensors if part.ndim == 1]
    if len(tensors) != _CLASSIFIER or len(weights) != 1 or len(biases) != 1:
        return None
    weight, bias = weights[0], biases[0]
    return Classifier(weight, bias) if len(weight) == len(bias) else None
