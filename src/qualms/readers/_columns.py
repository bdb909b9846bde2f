"""Columns of tables of other programs, by their names.

A column is a 1-d array of numbers, truth values or text. Columns with names of our
schema (`item`, `group`, `uncertainty/<name>` ...) are used unchanged.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qualms.predictions import PredictionsError, array_field
from qualms.readers import ForeignContents
from qualms.wording import cluster_hint, plural

Columns = Mapping[str, NDArray[Any]]
_PROB = re.compile(r"(?:y_)?prob(?:a|ability|abilities)?")
_OWN = ("item", "group", "cluster", "shifted", "known")
_EXACT = 2.0**53
"""Floating-point numbers below it hold whole numbers exactly."""


def is_prob(name: str) -> bool:
    """Return whether the name is that of a column with P(y=1) or all probabilities."""
    return name.startswith("y_") and _PROB.fullmatch(name) is not None


def class_columns(names: Sequence[str]) -> dict[str, str]:
    """Return the columns with the probability of a class, by the name of the class.

    >>> class_columns(["y_true", "y_prob_cat", "y_proba_dog", "y_prob"])
    {'cat': 'y_prob_cat', 'dog': 'y_proba_dog'}
    """
    matches = {name: re.fullmatch(r"y_proba?_(.+)", name) for name in names}
    return {match[1]: name for name, match in matches.items() if match}


def as_class_names(values: NDArray[Any]) -> list[str]:
    """Return labels of classes as text: 3 for 3.0, because programs write both.

    Raises:
        PredictionsError: If they are no list of labels, or one is inf or nan.
    """
    if values.ndim != 1:
        raise PredictionsError(
            f"classes must be one for each item, (N,), got an array of shape"
            f" {values.shape}; reshape it"
        )
    if values.dtype.kind == "f":
        if not np.isfinite(values).all():
            row = int(np.argmax(~np.isfinite(values)))
            raise PredictionsError(
                f"row {row} has {values[row]} for a class, which is none; correct it,"
                " or leave the row out"
            )
        if np.all((values == np.floor(values)) & (np.abs(values) < _EXACT)):
            values = values.astype(np.int64)
    return [str(value) for value in values.tolist()]


def own_columns(columns: Columns, task: str) -> dict[str, NDArray[Any]]:
    """Return the columns named like an array of `task`."""
    return {
        name: columns[name]
        for name in columns
        if name in _OWN or ("/" in name and array_field(task, name) is not None)
    }


def unread_note(columns: Columns, used: Sequence[str]) -> tuple[str, ...]:
    """Return a note on unused columns; () if all were used."""
    unread = [name for name in columns if name not in used]
    if not unread:
        return ()
    listed = ", ".join(unread[:6]) + (" ..." if len(unread) > 6 else "")
    hint = "" if "cluster" in columns else cluster_hint(unread)
    return (f"{plural(len(unread), 'column')} not read: {listed}{hint}",)


def class_contents(
    probs: NDArray[Any], classes: Sequence[str], target: NDArray[Any] | None
) -> ForeignContents:
    """Return contents with class probabilities (N, C) and targets, which may be names.

    Raises:
        PredictionsError: If a target is none of the classes.
    """
    numbers = [str(number) for number in range(len(classes))]
    header: dict[str, Any] = {} if list(classes) == numbers else {"classes": classes}
    arrays: dict[str, Any] = {"probs": probs}
    if target is not None and target.ndim != 1:
        arrays["target"] = target  # which is refused, as in files of our own
    elif target is not None:
        places = {name: number for number, name in enumerate(classes)}
        named = as_class_names(target)
        row = next((r for r, name in enumerate(named) if name not in places), None)
        if row is not None:
            raise PredictionsError(
                f"the true class of row {row} is {named[row]!r:.60}, which is none of"
                f" the classes with a probability: {', '.join(classes)}; name the"
                " columns or classes as the true classes are named"
            )
        arrays["target"] = np.array([places[name] for name in named])
    return ForeignContents(arrays=arrays, header=header)
