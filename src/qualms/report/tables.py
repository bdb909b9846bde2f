"""Tables of a benchmark beside the published ones: CSV, LaTeX and the terminal.

Every cell has our number twice. "ours" takes the finite-sample rank and has the
interval; "by their rule" takes the rank of the released code, and only that one is
compared with the paper: the difference is in units of the published standard deviation.
"""

import csv
import math
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from qualms.atomic import replacing
from qualms.benchmarks._benchmark import variant_of
from qualms.evaluate.benchmark import BenchmarkResults, Cell
from qualms.report._latex import latex
from qualms.report._paper_tables import (
    METRICS,
    Compared,
    PaperTable,
    absent_tables,
    paper_tables,
)

__all__ = [
    "METRICS",
    "Compared",
    "PaperTable",
    "absent_tables",
    "paper_tables",
    "write_results",
    "write_tables",
]


def write_tables(results: BenchmarkResults, folder: Path) -> list[Path]:
    """Write each of the paper's tables as CSV and LaTeX; gives the paths."""
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for table in paper_tables(results):
        written.append(_write_csv(_table_lines(table), folder / f"{table.file}.csv"))
        path = folder / f"{table.file}.tex"
        with replacing(path) as temporary:
            temporary.write_text(latex(table), encoding="utf-8")
        written.append(path)
    return written


def write_results(results: BenchmarkResults, path: Path, *, command: str = "") -> Path:
    """Write every cell, one per line, with its repeats; gives the path."""
    lines = (
        _result_line(results, cell, command)
        for cell in results.cells.values()
        if cell.key.score in results.benchmark.scores
    )
    return _write_csv(lines, path)


def _write_csv(lines: Iterable[Mapping[str, Any]], path: Path) -> Path:
    rows = list(lines)
    with (
        replacing(path) as temporary,
        temporary.open("x", encoding="utf-8", newline="") as file,
    ):
        writer = csv.DictWriter(file, rows[0].keys() if rows else ())
        writer.writeheader()
        writer.writerows(rows)
    return path


def _table_lines(table: PaperTable) -> Iterator[dict[str, Any]]:
    for line in table.lines:
        for metric, compared in line.compared.items():
            yield {
                "table": table.name,
                "dataset": table.variant.label,
                "variant": table.variant.name,
                "data": table.data,
                "alpha": table.alpha,
                "method": line.label,
                "score": metric,
                **_numbers(compared.cell),
                "published_mean": compared.number.mean if compared.number else "",
                "published_std": _plain(
                    compared.number.spread if compared.number else None
                ),
                "difference_in_published_std": _plain(compared.difference),
                "tied_with_best": compared.tied,
                "remark": compared.why,
            }


def _result_line(results: BenchmarkResults, cell: Cell, command: str) -> dict[str, Any]:
    key = cell.key
    variant = variant_of(results.preset, key.variant)
    row = results.benchmark.row(key.row)
    return {
        "benchmark": results.benchmark.name,
        "version": results.benchmark.version,
        "preset": results.preset.name,
        "variant": key.variant,
        "dataset": variant.label,
        "data": "simulated" if variant.simulated else "real",
        "shift": variant.shift,
        "alpha": key.alpha,
        "row": key.row,
        "method": row.label,
        "score": key.score,
        **_numbers(cell),
        "repeats": len(cell.values),
        "values": " ".join(f"{value:.8g}" for value in cell.values),
        "remark": cell.why,
        "network": results.preset.network.name,
        "epochs": results.preset.training.get("epochs", ""),
        "hardware": "; ".join(results.hardware),
        "seconds_of_all_runs": _plain(results.seconds),
        "command": command,
    }


def _numbers(cell: Cell) -> dict[str, Any]:
    return {
        "ours_mean": _plain(cell.ours.mean),
        "ours_std": _plain(cell.ours.std),
        "ours_low": _plain(cell.low),
        "ours_high": _plain(cell.high),
        "by_their_rule_mean": _plain(cell.by_their_rule.mean),
        "by_their_rule_std": _plain(cell.by_their_rule.std),
    }


def _plain(value: float | None) -> str:
    return "" if value is None or math.isnan(value) else f"{value:.8g}"
