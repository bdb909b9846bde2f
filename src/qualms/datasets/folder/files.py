"""Image files of users: pictures of 8 and 16 bit, and volumes in NIfTI.

Pictures are decoded by Pillow, with their EXIF orientation. Pillow would cut colours of
16 bit to 8, so OpenCV decodes those. A palette is looked up; what is transparent is
laid over black. Volumes are read by nibabel, with the axes turned to the nearest
right-anterior-superior ones.
"""

import hashlib
import io
from collections.abc import Sequence
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from qualms.datasets._publisher_files import reading
from qualms.datasets._recipe import DatasetError

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


class PictureFacts(NamedTuple):
    """Facts of an image file, without its pixels."""

    sha256: str
    space: tuple[int, ...]
    """(H, W), or three sides of a volume."""
    channels: int
    deep: bool
    """Whether it has more than 8 bits for each channel."""
    axes: str = ""
    """Directions of the stored axes of a volume, such as "LPS"."""


class MaskFacts(NamedTuple):
    """Facts of a file of labels."""

    sha256: str
    space: tuple[int, ...]
    labels: tuple[int, ...]
    """Every label in it, sorted."""
    axes: str = ""


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
        if _is_volume(path):
            volume = _nifti(path)
            space, channels = (
                _canonical_shape(volume)[:-1],
                _canonical_shape(volume)[-1],
            )
            return PictureFacts(sha256, tuple(space), channels, True, _axes(volume))
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
    values = tuple(int(label) for label in np.unique(labels))
    axes = _axes(_nifti(path)) if _is_volume(path) else ""
    return MaskFacts(sha256, labels.shape, values, axes)


def read_pixels(path: Path) -> NDArray[Any]:
    """Read the image at `path` as (*space, channels), uint8 or float32.

    Pictures of 16 bit become 0..1. Those of 32 bit, and volumes, stay as they are.
    """
    with reading(path):
        pixels = _voxels(path) if _is_volume(path) else _decode(path)
        if pixels.dtype != np.uint8 and not np.isfinite(pixels).all():
            raise ValueError("it holds values that are not finite")
        return pixels


def read_labels(path: Path) -> NDArray[np.uint8]:
    """Read the labels at `path`, one for each pixel; a palette is not looked up."""
    with reading(path):
        labels = _voxels(path) if _is_volume(path) else _plain_labels(path)
        if labels.shape[-1] != 1:
            raise ValueError(
                f"a mask has one label for each voxel, got {labels.shape[-1]} channels"
            )
        inside = bool(((labels >= 0) & (labels <= MOST_BYTE)).all())
        if not inside or (labels != np.rint(labels)).any():
            raise ValueError(
                "a mask has whole labels from 0 to 255, got values from"
                f" {labels.min():g} to {labels.max():g}"
            )
        classes: NDArray[np.uint8] = labels[..., 0].astype(np.uint8)
        return classes


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


def _is_volume(path: Path) -> bool:
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
    return picture


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

    with _open(path.read_bytes()) as picture:
        if _is_deep(picture):
            return _decode_deep(path, picture)
        upright = ImageOps.exif_transpose(picture)
        if upright.has_transparency_data:
            clear = upright.convert("LA" if upright.mode in GREY else "RGBA")
            layers = np.asarray(clear).astype(np.float32)
            laid = layers[..., :-1] * (layers[..., -1:] / MOST_BYTE)
            return np.rint(laid).astype(np.uint8)
        mode = "L" if upright.mode in GREY else "RGB"
        pixels = np.asarray(upright.convert(mode))
        return pixels[..., None] if pixels.ndim == 2 else pixels


def _decode_deep(path: Path, picture: "Image") -> NDArray[np.float32]:
    if picture.mode in DEEP:
        grey = np.asarray(picture)
        short = grey.dtype.itemsize == 2 or picture.format == "PNG"
        scale = np.float32(MOST_SHORT if short else 1)
        return (grey.astype(np.float32) / scale)[..., None]
    import cv2

    stored = cv2.imread(str(path), cv2.IMREAD_UNCHANGED)
    if stored is None or stored.dtype != np.uint16 or stored.ndim != 3:
        raise ValueError("its 16 bits for each channel cannot be decoded; save as PNG")
    colours = stored[..., :3][..., ::-1].astype(np.float32) / MOST_SHORT
    if stored.shape[2] == 4:
        colours = colours * (stored[..., 3:] / MOST_SHORT).astype(np.float32)
    channels = colours[..., :1] if picture.mode in GREY else colours
    return np.ascontiguousarray(channels)


def _plain_labels(path: Path) -> NDArray[Any]:
    with _open(path.read_bytes()) as picture:
        if picture.mode in ("1", "L", "P", *DEEP):
            return np.asarray(picture)[..., None]
        layers = np.asarray(picture.convert("RGB"))
    if (layers != layers[..., :1]).any():
        raise ValueError(
            "a mask has one label for each pixel, got colours; save the labels 0, 1,"
            " 2 ... as a grey picture"
        )
    return layers[..., :1]


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

    volume = _nifti(path)
    turned = nibabel.as_closest_canonical(volume)  # type: ignore[no-untyped-call]
    voxels = np.asarray(turned.dataobj, dtype=np.float32)
    return voxels.reshape(_image_shape(voxels.shape))
