"""The file of a `BenchmarkReport`, beside the `results.csv` of a judged benchmark.

It is an archive of the records named here (`qualms.records`), whose reading runs no
code. A file of another version counts as missing, and where the results table is not
the one that was judged, the table is all that is shown, with a note.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from qualms.atomic import replacing
from qualms.evaluate.benchmark_results import Cost
from qualms.evaluate.pairs import PairedDifference, PairedScore
from qualms.labels import Label
from qualms.records import DAMAGE, from_archive, record_kinds, to_archive
from qualms.regular import read_file
from qualms.report.benchmark_report import (
    BenchmarkReport,
    EffectAnswer,
    MissingRuns,
    RowFacts,
    VariantFacts,
)
from qualms.report.figures import (
    BarMark,
    CloudMark,
    CurveMark,
    Drawing,
    HistogramMark,
    OutlineMark,
    Panel,
    PictureMark,
    PointMark,
    RuleMark,
    WordMark,
)
from qualms.report.table import Column, Table, TableCell, TableLine
from qualms.results import ResultsTable, Summary, read_results

FILE = "report.npz"
RESULTS = "results.csv"
FORMAT = 2
CHANGED = (
    "{path} was changed since it was judged: {file} beside it is of a table with"
    " another digest. Its numbers are shown as they stand there, without figures,"
    " findings and costs; judge the benchmark again to have the computed ones"
)
_MOST_BYTES = 1 << 30
_NO_ROWS = ResultsTable()


class _StoredReport(NamedTuple):
    """Contents of the file."""

    format: int
    results: str
    """Digest of the results table that was judged."""
    report: BenchmarkReport


_KINDS = record_kinds(
    (
        *(
            _StoredReport,
            BenchmarkReport,
            VariantFacts,
            RowFacts,
            EffectAnswer,
            MissingRuns,
            Cost,
        ),
        *(Table, Column, TableLine, TableCell, Summary, Drawing, Panel),
        *(BarMark, CloudMark, CurveMark, HistogramMark, OutlineMark, PictureMark),
        *(PointMark, RuleMark, WordMark, PairedScore, PairedDifference),
        ResultsTable,
    )
)


def write_report(report: BenchmarkReport, folder: Path) -> Path:
    """Write a report beside the results.csv in `folder`, and return its path."""
    # The table is in a file of its own.
    own = replace(report, table=_NO_ROWS, unlisted=_NO_ROWS, folder=None)
    stored = _StoredReport(FORMAT, _digest(folder / RESULTS), own)
    path = folder / FILE
    with replacing(path) as temporary:
        temporary.write_bytes(to_archive(stored, _KINDS, compressed=True))
    return path


def read_report(folder: Path) -> BenchmarkReport:
    """Read the report of the results in `folder`.

    Where it is missing or of other results, the report has the results table alone.
    """
    path = folder / RESULTS
    table = _readable(path)
    file = _stored(folder)
    if file is None or file.results != _digest(path):
        alone = replace(report_of_table(table), folder=folder)
        if file is None:
            return alone
        changed = CHANGED.format(path=path, file=FILE)
        return replace(alone, notes=(changed,), incomplete=changed)
    stored = file.report
    names = [variant.name for variant in stored.variants]
    unlisted = [name for name in table.distinct("variant") if name not in names]
    return replace(stored, **_split(table, unlisted)._asdict(), folder=folder)


def read_table_report(path: Path) -> BenchmarkReport:
    """Read a results table alone, as a report."""
    return report_of_table(_readable(path))


def _readable(path: Path) -> ResultsTable:
    """Return the results in a file, whose columns and rows belong together."""
    table = read_results(path)
    for name in ("variant", "row"):
        if name not in table.labels:
            raise ValueError(
                f"{path} must have a column {name!r}, as results that qualms wrote"
                f" have, got {', '.join(table.labels) or 'no labels'}; judge again"
            )
    rows = table.distinct("row")
    for best in dict.fromkeys(map(str, table.column("best"))):
        if best not in ("", "None", *map(str, rows)):
            known = ", ".join(map(str, rows))
            raise ValueError(
                f"{path} compares rows with the row {best!r}, and has no such row, but"
                f" {known:.200}: it was renamed or removed; give it its name again, or"
                " judge the benchmark again"
            )
    return table


def report_of_table(table: ResultsTable) -> BenchmarkReport:
    """Return what a results table says about its benchmark."""
    names = [str(name) for name in table.distinct("benchmark")]
    name = ", ".join(names) or "results"
    of_severity = table.where(severity=table.distinct("severity"))
    unlisted = of_severity.distinct("variant")
    facts = table.pivot(["variant", "dataset", "simulated"], []).rows
    rows = table.pivot(["row", "method", "pool"], []).rows
    return BenchmarkReport(
        name=name,
        title=name,
        preset=", ".join(map(str, table.distinct("preset"))),
        variants=tuple(
            VariantFacts(str(variant), str(dataset or variant), simulated is True)
            for variant, dataset, simulated in facts
            if variant is not None and variant not in unlisted
        ),
        rows=tuple(
            RowFacts(str(row), str(row), str(method or ""), _pool(pool))
            for row, method, pool in rows
            if row is not None
        ),
        **_split(table, unlisted)._asdict(),
    )


class _SplitTable(NamedTuple):
    """Numbers of the datasets that pages list, and of the others."""

    table: ResultsTable
    unlisted: ResultsTable


def _split(table: ResultsTable, unlisted: Sequence[Label]) -> _SplitTable:
    listed = [v for v in {*table.column("variant")} if v not in unlisted]
    return _SplitTable(table.where(variant=listed), table.where(variant=unlisted))


def _pool(pool: object) -> int:
    return pool if isinstance(pool, int) else 1


def _stored(folder: Path) -> _StoredReport | None:
    """Return the contents of the file in `folder`; None if there are none to read."""
    try:
        stored = from_archive(
            read_file(folder / FILE, _MOST_BYTES), _KINDS, checked=True
        )
    except DAMAGE:
        return None
    known = isinstance(stored, _StoredReport) and stored.format == FORMAT
    return stored if known else None


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
