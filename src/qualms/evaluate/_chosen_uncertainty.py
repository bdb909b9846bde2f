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

COMPUTED = ("entropy", "epistemic", "interval length")
"""Uncertainties that the package computes of predictions that are no maps."""
PATCH = "patch"
"""The aggregation of maps that the verdict is by."""
_FAMILIES = ("uncertainty", "select")
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
        ValueError: If there is no uncertainty of the name that was asked for.
    """
    entries = judgement.entries
    available = dict.fromkeys(
        filter(None, (uncertainty_of(e.settings) for e in entries))
    )
    own = _own(predictions, entries)
    chosen = chosen_uncertainty(tuple(available), own, predictions, options)
    order = tuple(dict.fromkeys(filter(None, (chosen, *own, *available))))
    return replace(
        judgement,
        entries=_sorted(entries, order),
        curves=_sorted(judgement.curves, order),
        histograms=_sorted(judgement.histograms, order),
    ), chosen


def chosen_uncertainty(
    available: Collection[str],
    own: Sequence[str],
    predictions: Predictions,
    options: ScoreOptions,
) -> str:
    """Return the name of the uncertainty to judge by; '' for that of the task.

    Args:
        available: The names of all.
        own: Those that the file brings.
        predictions: The file, whose header may name one.
        options: The options, which may name one.

    Raises:
        ValueError: If the one that is named is not available.
    """
    name, said = options.uncertainty, "uncertainty"
    if not name and predictions.header.uncertainty:
        name, said = predictions.header.uncertainty, "header 'uncertainty'"
    if not name:
        return own[0] if own else ""
    if name not in available:
        names = f"one of {', '.join(available)}" if available else "left out"
        raise ValueError(
            f"{predictions.source}: {said} must be {names}, got {name!r}."
            f"{suggest(name, available)}"
        )
    return name


def _own(predictions: Predictions, entries: Sequence[Entry]) -> tuple[str, ...]:
    """Return the names of the file's own uncertainties that are judged, in order."""
    stored = {name for family in _FAMILIES for name in predictions.named(family)}
    names = dict.fromkeys(
        str(entry.settings["uncertainty"])
        for entry in entries
        if "uncertainty" in entry.settings
    )
    # Of maps only the file's own are called uncertainties; the others are measures.
    maps = predictions.task == "segmentation"
    return tuple(name for name in names if maps or name in stored)


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
