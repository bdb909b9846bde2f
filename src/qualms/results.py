"""One long table of labelled numbers: ours, and those that papers print.

A row is one number: its labels say what it is of, its other columns how sure it is.
Choosing is a filter, a printed table is a pivot, and comparing with a paper is a join
on labels. Columns are arrays, and labels and texts are stored once and numbered, so
that a million rows are filtered and pivoted in a fraction of a second. Only `to_frame`
and `to_parquet` need pandas and pyarrow.
"""

import csv
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from qualms.arrays import Array, Flags, Index
from qualms.atomic import replacing
from qualms.labels import (
    Label,
    LabelKey,
    Labels,
    Wanted,
    accepted_keys,
    label_key,
    labels_text,
)

Codes = NDArray[np.int32]
Rows = NDArray[np.intp]
"""Numbers of rows."""


class Summary(NamedTuple):
    """A mean and a spread."""

    mean: float
    std: float
    """nan where there is one repeat only, so that nothing varies."""


def summary(values: Sequence[float]) -> Summary:
    """Return mean and population standard deviation; nan where they are undefined.

    >>> summary((1.0, 3.0))
    Summary(mean=2.0, std=1.0)
    """
    if not values:
        return Summary(math.nan, math.nan)
    if not all(map(math.isfinite, values)):
        return Summary(float(np.sum(values)) / len(values), math.nan)
    spread = float(np.std(values)) if len(values) > 1 else math.nan
    return Summary(float(np.mean(values)), spread)


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """One number, with the labels that say what it is of."""

    labels: Labels
    value: float = math.nan
    """The mean over repeats; of a published number, what is printed."""
    spread: float = math.nan
    """The deviation over repeats; of a published number, as printed."""
    low: float = math.nan
    high: float = math.nan
    released: float = math.nan
    """The mean by the rule of a paper's released code."""
    released_spread: float = math.nan
    difference: float = math.nan
    """This row's value minus that of the best row."""
    difference_low: float = math.nan
    difference_high: float = math.nan
    best: str = ""
    """The best row of its column; '' where rows are not ranked."""
    tied: bool = False
    """True if it is the best, or cannot be told apart from the best."""
    interval_method: str = ""
    """Name of the rule that made the interval."""
    no_interval: str = ""
    """Why there is none, where the value is defined."""
    covers: str = ""
    """Coverage of the interval: other "items", "items and seeds"; "these runs" where
    these are too few to say how far others lie. `values` shows their range."""
    no_winner: str = ""
    """Why no row of its column is marked as best."""
    why: str = ""
    """Why there is no value."""
    note: str = ""
    """A remark on a published number, such as a misprint."""
    values: tuple[float, ...] = ()
    """One per repeat, by the correct rule; () where it is undefined in all."""
    released_values: tuple[float, ...] = ()
    """One per repeat, by the rule of the released code."""


def result(labels: Labels, values: Sequence[float] = (), **fields: Any) -> Result:
    """Return the result with these values, one per repeat, and their summary."""
    released_values = tuple(fields.pop("released_values", ()))
    mean, spread = summary(values)
    released, released_spread = summary(released_values)
    return Result(
        labels=labels,
        value=mean,
        spread=spread,
        released=released,
        released_spread=released_spread,
        values=tuple(values),
        released_values=released_values,
        **fields,
    )


NUMBERS = (
    *("value", "spread", "low", "high", "released", "released_spread"),
    *("difference", "difference_low", "difference_high"),
)
TEXTS = (
    *("best", "interval_method", "no_interval", "covers", "no_winner"),
    *("why", "note"),
)
SERIES = ("values", "released_values")
TIED = "tied"
PROVENANCE = (
    *("version", "network", "epochs", "hardware", "seconds", "parameters"),
    *("seconds_of_all_runs", "command", "commit"),
)
"""Further columns of a file of results: how its numbers were made."""
_OTHER_COLUMNS = frozenset((*NUMBERS, *TEXTS, *SERIES, TIED, *PROVENANCE))
_PREFIX = "label "
"""Begins the column of a label that has the name of another column."""
_FIRST = ("benchmark", "preset", "variant", "dataset", "simulated", "selection")
_ROW, _LAST = "row", ("subset", "score")
"""Labels of the data stand before the row, settings after it, and the score is last."""
_FORMULA = ("=", "+", "-", "@", "\t", "\r")
"""Characters with which a spreadsheet lets a formula begin."""
_NONE = label_key(None)
_KINDS: tuple[tuple[re.Pattern[str], Callable[[str], Label]], ...] = (
    (re.compile(r"-?[0-9]+"), int),
    (re.compile(r"-?[0-9]+(\.[0-9]+)?(e[+-]?[0-9]+)?"), float),
)
"""Patterns of the texts of numbers, such as 20, 0.1 and 1e-05."""
_LARGEST = 1 << 62


class _CodedColumn(NamedTuple):
    """A column of few distinct values: each stored once, and a number for each row."""

    codes: Codes
    """(rows,); -1 for none."""
    distinct: tuple[Label, ...]

    def accepted(self, wanted: Wanted) -> Flags:
        """Return for each code whether it is of a wanted value; -1 stands last."""
        keys = accepted_keys(wanted)
        matches = [label_key(value) in keys for value in self.distinct]
        return np.array([*matches, _NONE in keys], np.bool_)

    def matches(self, wanted: Wanted) -> Flags:
        """Return for each row whether it has one of the wanted values."""
        matches: Flags = self.accepted(wanted)[self.codes]
        return matches

    def take(self, rows: Rows) -> "_CodedColumn":
        return self._replace(codes=self.codes[rows])

    def at(self, row: int) -> Label | None:
        code = self.codes[row]
        return None if code < 0 else self.distinct[code]

    def rows(self) -> list[Label]:
        """Return the value of each row; '' for none."""
        values = [*self.distinct, ""]
        return [values[code] for code in self.codes.tolist()]


class _SeriesColumn(NamedTuple):
    """A column with several numbers in each row, laid end to end."""

    flat: Array
    ends: Index
    """(rows + 1,); row i has flat[ends[i]:ends[i + 1]]."""

    def take(self, rows: Rows) -> "_SeriesColumn":
        lengths = np.diff(self.ends)[rows]
        ends = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
        source = np.arange(ends[-1]) + np.repeat(self.ends[rows] - ends[:-1], lengths)
        return _SeriesColumn(self.flat[source], ends)

    def at(self, row: int) -> tuple[float, ...]:
        return tuple(self.flat[self.ends[row] : self.ends[row + 1]].tolist())

    def rows(self) -> list[tuple[float, ...]]:
        """Return the numbers of each row."""
        flat, ends = self.flat.tolist(), self.ends.tolist()
        return [tuple(flat[start:end]) for start, end in pairwise(ends)]


class Pivot(NamedTuple):
    """Results laid out in two dimensions."""

    rows: tuple[tuple[Label | None, ...], ...]
    """The labels of each line, in order of first appearance."""
    columns: tuple[tuple[Label | None, ...], ...]
    cells: Rows
    """(lines, columns) rows of the table; -1 where there is none."""
    values: Array
    """(lines, columns); nan where there is none."""


@dataclass(frozen=True, slots=True, eq=False)
class ResultsTable:
    """Labelled numbers in columns; every choice gives a table of the same kind."""

    size: int = 0
    _labels: Mapping[str, _CodedColumn] = field(default_factory=dict)
    _texts: Mapping[str, _CodedColumn] = field(default_factory=dict)
    _numbers: Mapping[str, Array] = field(default_factory=dict)
    _series: Mapping[str, _SeriesColumn] = field(default_factory=dict)

    @classmethod
    def of(cls, results: Iterable[Result]) -> "ResultsTable":
        """Collect results into a table, in their order."""
        rows = list(results)
        names = label_order(dict.fromkeys(tuple(row.labels) for row in rows))
        return cls(
            len(rows),
            {name: _coded([row.labels.get(name) for row in rows]) for name in names},
            {
                TIED: _coded([row.tied or None for row in rows]),
                **{n: _coded([getattr(row, n) or None for row in rows]) for n in TEXTS},
            },
            {n: np.array([getattr(row, n) for row in rows], float) for n in NUMBERS},
            {n: _series([getattr(row, n) for row in rows]) for n in SERIES},
        )

    def __len__(self) -> int:
        return self.size

    def __iter__(self) -> Iterator[Result]:
        return (self.row(number) for number in range(self.size))

    @property
    def labels(self) -> tuple[str, ...]:
        """Names of the label columns."""
        return tuple(self._labels)

    def row(self, number: int) -> Result:
        """Return one row as a record."""
        labels = {name: column.at(number) for name, column in self._labels.items()}
        texts = {name: self._texts[name].at(number) or "" for name in TEXTS}
        return Result(
            labels={name: value for name, value in labels.items() if value is not None},
            tied=bool(self._texts[TIED].at(number)),
            **texts,  # type: ignore[arg-type]
            **{name: float(self._numbers[name][number]) for name in NUMBERS},  # type: ignore[arg-type]
            **{name: self._series[name].at(number) for name in SERIES},  # type: ignore[arg-type]
        )

    def column(self, name: str) -> tuple[Label | None, ...] | Array:
        """Return the values of a label or number column, one per row."""
        if name in self._numbers:
            return self._numbers[name]
        column = self._column(name)
        return tuple(column.at(row) for row in range(self.size))

    def distinct(self, name: str) -> tuple[Label, ...]:
        """Return the values of a label in these rows, in order of first appearance."""
        if name not in self._labels:
            return ()
        codes, first = np.unique(self._labels[name].codes, return_index=True)
        ordered = codes[np.argsort(first)]
        return tuple(self._labels[name].distinct[code] for code in ordered if code >= 0)

    def where(self, **wanted: Wanted) -> "ResultsTable":
        """Return the rows that have these labels, e.g. `where(score=("nll", "ece"))`.

        None stands for rows without such a label. A name that is no label column is
        matched by None alone.
        """
        return self.take(self._matching(wanted))

    def computed(self) -> "ResultsTable":
        """Return the rows that have a value in some repeat, even if it is undefined."""
        return self.take(np.flatnonzero(np.diff(self._series["values"].ends)))

    def take(self, rows: Rows) -> "ResultsTable":
        """Return the rows with these numbers, in this order."""
        return ResultsTable(
            len(rows),
            {name: column.take(rows) for name, column in self._labels.items()},
            {name: column.take(rows) for name, column in self._texts.items()},
            {name: column[rows] for name, column in self._numbers.items()},
            {name: column.take(rows) for name, column in self._series.items()},
        )

    def get(self, **wanted: Wanted) -> Result | None:
        """Return the first row that has these labels, or None."""
        matches = self._matching(wanted)
        return self.row(int(matches[0])) if len(matches) else None

    def at(self, **wanted: Wanted) -> Result:
        """Return the one row that has these labels.

        Raises:
            LookupError: If there is none, or more than one.
        """
        matches = self.where(**wanted)
        if len(matches) == 1:
            return matches.row(0)
        if not len(matches):
            raise LookupError(
                f"no result has {labels_text(wanted)}; see .distinct(label) for the"
                " values that a label has"
            )
        columns = matches._labels.items()
        unclear = [name for name, column in columns if np.ptp(column.codes)]
        advice = "and no label tells them apart"
        if unclear:
            advice = f"they differ in {', '.join(unclear)}; name one"
        raise LookupError(
            f"{len(matches)} results have {labels_text(wanted)}, {advice}"
        )

    def pivot(
        self, rows: Sequence[str], columns: Sequence[str], *, value: str = "value"
    ) -> Pivot:
        """Lay results out: a line for each combination of the labels `rows`.

        Of results that share a cell the first counts; filter before, so that none do.
        `rows` and `columns` may also name columns of texts, such as `why`.
        """
        line, lines = self._groups(rows)
        head, heads = self._groups(columns)
        cells = _first(line * len(heads) + head, len(lines) * len(heads))
        cells = cells.reshape(len(lines), len(heads))
        numbers = np.append(self._numbers.get(value, np.empty(0)), np.nan)
        return Pivot(lines, heads, cells, numbers[cells])

    def join(self, published: "ResultsTable", *, on: Sequence[str] = ()) -> "Joined":
        """Find for each row the published number with the same labels.

        Args:
            published: The numbers of a paper.
            on: The labels that must agree; by default all that both tables have. A
                label that a row lacks agrees with one that the number lacks.
        """
        names = tuple(on) or tuple(n for n in published.labels if n in self.labels)
        group, keys = published._groups(names)
        first = _first(group, len(keys)).tolist()
        numbers = dict(zip(map(_key_of, keys), first, strict=True))
        group, keys = self._groups(names)
        rows = np.array([numbers.get(_key_of(key), -1) for key in keys], np.intp)
        return Joined(self, published, rows[group])

    def with_labels(self, **labels: Label) -> "ResultsTable":
        """Return the table with further labels, the same in all rows."""
        zeros = np.zeros(self.size, np.int32)
        more = {name: _CodedColumn(zeros, (value,)) for name, value in labels.items()}
        return replace(self, _labels={**self._labels, **more})

    def __add__(self, other: "ResultsTable") -> "ResultsTable":
        """Return the rows of both tables."""
        return concatenated((self, other))

    def _matching(self, wanted: Mapping[str, Wanted]) -> Rows:
        """Return the numbers of the rows that have these labels."""
        rows: Rows | None = None  # all of them
        for name, want in wanted.items():
            column = self._labels.get(name)
            if column is None:
                if _NONE not in accepted_keys(want):
                    return np.empty(0, np.intp)
            elif rows is None:
                rows = np.flatnonzero(column.matches(want))
            else:
                rows = rows[column.accepted(want)[column.codes[rows]]]
        return np.arange(self.size) if rows is None else rows

    def _column(self, name: str) -> _CodedColumn:
        if name in self._labels:
            return self._labels[name]
        if name in self._texts:
            return self._texts[name]
        columns = ", ".join((*self._labels, *NUMBERS, *TEXTS))
        raise LookupError(f"no column {name!r} in these results. Known: {columns}.")

    def _groups(
        self, names: Sequence[str]
    ) -> tuple[Rows, tuple[tuple[Label | None, ...], ...]]:
        """Return a group number for each row, and the labels of each group in order."""
        coded = {**self._texts, **self._labels}
        columns = [coded.get(name) for name in names]
        combined, most = np.zeros(self.size, np.int64), 1
        for column in columns:
            if column is None:
                continue
            if most > _LARGEST // (len(column.distinct) + 1):
                # Renumbered, so that no product of sizes overflows.
                combined = np.unique(combined, return_inverse=True)[1].astype(np.int64)
                most = self.size + 1
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
        return rank[group], keys

    # Files and frames.

    def columns(self) -> dict[str, Sequence[Any]]:
        """Return every column as files hold it, labels first; '' for no label."""
        return {
            **{_column_name(n): _exact(c.rows()) for n, c in self._labels.items()},
            **{name: self._numbers[name].tolist() for name in NUMBERS},
            TIED: self._texts[TIED].matches(True).tolist(),
            **{name: self._texts[name].rows() for name in TEXTS},
            **{name: self._series[name].rows() for name in SERIES},
        }

    def to_frame(self) -> Any:
        """Return the table as a DataFrame of pandas, one column per label.

        Raises:
            ImportError: If pandas is not installed.
        """
        try:
            import pandas as pd  # type: ignore[import-untyped]
        except ImportError as error:
            raise ImportError(
                "a DataFrame needs pandas, which is not installed; install it, or use"
                " .to_csv(path)"
            ) from error
        frame = {
            name: pd.Categorical.from_codes(column.codes, list(column.distinct))
            for name, column in self._coded_columns().items()
        }
        frame[TIED] = self._texts[TIED].matches(True)
        return pd.DataFrame({**frame, **self._numbers})

    def to_csv(self, path: str | Path) -> Path:
        """Write the table as CSV, one column per label."""
        return write_columns(self.columns(), Path(path))

    def to_parquet(self, path: str | Path) -> Path:
        """Write the table as Parquet.

        Raises:
            ImportError: If pyarrow is not installed.
        """
        try:
            import pyarrow as pa
            import pyarrow.parquet as pq
        except ImportError as error:
            raise ImportError(
                "Parquet needs pyarrow, which is not installed; install it with pip"
                " install 'qualms-bench[tables]', or use .to_csv(path)"
            ) from error
        columns = {
            name: pa.DictionaryArray.from_arrays(
                pa.array(column.codes, mask=column.codes < 0), _arrow(column.distinct)
            )
            for name, column in self._coded_columns().items()
        }
        lists = {
            name: pa.ListArray.from_arrays(column.ends.astype(np.int32), column.flat)
            for name, column in self._series.items()
        }
        tied = {TIED: self._texts[TIED].matches(True)}
        target = Path(path)
        with replacing(target) as temporary:
            pq.write_table(
                pa.table({**columns, **self._numbers, **tied, **lists}), temporary
            )
        return target

    def _coded_columns(self) -> dict[str, _CodedColumn]:
        """Return labels and texts by the names of their columns in files."""
        labels = {_column_name(name): c for name, c in self._labels.items()}
        return {**labels, **{name: self._texts[name] for name in TEXTS}}


class Joined(NamedTuple):
    """Results beside the published numbers that have the same labels."""

    results: ResultsTable
    published: ResultsTable
    rows: Rows
    """(results,) the row of the published number; -1 where nothing is printed."""

    def number(self, row: int) -> Result | None:
        """Return the published number beside a row of the results, or None."""
        printed = int(self.rows[row])
        return None if printed < 0 else self.published.row(printed)

    @property
    def differences(self) -> Array:
        """(results,) ours by the released rule minus the published number."""
        numbers = np.append(self.published._numbers["value"], np.nan)
        difference: Array = self.results._numbers["released"] - numbers[self.rows]
        return difference


def read_results(path: str | Path) -> ResultsTable:
    """Read a table that `ResultsTable.to_csv` wrote, or a results.csv of a benchmark.

    A label column whose values all read as numbers holds numbers.
    """
    with Path(path).open(encoding="utf-8", newline="") as file:
        names, *lines = csv.reader(file)
    empty = [""] * len(lines)
    texts = dict(zip(names, map(list, zip(*lines, strict=True)), strict=False))
    labels = [name for name in names if name not in _OTHER_COLUMNS]
    tied = [text == "True" or None for text in texts.get(TIED, empty)]
    return ResultsTable(
        len(lines),
        {
            name.removeprefix(_PREFIX): _coded(_typed(texts.get(name, empty)))
            for name in labels
        },
        {
            TIED: _coded(tied),
            **{n: _coded(_texts(texts.get(n, empty))) for n in TEXTS},
        },
        {n: np.array([_number(t) for t in texts.get(n, empty)]) for n in NUMBERS},
        {n: _series([_numbers(t) for t in texts.get(n, empty)]) for n in SERIES},
    )


def concatenated(tables: Sequence[ResultsTable]) -> ResultsTable:
    """Return the rows of all tables, in order."""
    tables = [table for table in tables if len(table)]
    if not tables:
        return ResultsTable.of(())
    names = label_order(table.labels for table in tables)
    texts = (TIED, *TEXTS)
    return ResultsTable(
        sum(map(len, tables)),
        {n: _merged([(t._labels.get(n), len(t)) for t in tables]) for n in names},
        {n: _merged([(t._texts[n], len(t)) for t in tables]) for n in texts},
        {n: np.concatenate([t._numbers[n] for t in tables]) for n in NUMBERS},
        {n: _joined_series([t._series[n] for t in tables]) for n in SERIES},
    )


def label_order(label_names: Iterable[Sequence[str]]) -> list[str]:
    """Return all names of labels in the order of columns in files.

    >>> label_order([("row", "score"), ("variant", "shift", "row", "alpha", "score")])
    ['variant', 'shift', 'row', 'alpha', 'score']
    """
    before: dict[str, None] = {}
    after: dict[str, None] = {}
    for names in label_names:
        row = names.index(_ROW) if _ROW in names else 0
        before |= dict.fromkeys(names[:row])
        after |= dict.fromkeys(names[row:])
    first = [name for name in _FIRST if name in before or name in after]
    last = [name for name in _LAST if name in after]
    middle = [n for n in (*before, *after) if n not in first and n not in last]
    return list(dict.fromkeys([*first, *middle, *last]))


def _merged(columns: Sequence[tuple[_CodedColumn | None, int]]) -> _CodedColumn:
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
    return _CodedColumn(np.concatenate(parts), _distinct(numbers))


def _joined_series(columns: Sequence[_SeriesColumn]) -> _SeriesColumn:
    lengths = np.concatenate([np.diff(column.ends) for column in columns])
    ends = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    return _SeriesColumn(np.concatenate([column.flat for column in columns]), ends)


def _first(groups: Rows, count: int) -> Rows:
    """Return for each of `count` groups its first member; -1 for none."""
    members = len(groups)
    first = np.full(count, members, np.intp)
    # An assignment would keep any of several members: NumPy promises no order.
    np.minimum.at(first, groups, np.arange(members))
    first[first == members] = -1
    return first


def _coded(values: Sequence[Label | None]) -> _CodedColumn:
    numbers: dict[LabelKey, int] = {}
    codes = [
        -1 if value is None else numbers.setdefault(label_key(value), len(numbers))
        for value in values
    ]
    return _CodedColumn(np.array(codes, np.int32), _distinct(numbers))


def _distinct(numbers: Iterable[LabelKey]) -> tuple[Label, ...]:
    return tuple(value for _, value in numbers if value is not None)


def _key_of(labels: Iterable[Label | None]) -> tuple[LabelKey, ...]:
    return tuple(map(label_key, labels))


def _series(values: Sequence[Sequence[float]]) -> _SeriesColumn:
    ends = np.cumsum([0, *map(len, values)]).astype(np.int64)
    return _SeriesColumn(np.array([v for each in values for v in each], float), ends)


def _typed(texts: Sequence[str]) -> list[Label | None]:
    """Return the labels of a column of CSV: numbers if all of them read as such."""
    distinct = {text for text in texts if text}
    if distinct <= {"True", "False"}:
        return [text == "True" if text else None for text in texts]
    for pattern, kind in _KINDS:
        if all(pattern.fullmatch(text) for text in distinct):
            labels = {text: kind(text) for text in distinct}
            return [labels.get(text) for text in texts]
    return [*_texts(texts)]


def _texts(cells: Sequence[str]) -> list[str | None]:
    """Return the texts of a column of CSV; None for ''."""
    texts = {cell: _unquoted(cell) or None for cell in set(cells)}
    return [texts[cell] for cell in cells]


def _unquoted(cell: str) -> str:
    """Return a cell without the quote of `harmless`."""
    quoted = cell.startswith("'") and cell[1:].startswith(_FORMULA)
    return cell[1:] if quoted else cell


def _number(cell: str) -> float:
    return float(cell) if cell else math.nan


def _numbers(cell: str) -> tuple[float, ...]:
    return tuple(map(float, cell.split()))


def write_columns(columns: Mapping[str, Sequence[Any]], path: Path) -> Path:
    """Write columns of the same length as CSV, and return the path."""
    cells = map(_cells, columns.values())
    with (
        replacing(path) as temporary,
        temporary.open("x", encoding="utf-8", errors="replace", newline="") as file,
    ):
        writer = csv.writer(file)
        writer.writerow(columns)
        writer.writerows(zip(*cells, strict=True))
    return path


def _column_name(label: str) -> str:
    """Return the name of the column of a label in files; `read_results` undoes it.

    >>> _column_name("alpha"), _column_name("epochs"), _column_name("label epochs")
    ('alpha', 'label epochs', 'label label epochs')
    """
    ambiguous = label in _OTHER_COLUMNS or label.startswith(_PREFIX)
    return f"{_PREFIX}{label}" if ambiguous else label


def _exact(labels: Sequence[Label]) -> list[Label]:
    """Return labels for a file, numbers with all digits so that they are found."""
    # A float64 of NumPy is a float, but its repr names its type.
    return [repr(float(v)) if isinstance(v, float) else v for v in labels]


def _cells(column: Sequence[Any]) -> list[str]:
    """Return the cells of a column; texts, of which few differ, are formatted once."""
    if set(map(type, column)) == {str}:
        texts = {text: csv_text(text) for text in set(column)}
        return [texts[text] for text in column]
    return [csv_text(value) for value in column]


def csv_text(value: Any) -> str:
    """Return a value as a cell of CSV; numbers with eight significant digits.

    >>> csv_text(0.1 + 0.2), csv_text(None), csv_text((1.0, 0.5)), csv_text("=1+1")
    ('0.3', '', '1 0.5', "'=1+1")
    """
    if isinstance(value, float):
        return "" if math.isnan(value) else f"{value:.8g}"
    if isinstance(value, tuple):
        return " ".join([f"{number:.8g}" for number in value])
    return "" if value is None else str(harmless(value))


_BETWEEN = re.compile(r"[ ,;]+")
"""Separator between several numbers of a cell."""


def harmless(value: Any) -> Any:
    """Put a quote before a text that a spreadsheet would run as a formula.

    Numbers are none, also several with spaces, commas or semicolons between them.

    >>> harmless("=1+1"), harmless("-0.5 -0.2"), harmless("map")
    ("'=1+1", '-0.5 -0.2', 'map')
    """
    if isinstance(value, str) and value.startswith(_FORMULA) and not _is_numbers(value):
        return f"'{value}"
    return value


def _is_numbers(text: str) -> bool:
    try:
        numbers = [float(part) for part in _BETWEEN.split(text)]
    except ValueError:
        return False
    return bool(numbers) and text.isascii()


def _arrow(distinct: tuple[Label, ...]) -> Any:
    """Return distinct values as an array of Arrow, typed as `read_results` types them.

    Whole numbers among others are floats, and other values of several types are texts.
    """
    import pyarrow as pa

    if any(isinstance(v, float) for v in distinct) and all(map(_is_numeric, distinct)):
        return pa.array([float(value) for value in distinct])
    if len({type(value) for value in distinct}) > 1:
        return pa.array([str(value) for value in distinct])
    return pa.array(list(distinct) or [""])


def _is_numeric(value: Label) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
