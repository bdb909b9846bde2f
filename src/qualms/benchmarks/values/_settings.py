"""What the study is made of: datasets, components, scores, and where numbers stand.

An uncertainty method is a prediction model (a row), an uncertainty measure and an
aggregation; a measure stands for predictive (PU), aleatoric (AU) or epistemic (EU)
uncertainty.
"""

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from itertools import product
from typing import NamedTuple

from qualms.benchmarks import TableRow, Variant, settings_text
from qualms.evaluate.results import BenchmarkResults, Cell, Key
from qualms.published import Number, published

DATASETS = {
    "toy1": "Toy 1",
    "toy2": "Toy 2",
    "toy3a": "Toy 3a",
    "toy3b": "Toy 3b",
    "lidc_tex": "LIDC TEX",
    "lidc_mal": "LIDC MAL",
    "gta5_cs": "GTA5/CS",
}
"""By their names among the published numbers, as tables call them."""
FEATURES = {
    "calcification": "absent / present",
    "sphericity": "round / linear",
    "lobulation": "none / some",
    "spiculation": "none / some",
    "texture": "solid, part solid / non-solid",
    "malignancy": "non-malignant / malignant",
}
"""Of the screening of shifts, in the order of table 2: in-domain and shifted ones."""
MODELS = {
    "softmax": "determ",
    "ttd": "ttd",
    "ensemble": "ensemble",
    "tta": "tta",
    "ssn": "ssn",
}
"""Rows of the paper, and what the published numbers call them."""
AGGREGATIONS = {
    "patch": "patch",
    "threshold": "thresh",
    "image": "image",
}
"""Of the paper, and what the published numbers call them."""
KINDS = ("PU", "AU", "EU")
"""Predictive, aleatoric and epistemic uncertainty."""


class ScoreColumn(NamedTuple):
    """A score of the downstream tasks, on some items."""

    name: str
    metric: str
    """Its published name."""
    label: str
    group: str
    subset: str = ""
    lower: bool = False
    """Whether lower is better."""

    @property
    def split(self) -> str:
        """Its items, as the published numbers call them."""
        return {"in_domain": "iid", "shifted": "ood"}.get(self.subset, "")

    @property
    def head(self) -> str:
        """Its label with the items and the better direction."""
        items = {"in_domain": "i.i.d.", "shifted": "OoD"}.get(self.subset, "")
        arrow = "↓" if self.lower else "↑"
        return " ".join(filter(None, (self.label, items, arrow)))

    @property
    def keys(self) -> tuple[str, ...]:
        """Where results may have it. Items without a shift are all in domain."""
        if self.name == "gain":
            return ("gain",)
        if self.subset == "shifted":
            return (f"shifted/{self.name}",)
        here = f"{self.subset}/{self.name}" if self.subset else self.name
        return tuple(dict.fromkeys((here, self.name)))


def _both(
    name: str, label: str, group: str, *, lower: bool = False
) -> tuple[ScoreColumn, ...]:
    return tuple(
        ScoreColumn(name, name, label, group, subset, lower)
        for subset in ("in_domain", "shifted")
    )


DICE = _both("dice", "Dice", "Segmentation")
AUROC = ScoreColumn("ood_auroc", "auroc", "AUROC", "OoD detection")
AURC = _both("aurc", "AURC", "Failure detection", lower=True)
EAURC = _both("eaurc", "E-AURC", "Failure detection", lower=True)
GAIN = ScoreColumn("gain", "al_improvement", "gain", "Active learning", "shifted")
ACE = _both("ace", "ACE", "Calibration", lower=True)
NCC = _both("ncc", "NCC", "Ambiguity")
GED = _both("ged", "GED", "Ambiguity", lower=True)
ALL_SCORES = (*DICE, AUROC, *AURC, *EAURC, GAIN, *ACE, *NCC, *GED)
"""The 14 columns of tables 5 and 6."""


class Component(NamedTuple):
    """An uncertainty method: a prediction model, a measure and an aggregation."""

    row: str
    measure: str
    aggregation: str
    """'' where only maps were judged, which no aggregation enters."""

    @property
    def settings(self) -> dict[str, str]:
        """Of the place where it is judged."""
        return {"measure": self.measure, "aggregation": self.aggregation}


Value = Callable[[str, Component, ScoreColumn], float]
"""(dataset, method, score) to a mean, ours or the paper's; nan where there is none."""


def kind_of(row: TableRow, measure: str) -> str:
    """PU, AU or EU: what a measure of a row stands for."""
    said: Mapping[str, str] = row.settings.get("measures", {})
    return next((kind for kind, name in said.items() if name == measure), "PU")


def dataset_of(variant: Variant) -> str:
    """The published dataset that a variant is, or stands in for; '' for none.

    >>> from qualms.spec import Part
    >>> toy = Part(name="toy_shapes")
    >>> dataset_of(Variant(name="toy_3a", label="Toy 3a", dataset=toy))
    'toy3a'
    """
    for name in DATASETS:
        if _plain(name) in (_plain(variant.label), _plain(variant.name)):
            return name
    return ""


def as_in_values(variant: Variant) -> bool:
    """Whether numbers of a variant may be compared with published ones.

    They may on the paper's own data, and on toy volumes, which are made by its rules.
    """
    if not is_toy(variant):
        return not variant.simulated
    options = variant.dataset.options
    return (options.get("dims", 3), options.get("side", 64)) == (3, 64)


def is_toy(variant: Variant) -> bool:
    """Whether it is of the toy shapes, which the paper simulates too."""
    return variant.dataset.name == "toy_shapes"


def stands_in(variant: Variant) -> bool:
    """Whether it is simulated where the paper has real data."""
    return variant.simulated and not is_toy(variant)


def values_data_text(variants: Iterable[Variant]) -> str:
    """Says plainly which data are not the paper's."""
    shown = list(variants)
    told = []
    toys = [variant for variant in shown if is_toy(variant)]
    if any(map(as_in_values, toys)):
        told.append("toy volumes made by the paper's rules")
    elif toys:
        flat = all(variant.dataset.options.get("dims") == 2 for variant in toys)
        kind = "images of two dimensions" if flat else "shapes of another size"
        told.append(f"toy {kind}, not the paper's volumes")
    instead = [variant for variant in shown if stands_in(variant)]
    if instead:
        names = ", ".join(dict.fromkeys(v.dataset.name for v in instead))
        told.append(f"simulated data, not the paper's ({names})")
    if len(toys) + len(instead) < len(shown):
        told.append("the paper's data")
    return "; ".join(told)


@dataclass(frozen=True, slots=True)
class Study:
    """Results seen as the paper's study."""

    results: BenchmarkResults
    variants: Mapping[str, Variant] = field(init=False)
    """The judged variant of each published dataset, in the order of tables."""
    judged: Mapping[str, list[Component]] = field(init=False)
    """By variant, the methods that were judged on it, in the order of cells."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "variants", _judged_datasets(self.results))
        object.__setattr__(self, "judged", _judged_components(self.results))

    def components(self, variants: Iterable[Variant]) -> list[Component]:
        """Every method that was judged on some variant, in the order of tables."""
        names = dict.fromkeys(variant.name for variant in variants)
        there = dict.fromkeys(one for n in names for one in self.judged.get(n, ()))
        aggregated = {(one.row, one.measure) for one in there if one.aggregation}
        order = {name: place for place, name in enumerate(self.results.preset.rows)}
        return sorted(
            (
                one
                for one in there
                if one.row in order
                and (one.aggregation or (one.row, one.measure) not in aggregated)
            ),
            key=lambda one: (order[one.row], *self._place(one)),
        )

    def _place(self, one: Component) -> tuple[int, int, str]:
        """Measures by what they stand for, then aggregations as the paper has them."""
        known = list(AGGREGATIONS)
        at = known.index(one.aggregation) if one.aggregation in known else len(known)
        return KINDS.index(self.kind(one)), at, one.aggregation

    def kind(self, one: Component) -> str:
        """PU, AU or EU."""
        return kind_of(self.results.benchmark.row(one.row), one.measure)

    def beyond(self, one: Component) -> bool:
        """Whether the paper has no such method."""
        plain = one.row == "softmax"
        return (
            one.row not in MODELS
            or one.aggregation not in (*AGGREGATIONS, "")
            or plain != (one.measure == "MSR")
        )

    def cell(self, variant: Variant, one: Component, score: ScoreColumn) -> Cell:
        """Our cell; one that says why where it is empty."""
        settings: tuple[dict[str, str], ...] = (
            one.settings,
            {"measure": one.measure},
            {},
        )
        empty: Cell | None = None
        for at, name in product(settings, score.keys):
            key = Key(variant.name, one.row, settings_text(at), name)
            found = self.results.cells.get(key)
            if found is not None and found.values:
                return found
            empty = empty or found
        key = Key(variant.name, one.row, settings_text(one.settings), score.keys[0])
        return empty or Cell(key=key, why=self.results.why_absent(key))

    def ours(self, dataset: str, one: Component, score: ScoreColumn) -> float:
        """Our mean; by the rule of the released code on data that the paper has."""
        variant = self.variants.get(dataset)
        if variant is None:
            return math.nan
        cell = self.cell(variant, one, score)
        theirs = cell.by_their_rule.mean
        comparable = as_in_values(variant) and math.isfinite(theirs)
        return theirs if comparable else cell.ours.mean


DETAILED, SEPARATION = ("5", "6"), ("4a", "4b")
"""Tables that print numbers of methods; table 4 repeats some with fewer digits."""


def _judged_datasets(results: BenchmarkResults) -> dict[str, Variant]:
    there = {key.variant for key, cell in results.cells.items() if cell.values}
    found = {
        dataset_of(variant): variant
        for variant in reversed(results.preset.variants)
        if variant.name in there
    }
    return {name: found[name] for name in DATASETS if name in found}


def _judged_components(results: BenchmarkResults) -> dict[str, list[Component]]:
    found: dict[str, dict[Component, None]] = {}
    for key, cell in results.cells.items():
        known = settings_of(key.settings)
        if cell.values and "measure" in known:
            one = Component(key.row, known["measure"], known.get("aggregation", ""))
            found.setdefault(key.variant, {})[one] = None
    return {variant: list(ones) for variant, ones in found.items()}


def theirs(dataset: str, one: Component, score: ScoreColumn) -> float:
    """The published mean as a fraction; nan where there is none."""
    for tables in (DETAILED, SEPARATION):
        number = printed_number(dataset, one, score, tables)
        if number is not None:
            return number.mean / (100.0 if number.unit == "x100" else 1.0)
    return math.nan


def printed_number(
    dataset: str, one: Component, score: ScoreColumn, tables: tuple[str, ...]
) -> Number | None:
    """The published number of a method in some tables; None where there is none."""
    at = dataset, score.split, MODELS.get(one.row, ""), one.measure, score.metric
    numbers = _printed(tables)
    aggregation = AGGREGATIONS.get(one.aggregation, "none")
    # What no aggregation enters is printed without one in table 4.
    return numbers.get((*at, aggregation)) or numbers.get((*at, ""))


def published_components(dataset: str) -> list[Component]:
    """The methods that the paper has on a dataset, in its order."""
    rows = {theirs: ours for ours, theirs in MODELS.items()}
    aggregations = {theirs: ours for ours, theirs in AGGREGATIONS.items()}
    found = (
        Component(rows[model], measure, aggregations[aggregation])
        for tables in (DETAILED, SEPARATION)
        for name, _, model, measure, _, aggregation in _printed(tables)
        if name == dataset and aggregation
    )
    return list(dict.fromkeys(found))


@cache
def settings_of(text: str) -> Mapping[str, str]:
    """Settings from their text.

    >>> settings_of("measure=PE, aggregation=patch")
    {'measure': 'PE', 'aggregation': 'patch'}
    """
    parts = (part.partition("=") for part in text.split(", ") if "=" in part)
    return {name: value for name, _, value in parts}


@cache
def _printed(tables: tuple[str, ...]) -> dict[tuple[str, ...], Number]:
    """Numbers by dataset, items, model, measure, score and aggregation."""
    columns = (
        *("dataset", "split", "prediction_model", "uncertainty_measure"),
        *("metric", "aggregation"),
    )
    return {
        tuple(str(number.where[column]) for column in columns): number
        for number in published("values").numbers
        if number.where["table"] in tables
    }


def _plain(text: str) -> str:
    return "".join(letter for letter in text.lower() if letter.isalnum())
