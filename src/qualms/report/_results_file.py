"""Every number of a judged benchmark in one file, with how it was made."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from qualms.evaluate.benchmark_results import BenchmarkResults, Cost
from qualms.report._csv_files import plain, write_records
from qualms.results import csv_text
from qualms.runs import commit


def write_results(results: BenchmarkResults, path: Path, *, command: str = "") -> Path:
    """Write the table of results, one number per line, and return the path."""
    return write_records(_records(results, command), path)


def _records(results: BenchmarkResults, command: str) -> Iterator[dict[str, Any]]:
    plan, made_by = results.plan, commit() or ""
    for record in results.table.records():
        variant = plan.variant(record["variant"])
        cost = results.costs.get((variant.name, record["row"]), Cost(None, None))
        yield {
            **{name: csv_text(value) for name, value in record.items()},
            "version": results.benchmark.version,
            "network": (variant.network or plan.preset.network).name,
            "epochs": plan.training_on(variant).get("epochs", ""),
            "hardware": "; ".join(results.hardware),
            "seconds": plain(cost.seconds),
            "parameters": "" if cost.parameters is None else cost.parameters,
            "seconds_of_all_runs": plain(results.seconds),
            "command": command,
            "commit": made_by,
        }
