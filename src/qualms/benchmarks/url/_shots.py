"""The few-shot study: figure 13, and what its rows gave."""

import math
from collections.abc import Iterator, Sequence

import numpy as np

from qualms.benchmarks import Variant
from qualms.report.figures import (
    SOFT,
    CurveMark,
    Drawing,
    Mark,
    Panel,
    PointMark,
    RuleMark,
)
from qualms.report.papers.url.settings import (
    R_AUROC,
    SHOTS,
    UrlScore,
    UrlStudy,
    released_number,
)


def taught_sets(study: UrlStudy, variant: Variant) -> list[str]:
    """The downstream sets that rows of the preset were trained on, by their items."""
    rows = (study.results.benchmark.row(name) for name in study.results.preset.rows)
    taught = {row.settings.get("data") for row in rows}
    return [name for name in variant.settings["retrieval"] if name in taught]


def taught_methods(study: UrlStudy, variant: Variant) -> list[str]:
    """Methods with a second training on all of these sets, in the order of tables."""
    names = (*(f"few{k}" for k in SHOTS), "many")
    return [
        row.name
        for row in study.methods
        if any(shot_values(study, variant, row.name, name, R_AUROC) for name in names)
    ]


def shot_values(
    study: UrlStudy, variant: Variant, row: str, name: str, score: UrlScore
) -> Sequence[float]:
    """By repeat, the mean over sets of a score after a second training.

    `name` is few1, few2 ... or many. () where a set was not trained on.
    """
    cells = [
        study.cell(variant, f"{row}_{name}_{data}", score)
        for data in taught_sets(study, variant)
    ]
    if not cells or not all(cell.values for cell in cells):
        return ()
    each = zip(*(cell.values for cell in cells), strict=False)
    return [math.fsum(values) / len(values) for values in each]


def taught_text(study: UrlStudy, variants: Sequence[Variant]) -> str:
    """The sets of a mean in words."""
    found = dict.fromkeys(name for v in variants for name in taught_sets(study, v))
    return " and ".join(filter(None, (", ".join([*found][:-1]), *[*found][-1:])))


def shots_figure(study: UrlStudy) -> Iterator[Drawing]:
    """Figure 13: R-AUROC after training on few items of each test class."""
    shown = [v for v in study.backbones if taught_methods(study, v)]
    if not shown:
        return
    yield Drawing(
        name="figure_13",
        title="Figure 13: a few items of the test classes",
        caption="R-AUROC on the other half of the items of the test classes, after "
        "training went on with some items of each of them; mean over "
        f"{taught_text(study, shown)}, each by itself, with the lowest and highest "
        "seed. The dashed line is plain cross-entropy trained on half of all items. "
        f"Hollow markers: released runs of the paper. {study.source(shown)}",
        rows=(tuple(_panel(study, variant) for variant in shown),),
        simulated=any(variant.simulated for variant in shown),
        size=(2.9, 2.2),
    )


def _panel(study: UrlStudy, variant: Variant) -> Panel:
    marks: list[Mark] = []
    for row in taught_methods(study, variant):
        marks += _curve(study, variant, row)
    many = shot_values(study, variant, "ce", "many", R_AUROC)
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


def _curve(study: UrlStudy, variant: Variant, row: str) -> Iterator[Mark]:
    look = study.look(row)
    each = [shot_values(study, variant, row, f"few{k}", R_AUROC) for k in SHOTS]
    places = [place for place, values in enumerate(each) if values]
    if places:
        known = [each[place] for place in places]
        yield CurveMark(
            x=np.array(places, np.float64),
            y=np.array([math.fsum(v) / len(v) for v in known]),
            low=np.array([min(v) for v in known]),
            high=np.array([max(v) for v in known]),
            colour=look.colour,
            marker=look.marker,
            label=study.label(row),
        )
    for place, k in enumerate(SHOTS):
        number = released_number(variant, row, f"r_auroc_few{k}", "released_few_shot")
        if number is not None and not variant.simulated:
            yield PointMark(
                x=place,
                y=number.mean,
                colour=look.colour,
                marker=look.marker,
                hollow=True,
                size=4,
            )
