"""The uncertainty that a file is judged by: its own, where it brings one.

Of several it is the one that the caller or the header names, else the first of the
file's own, else the one that the package computes. What is judged by it comes first, so
that the verdict, the main scores and `results["aurc"]` are about it.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from qualms.evaluate.entry import Curve, Entry, Histogram, Judgement, ScoreOptions
from qualms.predictions import Predictions
from qualms.wording import suggest

LENGTH = "interval length"
"""Name of the uncertainty of values that is the length of their interval."""
COMPUTED = ("entropy", "epistemic", LENGTH)
"""Uncertainties that the package computes of predictions that are no maps."""
PATCH = "patch"
"""The aggregation of maps that the verdict is by."""
FAMILIES = ("uncertainty", "select")
"""Arrays of a file that are uncertainties, by the first part of their names."""
NAMED = ("uncertainty", "measure")
"""Settings that name an uncertainty; measures are those of maps."""
_PREFIX = "uncertainty/"

Part = TypeVar("Part", Entry, Curve, Histogram)


def uncertainty_of(settings: Mapping[str, Any]) -> str:
    """Return the uncertainty that a score judges; '' if it judges none.

    >>> uncertainty_of({"measure": "predictive", "aggregation": "patch"})
    'predictive'
    """
    return next((str(settings[name]) for name in NAMED if name in settings), "")


def with_chosen_first(
    judgement: Judgement, predictions: Predictions, options: ScoreOptions
) -> tuple[Judgement, str]:
    """Return `judgement`, the chosen uncertainty first in it, and its name.

    The name is '' where nobody chose and the file has none of its own.

    Raises:
        LookupError: If there is no uncertainty of the name that was asked for.
    """
    entries = judgement.entries
    available = dict.fromkeys(
        filter(None, (uncertainty_of(e.settings) for e in entries))
    )
    chosen = chosen_uncertainty(predictions, available, requested=options.uncertainty)
    own = (name for name in own_uncertainties(predictions) if name in available)
    order = tuple(dict.fromkeys(filter(None, (chosen, *own, *available))))
    return replace(
        judgement,
        entries=_sorted(entries, order),
        curves=_sorted(judgement.curves, order),
        histograms=_sorted(judgement.histograms, order),
    ), chosen


def chosen_uncertainty(
    predictions: Predictions, available: Collection[str], *, requested: str = ""
) -> str:
    """Return the name of the uncertainty to judge or refer by; '' for the task's own.

    It is the one that is requested, else the one that the header names, else the first
    of those that the file brings.

    Args:
        predictions: The file.
        available: The names of all that could be taken.
        requested: The one that a user names; '' if none.

    Raises:
        LookupError: If the one that is named is not available.

    >>> from qualms.predictions import build
    >>> items = {"target": [0, 1], "prob": [0.2, 0.9], "uncertainty/mine": [0, 1]}
    >>> chosen_uncertainty(build(items), ("entropy", "mine"))
    'mine'
    """
    name, owner = requested, "uncertainty"
    if not name and predictions.header.uncertainty:
        name, owner = predictions.header.uncertainty, "header 'uncertainty'"
    if not name:
        own = own_uncertainties(predictions)
        return next((name for name in own if name in available), "")
    if name not in available:
        names = f"one of {', '.join(available)}" if available else "left out"
        raise LookupError(
            f"{predictions.source}: {owner} must be {names}, got {name!r}."
            f"{suggest(name, available)}"
        )
    return name


def own_uncertainties(predictions: Predictions) -> tuple[str, ...]:
    """Return the names of the uncertainties that the file brings, in its order.

    Selection scores (`select/<name>`) follow those that are called uncertainties.
    """
    stored = (name for family in FAMILIES for name in predictions.named(family))
    return tuple(dict.fromkeys((*predictions.own_maps, *stored)))


def _sorted(parts: Sequence[Part], order: Sequence[str]) -> tuple[Part, ...]:
    """Return `parts` with those by the first of `order` first, among like parts.

    Parts are alike if they differ in nothing but the uncertainty and how maps are
    aggregated; they share the places that they have. Patches come first, since the
    verdict is by them.
    """
    places: dict[Any, list[int]] = {}
    for place, part in enumerate(parts):
        if _judges(part):
            places.setdefault(_kind(part), []).append(place)
    rank = {name: number for number, name in enumerate(order)}

    def key(place: int) -> tuple[int, bool]:
        part = parts[place]
        by_patches = part.settings.get("aggregation", PATCH) == PATCH
        return rank.get(_judges(part), len(rank)), not by_patches

    sorted_parts = list(parts)
    for alike in places.values():
        by_rank = sorted(alike, key=key)
        for place, source in zip(alike, by_rank, strict=True):
            sorted_parts[place] = parts[source]
    return tuple(sorted_parts)


def _judges(part: Entry | Curve | Histogram) -> str:
    if isinstance(part, Histogram) and part.name.startswith(_PREFIX):
        return part.name.removeprefix(_PREFIX)
    return uncertainty_of(part.settings)


def _kind(part: Entry | Curve | Histogram) -> tuple[Any, ...]:
    """Return what a part is, whatever the uncertainty."""
    if isinstance(part, Histogram):
        return ("histogram", part.subset)
    name = part.score_name if isinstance(part, Entry) else part.name
    others = (
        (name, str(value))
        for name, value in part.settings.items()
        if name not in (*NAMED, "aggregation")
    )
    return (name, part.subset, *others)
