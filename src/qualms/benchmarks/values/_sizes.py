"""Figure 8: summed uncertainty grows with the object; divided by its size it does not.

The paper shows test-time dropout on LIDC TEX.
"""

from collections.abc import Iterator, Sequence

import numpy as np

from qualms.benchmarks import TableRow, Variant
from qualms.evaluate import Scatter
from qualms.evaluate.results import DrawnKey
from qualms.report.figures import SERIES, CloudMark, Drawing, Mark, Panel, RuleMark
from qualms.report.papers.values.lines import study_source
from qualms.report.papers.values.settings import DATASETS, Study, stands_in

_SUBSETS = {"in_domain": (SERIES[0], "in domain"), "shifted": (SERIES[1], "shifted")}
_KINDS = ("EU", "AU", "PU")


def size_drawings(study: Study) -> Iterator[Drawing]:
    """The paper's figure on LIDC TEX, and on other data with single objects."""
    nodules = [name for name in study.variants if name.startswith("lidc")]
    for dataset in nodules or [name for name in study.variants if name == "toy2"]:
        variant = study.variants[dataset]
        rows = [
            study.results.benchmark.row(name)
            for name in ("ttd", *study.results.preset.rows)
            if _cloud(study, variant, name, "size")
        ]
        for row in rows[:1]:
            yield _drawing(study, dataset, variant, row)


def _drawing(study: Study, dataset: str, variant: Variant, row: TableRow) -> Drawing:
    own = "" if dataset == "lidc_tex" else f"_{dataset}"
    measures = row.settings.get("measures", {})
    shown = [(kind, measures[kind]) for kind in _KINDS if kind in measures]
    top = [_panel(study, (variant, row), kind, name) for kind, name in shown]
    below = [
        _panel(study, (variant, row), kind, name, divided=True) for kind, name in shown
    ]
    return Drawing(
        name=f"figure_8{own}",
        title=f"Figure 8: object size and uncertainty, {row.label} on "
        f"{DATASETS[dataset]}",
        caption="Each point is a test item. Above: its epistemic (EU), aleatoric (AU) "
        "and predictive (PU) uncertainty map added up, against the pixels that the "
        "model segments, mean over draws. Below: the same divided by these pixels. An "
        "aggregation that grows with the object says more about its size than about "
        "its uncertainty; divided by the size, it need not. Right: the segmented size "
        "against the size that raters give, mean over raters; on the line they are "
        "equal. r is the correlation of all points. Items without a segmented pixel "
        f"are left out. {study_source(study.results, [variant])}",
        rows=((*top, _reference(study, variant, row)), tuple(below)),
        simulated=stands_in(variant),
        size=(1.75, 1.75),
    )


def _cloud(
    study: Study, variant: Variant, row: str, name: str
) -> list[tuple[str, Scatter]]:
    """The points of each subset."""
    found = []
    for subset in _SUBSETS:
        key = DrawnKey(variant.name, row, "", subset, name)
        if key in study.results.scatters:
            found.append((subset, study.results.scatters[key]))
    return found


def _panel(
    study: Study,
    at: tuple[Variant, TableRow],
    kind: str,
    measure: str,
    *,
    divided: bool = False,
) -> Panel:
    variant, row = at
    marks: list[Mark] = []
    for subset, points in _cloud(study, variant, row.name, f"summed/{measure}"):
        colour, label = _SUBSETS[subset]
        some = points.x > 0
        x, y = points.x[some], points.y[some]
        y = y / x if divided else y
        marks.append(CloudMark(x=x, y=y, colour=colour, label=label))
    title = "" if divided else f"{kind} ({measure}), "
    first = kind == _KINDS[0]
    word = "sum / segmented pixels" if divided else "sum of the map"
    return Panel(
        marks=tuple(marks),
        title=f"{title}r = {_correlation(marks):.2f}",
        x_label="segmented pixels" if divided else "",
        y_label=word if first else "",
        y_range=(0, None),
    )


def _reference(study: Study, variant: Variant, row: TableRow) -> Panel:
    marks: list[Mark] = []
    for subset, points in _cloud(study, variant, row.name, "size"):
        colour, label = _SUBSETS[subset]
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
    """Pearson's, of all points together; nan where something is constant."""
    clouds = [mark for mark in marks if isinstance(mark, CloudMark)]
    x, y = (np.concatenate([getattr(c, axis) for c in clouds]) for axis in "xy")
    if len(x) < 2 or not np.ptp(x) or not np.ptp(y):
        return float("nan")
    return float(np.corrcoef(x, y)[0, 1])
