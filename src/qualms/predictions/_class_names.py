"""Names of classes: targets that are names, and checks of names in the header."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qualms.predictions._errors import PredictionsError, listed
from qualms.predictions._header import Header
from qualms.predictions.schema import Field
from qualms.wording import suggest


def named_classes(
    header: Header, arrays: Mapping[str, NDArray[Any]], *, known: bool
) -> Header:
    """Return the header of embeddings, completed by the names of their classes.

    Embeddings have no probabilities whose order fixes the classes, so classes with
    names are numbered in alphabetical order.

    Args:
        header: Header of the file.
        arrays: Its arrays of classes.
        known: Whether the file marks items of no known class.

    Raises:
        PredictionsError: If one array holds names and another numbers, or a name is
            empty.
    """
    texts = {name: array for name, array in arrays.items() if array.dtype.kind == "U"}
    if header.classes or not texts:
        return header
    numbers = [name for name in arrays if name not in texts]
    if numbers:
        raise PredictionsError(
            f"arrays '{next(iter(texts))}' and '{numbers[0]}' must both hold names of"
            " classes, or both numbers, got names and numbers; write both alike, or"
            " state the names in the order of the numbers in the header's 'classes'"
        )
    names = {name for array in texts.values() for name in np.unique(array).tolist()}
    if "" in names and not known:
        name, row = next(
            (name, int(np.argmax(array.ravel() == "")))
            for name, array in texts.items()
            if (array == "").any()
        )
        raise PredictionsError(
            f"array '{name}' must name the class of every item, row {row} is empty;"
            " name it, or mark items of no known class by an array 'known'"
        )
    return replace(header, classes=tuple(sorted(names - {""})))


def numbered_classes(
    name: str, array: NDArray[Any], field: Field, header: Header, *, known: bool = False
) -> NDArray[Any]:
    """Return classes as numbers; the number of a name is its place in the header.

    If the file has the array `known`, an empty name stands for no known class, -1.

    Raises:
        PredictionsError: If the header lacks the name of a class.
    """
    if field.kind != "class" or array.dtype.kind != "U":
        return array
    if not header.classes:
        raise PredictionsError(
            f"array '{name}' must be numbers, got text such as"
            f" {array.flat[0].item() if array.size else ''!r:.60}; encode the classes"
            " as whole numbers 0..C-1, or state their names in the order of the"
            " probabilities in the header's 'classes'"
        )
    numbers = {each: number for number, each in enumerate(header.classes)}
    if known and field.unknown:
        numbers[""] = -1
    unique, places = np.unique(array, return_inverse=True)
    unknown = [each for each in unique.tolist() if each not in numbers]
    if unknown:
        row = int(np.argmax(array.ravel() == unknown[0]))
        raise PredictionsError(
            f"array '{name}' must hold the names in the header's 'classes'"
            f" ({listed(header.classes)}), row {row} is {unknown[0]!r:.60}."
            f"{suggest(unknown[0], header.classes)} Correct it, or the header"
        )
    codes = np.array([numbers[each] for each in unique.tolist()], np.int64)
    return codes[places].reshape(array.shape)


def check_class_names(header: Header, classes: int | None) -> None:
    """Raise unless the header names every class, or none."""
    count = len(header.classes)
    if classes is not None and count not in (0, classes):
        raise PredictionsError(
            f"header 'classes' names {count} ({listed(header.classes)}), and there are"
            f" {classes} classes; name every class in the order of the probabilities"
        )
