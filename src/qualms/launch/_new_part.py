"""`qualms new`: a part of your own, from a skeleton that works as it is.

A skeleton is a text in `skeletons/`, in which NAME stands for the name of the part. The
test beside it finds the part as `--include` does.
"""

import keyword
import os
from collections.abc import Mapping
from contextlib import ExitStack
from importlib import resources
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

from qualms.shelf import names
from qualms.wording import suggest

KINDS: Mapping[str, str] = {
    "method": "methods",
    "dataset": "datasets",
    "network": "networks",
    "score": "scores",
    "benchmark": "benchmarks",
    "reader": "readers",
    "corruption": "corruptions",
}
"""The shelf of each kind of part."""


class NewPart(NamedTuple):
    """Files of a new part."""

    code: Path
    test: Path


def new_part(kind: str, name: str, folder: Path) -> NewPart:
    """Write the skeleton of a part, and its test, to a folder.

    Raises:
        LookupError: If there is no such kind of part.
        ValueError: If the name cannot be that of a part, or the files cannot be
            written or are there already.
    """
    if kind not in KINDS:
        raise LookupError(
            f"no skeleton of a {kind!r}.{suggest(kind, KINDS)} Known:"
            f" {', '.join(KINDS)}."
        )
    _check_name(kind, name)
    files = NewPart(folder / f"{name}.py", folder / f"test_{name}.py")
    for file in files:
        if file.exists():
            raise ValueError(f"{file} is there already; choose another name or folder")
    _check_module(name)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with ExitStack() as written:
            for file, skeleton in zip(files, (kind, f"test_{kind}"), strict=True):
                _write_skeleton(file, skeleton, name, written)
            written.pop_all()  # both are there, so that both stay
    except OSError as error:
        raise ValueError(
            f"cannot write to {folder}: {error.strerror or error}; choose another"
            " folder with --to DIR"
        ) from error
    return files


def _write_skeleton(file: Path, skeleton: str, name: str, undo: ExitStack) -> None:
    text = resources.files("qualms.launch").joinpath("skeletons", f"{skeleton}.txt")
    with file.open("x", encoding="utf-8") as out:  # never over what is there
        undo.callback(file.unlink, missing_ok=True)
        out.write(text.read_text("utf-8").replace("NAME", name))
        out.flush()
        os.fsync(out.fileno())  # a full disk may say so only now


def _check_name(kind: str, name: str) -> None:
    if not name.isidentifier() or keyword.iskeyword(name) or name != name.lower():
        raise ValueError(
            "a part must be named like a Python function, in lower case, such as"
            f" my_{kind}, got {name!r}"
        )
    if name.startswith(("_", "test_", "conftest")):
        raise ValueError(
            f"files that begin with _, test_ or conftest hold no parts, got {name!r};"
            " choose another name"
        )
    shelf = KINDS[kind]
    if name in _taken(shelf):
        raise ValueError(f"{shelf} has {name!r} already; choose another name")


def _taken(shelf: str) -> set[str]:
    if shelf != "scores":
        return set(names(shelf))
    from qualms import scores

    return {*names(shelf), *scores.__all__}


def _check_module(name: str) -> None:
    """Raise if Python would confuse a file with a module that it has."""
    module = find_spec(name)
    if module is not None and module.origin is not None:  # a plain folder has none
        raise ValueError(
            f"Python has a module {name!r} already, and a file of that name would"
            " hide it; choose another name"
        )
