"""Tables of a benchmark that has no file in `report/papers`: rows by scores."""

from collections.abc import Iterator, Sequence

from qualms import scores
from qualms.benchmarks import Variant, selection_text
from qualms.evaluate.results import BenchmarkResults, Cell, Key
from qualms.report.judged import (
    DEVIATION,
    data_text,
    judged_variants,
    only_judged,
    table_cell,
)
from qualms.report.papers import Paper
from qualms.report.table import Column, Table, TableLine

ARROWS = {"higher": " ↑", "lower": " ↓", "neither": ""}


def ordinary() -> Paper:
    """One table for each variant and each of its settings."""
    return Paper(tables=_tables)


def _tables(results: BenchmarkResults) -> tuple[Table, ...]:
    found = dict.fromkeys((key.variant, key.settings) for key in results.cells)
    return only_judged(
        _table(results, variant, settings)
        for variant in judged_variants(results)
        for name, settings in found
        if name == variant.name
    )


def _table(results: BenchmarkResults, variant: Variant, settings: str) -> Table:
    benchmark, preset = results.benchmark, results.preset
    columns = tuple(_columns(results, variant, settings))
    told = (
        data_text(variant),
        f"preset {preset.told}",
        f"shifted: {variant.shift}" if variant.shift else "",
        selection_text(benchmark, preset, variant),
    )
    return Table(
        name="_".join(filter(None, ("table", variant.name, _file(settings)))),
        title=", ".join(filter(None, (benchmark.title, variant.label, settings))),
        about="; ".join(filter(None, told)),
        simulated=variant.simulated,
        columns=columns,
        lines=tuple(_lines(results, Key(variant.name, "", settings, ""), columns)),
        spread=DEVIATION,
        level=results.level,
        keys={
            "preset": preset.told,
            "data": data_text(variant),
            "selection": variant.selection,
            "variant": variant.name,
            "settings": settings,
        },
    )


def _lines(
    results: BenchmarkResults, at: Key, columns: Sequence[Column]
) -> Iterator[TableLine]:
    there = {k.row for k in results.cells if (k.variant, k.settings) == (at[0], at[2])}
    for row in (results.benchmark.row(name) for name in results.preset.rows):
        if row.name in there:
            keys = (
                at._replace(row=row.name, score=column.keys["score"])
                for column in columns
            )
            cells = (results.cells.get(key, Cell(key=key)) for key in keys)
            yield TableLine(
                labels=(row.label,),
                cells=tuple(table_cell(results, cell, absent="") for cell in cells),
                beyond=row.beyond,
                keys={"row": row.name, "method": row.label},
            )


def _columns(
    results: BenchmarkResults, variant: Variant, settings: str
) -> Iterator[Column]:
    """The scores that were judged there, grouped by the items that they are of."""
    found = dict.fromkeys(
        key.score
        for key in results.cells
        if (key.variant, key.settings) == (variant.name, settings)
    )
    order = [name for name in results.benchmark.scores if name in found] or list(found)
    groups = list(dict.fromkeys(name.rpartition("/")[0] for name in order))
    for name in sorted(order, key=lambda name: groups.index(name.rpartition("/")[0])):
        group, _, score = name.rpartition("/")
        known = getattr(scores, score, None)
        label = score
        if callable(known):
            said = scores.about(known)
            label = f"{said.label}{ARROWS[said.better]}"
        yield Column(
            label=label,
            group=group.replace("_", "-"),
            keys={"score": name},
        )


def _file(text: str) -> str:
    """Settings as part of a file's name."""
    return "".join(c if c.isalnum() or c in "._-" else "_" for c in text)
