"""Figures with fewer points, which look the same at the width of a page."""

from dataclasses import replace

import numpy as np

from qualms.arrays import Array, Index
from qualms.evaluate.drawings import thin
from qualms.report.figures import CloudMark, CurveMark, Drawing, Mark, Panel

CELLS = 160
"""Columns and rows of the raster of a cloud, in which one point per cell is kept."""


def thinned(drawing: Drawing) -> Drawing:
    """Return a figure whose curves and clouds have no more points than can be seen."""
    rows = tuple(tuple(map(_thin_panel, row)) for row in drawing.rows)
    return replace(drawing, rows=rows)


def _thin_panel(panel: Panel) -> Panel:
    return replace(panel, marks=tuple(map(_thin_mark, panel.marks)))


def _thin_mark(mark: Mark) -> Mark:
    if isinstance(mark, CloudMark):
        points = _one_per_cell(mark.x, mark.y)
        return replace(mark, x=mark.x[points], y=mark.y[points])
    if isinstance(mark, CurveMark):
        points = thin(mark.y)
        low = None if mark.low is None else mark.low[points]
        high = None if mark.high is None else mark.high[points]
        return replace(mark, x=mark.x[points], y=mark.y[points], low=low, high=high)
    return mark


def _one_per_cell(x: Array, y: Array) -> Index:
    """Return the first point of each cell of a raster, and none that is undefined."""
    defined = np.flatnonzero(np.isfinite(x) & np.isfinite(y)).astype(np.int64)
    if not len(defined):
        return defined
    column, row = _cells(x[defined]), _cells(y[defined])
    first = np.unique(column * (CELLS + 1) + row, return_index=True)[1]
    points: Index = defined[np.sort(first)]
    return points


def _cells(values: Array) -> Index:
    low, extent = float(values.min()), float(np.ptp(values))
    cells: Index = (CELLS * (values - low) / (extent or 1.0)).astype(np.int64)
    return cells
