"""Captions that promise only what is drawn.

A sentence about a kind of mark, such as hollow points, stands in the caption of a
figure only where one of its panels has such a mark.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import numpy as np

from qualms.report.figures import (
    BarMark,
    CurveMark,
    Mark,
    Panel,
    PointMark,
    RuleMark,
)


class If(NamedTuple):
    """A sentence, and the kind of mark that it is about."""

    drawn: Callable[[Mark], bool]
    sentence: str


def caption(rows: Iterable[Sequence[Panel]], *parts: str | If) -> str:
    """Join the sentences of a caption, without those about marks that are not drawn.

    Args:
        rows: The panels of the figure.
        parts: Sentences in order; '' for none.
    """
    marks = [mark for row in rows for panel in row for mark in panel.marks]
    return " ".join(filter(None, (_said(part, marks) for part in parts)))


def _said(part: str | If, marks: Sequence[Mark]) -> str:
    if isinstance(part, str):
        return part
    return part.sentence if any(map(part.drawn, marks)) else ""


def hollow(mark: Mark) -> bool:
    """Return whether a mark is a hollow point, as published numbers are."""
    return isinstance(mark, PointMark) and mark.hollow


def ranged(mark: Mark) -> bool:
    """Return whether a mark of ours is a bar or point with an interval."""
    if not isinstance(mark, BarMark | PointMark) or hollow(mark):
        return False
    return math.isfinite(mark.low) and math.isfinite(mark.high)


def banded(mark: Mark) -> bool:
    """Return whether a mark is a curve with a band that has a width."""
    if not isinstance(mark, CurveMark) or mark.low is None or mark.high is None:
        return False
    return bool((np.nan_to_num(mark.high - mark.low) > 0).any())


def lined(line: str, label: str | None = None) -> Callable[[Mark], bool]:
    """Return whether a mark is a straight line of this style, and with this label."""

    def drawn(mark: Mark) -> bool:
        same = isinstance(mark, RuleMark) and mark.line == line
        return same and (label is None or getattr(mark, "label", "") == label)

    return drawn
