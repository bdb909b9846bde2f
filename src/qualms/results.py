"""One long table of labelled numbers: ours, and those that papers print.

A row is one number: its labels say what it is of, its other columns how sure it is.
Choosing is a filter, a printed table is a pivot, and comparing with a paper is a join
on labels. Columns are arrays, and labels and texts are stored once and numbered, so
that a million rows are filtered and pivoted in a fraction of a second. pandas and
pyarrow are needed for `to_frame` and `to_parquet` alone.
"""

import csv
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

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

Floats = NDArray[np.float64]
Numbers = NDArray[np.int32]
Rows = NDArray[np.intp]


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
    """Whether it is the best, or cannot be told apart from the best."""
    interval: str = ""
    """How the interval was made."""
    no_interval: str = ""
    """Why there is none, where the value is defined."""
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

    @property
    def ours(self) -> Summary:
        """Mean and deviation over repeats."""
        return Summary(self.value, self.spread)

    @property
    def by_released_rule(self) -> Summary:
        """Mean and deviation over repeats, by the rule of the released code."""
        return Summary(self.released, self.released_spread)


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
TEXTS = ("best", "interval", "no_interval", "no_winner", "why", "note")
SERIES = ("values", "released_values")
TIED = "tied"
PROVENANCE = (
    *("version", "network", "epochs", "hardware", "seconds", "parameters"),
    *("seconds_of_all_runs", "command", "commit"),
)
"""Further columns of a file of results: how its numbers were made."""
NONE = label_key(None)
_LARGEST = 1 << 62


class _Coded(NamedTuple):
    """A column of few distinct values: each stored once, and a number for each row."""

    codes: Numbers
    """(rows,); -1 for none."""
    distinct: tuple[Label, ...]
    numbers: Mapping[LabelKey, int]
    """The number of each distinct value."""

    def chosen(self, wanted: Wanted, rows: Rows | None = None) -> NDArray[np.bool_]:
        """Return for each row whether it has one of the wanted values."""
        keys = accepted_keys(wanted)
        numbers = [self.numbers[key] for key in keys if key in self.numbers]
        if NONE in keys:
            numbers.append(-1)
        codes = self.codes if rows is None else self.codes[rows]
        chosen: NDArray[np.bool_] = (
            codes == numbers[0] if len(numbers) == 1 else np.isin(codes, numbers)
        )
        return chosen

    def take(self, rows: Rows) -> "_Coded":
        return _Coded(self.codes[rows], self.distinct, self.numbers)

    def at(self, row: int) -> Label | None:
        code = self.codes[row]
        return None if code < 0 else self.distinct[code]


class _Series(NamedTuple):
    """A column with several numbers in each row, laid end to end."""

    flat: Floats
    ends: NDArray[np.int64]
    """(rows + 1,); row i has flat[ends[i]:ends[i + 1]]."""

    def take(self, rows: Rows) -> "_Series":
        lengths = np.diff(self.ends)[rows]
        ends = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
        places = np.arange(ends[-1]) + np.repeat(self.ends[rows] - ends[:-1], lengths)
        return _Series(self.flat[places], ends)

    def at(self, row: int) -> tuple[float, ...]:
        return tuple(self.flat[self.ends[row] : self.ends[row + 1]].tolist())


class Pivot(NamedTuple):
    """Results laid out in two dimensions."""

    rows: tuple[tuple[Label | None, ...], ...]
    """The labels of each line, in order of first appearance."""
    columns: tuple[tuple[Label | None, ...], ...]
    cells: Rows
    """(lines, columns) rows of the table; -1 where there is none."""
    values: Floats
    """(lines, columns); nan where there is none."""


@dataclass(frozen=True, slots=True, eq=False)
class ResultsTable:
    """Labelled numbers in columns; every choice gives a table of the same kind."""

    size: int = 0
    _labels: Mapping[str, _Coded] = field(default_factory=dict)
    _texts: Mapping[str, _Coded] = field(default_factory=dict)
    _numbers: Mapping[str, Floats] = field(default_factory=dict)
    _series: Mapping[str, _Series] = field(default_factory=dict)

    @classmethod
    def of(cls, results: Iterable[Result]) -> "ResultsTable":
        """Collect results into a table, in their order."""
        rows = list(results)
        names = dict.fromkeys(name for row in rows for name in row.labels)
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

    def column(self, name: str) -> tuple[Label | None, ...] | Floats:
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
        """
        line, lines = self._groups(rows)
        head, heads = self._groups(columns)
        cells = np.full((len(lines), len(heads)), -1, np.intp)
        backwards = slice(None, None, -1)  # so that the first one stays
        cells[line[backwards], head[backwards]] = np.arange(self.size)[backwards]
        numbers = np.append(self._numbers[value], np.nan)
        return Pivot(lines, heads, cells, numbers[cells])

    def join(self, published: "ResultsTable", *, on: Sequence[str] = ()) -> "Joined":
        """Find for each row the published number with the same labels.

        Args:
            published: The numbers of a paper.
            on: The labels that must agree; by default all that both tables have. A
                label that a row lacks agrees with one that the number lacks.
        """
        names = tuple(on) or tuple(n for n in published.labels if n in self.labels)
        theirs, keys = published._groups(names)
        first = np.full(len(keys), -1, np.intp)
        first[theirs[::-1]] = np.arange(len(published))[::-1]
        rows = dict(zip(map(_key_of, keys), first.tolist(), strict=True))
        ours, groups = self._groups(names)
        found = np.array([rows.get(_key_of(key), -1) for key in groups], np.intp)
        return Joined(self, published, found[ours])

    def with_labels(self, **labels: Label) -> "ResultsTable":
        """Return the table with further labels, the same in all rows."""
        more = {name: _coded([value], self.size) for name, value in labels.items()}
        return replace(self, _labels={**self._labels, **more})

    def __add__(self, other: "ResultsTable") -> "ResultsTable":
        """Return the rows of both tables."""
        return _concatenated((self, other))

    def _matching(self, wanted: Mapping[str, Wanted]) -> Rows:
        """Return the numbers of the rows that have these labels."""
        rows: Rows | None = None
        for name, want in wanted.items():
            if name in self._labels:
                chosen = self._labels[name].chosen(want, rows)
                rows = np.flatnonzero(chosen) if rows is None else rows[chosen]
                if not len(rows):
                    return rows
            elif NONE not in accepted_keys(want):
                return np.arange(0)
        return np.arange(self.size) if rows is None else rows

    def _column(self, name: str) -> _Coded:
        if name in self._labels:
            return self._labels[name]
        if name in self._texts:
            return self._texts[name]
        known = ", ".join((*self._labels, *NUMBERS, *TEXTS))
        raise LookupError(f"no column {name!r} in these results. Known: {known}.")

    def _groups(
        self, names: Sequence[str]
    ) -> tuple[Rows, tuple[tuple[Label | None, ...], ...]]:
        """Return a group number for each row, and the labels of each group in order."""
        columns = [self._labels.get(name) for name in names]
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

    def records(self) -> Iterator[dict[str, Any]]:
        """Yield each row as one flat mapping, labels first, as files hold them."""
        for row in self:
            labels = {name: row.labels.get(name, "") for name in self.labels}
            numbers = {name: getattr(row, name) for name in NUMBERS}
            texts = {name: getattr(row, name) for name in TEXTS}
            series = {name: getattr(row, name) for name in SERIES}
            yield {**labels, **numbers, TIED: row.tied, **texts, **series}

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
        coded = {**self._labels, **self._texts}
        frame = {
            name: pd.Categorical.from_codes(column.codes, list(column.distinct))
            for name, column in coded.items()
            if name != TIED
        }
        frame[TIED] = self._texts[TIED].chosen(True)
        return pd.DataFrame({**frame, **self._numbers})

    def to_csv(self, path: str | Path) -> Path:
        """Write the table as CSV, one column per label."""
        target = Path(path)
        with (
            replacing(target) as temporary,
            temporary.open("w", encoding="utf-8", newline="") as file,
        ):
            writer: Any = None
            for record in self.records():
                writer = writer or csv.DictWriter(file, list(record))
                if not file.tell():
                    writer.writeheader()
                writer.writerow({n: csv_text(value) for n, value in record.items()})
        return target

    def to_parquet(self, path: str | Path) -> Path:
        """Write the table as Parquet; needs pyarrow."""
        try:
            import pyarrow as pa
            import pyarrow.parquet as pq
        except ImportError as error:
            raise ImportError(
                "Parquet needs pyarrow, which is not installed; install it with pip"
                " install 'qualms-bench[tables]', or use .to_csv(path)"
            ) from error
        coded = {**self._labels, **{name: self._texts[name] for name in TEXTS}}
        columns = {
            name: pa.DictionaryArray.from_arrays(
                pa.array(column.codes, mask=column.codes < 0), _arrow(column.distinct)
            )
            for name, column in coded.items()
        }
        lists = {
            name: pa.ListArray.from_arrays(column.ends.astype(np.int32), column.flat)
            for name, column in self._series.items()
        }
        tied = {TIED: self._texts[TIED].chosen(True)}
        target = Path(path)
        with replacing(target) as temporary:
            pq.write_table(
                pa.table({**columns, **self._numbers, **tied, **lists}), temporary
            )
        return target


class Joined(NamedTuple):
    """Results beside the published numbers that have the same labels."""

    results: ResultsTable
    published: ResultsTable
    rows: Rows
    """(results,) the row of the published number; -1 where nothing is printed."""

    def number(self, row: int) -> Result | None:
        """Return the published number beside a row of the results, or None."""
        place = int(self.rows[row])
        return None if place < 0 else self.published.row(place)

    @property
    def differences(self) -> Floats:
        """(results,) ours by the released rule minus the published number."""
        numbers = np.append(self.published._numbers["value"], np.nan)
        difference: Floats = self.results._numbers["released"] - numbers[self.rows]
        return difference


def read_results(path: str | Path) -> ResultsTable:
    """Read a table that `ResultsTable.to_csv` wrote.

    A label column whose values all read as numbers holds numbers.
    """
    with Path(path).open(encoding="utf-8", newline="") as file:
        records = list(csv.DictReader(file))
    plain = {*NUMBERS, *TEXTS, *SERIES, *PROVENANCE, TIED}
    names = [name for name in (records[0] if records else ()) if name not in plain]
    typed = {name: _typed([record[name] for record in records]) for name in names}
    return ResultsTable(
        len(records),
        {name: _coded(values) for name, values in typed.items()},
        {
            TIED: _coded([record.get(TIED) == "True" or None for record in records]),
            **{n: _coded([record.get(n) or None for record in records]) for n in TEXTS},
        },
        {
            n: np.array([_number(record.get(n, "")) for record in records], float)
            for n in NUMBERS
        },
        {
            n: _series([tuple(map(float, r.get(n, "").split())) for r in records])
            for n in SERIES
        },
    )


def concatenated(tables: Sequence[ResultsTable]) -> ResultsTable:
    """Return the rows of all tables; a label that one lacks is none there."""
    return _concatenated(tables)


def _concatenated(tables: Sequence[ResultsTable]) -> ResultsTable:
    tables = [table for table in tables if len(table)]
    if not tables:
        return ResultsTable.of(())
    names = dict.fromkeys(name for table in tables for name in table.labels)
    texts = (TIED, *TEXTS)
    return ResultsTable(
        sum(map(len, tables)),
        {n: _merged([(t._labels.get(n), len(t)) for t in tables]) for n in names},
        {n: _merged([(t._texts[n], len(t)) for t in tables]) for n in texts},
        {n: np.concatenate([t._numbers[n] for t in tables]) for n in NUMBERS},
        {n: _joined_series([t._series[n] for t in tables]) for n in SERIES},
    )


def _merged(columns: Sequence[tuple[_Coded | None, int]]) -> _Coded:
    """Put coded columns end to end, with one list of distinct values."""
    numbers: dict[LabelKey, int] = {}
    parts = []
    for column, size in columns:
        if column is None:
            parts.append(np.full(size, -1, np.int32))
            continue
        codes = [numbers.setdefault(key, len(numbers)) for key in column.numbers]
        parts.append(np.array([*codes, -1], np.int32)[column.codes])
    return _Coded(np.concatenate(parts), *_distinct(numbers))


def _joined_series(columns: Sequence[_Series]) -> _Series:
    lengths = np.concatenate([np.diff(column.ends) for column in columns])
    ends = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    return _Series(np.concatenate([column.flat for column in columns]), ends)


def _coded(values: Sequence[Label | None], repeats: int = 1) -> _Coded:
    numbers: dict[LabelKey, int] = {}
    codes = [
        -1 if value is None else numbers.setdefault(label_key(value), len(numbers))
        for value in values
    ]
    return _Coded(np.repeat(np.array(codes, np.int32), repeats), *_distinct(numbers))


def _key_of(labels: Iterable[Label | None]) -> tuple[LabelKey, ...]:
    return tuple(map(label_key, labels))


def _distinct(
    numbers: Mapping[LabelKey, int],
) -> tuple[tuple[Label, ...], Mapping[LabelKey, int]]:
    return tuple(value for _, value in numbers if value is not None), numbers


def _series(values: Sequence[Sequence[float]]) -> _Series:
    ends = np.cumsum([0, *map(len, values)]).astype(np.int64)
    return _Series(np.array([v for each in values for v in each], float), ends)


def _typed(texts: Sequence[str]) -> list[Label | None]:
    """Return the labels of a column of CSV: numbers if all of them read as such."""
    stated = {text for text in texts if text}
    kinds: tuple[Mapping[str, bool] | type, ...] = (int, float)
    if stated <= {"True", "False"}:
        return [text == "True" if text else None for text in texts]
    for kind in kinds:
        try:
            read: dict[str, Label] = {text: kind(text) for text in stated}  # type: ignore[operator]
        except ValueError:
            continue
        return [read.get(text) for text in texts]
    return [text or None for text in texts]


def _number(text: str) -> float:
    return float(text) if text else math.nan


def csv_text(value: Any) -> str:
    """Return a value as a cell of CSV; numbers with eight significant digits."""
    if isinstance(value, bool | str):
        return str(value)
    if isinstance(value, tuple):
        return " ".join(f"{number:.8g}" for number in value)
    if isinstance(value, float):
        return "" if math.isnan(value) else f"{value:.8g}"
    return str(value)


def _arrow(distinct: tuple[Label, ...]) -> Any:
    """Return distinct values as an array of Arrow, as text where kinds are mixed."""
    import pyarrow as pa

    if len({type(value) for value in distinct}) > 1:
        return pa.array([str(value) for value in distinct])
    return pa.array(list(distinct) or [""])
