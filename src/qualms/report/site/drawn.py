"""Figures as data for the charts of a page: ranges, classes of colours, marks as lists.

`Drawing` is the one declaration of a figure; `qualms.report._draw` makes PDF of it, and
this module what `assets/charts/panels.js` draws.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from qualms.report.figures import (
    FAINT,
    GRID,
    INK,
    SERIES,
    SOFT,
    BarMark,
    CloudMark,
    CurveMark,
    Drawing,
    HistogramMark,
    Mark,
    OutlineMark,
    Panel,
    PictureMark,
    PointMark,
    RuleMark,
    Ticks,
    WordMark,
)
from qualms.report.site._png import png_address, reduced, shades

FEW = 30
"""Curves with at most so many points, and a marker, show their points."""
LARGEST = 256
"""Pixels that a picture is wide at most; others are shown smaller."""
BUDGET = 700_000
"""Bytes of pixels in a figure, so that its data stay within a megabyte."""
Range = tuple[float, float]


class _Extent(NamedTuple):
    x: tuple[float, ...] = ()
    y: tuple[float, ...] = ()


def figure_data(drawing: Drawing) -> dict[str, Any]:
    """Return a figure as data for `assets/charts/panels.js`."""
    colours = _classes(drawing)
    panels = _with_labels_of_axes(drawing.rows)
    ranges = _ranges(panels)
    columns = max(len(row) for row in drawing.rows)
    side = _picture_side(drawing)
    width, height = drawing.size
    return {
        "title": drawing.title,
        "columns": columns,
        "aspect": min(max(height / width, 0.45), 1.5),
        "at": _start(panels, ranges),
        "panels": [
            _panel_data(
                panel, _side(drawing, number), ranges[number][at], colours, side
            )
            for number, row in enumerate(panels)
            for at, panel in enumerate(row)
        ],
    }


def _panel_data(
    panel: Panel,
    row: str,
    ranges: tuple[Range, Range],
    colours: Mapping[str, str],
    side: int,
) -> dict[str, Any]:
    picture = next((m for m in panel.marks if isinstance(m, PictureMark)), None)
    title = ", ".join(filter(None, (panel.title, row)))
    return {
        "title": " ".join(title.split()),
        "x": {
            **_axis(panel.x_label, ranges[0], panel.x_ticks),
            **({"log": True} if panel.x_log else {}),
        },
        "y": _axis(panel.y_label, ranges[1], panel.y_ticks),
        "bare": panel.bare,
        "empty": panel.empty,
        "picture": None
        if picture is None
        else picture.pixels.shape[0] / picture.pixels.shape[1],
        "marks": [_mark_data(mark, colours, side) for mark in panel.marks],
    }


def _axis(label: str, extent: Range, ticks: Ticks | None) -> dict[str, Any]:
    return {"label": label, "range": extent, "ticks": _tick_texts(ticks)}


def _tick_texts(ticks: Ticks | None) -> list[tuple[float, str]] | None:
    """Return places and words of ticks; None for those that suit the width."""
    if ticks is None:
        return None
    if isinstance(ticks, Mapping):
        texts = [(float(at), str(text)) for at, text in ticks.items()]
        # A figure on paper leaves words to its last row; panels stand alone here.
        return texts if not texts or any(text for _, text in texts) else None
    return [(float(at), f"{at:g}") for at in ticks]


def _mark_data(mark: Mark, colours: Mapping[str, str], side: int) -> dict[str, Any]:
    colour = getattr(mark, "colour", "")
    shared = {"name": getattr(mark, "label", ""), "c": colours.get(colour, "")}
    line = getattr(mark, "line", "-")
    if line != "-":
        shared["line"] = line
    if isinstance(mark, PictureMark):
        return {**shared, **_picture(mark, side)}
    return {**shared, **_OF[type(mark)](mark)}


def _curve(mark: CurveMark) -> dict[str, Any]:
    band = {} if mark.low is None else {"low": mark.low, "high": mark.high}
    dots = bool(mark.marker) and len(mark.x) <= FEW
    return {"kind": "curve", "x": mark.x, "y": mark.y, "dots": dots, **band}


def _point(mark: PointMark) -> dict[str, Any]:
    across = {"across": True} if mark.across else {}
    numbers = _numbers(mark, "x", "y", "low", "high", "hollow")
    return {"kind": "point", **numbers, **across}


def _bar(mark: BarMark) -> dict[str, Any]:
    return {"kind": "bar", **_numbers(mark, "x", "height", "low", "high", "width")}


def _histogram(mark: HistogramMark) -> dict[str, Any]:
    return {"kind": "histogram", **_numbers(mark, "edges", "heights", "base")}


def _cloud(mark: CloudMark) -> dict[str, Any]:
    return {"kind": "cloud", "x": mark.x, "y": mark.y}


def _rule(mark: RuleMark) -> dict[str, Any]:
    return {"kind": "rule", "start": mark.start, "end": mark.end}


def _word(mark: WordMark) -> dict[str, Any]:
    return {"kind": "word", **_numbers(mark, "x", "y", "text", "across", "up")}


def _picture_side(drawing: Drawing) -> int:
    """Return how many pixels wide the pictures of a figure may be."""
    marks = [m for p in drawing.panels for m in p.marks if isinstance(m, PictureMark)]
    colours = sum(3 if m.pixels.ndim == 3 or m.heat else 1 for m in marks)
    return min(LARGEST, math.isqrt(BUDGET // max(1, colours)))


def _picture(mark: PictureMark, side: int) -> dict[str, Any]:
    pixels = reduced(shades(mark.pixels, mark.scale, heat=mark.heat), side)
    return {"kind": "picture", "address": png_address(pixels)}


def _outline(mark: OutlineMark) -> dict[str, Any]:
    return {
        "kind": "outline",
        "shape": list(mark.region.shape),
        "path": _border(mark.region),
    }


_OF: Mapping[type, Any] = {
    CurveMark: _curve,
    PointMark: _point,
    BarMark: _bar,
    HistogramMark: _histogram,
    CloudMark: _cloud,
    RuleMark: _rule,
    WordMark: _word,
    OutlineMark: _outline,
}


def _numbers(mark: Any, *names: str) -> dict[str, Any]:
    return {name: getattr(mark, name) for name in names}


def _border(region: Any) -> str:
    """Return the border of a region as a path along the edges of its pixels."""
    padded = np.pad(np.asarray(region, bool), 1)
    across = padded[1:, 1:-1] != padded[:-1, 1:-1]
    down = padded[1:-1, 1:] != padded[1:-1, :-1]
    rows = (f"M{x},{y}h1" for y, x in zip(*np.nonzero(across), strict=True))
    columns = (f"M{x},{y}v1" for y, x in zip(*np.nonzero(down), strict=True))
    return "".join((*rows, *columns))


def _classes(drawing: Drawing) -> dict[str, str]:
    """Return the class of each colour; others than ours get classes in order."""
    classes = {colour: f"c{number}" for number, colour in enumerate(SERIES)}
    classes |= {INK: "ink", SOFT: "soft", GRID: "soft", FAINT: "c6", "#ffffff": "white"}
    free = 0
    for panel in drawing.panels:
        for mark in panel.marks:
            colour = getattr(mark, "colour", "")
            if colour not in classes:
                classes[colour] = f"c{free % len(SERIES)}"
                free += 1
    return classes


def _side(drawing: Drawing, number: int) -> str:
    """Return what the panels of a row have in common."""
    return drawing.sides[number] if number < len(drawing.sides) else ""


def _with_labels_of_axes(
    rows: Sequence[Sequence[Panel]],
) -> tuple[tuple[Panel, ...], ...]:
    """Return panels that stand alone, with what rows and columns share on paper.

    There only the first panel of a column has a title, only the last one names the x
    axis, and only the first of a row the y axis.
    """
    return tuple(
        tuple(_alone(rows, number, at) for at in range(len(row)))
        for number, row in enumerate(rows)
    )


def _alone(rows: Sequence[Sequence[Panel]], number: int, at: int) -> Panel:
    panel = rows[number][at]
    if panel.bare:
        return panel
    column = [(line, row[at]) for line, row in enumerate(rows) if at < len(row)]
    above = [each.title for line, each in reversed(column) if line <= number]
    below = [each.x_label for line, each in column if line >= number]
    beside = [each.y_label for each in rows[number]]
    return replace(
        panel,
        title=next(filter(None, above), ""),
        x_label=next(filter(None, below), ""),
        y_label=panel.y_label or next(filter(None, beside), ""),
    )


def _ranges(rows: Sequence[Sequence[Panel]]) -> list[list[tuple[Range, Range]]]:
    """Return the ranges of x and y of each panel; those that share y have the same."""
    own = [[_range_of(panel) for panel in row] for row in rows]
    shared: dict[str, list[Range]] = {}
    for row, ranges in zip(rows, own, strict=True):
        for panel, (_, y) in zip(row, ranges, strict=True):
            if panel.share and not panel.empty:
                shared.setdefault(panel.share, []).append(y)
    unions = {
        word: (min(low for low, _ in all_y), max(high for _, high in all_y))
        for word, all_y in shared.items()
    }
    return [
        [
            (x, unions.get(panel.share, y) if panel.share else y)
            for panel, (x, y) in zip(row, ranges, strict=True)
        ]
        for row, ranges in zip(rows, own, strict=True)
    ]


def _range_of(panel: Panel) -> tuple[Range, Range]:
    extents = [_EXTENT[type(mark)](mark) for mark in panel.marks]
    x = [value for extent in extents for value in extent.x]
    y = [value for extent in extents for value in extent.y]
    bars = any(isinstance(mark, BarMark | HistogramMark) for mark in panel.marks)
    lines = any(isinstance(mark, CurveMark | HistogramMark) for mark in panel.marks)
    low, high = _span(y, panel.y_range, on_floor=bars)
    if panel.x_log:
        across = _log_span(x, panel.x_range)
    else:
        across = _span(x, panel.x_range, tight=lines)
    return across, (low, max(min(high, panel.y_most), low + 1e-9))


def _log_span(
    values: Sequence[float], ends_of_axis: tuple[float | None, float | None]
) -> Range:
    """Return a range of a logarithmic axis, with room at both ends."""
    ends = tuple(None if end is None else math.log10(end) for end in ends_of_axis)
    logs = [math.log10(value) for value in values if value > 0]
    low, high = _span(logs, (ends[0], ends[1]))
    return 10**low, 10**high


def _span(
    values: Sequence[float],
    ends_of_axis: tuple[float | None, float | None],
    *,
    on_floor: bool = False,
    tight: bool = False,
) -> Range:
    """Return a range that holds all values, with a little room unless it is tight."""
    finite = [value for value in values if math.isfinite(value)] or [0.0, 1.0]
    low, high = min(finite), max(finite)
    room = 0.05 * (high - low) or 0.05 * abs(high) or 0.5
    if tight and high > low:
        room = 0.0
    first = low if on_floor and low == 0 else low - room
    return (
        first if ends_of_axis[0] is None else float(ends_of_axis[0]),
        high + room if ends_of_axis[1] is None else float(ends_of_axis[1]),
    )


def _start(
    rows: Sequence[Sequence[Panel]], ranges: Sequence[Sequence[tuple[Range, Range]]]
) -> float:
    """Return where curves are read at first, as a share of their range: at x = 0.2."""
    for row, of_row in zip(rows, ranges, strict=True):
        for panel, ((low, high), _) in zip(row, of_row, strict=True):
            if any(isinstance(mark, CurveMark) for mark in panel.marks):
                is_share = low <= 0 and 0.5 < high <= 1.2
                return (0.2 - low) / (high - low) if is_share else 0.2
    return 0.2


def _edges(values: Any) -> tuple[float, ...]:
    """Return the least and the largest of an array that are finite."""
    finite = np.asarray(values, float)
    finite = finite[np.isfinite(finite)]
    return (float(finite.min()), float(finite.max())) if finite.size else ()


def _curve_extent(mark: CurveMark) -> _Extent:
    bands = () if mark.low is None else (*_edges(mark.low), *_edges(mark.high))
    return _Extent(_edges(mark.x), (*_edges(mark.y), *bands))


def _bar_extent(mark: BarMark) -> _Extent:
    half = mark.width / 2 + 0.1
    return _Extent(
        (mark.x - half, mark.x + half), (0.0, mark.height, mark.low, mark.high)
    )


def _histogram_extent(mark: HistogramMark) -> _Extent:
    tops = _edges(mark.base + np.asarray(mark.heights))
    return _Extent(_edges(mark.edges), (mark.base, *tops))


def _point_extent(mark: PointMark) -> _Extent:
    ends = (mark.low, mark.high)
    if mark.across:
        return _Extent((mark.x, *ends), (mark.y,))
    return _Extent((mark.x,), (mark.y, *ends))


def _nowhere(_mark: Mark) -> _Extent:
    return _Extent()


_EXTENT: Mapping[type, Any] = {
    CurveMark: _curve_extent,
    PointMark: _point_extent,
    BarMark: _bar_extent,
    HistogramMark: _histogram_extent,
    CloudMark: lambda mark: _Extent(_edges(mark.x), _edges(mark.y)),
    RuleMark: lambda mark: _Extent(*zip(mark.start, mark.end, strict=True)),
    WordMark: lambda mark: _Extent((mark.x,), (mark.y,)),
    PictureMark: _nowhere,
    OutlineMark: _nowhere,
}
