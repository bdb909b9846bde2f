"""Segmented cases as a figure for paper: a row for each, its panels side by side."""

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from qualms.report.figures import (
    SERIES,
    Drawing,
    Mark,
    OutlineMark,
    Panel,
    PictureMark,
)
from qualms.report.pictures import label_picture
from qualms.report.site.case_view import middle_slice

MOST_PIXELS = 160
"""Pixels of a side at most; larger pictures are shown at every second pixel."""
_WIDTH = 7.2
"""Inches of the figure at most."""
_LONGEST = 22
_DARK = np.array([28, 34, 42], np.uint8)


class DrawnCase(NamedTuple):
    """A case with its panels, each of one slice."""

    name: str
    panels: tuple[Mapping[str, Any], ...]


def drawn_case(name: str, panels: Sequence[Mapping[str, Any]]) -> DrawnCase:
    """Return a case with the middle slice of each of its panels."""
    return DrawnCase(name, tuple({**p, "pixels": _slice(p)} for p in panels))


def case_drawing(
    cases: Sequence[DrawnCase], title: str, *, simulated: bool = False
) -> Drawing:
    """Return cases below one another, with the panels that the first one has."""
    columns = [panel["title"] for panel in cases[0].panels]
    rows = tuple(
        tuple(_panel(case, column, titled=number == 0) for column in columns)
        for number, case in enumerate(cases)
    )
    height, width = cases[0].panels[0]["pixels"].shape[:2]
    across = min(1.5, _WIDTH / len(columns))
    return Drawing(
        name="cases",
        title=title,
        caption="Image, raters, prediction and maps of uncertainty; of volumes the"
        " middle slice. Maps of entropies have one scale in each row.",
        rows=rows,
        sides=tuple(_cut(case.name) for case in cases),
        simulated=simulated,
        size=(across, across * min(2.0, max(0.4, height / width)) + 0.1),
        least=0.0,
    )


def _panel(case: DrawnCase, column: str, *, titled: bool) -> Panel:
    panel = next((each for each in case.panels if each["title"] == column), None)
    if panel is None:
        return Panel(empty="none", bare=True)
    title = column.replace(": ", "\n") if titled else ""
    return Panel(marks=tuple(_marks(case, panel)), title=title, bare=True)


def _marks(case: DrawnCase, panel: Mapping[str, Any]) -> list[Mark]:
    pixels, kind = panel["pixels"], panel["kind"]
    if kind == "regions":
        return [_ground(case, pixels), *_outlines(panel)]
    if kind == "labels":
        return [PictureMark(pixels=label_picture(pixels))]
    if kind == "heat":
        # 255 stands for values that are not defined.
        values = np.where(pixels == 255, np.nan, pixels / 254 * panel["largest"])
        return [PictureMark(pixels=values, scale=(0.0, panel["most"]), heat=True)]
    scale = (0.0, 255.0) if kind == "grey" else None
    return [PictureMark(pixels=pixels, scale=scale)]


def _ground(case: DrawnCase, pixels: NDArray[Any]) -> PictureMark:
    """Return what outlines stand on: the image of the case, or a dark ground."""
    first = case.panels[0]
    if first.get("ground"):
        scale = (0.0, 255.0) if first["kind"] == "grey" else None
        return PictureMark(pixels=first["pixels"], scale=scale)
    return PictureMark(pixels=np.broadcast_to(_DARK, (*pixels.shape, 3)))


def _outlines(panel: Mapping[str, Any]) -> list[OutlineMark]:
    inside = [
        (name, (panel["pixels"] >> bit) & 1 == 1)
        for bit, name in enumerate(panel["names"])
    ]
    return [
        OutlineMark(region=flags, colour=SERIES[bit], label=name)
        for bit, (name, flags) in enumerate(inside)
    ]


def _slice(panel: Mapping[str, Any]) -> NDArray[Any]:
    picture = middle_slice(panel)
    every = math.ceil(max(picture.shape[:2]) / MOST_PIXELS)
    return np.asarray(picture[::every, ::every])


def _cut(words: str) -> str:
    return words if len(words) <= _LONGEST else f"{words[: _LONGEST - 1]}…"
