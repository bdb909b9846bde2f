"""Image files of users: pictures of 8 and 16 bit, and volumes in NIfTI.

Pictures are decoded by Pillow, with their EXIF orientation. Pillow would cut colours of
16 bit to 8, so OpenCV decodes those. A palette is looked up; what is transparent is
laid over black. Volumes are read by nibabel, with the axes turned to the nearest
right-anterior-superior ones.
"""

import gzip
import hashlib
import io
import math
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from qualms.datasets._png import check_png
from qualms.datasets._publisher_files import reading
from qualms.datasets._recipe import DatasetError
from qualms.predictions import Grid

if TYPE_CHECKING:
    from nibabel.nifti1 import Nifti1Image
    from PIL.Image import Image

GREY = ("1", "L", "LA", "La", "I;16", "I;16B", "I;16L", "I", "F")
DEEP = ("I;16", "I;16B", "I;16L", "I", "F")
"""Modes of Pillow with more than 8 bits."""
MOST_BYTE, MOST_SHORT = 255, 65_535
MOST_PIXELS = 10**9
"""Largest picture that is read."""
TURNED = (5, 6, 7, 8)
"""EXIF orientations that exchange height and width."""
ORIENTATION = 0x0112
_LIMIT = Lock()
_SMALL = 2**31
"""Bytes of memory that every file may take."""
_PACKED = 200
"""Most bytes of memory for one byte of a larger file. Real images stay below."""
_CHUNK = 2**20
_ROWS = 64
"""Rows of a picture that are computed at once."""


class PictureFacts(NamedTuple):
    """Facts of an image file, without its pixels."""

    sha256: str
    space: tuple[int, ...]
    """(H, W), or three sides of a volume."""
    channels: int
    deep: bool
    """True if the picture has more than 8 bits for each channel."""
    axes: str = ""
    """Directions of the stored axes of a volume, such as "LPS"."""
    place: "VoxelGrid | None" = None


class VoxelGrid(NamedTuple):
    """Where the voxels of a volume lie, along its stored axes."""

    spacing: tuple[float, ...]
    """Sides of a voxel in mm."""
    origin: tuple[float, ...]
    """Position of the first voxel in mm."""


class MaskFacts(NamedTuple):
    """Facts of a file of labels."""

    sha256: str
    space: tuple[int, ...]
    labels: tuple[int, ...]
    """Every label in it, sorted."""
    axes: str = ""
    place: VoxelGrid | None = None


def side_words(space: Sequence[int]) -> str:
    """Write the sides of an image as errors do.

    >>> side_words((480, 640))
    '480 x 640'
    """
    return " x ".join(map(str, space))


def picture_facts(path: Path) -> PictureFacts:
    """Read size and depth of the image at `path`."""
    with reading(path):
        content = path.read_bytes()
        sha256 = hashlib.sha256(content).hexdigest()
        if is_volume(path):
            volume = _nifti(path)
            space, channels = (
                _canonical_shape(volume)[:-1],
                _canonical_shape(volume)[-1],
            )
            turned = _axes(volume)
            return PictureFacts(
                sha256, tuple(space), channels, True, turned, _grid(volume)
            )
        with _open(content) as picture:
            wide, high = picture.size
            space = (wide, high) if _is_turned(picture) else (high, wide)
            channels = 1 if picture.mode in GREY else 3
            return PictureFacts(sha256, space, channels, _is_deep(picture))


def mask_facts(path: Path) -> MaskFacts:
    """Read size and labels of the mask at `path`."""
    labels = read_labels(path)
    with path.open("rb") as file:
        sha256 = hashlib.file_digest(file, "sha256").hexdigest()
    # Line by line: counting needs eight bytes for each label.
    counts = sum(np.bincount(line.ravel(), minlength=256) for line in labels)
    values = tuple(np.flatnonzero(counts).tolist())
    if not is_volume(path):
        return MaskFacts(sha256, labels.shape, values)
    volume = _nifti(path)
    return MaskFacts(sha256, labels.shape, values, _axes(volume), _grid(volume))


def read_pixels(path: Path) -> NDArray[Any]:
    """Read the image at `path` as (*space, channels), uint8 or float32.

    Pictures of 16 bit become 0..1. Those of 32 bit, and volumes, stay as they are.
    """
    with reading(path):
        pixels = _voxels(path) if is_volume(path) else _decode(path)
        if pixels.dtype != np.uint8 and not np.isfinite(pixels).all():
            raise ValueError("it holds values that are not finite")
        return pixels


def read_labels(path: Path) -> NDArray[np.uint8]:
    """Read the labels at `path`, one for each pixel; a palette is not looked up."""
    with reading(path):
        if is_volume(path):
            return _voxel_labels(path)
        labels = _plain_labels(path)
        _check_labels([labels])
        return labels.astype(np.uint8, copy=False)


def _check_labels(parts: Iterable[NDArray[Any]]) -> None:
    """Raise unless all values are whole and fit into a byte."""
    lows, highs, all_whole = [], [], True
    for part in parts:
        lows.append(part.min())
        highs.append(part.max())
        all_whole &= part.dtype.kind in "iub" or bool((part == np.rint(part)).all())
    low, high = min(lows), max(highs)
    if not all_whole or low < 0 or high > MOST_BYTE:
        raise ValueError(
            "a mask has whole labels from 0 to 255, got values from"
            f" {low:g} to {high:g}"
        )


def body_grid(path: Path, sides: int) -> Grid:
    """Return where the voxels that `read_pixels` gives lie in the body.

    The axes of an oblique volume are the nearest ones; `tilt` says how far they are.
    """
    import nibabel

    with reading(path):
        affine = np.asarray(_nifti(path).affine, np.float64)
        order = nibabel.io_orientation(affine)  # type: ignore[no-untyped-call]
        if not np.isfinite(order).all():
            raise ValueError("its affine has an axis without length")
        steps = np.empty((3, 3))
        for stored, (axis, sign) in enumerate(order):
            steps[:, int(axis)] = sign * affine[:3, stored]
        spacing = np.linalg.norm(steps, axis=0)
        along = np.clip(np.diagonal(steps) / spacing, -1.0, 1.0)
        tilt = float(np.degrees(np.arccos(along[:sides])).max())
        return Grid("RAS"[:sides], tuple(spacing[:sides].tolist()), round(tilt, 3))


def voxel_sides(path: Path) -> tuple[float, ...]:
    """Return sides of a voxel in mm, along the axes that `read_pixels` gives."""
    import nibabel

    with reading(path):
        volume = _nifti(path)
        # The columns of the affine are the steps from a voxel to the next.
        sides = np.linalg.norm(volume.affine[:3, :3], axis=0)
        order = nibabel.io_orientation(volume.affine)[:, 0]  # type: ignore[no-untyped-call]
        by_axis = dict(zip(order.astype(int).tolist(), sides.tolist(), strict=True))
        return tuple(by_axis[axis] for axis in range(3))


def is_volume(path: Path) -> bool:
    """Return whether a file is a volume in NIfTI, by its name."""
    return path.name.lower().endswith((".nii", ".nii.gz"))


def _open(content: bytes) -> "Image":
    from PIL import Image, UnidentifiedImageError

    # Pillow refuses pictures from 179 million pixels on, as an attack might send them.
    # Its limit is one for all threads, and they must find it as it was.
    with _LIMIT:
        usual, Image.MAX_IMAGE_PIXELS = Image.MAX_IMAGE_PIXELS, MOST_PIXELS
        try:
            picture: Image.Image = Image.open(io.BytesIO(content))
        except UnidentifiedImageError:
            raise ValueError("its bytes are those of no image") from None
        finally:
            Image.MAX_IMAGE_PIXELS = usual
    frames = getattr(picture, "n_frames", 1)
    if frames > 1:
        raise ValueError(f"it must hold one picture, got {frames}; save each by itself")
    # Pillow's own pixels, a copy of them and the array that is returned.
    _refuse_unpacking(
        math.prod(picture.size) * (32 if _is_deep(picture) else 12), len(content)
    )
    return picture


def _refuse_unpacking(unpacked: int, packed: int) -> None:
    """Raise if a file of `packed` bytes would take far more memory than real ones."""
    if unpacked > max(_SMALL, _PACKED * packed):
        raise ValueError(
            f"it would take {unpacked / 2**30:.1f} GiB of memory and has"
            f" {packed / 2**20:.1f} MiB, which real images do not; make it smaller, or"
            " save it without compression"
        )


def _is_turned(picture: "Image") -> bool:
    if picture.format == "PNG" and "exif" not in picture.info:
        return False  # Pillow would decode all of it to look for one at the end
    return picture.getexif().get(ORIENTATION) in TURNED


def _is_deep(picture: "Image") -> bool:
    """Return whether the file, or Pillow's mode of it, has more than 8 bits."""
    tiles = getattr(picture, "tile", ())
    raw = str(tiles[0][3]) if tiles else ""
    return picture.mode in DEEP or ";16" in raw


def _decode(path: Path) -> NDArray[Any]:
    from PIL import ImageOps

    content = path.read_bytes()
    with _open(content) as picture:
        check_png(content)
        if _is_deep(picture):
            return _decode_deep(content, picture)
        upright = ImageOps.exif_transpose(picture)
        if upright.has_transparency_data:
            clear = upright.convert("LA" if upright.mode in GREY else "RGBA")
            return _over_black(np.asarray(clear))
        mode = "L" if upright.mode in GREY else "RGB"
        pixels = np.asarray(upright.convert(mode))
        return pixels[..., None] if pixels.ndim == 2 else pixels


def _over_black(layers: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Return the colours of a picture whose last channel says how opaque they are."""
    pixels = np.empty((*layers.shape[:-1], layers.shape[-1] - 1), np.uint8)
    for start in range(0, len(layers), _ROWS):
        part = layers[start : start + _ROWS].astype(np.float32)
        laid = part[..., :-1] * (part[..., -1:] / MOST_BYTE)
        pixels[start : start + _ROWS] = np.rint(laid)
    return pixels


def _decode_deep(content: bytes, picture: "Image") -> NDArray[np.float32]:
    if picture.mode in DEEP:
        grey = np.asarray(picture)
        short = grey.dtype.itemsize == 2 or picture.format == "PNG"
        scale = np.float32(MOST_SHORT if short else 1)
        return (grey.astype(np.float32) / scale)[..., None]
    import cv2

    stored = cv2.imdecode(np.frombuffer(content, np.uint8), cv2.IMREAD_UNCHANGED)
    if stored is None or stored.dtype != np.uint16 or stored.ndim != 3:
        raise ValueError("its 16 bits for each channel cannot be decoded; save as PNG")
    colours = stored[..., :3][..., ::-1].astype(np.float32) / MOST_SHORT
    if stored.shape[2] == 4:
        colours = colours * (stored[..., 3:] / MOST_SHORT).astype(np.float32)
    channels = colours[..., :1] if picture.mode in GREY else colours
    return np.ascontiguousarray(channels)


def _plain_labels(path: Path) -> NDArray[Any]:
    content = path.read_bytes()
    with _open(content) as picture:
        check_png(content)
        if picture.mode in ("1", "L", "P", *DEEP):
            return np.asarray(picture)
        layers = np.asarray(picture.convert("RGB"))
    if any((layers[..., 0] != layers[..., k]).any() for k in (1, 2)):
        raise ValueError(
            "a mask has one label for each pixel, got colours; save the labels 0, 1,"
            " 2 ... as a grey picture"
        )
    return layers[..., 0]


def _nifti(path: Path) -> "Nifti1Image":
    try:
        import nibabel
    except ImportError as error:
        raise DatasetError(
            f"{path} is read by nibabel, which is not installed; install"
            " 'qualms-bench[seg]'"
        ) from error
    volume = nibabel.load(path)
    assert isinstance(volume, nibabel.Nifti1Image)
    return volume


def _whole(path: Path) -> "Nifti1Image":
    """Return the volume at `path`; of a compressed one the checksum is compared."""
    volume = _nifti(path)
    proxy: Any = volume.dataobj
    size = math.prod(volume.shape) * proxy.dtype.itemsize
    _refuse_unpacking(
        2 * size + math.prod(volume.shape) * np.dtype(np.float32).itemsize,
        path.stat().st_size,
    )
    if not path.name.lower().endswith(".gz"):
        return volume
    # nibabel reads no further than the last voxel, and the checksum lies behind it.
    with gzip.open(path) as stream:
        content = stream.read(int(proxy.offset) + size)
        rest = 0
        while chunk := stream.read(_CHUNK):
            rest += len(chunk)
            if rest > _SMALL:
                raise ValueError("it is longer than its header says")
    return type(volume).from_bytes(content)


def _grid(volume: "Nifti1Image") -> VoxelGrid:
    affine = np.asarray(volume.affine, np.float64)
    spacing = np.linalg.norm(affine[:3, :3], axis=0)
    return VoxelGrid(tuple(spacing.tolist()), tuple(affine[:3, 3].tolist()))


def _axes(volume: "Nifti1Image") -> str:
    import nibabel

    codes = nibabel.aff2axcodes(volume.affine)  # type: ignore[no-untyped-call]
    return "".join(str(code) for code in codes)


def _canonical_shape(volume: "Nifti1Image") -> tuple[int, ...]:
    """Return the shape (*space, channels) that `_voxels` gives."""
    import nibabel

    order = nibabel.io_orientation(volume.affine)[:, 0]  # type: ignore[no-untyped-call]
    first = dict(zip(order.astype(int).tolist(), volume.shape, strict=False))
    sides = [first.get(axis, 1) for axis in range(min(3, len(volume.shape)))]
    return _image_shape((*sides, *volume.shape[3:]))


def _image_shape(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return (*space, channels) of a NIfTI shape: a third side of 1 is a picture's."""
    sides, further = shape[:3], shape[3:]
    while further and further[-1] == 1:
        further = further[:-1]
    if len(further) > 1 or len(sides) < 2:
        raise ValueError(
            f"a NIfTI file has 2 or 3 sides and maybe channels, got the shape {shape}"
        )
    sides = sides[:2] if len(sides) == 3 and sides[2] == 1 else sides
    return (*sides, *(further or (1,)))


def _voxels(path: Path) -> NDArray[np.float32]:
    import nibabel

    volume = _whole(path)
    turned = nibabel.as_closest_canonical(volume)  # type: ignore[no-untyped-call]
    voxels = np.asarray(turned.dataobj, dtype=np.float32)
    return voxels.reshape(_image_shape(voxels.shape))


def _voxel_labels(path: Path) -> NDArray[np.uint8]:
    """Return the labels of a volume, whose axes are turned as those of `_voxels`.

    Slices are read one by one: a mask of few bytes may have very many voxels.
    """
    import nibabel

    volume = _whole(path)
    channels = _image_shape(volume.shape)[-1]
    if channels != 1:
        raise ValueError(
            f"a mask has one label for each voxel, got {channels} channels"
        )
    labels = np.empty(volume.shape, np.uint8)

    def slices() -> Iterator[NDArray[Any]]:
        for place in range(volume.shape[-1]):
            part = np.asarray(volume.dataobj[..., place])
            yield part
            labels[..., place] = part

    with np.errstate(invalid="ignore"):  # values that are no labels are refused
        _check_labels(slices())
    order = nibabel.io_orientation(volume.affine)  # type: ignore[no-untyped-call]
    turned = nibabel.apply_orientation(labels, order)  # type: ignore[no-untyped-call]
    return np.ascontiguousarray(turned.reshape(_image_shape(turned.shape)[:-1]))
