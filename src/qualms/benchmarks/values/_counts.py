"""Tables 1 and 3, figures 6 and 7: how many items there are."""

import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from qualms.benchmarks.values._settings import (
    DATASETS,
    as_in_paper,
    stands_in,
    study_about,
    study_source,
)
from qualms.datasets import Dataset
from qualms.evaluate.benchmark_results import BenchmarkResults
from qualms.labels import Labels
from qualms.report.captions import If, caption, hollow
from qualms.report.figures import (
    SERIES,
    BarMark,
    Drawing,
    Mark,
    Panel,
    PointMark,
    WordMark,
)
from qualms.report.layout import published_of
from qualms.report.pictures import prepared_dataset
from qualms.report.table import Column, Table, TableCell, TableLine
from qualms.results import Result, Summary
from qualms.study import Variant

_SPLITS = ("train", "val", "test", "pool")


class SplitCount(NamedTuple):
    """Items of a split."""

    in_domain: int
    shifted: int
    blurred: int
    """In-domain ones of the toy data that are blurred."""

    @property
    def all(self) -> int:
        """In-domain and shifted ones."""
        return self.in_domain + self.shifted


def split_counts(dataset: Dataset) -> dict[str, SplitCount]:
    """Return how many items each split has."""
    counts = {}
    for name, split in dataset.splits.items():
        count = len(split)
        shifted = _flags(split.extra.get("shifted"), count)
        groups = np.asarray(split.extra.get("group", np.full(count, ""))).astype(str)
        inside = ~shifted
        counts[name] = SplitCount(
            int(inside.sum()),
            int(shifted.sum()),
            int((inside & (groups == "blurred")).sum()),
        )
    return counts


def _flags(values: NDArray[Any] | None, count: int) -> NDArray[np.bool_]:
    if values is None:
        return np.zeros(count, np.bool_)
    return np.asarray(values, np.bool_)


def count_tables(results: BenchmarkResults, data: Path | None) -> tuple[Table, ...]:
    """Return tables 1 and 3, of the datasets that are prepared."""
    prepared = [
        (variant, split_counts(dataset))
        for variant in results.plan.variants
        if variant.label in DATASETS
        and (dataset := prepared_dataset(variant, data)) is not None
    ]
    tables = (
        _count_table(results, number, [p for p in prepared if _family(p[0]) == family])
        for number, family in (("1", "Toy"), ("3", "LIDC"))
    )
    return tuple(table for table in tables if table is not None)


def _family(variant: Variant) -> str:
    return str(variant.labels["family"])


Counts = Mapping[str, SplitCount]


class CountColumn(NamedTuple):
    """A number of items: which splits, and which of their items."""

    label: str
    splits: tuple[str, ...]
    subset: str
    """A field of `SplitCount`."""

    @property
    def labels(self) -> Labels:
        """The labels of the published number."""
        return {"split": " and ".join(self.splits), "subset": self.subset}

    def items(self, counts: Counts, variant: Variant) -> int:
        """Return the number of items of a variant."""
        names = (variant.test if n == "test" else n for n in self.splits)
        return sum(getattr(counts[name], self.subset) for name in names)


_COLUMNS = {
    "1": (
        CountColumn("train and val", ("train", "val"), "in_domain"),
        CountColumn("of them blurred", ("train", "val"), "blurred"),
        CountColumn("test", ("test",), "all"),
        CountColumn("i.i.d.", ("test",), "in_domain"),
        CountColumn("i.i.d. and blurred", ("test",), "blurred"),
        CountColumn("OoD", ("test",), "shifted"),
    ),
    "3": (
        CountColumn("train", ("train",), "in_domain"),
        CountColumn("val", ("val",), "in_domain"),
        CountColumn("test i.i.d.", ("test",), "in_domain"),
        CountColumn("test OoD", ("test",), "shifted"),
        CountColumn("pool i.i.d.", ("pool",), "in_domain"),
        CountColumn("pool OoD", ("pool",), "shifted"),
    ),
}


def _count_table(
    results: BenchmarkResults,
    number: str,
    prepared: Sequence[tuple[Variant, Counts]],
) -> Table | None:
    if not prepared:
        return None
    variants = [variant for variant, _ in prepared]
    items = "toy items" if number == "1" else "nodules"
    return Table(
        name=f"table_{number}",
        title=f"Table {number}: number of {items}",
        about=study_about(results, variants),
        simulated=any(map(stands_in, variants)),
        columns=tuple(
            Column(label=column.label, decimals=0, keys=column.labels)
            for column in _COLUMNS[number]
        ),
        lines=tuple(
            TableLine(
                labels=(variant.label,),
                cells=tuple(
                    _count_cell(
                        column.items(counts, variant),
                        _printed(results, variant, column.labels),
                    )
                    for column in _COLUMNS[number]
                ),
                keys={"dataset": variant.label, "variant": variant.name},
            )
            for variant, counts in prepared
        ),
        left=("data",),
        main=False,
        keys={"number": number, "preset": results.plan.preset_text},
    )


def _printed(
    results: BenchmarkResults, variant: Variant, labels: Labels
) -> Result | None:
    """Return the published number of items, of whatever data of that name."""
    book = published_of(results)
    assert book is not None  # the benchmark declares its published numbers
    return book.table.get(dataset=variant.label, score="items", **labels)


def _count_cell(count: int, number: Result | None) -> TableCell:
    items = Summary(float(count), math.nan)
    return TableCell(
        mean=items.mean,
        repeats=1,
        released=items,
        published=None if number is None else Summary(number.value, math.nan),
    )


def split_drawings(results: BenchmarkResults, data: Path | None) -> Iterator[Drawing]:
    """Yield figures 6 and 7: how the items of prepared datasets are divided."""
    for number, family, items in (
        ("6", "LIDC", "nodules"),
        ("7", "GTA5/CS", "street scenes"),
    ):
        panels, variants = [], []
        for variant in results.plan.variants:
            # All folds of a screening are divided alike.
            wanted = _family(variant) == family and not variant.labels.get("fold")
            dataset = prepared_dataset(variant, data) if wanted else None
            if dataset is not None:
                feature = variant.labels.get("feature")
                title = f"screening, {feature}" if feature else variant.label
                counts = split_counts(dataset)
                panels.append(_split_panel(results, title, variant, counts))
                variants.append(variant)
        if panels:
            rows = tuple(tuple(panels[at : at + 3]) for at in range(0, len(panels), 3))
            screened = any(variant.labels.get("feature") for variant in variants)
            yield Drawing(
                name=f"figure_{number}",
                title=f"Figure {number}: how {items} are divided",
                caption=caption(
                    rows,
                    "Items of each split, in-domain and shifted. Training and "
                    "validation see in-domain items only; shifted ones are in the test "
                    "set and in the unlabelled pool, which active learning queries.",
                    "The screening of shifts has no pool." if screened else "",
                    If(hollow, "Hollow diamonds are the paper's numbers."),
                    study_source(results, variants),
                ),
                rows=rows,
                simulated=any(map(stands_in, variants)),
                size=(2.5, 1.9),
            )


def _split_panel(
    results: BenchmarkResults, title: str, variant: Variant, counts: Counts
) -> Panel:
    names = [name for name in _SPLITS if name in counts]
    most = max(max(counts[n].in_domain, counts[n].shifted) for n in names)
    marks: list[Mark] = []
    for place, name in enumerate(names):
        for side, subset in enumerate(("in_domain", "shifted")):
            count = getattr(counts[name], subset)
            x = place + 0.4 * (side - 0.5)
            if count:
                label = subset.replace("_", "-")
                bar = BarMark(
                    x=x, height=count, colour=SERIES[side], width=0.38, label=label
                )
                marks += [bar, WordMark(x, count + 0.06 * most, f"{count:,}", size=6)]
            number = _printed(results, variant, {"split": name, "subset": subset})
            if number is not None and number.value and as_in_paper(variant):
                marks.append(
                    PointMark(
                        x=x,
                        y=number.value,
                        marker="D",
                        hollow=True,
                        size=3,
                        label="published",
                    )
                )
    return Panel(
        marks=tuple(marks),
        title=title,
        x_ticks=dict(enumerate(names)),
        y_range=(0, 1.15 * most),
    )
