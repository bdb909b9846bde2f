"""Items that a user's folder or table lists, before any picture is opened.

A folder is laid out by class (`cats/1.png`), by split and class (`train/cats/1.png`),
has images and masks of the same names (`images/1.png`, `masks/1.png`; `imgs`, `labels`
and like words too, and `imagesTr`, `labelsTr`), or holds `items.csv`. A table has one
line for each item.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from qualms.datasets._publisher_files import CsvRow, contents, read_table
from qualms.datasets._recipe import DatasetError
from qualms.wording import names_cluster, plural, suggest

TABLE = "items.csv"
COLUMNS = ("path", "target", "split", "group", "cluster", "shifted", "masks", "mask")
SPLITS: Mapping[str, tuple[str, bool]] = {
    "train": ("train", False),
    "val": ("val", False),
    "valid": ("val", False),
    "validation": ("val", False),
    "test": ("test", False),
    "shifted": ("test", True),
    "test_shifted": ("test", True),
    "test/shifted": ("test", True),
    "val_shifted": ("val", True),
    "val/shifted": ("val", True),
}
"""Words for splits: the split, and whether its items are shifted."""
FLAGS = {"": False, "0": False, "false": False, "no": False}
FLAGS |= {"1": True, "true": True, "yes": True}
ENDINGS = (
    *(".png", ".jpg", ".jpeg", ".bmp", ".tif", ".tiff", ".webp", ".gif"),
    *(".pgm", ".ppm", ".nii", ".nii.gz"),
)
EXTRA = "extra/"
"""Prefix of the names of columns that are copied into predictions and not used."""
NEAR = 0.75
"""Similarity of two names from which on a column is probably the missing one."""
SHOWN = 3
"""Names that a note lists."""
IGNORED_FILES = ("thumbs.db", "desktop.ini")
IMAGES = re.compile(r"(?:image|img)s?(?P<part>tr|ts)?", re.IGNORECASE)
"""A folder of images beside one of masks."""
MASKS = re.compile(
    r"(?:masks?|labels?|segs?|segmentations?|annotations?|gt|ground_?truths?)"
    r"(?P<part>tr|ts)?(?P<rater>_\w+)?",
    re.IGNORECASE,
)
PART_SPLITS = {"tr": "train", "ts": "test"}
"""Splits of the folders of nnU-Net and of the Medical Segmentation Decathlon."""
CHANNEL = re.compile(r"(.+)_(\d{4})")
"""The name of a file of one channel, as nnU-Net has them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnItem:
    """One item as the user describes it; '' for what is missing."""

    path: str
    """Path of its image below the folder, with forward slashes; also its name."""
    where: str
    """Its name in errors, such as 'line 3 of items.csv'."""
    target: str = ""
    masks: tuple[str, ...] = ()
    """Path of the mask of each rater."""
    split: str = ""
    """train, val or test."""
    shifted: bool = False
    group: str = ""
    cluster: str = ""
    extra: tuple[tuple[str, str], ...] = ()
    """Columns `extra/<name>` with their texts, which predictions keep."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnListing:
    """The items of a user's dataset, and the folder that their paths start from."""

    folder: Path
    items: tuple[OwnItem, ...]
    notes: tuple[str, ...] = ()
    """Sentences about files and columns that were not read."""


def listing_of(root: Path, *, unlabelled: bool = False) -> OwnListing:
    """List the items in `root`: a folder, or a table in CSV.

    If they may be `unlabelled`, a folder may hold images and no folders of classes.
    """
    if root.is_file():
        return _table(root)
    if not root.is_dir():
        raise DatasetError(
            f"expected a folder of images or a CSV at {root}; {contents(root.parent)}"
        )
    if (root / TABLE).is_file():
        return _table(root / TABLE)
    if unlabelled and not _folders(root):
        return OwnListing(folder=root, items=tuple(_without_classes(root)))
    items = tuple(_in_folders(root))
    notes = (
        *_unread_tables(root),
        *_split_words(items),
        *_nested(items),
        *_lone_masks(root, items),
        *_lone_images(root, items),
    )
    return OwnListing(folder=root, items=items, notes=notes)


def _unread_tables(root: Path) -> Iterator[str]:
    """Say which tables in a folder are not read, and how to read them."""
    tables = sorted(path for path in root.glob("*.csv") if path.is_file())
    if tables:
        others = f" (or {', '.join(path.name for path in tables[1:])})"
        yield (
            f"{tables[0].name} in {root} is not read, since it is not called {TABLE};"
            f" --from {tables[0]} reads it{others if len(tables) > 1 else ''}"
        )


def _lone_masks(root: Path, items: Sequence[OwnItem]) -> Iterator[str]:
    """Say which masks in the folders of masks are those of no image."""
    masks = {root / mask for item in items for mask in item.masks}
    folders = sorted({mask.parent for mask in masks})
    files = (path for folder in folders for path in _by_name(folder).values())
    lone = [str(path.relative_to(root)) for path in files if path not in masks]
    if lone:
        shown = ", ".join(lone[:SHOWN])
        more = f" and {len(lone) - SHOWN} more" if len(lone) > SHOWN else ""
        yield f"masks that are not read, since no image has their name: {shown}{more}"


def _lone_images(root: Path, items: Sequence[OwnItem]) -> Iterator[str]:
    """Say which folder of images has no masks."""
    read = {item.path.rpartition("/")[0] for item in items if item.masks}
    for folder in (f.name for f in _folders(root) if IMAGES.fullmatch(f.name)):
        if read and folder not in read:
            yield f"images that are not read, since they have no masks: {folder}"


def _split_words(items: Sequence[OwnItem]) -> Iterator[str]:
    """Say which class has the name of a split."""
    classes = dict.fromkeys(item.target for item in items if not item.split)
    for name in (each for each in classes if each.lower() in SPLITS):
        yield (
            f"the folder {name!r} is a class here, as those beside it are, and not the"
            f" split; in a split there is a folder for each class ({name}/cats/1.png)"
        )


def _nested(items: Sequence[OwnItem]) -> Iterator[str]:
    """Say that folders inside those of classes do not keep their images together."""
    free = (item for item in items if item.target and not item.split)
    folders = {item.path.rpartition("/")[0]: item.target for item in free}
    nested = [folder for folder, name in folders.items() if folder != name]
    if nested:
        count = f"{len(nested)} {plural(len(nested), 'folder')} inside those of classes"
        yield (
            f"images lie in {count}, such as {nested[0]}, and each image counts by"
            " itself; if such a folder is a patient or a recording, list the images in"
            f" {TABLE} with a column 'cluster', so that none is trained and tested on"
        )


def _without_classes(root: Path) -> Iterator[OwnItem]:
    files = [path for path in sorted(root.iterdir()) if _counts(path)]
    if not files:
        raise DatasetError(f"expected images in {root}; {contents(root)}")
    for path in files:
        _check_ending(path, path.name)
        yield OwnItem(path=path.name, where=path.name)


def _in_folders(root: Path) -> Iterator[OwnItem]:
    parts = _folders(root)
    if not parts:
        tables = " ".join(_unread_tables(root))
        raise DatasetError(
            f"expected {TABLE}, or a folder for each class, in {root};"
            f" {tables or contents(root)}"
        )
    classes = [part for part in parts if part.name.lower() not in SPLITS]
    train = [p for p in parts if p.name.lower() == "train" and not _holds_images(p)]
    if classes and train:
        raise DatasetError(
            f"folders in {root} must all be splits or all be classes, got"
            f" {classes[0].name!r} beside 'train'; move it away (splits:"
            f" {', '.join(SPLITS)})"
        )
    if classes:
        _refuse_other_splits(parts)
        yield from _in_part(root, parts, "", shifted=False)
        return
    for part in parts:
        split, shifted = SPLITS[part.name.lower()]
        folders = _folders(part)
        if not folders:
            raise DatasetError(
                f"expected a folder for each class in {part}; {contents(part)}"
            )
        yield from _in_part(root, folders, split, shifted=shifted)


def _holds_images(folder: Path) -> bool:
    """Return whether a folder holds images and no folders, as that of a class does."""
    return not _folders(folder) and any(map(_counts, folder.iterdir()))


def _refuse_other_splits(parts: Sequence[Path]) -> None:
    """Raise if folders are splits under other names, and would be taken for classes."""
    inside = {part: {f.name for f in _folders(part)} for part in parts}
    for part in parts:
        others = (names for other, names in inside.items() if other != part)
        alike = any(len(inside[part] & names) > 1 for names in others)
        meant = suggest(part.name.lower(), SPLITS)
        odd = meant and part.name.lower() not in SPLITS
        if odd and alike and not any(map(_counts, part.iterdir())):
            raise DatasetError(
                f"{part} holds the same folders as others beside it, as a split does,"
                f" and no split is called {part.name!r}.{meant} Rename it (splits:"
                f" {', '.join(SPLITS)}), or its folders if it is a class"
            )


def _in_part(
    root: Path, folders: Sequence[Path], split: str, *, shifted: bool
) -> Iterator[OwnItem]:
    """Yield items of a split: of folders for classes, or for images and masks."""
    pairs = _mask_folders(folders)
    if not pairs:
        for item in _of_classes(root, folders):
            yield replace(item, split=split, shifted=shifted)
    for images, raters in pairs.items():
        # The folders imagesTr and imagesTs are splits where both have masks.
        part = PART_SPLITS.get(_part(images), "") if len(pairs) > 1 else ""
        for item in _with_masks(root, images, raters):
            yield replace(item, split=split or part, shifted=shifted)


def _mask_folders(folders: Sequence[Path]) -> dict[Path, list[Path]]:
    """Return each folder of images with the folders of its raters; {} for classes."""
    images = [f for f in folders if IMAGES.fullmatch(f.name)]
    masks = [f for f in folders if MASKS.fullmatch(f.name)]
    if not images or not masks:
        _refuse_lone_masks(folders)
        return {}
    pairs = {i: [m for m in masks if _part(m) == _part(i)] for i in images}
    paired = {m for raters in pairs.values() for m in raters}
    # Images for testing are often published without masks.
    unread = {i for i, raters in pairs.items() if not raters and _part(i) == "ts"}
    others = [f for f in folders if f not in {*pairs, *paired}]
    others += [i for i, raters in pairs.items() if not raters and i not in unread]
    if others or len({_part(i) for i in images}) < len(images):
        raise DatasetError(
            f"{folders[0].parent} must hold folders of images and of their masks alone,"
            f" as {images[0].name!r} and {masks[0].name!r} are, got"
            f" {(others or images[1:])[0].name!r} beside them; move it away, or, if"
            f" these are classes, list the images in {TABLE}"
        )
    return {i: raters for i, raters in pairs.items() if raters}


def _part(folder: Path) -> str:
    """Return 'tr' or 'ts' for a folder such as imagesTr, else ''."""
    match = IMAGES.fullmatch(folder.name) or MASKS.fullmatch(folder.name)
    return (match["part"] or "").lower() if match else ""


def _refuse_lone_masks(folders: Sequence[Path]) -> None:
    """Raise if one of two folders holds masks of the other, and not another class."""
    if len(folders) != 2:
        return
    for images, masks in (folders, folders[::-1]):
        name = masks.name.lower()
        rest = name.removeprefix(images.name.lower()).strip("_- ")
        # Faces with and without a mask are two classes.
        if MASKS.fullmatch(rest) and name != "mask":
            raise DatasetError(
                f"{masks} looks like masks of the images in {images.name!r}, and not"
                " like a class; call the two folders 'images' and 'masks', or, if they"
                f" are classes, list the images in {TABLE}"
            )


def _with_masks(root: Path, images: Path, raters: Sequence[Path]) -> Iterator[OwnItem]:
    """Yield each image, with the mask of its name in the folder of every rater."""
    masks_by_rater = {rater: _by_name(rater) for rater in raters}
    for name, image in _by_name(images).items():
        where = image.relative_to(root).as_posix()
        masks_of = []
        for rater, masks in masks_by_rater.items():
            mask = masks.get(name) or _mask_of_channel(image, name, masks)
            if mask is None:
                raise DatasetError(
                    f"{where} must have a mask called {name!r} in {rater}, which holds"
                    " none; add it, or remove the image"
                )
            masks_of.append(mask.relative_to(root).as_posix())
        yield OwnItem(path=where, where=where, masks=tuple(masks_of))


def _mask_of_channel(image: Path, name: str, masks: Mapping[str, Path]) -> Path | None:
    """Return the mask of an image that nnU-Net has as a file for each channel."""
    match = CHANNEL.fullmatch(name)
    if match is None or match[1] not in masks:
        return None
    if match[2] != "0000":
        raise DatasetError(
            f"{image} is one channel of {match[1]!r}, and an image is one file with all"
            " its channels; join them, or keep those of one channel"
        )
    return masks[match[1]]


def _by_name(folder: Path) -> dict[str, Path]:
    """Return the images in `folder` by their names without an ending."""
    paths: dict[str, Path] = {}
    for path in sorted(folder.iterdir()):
        if not _counts(path):
            continue
        _check_ending(path, str(path))
        name = _without_ending(path.name)
        if name in paths:
            raise DatasetError(
                f"{path} has the name of {paths[name].name}, and an image and its masks"
                " are paired by name; rename or remove one of them"
            )
        paths[name] = path
    if not paths:
        inner = {path.name.lower() for path in _folders(folder)}
        splits = "; put splits outside of it, as train/images and train/masks"
        remedy = splits if inner & set(SPLITS) else ""
        raise DatasetError(f"expected images in {folder}; {contents(folder)}{remedy}")
    return paths


def _without_ending(name: str) -> str:
    """Remove the ending of an image from `name`; other dots belong to it."""
    ending = max((e for e in ENDINGS if name.lower().endswith(e)), key=len)
    return name[: -len(ending)]


def _of_classes(root: Path, classes: Sequence[Path]) -> Iterator[OwnItem]:
    for folder in classes:
        files = [path for path in sorted(folder.rglob("*")) if _counts(path)]
        if not files:
            raise DatasetError(
                f"expected images of the class {folder.name!r} in {folder};"
                f" {contents(folder)}; add some or remove the folder"
            )
        for path in files:
            name = path.relative_to(root).as_posix()
            _check_ending(path, name)
            yield OwnItem(path=name, where=name, target=folder.name)


def _folders(folder: Path) -> list[Path]:
    folders = (path for path in folder.iterdir() if path.is_dir())
    return sorted(path for path in folders if not path.name.startswith("."))


def _counts(path: Path) -> bool:
    """Return whether a file is an item, not one that the operating system put there."""
    if path.name.startswith(".") or path.name.lower() in IGNORED_FILES:
        return False
    if _is_dead(path):
        others = [p.name for p in sorted(path.parent.iterdir()) if _is_dead(p)]
        others = [name for name in others if name != path.name]
        more = f"; so are {', '.join(others)} beside it" if others else ""
        raise DatasetError(
            f"{path} is a link to {path.readlink()}, where there is no file{more};"
            f" mend or remove {'them' if others else 'it'}"
        )
    return path.is_file()


def _is_dead(path: Path) -> bool:
    """Return whether a path is a link that leads nowhere."""
    return path.is_symlink() and not path.exists()


def _check_ending(path: Path, where: str) -> None:
    if not path.name.lower().endswith(ENDINGS):
        raise DatasetError(
            f"{where} must be an image ({', '.join(ENDINGS)}), got {path.name!r};"
            " remove it or convert it"
        )


def _table(path: Path) -> OwnListing:
    rows = read_table(path, ["path"])
    masks, unread = _mask_columns(path, list(rows[0].fields))
    if "cluster" not in rows[0].fields:
        _refuse_clusters(path, rows, unread)
    items = [_item(path, row, masks) for row in rows]
    lines: dict[str, str] = {}
    for item in items:
        first = lines.setdefault(item.path, item.where)
        if first != item.where:
            raise DatasetError(
                f"{item.where} and {first} name the same image {item.path!r}; an item"
                " has one line, remove one of them"
            )
        _check_there(path.parent, item)
    note = (
        f"columns of {path.name} that are not read: {', '.join(unread)}; one that is"
        f" called {EXTRA}{unread[0]} is kept in the predictions"
        if unread
        else ""
    )
    notes = (note,) if unread else ()
    return OwnListing(folder=path.parent, items=tuple(items), notes=notes)


def _refuse_clusters(table: Path, rows: Sequence[CsvRow], unread: list[str]) -> None:
    """Raise if a column that is not read has the patients of several items."""
    for name in filter(names_cluster, unread):
        known = [value for row in rows if (value := (row.fields[name] or "").strip())]
        if len(set(known)) < len(known):
            raise DatasetError(
                f"{table} has a column {name!r} with {len(set(known))} different values"
                f" in {len(known)} lines: items of one of them must not be trained and"
                " tested on; rename the column to 'cluster', or to"
                f" '{EXTRA}{name}' if its items are independent"
            )


def _mask_columns(path: Path, columns: Sequence[str]) -> tuple[list[str], list[str]]:
    """List the columns with paths of masks, and those that are not read.

    Raises:
        DatasetError: If a column has nearly the name of one that is missing.
    """
    masks = [name for name in columns if re.fullmatch(r"masks?|mask_\w+", name)]
    others = [name for name in columns if name not in (*COLUMNS, *masks)]
    missing = [name for name in COLUMNS if name not in columns]
    for name in others:
        if meant := suggest(name.lower(), missing, cutoff=NEAR):
            raise DatasetError(
                f"{path} has a column {name!r}.{meant} Known: {', '.join(COLUMNS)}, and"
                f" mask_<rater>; rename it, or call it 'extra/{name}' if it means"
                " something else"
            )
    unread = [name for name in others if not name.startswith(EXTRA)]
    return masks, unread


def _item(table: Path, row: CsvRow, masks: Sequence[str]) -> OwnItem:
    fields = {name: (value or "").strip() for name, value in row.fields.items()}
    where = f"line {row.line} of {table.name}"
    if not fields["path"]:
        raise DatasetError(f"{where} must have a path, got none; add it")
    split, shifted = _split(fields.get("split", ""), where)
    for name in ("group", "cluster"):
        if name in fields and not fields[name]:
            raise DatasetError(
                f"{where} must have a {name} as the other lines have, got none; add it"
                " or remove the column"
            )
    return OwnItem(
        path=fields["path"].replace("\\", "/"),
        where=where,
        target=fields.get("target", ""),
        masks=tuple(_masks(fields, masks, where)),
        split=split,
        shifted=shifted or _flag(fields.get("shifted", ""), where),
        group=fields.get("group", ""),
        cluster=fields.get("cluster", ""),
        extra=tuple((n, v) for n, v in fields.items() if n.startswith(EXTRA)),
    )


def _masks(
    fields: Mapping[str, str], columns: Sequence[str], where: str
) -> Iterator[str]:
    for name in columns:
        for path in fields[name].split(";") if name == "masks" else [fields[name]]:
            if not path.strip():
                raise DatasetError(
                    f"{where} must have a mask in the column {name!r}, got none; all"
                    " items have the same number of raters"
                )
            yield path.strip().replace("\\", "/")


def _split(text: str, where: str) -> tuple[str, bool]:
    if text.lower() in SPLITS:
        return SPLITS[text.lower()]
    if text:
        raise DatasetError(
            f"the split in {where} must be train, val or test, got {text!r}."
            f"{suggest(text.lower(), SPLITS)}"
        )
    return "", False


def _flag(text: str, where: str) -> bool:
    if text.lower() not in FLAGS:
        raise DatasetError(
            f"'shifted' in {where} must be 1 or 0, true or false, got {text!r}"
        )
    return FLAGS[text.lower()]


def _check_there(folder: Path, item: OwnItem) -> None:
    for path in (item.path, *item.masks):
        if not (folder / path).is_file():
            raise DatasetError(
                f"{item.where} names {path!r}, and there is no file {folder / path};"
                " paths start from the folder of the table"
            )
        _check_ending(folder / path, f"{path!r} in {item.where}")
