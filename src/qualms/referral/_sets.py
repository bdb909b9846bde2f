"""The sets of a plan: the one it is made on, and others that it is applied to."""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from qualms.evaluate.sources import Source, predictions_of
from qualms.predictions import Predictions
from qualms.referral._items import (
    ReferralItems,
    UncertaintySource,
    read_for_referral,
    split_by_shift,
    uncertainty_source,
)
from qualms.referral._request import ReferralOptions
from qualms.shelf import traits


class PlanSets(NamedTuple):
    """Files, and the sets of items that they hold."""

    names: list[str]
    """Distinct names of the files."""
    uncertainty: UncertaintySource
    items: ReferralItems
    """The items on which thresholds are chosen."""
    others: list[ReferralItems]


def read_files(
    source: Source, on: Sequence[Source], options: ReferralOptions
) -> list[Predictions]:
    """Read `source` and the files `on`; raise unless they are of one kind."""
    files = [
        read_for_referral(each, logits=options.logits, draws=options.draws)
        for each in (source, *on)
    ]
    _check_same_kind(files)
    return files


def split_files(files: Sequence[Predictions], options: ReferralOptions) -> PlanSets:
    """Return the sets of the files; shifted items are sets of their own."""
    names = _names(files)
    uncertainty = uncertainty_source(files[0], options.uncertainty)
    gallery = _gallery(files[0], options)
    items, *others = (
        part
        for file, name in zip(files, names, strict=True)
        for part in split_by_shift(file, name, uncertainty, gallery)
    )
    return PlanSets(names, uncertainty, items, others)


def _gallery(first: Predictions, options: ReferralOptions) -> Predictions | None:
    """Return the embeddings to search for neighbours; None for the file's own."""
    if options.gallery is None:
        return None
    gallery = predictions_of(options.gallery)
    for each in (first, gallery):
        if "vectors" not in traits(each.task):
            raise ValueError(
                f"{each.source} holds {each.task}; a gallery is for embeddings, leave"
                " it out"
            )
    gallery.require_target()
    return gallery


def _check_same_kind(files: Sequence[Predictions]) -> None:
    """Raise unless all files have the task and the classes of the first one."""
    first, *others = files
    for other in others:
        if other.task != first.task:
            raise ValueError(
                f"{other.source} must hold {first.task} as {first.source} does, it "
                f"holds {other.task}"
            )
        if other.classes != first.classes:
            raise ValueError(
                f"{other.source} must have the {first.classes} classes of "
                f"{first.source}, got {other.classes}"
            )


def _names(files: Sequence[Predictions]) -> list[str]:
    """Return file names, with as much of the paths as is needed to make them differ.

    If a file is listed twice, names have their place in the list instead.
    """
    paths = [Path(file.source) for file in files]
    for depth in range(1, 12):
        names = ["/".join(path.parts[-depth:]) for path in paths]
        if len(set(names)) == len(names):
            return names
    return [f"{path.name} ({i + 1})" for i, path in enumerate(paths)]
