"""Tables 1 to 3 and figures 6 and 7: how many items there are, and what shifts cost."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from qualms.benchmarks import Variant
from qualms.datasets import Dataset
from qualms.evaluate.results import BenchmarkResults, Summary
from qualms.published import Number, published
from qualms.report.figures import (
    SERIES,
    BarMark,
    Drawing,
    Mark,
    Panel,
    PointMark,
    WordMark,
)
from qualms.report.judged import SAMPLE, over_repeats
from qualms.report.papers.values.lines import study_about, study_source, warned
from qualms.report.papers.values.settings import (
    DATASETS,
    FEATURES,
    Study,
    as_in_values,
    dataset_of,
    stands_in,
)
from qualms.report.pictures import prepared_dataset
from qualms.report.table import Column, Table, TableCell, TableLine

SCREENED = {"texture": "lidc_tex", "malignancy": "lidc_mal"}
"""Published names of two features; others are called by their own."""
_SPLITS = ("train", "val", "test", "pool")
_PAPER_STREETS = {
    ("train", "in_domain"): 13157,
    ("val", "in_domain"): 3290,
    ("test", "in_domain"): 5482,
    ("test", "shifted"): 500,
    ("pool", "in_domain"): 2975,
    ("pool", "shifted"): 2975,
}
"""Figure 7; its 16,447 training images are divided by the released code."""


class SplitCount(NamedTuple):
    """Items of a split."""

    in_domain: int
    shifted: int
    blurred: int
    """In-domain ones of the toy data that are blurred."""

    @property
    def all(self) -> int:
        """Both kinds."""
        return self.in_domain + self.shifted


def split_counts(dataset: Dataset) -> dict[str, SplitCount]:
    """How many items each split has."""
    found = {}
    for name, split in dataset.splits.items():
        count = len(split)
        shifted = _flags(split.extra.get("shifted"), count)
        groups = np.asarray(split.extra.get("group", np.full(count, ""))).astype(str)
        inside = ~shifted
        found[name] = SplitCount(
            int(inside.sum()),
            int(shifted.sum()),
            int((inside & (groups == "blurred")).sum()),
        )
    return found


def _flags(values: NDArray[Any] | None, count: int) -> NDArray[np.bool_]:
    if values is None:
        return np.zeros(count, np.bool_)
    return np.asarray(values, np.bool_)


def count_tables(results: BenchmarkResults, data: Path | None) -> tuple[Table, ...]:
    """Tables 1 and 3, of the datasets that are prepared."""
    found = {
        variant.name: (variant, split_counts(dataset))
        for variant in results.preset.variants
        if dataset_of(variant)
        and (dataset := prepared_dataset(variant, data)) is not None
    }
    toys, nodules = (
        [found[v.name] for v in results.preset.variants if v.name in found and kind(v)]
        for kind in (_is("toy"), _is("lidc"))
    )
    made = (
        _count_table(results, "1", toys, _TOY_COLUMNS),
        _count_table(results, "3", nodules, _NODULE_COLUMNS),
    )
    return tuple(table for table in made if table is not None)


def _is(start: str) -> Callable[[Variant], bool]:
    return lambda variant: dataset_of(variant).startswith(start)


Counts = Mapping[str, SplitCount]


class CountColumn(NamedTuple):
    """A number of items, and where the paper prints it."""

    label: str
    metric: str
    split: str
    of: Callable[[Counts, str], int]
    """From all splits, and the name of the test split."""


_TOY_COLUMNS = (
    CountColumn(
        *("train and val", "n_train", ""),
        lambda found, _: found["train"].all + found["val"].all,
    ),
    CountColumn(
        *("of them blurred", "n_train_blur", ""),
        lambda found, _: found["train"].blurred + found["val"].blurred,
    ),
    CountColumn("test", "n_test", "", lambda found, test: found[test].all),
    CountColumn("i.i.d.", "n_test", "iid", lambda found, test: found[test].in_domain),
    CountColumn(
        *("i.i.d. and blurred", "n_test_blur", "iid"),
        lambda found, test: found[test].blurred,
    ),
    CountColumn("OoD", "n_test", "ood", lambda found, test: found[test].shifted),
)
_NODULE_COLUMNS = (
    CountColumn("train", "n_train", "", lambda found, _: found["train"].all),
    CountColumn("val", "n_val", "", lambda found, _: found["val"].all),
    CountColumn("test i.i.d.", "n_test", "iid", lambda f, test: f[test].in_domain),
    CountColumn("test OoD", "n_test", "ood", lambda f, test: f[test].shifted),
    CountColumn(
        *("pool i.i.d.", "n_unlabeled_pool", "iid"), lambda f, _: f["pool"].in_domain
    ),
    CountColumn(
        *("pool OoD", "n_unlabeled_pool", "ood"), lambda f, _: f["pool"].shifted
    ),
)


def _count_table(
    results: BenchmarkResults,
    number: str,
    found: Sequence[tuple[Variant, Counts]],
    columns: Sequence[CountColumn],
) -> Table | None:
    if not found:
        return None
    variants = [variant for variant, _ in found]
    what = "toy items" if number == "1" else "nodules"
    return Table(
        name=f"table_{number}",
        title=f"Table {number}: number of {what}",
        about=study_about(results, variants),
        simulated=any(map(stands_in, variants)),
        columns=tuple(
            Column(
                label=c.label, decimals=0, keys={"metric": c.metric, "items": c.split}
            )
            for c in columns
        ),
        lines=tuple(
            TableLine(
                labels=(DATASETS[dataset_of(variant)],),
                cells=tuple(
                    _count_cell(
                        column.of(counts, variant.test),
                        _printed_count(number, variant, column),
                    )
                    for column in columns
                ),
                keys={"dataset": dataset_of(variant), "variant": variant.name},
            )
            for variant, counts in found
        ),
        left=("data",),
        main=False,
        keys={"number": number, "preset": results.preset.told},
    )


def _printed_count(number: str, variant: Variant, column: CountColumn) -> Number | None:
    at = number, dataset_of(variant), column.split, column.metric
    return _printed_at(at)


def _printed_at(at: tuple[str, str, str, str]) -> Number | None:
    names = ("table", "dataset", "split", "metric")
    for number in published("values").numbers:
        if tuple(number.where[name] for name in names) == at:
            return number
    return None


def _count_cell(count: int, number: Number | None) -> TableCell:
    said = None if number is None else Summary(number.mean, math.nan)
    ours = Summary(float(count), math.nan)
    return TableCell(mean=ours.mean, repeats=1, by_their_rule=ours, published=said)


def screening_table(study: Study) -> Iterator[Table]:
    """Table 2: Dice in domain and on shifted nodules, over five divisions."""
    by_feature: dict[str, list[Variant]] = {}
    for variant in study.results.preset.variants:
        if feature := variant.settings.get("screening"):
            by_feature.setdefault(str(feature), []).append(variant)
    lines = [
        line
        for feature in FEATURES
        if feature in by_feature
        for line in _screened(study, feature, by_feature[feature])
    ]
    variants = list(chain.from_iterable(by_feature.values()))
    if lines:
        yield Table(
            name="table_2",
            title="Table 2: what the shift of each feature of nodules costs",
            about=study_about(study.results, variants),
            simulated=any(map(stands_in, variants)),
            columns=(
                Column(
                    label="Dice i.i.d. ↑", decimals=3, keys={"score": "in_domain/dice"}
                ),
                Column(label="Dice OoD ↑", decimals=3, keys={"score": "shifted/dice"}),
                Column(label="drop", unit="%", decimals=1, keys={"score": "dice_drop"}),
            ),
            lines=tuple(lines),
            left=("feature", "i.i.d. / OoD"),
            notes=(
                "Each feature is divided anew in every fold, so ± is over folds: other "
                "items and another seed.",
                *warned(variants),
            ),
            spread=SAMPLE,
            keys={"number": "2", "preset": study.results.preset.told},
        )


def _screened(
    study: Study, feature: str, variants: Sequence[Variant]
) -> Iterator[TableLine]:
    dataset = SCREENED.get(feature, f"lidc_{feature}")
    comparable = all(map(as_in_values, variants))
    cells = []
    for name, split, metric, scale in (
        ("in_domain/dice", "iid", "dice", 1.0),
        ("shifted/dice", "ood", "dice", 1.0),
        ("dice_drop", "", "performance_drop", 100.0),
    ):
        found = [study.results.cell(v.name, "softmax", name) for v in variants]
        number = _printed_at(("2", dataset, split, metric))
        ours, theirs = (
            over_repeats(_by_fold(values), SAMPLE, scale=scale)
            for values in ([c.values for c in found], [c.as_published for c in found])
        )
        cells.append(
            TableCell(
                mean=ours.mean,
                spread=ours.std,
                repeats=sum(bool(cell.values) for cell in found),
                by_their_rule=theirs if comparable else None,
                published=None
                if number is None
                else Summary(number.mean, number.spread or math.nan),
                why=next((cell.why for cell in found if cell.why), ""),
            )
        )
    if any(cell.repeats for cell in cells):
        yield TableLine(
            labels=(feature.capitalize(), FEATURES[feature]),
            cells=tuple(cells),
            keys={"feature": feature, "folds": len(variants)},
        )


def _by_fold(values: Sequence[Sequence[float]]) -> tuple[float, ...]:
    """The mean over the seeds of each fold: seeds of a fold are not further folds."""
    return tuple(math.fsum(each) / len(each) for each in values if each)


def split_drawings(study: Study, data: Path | None) -> Iterator[Drawing]:
    """Figures 6 and 7: how items are divided, of the datasets that are prepared."""
    for number, start, what in (
        ("6", "lidc", "nodules"),
        ("7", "gta", "street scenes"),
    ):
        panels, variants = [], []
        for variant in study.results.preset.variants:
            name = dataset_of(variant)
            screened = variant.settings.get("screening") if start == "lidc" else None
            once = screened and variant.settings.get("fold") == 0
            wanted = once or name.startswith(start)
            dataset = prepared_dataset(variant, data) if wanted else None
            if dataset is not None:
                title = DATASETS.get(name, f"screening, {screened}")
                panels.append(_split_panel(title, variant, split_counts(dataset)))
                variants.append(variant)
        if panels:
            yield Drawing(
                name=f"figure_{number}",
                title=f"Figure {number}: how {what} are divided",
                caption="Items of each split, in-domain and shifted. Training and "
                "validation see in-domain items only; shifted ones are in the test set "
                "and in the unlabelled pool, which active learning queries. The "
                "screening of shifts has no pool. Hollow diamonds are the paper's "
                f"numbers. {study_source(study.results, variants)}",
                rows=tuple(
                    tuple(panels[at : at + 3]) for at in range(0, len(panels), 3)
                ),
                simulated=any(map(stands_in, variants)),
                size=(2.5, 1.9),
            )


def _split_panel(title: str, variant: Variant, counts: Counts) -> Panel:
    names = [name for name in _SPLITS if name in counts]
    most = max(max(counts[n].in_domain, counts[n].shifted) for n in names)
    marks: list[Mark] = []
    for place, name in enumerate(names):
        for side, kind in enumerate(("in_domain", "shifted")):
            count = getattr(counts[name], kind)
            x = place + 0.4 * (side - 0.5)
            if count:
                label = kind.replace("_", "-")
                bar = BarMark(
                    x=x, height=count, colour=SERIES[side], width=0.38, label=label
                )
                marks += [bar, WordMark(x, count + 0.06 * most, f"{count:,}", size=6)]
            printed = _printed_split(dataset_of(variant), name, kind)
            if printed and as_in_values(variant):
                point = PointMark(
                    x=x, y=printed, marker="D", hollow=True, size=3, label="published"
                )
                marks.append(point)
    return Panel(
        marks=tuple(marks),
        title=title,
        x_ticks=dict(enumerate(names)),
        y_range=(0, 1.15 * most),
    )


def _printed_split(dataset: str, split: str, kind: str) -> float:
    """The paper's number of items; 0 where it prints none."""
    if dataset == "gta5_cs":
        return _PAPER_STREETS.get((split, kind), 0)
    metric = {"pool": "n_unlabeled_pool"}.get(split, f"n_{split}")
    items = "" if split in ("train", "val") else {"in_domain": "iid"}.get(kind, "ood")
    if split in ("train", "val") and kind == "shifted":
        return 0
    number = _printed_at(("3", dataset, items, metric))
    return 0 if number is None else number.mean
