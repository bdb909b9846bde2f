"""Parts of the study: backbones, methods and scores."""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from qualms.benchmarks.url._rows import HALF, SHOTS
from qualms.evaluate.benchmark_results import BenchmarkResults
from qualms.labels import Label, Wanted
from qualms.report.figures import MARKERS, SERIES
from qualms.report.layout import published_of
from qualms.results import Result
from qualms.study import TableRow, Variant
from qualms.wording import listed_words

BY_R_AUROC, BY_RECALL = "released_runs", "released_runs_by_recall"
"""Sources of the published numbers: runs of the released code, chosen either way."""
FEW_SHOT = "released_few_shot"


class UrlScore(NamedTuple):
    """A score of tables and figures."""

    subset: str
    score: str
    label: str
    chance: float = math.nan
    """Its value for a random uncertainty."""

    @property
    def head(self) -> str:
        """Label with the better direction."""
        return f"{self.label} ↑"

    @property
    def labels(self) -> dict[str, str]:
        """Labels of its numbers."""
        return {"subset": self.subset, "score": self.score}


R_AUROC = UrlScore("all", "r_auroc", "R-AUROC", 0.5)
RECALL = UrlScore("all", "recall_at_1", "R@1")
CROP = UrlScore("all", "crop_rate", "crop rate", 0.5)
HUMAN = UrlScore("soft", "human_alignment", "human alignment", 0.0)
OOD = UrlScore("all", "ood_auroc", "OOD AUROC", 0.5)
AMBIGUITY = UrlScore("all", "ambiguity_spearman", "all downstream sets", 0.0)
MIXED = UrlScore("all", "mixed_r_auroc", "mixed R-AUROC", 0.5)
MAIN_SCORES = (R_AUROC, RECALL, CROP, HUMAN, OOD, MIXED)
UP_TOP_1 = UrlScore("upstream", "accuracy", "top-1")
UP_RECALL = UrlScore("upstream", "recall_at_1", "R@1")
UP_R_AUROC = UrlScore("upstream", "r_auroc", "R-AUROC", 0.5)
UP_CROP = UrlScore("upstream", "crop_rate", "crop rate", 0.5)
UPSTREAM_SCORES = (UP_TOP_1, UP_RECALL, UP_R_AUROC, UP_CROP)
SOFT_R_AUROC = UrlScore("soft", "r_auroc", "R-AUROC, sets with votes", 0.5)
SOFT_CROP = UrlScore("soft", "crop_rate", "crop rate, sets with votes", 0.5)
VAL_R_AUROC = UrlScore("val", "r_auroc", "validation R-AUROC", 0.5)
VAL_RECALL = UrlScore("val", "recall_at_1", "validation R@1")


class MethodLook(NamedTuple):
    """Colour and marker of a method in figures."""

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
    """Results in terms of the paper's study: backbones, methods and scores."""

    results: BenchmarkResults

    @property
    def judged(self) -> Sequence[Variant]:
        """Variants that have any number."""
        return self.results.variants

    @property
    def backbones(self) -> list[Variant]:
        """Variants of the main study, one for each backbone."""
        return [variant for variant in self.judged if "family" not in variant.labels]

    @property
    def listed(self) -> list[Variant]:
        """Variants of the main tables: configurations if there are no others."""
        configured = [variant for variant in self.judged if "config" in variant.labels]
        return self.backbones or configured

    @property
    def methods(self) -> list[TableRow]:
        """Rows of methods that some judged variant has."""
        names = {row.name for v in self.judged for row in self.methods_on(v)}
        return [row for row in self.results.plan.rows if row.name in names]

    def methods_on(self, variant: Variant) -> list[TableRow]:
        """Return the rows of a variant that are first trainings, each run once."""
        return [row for row in self.shown_on(variant) if "look" not in row.settings]

    def shown_on(self, variant: Variant) -> list[TableRow]:
        """Return these rows, and those that show their runs by another uncertainty."""
        rows = self.results.plan.rows_allowed(variant)
        return [row for row in rows if row.stage is None]

    def kin(self, variant: Variant) -> list[Variant]:
        """Return judged variants of the same backbone: other choices and configs."""
        family = family_of(variant)
        return [other for other in self.judged if family_of(other) == family]

    @property
    def families(self) -> dict[str, list[Variant]]:
        """Judged variants by the name of their main one."""
        families: dict[str, list[Variant]] = {}
        for variant in self.judged:
            families.setdefault(family_of(variant), []).append(variant)
        return families

    def result(self, variant: Variant, row: str, score: UrlScore) -> Result:
        """Return our number by the chosen uncertainty."""
        return self.results.result(
            variant=variant.name, row=row, uncertainty=None, **score.labels
        )

    def mean(self, variant: Variant, row: str, score: UrlScore) -> float:
        """Return our mean over repeats; nan where there is none."""
        return self.result(variant, row, score).value

    def uncertainties(self, variant: Variant, row: TableRow) -> list[str]:
        """Return the uncertainties of a row that has several.

        A row that the benchmark does not declare has all that were judged.
        """
        table = self.results.table.where(variant=variant.name, row=row.name)
        in_results = [str(name) for name in table.distinct("uncertainty")]
        names: Sequence[str] = row.settings.get("us", in_results)
        return list(names) if len(names) > 1 else []

    def points(
        self, variants: Iterable[Variant], x: UrlScore, y: UrlScore
    ) -> Iterator[ScorePoint]:
        """Yield two scores of every run of the methods."""
        for variant in variants:
            for row in self.methods:
                values = [self.result(variant, row.name, s).values for s in (x, y)]
                for pair in zip(*values, strict=False):
                    if all(map(math.isfinite, pair)):
                        yield ScorePoint(row.name, variant.name, *pair)

    def taught_sets(self, variant: Variant) -> list[str]:
        """Return the downstream sets whose items some row was trained on."""
        taught = {row.labels.get("taught") for row in self.results.plan.rows}
        return [name for name in variant.settings["retrieval"] if name in taught]

    def taught_methods(self, variant: Variant) -> list[str]:
        """Return methods with a second training on all of these sets."""
        return [
            row.name
            for row in self.methods
            if any(self.taught(variant, row.name, n, R_AUROC) for n in (*FEW, HALF))
        ]

    def taught(
        self, variant: Variant, row: str, shots: str, score: UrlScore
    ) -> Sequence[float]:
        """Return by repeat the mean over sets of a score after a second training.

        () where a set was not trained on. Where some repeats lack a set it is the mean
        over all, as nobody knows which repeats belong together.
        """
        by_set = [
            self.results.result(
                variant=variant.name,
                first=row,
                shots=shots,
                taught=name,
                uncertainty=None,
                **score.labels,
            ).values
            for name in self.taught_sets(variant)
        ]
        if not by_set or not all(by_set):
            return ()
        if len({*map(len, by_set)}) > 1:
            defined = [[v for v in each if math.isfinite(v)] for each in by_set]
            if not all(defined):
                return ()
            means = [math.fsum(each) / len(each) for each in defined]
            return [math.fsum(means) / len(means)]
        repeats = zip(*by_set, strict=True)
        return [math.fsum(values) / len(values) for values in repeats]

    def taught_text(self, variants: Sequence[Variant]) -> str:
        """Return the sets of a mean in words."""
        names = list(dict.fromkeys(n for v in variants for n in self.taught_sets(v)))
        return listed_words(names)

    def look(self, row: str) -> MethodLook:
        """Return colour and marker of a method."""
        place = [method.name for method in self.methods].index(row)
        return MethodLook(SERIES[place % len(SERIES)], MARKERS[place % len(MARKERS)])

    def label(self, row: str) -> str:
        """Return the paper's name of a row."""
        return self.results.plan.row(row).label

    def about(self, variants: Sequence[Variant]) -> str:
        """Return data and preset, to be shown with every number."""
        if any(variant.simulated for variant in variants):
            data = "simulated data, not the paper's"
        elif all("backbone" in variant.labels for variant in variants):
            data = "the paper's data"
        else:
            data = "real data, not the paper's"
        return f"{data}; preset {self.results.plan.preset_text}"

    def source(self, variants: Sequence[Variant]) -> str:
        """Return the same as a sentence, for captions."""
        about = self.about(variants)
        return f"{about[0].upper()}{about[1:]}."

    def released(
        self,
        variant: Variant,
        row: str,
        score: UrlScore,
        source: str = BY_R_AUROC,
        *,
        shots: str | None = None,
    ) -> Result | None:
        """Return the number of the released runs on a variant's backbone, or None."""
        return self.printed(
            source=source,
            backbone=variant.labels.get("backbone"),
            row=row,
            shots=shots,
            **score.labels,
        )

    def printed(self, **labels: Wanted) -> Result | None:
        """Return the first published number with these labels, or None."""
        book = published_of(self.results)
        return None if book is None else book.table.get(**labels)

    def printed_in_text(self, score: str, **labels: Label | None) -> float:
        """Return a number of the paper's text that alone has its name.

        It is nan where there is none, or more than one.
        """
        book = published_of(self.results)
        if book is None:
            return math.nan
        numbers = [
            number.value
            for number in book.table.where(score=score, **labels)
            if not str(number.labels["source"]).startswith("released")
        ]
        return numbers[0] if len(numbers) == 1 else math.nan


FEW = tuple(map(str, SHOTS))
"""The labels `shots` of trainings on a few items of each class."""


def family_of(variant: Variant) -> str:
    """Return the name of the main variant with the same data and backbone."""
    return str(variant.labels.get("family", variant.name))
