"""The paper's words: its datasets and scores, and the remarks on our data.

An uncertainty method is a prediction model (a row), a measure and an aggregation. These
and the type of uncertainty that a measure stands for are labels of our results and of
the published numbers alike.
"""

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from qualms.benchmarks.values._rows import FIRST_NAMES, PAPER_AGGREGATIONS
from qualms.benchmarks.values._variants import LABELLED_OPTIONS
from qualms.evaluate.benchmark_results import BenchmarkResults
from qualms.labels import Label, Labels
from qualms.report.layout import published_of
from qualms.results import ResultsTable
from qualms.study import RunPlan, Variant

DATASETS = (
    *("Toy 1", "Toy 2", "Toy 3a", "Toy 3b"),
    *("LIDC TEX", "LIDC MAL", "GTA5/CS"),
)
"""Labels of the variants that the paper has numbers of."""
METHOD = ("row", "type", "measure", "aggregation")
"""Labels of an uncertainty method."""
DATA = ("simulated", "dims", "side")
"""Labels in which our data may differ from the paper's."""
DETAILED, SEPARATION = ("5", "6"), ("4a", "4b")
"""Tables that print numbers of methods; table 4 repeats some with fewer digits."""
TYPES_NOTE = (
    "PU, AU, EU: a measure that stands for predictive, aleatoric or epistemic "
    "uncertainty. MSR: one minus the largest probability; PE: entropy of the mean "
    "prediction; EE: mean entropy of draws; MI: PE - EE."
)
_ELSEWHERE = (
    "Published numbers in brackets are of the paper's data, ours are not: read them "
    "for the order of methods, not for their size."
)


class ScoreColumn(NamedTuple):
    """A score of the downstream tasks, on some items."""

    name: str
    label: str
    group: str
    subset: str = "all"
    lower: bool = False
    """True if lower is better."""
    by: tuple[str, ...] = METHOD[1:]
    """Labels of a method that it depends on, besides the row."""

    @property
    def labels(self) -> dict[str, Label | None]:
        """The labels of its results, besides those of the method."""
        absent = (name for name in METHOD[1:] if name not in self.by)
        return {"subset": self.subset, "score": self.name, **dict.fromkeys(absent)}

    @property
    def title(self) -> str:
        """Its label with the items."""
        items = {"in_domain": "i.i.d.", "shifted": "OoD"}.get(self.subset, "")
        return " ".join(filter(None, (self.label, items)))

    @property
    def head(self) -> str:
        """Its title with the better direction."""
        return f"{self.title} {'↓' if self.lower else '↑'}"


def _both(
    name: str,
    label: str,
    group: str,
    *,
    lower: bool = False,
    by: tuple[str, ...] = METHOD[1:],
) -> tuple[ScoreColumn, ...]:
    return tuple(
        ScoreColumn(name, label, group, subset, lower, by)
        for subset in ("in_domain", "shifted")
    )


_MAPS = ("type", "measure")
DICE = _both("dice", "Dice", "Segmentation", by=())
AUROC = ScoreColumn("ood_auroc", "AUROC", "OoD detection")
AURC = _both("aurc", "AURC", "Failure detection", lower=True)
EAURC = _both("eaurc", "E-AURC", "Failure detection", lower=True)
GAIN = ScoreColumn("gain", "gain", "Active learning", "shifted")
ACE = _both("ace", "ACE", "Calibration", lower=True, by=_MAPS)
NCC = _both("ncc", "NCC", "Ambiguity", by=_MAPS)
GED = _both("ged", "GED", "Ambiguity", lower=True, by=())
ALL_SCORES = (*DICE, AUROC, *AURC, *EAURC, GAIN, *ACE, *NCC, *GED)
"""The 14 columns of tables 5 and 6."""


class Study(NamedTuple):
    """Our results and the published numbers of the paper's datasets and methods."""

    results: BenchmarkResults
    variants: tuple[Variant, ...]
    """Variants with numbers, in the order of the paper's datasets."""
    ours: ResultsTable
    """As they are compared with the paper: by the rule of the released code on data
    like the paper's."""
    printed: ResultsTable
    """With all of their digits first."""

    def printed_for(self, dataset: str) -> ResultsTable:
        """Return the published numbers of the models that ours has.

        They are none for data that are not the paper's or made by its rules.
        """
        like = (v for v in self.variants if v.label == dataset)
        if not all(map(as_in_paper, like)):
            return ResultsTable.of(())
        rows = self.ours.where(dataset=dataset, aggregation=PAPER_AGGREGATIONS)
        numbers = self.printed.where(dataset=dataset)
        return numbers.where(row=rows.distinct("row")) if len(rows) else numbers


def study_of(results: BenchmarkResults) -> Study:
    """Choose the numbers that the paper has too."""
    variants = [v for v in results.variants if v.label in DATASETS]
    variants.sort(key=lambda variant: DATASETS.index(variant.label))
    compared = {variant.name for variant in variants if as_in_paper(variant)}
    numbers = results.table.where(
        variant=tuple(variant.name for variant in variants),
        row=FIRST_NAMES,
        aggregation=(None, *PAPER_AGGREGATIONS),
        uncertainty=None,
    )
    compared_numbers = (
        replace(number, value=number.released)
        if number.labels["variant"] in compared and math.isfinite(number.released)
        else number
        for number in numbers
    )
    return Study(
        results,
        tuple(variants),
        ResultsTable.of(compared_numbers),
        paper_numbers(results),
    )


def paper_numbers(results: BenchmarkResults) -> ResultsTable:
    """Return the published numbers of methods, those of tables 5 and 6 first."""
    book = published_of(results)
    assert book is not None  # the benchmark declares its published numbers
    return book.table.where(table=DETAILED) + book.table.where(table=SEPARATION)


def method_labels(plan: RunPlan, labels: Labels) -> tuple[str, ...]:
    """Return a model, a measure with what it stands for, and the aggregation."""
    measure = f"{labels['measure']} ({labels['type']})"
    over = str(labels.get("aggregation", ""))
    return plan.row(str(labels["row"])).label, measure, over


def is_toy(variant: Variant) -> bool:
    """Return whether a variant is of the toy shapes, which the paper simulates too."""
    return variant.labels.get("family") == "Toy"


def as_in_paper(variant: Variant) -> bool:
    """Return whether numbers of a variant may be compared with published ones.

    They may on the paper's own data, and on toy volumes, which are made by its rules.
    """
    if not is_toy(variant):
        return not variant.simulated
    options, usual = variant.dataset.options, LABELLED_OPTIONS["toy_shapes"]
    return all(options.get(name, value) == value for name, value in usual.items())


def stands_in(variant: Variant) -> bool:
    """Return whether a variant is simulated where the paper has real data."""
    return variant.simulated and not is_toy(variant)


def values_data_text(variants: Sequence[Variant]) -> str:
    """Say plainly which data are not the paper's."""
    toys = [variant for variant in variants if is_toy(variant)]
    instead = [variant for variant in variants if stands_in(variant)]
    parts = []
    if any(map(as_in_paper, toys)):
        parts.append("toy volumes made by the paper's rules")
    elif toys:
        flat = all(variant.dataset.options.get("dims") == 2 for variant in toys)
        kind = "images of two dimensions" if flat else "shapes of another size"
        parts.append(f"toy {kind}, not the paper's volumes")
    if instead:
        names = ", ".join(dict.fromkeys(v.dataset.name for v in instead))
        parts.append(f"simulated data, not the paper's ({names})")
    if len(toys) + len(instead) < len(variants):
        parts.append("the paper's data")
    return "; ".join(parts)


def study_about(results: BenchmarkResults, variants: Sequence[Variant]) -> str:
    """Return data and preset: what must stand beside every number."""
    return f"{values_data_text(variants)}; preset {results.plan.preset_text}"


def study_source(results: BenchmarkResults, variants: Sequence[Variant]) -> str:
    """Return data and preset as a sentence, for captions."""
    about = study_about(results, variants)
    return f"{about[0].upper()}{about[1:]}."


def data_warning(variants: Sequence[Variant]) -> tuple[str, ...]:
    """Return a note where published numbers are of other data than ours."""
    return () if all(map(as_in_paper, variants)) else (_ELSEWHERE,)
