"""Pictures that are stored encoded and decoded when they are taken.

A fundus photograph of 540 x 540 pixels has 40 kB as JPEG and 870 kB decoded, so 92,000
of them fit on any disk, at any size that a network asks for. Decoding resizes to a
square with OpenCV's bilinear rule: half-pixel centres, no antialiasing, the aspect
ratio not kept. RETINA's code does the same to float32 and rounds nothing, so a pixel
may differ from there by one grey level.
"""

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qualms.datasets._cores import cores
from qualms.datasets._resize import bilinear

CHANNELS = 3


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Encoded:
    """Pictures (N, side, side, 3) uint8 in RGB, to be used like an array of them.

    Taking rows decodes them, in as many threads as there are cores; a picture does not
    depend on the others, so the number of threads changes no bit.
    """

    data: NDArray[np.uint8]
    """Encoded pictures in a row, usually memory-mapped."""
    span: NDArray[np.int64]
    """(N, 2) where each begins in `data`, and where it ends."""
    side: int
    threads: int | None = None
    """None is one per core."""

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
        """Bytes that all pictures have once they are decoded."""
        return int(np.prod(self.shape, dtype=np.int64))

    def __len__(self) -> int:
        return len(self.span)

    def __getitem__(self, key: Any) -> NDArray[np.uint8]:
        """What NumPy would give; only the rows that a key begins with are decoded.

        A key that begins with anything but rows, such as ... or a mask of pixels,
        decodes all of them.
        """
        rows, *rest = key if isinstance(key, tuple) else (key,)
        if isinstance(rows, slice):
            return np.asarray(self._decoded(self.span[rows])[:, *rest])
        if rows is Ellipsis or rows is None or _masks_pixels(rows):
            return np.asarray(np.asarray(self)[key])
        wanted = np.arange(len(self))[rows]
        if wanted.ndim == 1 and not rest:
            return self._decoded(self.span[wanted])
        decoded, place = np.unique(wanted, return_inverse=True)
        # A number stays one, so that its axis is dropped where NumPy drops it.
        first = place.reshape(wanted.shape) if wanted.ndim else 0
        return np.asarray(self._decoded(self.span[decoded])[first, *rest])

    def __array__(
        self, dtype: np.dtype[Any] | None = None, copy: bool | None = None
    ) -> NDArray[Any]:
        if copy is False:
            raise ValueError("encoded pictures become an array only as a copy")
        return self._decoded(self.span).astype(dtype or self.dtype, copy=False)

    def take(self, rows: Any, axis: int = 0) -> NDArray[np.uint8]:
        """The pictures `rows`, decoded."""
        if axis != 0:
            raise ValueError(f"pictures are taken along axis 0, got axis {axis}")
        return self._decoded(self.span[np.asarray(rows, dtype=np.intp)])

    def only(self, rows: Any) -> "Encoded":
        """The pictures `rows` as pictures of their own, still encoded."""
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


def jpeg(image: NDArray[np.uint8], *, quality: int) -> bytes:
    """An image (H, W, 3) in OpenCV's order, blue first, as a JPEG file."""
    import cv2

    written, data = cv2.imencode(".jpg", image, [cv2.IMWRITE_JPEG_QUALITY, quality])
    if not written:
        raise ValueError(f"an image {image.shape} {image.dtype} cannot be JPEG")
    return data.tobytes()


def _masks_pixels(rows: Any) -> bool:
    """Whether an index is a mask of something else than rows."""
    index = np.asarray(rows)
    return index.dtype == np.bool_ and index.ndim != 1


def _decode(data: NDArray[np.uint8], picture: NDArray[np.uint8]) -> None:
    """Fill `picture` with what `data` encodes."""
    import cv2

    found = cv2.imdecode(data, cv2.IMREAD_COLOR) if len(data) else None
    if found is None:
        raise ValueError(
            f"a stored picture of {len(data)} bytes cannot be decoded; delete the cache"
            " and prepare the dataset again"
        )
    side = len(picture)
    small = found if found.shape == picture.shape else bilinear(found, side)
    cv2.cvtColor(small, cv2.COLOR_BGR2RGB, dst=picture)


def _each(work: Callable[[int], None], count: int, threads: int) -> None:
    if threads == 1 or count == 1:
        for row in range(count):
            work(row)
        return
    # A process that was forked has none of its parent's threads.
    for _ in _pool(threads, os.getpid()).map(work, range(count)):
        pass


@lru_cache(maxsize=4)
def _pool(threads: int, _process: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(threads, thread_name_prefix="decode")
