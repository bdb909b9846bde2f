"""Coverage error against how much larger the error on test is: figures A16 and A17."""

import math
from pathlib import Path
from typing import TYPE_CHECKING

from qualms.benchmarks import Variant
from qualms.report._style import OTHER, canvas, grid, legend_key, save, say
from qualms.report.papers.regression._points import (
    COMMON,
    REAL,
    SYNTHETIC,
    Source,
    coverage_error,
    printed,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#D55E00", "#56B4E9")
_MARKERS = "osD^vP"


def distance_figure(
    source: Source, name: str, labels: tuple[str, ...], folder: Path
) -> list[Path]:
    """Draw one figure; of the paper's points only the height is in print.

    The shift is measured by test MAE minus val MAE of the direct networks, in units of
    the latter: the datasets have targets of different units, and the paper does not
    say which difference it takes.
    """
    variants = [v for v in source.judged(labels, COMMON) if _measured(source, v)]
    if len(variants) < 2:
        return []
    with canvas(5.4, 3.4) as figure:
        ((panel,),) = grid(figure, 1, 1)
        handles = []
        for variant in variants:
            place = labels.index(variant.label)
            _point(panel, source, variant, place)
            look = {"colour": _COLOURS[place], "marker": _MARKERS[place]}
            handles.append(legend_key(variant.label, **look))
        handles.append(legend_key("published height", colour=OTHER, line=":"))
        panel.set_xlabel("(test MAE - val MAE) / val MAE of the direct networks")
        panel.set_ylabel("average test coverage error")
        title = f"Figure {name}: mean coverage error of the five common methods"
        say(figure, title, source.remark, handles, columns=3)
        return save(figure, folder, f"figure_{name}{source.suffix}")


FIGURES = {"A16": SYNTHETIC, "A17": REAL}


def _measured(source: Source, variant: Variant) -> bool:
    whole = all(source.has(variant, row, "test_coverage") for row in COMMON)
    return whole and math.isfinite(_gap(source, variant))


def _gap(source: Source, variant: Variant) -> float:
    val = source.cell(variant, "conformal", "val_mae").ours.mean
    test = source.cell(variant, "conformal", "test_mae").ours.mean
    return (test - val) / val


def _point(panel: "Axes", source: Source, variant: Variant, place: int) -> None:
    error = coverage_error(
        source.cell(variant, row, "test_coverage").ours.mean for row in COMMON
    )
    known = [printed(source, variant.label, row, "test_coverage") for row in COMMON]
    published = coverage_error(number.mean for number in known if number is not None)
    colour, gap = _COLOURS[place], _gap(source, variant)
    panel.plot(gap, error, color=colour, marker=_MARKERS[place], ms=7, ls="")
    panel.plot([gap, gap], [error, published], color=colour, ls=":", lw=1)
    panel.plot(gap, published, color=colour, marker="_", ms=9, mew=1.5, ls="")
