"""The folder is the registry: a part is found by the name of its file.

`methods/swag.py` defines `swag`, and there is no list to add it to. For an unknown name
the message suggests the closest known one.

Parts may also live outside the package. In a file or folder that is included, every
function whose return type belongs to a shelf, such as `Method` or `Recipe`, is a part,
and so is every function that is declared by `@as_score`. A folder with `schema.py` is a
task. An installed package names its
parts by entry points: the group `qualms.methods` fills the shelf `methods`.
"""

import ast
import hashlib
import inspect
import os
import pkgutil
import sys
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache, partial, wraps
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple, get_type_hints

from qualms.wording import error_words, plain_line, suggest

_VARIABLE = "QUALMS_INCLUDE"
"""Environment variable with the included paths, which child processes inherit."""
_SHELF_OF = {
    "Method": "methods",
    "Recipe": "datasets",
    "Benchmark": "benchmarks",
    "Reader": "readers",
    "Corruption": "corruptions",
}
"""The shelf of a part by the return type of its function."""
_RETURNED = {shelf: kind for kind, shelf in _SHELF_OF.items()}
_SHELVES = (
    *("methods", "datasets", "networks", "benchmarks", "scores", "readers"),
    *("corruptions", "tasks"),
)
"""Shelves that entry points may fill."""


class PartError(ValueError):
    """A part from outside the package that fails; the message names it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OutsidePart:
    """A part that lives outside the package."""

    name: str
    where: str
    """The file of the part, or the name of its package."""
    load: Callable[[], Any]
    """A function that returns the part."""
    installed: bool = False
    """True for a part of an installed package, False for an included file."""


def names(shelf: str) -> tuple[str, ...]:
    """Return the names of all parts on `shelf`, e.g. "methods", sorted.

    The shelf is not imported, so that a list of methods does not load torch.
    """
    return tuple(sorted({*_package_parts(shelf), *outside_parts(shelf)}))


def find(shelf: str, name: str) -> Any:
    """Return the part `name` of `shelf`: the function that its file is named after.

    Raises:
        LookupError: If the shelf has no such part.
        PartError: If an outside part cannot be loaded. The returned function of an
            outside part raises it, too, if it fails or returns something else.
    """
    outside = outside_parts(shelf)
    if name in outside:
        part = outside[name].load()
        return part if shelf == "scores" else _checked(shelf, name, part)
    parts = names(shelf)
    if name not in parts:
        raise LookupError(
            f"no {name!r} in {shelf}.{suggest(name, parts)} Known: {', '.join(parts)}."
        )
    return getattr(import_module(f"qualms.{shelf}.{name}"), name)


def task_part(task: str, kind: str) -> Any:
    """Return what a task states, e.g. `SCHEMA` of `tasks/<task>/schema.py`.

    Raises:
        LookupError: If there is no such task.
    """
    return getattr(_task_module(task, kind), kind.upper())


def traits(task: str) -> frozenset[str]:
    """Return what the predictions of a task are.

    "items" or "pixels" is what is predicted; "classes", "values", "vectors", or what a
    task from outside calls it, is how; "probabilities" are those of classes.
    """
    stated: frozenset[str] = _task_module(task, "").TRAITS
    return stated


def tasks_with(*needs: str) -> tuple[str, ...]:
    """Return the tasks that have all traits of one of the texts; all without texts."""
    sets = [set(each.split()) for each in needs or ("",)]
    return tuple(t for t in names("tasks") if any(s <= traits(t) for s in sets))


def tasks_stating(kind: str) -> tuple[str, ...]:
    """Return the tasks with a file of this name, e.g. those that can be referred."""
    return tuple(t for t in names("tasks") if find_spec(f"{_task_package(t)}.{kind}"))


def _task_package(task: str) -> str:
    """Return the package with the files of a task."""
    outside = outside_parts("tasks").get(task)
    return f"qualms.tasks.{task}" if outside is None else outside.load().__name__


@cache
def _task_module(task: str, name: str) -> ModuleType:
    known = names("tasks")
    if task not in known:
        raise LookupError(
            f"no task {task!r}.{suggest(task, known)} Known: {', '.join(known)}."
        )
    return import_module(f"{_task_package(task)}{'.' * bool(name)}{name}")


def include(paths: Iterable[str | Path]) -> None:
    """Add the parts in files and folders outside the package to their shelves.

    Processes that are started later include the same paths.

    Raises:
        ValueError: If a path does not exist, cannot be imported, holds no part, or
            holds a part whose name is taken.
    """
    added = []
    for path in paths:
        full = Path(path).resolve()
        if not full.exists():
            raise ValueError(
                f"nothing to include at {path}: there is no such file; check the path"
            )
        if os.pathsep in str(full):
            raise ValueError(
                f"{full} cannot be included: its name holds {os.pathsep!r}; rename it"
            )
        added.append(str(full))
    before = os.environ.get(_VARIABLE, "")
    os.environ[_VARIABLE] = os.pathsep.join(dict.fromkeys([*_paths(before), *added]))
    try:
        _included(os.environ[_VARIABLE])
    except ValueError:
        os.environ[_VARIABLE] = before
        raise


class IncludedPath(NamedTuple):
    """An included file or folder, with the code of its parts."""

    folder: Path
    """The folder that the names of the files start from."""
    name: str
    """The name of the file in it; '' where the folder itself is included."""
    files: Mapping[str, bytes]
    """Contents of its Python files and of the files that they import, by path."""


def included_paths() -> tuple[IncludedPath, ...]:
    """Return all included paths, to include them on another machine."""
    return tuple(map(_read_included, _paths(os.environ.get(_VARIABLE, ""))))


def including(paths: Iterable[Path]) -> dict[str, str]:
    """Return the environment of a process that includes these paths, and no others."""
    return {_VARIABLE: os.pathsep.join(map(str, paths))}


def _read_included(text: str) -> IncludedPath:
    path = Path(text)
    folder, name = (path.parent, path.name) if path.is_file() else (path, "")
    files = {file for start in _python_files(path) for file in _with_imports(start)}
    contents = {
        file.relative_to(folder).as_posix(): file.read_bytes() for file in files
    }
    return IncludedPath(folder, name, contents)


def outside_parts(shelf: str) -> Mapping[str, OutsidePart]:
    """Return the parts of `shelf` that live outside the package, by name.

    Installed packages cannot bring parts with names of the package; see `refused`.
    """
    parts = _installed(shelf).parts if shelf in _SHELVES else {}
    return {**parts, **_included(os.environ.get(_VARIABLE, "")).get(shelf, {})}


def refused(shelf: str) -> tuple[str, ...]:
    """Return a sentence for each part of an installed package whose name is taken."""
    return _installed(shelf).refused if shelf in _SHELVES else ()


def broken(shelf: str) -> Mapping[str, str]:
    """Return why parts of installed packages cannot be loaded, by name.

    The user did not ask for them, so commands on all parts go on without them.
    """
    wrong = {}
    for name, part in (_installed(shelf).parts if shelf in _SHELVES else {}).items():
        try:
            part.load()
        except PartError as error:
            wrong[name] = str(error)
    return wrong


def source_of(shelf: str, name: str) -> str:
    """Return a digest of the code of an outside part; '' for parts of the package."""
    part = outside_parts(shelf).get(name)
    if part is None:
        return ""
    file = Path(inspect.getfile(part.load())).resolve()
    digest = hashlib.sha256()
    for path in sorted(_with_imports(file)):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def outside_error(error: BaseException) -> str:
    """Describe an error in the code of an outside part; '' for other errors.

    The sentence names the part (the file, if it has several parts) and the line.
    """
    if isinstance(error, PartError):
        return str(error)
    parts = _parts_by_file()
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        if frame.filename in parts:
            file, called = Path(frame.filename).name, parts[frame.filename]
            who = called[0] if len(called) == 1 else f"a part in {file}"
            # Messages of other errors are no sentences.
            is_sentence = isinstance(error, ValueError)
            words = plain_line(str(error)) if is_sentence else error_words(error)
            return f"{who}: {words} ({file}, line {frame.lineno})"
    return ""


def _parts_by_file() -> dict[str, list[str]]:
    """Return the names of the parts in each file outside the package."""
    files: dict[str, list[str]] = {}
    for shelf in _SHELVES:
        try:
            parts = outside_parts(shelf)
        except ValueError:  # a path in the environment that cannot be included
            continue
        for name, part in parts.items():
            called = f"{shelf.removesuffix('s')} {name!r}"
            files.setdefault(_file_of(part), []).append(called)
    return files


def _file_of(part: OutsidePart) -> str:
    """Return the file of a part; '' if it cannot be loaded."""
    if not part.installed:
        return part.where
    try:
        return inspect.getfile(part.load())
    except (PartError, TypeError):
        return ""


@cache
def _package_parts(shelf: str) -> tuple[str, ...]:
    """Return the names of the parts that the package itself has."""
    package = find_spec(f"qualms.{shelf}")
    if package is None or package.submodule_search_locations is None:
        raise ModuleNotFoundError(f"there is no shelf 'qualms.{shelf}'")
    if shelf == "scores":  # its files are families of scores
        return ()
    folders = package.submodule_search_locations
    modules = (module.name for module in pkgutil.iter_modules(folders))
    return tuple(name for name in modules if not name.startswith("_"))


def _checked(shelf: str, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap an outside function: its errors name it, and it must return a part."""
    called = f"{shelf.removesuffix('s')} {name!r}"
    kind = _RETURNED.get(shelf, "torch module")

    @wraps(function)
    def make(*arguments: Any, **options: Any) -> Any:
        try:
            part = function(*arguments, **options)
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # foreign code may also leave the program
            if type(error).__module__.startswith("qualms."):
                raise
            if isinstance(error, ValueError):  # it refuses an option
                raise ValueError(f"{called}: {error}") from error
            raise PartError(f"{called}: {error_words(error)}") from error
        kinds = {base.__name__ for base in type(part).__mro__}
        if part is None or (shelf in _RETURNED and kind not in kinds):
            raise PartError(
                f"{called} must return a {kind}, got {type(part).__name__}; correct the"
                " function"
            )
        return part

    return make


def _paths(text: str) -> list[str]:
    """Return the paths in the value of the environment variable."""
    return [path for path in text.split(os.pathsep) if path]


@cache
def _included(text: str) -> Mapping[str, Mapping[str, OutsidePart]]:
    """Return the parts of the paths in `text` by shelf and name."""
    shelves: dict[str, dict[str, OutsidePart]] = {}
    for path in _paths(text):
        if not Path(path).exists():
            raise ValueError(
                f"nothing to include at {path}, which {_VARIABLE} names: there is no"
                " such file; check the path"
            )
        parts = [part for file in _python_files(Path(path)) for part in _parts(file)]
        parts += [("tasks", _task_part(each)) for each in _task_folders(Path(path))]
        if not parts:
            raise ValueError(
                f"{path} holds no part: a function must say that it returns Method,"
                " Recipe, Benchmark, Reader, Corruption or a torch module, or be"
                " declared by @as_score; a folder with schema.py is a task"
            )
        for shelf, part in parts:
            _refuse_taken(shelf, part, shelves.get(shelf, {}))
            shelves.setdefault(shelf, {})[part.name] = part
    return shelves


def _refuse_taken(
    shelf: str, part: OutsidePart, included: Mapping[str, OutsidePart]
) -> None:
    other = included.get(part.name) or _installed(shelf).parts.get(part.name)
    if other is None and part.name not in _own_names(shelf):
        return
    if other is not None and other.where == part.where:
        return  # a file was included as well as its folder
    owner = "qualms itself" if other is None else other.where
    raise ValueError(
        f"{shelf} has {part.name!r} from {owner} already; rename the one in"
        f" {part.where}"
    )


@cache
def _own_names(shelf: str) -> frozenset[str]:
    """Return the names that parts from outside cannot have."""
    if shelf == "scores":
        return frozenset(import_module("qualms.scores").__all__)
    return frozenset(_package_parts(shelf))


def _task_folders(path: Path) -> list[Path]:
    """Return the folders of tasks: `path` itself, or those in it."""
    return sorted(file.parent for file in path.glob("schema.py")) or sorted(
        file.parent for file in path.glob("*/schema.py")
    )


def _task_part(folder: Path) -> OutsidePart:
    package = _imported(folder / "__init__.py", folder.name)
    return OutsidePart(
        name=folder.name, where=str(folder), load=partial(_identity, package)
    )


def _python_files(path: Path) -> list[Path]:
    if path.is_file():
        return [path]
    if path in _task_folders(path):
        return []
    return [
        file
        for file in sorted(path.glob("*.py"))
        if not file.name.startswith(("_", "test_", "conftest"))
    ]


def _parts(file: Path) -> Iterator[tuple[str, OutsidePart]]:
    """Yield each part of a file with its shelf."""
    module = _imported(file)
    for name, value in vars(module).items():
        if name.startswith("_") or getattr(value, "__module__", "") != module.__name__:
            continue
        shelf = _shelf(value) if inspect.isroutine(value) else ""
        if shelf:
            yield (
                shelf,
                OutsidePart(name=name, where=str(file), load=partial(_identity, value)),
            )


def _identity(part: Any) -> Any:
    return part


def _imported(file: Path, package: str = "") -> ModuleType:
    """Import `file` under its plain name, by which other processes find it too."""
    name = package or file.stem
    spec = find_spec(name) if name.isidentifier() else None
    loaded = getattr(sys.modules.get(name), "__file__", None)
    origins = {loaded, spec.origin if spec else None} - {None}
    if file.suffix != ".py" or not name.isidentifier():
        raise ValueError(f"{file} cannot be included: it must be named like NAME.py")
    if any(Path(str(origin)).resolve() != file for origin in origins):
        raise ValueError(
            f"{file} cannot be included: Python has another module {name!r};"
            " rename the file"
        )
    folder = str(file.parent.parent if package else file.parent)
    if folder not in sys.path:
        sys.path.append(folder)
    try:
        return import_module(name)
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        raise ValueError(f"{file} cannot be included: {error_words(error)}") from error


def _shelf(function: Any) -> str:
    """Return the shelf that a function belongs to; '' if it is not a part."""
    if getattr(function, "__score__", None) is not None:
        return "scores"
    try:
        return_type = get_type_hints(function).get("return")
    except (NameError, TypeError):
        return_type = None
    for kind in getattr(return_type, "__mro__", ()):
        if kind.__module__.startswith("qualms.") and kind.__name__ in _SHELF_OF:
            return _SHELF_OF[kind.__name__]
        if kind.__module__.startswith("torch.nn") and kind.__name__ == "Module":
            return "networks"
    return ""


def _with_imports(file: Path) -> set[Path]:
    """Return `file` and the files beside it that it imports, directly or not."""
    visited, waiting = set[Path](), [file]
    while waiting:
        path = waiting.pop()
        if path not in visited and path.is_file():
            visited.add(path)
            for name in _imports(path):
                waiting.append(file.parent / f"{name}.py")
                waiting += sorted((file.parent / name).glob("**/*.py"))
    return visited


def _imports(file: Path) -> Iterator[str]:
    """Yield the first name of each import of a file: `a` for `a.b` and for `.a`."""
    for node in ast.walk(ast.parse(file.read_text("utf-8"))):
        modules = [alias.name for alias in getattr(node, "names", ())]
        if isinstance(node, ast.ImportFrom):
            modules = [node.module] if node.module else modules
        elif not isinstance(node, ast.Import):
            continue
        yield from (name.partition(".")[0] for name in modules)


class _Installed(NamedTuple):
    """Parts of installed packages by name, and sentences on those that are refused."""

    parts: dict[str, OutsidePart]
    refused: tuple[str, ...]


@cache
def _installed(shelf: str) -> _Installed:
    """Return the parts of installed packages."""
    parts: dict[str, OutsidePart] = {}
    refused: list[str] = []
    for point in entry_points(group=f"qualms.{shelf}"):
        package, name = _package(point), point.name
        other = parts.get(name)
        if other is None and name not in _own_names(shelf):
            load = partial(_loaded, point)
            parts[name] = OutsidePart(
                name=name, where=package, load=load, installed=True
            )
        elif other is None or other.where != package:
            owner = "qualms itself" if other is None else other.where
            refused.append(
                f"the installed package {package} brings {name!r} to {shelf}, which"
                f" have it from {owner} already: left out"
            )
    return _Installed(parts, tuple(refused))


def _loaded(point: EntryPoint) -> Any:
    """Return the part of an entry point."""
    try:
        part = point.load()
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        raise PartError(
            f"the installed package {_package(point)} brings {point.name!r}, which"
            f" cannot be loaded: {error_words(error)}; repair or remove it"
        ) from error
    if not callable(part):
        raise PartError(
            f"the installed package {_package(point)} brings {point.name!r}, which must"
            f" be a function, got {type(part).__name__}; repair or remove it"
        )
    return part


def _package(point: EntryPoint) -> str:
    return point.dist.name if point.dist is not None else point.value
