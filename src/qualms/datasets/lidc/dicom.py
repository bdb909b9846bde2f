"""CT slices from DICOM files: just what LIDC-IDRI needs.

A DICOM file (NEMA PS3.10) is a list of elements: tag, length, value. Values of the
first group are always explicit and little-endian, and one of them names how the rest is
written. The two uncompressed little-endian ways are read: with the type of each value
(explicit) or without (implicit). Files are mapped, so that a header costs no pixels.
"""

import mmap
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from qualms.datasets._publisher_files import reading

SYNTAXES = {"1.2.840.10008.1.2": False, "1.2.840.10008.1.2.1": True}
"""Whether each transfer syntax that is read is explicit."""
SYNTAX, SERIES, POSITION = 0x0002_0010, 0x0020_000E, 0x0020_0032
ROWS, COLUMNS, BITS, SIGNED = 0x0028_0010, 0x0028_0011, 0x0028_0100, 0x0028_0103
INTERCEPT, SLOPE, PIXELS = 0x0028_1052, 0x0028_1053, 0x7FE0_0010
PICTURE = (ROWS, COLUMNS, BITS, SIGNED, INTERCEPT, SLOPE, PIXELS)
LONG = (b"OB", b"OD", b"OF", b"OL", b"OW", b"SQ", b"UC", b"UN", b"UR", b"UT")
"""Types whose length takes four bytes."""
UNKNOWN_LENGTH = 0xFFFF_FFFF
ITEM, ITEM_END, SEQUENCE_END = 0xFFFE_E000, 0xFFFE_E00D, 0xFFFE_E0DD


class Element(NamedTuple):
    """One element of a file."""

    tag: int
    """Group and element number, e.g. 0x0020_000E."""
    start: int
    """Where its value begins."""
    length: int
    """Of its value in bytes; `UNKNOWN_LENGTH` for a sequence that is ended by a tag."""


class CtSlice(NamedTuple):
    """Where a slice lies."""

    path: Path
    position: float
    """Along the body, in millimetres."""


def series_of(path: Path) -> str:
    """The series that a file belongs to."""
    with reading(path), path.open("rb") as file, _mapped(file.fileno()) as data:
        return _text(_values(data, (SERIES,))[SERIES])


def slice_header(path: Path) -> CtSlice:
    """Where the slice in a file lies."""
    with reading(path), path.open("rb") as file, _mapped(file.fileno()) as data:
        text = _text(_values(data, (POSITION,))[POSITION])
        return CtSlice(path, float(text.split("\\")[2]))


def slice_hu(path: Path) -> NDArray[np.float32]:
    """The HU (rows, columns) of one slice."""
    with reading(path), path.open("rb") as file, _mapped(file.fileno()) as data:
        found = _values(data, PICTURE)
        rows, columns = _number(found[ROWS]), _number(found[COLUMNS])
        if _number(found[BITS]) != 16 or len(found[PIXELS]) < 2 * rows * columns:
            raise ValueError(
                f"it must hold {rows} x {columns} pixels of 16 bits, got"
                f" {len(found[PIXELS])} bytes of {_number(found[BITS])} bits; download"
                " it again"
            )
        kind = "<i2" if _number(found[SIGNED]) else "<u2"
        stored = np.frombuffer(found[PIXELS], kind, count=rows * columns)
        slope, intercept = (float(_text(found[tag])) for tag in (SLOPE, INTERCEPT))
        hu = stored.reshape(rows, columns).astype(np.float32) * slope + intercept
        return np.asarray(hu, np.float32)


def _mapped(file: int) -> mmap.mmap:
    return mmap.mmap(file, 0, access=mmap.ACCESS_READ)


def _values(data: mmap.mmap, tags: tuple[int, ...]) -> dict[int, bytes]:
    """The values of `tags`, which must all be there."""
    found = {}
    for element in _elements(data):
        if element.tag in tags:
            found[element.tag] = data[element.start : element.start + element.length]
            if len(found) == len(tags):
                break
    missing = [tag for tag in tags if tag not in found]
    if missing:
        named = ", ".join(f"({tag >> 16:04X},{tag & 0xFFFF:04X})" for tag in missing)
        raise ValueError(f"it must be a CT slice, got no DICOM element {named}")
    return found


def _elements(data: mmap.mmap) -> Iterator[Element]:
    """The outermost elements after the first group, in order."""
    if data[128:132] != b"DICM":
        raise ValueError("it must be a DICOM file, got no DICM at byte 128")
    at, syntax = 132, ""
    while _group(data, at) == 2:
        element = _element(data, at, explicit=True)
        at = element.start + element.length
        if element.tag == SYNTAX:
            syntax = _text(data[element.start : at])
    if syntax not in SYNTAXES:
        raise ValueError(
            "its transfer syntax must be uncompressed and little-endian"
            f" ({' or '.join(SYNTAXES)}), got {syntax or 'none'}; convert the file, for"
            " example with dcmdjpeg of DCMTK"
        )
    explicit = SYNTAXES[syntax]
    while at + 8 <= len(data):
        element = _element(data, at, explicit=explicit)
        yield element
        at = _end(data, element, explicit=explicit)


def _element(data: mmap.mmap, at: int, *, explicit: bool) -> Element:
    if at + 8 > len(data):
        raise ValueError(f"it ends within an element, at byte {at}")
    tag = _group(data, at) << 16 | _whole(data, at + 2, 2)
    if not explicit or tag in (ITEM, ITEM_END, SEQUENCE_END):
        return Element(tag, at + 8, _whole(data, at + 4, 4))
    if data[at + 4 : at + 6] in LONG:
        return Element(tag, at + 12, _whole(data, at + 8, 4))
    return Element(tag, at + 8, _whole(data, at + 6, 2))


def _end(data: mmap.mmap, element: Element, *, explicit: bool) -> int:
    """Where the element after `element` begins.

    A sequence of unknown length holds items until a tag ends it, and an item of unknown
    length holds elements, which may be sequences, until another tag does.
    """
    if element.length != UNKNOWN_LENGTH:
        return element.start + element.length
    last = ITEM_END if element.tag == ITEM else SEQUENCE_END
    at = element.start
    while True:
        inner = _element(data, at, explicit=explicit)
        if inner.tag == last:
            return inner.start
        at = _end(data, inner, explicit=explicit)


def _group(data: mmap.mmap, at: int) -> int:
    return _whole(data, at, 2)


def _whole(data: mmap.mmap, at: int, size: int) -> int:
    return int.from_bytes(data[at : at + size], "little")


def _number(value: bytes) -> int:
    return int.from_bytes(value, "little")


def _text(value: bytes) -> str:
    return value.decode("ascii").strip(" \0")
