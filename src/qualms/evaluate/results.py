"""The frozen table that judging one file ends in."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import import_module
from typing import TYPE_CHECKING, Any

from qualms.evaluate.entry import Curve, Entry, Histogram
from qualms.evaluate.notebook import (
    notebook_lines,
    notebook_number,
    notebook_table,
    pandas_frame,
)
from qualms.inference import Design
from qualms.labels import labels_text, values_text
from qualms.predictions import Header, Predictions
from qualms.scores import Better
from qualms.wording import plural, suggest

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
        return values_text(self.settings)

    @property
    def key(self) -> tuple[str, str, tuple[tuple[str, Any], ...]]:
        """What the row is about: score, subset, settings."""
        return (self.score, self.subset, tuple(self.settings.items()))


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
        at = f" with {labels_text(settings)}" if settings else ""
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
