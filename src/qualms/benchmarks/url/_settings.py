"""What the study is made of: backbones, methods, scores, and where numbers stand."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

from qualms.benchmarks import TableRow, Variant
from qualms.evaluate.results import BenchmarkResults, Cell
from qualms.published import Number, published
from qualms.report.figures import MARKERS, SERIES
from qualms.report.judged import judged_variants

BY_R_AUROC, BY_RECALL = "released_runs", "released_runs_by_recall"
"""Sources of the published numbers: runs of the released code, chosen either way."""
SHOTS = (1, 2, 5, 10)


class UrlScore(NamedTuple):
    """A score of tables and figures."""

    name: str
    """In the results."""
    label: str
    metric: str = ""
    """Its published name; '' where nothing is published."""
    chance: float = math.nan
    """Its value for an uncertainty that knows nothing."""

    @property
    def head(self) -> str:
        """Its label with the better direction."""
        return f"{self.label} ↑"


R_AUROC = UrlScore("r_auroc", "R-AUROC", "r_auroc", 0.5)
RECALL = UrlScore("recall_at_1", "R@1", "recall_at_1")
CROP = UrlScore("crop_rate", "crop rate", "crop_rate", 0.5)
HUMAN = UrlScore("soft/human_alignment", "human alignment", "human_alignment", 0.0)
OOD = UrlScore("ood_auroc", "OOD AUROC", "ood_auroc", 0.5)
MIXED = UrlScore("mixed_r_auroc", "mixed R-AUROC", "mixed_r_auroc", 0.5)
MAIN_SCORES = (R_AUROC, RECALL, CROP, HUMAN, OOD, MIXED)
UP_TOP_1 = UrlScore("upstream/accuracy", "top-1", "upstream_accuracy")
UP_RECALL = UrlScore("upstream/recall_at_1", "R@1", "upstream_recall_at_1")
UP_R_AUROC = UrlScore("upstream/r_auroc", "R-AUROC", "upstream_r_auroc", 0.5)
UP_CROP = UrlScore("upstream/crop_rate", "crop rate", "upstream_crop_rate", 0.5)
UPSTREAM_SCORES = (UP_TOP_1, UP_RECALL, UP_R_AUROC, UP_CROP)
SOFT_R_AUROC = UrlScore("soft/r_auroc", "R-AUROC, sets with votes", "", 0.5)
SOFT_CROP = UrlScore("soft/crop_rate", "crop rate, sets with votes", "", 0.5)


class MethodLook(NamedTuple):
    """How figures show a method."""

    colour: str
    marker: str


class ScorePoint(NamedTuple):
    """Two scores of one run."""

    row: str
    variant: str
    x: float
    y: float


@dataclass(frozen=True, slots=True)
class UrlStudy:
    """Results seen as the paper's study."""

    results: BenchmarkResults

    @property
    def judged(self) -> list[Variant]:
        """Variants with any number."""
        return judged_variants(self.results)

    @property
    def backbones(self) -> list[Variant]:
        """The variants of the main study, one for each backbone."""
        return [variant for variant in self.judged if "of" not in variant.settings]

    @property
    def listed(self) -> list[Variant]:
        """The variants of the main tables: configurations where there are no others."""
        configured = [one for one in self.judged if "config" in one.settings]
        return self.backbones or configured

    @property
    def methods(self) -> list[TableRow]:
        """Rows of methods that some judged variant has."""
        names = {row.name for v in self.judged for row in self.methods_on(v)}
        rows = (self.results.benchmark.row(name) for name in self.results.preset.rows)
        return [row for row in rows if row.name in names]

    def methods_on(self, variant: Variant) -> list[TableRow]:
        """Rows of methods that the preset has, and that belong to a variant."""
        rows = (self.results.benchmark.row(name) for name in self.results.preset.rows)
        own = variant.rows or self.results.preset.rows
        return [row for row in rows if row.stage is None and row.name in own]

    def kin(self, variant: Variant) -> list[Variant]:
        """All that was judged with the same backbone: other choices and configs."""
        own = family_of(variant)
        return [other for other in self.judged if family_of(other) == own]

    @property
    def families(self) -> dict[str, list[Variant]]:
        """Judged variants by the name of their main one."""
        found: dict[str, list[Variant]] = {}
        for variant in self.judged:
            found.setdefault(family_of(variant), []).append(variant)
        return found

    def cell(self, variant: Variant, row: str, score: UrlScore | str) -> Cell:
        """Our cell by the chosen uncertainty."""
        name = score if isinstance(score, str) else score.name
        return self.results.cell(variant.name, row, name)

    def mean(self, variant: Variant, row: str, score: UrlScore | str) -> float:
        """Our mean over repeats; nan where there is none."""
        return self.cell(variant, row, score).ours.mean

    def uncertainties(self, variant: Variant, row: TableRow) -> list[str]:
        """The uncertainties of a row that has several.

        A row that the benchmark does not declare has all that were judged.
        """
        cells = (
            key for key in self.results.cells if key[:2] == (variant.name, row.name)
        )
        judged = dict.fromkeys(key.settings for key in cells if key.settings)
        found = [text.removeprefix("u=") for text in judged]
        declared: Sequence[str] = row.settings.get("us", found)
        return list(declared) if len(declared) > 1 else []

    def points(
        self, variants: Iterable[Variant], x: UrlScore, y: UrlScore
    ) -> Iterator[ScorePoint]:
        """Two scores of every run of the methods."""
        for variant in variants:
            for row in self.methods:
                both = [self.cell(variant, row.name, score).values for score in (x, y)]
                for pair in zip(*both, strict=False):
                    if all(map(math.isfinite, pair)):
                        yield ScorePoint(row.name, variant.name, *pair)

    def look(self, row: str) -> MethodLook:
        """Colour and marker of a method."""
        place = [method.name for method in self.methods].index(row)
        return MethodLook(SERIES[place % len(SERIES)], MARKERS[place % len(MARKERS)])

    def label(self, row: str) -> str:
        """The paper's name of a row."""
        return self.results.benchmark.row(row).label

    def about(self, variants: Sequence[Variant]) -> str:
        """Data and preset: what must stand beside every number."""
        if any(variant.simulated for variant in variants):
            data = "simulated data, not the paper's"
        elif all(variant.settings.get("backbone") for variant in variants):
            data = "the paper's data"
        else:
            data = "real data, not the paper's"
        return f"{data}; preset {self.results.preset.told}"

    def source(self, variants: Sequence[Variant]) -> str:
        """The same as a sentence, for captions."""
        about = self.about(variants)
        return f"{about[0].upper()}{about[1:]}."


def family_of(variant: Variant) -> str:
    """The name of the main variant with the same data and backbone."""
    return str(variant.settings.get("of", variant.name))


def released_number(
    variant: Variant, row: str, metric: str, source: str
) -> Number | None:
    """The published number of a method on a variant's backbone; None for none."""
    backbone = str(variant.settings.get("backbone", ""))
    return _numbers().get((source, backbone, row, metric))


def named_number(metric: str) -> float:
    """A published number of the text that has its metric for itself.

    >>> named_number("rank_corr_human_alignment_vs_r_auroc")
    0.8
    """
    found = [
        number.mean
        for number in published("url").numbers
        if number.where["metric"] == metric
        and not str(number.where["source"]).startswith("released")
    ]
    return found[0] if len(found) == 1 else math.nan


@cache
def _numbers() -> Mapping[tuple[str, ...], Number]:
    columns = ("source", "backbone", "method", "metric")
    return {
        tuple(str(number.where[column]) for column in columns): number
        for number in published("url").numbers
    }
