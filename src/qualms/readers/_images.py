"""Files of images: their names without endings, and the positions of their voxels.

Pictures and volumes are read like those of a user's dataset
(`datasets/folder/files.py`): the axes of volumes are turned to the nearest
right-anterior-superior ones. Two volumes share their voxels only if their headers say
so.
"""

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qualms.predictions import Grid, PredictionsError

VOLUMES = (".nii.gz", ".nii")
PICTURES = (".png",)
LABEL_ENDINGS = (*VOLUMES, *PICTURES)
"""Endings of label maps."""
_NEAR = 0.5
"""Largest distance of two grids, in voxels, that rounding in headers explains."""


def ending_of(path: Path) -> str:
    """Return the ending of a file of an image, such as .nii.gz; else its suffix."""
    name = path.name.lower()
    return next((end for end in VOLUMES if name.endswith(end)), path.suffix.lower())


def stem_of(path: Path) -> str:
    """Return the name of a file without the ending of an image."""
    return path.name[: len(path.name) - len(ending_of(path))]


def files_by_stem(folder: Path, endings: tuple[str, ...]) -> dict[str, Path]:
    """Return the files of a folder with one of these endings, by stem and in order.

    Raises:
        PredictionsError: If two files have the same stem.
    """
    files: dict[str, Path] = {}
    for path in sorted(folder.iterdir(), key=lambda path: natural(path.name)):
        if path.name.startswith(".") or ending_of(path) not in endings:
            continue
        if not path.is_file():
            continue
        other = files.setdefault(stem_of(path), path)
        if other != path:
            raise PredictionsError(
                f"must have one file for each case, got {other.name} and {path.name} in"
                f" {folder}; remove one"
            )
    return files


def subfolders(folder: Path) -> list[Path]:
    """Return the folders in a folder, sorted with fold_2 before fold_10."""
    below = (path for path in folder.iterdir() if path.is_dir())
    return sorted(
        (path for path in below if not path.name.startswith(".")),
        key=lambda path: natural(path.name),
    )


def natural(name: str) -> list[tuple[int, str]]:
    """Return a key that orders names by the numbers in them.

    >>> sorted(["fold_10", "fold_2"], key=natural)
    ['fold_2', 'fold_10']
    """
    parts = re.split(r"(\d+)", name)
    return [(int(part), "") if part.isdecimal() else (-1, part) for part in parts]


def stored_volume(path: Path) -> Any:
    """Return the nibabel volume at `path`, without reading its voxels."""
    try:
        import nibabel
    except ImportError as error:
        raise PredictionsError(
            f"{path.name} is read by nibabel, which is not installed; install"
            " 'qualms-bench[seg]'"
        ) from error
    try:
        return nibabel.load(path)
    # Damaged bytes make nibabel raise errors of many classes.
    except Exception as error:
        raise PredictionsError(f"cannot read {path}: {error}") from error


def labels_in(path: Path) -> NDArray[np.uint8]:
    """Read a label for each pixel, volumes with their axes turned to RAS."""
    from qualms.datasets.folder.files import read_labels  # loads all datasets' tools

    with _damaged():
        return read_labels(path)


def pixels_in(path: Path) -> NDArray[Any]:
    """Read an image (*space, channels), volumes with their axes turned to RAS."""
    from qualms.datasets.folder.files import read_pixels  # loads all datasets' tools

    with _damaged():
        return read_pixels(path)


@contextmanager
def _damaged() -> Iterator[None]:
    try:
        yield
    except ValueError as error:
        raise PredictionsError(str(error)) from error


def labels_on_grid(
    path: Path, space: tuple[int, ...], like: Path | None
) -> NDArray[np.uint8]:
    """Read the labels at `path`; raise unless they lie on the voxels of `like`.

    `space` is the required shape. `like` is the volume of the prediction of this case,
    or None if the prediction has no header with the positions of its voxels.
    """
    labels = labels_in(path)
    if labels.shape != space:
        raise PredictionsError(
            f"{path} must have the shape of the prediction, {space}, got"
            f" {labels.shape}; take label maps of the same images"
        )
    is_volume = ending_of(path) in VOLUMES
    if is_volume and like is not None:
        _check_grid(path, like)
    elif is_volume:
        raise PredictionsError(
            f"{path} has axes that its header describes, and the prediction of this"
            " case has no header; save both as NIfTI, or both as arrays or pictures"
        )
    return labels


def _check_grid(path: Path, like: Path) -> None:
    first, other = _canonical_affine(path), _canonical_affine(like)
    side = np.linalg.norm(other[:3, :3], axis=0).max()
    if np.abs(first - other).max() > _NEAR * side:
        raise PredictionsError(
            f"{path} must lie where {like.name} of the prediction does: its first voxel"
            f" lies at {_place(first)} and that of the prediction at {_place(other)} mm"
            " after turning both to RAS; save it with the header of its image"
        )


def _place(affine: NDArray[np.float64]) -> str:
    return f"({', '.join(f'{value:g}' for value in affine[:3, 3].round(3))})"


def _canonical_affine(path: Path) -> NDArray[np.float64]:
    """Return the affine of a volume with its axes turned to RAS."""
    import nibabel

    volume = stored_volume(path)
    order = nibabel.io_orientation(volume.affine)  # type: ignore[no-untyped-call]
    turn = nibabel.orientations.inv_ornt_aff(order, volume.shape[:3])  # type: ignore[no-untyped-call]
    return np.asarray(volume.affine @ turn, np.float64)


def grid_of(path: Path, sides: int) -> Grid:
    """Return where the pixels of `labels_in` lie in the body."""
    from qualms.datasets.folder.files import body_grid  # loads all datasets' tools

    return body_grid(path, sides)


def listed_cases(files: Mapping[str, Any], most: int = 3) -> str:
    """Return the first names of a mapping in words.

    >>> listed_cases({"a": 1, "b": 2}), listed_cases(dict.fromkeys("abcde"))
    ('a, b', 'a, b, c and 2 more')
    """
    first = ", ".join(list(files)[:most])
    more = len(files) - most
    return f"{first} and {more} more" if more > 0 else first
