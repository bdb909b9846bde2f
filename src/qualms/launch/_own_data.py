"""Data that a user brings with `--from`: a folder, a table, or a TOML file.

The TOML file states what the command line may state, for repetition:

    from = "pictures"                 # a folder or a CSV, seen from this file
    name = "clothes"
    shift = "rotated"                 # in words
    methods = ["map", "mc_dropout"]
    seeds = [0, 1, 2]
    corrupt = ["blur", "noise"]       # corruptions, as with --corrupt
    severity = [1, 3, 5]
    dataset.side = 28                 # as with -o
    network.name = "resnet_small"
    training.epochs = 10
    method.rate = 0.2
"""

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import date, time
from pathlib import Path
from typing import Any

import numpy as np

from qualms.corruptions import SEVERITIES, applied_corruptions
from qualms.datasets import (
    Dataset,
    Progress,
    Ragged,
    cache_folder,
    prepare,
)
from qualms.launch._devices import devices_for
from qualms.launch.data import recipe_of
from qualms.launch.plan import RunRequest
from qualms.shelf import traits
from qualms.spec import Part
from qualms.study import GivenData
from qualms.wording import suggest

DATASET = "folder"
SPLITS = ("train", "val", "val/shifted", "test", "test/shifted")
TABLES = ("dataset", "network", "training", "method")
_DEPTH = 50
"""Most levels of nested tables and lists."""
_KINDS: Mapping[str, tuple[type, str]] = {
    "from": (str, "a path in quotes"),
    "name": (str, "text in quotes"),
    "shift": (str, "text in quotes"),
    "methods": (list, 'a list such as ["map", "laplace"]'),
    "seeds": (list, "a list such as [0, 1, 2]"),
    "corrupt": (list, 'a list such as ["blur", "fog"]'),
    "severity": (list, "a list such as [1, 3, 5]"),
    **dict.fromkeys(TABLES, (dict, "a table of options")),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class DataDeclaration:
    """Statements of a user about their data."""

    source: Path
    name: str
    shift: str = ""
    methods: tuple[str, ...] = ()
    seeds: tuple[int, ...] = ()
    corruptions: tuple[str, ...] = ()
    severities: tuple[int, ...] = ()
    options: Mapping[str, Any] = field(default_factory=dict)
    """With the prefix of a part, or none for training, as in a `RunRequest`."""


def declaration(source: Path) -> DataDeclaration:
    """Read the declaration in a TOML file; of other sources, return their name."""
    if source.suffix.lower() != ".toml":
        return DataDeclaration(source=source, name=_word(source.resolve().stem))
    content = _read(source)
    prefixed = {
        name if table == "training" else f"{table}.{name}": value
        for table in TABLES
        for name, value in content.get(table, {}).items()
    }
    return DataDeclaration(
        source=source.parent / content["from"],
        name=_word(content.get("name", source.stem)),
        shift=content.get("shift", ""),
        methods=tuple(map(str, content.get("methods", ()))),
        seeds=tuple(content.get("seeds", ())),
        corruptions=tuple(map(str, content.get("corrupt", ()))),
        severities=tuple(content.get("severity", ())),
        options=prefixed,
    )


def with_data(
    request: RunRequest,
    source: Path,
    *,
    data: Path,
    device: str = "auto",
    workers: int | None = None,
    progress: Progress | None = None,
) -> RunRequest:
    """Return a request about the data in `source`, which are prepared in `data`.

    The request itself has precedence over a TOML file.
    """
    if request.preset != RunRequest().preset:
        raise ValueError(
            f"your own data have no presets, got {request.preset!r}; leave out"
            " --preset, and set what you want by -o or in a TOML file"
        )
    declared = declaration(source)
    network = {"network.name": request.network} if request.network else {}
    options = {**declared.options, **network, **request.options}
    of_dataset = {
        name.removeprefix("dataset."): value
        for name, value in options.items()
        if name.startswith("dataset.")
    }
    recipe = recipe_of(Part(name=DATASET, options=of_dataset), declared.source)
    folder = cache_folder(data, recipe)
    dataset = prepare(recipe, folder, workers=workers, progress=progress).dataset
    _check_network(dataset, options)
    contents = {"contents": recipe.options["contents"]}
    return replace(
        request,
        methods=request.methods or declared.methods,
        options={n: v for n, v in options.items() if n != "network.name"},
        network="",
        given=_given(
            replace(
                declared,
                options=options,
                seeds=request.seeds or declared.seeds,
                corruptions=request.corruptions or declared.corruptions,
                severities=request.severities or declared.severities,
            ),
            dataset,
            Part(name=DATASET, options={**of_dataset, **contents}),
            device,
            recipe.notes,
        ),
    )


def _given(
    declared: DataDeclaration,
    dataset: Dataset,
    part: Part,
    device: str,
    notes: tuple[str, ...],
) -> GivenData:
    image = dataset.splits["train"].image
    return GivenData(
        name=declared.name,
        dataset=part,
        task=dataset.task,
        shape=_shape(dataset),
        alike=_alike(dataset),
        patch=_patch(declared.options),
        deep=image.dtype.itemsize > 1,
        sizes={n: len(dataset.splits[n]) for n in SPLITS if n in dataset.splits},
        shift=_shift(dataset, declared.shift),
        corruptions=_corruptions(declared, dataset),
        network=_network(declared.options),
        gpu=devices_for(device) != ["cpu"],
        notes=notes,
        **({"seeds": declared.seeds} if declared.seeds else {}),
    )


def given_text(data: GivenData) -> str:
    """Describe the user's data in one line: task, size of items, and splits."""
    task = data.task
    kind = f"{task.name}, {task.classes} classes" if task.classes else task.name
    about = "" if data.alike else "about "
    sides = about + " x ".join(map(str, data.shape[:-1]))
    colours = {1: "grey", 3: "colour"}
    look = colours.get(data.shape[-1], f"{data.shape[-1]} channels")
    depth = "more than 8 bit" if data.deep else "8 bit"
    items = ", ".join(f"{split} {size:,}" for split, size in data.sizes.items())
    return f"{data.name}: {kind}; {sides}, {look}, {depth}; items: {items}"


def _read(path: Path) -> dict[str, Any]:
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ValueError(f"there is no file {path}; name one with --from") from None
    except (tomllib.TOMLDecodeError, UnicodeError) as error:
        raise ValueError(f"{path} is not TOML: {error}; correct it") from error
    except RecursionError:
        raise ValueError(_too_deep(path)) from None
    for name, value in content.items():
        _check_plain(path, name, value)
    _check_keys(path, content)
    return content


def _check_keys(path: Path, content: Mapping[str, Any]) -> None:
    for key, value in content.items():
        if key not in _KINDS:
            raise LookupError(
                f"no key {key!r} in {path}.{suggest(key, _KINDS)} Known:"
                f" {', '.join(_KINDS)}."
            )
        kind, words = _KINDS[key]
        if not isinstance(value, kind):
            raise ValueError(f"{key!r} in {path} must be {words}, got {value!r}")
    if "from" not in content:
        raise ValueError(f"{path} must name the data: add from = 'FOLDER or CSV'")
    _check_numbers(path, content)


def _check_numbers(path: Path, content: Mapping[str, Any]) -> None:
    for seed in content.get("seeds", ()):
        if type(seed) is not int or seed < 0:
            raise ValueError(
                f"'seeds' in {path} must be whole numbers from 0 on, got {seed!r}"
            )
    for severity in content.get("severity", ()):
        if type(severity) is not int or severity not in SEVERITIES:
            raise ValueError(
                f"'severity' in {path} must list numbers from 1 to 5, got {severity!r}"
            )


def _check_plain(path: Path, name: str, value: Any, depth: int = 0) -> None:
    """Raise if a value is what no option can be: a date, or deeply nested."""
    if depth > _DEPTH:
        raise ValueError(_too_deep(path))
    if isinstance(value, dict):
        for key, inner in value.items():
            _check_plain(path, f"{name}.{key}", inner, depth + 1)
    elif isinstance(value, list):
        for inner in value:
            _check_plain(path, name, inner, depth + 1)
    elif isinstance(value, date | time):
        raise ValueError(
            f"{name!r} in {path} must be text, a number, true or false, got {value};"
            " put a date in quotes"
        )


def _too_deep(path: Path) -> str:
    return f"{path} must not be nested more than {_DEPTH} levels deep; flatten it"


def _word(name: str) -> str:
    """Return a name as a word that paths may contain."""
    return re.sub(r"[^\w.-]+", "_", name).strip("._") or "own"


def _shift(dataset: Dataset, words: str) -> str:
    if "test/shifted" not in dataset.splits:
        return ""
    return words or "items that are marked as shifted"


def _corruptions(
    declared: DataDeclaration, dataset: Dataset
) -> tuple[tuple[str, int], ...]:
    """Return every corruption of the test items; raise if one cannot be applied."""
    if not declared.corruptions:
        if declared.severities:
            raise ValueError(
                "a severity is that of a corruption: name corruptions with --corrupt,"
                " as `--corrupt blur,fog`"
            )
        return ()
    if "test" not in dataset.splits:
        raise ValueError(
            "corruptions are of test items, and these data have none; put some into"
            " the split 'test'"
        )
    image = dataset.splits["test"].image
    sides = image.sides[:, :-1].min(axis=0) if isinstance(image, Ragged) else None
    space = image.shape[1:-1] if sides is None else tuple(sides.tolist())
    return applied_corruptions(declared.corruptions, declared.severities, space)


def _check_network(dataset: Dataset, options: Mapping[str, Any]) -> None:
    """Raise if the data are volumes that no network of ours can predict."""
    task = dataset.task
    if (
        task.space == 3
        and "pixels" not in traits(task.name)
        and _network(options) is None
    ):
        raise ValueError(
            f"there is no network for {task.name} of volumes; state one of yours with"
            " -o network.name=NAME and --include, or give masks"
        )


def _alike(dataset: Dataset) -> bool:
    """Return whether all items of all splits have one shape."""
    images = [split.image for split in dataset.splits.values()]
    varied = any(isinstance(image, Ragged) for image in images)
    return not varied and len({image.shape[1:] for image in images}) == 1


def _shape(dataset: Dataset) -> tuple[int, ...]:
    """Return (*space, channels) of an item; the median where items differ."""
    image = dataset.splits["train"].image
    if not isinstance(image, Ragged):
        return image.shape[1:]
    return tuple(int(np.median(lengths)) for lengths in image.sides.T)


def _patch(options: Mapping[str, Any]) -> tuple[int, ...]:
    """Return the sides that the user asks for; wrong ones are refused later."""
    patch = options.get("patch", ())
    sides = patch if isinstance(patch, list | tuple) else (patch,)
    return tuple(side for side in sides if isinstance(side, int) and side > 0)


def _network(options: Mapping[str, Any]) -> Part | None:
    if "network.name" not in options:
        return None
    return Part(name=str(options["network.name"]))
