"""Figures of the data: items of each grade (5), and the preprocessing (18)."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from qualms.benchmarks.retina._histograms import GRADES
from qualms.benchmarks.retina._rows import BLURS, USUAL_BLUR
from qualms.benchmarks.retina._settings import main_variants
from qualms.evaluate.benchmark_results import BenchmarkResults
from qualms.report.figures import (
    SERIES,
    BarMark,
    Drawing,
    Mark,
    Panel,
    PictureMark,
    WordMark,
)
from qualms.report.pictures import prepared_dataset, simulated_items
from qualms.study import Variant

_COLUMNS = 5
_SIDE = 200
"""Pixels of a simulated photograph in figure 18."""


def photograph_drawings(
    results: BenchmarkResults, data: Path | None
) -> Iterator[Drawing]:
    """Figures 5 and 18 of whatever photographs there are."""
    for simulated in (False, True):
        variants = [
            variant
            for variant in main_variants(
                results.plan,
                simulated=simulated,
                shift="country",
                selection="in_domain",
            )
            if variant in results.variants
        ]
        for variant in variants[:1]:
            yield from _grades(results, variant, data)
            yield from _preprocessing(results, variant, data)


def _grades(
    results: BenchmarkResults, variant: Variant, data: Path | None
) -> Iterator[Drawing]:
    """Figure 5: at home and in the other country."""
    dataset = prepared_dataset(variant, data)
    if dataset is None:
        return
    counts = {}
    for title, names in (
        ("at home: train, val, test", ("train", "val", "test")),
        ("other country", ("val/shifted", "test/shifted")),
    ):
        groups = [dataset.splits[n].extra.get("group") for n in names]
        known = [np.asarray(group).astype(str) for group in groups if group is not None]
        if known:
            counts[title] = np.concatenate(known)
    if not counts:
        return
    onset = results.plan.labels_of(variant)["onset"]
    suffix = "_simulated" if variant.simulated else ""
    yield Drawing(
        name=f"figure_5_{variant.name}{suffix}",
        title="Figure 5: items of each clinical grade",
        caption="How many photographs have each clinical grade of diabetic "
        "retinopathy, from none (0) to proliferative (4), at home and in the other "
        "country, and which are to be referred. Each panel has its own "
        f"scale. {_source(variant)}; preset {results.plan.preset_text}.",
        rows=(
            tuple(
                _bars(title, grades, first=1 if onset == "mild" else 2)
                for title, grades in counts.items()
            ),
        ),
        simulated=variant.simulated,
        size=(3.1, 2.0),
    )


def _bars(title: str, grades: NDArray[np.str_], *, first: int) -> Panel:
    found = [int(np.sum(grades == grade)) for grade in GRADES]
    most = max(found)
    marks: list[Mark] = []
    for place, count in enumerate(found):
        colour = SERIES[1] if place >= first else SERIES[0]
        label = "to be referred" if place >= first else "not referred"
        marks.append(BarMark(x=place, height=count, colour=colour, label=label))
        marks.append(WordMark(place, count + 0.05 * most, f"{count:,}", size=7))
    return Panel(
        marks=tuple(marks),
        title=title,
        x_label="clinical grade",
        y_label="items",
        x_ticks={
            i: f"{grade}\n{word}" for i, (grade, word) in enumerate(_SHORT.items())
        },
        y_range=(0, 1.15 * most),
    )


_SHORT = {**GRADES, "2": "moder.", "4": "prolif."}


def _preprocessing(
    results: BenchmarkResults, variant: Variant, data: Path | None
) -> Iterator[Drawing]:
    """Figure 18: the same photographs with each blur constant."""
    rows = dict(_photographs(variant, data))
    if len(rows) < 2:
        return
    suffix = "_simulated" if variant.simulated else ""
    yield Drawing(
        name=f"figure_18_{variant.name}{suffix}",
        title="Figure 18: preprocessing with different blur",
        caption="The same photographs before preprocessing (top, where they are kept) "
        "and after it, by blur constant. The local mean colour is subtracted, so that "
        "lesions and vessels stand out; a larger constant takes the mean over a "
        f"smaller neighbourhood. {_source(variant)}; preset "
        f"{results.plan.preset_text}.",
        rows=tuple(
            tuple(Panel(marks=(PictureMark(pixels=image),), bare=True) for image in row)
            for row in rows.values()
        ),
        sides=tuple(rows),
        simulated=variant.simulated,
        size=(1.0, 1.0),
    )


def _photographs(
    variant: Variant, data: Path | None
) -> Iterator[tuple[str, list[NDArray[np.uint8]]]]:
    """Rows of photographs by what was done to them."""
    for blur in (None, *BLURS, USUAL_BLUR):
        name = "unprocessed" if blur is None else f"blur {blur}"
        if variant.simulated:
            made = simulated_items(variant, "train", 12, blur=blur, size=_SIDE)
            severe = np.argsort(-made.extra["group"].astype(float), kind="stable")
            yield name, [made.image[i] for i in severe[:_COLUMNS]]
        elif blur is not None:
            dataset = prepared_dataset(variant, data, blur=blur)
            if dataset is not None:
                image = dataset.splits["train"].image
                yield name, list(image[:_COLUMNS])


def _source(variant: Variant) -> str:
    return "Simulated photographs" if variant.simulated else "EyePACS and APTOS"
