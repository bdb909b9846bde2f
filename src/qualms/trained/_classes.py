"""Assignment of a network's outputs to the classes of a user's items."""

import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

_SHOWN = 5


class ClassNames(NamedTuple):
    """Class of each output."""

    names: tuple[str, ...]
    note: str
    """Sentence about the assignment, if the user did not state one; else ''."""

    def numbers(self) -> dict[str, int]:
        """Return the output of each class."""
        return {name: number for number, name in enumerate(self.names)}


def class_names(
    outputs: int, listed: Sequence[str] | None, of_items: set[str], file: str = ""
) -> ClassNames:
    """Return the class of each output of a network; raise where they do not fit.

    Args:
        outputs: number of outputs; a single one stands for two classes.
        listed: classes that the user names in order, if so.
        of_items: classes that items have.
        file: file that `listed` was read from.
    """
    count = max(2, outputs)
    if listed is not None:
        _check_listed(count, listed, of_items, file)
        return ClassNames(tuple(listed), "")
    if not of_items:
        return ClassNames((), "")
    if all(name.isdecimal() for name in of_items):
        return _numbered(count, of_items)
    if len(of_items) != count:
        raise ValueError(
            f"the network has {count} classes, and the items have {len(of_items)}"
            f" ({_listed(sorted(of_items))}); say with --classes FILE which output is"
            " which"
        )
    names = tuple(sorted(of_items))
    note = f"outputs 0 to {count - 1} were taken for {_listed(names)}, in this order"
    return ClassNames(names, note)


def embedded_classes(
    outputs: int, listed: Sequence[str] | None, of_items: set[str], file: str = ""
) -> ClassNames:
    """Return the classes of items that are embedded, by number.

    Classes need not be those of the network. Those that the user lists come first, in
    the order of the outputs, so that what the classifier predicts is comparable.

    Args:
        outputs: number of outputs of the classifier; 0 where there is none.
        listed: classes that the user names in order, if so.
        of_items: classes that items have.
        file: file that `listed` was read from.
    """
    if listed is None:
        return ClassNames(tuple(sorted(of_items)), "")
    if not outputs:
        raise ValueError(
            f"{file} names the outputs of a classifier, and this network has none;"
            " leave --classes out"
        )
    _check_listed(max(2, outputs), listed, set(), file)
    others = sorted(of_items - set(listed))
    note = ""
    if others:
        note = (
            f"the classifier does not know {_listed(others)}, so that its classes are"
            " not kept"
        )
    return ClassNames((*listed, *others), note)


def _numbered(count: int, of_items: set[str]) -> ClassNames:
    """Return classes whose names are the numbers of outputs."""
    names = {int(name): name for name in sorted(of_items)}
    if len(names) < len(of_items) or max(names) >= count:
        raise ValueError(
            f"classes that are numbers must be those of the network's outputs, 0 to"
            f" {count - 1}, each once, got {_listed(sorted(of_items, key=int))}; say"
            " with --classes FILE which output is which"
        )
    note = "the names of the classes were taken for the numbers of the outputs"
    return ClassNames(tuple(names.get(n, str(n)) for n in range(count)), note)


def read_classes(path: Path) -> list[str]:
    """Read the class of each output from a file: a line for each, or JSON.

    JSON is a list of names, names by the numbers of outputs, or numbers by names.
    """
    if not path.is_file():
        raise ValueError(f"there is no file of classes {path}; check the path")
    try:
        text = path.read_text(encoding="utf-8")
        stored = json.loads(text) if path.suffix.lower() == ".json" else _lines(text)
    except (UnicodeDecodeError, json.JSONDecodeError) as error:
        raise ValueError(
            f"{path} must be text in UTF-8 with a class on each line, or JSON, and"
            f" cannot be read: {error}"
        ) from error
    names = list(stored) if isinstance(stored, list) else _by_number(stored, path)
    if not names or not all(isinstance(name, str) and name for name in names):
        raise ValueError(f"{path} must hold a name for each output; fill what is empty")
    return names


def _lines(text: str) -> list[str]:
    return [line.strip() for line in text.rstrip().splitlines()]


def _by_number(stored: Any, path: Path) -> list[Any]:
    pairs = list(stored.items()) if isinstance(stored, dict) else []
    if pairs and all(isinstance(value, int) for _, value in pairs):
        pairs = [(str(number), name) for name, number in pairs]
    numbers = [str(number) for number, _ in pairs]
    if not pairs or sorted(numbers) != sorted(map(str, range(len(pairs)))):
        raise ValueError(
            f"{path} must map the outputs 0, 1, 2 ... to names, each once, or names to"
            f" them, got {_listed(sorted(numbers)) or type(stored).__name__}"
        )
    return [name for _, name in sorted(pairs, key=lambda pair: int(pair[0]))]


def _check_listed(
    count: int, listed: Sequence[str], of_items: set[str], file: str
) -> None:
    twice = [name for name, times in Counter(listed).items() if times > 1]
    if twice:
        raise ValueError(
            f"{file} names {_listed(twice)} more than once; every output has a class of"
            " its own"
        )
    if len(listed) != count:
        raise ValueError(
            f"{file} names {len(listed)} classes, and the network has {count} outputs;"
            " name one for each output, in their order"
        )
    unnamed = sorted(of_items - set(listed))
    if unnamed:
        raise ValueError(
            f"{file} does not name {_listed(unnamed)}, which the items have; rename the"
            " folders or correct the file"
        )


def _listed(names: Sequence[str]) -> str:
    more = len(names) - _SHOWN
    return ", ".join(names[:_SHOWN]) + (f" and {more} more" if more > 0 else "")
