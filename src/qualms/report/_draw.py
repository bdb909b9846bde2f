"""Figures as files: one way to draw every mark, with matplotlib.

The caption is written beside the picture, as text; the picture itself holds only what
is needed to read it.
"""

import io
import math
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING, Any

import numpy as np

from qualms.atomic import replacing
from qualms.report.figures import (
    FAINT,
    INK,
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

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MISSING = (
    "figures need matplotlib, which is not installed: "
    "pip install 'qualms-bench[report]'"
)
KINDS = ("pdf", "png")
LONGEST = 70
"""Letters of a name in a figure whose words may be of strangers."""
STYLE: dict[Any, Any] = {
    "font.size": 8,
    "axes.titlesize": 8,
    "axes.labelsize": 8,
    "axes.edgecolor": SOFT,
    "axes.labelcolor": INK,
    "axes.linewidth": 0.6,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "legend.frameon": False,
    "legend.fontsize": 8,
    "text.color": INK,
    "xtick.color": SOFT,
    "ytick.color": SOFT,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "pdf.fonttype": 42,
    "text.parse_math": False,
    "savefig.dpi": 200,
}


def draw(drawing: Drawing, folder: Path) -> list[Path]:
    """Write a figure as PDF and PNG, and its caption as text; return the paths."""
    folder.mkdir(parents=True, exist_ok=True)
    caption = folder / f"{drawing.name}.txt"
    with _canvas(drawing) as figure:
        _compose(figure, drawing)
        paths = _save(figure, folder, drawing.name)
    with replacing(caption) as temporary:
        temporary.write_text(drawing.text, encoding="utf-8")
    return [*paths, caption]


def drawn_pdf(drawing: Drawing) -> bytes:
    """Return a figure as the bytes of a PDF file; its words may be of strangers."""
    file = io.BytesIO()
    drawing = _with_plain_words(drawing)
    with _canvas(drawing) as figure, warnings.catch_warnings():
        # Letters that the font lacks are drawn as boxes.
        warnings.simplefilter("ignore", UserWarning)
        _compose(figure, drawing)
        figure.savefig(file, format="pdf", metadata={"CreationDate": None})
    return file.getvalue()


def _with_plain_words(drawing: Drawing) -> Drawing:
    """Return a figure whose words are short and have no letters that fonts refuse."""
    rows = tuple(tuple(map(_plain_panel, row)) for row in drawing.rows)
    return replace(drawing, rows=rows, sides=tuple(map(_plain_words, drawing.sides)))


def _plain_panel(panel: Panel) -> Panel:
    marks = tuple(_plain_mark(mark) for mark in panel.marks)
    names = ("title", "x_label", "y_label", "empty")
    words = {name: _plain_words(getattr(panel, name)) for name in names}
    return replace(panel, marks=marks, **words)  # type: ignore[arg-type]


def _plain_mark(mark: Mark) -> Mark:
    if isinstance(mark, WordMark):
        return mark._replace(text=_plain_words(mark.text))
    if isinstance(mark, RuleMark):
        return mark._replace(label=_plain_words(mark.label))
    if isinstance(mark, PictureMark):
        return mark
    return replace(mark, label=_plain_words(mark.label))


def _plain_words(words: str) -> str:
    shown = words if len(words) <= LONGEST else f"{words[: LONGEST - 1]}…"
    return "".join(c if c.isprintable() or c == "\n" else "?" for c in shown)


@contextmanager
def _canvas(drawing: Drawing) -> Iterator["Figure"]:
    """Yield an empty figure in our style; global settings stay as they are."""
    try:
        from matplotlib import rc_context
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ValueError(MISSING) from error
    keys = -(-len(drawing.labels) // drawing.columns)
    height = drawing.size[1] * len(drawing.rows) + 0.25 + 0.18 * keys
    with rc_context(STYLE):
        yield Figure(figsize=(drawing.width, height), layout="constrained")


def _compose(figure: "Figure", drawing: Drawing) -> None:
    count = max(len(row) for row in drawing.rows)
    grid = figure.subplots(len(drawing.rows), count, squeeze=False)
    for axes_row, row in zip(grid, drawing.rows, strict=True):
        for axes, panel in zip(axes_row, row, strict=False):
            fill_axes(axes, panel)
        for axes in axes_row[len(row) :]:
            axes.set_visible(False)
    _align(grid, drawing)
    for axes_row, side in zip(grid, drawing.sides, strict=False):
        _write_beside(axes_row[-1], side)
    figure.align_ylabels()
    handles = [legend_key(label, mark) for label, mark in drawing.keyed.items()]
    if handles:
        figure.legend(
            handles=handles, loc="outside lower center", ncols=drawing.columns
        )
    if drawing.simulated:
        # A picture may be copied without its caption, so it says this itself.
        figure.suptitle("simulated data", x=0.995, ha="right", fontsize=6, color=FAINT)


def _align(grid: Any, drawing: Drawing) -> None:
    """Set the same range of y for panels with the same `share`."""
    shared: dict[str, list[Axes]] = {}
    for axes_row, row in zip(grid, drawing.rows, strict=True):
        for axes, panel in zip(axes_row, row, strict=False):
            if panel.share and not panel.empty:
                shared.setdefault(panel.share, []).append(axes)
    for group in shared.values():
        low = min(axes.get_ylim()[0] for axes in group)
        high = max(axes.get_ylim()[1] for axes in group)
        for axes in group:
            axes.set_ylim(low, high)


def fill_axes(axes: "Axes", panel: Panel) -> None:
    """Draw `panel` into `axes`."""
    axes.set_title(panel.title)
    axes.set_xlabel(panel.x_label)
    axes.set_ylabel(panel.y_label)
    if panel.empty:
        words = fill(panel.empty, 18)
        axes.text(0.5, 0.5, words, ha="center", va="center", color=SOFT)
        axes.set_xticks([])
        axes.set_yticks([])
        return
    for mark in panel.marks:
        _DRAW[type(mark)](axes, mark)
    if panel.x_log:
        _set_log_scale(axes)
    _set_ticks(axes.set_xticks, panel.x_ticks)
    _set_ticks(axes.set_yticks, panel.y_ticks)
    axes.set_xlim(*panel.x_range)
    axes.set_ylim(*panel.y_range)
    if axes.get_ylim()[1] > panel.y_most:
        axes.set_ylim(top=panel.y_most)
    if panel.bare:
        axes.set_xticks([])
        axes.set_yticks([])
    if panel.bare or not panel.framed:
        axes.spines[["left", "bottom"]].set_visible(False)


def _set_log_scale(axes: "Axes") -> None:
    """Make x logarithmic, with plain numbers at 1, 2 and 5 of each power."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    axes.set_xscale("log")
    axes.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.xaxis.set_minor_formatter(NullFormatter())


def _set_ticks(setter: Any, ticks: Ticks | None) -> None:
    if isinstance(ticks, Mapping):
        setter(list(ticks), list(ticks.values()))
    elif ticks is not None:
        setter(list(ticks))


def _draw_cloud(axes: "Axes", mark: CloudMark) -> None:
    look: dict[str, Any] = {"marker": mark.marker, "ms": 2.5, "mew": 0, "ls": ""}
    axes.plot(mark.x, mark.y, color=mark.colour, alpha=0.7, **look)


def _draw_rule(axes: "Axes", mark: RuleMark) -> None:
    (x0, y0), (x1, y1) = mark.start, mark.end
    axes.plot([x0, x1], [y0, y1], color=mark.colour, lw=0.8, ls=mark.line)


def _draw_words(axes: "Axes", mark: WordMark) -> None:
    look: dict[str, Any] = {"ha": mark.across, "va": mark.up}
    axes.text(mark.x, mark.y, mark.text, fontsize=mark.size, **look)


def _draw_picture(axes: "Axes", mark: PictureMark) -> None:
    colours = ("inferno" if mark.heat else "gray") if mark.pixels.ndim == 2 else None
    low, high = mark.scale or (None, None)
    axes.imshow(mark.pixels, cmap=colours, vmin=low, vmax=high, interpolation="nearest")
    # Marks on a picture must not make it smaller.
    axes.autoscale(enable=False)


def _draw_outline(axes: "Axes", mark: OutlineMark) -> None:
    # A region without border has no contour, and matplotlib would warn.
    if mark.region.any() and not mark.region.all():
        edge = np.pad(mark.region.astype(np.float64), 1)
        height, width = edge.shape
        x, y = np.arange(width) - 1, np.arange(height) - 1
        look: dict[str, Any] = {"colors": mark.colour, "linestyles": mark.line}
        axes.contour(x, y, edge, levels=[0.5], linewidths=0.9, **look)


def _draw_bar(axes: "Axes", mark: BarMark) -> None:
    axes.bar(mark.x, mark.height, width=mark.width, color=mark.colour)
    if math.isfinite(mark.low):
        # A little left of the middle; a published number stands right of it.
        at = mark.x - 0.1875 * mark.width
        axes.vlines(at, mark.low, mark.high, color=INK, lw=min(1, 2.5 * mark.width))


def _draw_curve(axes: "Axes", mark: CurveMark) -> None:
    step = max(1, len(mark.x) // 5)
    look: dict[str, Any] = {"color": mark.colour, "ls": mark.line, "lw": 1.2}
    if mark.marker:
        every = (int(step * mark.turn), step)
        look |= {"marker": mark.marker, "ms": 3, "mew": 0, "markevery": every}
    axes.plot(mark.x, mark.y, **look)
    if mark.low is not None and mark.high is not None:
        axes.fill_between(
            mark.x, mark.low, mark.high, color=mark.colour, alpha=0.16, lw=0
        )


def _draw_point(axes: "Axes", mark: PointMark) -> None:
    if math.isfinite(mark.low):
        lines, at = (axes.hlines, mark.y) if mark.across else (axes.vlines, mark.x)
        lines(at, mark.low, mark.high, color=mark.colour, lw=0.9)
    axes.plot(
        mark.x,
        mark.y,
        marker=mark.marker,
        color=mark.colour,
        mfc="white" if mark.hollow else mark.colour,
        mew=1.0 if mark.hollow else 0.4,
        mec=mark.colour if mark.hollow else "white",
        ms=mark.size,
        ls="",
        zorder=5,
    )


def _draw_histogram(axes: "Axes", mark: HistogramMark) -> None:
    from matplotlib.collections import PolyCollection
    from matplotlib.colors import to_rgba

    steps = np.concatenate([[0.0], np.repeat(mark.heights, 2), [0.0]])
    outline = np.column_stack([np.repeat(mark.edges, 2), mark.base + steps])
    polygon = PolyCollection([outline], facecolors=to_rgba(mark.colour, 0.35), lw=0.8)
    polygon.set_edgecolor(mark.colour)
    axes.add_collection(polygon)


_DRAW: dict[type, Callable[["Axes", Any], None]] = {
    BarMark: _draw_bar,
    CloudMark: _draw_cloud,
    CurveMark: _draw_curve,
    HistogramMark: _draw_histogram,
    OutlineMark: _draw_outline,
    PictureMark: _draw_picture,
    PointMark: _draw_point,
    RuleMark: _draw_rule,
    WordMark: _draw_words,
}


def _write_beside(axes: "Axes", text: str) -> None:
    """Write `text` at the right of a row of panels."""
    axes.annotate(
        text,
        xy=(1.03, 0.5),
        xycoords="axes fraction",
        rotation=270,
        ha="left",
        va="center",
    )


def legend_key(label: str, mark: Mark) -> Any:
    """Return the line or patch that stands before `label` in a legend."""
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    hollow = isinstance(mark, PointMark) and mark.hollow
    colour = INK if hollow else getattr(mark, "colour", INK)
    if isinstance(mark, BarMark | HistogramMark):
        alpha = 0.6 if isinstance(mark, HistogramMark) else 1.0
        return Patch(color=colour, alpha=alpha, label=label)
    line: Any = getattr(mark, "line", "none")
    marker = getattr(mark, "marker", "") or "none"
    return Line2D(
        [],
        [],
        label=label,
        color=colour,
        marker=marker,
        markerfacecolor="white" if hollow else colour,
        markersize=5,
        linestyle=line,
        linewidth=1,
    )


def _save(figure: "Figure", folder: Path, name: str) -> list[Path]:
    # Laid out once; working it out for each kind takes as long as drawing.
    figure.draw_without_rendering()
    figure.set_layout_engine(None)
    paths = []
    for kind in KINDS:
        path = folder / f"{name}.{kind}"
        # Without a date the same numbers give the same bytes.
        metadata: dict[str, Any] = {"CreationDate": None} if kind == "pdf" else {}
        with replacing(path) as temporary:
            figure.savefig(temporary, format=kind, metadata=metadata)
        paths.append(path)
    return paths
