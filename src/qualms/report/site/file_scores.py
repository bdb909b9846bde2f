"""The scores of predictions files as tables: the main ones, and all by question."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

from qualms import scores
from qualms.evaluate import Scored, ScoreRow, with_main_scores
from qualms.evaluate.rows import RowKey, RowSettings
from qualms.evaluate.subsets import is_group, subset_label
from qualms.report._scored import aggregation_notes, score_cell, subset_notes
from qualms.report.table import Column, Table, TableLine

QUESTIONS: Mapping[str, tuple[str, ...]] = {
    "Are predictions right?": (
        "proper",
        "multiclass",
        "operating_points",
        "regression",
        "overlap",
    ),
    "Are probabilities and intervals right?": (
        *("calibration", "calibration_line", "platt", "intervals", "smoothing"),
        *("recalibration", "conformal", "conformal_sets"),
    ),
    "Does the uncertainty rank errors?": (
        *("ranking", "selective", "referral", "threshold"),
    ),
    "Does it notice a shift?": ("ood", "distance"),
    "Does it follow people?": ("raters", "human"),
    "Are embeddings good?": ("retrieval", "gallery"),
}
"""The modules of `qualms.scores` whose scores answer a question."""
OTHERS = "Further scores"
_FIRST = ("in_domain", "shifted", "all")
_ARROWS = {"higher": " ↑", "lower": " ↓", "neither": ""}


def main_table(scored: Scored) -> Table:
    """Return the main scores of files: those by which a task is usually judged."""
    main = with_main_scores(scored)
    rows = [row for result in main.results for row in result.rows]
    rows = [row for row in rows if not is_group(row.subset)]
    return _table(scored, "main_scores", "Main scores", [row.key for row in rows])


def question_tables(scored: Scored) -> Iterator[Table]:
    """Yield a table of all scores for each question, without those of groups."""
    for number, question in enumerate((*QUESTIONS, OTHERS)):
        keys = [row.key for row in _rows(scored, lambda row: _question(row), question)]
        if keys:
            table = _table(scored, f"scores_{number}", question, keys)
            if any(score == "aurc" for score, *_ in keys):
                notes = (*aggregation_notes(scored), *table.notes)
                table = replace(table, notes=notes)
            yield table


def group_table(scored: Scored) -> Table | None:
    """Return the scores of each group; None where files have none."""
    rows = [row for result in scored.results for row in result.rows]
    keys = [row.key for row in rows if is_group(row.subset)]
    return _table(scored, "scores_groups", "By group", keys) if keys else None


def _rows(
    scored: Scored, question_of: Callable[[ScoreRow], str], question: str
) -> Iterator[ScoreRow]:
    for result in scored.results:
        for row in result.rows:
            if not is_group(row.subset) and question_of(row) == question:
                yield row


def _question(row: ScoreRow) -> str:
    score = getattr(scores, row.score, None)
    module = getattr(score, "__module__", "").rpartition(".")[2]
    return next((q for q, names in QUESTIONS.items() if module in names), OTHERS)


def _table(scored: Scored, name: str, title: str, keys: Sequence[RowKey]) -> Table:
    """Return scores by lines, and files and sets of items by columns."""
    by_file = [{row.key: row for row in result.rows} for result in scored.results]
    contrasts = {
        contrast.key: contrast
        for contrast in (scored.comparison.contrasts if scored.comparison else ())
    }
    subsets = _subsets(keys)
    several = len(scored.results) > 1
    columns = [
        (at, result.name, subset)
        for subset in subsets
        for at, result in enumerate(scored.results)
    ]
    lines = []
    for score, settings in dict.fromkeys(key[::2] for key in keys):
        cells = []
        for at, file, subset in columns:
            key = (score, subset, settings)
            row = by_file[at].get(key)
            cells.append(score_cell(row, file, contrasts.get(key) if several else None))
        lines.append(
            TableLine(
                labels=_labels(by_file, subsets, score, settings),
                cells=tuple(cells),
                keys={"score": score, **dict(settings)},
            )
        )
    return Table(
        name=name,
        title=title,
        left=("score", "by"),
        columns=tuple(
            Column(
                label=file if several else _words(subset),
                group=_words(subset) if several else "",
                keys={"file": file, "subset": subset},
            )
            for _, file, subset in columns
        ),
        lines=tuple(lines),
        level=scored.results[0].level,
        notes=subset_notes(subsets) if len(subsets) > 1 else (),
    )


def _subsets(keys: Sequence[RowKey]) -> list[str]:
    """Return the sets of items, all of them first."""
    subsets = list(dict.fromkeys(key[1] for key in keys))
    first = [subset for subset in _FIRST if subset in subsets]
    return [*first, *(subset for subset in subsets if subset not in first)]


def _labels(
    by_file: Sequence[Mapping[RowKey, ScoreRow]],
    subsets: Sequence[str],
    score: str,
    settings: RowSettings,
) -> tuple[str, str]:
    row = next(
        rows[key]
        for rows in by_file
        for subset in subsets
        if (key := (score, subset, settings)) in rows
    )
    return f"{row.label}{_ARROWS[row.better]}", row.detail


def _words(subset: str) -> str:
    return "all items" if subset == "all" else subset_label(subset)
