"""Operating points of files as tables: each threshold, its rates, and its target."""

import math
from collections.abc import Iterator, Mapping, Sequence

from qualms.evaluate import OperatingPoint, Results, Scored, ScoreRow
from qualms.evaluate.operating_points import ANY
from qualms.evaluate.subsets import subset_label
from qualms.report._scored import ARROW, score_cell
from qualms.report.table import Column, Table, TableCell, TableLine, digits

BRIEF = ("sensitivity", "specificity", "ppv", "npv")
COLUMNS = (*BRIEF, "called_share", "lr_positive", "lr_negative")
TITLE = "Operating points"
RULE = (
    "The target is met where the exact intervals of all its scores reach it, and not "
    "met where that of one misses it."
)


def point_tables(scored: Scored, *, brief: bool = False) -> Iterator[Table]:
    """Yield a table of the thresholds of each file that has any.

    Args:
        scored: The results.
        brief: Whether likelihood ratios and the share of calls are left out.
    """
    for number, result in enumerate(scored.results):
        if result.points:
            alone = len(scored.results) == 1
            title = TITLE if alone else f"{TITLE} of {result.name}"
            name = f"operating_points_{number}"
            yield _table(result, name, title, BRIEF if brief else COLUMNS)


def _table(result: Results, name: str, title: str, columns: Sequence[str]) -> Table:
    rows = _by_place(result.rows)
    first = {row.score: row for row in result.rows}
    shown = [first[score] for score in columns if score in first]
    asked = any(point.answer != "not asked" for point in result.points)
    heads = ["at", "target met?"] if asked else ["at"]
    subsets = list(dict.fromkeys(point.subset for point in result.points))
    lines = []
    for point in sorted(result.points, key=lambda point: subsets.index(point.subset)):
        for prevalence in _prevalences(result, point):
            at = rows.get((point.subset, point.rule, point.unit, prevalence), {})
            texts = [_threshold(point), point.answer][: len(heads)]
            cells = [TableCell(text="" if prevalence else text) for text in texts]
            cells += [score_cell(at.get(row.score)) for row in shown]
            lines.append(
                TableLine(
                    labels=(_words(point, prevalence),),
                    cells=tuple(cells),
                    section=subset_label(point.subset) if len(subsets) > 1 else "",
                    keys={"threshold": point.rule, "subset": point.subset},
                )
            )
    scores = [Column(label=f"{ARROW[row.better]} {row.label}") for row in shown]
    return Table(
        name=name,
        title=title,
        left=("threshold",),
        columns=(*(Column(label=head) for head in heads), *scores),
        lines=tuple(lines),
        level=result.level,
        notes=(*_sources(result.points), *([RULE] if asked else [])),
    )


Place = tuple[str, str, str, float | None]


def _by_place(rows: Sequence[ScoreRow]) -> Mapping[Place, Mapping[str, ScoreRow]]:
    """Return rows by subset, threshold, unit and prevalence, then by score."""
    places: dict[Place, dict[str, ScoreRow]] = {}
    for row in rows:
        at, unit = row.settings.get("threshold"), row.settings.get("unit", "item")
        if at is None and row.score == "sensitivity_at_specificity":
            place = (row.subset, ANY, unit, None)
            places.setdefault(place, {})["sensitivity"] = row
        elif at is not None:
            place = (row.subset, at, unit, row.settings.get("prevalence"))
            places.setdefault(place, {})[row.score] = row
    return places


def _prevalences(result: Results, point: OperatingPoint) -> list[float | None]:
    """Return None for the items as they are, and each further prevalence."""
    further = dict.fromkeys(
        row.settings["prevalence"]
        for row in result.rows
        if row.settings.get("threshold") == point.rule and "prevalence" in row.settings
    )
    return [None, *further]


def _words(point: OperatingPoint, prevalence: float | None = None) -> str:
    words = point.rule if point.unit == "item" else f"{point.rule}, per {point.unit}"
    return words if prevalence is None else f"{words}, at prevalence {prevalence:.4g}"


def _threshold(point: OperatingPoint) -> str:
    if math.isnan(point.threshold):
        return "ROC curve"
    return digits(point.threshold)


def _sources(points: Sequence[OperatingPoint]) -> Iterator[str]:
    """Yield where thresholds come from."""
    sources: dict[str, list[str]] = {}
    for point in points:
        if not point.source.startswith(("given", "the ROC curve")):
            sources.setdefault(point.source, []).append(_words(point))
    for source, rules in sources.items():
        yield f"{', '.join(dict.fromkeys(rules))}: {source}."
