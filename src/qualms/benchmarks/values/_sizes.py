"""Figure 8: summed uncertainty grows with the object; divided by its size it does not.

The paper shows test-time dropout on LIDC TEX.
"""

from collections.abc import Iterator, Sequence

import numpy as np

from qualms.benchmarks.values._settings import Study, stands_in, study_source
from qualms.evaluate import Scatter
from qualms.labels import Labelled
from qualms.report.figures import SERIES, CloudMark, Drawing, Mark, Panel, RuleMark
from qualms.study import TableRow, Variant

_SUBSETS = {"in_domain": (SERIES[0], "in domain"), "shifted": (SERIES[1], "shifted")}
_TYPES = ("EU", "AU", "PU")


def size_drawings(study: Study) -> Iterator[Drawing]:
    """Yield the paper's figure on LIDC TEX, and on other data with single objects."""
    nodules = [v for v in study.variants if v.labels["family"] == "LIDC"]
    for variant in nodules or [v for v in study.variants if v.label == "Toy 2"]:
        scatters = study.results.scatters.where(variant=variant.name)
        rows = study.results.plan.rows
        # Dropout first, as in the paper.
        for row in sorted(rows, key=lambda row: row.name != "ttd"):
            clouds = scatters.where(row=row.name)
            if clouds.get(name="size") is not None:
                yield _drawing(study, variant, row, clouds)
                break


def _drawing(
    study: Study, variant: Variant, row: TableRow, clouds: Labelled[Scatter]
) -> Drawing:
    end = "" if variant.label == "LIDC TEX" else f"_{variant.name}"
    summed = [clouds.where(name="summed", type=kind) for kind in _TYPES]
    judged = [each for each in summed if len(each)]
    top, below = (
        [_panel(each, divided=divided, first=each is judged[0]) for each in judged]
        for divided in (False, True)
    )
    return Drawing(
        name=f"figure_8{end}",
        title=f"Figure 8: object size and uncertainty, {row.label} on {variant.label}",
        caption="Each point is a test item. Above: its epistemic (EU), aleatoric (AU) "
        "and predictive (PU) uncertainty map added up, against the pixels that the "
        "model segments, mean over draws. Below: the same divided by these pixels. An "
        "aggregation that grows with the object says more about its size than about "
        "its uncertainty; divided by the size, it need not. Right: the segmented size "
        "against the size that raters give, mean over raters; on the line they are "
        "equal. r is the correlation of all points. Items without a segmented pixel "
        f"are left out. {study_source(study.results, [variant])}",
        rows=((*top, _reference(clouds.where(name="size"))), tuple(below)),
        simulated=stands_in(variant),
        size=(1.75, 1.75),
    )


def _panel(clouds: Labelled[Scatter], *, divided: bool, first: bool) -> Panel:
    """Return summed uncertainty of one type against size; `divided` by it."""
    marks: list[Mark] = []
    for labels, points in clouds:
        colour, label = _SUBSETS[str(labels["subset"])]
        some = points.x > 0
        x, y = points.x[some], points.y[some]
        y = y / x if divided else y
        marks.append(CloudMark(x=x, y=y, colour=colour, label=label))
    labels, _ = clouds.items[0]
    title = "" if divided else f"{labels['type']} ({labels['measure']}), "
    word = "sum / segmented pixels" if divided else "sum of the map"
    return Panel(
        marks=tuple(marks),
        title=f"{title}r = {_correlation(marks):.2f}",
        x_label="segmented pixels" if divided else "",
        y_label=word if first else "",
        y_range=(0, None),
    )


def _reference(clouds: Labelled[Scatter]) -> Panel:
    marks: list[Mark] = []
    for labels, points in clouds:
        colour, label = _SUBSETS[str(labels["subset"])]
        # The scatter has raters' pixels up; the paper has them across.
        marks.append(CloudMark(x=points.y, y=points.x, colour=colour, label=label))
    most = max(
        float(max(mark.x.max(initial=1), mark.y.max(initial=1)))
        for mark in marks
        if isinstance(mark, CloudMark)
    )
    return Panel(
        marks=(RuleMark((0, 0), (most, most)), *marks),
        title=f"sizes, r = {_correlation(marks):.2f}",
        x_label="pixels of raters",
        y_label="segmented pixels",
    )


def _correlation(marks: Sequence[Mark]) -> float:
    """Return Pearson's r of all points together; nan where something is constant."""
    clouds = [mark for mark in marks if isinstance(mark, CloudMark)]
    x, y = (np.concatenate([getattr(c, axis) for c in clouds]) for axis in "xy")
    if len(x) < 2 or not np.ptp(x) or not np.ptp(y):
        return float("nan")
    return float(np.corrcoef(x, y)[0, 1])
