"""The folder is the registry: a part is found by the name of its file.

`methods/swag.py` defines `swag`; nothing else has to be told. A name that is not there
is answered with the closest one that is.

Parts may also live outside the package. A file or folder that is included gives a part
for every function whose return type is that of a shelf, such as `Method` or `Recipe`,
and for every function that is declared by `@as_score`. An installed package names its
parts by entry points: the group `qualms.methods` is the shelf `methods`.
"""

import ast
import hashlib
import inspect
import os
import pkgutil
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache, partial
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any, get_type_hints

from qualms.wording import suggest

_VARIABLE = "QUALMS_INCLUDE"
"""In the environment, so that processes that are started later include the same."""
_RETURNED = {
    "Method": "methods",
    "Recipe": "datasets",
    "Benchmark": "benchmarks",
    "Protocol": "evaluate.protocols",
    "Paper": "report.papers",
}
"""The shelf of a part by the type that its function returns."""
_SHELVES = ("methods", "datasets", "networks", "benchmarks", "scores")
"""Shelves that entry points may fill."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OutsidePart:
    """A part that lives outside the package."""

    name: str
    where: str
    """Its file, or the package that brings it."""
    load: Callable[[], Any]
    """Gives its function."""


def names(shelf: str) -> tuple[str, ...]:
    """Every part on `shelf`, e.g. `names("methods")`, in alphabetical order.

    The package itself is not imported: a list of methods must not wait for torch.
    """
    return tuple(sorted({*_own(shelf), *outside_parts(shelf)}))


def find(shelf: str, name: str) -> Any:
    """The part `name` of `shelf`: the function its file is named after."""
    outside = outside_parts(shelf)
    if name in outside:
        return outside[name].load()
    known = names(shelf)
    if name not in known:
        raise LookupError(
            f"no {name!r} in {shelf}.{suggest(name, known)} Known: {', '.join(known)}."
        )
    return getattr(import_module(f"qualms.{shelf}.{name}"), name)


def include(paths: Iterable[str | Path]) -> None:
    """Take parts from files and folders outside the package, from now on.

    Processes that are started later include the same.

    Raises:
        ValueError: If a path is not there, cannot be imported, or holds no part, or has
            the name of a part that is known already.
    """
    added = []
    for path in paths:
        full = Path(path).resolve()
        if not full.exists():
            raise ValueError(f"nothing to include at {path}: there is no such file")
        if os.pathsep in str(full):
            raise ValueError(
                f"{full} cannot be included: its name holds {os.pathsep!r}; rename it"
            )
        added.append(str(full))
    before = os.environ.get(_VARIABLE, "")
    os.environ[_VARIABLE] = os.pathsep.join(dict.fromkeys([*_stated(before), *added]))
    try:
        _included(os.environ[_VARIABLE])
    except ValueError:
        os.environ[_VARIABLE] = before
        raise


def outside_parts(shelf: str) -> Mapping[str, OutsidePart]:
    """The parts of `shelf` that live outside the package, by name."""
    found = dict(_installed(shelf)) if shelf in _SHELVES else {}
    found.update(_included(os.environ.get(_VARIABLE, "")).get(shelf, {}))
    return found


def source_of(shelf: str, name: str) -> str:
    """A digest of the code of a part from outside; '' for the package's own."""
    part = outside_parts(shelf).get(name)
    if part is None:
        return ""
    file = Path(inspect.getfile(part.load())).resolve()
    digest = hashlib.sha256()
    for own in sorted(_files(file)):
        digest.update(own.read_bytes())
    return digest.hexdigest()[:16]


def _own(shelf: str) -> tuple[str, ...]:
    """Names of the package's own parts."""
    package = find_spec(f"qualms.{shelf}")
    if package is None or package.submodule_search_locations is None:
        raise ModuleNotFoundError(f"there is no shelf 'qualms.{shelf}'")
    if shelf == "scores":  # its files are families of scores
        return ()
    folders = package.submodule_search_locations
    found = (module.name for module in pkgutil.iter_modules(folders))
    return tuple(name for name in found if not name.startswith("_"))


def _stated(text: str) -> list[str]:
    return [path for path in text.split(os.pathsep) if path]


@cache
def _included(text: str) -> Mapping[str, Mapping[str, OutsidePart]]:
    """Parts by shelf and name, of the paths in `text`."""
    found: dict[str, dict[str, OutsidePart]] = {}
    for path in _stated(text):
        parts = [part for file in _python_files(Path(path)) for part in _parts(file)]
        if not parts:
            raise ValueError(
                f"{path} holds no part: a function must say that it returns Method,"
                " Recipe, Benchmark or a torch module, or be declared by @as_score"
            )
        for shelf, part in parts:
            _refuse_taken(shelf, part, found.get(shelf, {}))
            found.setdefault(shelf, {})[part.name] = part
    return found


def _refuse_taken(
    shelf: str, part: OutsidePart, included: Mapping[str, OutsidePart]
) -> None:
    other = included.get(part.name) or dict(_installed(shelf)).get(part.name)
    if other is None and part.name not in _own(shelf):
        return
    if other is not None and other.where == part.where:
        return  # a file, and the folder that it lies in
    whose = "qualms itself" if other is None else other.where
    raise ValueError(
        f"{shelf} has {part.name!r} from {whose} already; rename the one in"
        f" {part.where}"
    )


def _python_files(path: Path) -> list[Path]:
    if path.is_file():
        return [path]
    return [
        file
        for file in sorted(path.glob("*.py"))
        if not file.name.startswith(("_", "test_", "conftest"))
    ]


def _parts(file: Path) -> Iterator[tuple[str, OutsidePart]]:
    """Each part of a file, with its shelf."""
    module = _imported(file)
    for name, value in vars(module).items():
        if name.startswith("_") or getattr(value, "__module__", "") != module.__name__:
            continue
        shelf = _shelf(value) if inspect.isroutine(value) else ""
        if shelf:
            yield (
                shelf,
                OutsidePart(name=name, where=str(file), load=partial(_same, value)),
            )


def _same(part: Any) -> Any:
    return part


def _imported(file: Path) -> ModuleType:
    """The module of `file`, by its plain name, so that other processes find it too."""
    found = find_spec(file.stem) if file.stem.isidentifier() else None
    held = getattr(sys.modules.get(file.stem), "__file__", None)
    origins = {held, found.origin if found else None} - {None}
    if file.suffix != ".py" or not file.stem.isidentifier():
        raise ValueError(f"{file} cannot be included: it must be named like NAME.py")
    if any(Path(str(origin)).resolve() != file for origin in origins):
        raise ValueError(
            f"{file} cannot be included: Python has another module {file.stem!r};"
            " rename the file"
        )
    folder = str(file.parent)
    if folder not in sys.path:
        sys.path.append(folder)
    try:
        return import_module(file.stem)
    except Exception as error:
        raise ValueError(
            f"{file} cannot be included: {type(error).__name__}: {error}"
        ) from error


def _shelf(function: Any) -> str:
    """The shelf of a part; '' for a function that is none."""
    if getattr(function, "__score__", None) is not None:
        return "scores"
    try:
        returned = get_type_hints(function).get("return")
    except (NameError, TypeError):
        returned = None
    for kind in getattr(returned, "__mro__", ()):
        if kind.__module__.startswith("qualms.") and kind.__name__ in _RETURNED:
            return _RETURNED[kind.__name__]
        if kind.__module__.startswith("torch.nn") and kind.__name__ == "Module":
            return "networks"
    return ""


def _files(file: Path) -> set[Path]:
    """`file`, and the files beside it that it imports, and those that they import."""
    seen, waiting = set[Path](), [file]
    while waiting:
        one = waiting.pop()
        if one not in seen and one.is_file():
            seen.add(one)
            for name in _imports(one):
                waiting.append(file.parent / f"{name}.py")
                waiting += sorted((file.parent / name).glob("**/*.py"))
    return seen


def _imports(file: Path) -> Iterator[str]:
    """First names of what a file imports, `a` for `a.b` and for `.a`."""
    for node in ast.walk(ast.parse(file.read_text("utf-8"))):
        named = [alias.name for alias in getattr(node, "names", ())]
        if isinstance(node, ast.ImportFrom):
            named = [node.module] if node.module else named
        elif not isinstance(node, ast.Import):
            continue
        yield from (name.partition(".")[0] for name in named)


@cache
def _installed(shelf: str) -> tuple[tuple[str, OutsidePart], ...]:
    """Parts that installed packages bring, by name."""
    return tuple(
        (
            point.name,
            OutsidePart(
                name=point.name, where=_package(point), load=partial(_loaded, point)
            ),
        )
        for point in entry_points(group=f"qualms.{shelf}")
    )


def _loaded(point: EntryPoint) -> Any:
    try:
        return point.load()
    except Exception as error:
        raise ValueError(
            f"the installed package {_package(point)} brings {point.name!r}, which"
            f" cannot be loaded: {type(error).__name__}: {error}; repair or remove it"
        ) from error


def _package(point: EntryPoint) -> str:
    return point.dist.name if point.dist is not None else point.value
