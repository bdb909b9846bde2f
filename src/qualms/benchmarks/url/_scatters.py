"""Figures 2 to 5 and 7 to 9: how two scores go together."""

import math
from collections.abc import Iterator, Sequence

import numpy as np

from qualms.benchmarks.url._correlations import correlated, correlation
from qualms.benchmarks.url._settings import (
    CROP,
    HUMAN,
    MIXED,
    OOD,
    R_AUROC,
    RECALL,
    SOFT_CROP,
    SOFT_R_AUROC,
    UP_CROP,
    UP_R_AUROC,
    UP_RECALL,
    UP_TOP_1,
    VAL_R_AUROC,
    VAL_RECALL,
    UrlScore,
    UrlStudy,
    family_of,
)
from qualms.report.captions import If, caption, hollow
from qualms.report.figures import (
    CloudMark,
    CurveMark,
    Drawing,
    Mark,
    Panel,
    PictureMark,
    PointMark,
    WordMark,
)
from qualms.study import Variant

LEAST_RECALL = 0.1
"""Least R@1 on validation items of a run that may be chosen by its R-AUROC."""
_MATRIX = {
    "up\ntop-1": UP_TOP_1,
    "up\nR@1": UP_RECALL,
    "up\nR-AUROC": UP_R_AUROC,
    "up\ncrop": UP_CROP,
    "R@1": RECALL,
    "R-AUROC": R_AUROC,
    "crop": CROP,
    "OOD": OOD,
    "mixed": MIXED,
    "human": HUMAN,
}
"""Scores of figure 9, by short names."""
_LIGHT = (-3.0, 1.0)
"""Range of greys of figure 9: numbers stay legible on the darkest."""


def scatter_figures(study: UrlStudy) -> Iterator[Drawing]:
    """Yield the scatter figures that have numbers."""
    yield from _both_scores(study)
    yield from _two_choices(study)
    yield from _pair_figure(
        study,
        ("4", "what upstream items tell about downstream ones"),
        ((UP_R_AUROC, R_AUROC), (UP_CROP, R_AUROC)),
        ("upstream R-AUROC", "upstream crop rate"),
    )
    yield from _pair_figure(
        study,
        ("5", "R-AUROC, people and crops"),
        ((HUMAN, SOFT_R_AUROC), (SOFT_CROP, SOFT_R_AUROC)),
        ("human alignment", "crop rate"),
    )
    yield from _trade_offs(study)
    yield from _matrix(study)


def _both_scores(study: UrlStudy) -> Iterator[Drawing]:
    variants = study.backbones
    if not variants:
        return
    panels = []
    for variant in variants:
        marks: list[Mark] = [
            _point(study, point.row, point.x, point.y)
            for point in study.points((variant,), RECALL, R_AUROC)
        ]
        if not variant.simulated:
            marks += _released(study, variant)
        panels.append(_axes(marks, variant.label))
    yield Drawing(
        name="figure_2",
        title="Figure 2: retrieval and uncertainty of every method",
        caption=caption(
            [panels],
            "R-AUROC against R@1, means over the downstream sets; a marker for every "
            "seed.",
            If(hollow, "Hollow markers are the released runs of the paper."),
            study.source(variants),
        ),
        rows=(tuple(panels),),
        simulated=any(variant.simulated for variant in variants),
        size=(2.9, 2.4),
    )


def _released(study: UrlStudy, variant: Variant) -> Iterator[Mark]:
    for row in study.methods:
        numbers = [
            study.released(variant, row.name, score) for score in (RECALL, R_AUROC)
        ]
        values = [number.value for number in numbers if number is not None]
        if len(values) == 2:
            look = study.look(row.name)
            yield PointMark(
                x=values[0],
                y=values[1],
                colour=look.colour,
                marker=look.marker,
                hollow=True,
            )


def _two_choices(study: UrlStudy) -> Iterator[Drawing]:
    """Yield figure 3: the run chosen by R-AUROC, and the one chosen by R@1."""
    panels, variants = [], []
    for family in study.families.values():
        if not any(v.selection == "recall" or "config" in v.labels for v in family):
            continue
        marks: list[Mark] = []
        for row in study.methods:
            by = [choice(study, family, row.name, by) for by in (R_AUROC, RECALL)]
            ends = [
                (study.mean(v, row.name, RECALL), study.mean(v, row.name, R_AUROC))
                for v in by
                if v is not None
            ]
            if len(ends) == 2 and np.isfinite(ends).all():
                x, y = np.array(ends).T
                colour = study.look(row.name).colour
                marks.append(CurveMark(x=x, y=y, colour=colour))
                marks.append(_point(study, row.name, x[0], y[0]))
                marker = study.look(row.name).marker
                marks.append(
                    PointMark(x=x[1], y=y[1], colour=colour, marker=marker, hollow=True)
                )
        panels.append(_axes(marks, family[0].label))
        variants += family
    if any(panel.marks for panel in panels):
        yield Drawing(
            name="figure_3",
            title="Figure 3: chosen by R-AUROC, and chosen by R@1",
            caption="Means over seeds of the runs that validation items choose by "
            "R-AUROC (filled) and by R@1 (hollow), joined by a line: a long one is a "
            "trade-off between uncertainty and retrieval. Runs may differ in their "
            "epoch and, where several were judged, in their configuration. "
            f"{study.source(variants)}",
            rows=(tuple(panels),),
            simulated=any(variant.simulated for variant in variants),
            size=(2.9, 2.4),
        )


def choice(
    study: UrlStudy, family: Sequence[Variant], row: str, by: UrlScore
) -> Variant | None:
    """Return the variant of a family that validation items choose for a method.

    Runs that retrieve less than a tenth do not count for R-AUROC. Without validation
    scores, the variant whose epochs were chosen that way.
    """
    score = VAL_RECALL if by is RECALL else VAL_R_AUROC
    rated = {
        variant.name: study.mean(variant, row, score)
        for variant in family
        if by is RECALL or study.mean(variant, row, VAL_RECALL) >= LEAST_RECALL
    }
    defined = {name: value for name, value in rated.items() if math.isfinite(value)}
    if defined:
        best = max(defined, key=lambda name: defined[name])
        return next(variant for variant in family if variant.name == best)
    selection = "recall" if by is RECALL else "r_auroc"
    return next((v for v in family if v.selection == selection), None)


def _pair_figure(
    study: UrlStudy,
    about: tuple[str, str],
    pairs: Sequence[tuple[UrlScore, UrlScore]],
    labels: Sequence[str],
) -> Iterator[Drawing]:
    number, title = about
    panels = []
    for (x, y), label in zip(pairs, labels, strict=True):
        marks = [
            _point(study, point.row, point.x, point.y, size=3.5)
            for point in study.points(study.judged, x, y)
        ]
        value = correlation(study, study.judged, x, y).value
        text = f"rank corr. {value:.2f}" if math.isfinite(value) else ""
        panels.append(_axes(marks, text, x_label=label, y_label=y.label))
    if any(panel.marks for panel in panels):
        yield Drawing(
            name=f"figure_{number}",
            title=f"Figure {number}: {title}",
            caption=" ".join(
                filter(
                    None,
                    (
                        "A marker for every run of every method that was judged.",
                        "Other configurations are among them."
                        if any("config" in v.labels for v in study.judged)
                        else "",
                        "Above, Spearman's rank correlation of all of them."
                        if any(panel.title for panel in panels)
                        else "",
                        study.source(study.judged),
                    ),
                )
            ),
            rows=(tuple(panels),),
            simulated=any(variant.simulated for variant in study.judged),
            size=(2.9, 2.4),
        )


def _trade_offs(study: UrlStudy) -> Iterator[Drawing]:
    """Yield figures 7 and 8: R@1 and R-AUROC over the configurations of each method."""
    for family in study.families.values():
        configured = [v for v in family if "config" in v.labels]
        if not configured:
            continue
        panels = [_trade_off(study, configured, row.name) for row in study.methods]
        backbone = configured[0].labels.get("backbone")
        number = "8" if backbone == "vit_medium" else "7"
        name = family_of(configured[0])
        yield Drawing(
            name=f"figure_{number}",
            title=f"Figure {number}: R@1 and R-AUROC over configurations of {name}",
            caption="A point for every configuration and seed, with Spearman's rank "
            "correlation. Runs whose R@1 is below 0.1 are left out. "
            f"{study.source(configured)}",
            rows=tuple(tuple(panels[at : at + 4]) for at in range(0, len(panels), 4)),
            simulated=any(variant.simulated for variant in configured),
            size=(1.9, 1.7),
        )


def _trade_off(study: UrlStudy, variants: Sequence[Variant], row: str) -> Panel:
    pairs = [
        (point.x, point.y)
        for point in study.points(variants, RECALL, R_AUROC)
        if point.row == row and point.x >= LEAST_RECALL
    ]
    if not pairs:
        return Panel(title=study.label(row), empty="no runs")
    x, y = np.array(pairs, np.float64).T
    value = correlated(pairs).value
    text = f" ({value:.2f})" if math.isfinite(value) else ""
    return Panel(
        marks=(CloudMark(x=x, y=y, colour=study.look(row).colour),),
        title=f"{study.label(row)}{text}",
        x_label="R@1",
        y_label="R-AUROC",
    )


def _matrix(study: UrlStudy) -> Iterator[Drawing]:
    """Yield figure 9: correlations between all scores."""
    names = list(_MATRIX)
    values = np.array(
        [
            [
                correlation(study, study.judged, _MATRIX[a], _MATRIX[b]).value
                for b in names
            ]
            for a in names
        ]
    )
    if not np.isfinite(values).any():
        return
    words = tuple(
        WordMark(column, row, f"{values[row, column]:.2f}", size=5.5)
        for row, column in np.ndindex(values.shape)
        if math.isfinite(values[row, column])
    )
    ticks: dict[float, str] = dict(enumerate(names))
    yield Drawing(
        name="figure_9",
        title="Figure 9: rank correlations between scores",
        caption="Spearman's rank correlation over every run of every method that was "
        "judged; 'up' is of upstream items, the others are means over the downstream "
        f"sets, 'human' over those with votes. {study.source(study.judged)}",
        rows=(
            (
                Panel(
                    marks=(PictureMark(pixels=values, scale=_LIGHT), *words),
                    x_ticks=ticks,
                    y_ticks=ticks,
                    framed=False,
                ),
            ),
        ),
        simulated=any(variant.simulated for variant in study.judged),
        size=(6.4, 4.6),
    )


def _point(
    study: UrlStudy, row: str, x: float, y: float, *, size: float = 5.0
) -> PointMark:
    look = study.look(row)
    return PointMark(
        x=x,
        y=y,
        colour=look.colour,
        marker=look.marker,
        label=study.label(row),
        size=size,
    )


def _axes(
    marks: Sequence[Mark],
    title: str,
    *,
    x_label: str = "R@1",
    y_label: str = "R-AUROC",
) -> Panel:
    return Panel(
        marks=tuple(marks),
        title=title,
        x_label=x_label,
        y_label=y_label,
        empty="" if marks else "no runs",
    )
