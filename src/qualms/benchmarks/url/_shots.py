"""The few-shot study: figure 13."""

import math
from collections.abc import Iterator, Sequence

import numpy as np

from qualms.benchmarks.url._rows import HALF, SHOTS
from qualms.benchmarks.url._settings import FEW, FEW_SHOT, R_AUROC, UrlStudy
from qualms.report.captions import If, banded, caption, hollow, lined
from qualms.report.figures import (
    SOFT,
    CurveMark,
    Drawing,
    Mark,
    Panel,
    PointMark,
    RuleMark,
)
from qualms.study import Variant


def shots_figure(study: UrlStudy) -> Iterator[Drawing]:
    """Yield figure 13: R-AUROC after training on few items of each test class."""
    variants = [v for v in study.backbones if study.taught_methods(v)]
    if not variants:
        return
    rows = (tuple(_panel(study, variant) for variant in variants),)
    yield Drawing(
        name="figure_13",
        title="Figure 13: a few items of the test classes",
        caption=caption(
            rows,
            "R-AUROC on the other half of the items of the test classes, after "
            "training went on with some items of each of them; mean over "
            f"{study.taught_text(variants)}, each by itself.",
            If(banded, "Bands reach from the lowest to the highest seed."),
            If(
                lined("--"),
                "The dashed line is plain cross-entropy trained on half of all items.",
            ),
            If(hollow, "Hollow markers: released runs of the paper."),
            study.source(variants),
        ),
        rows=rows,
        simulated=any(variant.simulated for variant in variants),
        size=(2.9, 2.2),
    )


def _panel(study: UrlStudy, variant: Variant) -> Panel:
    marks: list[Mark] = []
    for row in study.taught_methods(variant):
        marks += _curve(study, variant, row)
    many = _defined(study.taught(variant, "ce", HALF, R_AUROC))
    if many:
        height = math.fsum(many) / len(many)
        ends = (-0.2, height), (len(SHOTS) - 0.8, height)
        marks.append(RuleMark(*ends, SOFT, "--", "CE, half of all items"))
    return Panel(
        marks=tuple(marks),
        title=variant.label,
        x_label="items of each class",
        y_label="R-AUROC",
        x_ticks={place: str(k) for place, k in enumerate(SHOTS)},
    )


def _defined(values: Sequence[float]) -> list[float]:
    return [value for value in values if math.isfinite(value)]


def _curve(study: UrlStudy, variant: Variant, row: str) -> Iterator[Mark]:
    look = study.look(row)
    # A seed that is undefined counts in no mean, and is neither end of a band.
    by_shots = [_defined(study.taught(variant, row, n, R_AUROC)) for n in FEW]
    places = [place for place, values in enumerate(by_shots) if values]
    if places:
        filled = [by_shots[place] for place in places]
        yield CurveMark(
            x=np.array(places, np.float64),
            y=np.array([math.fsum(v) / len(v) for v in filled]),
            low=np.array([min(v) for v in filled]),
            high=np.array([max(v) for v in filled]),
            colour=look.colour,
            marker=look.marker,
            label=study.label(row),
        )
    for place, shots in enumerate(FEW):
        number = study.released(variant, row, R_AUROC, FEW_SHOT, shots=shots)
        if number is not None and not variant.simulated:
            yield PointMark(
                x=place,
                y=number.value,
                colour=look.colour,
                marker=look.marker,
                hollow=True,
                size=4,
            )
