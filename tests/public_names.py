"""The public names with their arguments, as `docs/public_names.txt` has them.

`python tests/public_names.py` writes the file anew, which a release does.
"""

import inspect
import re
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

ROOT = Path(__file__).parents[1]
FILE = ROOT / "docs" / "public_names.txt"
HEADING = "# Public names of the last release. `make release` writes this file.\n"


def public_modules() -> list[str]:
    """List the modules that `docs/public.md` names, without the private ones."""
    page = (ROOT / "docs" / "public.md").read_text("utf-8")
    words = set(re.findall(r"`(qualms(?:\.\w+)*)`", page))
    return sorted(word for word in words if "._" not in word and _is_module(word))


def _is_module(word: str) -> bool:
    parts = word.removeprefix("qualms").strip(".").split(".")
    path = ROOT.joinpath("src", "qualms", *filter(None, parts))
    return path.is_dir() or path.with_suffix(".py").is_file()


def public_names() -> dict[str, str]:
    """Map each public name to its arguments, in the order of the alphabet."""
    lines = {
        f"{module}.{name}": signature
        for module in public_modules()
        for name, signature in _names_in(import_module(module))
    }
    return dict(sorted(lines.items()))


def _names_in(module: ModuleType) -> Iterator[tuple[str, str]]:
    for name in sorted(_exports(module)):
        value = getattr(module, name)
        yield name, _signature(value)
        if inspect.isclass(value):
            yield from ((f"{name}.{member}", sig) for member, sig in _members(value))


def _exports(module: ModuleType) -> list[str]:
    if hasattr(module, "__all__"):
        return list(module.__all__)
    return [
        name
        for name, value in vars(module).items()
        if name[0] != "_" and getattr(value, "__module__", None) == module.__name__
    ]


def _members(kind: type) -> Iterator[tuple[str, str]]:
    for name, value in sorted(vars(kind).items()):
        if name[0] == "_":
            continue
        plain = (
            value.__func__ if isinstance(value, classmethod | staticmethod) else value
        )
        if inspect.isfunction(plain):
            yield name, _signature(plain)
        elif isinstance(value, property):
            yield name, ""


def _signature(value: Any) -> str:
    """Write the arguments and whether they have a default, without types."""
    if not callable(value):
        return ""
    try:
        parameters = inspect.signature(value).parameters.values()
    except ValueError:  # a type that is written in C
        return ""
    return f"({', '.join(_argument(parameter) for parameter in parameters)})"


def _argument(parameter: inspect.Parameter) -> str:
    stars = {parameter.VAR_POSITIONAL: "*", parameter.VAR_KEYWORD: "**"}
    keyword = "*:" if parameter.kind is parameter.KEYWORD_ONLY else ""
    default = "" if parameter.default is parameter.empty else "="
    return f"{keyword}{stars.get(parameter.kind, '')}{parameter.name}{default}"


def as_text(names: dict[str, str]) -> str:
    """Write one name to a line."""
    return HEADING + "".join(f"{name}{names[name]}\n" for name in names)


def released_names() -> dict[str, str]:
    """Read the names of the last release."""
    lines = FILE.read_text("utf-8").removeprefix(HEADING).splitlines()
    pairs = (line.partition("(") for line in lines)
    return {name: bracket + rest for name, bracket, rest in pairs}


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT / "src"))
    FILE.write_text(as_text(public_names()), "utf-8")
