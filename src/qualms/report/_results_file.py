"""Every number of a judged benchmark in one file, with how it was made."""

from pathlib import Path
from typing import Any

from qualms.benchmarks._benchmark import variant_of
from qualms.evaluate.benchmark import BenchmarkResults, Cell
from qualms.report._csv import plain, write_csv


def write_results(results: BenchmarkResults, path: Path, *, command: str = "") -> Path:
    """Write every cell, one per line, with its repeats; gives the path."""
    lines = (
        _result_line(results, cell, command)
        for cell in results.cells.values()
        if cell.key.score in results.benchmark.scores
    )
    return write_csv(lines, path)


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
        "regime": variant.regime,
        "alpha": "" if key.alpha is None else key.alpha,
        "row": key.row,
        "method": row.label,
        "score": key.score,
        **numbers(cell),
        "repeats": len(cell.values),
        "values": " ".join(f"{value:.8g}" for value in cell.values),
        "remark": cell.why,
        "network": results.preset.network.name,
        "epochs": results.preset.training.get("epochs", ""),
        "hardware": "; ".join(results.hardware),
        "seconds_of_all_runs": plain(results.seconds),
        "command": command,
    }


def numbers(cell: Cell) -> dict[str, str]:
    """Mean, deviation and interval of a cell, by both rules, as a CSV holds them."""
    return {
        "ours_mean": plain(cell.ours.mean),
        "ours_std": plain(cell.ours.std),
        "ours_low": plain(cell.low),
        "ours_high": plain(cell.high),
        "by_their_rule_mean": plain(cell.by_their_rule.mean),
        "by_their_rule_std": plain(cell.by_their_rule.std),
    }
