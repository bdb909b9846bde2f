"""The file of a `BenchmarkReport`, beside the `results.csv` of a judged benchmark.

It is an .npz archive: a text of JSON with the records, and an array for each array in
them. Reading it makes no object but the records named here, and runs no code. A file of
another version, or of other results, counts as missing: the results table remains.
"""

import hashlib
import io
import json
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from qualms.atomic import replacing
from qualms.evaluate.benchmark_results import Cost
from qualms.evaluate.pairs import PairedDifference, PairedScore
from qualms.labels import Label
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
FORMAT = 1
_RECORDS = {
    record.__name__: record
    for record in (
        *(BenchmarkReport, VariantFacts, RowFacts, EffectAnswer, MissingRuns, Cost),
        *(Table, Column, TableLine, TableCell, Summary, Drawing, Panel),
        *(BarMark, CloudMark, CurveMark, HistogramMark, OutlineMark, PictureMark),
        *(PointMark, RuleMark, WordMark, PairedScore, PairedDifference),
    )
}
_DAMAGE = (
    *(OSError, EOFError, ValueError, KeyError, TypeError, RecursionError),
    zipfile.BadZipFile,
)
"""Errors that reading a damaged file may raise."""
_OWN_FILES = ("table", "unlisted", "folder")
"""Fields of a report that its folder holds."""


def write_report(report: BenchmarkReport, folder: Path) -> Path:
    """Write a report beside the results.csv in `folder`, and return its path."""
    arrays: dict[str, NDArray[Any]] = {}
    plain = {
        "format": FORMAT,
        "results": _digest(folder / RESULTS),
        "report": _encoded(replace(report, table=ResultsTable(), folder=None), arrays),
    }
    path = folder / FILE
    with replacing(path) as temporary, temporary.open("xb") as file:
        np.savez_compressed(file, report=np.array(json.dumps(plain)), **arrays)  # type: ignore[arg-type]
    return path


def read_report(folder: Path) -> BenchmarkReport:
    """Read the report of the results in `folder`.

    Where it is missing or of other results, the report has the results table alone.
    """
    table = read_results(folder / RESULTS)
    stored = _stored(folder)
    if stored is None:
        return replace(report_of_table(table), folder=folder)
    names = [variant.name for variant in stored.variants]
    unlisted = [name for name in table.distinct("variant") if name not in names]
    return replace(stored, **_split(table, unlisted)._asdict(), folder=folder)


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


def _stored(folder: Path) -> BenchmarkReport | None:
    """Return the stored report of the results in `folder`; None if there is none."""
    try:
        data = (folder / FILE).read_bytes()
        with np.load(io.BytesIO(data), allow_pickle=False) as arrays:
            plain = json.loads(str(arrays["report"]))
            if plain["format"] != FORMAT or plain["results"] != _digest(
                folder / RESULTS
            ):
                return None
            report = _decoded(plain["report"], arrays)
    except _DAMAGE:
        return None
    return report if isinstance(report, BenchmarkReport) else None


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _encoded(value: Any, arrays: dict[str, NDArray[Any]]) -> Any:
    """Return a value as JSON; arrays in it are put into `arrays`."""
    if isinstance(value, np.ndarray):
        name = f"array_{len(arrays)}"
        arrays[name] = value
        return {"array": name}
    if isinstance(value, np.generic):
        return value.item()
    kind = type(value).__name__
    if kind in _RECORDS and type(value) is _RECORDS[kind]:
        named = {n: _encoded(getattr(value, n), arrays) for n in _names(value)}
        return {"record": kind, "fields": named}
    if isinstance(value, Mapping):
        pairs = [[_encoded(k, arrays), _encoded(v, arrays)] for k, v in value.items()]
        return {"mapping": pairs}
    if isinstance(value, list | tuple):
        return [_encoded(each, arrays) for each in value]
    if value is None or isinstance(value, str | int | float | bool):
        return value
    return str(value)


def _names(record: Any) -> tuple[str, ...]:
    if is_dataclass(record):
        names = [each.name for each in fields(record)]
        own = _OWN_FILES if isinstance(record, BenchmarkReport) else ()
        return tuple(name for name in names if name not in own)
    return tuple(record._fields)


def _decoded(value: Any, arrays: Mapping[str, NDArray[Any]]) -> Any:
    """Return what `_encoded` was given; lists become tuples."""
    if isinstance(value, list):
        return tuple(_decoded(each, arrays) for each in value)
    if not isinstance(value, dict):
        return value
    if "array" in value:
        return arrays[value["array"]]
    if "mapping" in value:
        return {_decoded(k, arrays): _decoded(v, arrays) for k, v in value["mapping"]}
    named = {n: _decoded(each, arrays) for n, each in value["fields"].items()}
    return _RECORDS[value["record"]](**named)
