"""The vocabulary of figures: what may stand in a panel.

A figure is a record (`Drawing`) of panels that hold marks: curves with bands, bars,
points, histograms, reference lines, words, pictures and outlines.
`qualms.report._draw` makes files of it.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from textwrap import fill
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from qualms.arrays import Array, Flags

# Six colours that all common kinds of sight tell apart on white (CIEDE2000 >= 15).
SERIES = ("#2938b5", "#a62b05", "#207b54", "#b35585", "#1f99c7", "#a38b23")
INK, SOFT, GRID, FAINT = "#14191f", "#55606c", "#dfe4e9", "#66717d"
RIGHT, WRONG = SERIES[0], SERIES[1]
"""Colours of right and of wrong decisions."""
MARKERS = "osD^vPXhp*"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CurveMark:
    """A line, with a band between `low` and `high` where they are given."""

    x: Array
    y: Array
    colour: str
    low: Array | None = None
    high: Array | None = None
    marker: str = ""
    label: str = ""
    """In the legend; '' for no entry."""
    line: str = "-"
    turn: float = 0.5
    """Where along the curve its markers begin, 0 to 1, so that those of several curves
    do not hide each other."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PointMark:
    """A point with its interval; hollow for a published number."""

    x: float
    y: float
    colour: str = INK
    marker: str = "o"
    low: float = math.nan
    high: float = math.nan
    hollow: bool = False
    label: str = ""
    size: float = 5.0
    across: bool = False
    """True if the interval is of x, and not of y."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BarMark:
    """A bar from 0, with its interval."""

    x: float
    height: float
    colour: str
    low: float = math.nan
    high: float = math.nan
    label: str = ""
    width: float = 0.8


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class HistogramMark:
    """The outline of a histogram that stands on `base`."""

    edges: Array
    """(bins + 1,)"""
    heights: Array
    """(bins,)"""
    colour: str
    base: float = 0.0
    label: str = ""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PictureMark:
    """Pixels (H, W) or (H, W, 3), with nothing but outlines on them."""

    pixels: NDArray[Any]
    scale: tuple[float, float] | None = None
    """Values of the first and the last colour; None for those of the pixels."""
    heat: bool = False
    """True for a map of some quantity, from dark to bright; false for a picture."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class OutlineMark:
    """The border of a region of a picture."""

    region: Flags
    """(H, W)"""
    colour: str
    label: str = ""
    line: str = "-"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CloudMark:
    """Many points of one kind."""

    x: Array
    y: Array
    colour: str
    marker: str = "o"
    label: str = ""


class RuleMark(NamedTuple):
    """A straight reference line from one point to another."""

    start: tuple[float, float]
    end: tuple[float, float]
    colour: str = SOFT
    line: str = "-"
    label: str = ""


class WordMark(NamedTuple):
    """Words at a place."""

    x: float
    y: float
    text: str
    across: str = "center"
    up: str = "center"
    size: float = 8.0


Mark = (
    CurveMark
    | PointMark
    | CloudMark
    | BarMark
    | HistogramMark
    | PictureMark
    | OutlineMark
    | RuleMark
    | WordMark
)


def is_visible(mark: Mark) -> bool:
    """Return whether anything of a mark can be seen."""
    match mark:
        case PointMark(x=x, y=y):
            return math.isfinite(x) and math.isfinite(y)
        case BarMark(x=x, height=height):
            return math.isfinite(x) and math.isfinite(height)
        case CurveMark(x=x, y=y) | CloudMark(x=x, y=y):
            return bool((np.isfinite(x) & np.isfinite(y)).any())
        case HistogramMark(heights=heights):
            return bool((np.nan_to_num(heights) > 0).any())
        case OutlineMark(region=region):
            return bool(region.any())
        case RuleMark(start=start, end=end):
            return all(map(math.isfinite, (*start, *end)))
        case _:
            return True


_PER_INCH = 15
"""Letters of a legend that fit into an inch."""
Ticks = Sequence[float] | Mapping[float, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Panel:
    """One pair of axes and what stands in it."""

    marks: tuple[Mark, ...] = ()
    title: str = ""
    x_label: str = ""
    y_label: str = ""
    x_range: tuple[float | None, float | None] = (None, None)
    y_range: tuple[float | None, float | None] = (None, None)
    x_ticks: Ticks | None = None
    """Places, or places with their words; None for those that suit the numbers."""
    y_ticks: Ticks | None = None
    x_log: bool = False
    """True if the x axis is logarithmic."""
    y_most: float = math.inf
    """The axis ends here at the latest, whatever room is left above."""
    empty: str = ""
    """Why there is nothing in it, where that is so."""
    share: str = ""
    """Panels with the same word share the range of y."""
    framed: bool = True
    """True if its axes have lines."""
    bare: bool = False
    """True if it has neither lines nor ticks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawing:
    """A figure: rows of panels, and the words that go beside it."""

    name: str
    """Name of its files, without ending."""
    title: str
    caption: str
    """Content, data and reading of the figure, for someone new to it."""
    rows: tuple[tuple[Panel, ...], ...]
    sides: tuple[str, ...] = ()
    """Words that the panels of each row have in common; they stand right of the row."""
    simulated: bool = False
    size: tuple[float, float] = (1.85, 1.7)
    """Width and height of a panel, in inches."""
    least: float = 4.6
    """Width of the figure at least, in inches."""
    legend_columns: int = 4

    @property
    def text(self) -> str:
        """Title and caption, as the file beside the picture holds them."""
        return f"{self.title}\n\n{fill(self.caption, 100)}\n"

    @property
    def panels(self) -> tuple[Panel, ...]:
        """All of them."""
        return tuple(panel for row in self.rows for panel in row)

    @property
    def labels(self) -> tuple[str, ...]:
        """Entries of its legend."""
        return tuple(self.keyed)

    @property
    def width(self) -> float:
        """Of the figure, in inches."""
        return max(self.least, self.size[0] * max(len(row) for row in self.rows))

    @property
    def columns(self) -> int:
        """Of its legend: as many as fit."""
        longest = max((len(label) for label in self.labels), default=0)
        fitting = int(_PER_INCH * self.width / (longest + 6))
        return max(1, min(len(self.labels), self.legend_columns, fitting))

    @property
    def keyed(self) -> dict[str, Mark]:
        """A mark for each entry of the legend, by its words."""
        marks: dict[str, Mark] = {}
        for panel in self.panels:
            for mark in panel.marks:
                label = getattr(mark, "label", "")
                if label and is_visible(mark):
                    marks.setdefault(label, mark)
        return marks
