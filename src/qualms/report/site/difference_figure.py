"""Differences from a reference as a figure for paper."""

import math
from collections.abc import Sequence
from textwrap import fill

from qualms.evaluate import PairedDifference, PairedScore
from qualms.report.figures import FAINT, SERIES, Drawing, Panel, PointMark, RuleMark
from qualms.report.site.paired import ComparedRows, score_words
from qualms.wording import plural

COLUMNS = 4
MOST_PANELS = 24
"""Scores in a figure, which fill a page."""
_WIDTH = 1.85
_ROW, _AXES = 0.15, 0.55
"""Inches of a row of a panel, and of its title and ticks."""
_LONGEST = 24
"""Letters of the name of a row, and of a line of a title."""


def difference_drawing(compared: ComparedRows, reference: str) -> Drawing:
    """Return every row minus a reference, a panel for each score.

    As on the page, each panel has its own scale with 0 in the middle, and a row is
    better than the reference to the right of it.
    """
    rows = [row for row in compared.rows if row != reference]
    shown = [score for score in compared.scores if _gaps(score, rows, reference)]
    panels = [
        _panel(compared, score, rows, reference, first=at % COLUMNS == 0)
        for at, score in enumerate(shown[:MOST_PANELS])
    ]
    lines = tuple(
        tuple(panels[at : at + COLUMNS]) for at in range(0, len(panels), COLUMNS)
    )
    return Drawing(
        name=compared.slug,
        title=f"{compared.group}, {compared.title}: differences from"
        f" {compared.rows[reference]}",
        caption=_caption(compared, len(shown)),
        rows=lines or ((Panel(empty="no difference is known"),),),
        simulated=compared.simulated,
        size=(_WIDTH, _AXES + _ROW * max(2, len(rows))),
    )


def _caption(compared: ComparedRows, scores: int) -> str:
    first = (
        f" The first {MOST_PANELS} of {scores} {plural(scores, 'score')}."
        if scores > MOST_PANELS
        else ""
    )
    return (
        f"Differences on the same items, with {compared.level:.0%} intervals. To the"
        " right of 0 a row is better than the reference. A filled dot has an interval"
        f" without 0; a dot without a line has no interval.{first}"
    )


def _gaps(
    score: PairedScore, rows: Sequence[str], reference: str
) -> dict[str, PairedDifference]:
    gaps = {row: score.difference(row, reference) for row in rows}
    return {row: gap for row, gap in gaps.items() if gap is not None}


def _panel(
    compared: ComparedRows,
    score: PairedScore,
    rows: Sequence[str],
    reference: str,
    *,
    first: bool,
) -> Panel:
    gaps = _gaps(score, rows, reference)
    colours = {row: _colour(at) for at, row in enumerate(compared.rows)}
    ends = (end for gap in gaps.values() for end in (gap.value, gap.low, gap.high))
    most = 1.05 * max((abs(end) for end in ends if math.isfinite(end)), default=1.0)
    most = most or 1.0
    sign = 1 if score.better == "higher" and score.aim is None else -1
    marks = tuple(
        PointMark(
            x=gap.value,
            y=-rows.index(row),
            low=gap.low,
            high=gap.high,
            colour=colours[row],
            hollow=not gap.low * gap.high > 0,
            across=True,
        )
        for row, gap in gaps.items()
    )
    zero = RuleMark((0.0, 0.6 - len(rows)), (0.0, 0.4))
    names = {-float(at): _cut(compared.rows[row]) for at, row in enumerate(rows)}
    return Panel(
        marks=(zero, *marks),
        title="\n".join(fill(each, _LONGEST) for each in score_words(score) if each),
        x_range=(-sign * most, sign * most),
        y_range=(0.4 - len(rows), 0.6),
        y_ticks=names if first else dict.fromkeys(names, ""),
    )


def _colour(at: int) -> str:
    return SERIES[at] if at < len(SERIES) else FAINT


def _cut(words: str) -> str:
    return words if len(words) <= _LONGEST else f"{words[: _LONGEST - 1]}…"
