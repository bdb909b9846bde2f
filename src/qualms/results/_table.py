"""The table: labelled numbers in columns, chosen, pivoted and joined."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from qualms.arrays import Array, Flags
from qualms.labels import Label, Wanted, accepted_keys, labels_text
from qualms.results._columns import (
    NO_LABEL,
    CodedColumn,
    Groups,
    Rows,
    SeriesColumn,
    coded,
    first_members,
    group_rows,
    joined_series,
    key_of,
    merged,
    series_column,
)
from qualms.results._files import (
    LABEL_PREFIX,
    OTHER_COLUMNS,
    cell_number,
    cell_numbers,
    cell_texts,
    column_name,
    exact_labels,
    read_lines,
    typed_labels,
    write_columns,
    write_parquet,
)
from qualms.results._result import NUMBERS, SERIES, TEXTS, TIED, Result, label_order


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
    _labels: Mapping[str, CodedColumn] = field(default_factory=dict)
    _texts: Mapping[str, CodedColumn] = field(default_factory=dict)
    _numbers: Mapping[str, Array] = field(default_factory=dict)
    _series: Mapping[str, SeriesColumn] = field(default_factory=dict)

    @classmethod
    def of(cls, results: Iterable[Result]) -> "ResultsTable":
        """Collect results into a table, in their order."""
        rows = list(results)
        names = label_order(dict.fromkeys(tuple(row.labels) for row in rows))
        return cls(
            len(rows),
            {name: coded([row.labels.get(name) for row in rows]) for name in names},
            {
                TIED: coded([row.tied or None for row in rows]),
                **{n: coded([getattr(row, n) or None for row in rows]) for n in TEXTS},
            },
            {n: np.array([getattr(row, n) for row in rows], float) for n in NUMBERS},
            {n: series_column([getattr(row, n) for row in rows]) for n in SERIES},
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
        cells = first_members(line * len(heads) + head, len(lines) * len(heads))
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
        first = first_members(group, len(keys)).tolist()
        numbers = dict(zip(map(key_of, keys), first, strict=True))
        group, keys = self._groups(names)
        rows = np.array([numbers.get(key_of(key), -1) for key in keys], np.intp)
        return Joined(self, published, rows[group])

    def with_labels(self, **labels: Label) -> "ResultsTable":
        """Return the table with further labels, the same in all rows."""
        zeros = np.zeros(self.size, np.int32)
        more = {name: CodedColumn(zeros, (value,)) for name, value in labels.items()}
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
                if NO_LABEL not in accepted_keys(want):
                    return np.empty(0, np.intp)
            elif rows is None:
                rows = np.flatnonzero(column.matches(want))
            else:
                rows = rows[column.accepted(want)[column.codes[rows]]]
        return np.arange(self.size) if rows is None else rows

    def _column(self, name: str) -> CodedColumn:
        if name in self._labels:
            return self._labels[name]
        if name in self._texts:
            return self._texts[name]
        columns = ", ".join((*self._labels, *NUMBERS, *TEXTS))
        raise LookupError(f"no column {name!r} in these results. Known: {columns}.")

    def _groups(self, names: Sequence[str]) -> Groups:
        """Group rows by the labels and texts with these names."""
        columns = {**self._texts, **self._labels}
        return group_rows([columns.get(name) for name in names], self.size)

    # Files and frames.

    def columns(self) -> dict[str, Sequence[Any]]:
        """Return every column as files hold it, labels first; '' for no label."""
        return {
            **{column_name(n): exact_labels(c.rows()) for n, c in self._labels.items()},
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
        tied = {TIED: self._texts[TIED].matches(True)}
        numbers: dict[str, Array | Flags] = {**self._numbers, **tied}
        return write_parquet(self._coded_columns(), numbers, self._series, Path(path))

    def _coded_columns(self) -> dict[str, CodedColumn]:
        """Return labels and texts by the names of their columns in files."""
        labels = {column_name(name): c for name, c in self._labels.items()}
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
    names, lines = read_lines(Path(path))
    empty = [""] * len(lines)
    texts = dict(zip(names, map(list, zip(*lines, strict=True)), strict=False))
    labels = [name for name in names if name not in OTHER_COLUMNS]
    tied = [text == "True" or None for text in texts.get(TIED, empty)]
    try:
        numbers = {
            n: np.array([cell_number(t) for t in texts.get(n, empty)]) for n in NUMBERS
        }
        series = {
            n: series_column([cell_numbers(t) for t in texts.get(n, empty)])
            for n in SERIES
        }
    except ValueError as error:
        raise ValueError(
            f"{path} must hold numbers in its columns {NUMBERS[0]}, {NUMBERS[1]} and"
            f" the like: {error}; write them with a point, as in 0.5"
        ) from error
    return ResultsTable(
        len(lines),
        {
            name.removeprefix(LABEL_PREFIX): coded(typed_labels(texts.get(name, empty)))
            for name in labels
        },
        {
            TIED: coded(tied),
            **{n: coded(cell_texts(texts.get(n, empty))) for n in TEXTS},
        },
        numbers,
        series,
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
        {n: merged([(t._labels.get(n), len(t)) for t in tables]) for n in names},
        {n: merged([(t._texts[n], len(t)) for t in tables]) for n in texts},
        {n: np.concatenate([t._numbers[n] for t in tables]) for n in NUMBERS},
        {n: joined_series([t._series[n] for t in tables]) for n in SERIES},
    )
