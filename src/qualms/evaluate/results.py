"""The frozen tables that judging ends in: of one file, and of a benchmark."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from qualms.benchmarks import (
    Benchmark,
    Expectation,
    Preset,
    Settings,
    Variant,
    settings_text,
    settings_values,
)
from qualms.evaluate.entry import Curve, Entry, Histogram, MapSlice, Scatter
from qualms.evaluate.notebook import (
    notebook_lines,
    notebook_number,
    notebook_table,
    pandas_frame,
)
from qualms.predictions import Header, Predictions
from qualms.scores import Better, Difference
from qualms.scores.inference import ConfidenceSet, Design
from qualms.shelf import plural, suggest

if TYPE_CHECKING:
    from qualms.evaluate.verdict import Answer

_BESIDE = ("all", "in_domain", "shifted")
"""Subsets that stand beside each other in a notebook."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreRow:
    """One score of a file on one subset, with its interval."""

    score: str
    """The function in `qualms.scores` that gave the value."""
    label: str
    subset: str
    """Which items: all, in_domain, shifted, balanced, or group=<name>."""
    settings: Mapping[str, Any]
    """Which uncertainty, interval rule or recalibration; {} where there is only one."""
    better: Better
    value: float
    low: float
    high: float
    n: int
    why: str = ""
    """Why the value is undefined, or a remark that belongs beside it."""
    method: str = ""
    """How the interval was made."""
    no_interval: str = ""
    """Why there is none, where the value is defined."""
    entry: Entry | None = field(default=None, repr=False, compare=False)
    """What comparisons with other files are made of."""

    @property
    def detail(self) -> str:
        """The settings as a table shows them: their values alone."""
        return settings_values(self.settings)

    @property
    def key(self) -> tuple[str, str, str]:
        """What the row is about: score, subset, settings."""
        return (self.score, self.subset, settings_text(self.settings))


@dataclass(frozen=True, slots=True, kw_only=True)
class Results:
    """Everything `qualms score` says about one predictions file."""

    name: str
    header: Header
    task: str
    n: int
    draws: int
    """Draws of the predictions (M)."""
    rows: tuple[ScoreRow, ...]
    curves: tuple[Curve, ...] = ()
    histograms: tuple[Histogram, ...] = ()
    notes: tuple[str, ...] = ()
    level: float = 0.95
    resamples: int = 1000
    seed: int = 0
    items: Predictions | None = field(default=None, repr=False, compare=False)
    """Names, targets and marks of the items: what tells whether files hold the same
    ones. The predictions themselves are left out."""
    design: Design | None = field(default=None, repr=False, compare=False)
    """Which sample and cluster each item is of."""
    answers: "tuple[Answer, ...] | None" = field(
        default=None, repr=False, compare=False
    )
    """The verdict, where rows that it rests on were left out."""

    def row(self, score: str, *, subset: str = "all", **settings: Any) -> ScoreRow:
        """The row of `score` with these settings; the first that fits.

        `results.row("aurc", subset="shifted", u="epistemic")`.
        """
        for row in self.rows:
            fits = all(row.settings.get(name) == v for name, v in settings.items())
            if row.score == score and row.subset == subset and fits:
                return row
        known = sorted({row.score for row in self.rows})
        at = f" with {settings_text(settings)}" if settings else ""
        raise LookupError(
            f"no {score!r} on {subset!r} items{at} in {self.name}."
            f"{suggest(score, known)} It has {', '.join(known)}."
        )

    def __getitem__(self, name: str) -> ScoreRow:
        """The row of a score, such as "ece", or "shifted/ece" for a subset."""
        subset, _, score = name.rpartition("/")
        return self.row(score, subset=subset or "all")

    def to_frame(self) -> Any:
        """The rows as a DataFrame of pandas, one column per field and setting.

        Raises:
            ImportError: If pandas is not installed.
        """
        return pandas_frame([_flat(row) for row in self.rows], instead="read .rows")

    @property
    def verdict(self) -> "tuple[Answer, ...]":
        """What the scores say in words (docs/verdict.md)."""
        from qualms.evaluate.verdict import verdict_of

        return verdict_of(self) if self.answers is None else self.answers

    def __repr__(self) -> str:
        subsets = dict.fromkeys(row.subset for row in self.rows)
        return (
            f"<Results of {self.name}: {self.task}, {self.n} items, {len(self.rows)} "
            f"rows of {', '.join(subsets)} items; see .row(name), .to_frame()>"
        )

    def plot(self, what: str, *, axes: Any = None) -> Any:
        """Draw something with matplotlib, and give the axes.

        Args:
            what: A score: its reliability diagram, ROC or risk-coverage curve where it
                has one, else its values with intervals. Or the name of a curve or
                histogram, such as "referral_accuracy" or "uncertainty/entropy".
                "shifted/ece" is of these items alone.
            axes: Where to; new ones by default.
        """
        # Drawing lies above judging, and is looked for when it is asked for.
        plot = import_module("qualms.report.plot")
        return plot.plot_results(self, what, axes=axes)

    def _repr_html_(self) -> str:
        # Jupyter shows the main scores; the report package owns the real page.
        from qualms.evaluate.main_scores import main_rows
        from qualms.evaluate.verdict import QUESTIONS

        rows = main_rows(self)
        subsets = [s for s in _BESIDE if any(row.subset == s for row in rows)]
        names = [subset.replace("_", "-") for subset in subsets]
        title = f"{self.name}: {self.task}, {self.n} {plural(self.n, 'item')}"
        kinds = dict.fromkeys((row.label, row.detail) for row in rows)
        found = {(row.label, row.detail, row.subset): row for row in rows}
        told = notebook_table(
            title,
            (),
            (
                (QUESTIONS[a.question], a.words or a.answer, a.because)
                for a in self.verdict
            ),
        )
        table = notebook_table(
            f"the main scores, with {self.level:.0%} intervals",
            ("score", "by", *names),
            (
                (*kind, *(_html_value(found.get((*kind, s))) for s in subsets))
                for kind in kinds
            ),
        )
        more = f"All {len(self.rows)} rows: .to_frame(). Pictures: .plot(name)."
        return told + table + notebook_lines([more])


def _flat(row: ScoreRow) -> dict[str, Any]:
    """The fields of a row that a table shows; its settings among them."""
    return {
        "score": row.score,
        "subset": row.subset,
        **row.settings,
        "value": row.value,
        "low": row.low,
        "high": row.high,
        "better": row.better,
        "items": row.n,
        "remark": row.why or row.no_interval,
    }


def _html_value(row: ScoreRow | None) -> str:
    if row is None:
        return ""
    return row.why if row.why and math.isnan(row.value) else notebook_number(row)


class Key(NamedTuple):
    """Where a cell of a benchmark stands, by name."""

    variant: str
    row: str
    settings: str
    """As `settings_text` writes them, e.g. "alpha=0.1"."""
    score: str


class DrawnKey(NamedTuple):
    """Where something to draw stands, by name."""

    variant: str
    row: str
    settings: str
    subset: str
    name: str
    """What is drawn: roc, ood_roc, referral_accuracy, uncertainty/grade=2 ..."""


class Summary(NamedTuple):
    """Mean and population standard deviation over repeats."""

    mean: float
    std: float
    """nan where there is one repeat only, so that nothing varies."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """One score of one row on one dataset: repeats, interval, and the paper's rule."""

    key: Key
    values: tuple[float, ...] = ()
    """One per repeat, by the correct rule: ranks that give the guarantee, ties shared;
    () where it is undefined in all."""
    as_published: tuple[float, ...] = ()
    """One per repeat, by the rule of the released code; what stands beside the
    published number. () for what that code does not have."""
    low: float = math.nan
    high: float = math.nan
    why: str = ""
    """Why there is no value."""
    method: str = ""
    """How the interval was made."""
    no_interval: str = ""
    """Why there is none, where the value is defined."""

    @property
    def ours(self) -> Summary:
        """Over `values`."""
        return summary(self.values)

    @property
    def by_their_rule(self) -> Summary:
        """Over `as_published`."""
        return summary(self.as_published)


def summary(values: tuple[float, ...]) -> Summary:
    """Mean and population standard deviation; nan where they are not defined.

    >>> summary((1.0, 3.0))
    Summary(mean=2.0, std=1.0)
    """
    if not values:
        return Summary(math.nan, math.nan)
    if not all(map(math.isfinite, values)):
        return Summary(float(np.sum(values)) / len(values), math.nan)
    spread = float(np.std(values)) if len(values) > 1 else math.nan
    return Summary(float(np.mean(values)), spread)


@dataclass(frozen=True, slots=True, kw_only=True)
class Missing:
    """A run without readable predictions."""

    hash: str
    dataset: str
    method: str
    seed: int
    reason: str
    remedy: str = ""
    """What to do where the same command would not make the run again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """An expectation, with the numbers that decide it."""

    expectation: Expectation
    values: Mapping[str, float]
    """By row; nan where a number is missing."""

    @property
    def known(self) -> bool:
        """Whether enough numbers are there to tell."""
        if self.expectation.some and self.held:
            return True
        return all(math.isfinite(value) for value in self.values.values())

    @property
    def held(self) -> bool:
        """Whether it holds for every row, or for some where that is enough."""
        low, high = self.expectation.low, self.expectation.high
        enough = any if self.expectation.some else all
        return enough(low <= value <= high for value in self.values.values())


class Cost(NamedTuple):
    """What the runs of a row took, as far as their predictions state it."""

    seconds: float | None
    """Of all its runs together, training and prediction."""
    parameters: int | None
    """Of one network."""
    per_epoch: float | None = None
    """Seconds of an epoch of training."""
    per_item: float | None = None
    """Seconds to predict an item."""
    per_crop: float | None = None
    """Seconds to predict its crop, where crops are predicted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchmarkResults:
    """Every number of a benchmark at one preset, from predictions alone."""

    benchmark: Benchmark
    preset: Preset
    cells: Mapping[Key, Cell]
    ties: Mapping[Key, ConfidenceSet] = field(default_factory=dict)
    """By variant, settings and score (the row is ''): the rows that may be best. For
    scores with an aim, such as coverage, the best is nearest to it."""
    differences: Mapping[Key, Difference] = field(default_factory=dict)
    """Each row minus the best one, for the scores that have a tie group."""
    curves: Mapping[DrawnKey, Curve] = field(default_factory=dict)
    """Means over repeats, for figures."""
    histograms: Mapping[DrawnKey, Histogram] = field(default_factory=dict)
    scatters: Mapping[DrawnKey, Scatter] = field(default_factory=dict)
    """Of the first repeat, as are slices."""
    slices: Mapping[DrawnKey, MapSlice] = field(default_factory=dict)
    checks: tuple[Check, ...] = ()
    missing: tuple[Missing, ...] = ()
    absent: Mapping[Key, str] = field(default_factory=dict)
    """Why a row has no number at some settings; the score of its key is ''."""
    hardware: tuple[str, ...] = ()
    """Machines named by the predictions."""
    seconds: float | None = None
    """Seconds of all runs together, as far as the predictions state them."""
    costs: Mapping[tuple[str, str], Cost] = field(default_factory=dict)
    """By variant and row."""
    notes: tuple[str, ...] = ()
    level: float = 0.95
    resamples: int = 1000
    seed: int = 0

    def cell(
        self, variant: str, row: str, score: str, settings: Settings | None = None
    ) -> Cell:
        """The cell there; one without values, saying so, if it was not judged."""
        key = Key(variant, row, settings_text(settings or {}), score)
        return self.cells.get(key) or Cell(key=key, why=self.why_absent(key))

    def why_absent(self, key: Key) -> str:
        """Why there is no cell at `key`."""
        row = key._replace(score="")
        known = self.absent.get(row) or self.absent.get(row._replace(settings=""))
        return known or f"not part of preset {self.preset.name}"

    def tied(self, cell: Cell) -> bool:
        """Whether a cell cannot be told apart from the best of its column."""
        group = self.ties.get(cell.key._replace(row=""))
        return group is not None and cell.key.row in group.members

    def variants(self, label: str) -> tuple[Variant, ...]:
        """The datasets the paper calls `label`: real ones first, then simulated."""
        found = [v for v in self.preset.variants if v.label == label]
        return tuple(sorted(found, key=lambda v: v.simulated))
