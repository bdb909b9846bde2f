"""The choice of the uncertainty that a file is judged by.

It is the one that the caller or the header names, else the first of the file's own,
else the one that the package computes. Its scores come first, so that the verdict, the
main scores and `results["aurc"]` are about it.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from qualms.evaluate.entry import Curve, Entry, Histogram, Judgement, ScoreOptions
from qualms.predictions import Predictions
from qualms.wording import suggest

LENGTH = "interval length"
"""Name of the uncertainty of a value that is the length of its interval."""
COMPUTED = ("entropy", "epistemic", "mutual_information", LENGTH)
"""Uncertainties that the package computes of predictions other than maps."""
PATCH = "patch"
"""The aggregation of maps that the verdict uses."""
FAMILIES = ("uncertainty", "select")
"""First parts of the names of arrays that are uncertainties."""
NAMED = ("uncertainty", "measure")
"""Settings that name an uncertainty; `measure` is that of maps."""
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
    """Put the chosen uncertainty first in `judgement`; return both.

    The name is '' if nobody chose one and the file has none of its own.

    Raises:
        LookupError: If there is no uncertainty of the requested name.
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
    """Return the name of the uncertainty to judge or refer by; '' for the computed one.

    It is the one that is requested, else the one that the header names, else the first
    one in the file.

    Args:
        predictions: The file.
        available: The names of all uncertainties that can be chosen.
        requested: The name that a user chose; '' for no choice.

    Raises:
        LookupError: If the named uncertainty is not available.

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
    """Return the names of the uncertainties in the file, in its order.

    Selection scores (`select/<name>`) come after `uncertainty/<name>`.
    """
    stored = (name for family in FAMILIES for name in predictions.named(family))
    return tuple(dict.fromkeys((*predictions.own_maps, *stored)))


def _sorted(parts: Sequence[Part], order: Sequence[str]) -> tuple[Part, ...]:
    """Sort like parts by the position of their uncertainty in `order`.

    Parts are alike if they differ only in the uncertainty and in the aggregation of
    maps; like parts exchange their places among themselves. Patches come first, because
    the verdict uses them.
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
    """Return a key that is equal for parts that differ only in the uncertainty."""
    if isinstance(part, Histogram):
        return ("histogram", part.subset)
    name = part.score_name if isinstance(part, Entry) else part.name
    others = (
        (name, str(value))
        for name, value in part.settings.items()
        if name not in (*NAMED, "aggregation")
    )
    return (name, part.subset, *others)
