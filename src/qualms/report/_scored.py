"""The scores of files as tables."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence

from qualms.evaluate import Comparison, Contrast, Scored, ScoreRow, subset_words
from qualms.evaluate.rows import RowKey
from qualms.evaluate.subsets import group_array, is_group, subset_label
from qualms.labels import labels_text
from qualms.report.table import Column, Table, TableCell, TableLine

ON_LOGITS = "calibration_intercept", "calibration_slope"
"""Scores whose numbers lie on both sides of 0, and are wide with more decimals."""
ARROW = {"higher": "↑", "lower": "↓", "neither": " "}


def score_table(scored: Scored) -> Table:
    """Return every score by set of items, with the files side by side."""
    contrasts = _by_key(scored.comparison)
    by_file = [{row.key: row for row in result.rows} for result in scored.results]
    keys = dict.fromkeys(key for rows in by_file for key in rows)
    names = [result.name for result in scored.results]
    first = scored.results[0]
    subsets = dict.fromkeys(key[1] for key in keys)
    ordered = [key for subset in subsets for key in keys if key[1] == subset]
    return Table(
        name="scores",
        title="Scores",
        left=("score", "by"),
        columns=tuple(Column(label=name, keys={"file": name}) for name in names),
        lines=tuple(
            score_line(
                [rows.get(key) for rows in by_file],
                names=names,
                contrast=contrasts.get(key),
                sections=len(subsets) > 1,
            )
            for key in ordered
        ),
        level=first.level,
        notes=(
            *aggregation_notes(scored),
            *(subset_notes(subsets) if len(subsets) > 1 else ()),
        ),
    )


def aggregation_notes(scored: Scored) -> tuple[str, ...]:
    """Return which aggregation of the maps of each file to take, in sentences."""
    several = len(scored.results) > 1
    return tuple(
        f"{result.name}: {sentence}." if several else f"{sentence}."
        for result in scored.results
        for sentence in result.aggregations
    )


def subset_notes(subsets: Iterable[str]) -> tuple[str, ...]:
    """Return the note that defines the sets of items of a table."""
    subsets = list(subsets)
    definitions = [
        f"{subset_label(subset)}: {subset_words(subset)}"
        for subset in subsets
        if not is_group(subset)
    ]
    if len(definitions) < len(subsets):
        arrays = dict.fromkeys(filter(None, map(group_array, subsets)))
        definitions += (
            f"{array.split('/')[-1]}=NAME: items whose array '{array}' says NAME"
            for array in arrays
        )
    return (f"{'; '.join(definitions)}.",)


def difference_table(comparison: Comparison) -> Table:
    """Return the difference of each file from the best, score by score."""
    lines = [
        TableLine(
            labels=(
                contrast.compared,
                contrast.detail,
                f"{name} - {contrast.best}",
            ),
            cells=(
                TableCell(mean=gap.value, low=gap.low, high=gap.high),
                TableCell(mean=gap.p, text="<0.001" if gap.p < 0.001 else ""),
            ),
            section=subset_label(contrast.subset),
        )
        for contrast in _by_subset(comparison.contrasts)
        for name, gap in contrast.difference.items()
        if name != contrast.best
    ]
    columns = Column(label="difference", decimals=4), Column(label="p", decimals=3)
    return Table(
        name="differences",
        title="Differences from the best",
        left=("score", "by", "files"),
        columns=columns,
        lines=tuple(lines),
    )


def _by_subset(contrasts: Sequence[Contrast]) -> Iterator[Contrast]:
    """Yield contrasts by set of items."""
    for subset in dict.fromkeys(contrast.subset for contrast in contrasts):
        yield from (contrast for contrast in contrasts if contrast.subset == subset)


def score_notes(scored: Scored) -> list[str]:
    """Return notes of files and of their comparison, each once."""
    notes = [note for result in scored.results for note in result.notes]
    notes += list(scored.comparison.notes) if scored.comparison else []
    notes += _unranked(scored.comparison)
    return list(dict.fromkeys(notes))


def _unranked(comparison: Comparison | None) -> list[str]:
    """Return why no file is marked as best, with the scores in question."""
    reasons: dict[str, list[str]] = {}
    for contrast in comparison.contrasts if comparison else ():
        if contrast.reason:
            reasons.setdefault(contrast.reason, []).append(contrast.label)
    return [
        f"which file is best is not said for {', '.join(dict.fromkeys(labels))}: {why}"
        for why, labels in reasons.items()
    ]


def score_line(
    rows: Sequence[ScoreRow | None],
    *,
    names: Sequence[str] = (),
    contrast: Contrast | None = None,
    sections: bool = False,
) -> TableLine:
    """Return a score as a line, with a cell for each file or set of items.

    Args:
        rows: One for each cell; None where it stays empty.
        names: Names of the files, where they are compared.
        contrast: Their comparison.
        sections: Whether each set of items is a section.
    """
    first = next(row for row in rows if row is not None)
    return TableLine(
        labels=(f"{ARROW[first.better]} {first.label}", first.detail),
        cells=tuple(
            score_cell(row, name, contrast)
            for row, name in zip(rows, names or [""] * len(rows), strict=True)
        ),
        section=subset_label(first.subset) if sections else "",
        decimals=2 if first.score in ON_LOGITS else None,
        keys={
            "score": first.score,
            "subset": first.subset,
            "settings": labels_text(first.settings),
        },
    )


def score_cell(
    row: ScoreRow | None, name: str = "", contrast: Contrast | None = None
) -> TableCell:
    """Return a value with its interval, marked if file `name` may be best."""
    if row is None:
        return TableCell()
    undefined = math.isnan(row.value)
    ranked = contrast is not None and not contrast.reason
    return TableCell(
        mean=row.value,
        low=row.low,
        high=row.high,
        best=contrast is not None and ranked and name == contrast.best,
        tied=contrast is not None and ranked and name in contrast.tied,
        why=row.why or ("not defined on these items" if undefined else ""),
        no_interval=row.no_interval,
        text="undefined" if undefined else "",
    )


def _by_key(comparison: Comparison | None) -> Mapping[RowKey, Contrast]:
    if comparison is None:
        return {}
    return {contrast.key: contrast for contrast in comparison.contrasts}
