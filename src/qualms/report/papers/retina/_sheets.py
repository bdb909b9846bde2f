"""A grid of panels with curves as one figure."""

from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from qualms.evaluate.benchmark import BenchmarkResults
from qualms.report._style import OTHER, canvas, grid, legend_key, save, say
from qualms.report.papers.retina._panels import (
    LABELS,
    Curve,
    Panel,
    band_of,
    draw_panel,
    is_drawn,
    points_of,
)
from qualms.report.papers.retina._words import beside, wrapped

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_LETTERS = "abcdefgh"


class Strip(NamedTuple):
    """A row of panels."""

    side: str
    """What its curves have in common; stands right of it."""
    panels: tuple[Panel, ...]


class Sheet(NamedTuple):
    """A figure."""

    file: str
    title: str
    remark: str
    strips: tuple[Strip, ...]


def write_sheet(results: BenchmarkResults, sheet: Sheet, folder: Path) -> list[Path]:
    """Draw one figure; gives its files, none where nothing was judged for it."""
    strips = [
        strip
        for strip in sheet.strips
        if any(is_drawn(results, panel) for panel in strip.panels)
    ]
    if not strips:
        return []
    count = len(strips[0].panels)
    width = max(4.6, 1.85 * count)
    height = 2.1 if len(strips) == 1 else 1.62
    with canvas(width, height * len(strips) + 1.05) as figure:
        lines = grid(figure, len(strips), count)
        for axes, strip in zip(lines, strips, strict=True):
            for place, panel in zip(axes, strip.panels, strict=True):
                draw_panel(place, results, panel)
            beside(axes[-1], strip.side)
        _named(lines, strips)
        _alike(lines, strips)
        figure.align_ylabels()
        handles = _handles(results, strips)
        say(
            figure,
            wrapped(sheet.title, width),
            wrapped(f"{sheet.remark}; {_remark(results, strips)}", width),
            handles,
            columns=min(len(handles), 3 if width < 5 else 4),
        )
        return save(figure, folder, sheet.file)


def _named(lines: list[list["Axes"]], strips: list[Strip]) -> None:
    for axes, strip in zip(lines, strips, strict=True):
        for place, panel in zip(axes, strip.panels, strict=True):
            below, left = LABELS[panel.name]
            place.set_ylabel(left)
            if strip is strips[-1]:
                place.set_xlabel(below)
            else:
                place.tick_params(labelbottom=False)
    for letter, place, panel in zip(_LETTERS, lines[0], strips[0].panels, strict=False):
        place.set_title(f"({letter}) {panel.title}")


def _alike(lines: list[list["Axes"]], strips: list[Strip]) -> None:
    """Panels that show the same score of the same items share their limits."""
    places: dict[tuple[str, str], list[Axes]] = {}
    for axes, strip in zip(lines, strips, strict=True):
        for place, panel in zip(axes, strip.panels, strict=True):
            places.setdefault((panel.name, panel.subset), []).append(place)
    for alike in places.values():
        low = min(place.get_ylim()[0] for place in alike)
        high = max(place.get_ylim()[1] for place in alike)
        for place in alike:
            place.set_ylim(low, high)


def _handles(results: BenchmarkResults, strips: list[Strip]) -> list[Any]:
    drawn = _drawn(strips)
    curves = {curve.label: curve for _, curve in drawn}
    handles = [
        legend_key(label, colour=curve.colour, marker=curve.marker, line="-")
        for label, curve in curves.items()
    ]
    if _has_roc(strips):
        handles.append(legend_key("NHS recommendation", colour="black", marker="o"))
    if any(points_of(results, panel, curve) for panel, curve in drawn):
        handles.append(legend_key("published (hollow)", colour=OTHER, marker="o"))
    return handles


def _remark(results: BenchmarkResults, strips: list[Strip]) -> str:
    bands = _bands(results, strips)
    if not _has_roc(strips):
        return bands
    return f"{bands}; NHS: 85 % sensitivity at 80 % specificity"


def _bands(results: BenchmarkResults, strips: list[Strip]) -> str:
    """What bands show, and why curves may have none."""
    found = [band_of(results, panel, curve) for panel, curve in _drawn(strips)]
    wide = [bool(np.isfinite(band.stderr).any()) for band in found if band is not None]
    if not any(wide):
        return "one repeat, so no bands"
    alone = "" if all(wide) else ", none of a single repeat"
    return f"bands: standard error{alone}"


def _drawn(strips: list[Strip]) -> list[tuple[Panel, Curve]]:
    return [
        (panel, curve)
        for strip in strips
        for panel in strip.panels
        for curve in panel.curves
    ]


def _has_roc(strips: list[Strip]) -> bool:
    return any(panel.name == "roc" for strip in strips for panel in strip.panels)
