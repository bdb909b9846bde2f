"""The paper's tables with our numbers in them: which cell stands beside which."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import NamedTuple

from qualms.benchmarks import TableRow, Variant
from qualms.evaluate.benchmark import BenchmarkResults
from qualms.published import published
from qualms.report._compared import Compared
from qualms.report.papers.retina._layouts import (
    LAYOUTS,
    Column,
    Layout,
    PartLayout,
)
from qualms.report.papers.retina._scores import Value
from qualms.report.papers.retina._settings import (
    PAPER_BLUR,
    SUBSETS,
    as_in_the_paper,
    blur_of,
    published_row,
    shared_rows,
    variant_for,
)
from qualms.report.papers.retina._table import Line, Part, Table, compared


class _Who(NamedTuple):
    """A line before its numbers."""

    label: str
    row: TableRow
    variants: Mapping[str, Variant]
    blur: int


def paper_tables(results: BenchmarkResults) -> tuple[Table, ...]:
    """Every table of the paper that anything was judged for; simulated ones last."""
    found = (
        _table(results, layout, simulated)
        for simulated in (False, True)
        for layout in LAYOUTS
    )
    return tuple(table for table in found if table is not None)


def absent_tables(tables: Iterable[Table]) -> tuple[str, ...]:
    """The numbers of the paper's tables that are not among `tables`."""
    there = {table.name for table in tables}
    names = (layout.name for layout in LAYOUTS if not layout.printed)
    return tuple(name for name in names if name not in there)


def _table(results: BenchmarkResults, layout: Layout, simulated: bool) -> Table | None:
    who = list(_lines_of(results, layout, simulated))
    variants = {v.name: v for line in who for v in line.variants.values()}
    if not variants:
        return None
    parts = tuple(_part(results, layout, part, who) for part in layout.parts)
    if not any(_judged(part) for part in parts):
        return None
    table = Table(
        name=layout.name,
        title=layout.title,
        preset=results.preset,
        variants=tuple(variants.values()),
        parts=parts,
        note="Numbers of the full paper's text." if layout.printed else "",
    )
    # Without published numbers the same table of the other text is a second copy.
    return table if table.compares or not layout.printed else None


def _judged(part: Part) -> bool:
    return any(cell.cell.values for line in part.lines for cell in line.compared)


def _lines_of(
    results: BenchmarkResults, layout: Layout, simulated: bool
) -> Iterator[_Who]:
    found = {
        blur: _by_task(results, layout, simulated, blur)
        for blur in layout.blurs or (None,)
    }
    there = {blur: by_task for blur, by_task in found.items() if by_task}
    if layout.blurs and len(there) < 2:
        return
    groups = [tuple(by_task.values()) for by_task in there.values()]
    for row in shared_rows(results.benchmark, results.preset, groups):
        for blur, by_task in there.items():
            end = f", blur {blur}" if blur else ""
            yield _Who(f"{row.label}{end}", row, by_task, blur or PAPER_BLUR)


def _by_task(
    results: BenchmarkResults, layout: Layout, simulated: bool, blur: int | None
) -> dict[str, Variant]:
    found = {
        task: variant_for(
            results.preset, task, layout.regime, simulated=simulated, blur=blur
        )
        for task in layout.tasks
    }
    return {task: variant for task, variant in found.items() if variant is not None}


def _part(
    results: BenchmarkResults, layout: Layout, part: PartLayout, who: list[_Who]
) -> Part:
    tasks = {task for line in who for task in line.variants}
    columns = tuple(column for column in part.columns if column.task in tasks)
    return Part(
        part.title,
        columns,
        tuple(
            Line(
                line.label,
                line.row,
                line.variants,
                tuple(_compared(results, layout, line, column) for column in columns),
            )
            for line in who
        ),
    )


def _compared(
    results: BenchmarkResults, layout: Layout, line: _Who, column: Column
) -> Compared:
    where: dict[str, Value] = {
        "source": layout.source,
        "table": layout.printed or layout.name,
        "task": column.task,
        "tuned_on": layout.regime.replace("-", ""),
        "dataset": SUBSETS[column.subset],
        "blur_constant": float(line.blur),
        "referral": column.score.referral,
        "metric": column.score.metric,
        **published_row(line.row),
    }
    variant = line.variants[column.task]
    # A pool of two is no pool of three: rows of ours have no published number.
    same = not line.row.beyond and blur_of(variant) == line.blur
    known = published(results.benchmark.published).get(where)
    number = known if same and as_in_the_paper(variant) else None
    found = compared(results, variant, line.row, column, number)
    # The best is sought on each dataset by itself, and a blur constant makes another.
    return replace(found, tied=False) if layout.blurs else found
