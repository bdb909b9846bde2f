"""The results of one predictions file."""

import csv
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from qualms.atomic import replacing
from qualms.evaluate.entry import Curve, Histogram
from qualms.evaluate.group_spreads import GroupSpread
from qualms.evaluate.main_scores import main_rows, score_hint
from qualms.evaluate.notebook import (
    SIGNS,
    NotebookCell,
    notebook_lines,
    notebook_number,
    notebook_table,
    pandas_frame,
    with_intervals,
)
from qualms.evaluate.operating_points import OperatingPoint
from qualms.evaluate.rows import QUESTIONS, Answer, ScoreRow
from qualms.evaluate.subsets import (
    SIDE_BY_SIDE,
    is_group,
    shown_things,
    subset_label,
)
from qualms.inference import Design
from qualms.labels import labels_text
from qualms.predictions import Header, Predictions
from qualms.results import csv_text
from qualms.wording import plural


@dataclass(frozen=True, slots=True, kw_only=True)
class Results:
    """The scores, curves and verdict of one predictions file."""

    name: str
    header: Header
    task: str
    n: int
    draws: int
    """Draws of the predictions (M)."""
    rows: tuple[ScoreRow, ...]
    curves: tuple[Curve, ...] = ()
    histograms: tuple[Histogram, ...] = ()
    points: tuple[OperatingPoint, ...] = ()
    """Thresholds with their sources, and answers whether they meet their target."""
    groups: tuple[GroupSpread, ...] = ()
    """Differences between groups by each score; () unless scores are by group."""
    notes: tuple[str, ...] = ()
    level: float = 0.95
    resamples: int = 1000
    seed: int = 0
    items: Predictions | None = field(default=None, repr=False, compare=False)
    """Names, targets and marks of the items, which show whether files hold the same
    items. The predictions themselves are left out."""
    design: Design | None = field(default=None, repr=False, compare=False)
    """The sample and cluster of each item."""
    verdict: tuple[Answer, ...] = field(default=(), repr=False, compare=False)
    """The scores in words (docs/verdict.md)."""
    aggregations: tuple[str, ...] = ()
    """Segmentations: a sentence on each set of items that is shown, on which
    uncertainty and aggregation to take by AURC, or that they cannot be told apart."""
    uncertainty: str = ""
    """The uncertainty that the verdict and the main scores judge: the one that the
    caller or the header names, else the first of the file's own; '' for the one that is
    computed."""
    subsets: tuple[str, ...] = ("all",)
    """Sets of items that tables, pages and pictures show side by side. The verdict and
    `results[...]` are about the first of them."""

    @property
    def subset(self) -> str:
        """The items that the verdict and `results[...]` are about.

        By default these are the in-domain items if the file marks some of its items as
        shifted, else all items.
        """
        return self.subsets[0]

    @property
    def has_shift(self) -> bool:
        """True if there are scores of in-domain and of shifted items."""
        return {*SIDE_BY_SIDE} <= {row.subset for row in self.rows}

    def row(
        self, score: str, *, subset: str | None = None, **settings: Any
    ) -> ScoreRow:
        """Return the first row of `score` with these settings.

        `results.row("aurc", subset="shifted", uncertainty="epistemic")`.

        Args:
            score: Name of the score.
            subset: Its items; by default those of the verdict, or "all" (in-domain and
                shifted items together) for scores of both, such as OOD scores.
            settings: Settings such as `uncertainty`, to choose one of several rows.
        """
        for candidate in self._places(subset):
            for row in self.rows:
                fits = all(row.settings.get(name) == v for name, v in settings.items())
                if row.score == score and row.subset == candidate and fits:
                    return row
        names = sorted({row.score for row in self.rows})
        at = f" with {labels_text(settings)}" if settings else ""
        raise LookupError(
            f"no {score!r} on {subset or self.subset!r} items{at} in {self.name}."
            f"{score_hint(score, names)} It has {', '.join(names)}."
        )

    def _places(self, subset: str | None) -> tuple[str, ...]:
        """Return the subsets in which a score is searched for, one after another."""
        if subset is None:
            return self.subset, "all"
        return (subset, f"{self.subset}/{subset}") if is_group(subset) else (subset,)

    def __getitem__(self, name: str) -> ScoreRow:
        """Return the row of a score, such as "ece", or "shifted/ece" for a subset."""
        subset, _, score = name.rpartition("/")
        return self.row(score, subset=subset or None)

    def __contains__(self, name: object) -> bool:
        """Return whether `results[name]` is a row."""
        try:
            return isinstance(name, str) and self[name] is not None
        except LookupError:
            return False

    def __iter__(self) -> Iterator[ScoreRow]:
        """Yield the rows."""
        return iter(self.rows)

    def to_dict(self) -> dict[str, Any]:
        """Return what is judged, the verdict, and the rows with their settings."""
        return {
            "name": self.name,
            "task": self.task,
            "items": self.n,
            "verdict": {each.question: each.answer for each in self.verdict},
            "rows": [_flat(row) for row in self.rows],
        }

    def to_csv(self, path: str | Path) -> Path:
        """Write the rows to a CSV file, as `to_frame` has them, and return its path."""
        rows = [_flat(row) for row in self.rows]
        columns = dict.fromkeys(name for row in rows for name in row)
        with (
            replacing(Path(path)) as temporary,
            temporary.open("x", encoding="utf-8", newline="") as file,
        ):
            lines = csv.writer(file)
            lines.writerow(columns)
            lines.writerows([csv_text(row.get(c)) for c in columns] for row in rows)
        return Path(path)

    def to_frame(self) -> Any:
        """Return the rows as a DataFrame of pandas, one column per field and setting.

        Raises:
            ImportError: If pandas is not installed.
        """
        return pandas_frame([_flat(row) for row in self.rows], instead="read .rows")

    def shown(self) -> "Results":
        """Return the part that tables, pages and pictures show: results on `subsets`.

        Scores that exist only for in-domain and shifted items together, such as OOD
        scores, are included.
        """
        return replace(
            self,
            rows=shown_things(self.rows, self.subsets, what=lambda row: row.key[::2]),
            curves=shown_things(self.curves, self.subsets, what=_drawn),
            histograms=shown_things(self.histograms, self.subsets, what=_drawn),
            points=shown_things(
                self.points, self.subsets, what=lambda point: (point.rule, point.unit)
            ),
            groups=shown_things(
                self.groups,
                self.subsets,
                what=lambda each: each.array,
            ),
        )

    def __repr__(self) -> str:
        subsets = dict.fromkeys(row.subset for row in self.rows)
        return (
            f"<Results of {self.name}: {self.task}, {self.n} items, {len(self.rows)} "
            f"rows of {', '.join(subsets)} items; see .row(name), .to_frame()>"
        )

    def plot(self, what: str, *, axes: Any = None) -> Any:
        """Draw a score or a curve with matplotlib, and return the axes.

        Args:
            what: A score: its reliability diagram, ROC or risk-coverage curve where it
                has one, else its values with intervals. Or the name of a curve or
                histogram, such as "referral_accuracy" or "uncertainty/entropy".
                "shifted/ece" is for shifted items alone, "all/ece" for in-domain and
                shifted items together.
            axes: Where to draw; new axes by default.
        """
        from qualms import plot  # drawing lies above judging

        return plot(self, what, axes=axes)

    def _repr_html_(self) -> str:
        # Jupyter shows the main scores; the report package makes the full page.
        rows = main_rows(self.task, self.shown().rows, self.uncertainty)
        subsets = [
            s for s in ("all", *SIDE_BY_SIDE) if any(r.subset == s for r in rows)
        ]
        names = list(map(subset_label, subsets))
        title = f"{self.name}: {self.task}, {self.n} {plural(self.n, 'item')}"
        kinds = dict.fromkeys((row.label, row.detail) for row in rows)
        cells = {(row.label, row.detail, row.subset): row for row in rows}
        answers = notebook_table(
            title,
            (),
            (
                (
                    SIGNS.get(a.answer, "?"),
                    QUESTIONS[a.question],
                    a.words or a.answer,
                    a.because,
                )
                for a in self.verdict
            ),
        )
        table = notebook_table(
            f"the main scores, with {self.level:.0%} intervals",
            ("score", "by", *names),
            (
                (*kind, *_html_values([cells.get((*kind, s)) for s in subsets]))
                for kind in kinds
            ),
        )
        more = f"All {len(self.rows)} rows: .to_frame(). Pictures: .plot(name)."
        return answers + table + notebook_lines([more])


def _drawn(drawing: Curve | Histogram) -> tuple[str, str]:
    return drawing.name, labels_text(drawing.settings)


def _flat(row: ScoreRow) -> dict[str, Any]:
    """Return the fields of a row that a frame shows, including its settings."""
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


def _html_values(rows: Sequence[ScoreRow | None]) -> list[NotebookCell]:
    return with_intervals(list(map(_html_value, rows)), rows)


def _html_value(row: ScoreRow | None) -> str:
    if row is None:
        return ""
    return row.why if row.why and math.isnan(row.value) else notebook_number(row)
