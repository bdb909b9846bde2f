"""Notes for the user about files that can be read and may still be wrong."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

from qualms.datasets.folder.files import MaskFacts, PictureFacts
from qualms.datasets.folder.listing import OwnItem, OwnListing
from qualms.datasets.folder.targets import IGNORED
from qualms.wording import plural

FEWEST = 10
"""Test items below which no score means much."""
SHOWN = 3
"""Names that a note lists."""


def data_notes(
    listing: OwnListing,
    split: Sequence[str],
    pictures: Mapping[str, PictureFacts],
    masks: Mapping[str, MaskFacts],
) -> tuple[str, ...]:
    """Return what is odd about the items, in sentences."""
    return (
        *listing.notes,
        *_alike(listing.items, split, pictures),
        *_mixed_masks(masks),
        *_few(split),
    )


def _alike(
    items: Sequence[OwnItem], split: Sequence[str], pictures: Mapping[str, PictureFacts]
) -> Iterator[str]:
    """Say which images are the same file with other targets or in other splits."""
    copies = defaultdict(list)
    for item, name in zip(items, split, strict=True):
        copies[pictures[item.path].sha256].append((item, name))
    several = [group for group in copies.values() if len(group) > 1]
    targets = [g for g in several if len({item.target for item, _ in g}) > 1]
    if targets:
        pairs = "; ".join(
            " and ".join(f"{item.path} ({item.target})" for item, _ in group[:2])
            for group in targets[:SHOWN]
        )
        yield (
            "the same file has different targets"
            f" ({len(targets)} {plural(len(targets), 'image')}): {pairs}; only one"
            " target can be right"
        )
    leaks = [g for g in several if {name for _, name in g} > {"train"}]
    if leaks:
        pairs = "; ".join(
            " and ".join(f"{item.path} ({name})" for item, name in _two_splits(group))
            for group in leaks[:SHOWN]
        )
        yield (
            "the same file is in train and in another split"
            f" ({len(leaks)} {plural(len(leaks), 'image')}): {pairs}; scores there are"
            " too good"
        )


def _two_splits(group: Sequence[tuple[OwnItem, str]]) -> list[tuple[OwnItem, str]]:
    """Return an item in train, and one in another split."""
    trained = next(each for each in group if each[1] == "train")
    return [trained, next(each for each in group if each[1] != "train")]


def _mixed_masks(masks: Mapping[str, MaskFacts]) -> Iterator[str]:
    """Say which masks hold 0 and 255 where others hold 0 and 1."""
    white = [path for path, facts in masks.items() if _holds(facts, IGNORED)]
    plain = [path for path, facts in masks.items() if _holds(facts, 1)]
    if white and plain:
        yield (
            f"masks in 0 and 255 alone: {len(white)} of {len(masks)}"
            f" ({', '.join(white[:SHOWN])}), beside others in 0 and 1: 255 counts"
            " nowhere beside 1; save it as 1 if it marks the same"
        )


def _holds(facts: MaskFacts, label: int) -> bool:
    return set(facts.labels) <= {0, label} and label in facts.labels


def _few(split: Sequence[str]) -> Iterator[str]:
    """Say which test sets are so small that their scores mean little."""
    for name in ("test", "test/shifted"):
        count = split.count(name)
        if 0 < count < FEWEST:
            yield (
                f"{name} has {count} {plural(count, 'item')}: with fewer than {FEWEST}"
                " its scores say next to nothing"
            )
