"""Rows of an array that several splits and datasets share, such as crops of nodules.

The array lies on disk once, in the folder of an album, and each split has the numbers
of its rows.
"""

import hashlib
from dataclasses import dataclass
from io import BytesIO
from typing import Any

import numpy as np
from numpy.lib.format import dtype_to_descr, write_array_header_1_0
from numpy.typing import NDArray

ROWS = "rows"
"""Name of the array that has the numbers of the rows of a split."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SharedRows:
    """Some rows of an array, used like an array of their own.

    Only the rows that are taken are read. A single row is a view, others are copied.
    """

    data: NDArray[Any]
    """Of all splits, usually memory-mapped."""
    rows: NDArray[np.intp]

    @property
    def shape(self) -> tuple[int, ...]:
        """(N, ...)."""
        return len(self.rows), *self.data.shape[1:]

    @property
    def ndim(self) -> int:
        """As many axes as the shared array."""
        return self.data.ndim

    @property
    def dtype(self) -> np.dtype[Any]:
        """Type of the shared array."""
        return self.data.dtype

    @property
    def nbytes(self) -> int:
        """Bytes of these rows."""
        return int(np.prod(self.shape, dtype=np.int64)) * self.data.itemsize

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, key: Any) -> Any:
        """Index as NumPy does; a key that begins with ... or None reads all rows."""
        first, *others = key if isinstance(key, tuple) else (key,)
        if first is Ellipsis or first is None or np.ndim(first) > 1:
            return np.asarray(self)[key]
        if isinstance(first, slice):
            return self.data[self.rows[first]][:, *others]
        return self.data[self.rows[first], *others]

    def __array__(
        self, dtype: np.dtype[Any] | None = None, copy: bool | None = None
    ) -> NDArray[Any]:
        if copy is False:
            raise ValueError(
                "shared rows become an array only as a copy, got copy=False"
            )
        return self.data[self.rows].astype(dtype or self.dtype, copy=False)

    def take(self, rows: Any, axis: int = 0) -> NDArray[Any]:
        """Copy `rows`."""
        if axis != 0:
            raise ValueError(f"rows are taken along axis 0, got axis {axis}")
        return self.data.take(self.rows[np.asarray(rows, dtype=np.intp)], axis=0)

    def only(self, rows: Any) -> "SharedRows":
        """Return the rows `rows`; nothing is copied."""
        return SharedRows(data=self.data, rows=self.rows[rows])

    def file_hash(self) -> str:
        """Compute the SHA-256 of the `.npy` file that would have these rows alone."""
        head = BytesIO()
        descr = dtype_to_descr(self.dtype)
        fields = {"descr": descr, "fortran_order": False, "shape": self.shape}
        write_array_header_1_0(head, fields)
        hashed = hashlib.sha256(head.getvalue())
        for row in self.rows:
            hashed.update(np.ascontiguousarray(self.data[row]).data)
        return hashed.hexdigest()
