"""Tables of the worst group and of differences between groups."""

from collections.abc import Iterator
from dataclasses import replace

from qualms.evaluate import GroupSpread, Results, Scored
from qualms.evaluate.judging import judging_of
from qualms.evaluate.subsets import subset_label
from qualms.inference import Bounded
from qualms.report._scored import ARROW
from qualms.report.table import Column, Table, TableCell, TableLine

TITLE = "Differences between groups"
NOTE = (
    "The interval of the worst group holds whichever group that is, and that of the "
    "difference from the best one whichever these are."
)


def spread_tables(scored: Scored, *, brief: bool = False) -> Iterator[Table]:
    """Yield a table of the groups of each file that has any.

    Args:
        scored: The results.
        brief: Whether only the scores that are shown for every group have a line, and
            those at thresholds.
    """
    for number, result in enumerate(scored.results):
        if brief:
            result = _of_main_scores(result)
        if result.groups:
            alone = len(scored.results) == 1
            title = TITLE if alone else f"{TITLE} of {result.name}"
            yield _table(result, f"group_spreads_{number}", title)


def _of_main_scores(result: Results) -> Results:
    main = judging_of(result.task).shown(result.rows).grouped
    groups = (g for g in result.groups if g.score in main or "threshold" in g.settings)
    return replace(result, groups=tuple(groups))


def _table(result: Results, name: str, title: str) -> Table:
    sections = dict.fromkeys(map(_section, result.groups))
    ordered = [
        spread
        for section in sections
        for spread in result.groups
        if _section(spread) == section
    ]
    return Table(
        name=name,
        title=title,
        left=("score", "by"),
        columns=(
            Column(label="worst group"),
            Column(label="its score"),
            Column(label="best group"),
            Column(label="difference"),
        ),
        lines=tuple(
            TableLine(
                labels=(f"{ARROW[spread.better]} {spread.label}", spread.detail),
                cells=(
                    TableCell(text=spread.worst),
                    _bounded(spread.least),
                    TableCell(text=spread.best),
                    _bounded(spread.gap),
                ),
                section=_section(spread) if len(sections) > 1 else "",
                keys={"score": spread.score, "array": spread.array},
            )
            for spread in ordered
        ),
        level=result.level,
        notes=(NOTE, *_left_out(result)),
    )


def _section(spread: GroupSpread) -> str:
    of_kind = "" if spread.subset == "all" else f"{subset_label(spread.subset)}, "
    return f"{of_kind}{spread.array.removeprefix('group/')}"


def _bounded(value: Bounded) -> TableCell:
    return TableCell(mean=value.value, low=value.low, high=value.high)


def _left_out(result: Results) -> Iterator[str]:
    without: dict[str, dict[str, None]] = {}
    for spread in result.groups:
        for name in spread.left_out:
            without.setdefault(name, {})[spread.label] = None
    for name, labels in without.items():
        yield f"{name} has no interval, and is left out, by {', '.join(labels)}."
