"""Images of your own: classes, numbers or masks, in a folder or listed in a table.

Pictures of 8 and 16 bit, grey or in colour, and volumes in NIfTI-1 (Cox et al., 2004),
which are read when the dataset is prepared. All images get one size, except those with
masks, which keep their own. The bytes of the files and the descriptions of the items
are part of the dataset: a change of either makes another dataset.
"""

import hashlib
import json
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, TypeVar, cast

import numpy as np

from qualms.datasets._options import check_choice, whole_number
from qualms.datasets._recipe import Card, DatasetError, LoadedItems, Recipe, Unit
from qualms.datasets.folder._fitting import (
    Fit,
    fit_labels,
    fit_pixels,
    fitted_spacing,
)
from qualms.datasets.folder._notes import data_notes
from qualms.datasets.folder._sizes import OwnSize, checked_side, own_side, own_size
from qualms.datasets.folder._splits import assign_splits
from qualms.datasets.folder._target_notes import target_notes
from qualms.datasets.folder.files import (
    MaskFacts,
    PictureFacts,
    body_grid,
    is_volume,
    mask_facts,
    picture_facts,
    read_labels,
    read_pixels,
)
from qualms.datasets.folder.listing import OwnItem, OwnListing, listing_of
from qualms.datasets.folder.targets import (
    IGNORED,
    OwnTask,
    OwnTaskName,
    check_trained,
    masked_task,
    own_task,
)
from qualms.processes import cores
from qualms.progress import counting

F = TypeVar("F", PictureFacts, MaskFacts)
NAMED = 20
"""Files of one fault that an error names."""
CARD = Card(
    title="Images of your own",
    licence="your own",
    citation=(
        "Whatever the images are from. NIfTI-1: Cox et al.: A (sort of) new image data "
        "format standard. Human Brain Mapping conference, 2004."
    ),
    url="https://nifti.nimh.nih.gov/nifti-1",
    obtain=(
        "A folder for each class, or for each split with a folder for each class in "
        "it, or a table in CSV with the columns path and target (see `qualms docs "
        "own_data`). NIfTI files need qualms-bench[seg]."
    ),
)


class _Loading(NamedTuple):
    """Settings that all items are loaded with."""

    folder: Path
    size: OwnSize
    axes: int
    channels: int
    deep: bool
    task: OwnTask
    numbers: frozenset[str] = frozenset()
    """Further columns that hold nothing but numbers."""


class _Unreadable(NamedTuple):
    """A file that cannot be read, and why."""

    path: str
    """Its path, and the item that it is of."""
    reason: str


class _FileFacts(NamedTuple):
    """Facts of all files, by their paths in the listing."""

    pictures: dict[str, PictureFacts]
    masks: dict[str, MaskFacts]


def folder(
    root: str | Path,
    *,
    task: OwnTaskName | None = None,
    side: int | str | None = None,
    fit: Fit = "stretch",
    seed: int = 0,
    contents: str | None = None,
) -> Recipe:
    """Read images (*space, channels); target a class, a number or masks.

    Args:
        root: a folder, or a table in CSV.
        task: None derives it from the targets. Masks are for segmentation. Targets of
            text, or of at most 20 different whole numbers, are classes; other numbers
            are for regression.
        side: height and width (and depth) of all images; or "keep", with which only
            images with masks may differ in size, and training takes patches of them.
            For NIfTI files with masks also the sides of a voxel, "1mm" or "1x1x3mm",
            to which they are resampled. None keeps images with masks, pictures of one
            size up to 256 and volumes up to 96, and resizes others to 128 and 64.
        fit: "stretch" changes the proportions of an image that is not square, "pad"
            keeps all of it with black (and ignored labels) around it, "crop" keeps the
            middle.
        seed: draws the splits that are not stated.
        contents: digest of all files, of their descriptions and of the options above.
            It is computed by default; if it is stated, other contents are refused.
    """
    seed = whole_number("seed", seed, least=0)
    check_choice("fit", fit, ("stretch", "pad", "crop"))
    side = checked_side(side)
    listing = listing_of(Path(root))
    target_task = own_task(listing.items, task)
    split = assign_splits(listing.items, target_task.values, seed)
    check_trained(listing.items, split, target_task)
    scanned = _scan(listing, target_task)
    masked = target_task.name == "segmentation"
    side = own_side(listing.items, scanned.pictures, side, masked=masked)
    options = {"task": target_task.name, "side": side, "fit": fit, "seed": seed}
    digest = _digest(listing, scanned, options)
    if contents not in (None, digest):
        raise DatasetError(
            f"the files in {root} must be those with contents {contents}, got {digest}:"
            " they have changed since; leave 'contents' out to use them as they are"
        )
    loading = _loading(listing, scanned, target_task, side, fit)
    described = zip(listing.items, split, loading.task.targets, strict=True)
    return Recipe(
        name="folder",
        options={
            **options,
            "contents": digest,
            "classes": list(loading.task.classes),
        },
        card=CARD,
        task=loading.task.declared(loading.axes),
        units=tuple(_unit(*item) for item in described),
        load=partial(_load, loading._replace(task=loading.task.without_targets())),
        shifts={s: "as stated" for s in dict.fromkeys(split) if "/" in s},
        any_shape=loading.size.space is None,
        complete=True,
        notes=(
            *data_notes(listing, split, scanned.pictures, scanned.masks),
            *target_notes(loading.task, listing.items, split),
        ),
    )


def _unit(item: OwnItem, split: str, target: float) -> Unit:
    args = (item.masks, target, item.group, item.cluster, item.extra)
    return Unit(key=item.path, split=split, args=args)


def _scan(listing: OwnListing, task: OwnTask) -> _FileFacts:
    """Read the facts of every file with several threads."""
    images = {item.path: item.where for item in listing.items}
    masks = {m: item.where for item in listing.items for m in item.masks}
    masked = masks if task.name == "segmentation" else {}
    with ThreadPoolExecutor(cores()) as threads:
        find = partial(_facts, listing.folder)
        read = threads.map(partial(find, picture_facts), images.items())
        pictures = list(counting(read, len(images)))
        read = threads.map(partial(find, mask_facts), masked.items())
        labels = list(counting(read, len(masked)))
    _refuse_unreadable([*pictures, *labels])
    return _FileFacts(
        dict(zip(images, cast("list[PictureFacts]", pictures), strict=True)),
        dict(zip(masked, cast("list[MaskFacts]", labels), strict=True)),
    )


def _facts(
    folder: Path, find: Callable[[Path], F], entry: tuple[str, str]
) -> F | _Unreadable:
    """Return the facts of a file, or why it cannot be read."""
    path, where = entry
    try:
        return find(folder / path)
    except DatasetError as error:
        shown = f"{folder / path}" if where == path else f"{folder / path} ({where})"
        return _Unreadable(shown, str(error.__cause__ or error))


def _refuse_unreadable(facts: Sequence[Any]) -> None:
    """Raise if files cannot be read; name the files of each fault together."""
    faults: dict[str, list[str]] = defaultdict(list)
    for fact in facts:
        if isinstance(fact, _Unreadable):
            faults[fact.reason].append(fact.path)
    if not faults:
        return
    sentences = [_fault(why, files) for why, files in faults.items()]
    them = "it" if sum(map(len, faults.values())) == 1 else "them"
    raise DatasetError(f"{'; '.join(sentences)}; repair {them} or remove {them}")


def _fault(reason: str, paths: Sequence[str]) -> str:
    if len(paths) == 1:
        return f"cannot read {paths[0]}: {reason}"
    more = len(paths) - NAMED
    others = f" and {more} more" if more > 0 else ""
    return (
        f"cannot read {len(paths)} files ({reason}): {', '.join(paths[:NAMED])}{others}"
    )


def _digest(
    listing: OwnListing, scanned: _FileFacts, options: Mapping[str, Any]
) -> str:
    """Compute a digest of the options, the items and the bytes of their files.

    Neither the place of the folder nor the order of lines counts.
    """
    descriptions: list[Any] = [dict(options)]
    for item in listing.items:
        masks = [scanned.masks[m].sha256 for m in item.masks if m in scanned.masks]
        descriptions.append(
            [*_description(item), scanned.pictures[item.path].sha256, masks]
        )
    text = json.dumps(sorted(descriptions, key=json.dumps), separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _description(item: OwnItem) -> Iterator[Any]:
    """Yield the description of an item, without the line that states it."""
    # Items without further columns are described as they always were.
    left_out = ("where",) if item.extra else ("where", "extra")
    return (value for name, value in asdict(item).items() if name not in left_out)


def _loading(
    listing: OwnListing,
    scanned: _FileFacts,
    task: OwnTask,
    side: int | str,
    fit: Fit,
) -> _Loading:
    facts = {item.path: scanned.pictures[item.path] for item in listing.items}
    spaces = [fact.space for fact in facts.values()]
    size = own_size(side, spaces, fit)
    counts = sorted({fact.channels for fact in facts.values()})
    if len(counts) > 1 and counts != [1, 3]:
        fewest, most = counts[0], counts[-1]
        at = {fact.channels: path for path, fact in facts.items()}
        raise DatasetError(
            f"all images must have as many channels, got {fewest} in {at[fewest]} and"
            f" {most} in {at[most]}; convert some of them"
        )
    if task.name == "segmentation":
        # Patches may be larger than an image, as "pad" makes one larger.
        padded = fit == "pad" or size.space is None
        task = masked_task(listing.items, facts, scanned.masks, padded=padded)
    deep = any(fact.deep for fact in facts.values())
    axes = len(spaces[0])
    numbers = _number_columns(listing.items)
    return _Loading(listing.folder, size, axes, counts[-1], deep, task, numbers)


def _number_columns(items: Sequence[OwnItem]) -> frozenset[str]:
    """Return the further columns in which every text is a number, or missing."""
    columns: dict[str, list[str]] = defaultdict(list)
    for item in items:
        for name, text in item.extra:
            columns[name].append(text)
    return frozenset(
        name
        for name, texts in columns.items()
        if any(texts) and all(map(_is_number, texts))
    )


def _is_number(text: str) -> bool:
    try:
        float(text or "nan")
    except ValueError:
        return False
    return "_" not in text


def _load(loading: _Loading, unit: Unit) -> LoadedItems:
    masks, target, group, cluster, columns = unit.args
    path = loading.folder / unit.key
    pixels = read_pixels(path)
    if loading.deep and pixels.dtype == np.uint8:
        pixels = pixels.astype(np.float32) / 255
    if pixels.shape[-1] < loading.channels:
        pixels = np.repeat(pixels, loading.channels, axis=-1)
    size = loading.size.of(path, pixels.shape[:-1])
    image = fit_pixels(pixels, size)
    kind = np.float32 if loading.task.name == "regression" else np.int64
    targets: Any = np.array([target], dtype=kind)
    if loading.task.name == "segmentation":
        maps = [read_labels(loading.folder / path) for path in masks]
        labels = [loading.task.labels(stored) for stored in maps]
        targets = [fit_labels(stored, size, IGNORED) for stored in labels]
        targets = np.stack(targets)[None]
    known = {"group": group, "cluster": cluster}
    extra = {name: np.array([value]) for name, value in known.items() if value}
    if loading.task.name == "segmentation" and is_volume(path):
        grid = body_grid(path, loading.axes)
        spacing = fitted_spacing(grid.spacing, pixels.shape[:-1], size)
        extra |= {"spacing": np.array([spacing]), "tilt": np.array([grid.tilt])}
    for name, text in columns:
        number = name in loading.numbers
        extra[name] = np.array([float(text or "nan") if number else text])
    return LoadedItems(image=image[None], target=targets, item=(unit.key,), extra=extra)
