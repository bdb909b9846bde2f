"""The short output of `qualms score`: a verdict, and ten scores that fit a screen."""

from collections.abc import Sequence
from dataclasses import replace

from qualms.evaluate import (
    Answer,
    Results,
    Scored,
    ScoreRow,
    with_main_scores,
    with_shown_items,
)
from qualms.evaluate.judging import judging_of
from qualms.evaluate.rows import QUESTIONS, Question
from qualms.evaluate.subsets import (
    group_array,
    group_name,
    is_group,
    subset_kind,
    subset_label,
)
from qualms.report._scored import (
    ARROW,
    score_cell,
    score_line,
    score_table,
    subset_notes,
)
from qualms.report.table import Column, Table, TableCell, TableLine


def answer_table(scored: Scored) -> Table:
    """Return the answers of several files side by side."""
    each = [{a.question: a for a in result.verdict} for result in scored.results]
    return Table(
        name="verdict",
        title="",
        left=("verdict",),
        columns=tuple(Column(label=result.name) for result in scored.results),
        lines=tuple(
            TableLine(
                labels=(_asked(question, scored.results[0].task),),
                cells=tuple(
                    TableCell(text=_short(answers[question])) for answers in each
                ),
            )
            for question in each[0]
        ),
    )


def _short(answer: Answer) -> str:
    worse = answer.words.startswith("worse")
    return f"{answer.answer}, worse" if worse else answer.answer


def _asked(question: Question, task: str) -> str:
    """Return a question that yes or no answers."""
    than = judging_of(task).baseline
    named = question == "accurate" and than
    return f"Better than {than}?" if named else QUESTIONS[question]


def brief_scores(scored: Scored) -> Scored:
    """Return the main scores of the items that the results are about."""
    return with_main_scores(with_shown_items(scored))


def brief_tables(scored: Scored) -> list[Table]:
    """Return tables of the scores of `brief_scores`.

    Of one file: in-domain and shifted items side by side, then scores of all items,
    then groups. Of several files: one table with a section for each set of items.
    """
    if len(scored.results) > 1:
        return [_bare(replace(score_table(scored), title=""))]
    result = scored.results[0]
    groups = [row for row in result.rows if is_group(row.subset)]
    return [*_beside(result), *([_by_group(result, groups)] if groups else [])]


def _beside(result: Results) -> list[Table]:
    """Return the scores of one file, in-domain and shifted items side by side."""
    rows = {row.key: row for row in result.rows}
    kinds = list(result.subsets)
    together, alone = [], []
    for score, settings in dict.fromkeys(row.key[::2] for row in result.rows):
        of_kinds = [rows.get((score, kind, settings)) for kind in kinds]
        of_all = rows.get((score, "all", settings))
        if any(of_kinds):
            together.append(of_kinds)
        elif of_all and "shifted" in kinds and _is_of_shift(of_all, result):
            together.append([None] * (len(kinds) - 1) + [of_all])
        elif of_all is not None:
            alone.append([of_all])
    tables = [_lined(result, kinds, together)]
    return [*tables, *([_lined(result, ["all"], alone)] if alone else [])]


def _is_of_shift(row: ScoreRow, result: Results) -> bool:
    """Return whether a score measures how well shifted items are detected."""
    if not row.score.startswith(("ood_", "scod_")):
        return False
    # Downstream against upstream items have rows of the same name.
    upstream = any(other.score == "mixed_r_auroc" for other in result.rows)
    return "outside" in row.settings or not upstream


def _lined(
    result: Results, subsets: Sequence[str], rows: Sequence[Sequence[ScoreRow | None]]
) -> Table:
    columns = []
    for i, subset in enumerate(subsets):
        sizes = [row.n for each in rows if (row := each[i]) is not None]
        name = {"all": "all items"}.get(subset, subset_label(subset))
        columns.append(Column(label=f"{name} ({min(sizes)})"))
    table = Table(
        name="scores",
        title="",
        left=("score", "by"),
        columns=tuple(columns),
        lines=tuple(score_line(each) for each in rows),
        level=result.level,
        notes=subset_notes(subsets) if len(subsets) > 1 else (),
    )
    return _bare(table)


def _by_group(result: Results, rows: Sequence[ScoreRow]) -> Table:
    """Return a table with a line for each group, and the main scores as columns."""
    first = {row.score: row for row in reversed(rows)}
    shown = [
        first[score]
        for score in judging_of(result.task).shown(rows).grouped
        if score in first
    ]
    by_key = {(row.subset, row.score, row.detail): row for row in rows}
    names = dict.fromkeys(row.subset for row in rows)
    divided = {subset_kind(subset) for subset in names} != {"all"}
    lines = []
    for subset in names:
        cells = [by_key.get((subset, row.score, row.detail)) for row in shown]
        items = max(cell.n for cell in cells if cell is not None)
        lines.append(
            TableLine(
                labels=(_group_words(subset), str(items)),
                cells=tuple(score_cell(cell) for cell in cells),
                section=subset_label(subset_kind(subset)) if divided else "",
            )
        )
    table = Table(
        name="groups",
        title="",
        left=("group", "items"),
        columns=tuple(
            Column(label=f"{ARROW[row.better]} {row.label} {row.detail}".strip())
            for row in shown
        ),
        lines=tuple(lines),
        level=result.level,
    )
    return _bare(table)


def _group_words(subset: str) -> str:
    """Return the name of a group, after that of its array where there are several."""
    array = group_array(subset).removeprefix("group/")
    return group_name(subset) if array == "group" else f"{array}={group_name(subset)}"


def _bare(table: Table) -> Table:
    """Return `table` with a note instead of the reasons of missing numbers."""
    without = dict.fromkeys(
        line.labels[0].lstrip("↑↓ ")
        for line in table.lines
        for cell in line.cells
        if cell.no_interval or (cell.text and cell.why)
    )
    if not without:
        return table
    note = f"{', '.join(without)}: no interval, or no value; --all says why."
    lines = tuple(
        replace(
            line,
            cells=tuple(replace(cell, why="", no_interval="") for cell in line.cells),
        )
        for line in table.lines
    )
    return replace(table, lines=lines, notes=(*table.notes, note))
