"""Facts that a header may leave open: what draws vary, and which class is background.

A user may state them for a file (`--draws`, `--background`); the header comes first.
"""

from dataclasses import replace
from typing import Any, NamedTuple

from qualms.predictions._errors import PredictionsError, listed, shortened
from qualms.predictions._header import Header
from qualms.predictions._record import Predictions
from qualms.shelf import traits
from qualms.wording import suggest

STATED = "stated"
"""Why a class is background that the header or the user names."""
NO_CLASS = "none"
"""The background of segmentations without one, such as streets."""
_NAMES = ("background", "bg")
"""Names of a background; their case, and signs around them, do not matter."""


class Background(NamedTuple):
    """The class that is background, and how that is known."""

    number: int | None
    """None where all classes are foreground."""
    why: str


def background_of(header: Header, classes: int) -> Background:
    """Return which of `classes` is background: as stated, by its name, or class 0.

    Classes with names of which none is that of a background have none, unless they are
    two.

    >>> background_of(Header(classes=["bone", "Background", "skin"]), 3)
    Background(number=1, why="its name is 'Background'")
    """
    names = header.classes
    if header.background is not None:
        return Background(_stated(header, classes), STATED)
    called = [n for n, name in enumerate(names) if name.strip("_-. ").lower() in _NAMES]
    if len(called) == 1:
        return Background(called[0], f"its name is '{names[called[0]]}'")
    if classes == 2:
        return Background(0, "it is the first of two classes")
    if names:
        return Background(None, f"no class is called background ({listed(names)})")
    return Background(0, "classes have no names, and most label maps begin with it")


def _stated(header: Header, classes: int) -> int | None:
    """Return the class that the header states as background."""
    stated, names = str(header.background), header.classes
    if stated in names:
        return names.index(stated)
    if stated == NO_CLASS:
        return None
    number = int(stated) if stated.isascii() and stated.isdigit() else -1
    if not 0 <= number < classes:
        named = f"one of {listed(names)}, " if names else ""
        raise PredictionsError(
            f"background must be {named}a number from 0 to {classes - 1} or 'none', got"
            f" {shortened(stated)!r}.{suggest(stated, names)}"
        )
    return number


def check_background(header: Header, classes: int) -> None:
    """Raise unless the background is a class, and of two classes the first."""
    if background_of(header, classes).number == 1 and classes == 2:
        raise PredictionsError(
            "class 1 of two classes must be the foreground, whose Dice is computed, and"
            " it is the background; write the two classes in the other order"
        )


def with_stated(
    predictions: Predictions,
    *,
    draws: str | None = None,
    background: str | int | None = None,
) -> Predictions:
    """Return predictions whose header has what it did not state itself.

    Args:
        predictions: Predictions that were read.
        draws: What several draws vary: "models" or "labels".
        background: Name or number of the class that is background, or "none".
    """
    changes: dict[str, Any] = {}
    notes = []
    header = predictions.header
    task = predictions.task
    if background not in (None, header.background) and (
        "pixels" not in traits(task) or header.regions
    ):
        kind = "regions" if header.regions else task
        raise PredictionsError(
            f"{predictions.source}: a background is a class of a segmentation, and this"
            f" file holds {kind}; leave it out"
        )
    for name, value in (("draws", draws), ("background", background)):
        stated = getattr(header, name)
        if None not in (value, stated) and str(stated) != str(value):
            notes.append(
                f"the header of {predictions.source} states {name} {stated!r}, which is"
                f" used, and not {value!r}"
            )
        elif value is not None and stated is None:
            changes[name] = value
    if not changes and not notes:
        return predictions
    header = replace(header, **changes)
    if "background" in changes:
        assert predictions.classes is not None
        check_background(header, predictions.classes)
    return replace(predictions, header=header, notes=(*predictions.notes, *notes))
