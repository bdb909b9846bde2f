"""Every number of a judged benchmark in one file, with how it was made."""

from pathlib import Path
from typing import Any

from qualms.benchmarks import variant_of
from qualms.evaluate.results import BenchmarkResults, Cell, Cost
from qualms.report.csv_files import plain, write_records
from qualms.runs import commit


def write_results(results: BenchmarkResults, path: Path, *, command: str = "") -> Path:
    """Write every cell, one per line, with its repeats; gives the path."""
    wanted = results.benchmark.scores
    lines = (
        _result_line(results, cell, command)
        for cell in results.cells.values()
        if not wanted or cell.key.score in wanted
    )
    return write_records(lines, path)


def _result_line(results: BenchmarkResults, cell: Cell, command: str) -> dict[str, Any]:
    key, preset = cell.key, results.preset
    variant = variant_of(preset, key.variant)
    cost = results.costs.get((key.variant, key.row), Cost(None, None))
    network = variant.network or preset.network
    training = {**preset.training, **variant.training}
    return {
        "benchmark": results.benchmark.name,
        "version": results.benchmark.version,
        "preset": preset.told,
        "variant": key.variant,
        "dataset": variant.label,
        "data": "simulated" if variant.simulated else "real",
        "shift": variant.shift,
        "selection": variant.selection,
        "settings": key.settings,
        "row": key.row,
        "method": results.benchmark.row(key.row).label,
        "score": key.score,
        **_numbers(cell),
        **_ranking(results, cell),
        "interval": cell.method,
        "no_interval": cell.no_interval,
        "repeats": len(cell.values),
        "values": " ".join(f"{value:.8g}" for value in cell.values),
        "remark": cell.why,
        "network": network.name,
        "epochs": training.get("epochs", ""),
        "hardware": "; ".join(results.hardware),
        "seconds": plain(cost.seconds),
        "parameters": "" if cost.parameters is None else cost.parameters,
        "seconds_of_all_runs": plain(results.seconds),
        "command": command,
        "commit": commit() or "",
    }


def _numbers(cell: Cell) -> dict[str, str]:
    """Mean, deviation and interval of a cell, by both rules."""
    return {
        "ours_mean": plain(cell.ours.mean),
        "ours_std": plain(cell.ours.std),
        "ours_low": plain(cell.low),
        "ours_high": plain(cell.high),
        "by_their_rule_mean": plain(cell.by_their_rule.mean),
        "by_their_rule_std": plain(cell.by_their_rule.std),
    }


def _ranking(results: BenchmarkResults, cell: Cell) -> dict[str, str]:
    """The best row, whether this one is tied with it, and how far it lies from it."""
    group = results.ties.get(cell.key._replace(row=""))
    gap = results.differences.get(cell.key)
    return {
        "best": "" if group is None else group.best,
        "tied_with_best": "" if group is None else str(cell.key.row in group.members),
        "difference_from_best": plain(gap.value if gap else None),
        "difference_low": plain(gap.low if gap else None),
        "difference_high": plain(gap.high if gap else None),
    }
