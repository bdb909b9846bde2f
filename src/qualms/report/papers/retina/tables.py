"""Tables 1 to 13 of the paper."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from qualms.benchmarks import TableRow, Variant
from qualms.evaluate.results import BenchmarkResults
from qualms.published import Number, published
from qualms.report.judged import ERROR, NOT_PRINTED, only_judged, table_cell
from qualms.report.papers.retina.settings import (
    AREAS,
    BLURS,
    STANDARD,
    SUBSETS,
    TASKS,
    ScoreLabel,
    about_text,
    as_in_the_paper,
    blur_of,
    onset_of,
    printed,
    published_where,
    retina_data_text,
    shared_rows,
    variant_for,
)
from qualms.report.table import Column, Table, TableCell, TableLine

_AFTER = {0.0: "no referral", 0.5: "50% referred", 0.7: "70% referred"}
SETS = ("in_domain", "shifted", "joint", "balanced")


class RetinaColumn(NamedTuple):
    """A column of a table: a score of a set of items, on a task."""

    score: ScoreLabel
    subset: str
    group: str
    label: str
    task: str
    by_their_rule: bool = False


class RetinaLayout(NamedTuple):
    """One table of the paper: its columns, and what its lines are."""

    name: str
    title: str
    columns: tuple[RetinaColumn, ...]
    selection: str = "in_domain"
    sections: tuple[str, ...] = ("",)
    """Sets of items that have lines of their own, with the same columns."""
    blurs: tuple[int, ...] = ()
    """Blur constants that have lines of their own; () for the main experiments."""
    source: str = "000_retina"
    """Which of the two texts of the paper printed it."""

    @property
    def number(self) -> str:
        """Its number in the paper."""
        return self.name.partition("_")[0]


class LineOf(NamedTuple):
    """A line before its numbers."""

    label: str
    row: TableRow
    section: str
    by_task: Mapping[str, Variant]


def paper_tables(results: BenchmarkResults) -> tuple[Table, ...]:
    """Every table of the paper that anything was judged for; simulated ones last."""
    made = [
        (layout, table)
        for simulated in (False, True)
        for layout in LAYOUTS
        for table in only_judged(_paper_table(results, layout, simulated))
    ]
    # Without published numbers the same table of the other text is a second copy.
    return tuple(t for layout, t in made if t.compares or layout.name.isdecimal())


def unjudged_tables(results: BenchmarkResults) -> list[str]:
    """A note that names the paper's tables that nothing was judged for."""
    there = {table.keys["number"] for table in paper_tables(results)}
    names = [layout.name for layout in LAYOUTS if layout.name.isdecimal()]
    missing = [name for name in names if name not in there]
    if not missing:
        return []
    return [f"nothing was judged for the paper's tables {', '.join(missing)}"]


def _paper_table(
    results: BenchmarkResults, layout: RetinaLayout, simulated: bool
) -> Iterator[Table]:
    lines = list(_lines(results, layout, simulated))
    tasks = {task for line in lines for task in line.by_task}
    columns = [column for column in layout.columns if column.task in tasks]
    if lines and columns:
        yield retina_table(
            results,
            columns,
            [filled_line(results, columns, line, layout) for line in lines],
            [variant for line in lines for variant in line.by_task.values()],
            name=f"{layout.name}{'_simulated' if simulated else ''}",
            title=f"Table {layout.number}: {layout.title}",
            notes=() if layout.name.isdecimal() else ("Numbers of the full paper.",),
            keys={"number": layout.name},
        )


def _lines(
    results: BenchmarkResults, layout: RetinaLayout, simulated: bool
) -> Iterator[LineOf]:
    tasks = dict.fromkeys(column.task for column in layout.columns)
    found: dict[int | None, dict[str, Variant]] = {}
    for blur in layout.blurs or (None,):
        for task in tasks:
            variant = variant_for(
                results.preset, task, layout.selection, simulated=simulated, blur=blur
            )
            if variant is not None:
                found.setdefault(blur, {})[task] = variant
    if layout.blurs and len(found) < 2:
        return
    rows = shared_rows(results, [by_task.values() for by_task in found.values()])
    for section in layout.sections:
        for row in rows:
            for blur, by_task in found.items():
                end = f", blur {blur}" if blur else ""
                yield LineOf(f"{row.label}{end}", row, section, by_task)


def filled_line(
    results: BenchmarkResults,
    columns: Sequence[RetinaColumn],
    line: LineOf,
    layout: RetinaLayout | None = None,
) -> TableLine:
    """A line with its numbers, those of the paper's table `layout` beside them."""
    cells = []
    for column in columns:
        subset, variant = line.section or column.subset, line.by_task[column.task]
        number = _number(results, variant, line.row, (subset, column.score), layout)
        cell = _cell(results, variant, line.row, (subset, column.score), number)
        if layout is not None and layout.blurs:
            # The best is sought on each dataset by itself, and a blur constant makes
            # another.
            cell = replace(cell, tied=False, best=False)
        cells.append(cell)
    first = next(iter(line.by_task.values()))
    blur = blur_of(first)
    section = {"subset": line.section} if line.section else {}
    return TableLine(
        labels=(line.label,),
        cells=tuple(cells),
        section=SUBSETS.get(line.section, ""),
        beyond=line.row.beyond,
        keys={
            "variants": " ".join(v.name for v in line.by_task.values()),
            "onset": onset_of(first),
            "blur_constant": "" if blur is None else blur,
            "row": line.row.name,
            "method": line.row.label,
            **section,
        },
    )


def _number(
    results: BenchmarkResults,
    variant: Variant,
    row: TableRow,
    what: tuple[str, ScoreLabel],
    layout: RetinaLayout | None,
) -> Number | None:
    """The number that a table of the paper prints there; anywhere for a summary."""
    if layout is None:
        return printed(results, variant, row, *what)
    # A pool of two is no pool of three: rows of ours have no published number.
    usual = bool(layout.blurs) or blur_of(variant) == BLURS[-1]
    if row.beyond or not as_in_the_paper(variant) or not usual:
        return None
    where = published_where(variant, row, *what)
    book = published(results.benchmark.published)
    return book.get({"source": layout.source, "table": layout.number, **where})


def _cell(
    results: BenchmarkResults,
    variant: Variant,
    row: TableRow,
    what: tuple[str, ScoreLabel],
    number: Number | None,
) -> TableCell:
    subset, score = what
    return table_cell(
        results,
        results.cell(variant.name, row.name, f"{subset}/{score.name}"),
        spread=ERROR,
        scale=score.scale,
        number=number,
        absent=NOT_PRINTED if as_in_the_paper(variant) else retina_data_text(variant),
    )


def retina_table(
    results: BenchmarkResults,
    columns: Sequence[RetinaColumn],
    lines: Iterable[TableLine],
    variants: Sequence[Variant],
    **told: Any,
) -> Table:
    """A table of some variants, whose first says which data it is of."""
    first = variants[0]
    keys = {
        "preset": results.preset.told,
        "data": retina_data_text(first),
        "selection": first.selection,
        **told.pop("keys", {}),
    }
    return Table(
        name=f"table_{told.pop('name')}",
        about=about_text(results, variants),
        simulated=first.simulated,
        columns=tuple(
            Column(
                label=column.label,
                group=column.group,
                unit=column.score.unit,
                decimals=column.score.decimals,
                by_their_rule=column.by_their_rule,
                keys={
                    "task": column.task,
                    **({"subset": column.subset} if column.subset else {}),
                    "score": column.score.name,
                },
            )
            for column in columns
        ),
        lines=tuple(lines),
        spread=ERROR,
        level=results.level,
        keys=keys,
        **{"main": False, **told},
    )


def _referred(task: str) -> tuple[RetinaColumn, ...]:
    """Tables 1, 2, 12 and 13: AUROC and accuracy of what is kept."""
    return tuple(
        RetinaColumn(score.at(share), "", head, score.label, task)
        for share, head in _AFTER.items()
        for score in (STANDARD["auroc"], STANDARD["accuracy"])
    )


def _crossed(
    task: str, scores: Iterable[ScoreLabel], subsets: Sequence[str]
) -> tuple[RetinaColumn, ...]:
    """Tables 4 to 11: scores by set of items."""
    return tuple(
        RetinaColumn(score, subset, score.label, SUBSETS[subset], task)
        for score in scores
        for subset in subsets
    )


def _referral(name: str, task: str, **more: Any) -> RetinaLayout:
    what = "AUROC and accuracy of the items kept after referral"
    end = ", preprocessing with different blur" if "blurs" in more else ""
    return RetinaLayout(
        name,
        f"{TASKS[task]}, {what}{end}",
        _referred(task),
        sections=("in_domain", "shifted"),
        **more,
    )


def _standard(name: str, task: str, selection: str) -> RetinaLayout:
    columns = _crossed(task, STANDARD.values(), SETS[:3])
    return RetinaLayout(name, f"{TASKS[task]}, standard scores", columns, selection)


def _area(name: str, task: str, selection: str) -> RetinaLayout:
    what = "areas under referral curves, referred items count as perfect"
    columns = _crossed(task, AREAS.values(), SETS)
    return RetinaLayout(name, f"{TASKS[task]}, {what}", columns, selection)


FOUND = (
    ScoreLabel("ood_auroc", "ood_auroc", "AUROC ↑"),
    ScoreLabel("ood_auprc", "ood_auprc", "AUPRC ↑"),
)
LAYOUTS = (
    _referral("1", "country"),
    _referral("1_full_paper", "country", source="001_retina"),
    _referral("2", "severity"),
    RetinaLayout(
        "3",
        "shifted items found by their uncertainty",
        tuple(
            RetinaColumn(score, "joint", head, score.label, task)
            for task, head in TASKS.items()
            for score in FOUND
        ),
    ),
    _standard("4", "country", "in_domain"),
    _standard("5", "severity", "in_domain"),
    _area("6", "country", "in_domain"),
    _area("7", "severity", "in_domain"),
    _standard("8", "country", "joint"),
    _standard("9", "severity", "joint"),
    _area("10", "country", "joint"),
    _area("11", "severity", "joint"),
    _referral("12", "severity", blurs=BLURS),
    _referral("13", "country", blurs=BLURS),
)
"""Tables 1 to 13 of the supplement, and the full paper's own version of the first."""
