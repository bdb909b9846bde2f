"""Which output of a network stands for which class of a user's items."""

import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

_SHOWN = 5


class ClassNames(NamedTuple):
    """The class of each output, and how that was found."""

    names: tuple[str, ...]
    note: str
    """What the user should know; '' for nothing."""

    def numbers(self) -> dict[str, int]:
        """The output of each class."""
        return {name: number for number, name in enumerate(self.names)}


def class_names(
    outputs: int, given: Sequence[str] | None, found: set[str], file: str = ""
) -> ClassNames:
    """The class of each output of a network; raise where they do not fit.

    Args:
        outputs: how many the network has; a single one stands for two classes.
        given: those that the user names, in order.
        found: classes that items have.
        file: where the given ones stand.
    """
    count = max(2, outputs)
    if given is not None:
        _check_given(count, given, found, file)
        return ClassNames(tuple(given), "")
    if not found:
        return ClassNames((), "")
    if all(name.isdecimal() for name in found):
        return _numbered(count, found)
    if len(found) != count:
        raise ValueError(
            f"the network has {count} classes, and the items have {len(found)}"
            f" ({_listed(sorted(found))}); say with --classes FILE which output is"
            " which"
        )
    names = tuple(sorted(found))
    note = f"outputs 0 to {count - 1} were taken for {_listed(names)}, in this order"
    return ClassNames(names, note)


def _numbered(count: int, found: set[str]) -> ClassNames:
    """Classes whose names are the numbers of outputs."""
    names = {int(name): name for name in sorted(found)}
    if len(names) < len(found) or max(names) >= count:
        raise ValueError(
            f"classes that are numbers must be those of the network's outputs, 0 to"
            f" {count - 1}, each once, got {_listed(sorted(found, key=int))}; say with"
            " --classes FILE which output is which"
        )
    note = "the names of the classes were taken for the numbers of the outputs"
    return ClassNames(tuple(names.get(n, str(n)) for n in range(count)), note)


def read_classes(path: Path) -> list[str]:
    """The class of each output: a line for each, or JSON.

    JSON is a list of names, names by the numbers of outputs, or numbers by names.
    """
    if not path.is_file():
        raise ValueError(f"there is no file of classes {path}; check the path")
    try:
        text = path.read_text(encoding="utf-8")
        held = json.loads(text) if path.suffix.lower() == ".json" else _lines(text)
    except (UnicodeDecodeError, json.JSONDecodeError) as error:
        raise ValueError(
            f"{path} must be text in UTF-8 with a class on each line, or JSON, and"
            f" cannot be read: {error}"
        ) from error
    names = list(held) if isinstance(held, list) else _by_number(held, path)
    if not names or not all(isinstance(name, str) and name for name in names):
        raise ValueError(f"{path} must hold a name for each output; fill what is empty")
    return names


def _lines(text: str) -> list[str]:
    return [line.strip() for line in text.rstrip().splitlines()]


def _by_number(held: Any, path: Path) -> list[Any]:
    pairs = list(held.items()) if isinstance(held, dict) else []
    if pairs and all(isinstance(value, int) for _, value in pairs):
        pairs = [(str(number), name) for name, number in pairs]
    numbers = [str(number) for number, _ in pairs]
    if not pairs or sorted(numbers) != sorted(map(str, range(len(pairs)))):
        raise ValueError(
            f"{path} must map the outputs 0, 1, 2 ... to names, each once, or names to"
            f" them, got {_listed(sorted(numbers)) or type(held).__name__}"
        )
    return [name for _, name in sorted(pairs, key=lambda pair: int(pair[0]))]


def _check_given(count: int, given: Sequence[str], found: set[str], file: str) -> None:
    twice = [name for name, times in Counter(given).items() if times > 1]
    if twice:
        raise ValueError(
            f"{file} names {_listed(twice)} more than once; every output has a class of"
            " its own"
        )
    if len(given) != count:
        raise ValueError(
            f"{file} names {len(given)} classes, and the network has {count} outputs;"
            " name one for each output, in their order"
        )
    other = sorted(found - set(given))
    if other:
        raise ValueError(
            f"{file} does not name {_listed(other)}, which the items have; rename the"
            " folders or correct the file"
        )


def _listed(names: Sequence[str]) -> str:
    more = len(names) - _SHOWN
    return ", ".join(names[:_SHOWN]) + (f" and {more} more" if more > 0 else "")
