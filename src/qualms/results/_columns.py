"""Columns of a table as arrays: values stored once and numbered, and grouped."""

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from qualms.arrays import Array, Flags, Index
from qualms.labels import Label, LabelKey, Wanted, accepted_keys, label_key

Codes = NDArray[np.int32]
Rows = NDArray[np.intp]
"""Numbers of rows."""
NO_LABEL = label_key(None)
_LARGEST = 1 << 62
"""Limit on the numbers of groups, far from an overflow."""


class CodedColumn(NamedTuple):
    """A column of few distinct values: each stored once, and a number for each row."""

    codes: Codes
    """(rows,); -1 for none."""
    distinct: tuple[Label, ...]

    def accepted(self, wanted: Wanted) -> Flags:
        """Return for each code whether it is of a wanted value; -1 stands last."""
        keys = accepted_keys(wanted)
        matches = [label_key(value) in keys for value in self.distinct]
        return np.array([*matches, NO_LABEL in keys], np.bool_)

    def matches(self, wanted: Wanted) -> Flags:
        """Return for each row whether it has one of the wanted values."""
        matches: Flags = self.accepted(wanted)[self.codes]
        return matches

    def take(self, rows: Rows) -> "CodedColumn":
        return self._replace(codes=self.codes[rows])

    def at(self, row: int) -> Label | None:
        code = self.codes[row]
        return None if code < 0 else self.distinct[code]

    def rows(self) -> list[Label]:
        """Return the value of each row; '' for none."""
        values = [*self.distinct, ""]
        return [values[code] for code in self.codes.tolist()]


class SeriesColumn(NamedTuple):
    """A column with several numbers in each row, laid end to end."""

    flat: Array
    ends: Index
    """(rows + 1,); row i has flat[ends[i]:ends[i + 1]]."""

    def take(self, rows: Rows) -> "SeriesColumn":
        lengths = np.diff(self.ends)[rows]
        ends = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
        source = np.arange(ends[-1]) + np.repeat(self.ends[rows] - ends[:-1], lengths)
        return SeriesColumn(self.flat[source], ends)

    def at(self, row: int) -> tuple[float, ...]:
        return tuple(self.flat[self.ends[row] : self.ends[row + 1]].tolist())

    def rows(self) -> list[tuple[float, ...]]:
        """Return the numbers of each row."""
        flat, ends = self.flat.tolist(), self.ends.tolist()
        return [tuple(flat[start:end]) for start, end in pairwise(ends)]


class Groups(NamedTuple):
    """Rows in groups, numbered in order of first appearance."""

    numbers: Rows
    """(rows,) the group of each row."""
    keys: tuple[tuple[Label | None, ...], ...]
    """The values of each group."""


def coded(values: Sequence[Label | None]) -> CodedColumn:
    """Store each distinct value once; None stands for no value."""
    numbers: dict[LabelKey, int] = {}
    codes = [
        -1 if value is None else numbers.setdefault(label_key(value), len(numbers))
        for value in values
    ]
    return CodedColumn(np.array(codes, np.int32), _distinct(numbers))


def series_column(values: Sequence[Sequence[float]]) -> SeriesColumn:
    """Lay the numbers of all rows end to end."""
    ends = np.cumsum([0, *map(len, values)]).astype(np.int64)
    return SeriesColumn(np.array([v for each in values for v in each], float), ends)


def merged(columns: Sequence[tuple[CodedColumn | None, int]]) -> CodedColumn:
    """Put coded columns end to end, with one list of distinct values."""
    numbers: dict[LabelKey, int] = {}
    parts = []
    for column, size in columns:
        if column is None:
            parts.append(np.full(size, -1, np.int32))
            continue
        keys = map(label_key, column.distinct)
        codes = [numbers.setdefault(key, len(numbers)) for key in keys]
        parts.append(np.array([*codes, -1], np.int32)[column.codes])
    return CodedColumn(np.concatenate(parts), _distinct(numbers))


def joined_series(columns: Sequence[SeriesColumn]) -> SeriesColumn:
    """Put columns of several numbers end to end."""
    lengths = np.concatenate([np.diff(column.ends) for column in columns])
    ends = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    return SeriesColumn(np.concatenate([column.flat for column in columns]), ends)


def group_rows(columns: Sequence[CodedColumn | None], size: int) -> Groups:
    """Number the groups of rows that have the same values in all columns.

    Args:
        columns: None stands for a column in which no row has a value.
        size: The number of rows.
    """
    combined, most = np.zeros(size, np.int64), 1
    for column in columns:
        if column is None:
            continue
        if most > _LARGEST // (len(column.distinct) + 1):
            # Renumbered, so that no product of sizes overflows.
            combined = np.unique(combined, return_inverse=True)[1].astype(np.int64)
            most = size + 1
        combined = combined * (len(column.distinct) + 1) + column.codes + 1
        most *= len(column.distinct) + 1
    _, first, group = np.unique(combined, return_index=True, return_inverse=True)
    order = np.argsort(first, kind="stable")
    rank = np.empty(len(order), np.intp)
    rank[order] = np.arange(len(order))
    keys = tuple(
        tuple(None if c is None else c.at(int(row)) for c in columns)
        for row in first[order]
    )
    return Groups(rank[group], keys)


def first_members(groups: Rows, count: int) -> Rows:
    """Return for each of `count` groups its first member; -1 for none."""
    members = len(groups)
    first = np.full(count, members, np.intp)
    # An assignment would keep any of several members: NumPy promises no order.
    np.minimum.at(first, groups, np.arange(members))
    first[first == members] = -1
    return first


def key_of(labels: Iterable[Label | None]) -> tuple[LabelKey, ...]:
    """Return labels in a form that compares and hashes by type and value."""
    return tuple(map(label_key, labels))


def _distinct(numbers: Iterable[LabelKey]) -> tuple[Label, ...]:
    return tuple(value for _, value in numbers if value is not None)
