"""Rows for methods that a benchmark does not have.

Any method of the shelf, or from outside, runs on a benchmark whose task it serves. The
benchmark says what rows such a guest gets: alone, and in pools as large as its own.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from qualms.benchmarks import Benchmark, Preset, TableRow
from qualms.shelf import find, names
from qualms.spec import Part


def with_guests(
    benchmark: Benchmark, preset: Preset, asked: Sequence[str]
) -> tuple[Benchmark, Preset]:
    """The benchmark and preset, with rows for those of `asked` that are guests."""
    known = {name for row in benchmark.rows for name in (row.name, row.method.name)}
    guests = [name for name in asked if name not in known and name in names("methods")]
    if not guests:
        return benchmark, preset
    sizes = {benchmark.row(name).pool for name in preset.rows}
    rows = tuple(row for name in guests for row in _rows(benchmark, name, sizes))
    own = tuple(row.name for row in rows)
    variants = tuple(
        replace(variant, rows=(*variant.rows, *own)) if variant.rows else variant
        for variant in preset.variants
    )
    return replace(benchmark, rows=(*benchmark.rows, *rows)), replace(
        preset, rows=(*preset.rows, *own), variants=variants
    )


def _rows(benchmark: Benchmark, method: str, sizes: set[int]) -> Iterator[TableRow]:
    tasks = find("methods", method)().tasks
    if benchmark.task not in tasks:
        raise ValueError(
            f"{benchmark.name} is about {benchmark.task}, and {method!r} serves"
            f" {', '.join(sorted(tasks))}; leave it out"
        )
    for row in benchmark.guests:
        if row.pool in sizes:
            yield replace(
                row,
                name=row.name.format(method=method),
                label=row.label.format(method=method),
                method=Part(name=method, options=row.method.options),
                beyond=True,
            )
