"""Pictures that are stored encoded, and decoded when they are taken.

A fundus photograph of 540 x 540 pixels has 40 kB as JPEG and 870 kB decoded, so all
92,000 of RETINA fit on any disk. Decoding resizes them to a square of any size with
OpenCV's bilinear rule: half-pixel centres, no antialiasing, aspect ratio not kept.
RETINA's code resizes in float32, so its pixels may differ from ours by one grey level.
"""

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qualms.datasets._resize import bilinear
from qualms.processes import cores

CHANNELS = 3


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Encoded:
    """Pictures that are used like an array (N, side, side, 3) uint8 in RGB.

    Taking rows decodes them, with one thread per core. The number of threads changes no
    bit.
    """

    data: NDArray[np.uint8]
    """Concatenated encoded pictures, usually memory-mapped."""
    span: NDArray[np.int64]
    """(N, 2) where each begins and ends in `data`."""
    side: int
    threads: int | None = None
    """None takes one per core."""

    @property
    def shape(self) -> tuple[int, int, int, int]:
        """(N, side, side, 3)."""
        return len(self.span), self.side, self.side, CHANNELS

    @property
    def ndim(self) -> int:
        """Four axes."""
        return len(self.shape)

    @property
    def dtype(self) -> np.dtype[np.uint8]:
        """Bytes."""
        return np.dtype(np.uint8)

    @property
    def nbytes(self) -> int:
        """Bytes of all pictures once they are decoded."""
        return int(np.prod(self.shape, dtype=np.int64))

    def __len__(self) -> int:
        return len(self.span)

    def __getitem__(self, key: Any) -> NDArray[np.uint8]:
        """Index the decoded pictures as NumPy does.

        Only the rows that the key begins with are decoded. A key that begins with
        something else, such as ... or a mask of pixels, decodes all rows.
        """
        rows, *rest = key if isinstance(key, tuple) else (key,)
        if isinstance(rows, slice):
            return np.asarray(self._decoded(self.span[rows])[:, *rest])
        if rows is Ellipsis or rows is None or _masks_pixels(rows):
            return np.asarray(np.asarray(self)[key])
        chosen = np.arange(len(self))[rows]
        if chosen.ndim == 1 and not rest:
            return self._decoded(self.span[chosen])
        decoded, position = np.unique(chosen, return_inverse=True)
        # A single row stays a number, so that its axis is dropped as NumPy does.
        first = position.reshape(chosen.shape) if chosen.ndim else 0
        return np.asarray(self._decoded(self.span[decoded])[first, *rest])

    def __array__(
        self, dtype: np.dtype[Any] | None = None, copy: bool | None = None
    ) -> NDArray[Any]:
        if copy is False:
            raise ValueError(
                "encoded pictures become an array only as a copy, got copy=False"
            )
        return self._decoded(self.span).astype(dtype or self.dtype, copy=False)

    def take(self, rows: Any, axis: int = 0) -> NDArray[np.uint8]:
        """Decode the pictures `rows`."""
        if axis != 0:
            raise ValueError(f"pictures are taken along axis 0, got axis {axis}")
        return self._decoded(self.span[np.asarray(rows, dtype=np.intp)])

    def only(self, rows: Any) -> "Encoded":
        """Return the pictures `rows`, still encoded."""
        return Encoded(
            data=self.data, span=self.span[rows], side=self.side, threads=self.threads
        )

    def _decoded(self, span: NDArray[np.int64]) -> NDArray[np.uint8]:
        pictures = np.empty((len(span), *self.shape[1:]), np.uint8)

        def decode(row: int) -> None:
            start, stop = span[row].tolist()
            _decode(self.data[start:stop], pictures[row])

        _each(decode, len(span), self.threads or cores())
        return pictures


def jpeg(image: NDArray[np.uint8], *, quality: int, full_colour: bool = False) -> bytes:
    """Encode an image (H, W, 3) in OpenCV's order, blue first, as a JPEG file.

    Colours have half the resolution of the image unless `full_colour` is set.
    """
    import cv2

    options = [cv2.IMWRITE_JPEG_QUALITY, quality]
    if full_colour:
        full = cv2.IMWRITE_JPEG_SAMPLING_FACTOR_444
        options += [cv2.IMWRITE_JPEG_SAMPLING_FACTOR, full]
    written, data = cv2.imencode(".jpg", image, options)
    if not written:
        raise ValueError(f"cannot write an image {image.shape} {image.dtype} as JPEG")
    return data.tobytes()


def _masks_pixels(rows: Any) -> bool:
    """Return whether an index is a mask with more axes than rows."""
    index = np.asarray(rows)
    return index.dtype == np.bool_ and index.ndim != 1


def _decode(data: NDArray[np.uint8], picture: NDArray[np.uint8]) -> None:
    """Decode `data` into `picture`."""
    import cv2

    decoded = cv2.imdecode(data, cv2.IMREAD_COLOR) if len(data) else None
    if decoded is None:
        raise ValueError(
            f"a stored picture of {len(data)} bytes cannot be decoded; delete the cache"
            " and prepare the dataset again"
        )
    side = len(picture)
    small = decoded if decoded.shape == picture.shape else bilinear(decoded, side)
    cv2.cvtColor(small, cv2.COLOR_BGR2RGB, dst=picture)


def _each(work: Callable[[int], None], count: int, threads: int) -> None:
    if threads == 1 or count == 1:
        for row in range(count):
            work(row)
        return
    # A forked process has none of its parent's threads, so each process has a pool.
    for _ in _pool(threads, os.getpid()).map(work, range(count)):
        pass


@lru_cache(maxsize=4)
def _pool(threads: int, _process: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(threads, thread_name_prefix="decode")
