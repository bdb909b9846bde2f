"""Pixels as PNG, without an image library."""

import base64
import struct
import zlib
from typing import Any

import numpy as np
from numpy.typing import NDArray

_VIRIDIS = (
    *((68, 1, 84), (71, 44, 122), (59, 81, 139), (44, 113, 142), (33, 144, 141)),
    *((39, 173, 129), (92, 200, 99), (170, 220, 50), (253, 231, 37)),
)
"""Nine of its colours, between which others are linear."""


def png(pixels: NDArray[np.uint8]) -> bytes:
    """Return pixels (H, W) or (H, W, 3) as a PNG file."""
    grey = pixels.ndim == 2
    height, width = pixels.shape[:2]
    lines = np.ascontiguousarray(pixels, np.uint8).reshape(height, -1)
    raw = np.concatenate([np.zeros((height, 1), np.uint8), lines], axis=1)
    head = struct.pack(">IIBBBBB", width, height, 8, 0 if grey else 2, 0, 0, 0)
    chunks = (
        (b"IHDR", head),
        (b"IDAT", zlib.compress(raw.tobytes(), 9)),
        (b"IEND", b""),
    )
    return b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(*each) for each in chunks)


def png_address(pixels: NDArray[np.uint8]) -> str:
    """Return an address that holds the PNG of pixels."""
    return f"data:image/png;base64,{base64.b64encode(png(pixels)).decode('ascii')}"


def shades(
    values: NDArray[Any], scale: tuple[float, float] | None, *, heat: bool
) -> NDArray[np.uint8]:
    """Return values as bytes (H, W) or colours (H, W, 3), as matplotlib shows them.

    Args:
        values: Pixels (H, W) or (H, W, 3).
        scale: Values of the first and the last shade; None for those of `values`.
        heat: Whether they are a map of a quantity, which has colours from dark to
            bright; values that are undefined are grey.
    """
    if values.ndim == 3 or (values.dtype == np.uint8 and scale is None and not heat):
        bytes_ = values if values.dtype == np.uint8 else 255 * np.clip(values, 0, 1)
        return bytes_.astype(np.uint8)
    numbers = values.astype(np.float64)
    finite = numbers[np.isfinite(numbers)]
    low, high = scale or ((finite.min(), finite.max()) if finite.size else (0.0, 1.0))
    share = np.clip((numbers - low) / ((high - low) or 1.0), 0, 1)
    defined = np.isfinite(share)
    if not heat:
        return (255 * np.where(defined, share, 0.5)).astype(np.uint8)
    table = np.array(_VIRIDIS, np.float64)
    at = np.where(defined, share, 0.0) * (len(table) - 1)
    low_index = np.minimum(at.astype(np.int64), len(table) - 2)
    part = (at - low_index)[..., None]
    colours = table[low_index] * (1 - part) + table[low_index + 1] * part
    return np.where(defined[..., None], colours, 128.0).astype(np.uint8)


def reduced(pixels: NDArray[np.uint8], side: int) -> NDArray[np.uint8]:
    """Return pixels of a picture that is at most `side` wide and high, by means."""
    step = -(-max(pixels.shape[:2]) // side)
    if step == 1:
        return pixels
    height, width = (size // step for size in pixels.shape[:2])
    cut = pixels[: height * step, : width * step]
    blocks = cut.reshape(height, step, width, step, -1)
    means: NDArray[np.uint8] = blocks.mean(axis=(1, 3)).round().astype(np.uint8)
    return means[..., 0] if pixels.ndim == 2 else means


def _chunk(kind: bytes, data: bytes) -> bytes:
    check = zlib.crc32(kind + data)
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", check)
