"""Uncertainties of all rows, ranked together by one score: which may be best.

Rows are otherwise ranked among those with an uncertainty of the same name. Here the
energy of one method is compared with the entropy of another, and with its own, on the
same items and seeds.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from qualms.evaluate._ranking import Rival, rankings
from qualms.evaluate.entry import Entry, ScoreOptions
from qualms.evaluate.estimates import Estimated
from qualms.evaluate.subsets import is_group
from qualms.inference import Design
from qualms.labels import Label, Labels
from qualms.results import summary
from qualms.study import Line

UNCERTAINTY = "uncertainty"
"""The label with the uncertainty of a number."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RankedUncertainty:
    """A row with one of its uncertainties."""

    row: str
    uncertainty: Label | None
    """None for the built-in one of benchmarks that do not name it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UncertaintyRanking:
    """The uncertainties that may be best by one score, of all rows of a variant."""

    labels: Labels
    """Variant, subset, score and settings, without the uncertainty."""
    best: RankedUncertainty
    members: tuple[RankedUncertainty, ...]
    """The best, and those that cannot be told apart from it."""
    compared: tuple[RankedUncertainty, ...]
    """All uncertainties that were compared."""
    reason: str = ""
    """Reason for comparing nothing; '' if uncertainties are compared."""

    def may_be_best(self, row: str, uncertainty: Label | None) -> bool:
        """Return whether an uncertainty cannot be told apart from the best."""
        return (row, uncertainty) in ((m.row, m.uncertainty) for m in self.members)

    def is_best(self, row: str, uncertainty: Label | None) -> bool:
        """Return whether an uncertainty has the best value."""
        return (self.best.row, self.best.uncertainty) == (row, uncertainty)


def uncertainty_rankings(
    numbers: Iterable[tuple[Line, Sequence[Estimated]]],
    design: Design,
    options: ScoreOptions,
) -> list[UncertaintyRanking]:
    """Rank the uncertainties of all rows, by each score with several for one row.

    Args:
        numbers: the lines of a variant, each with its numbers.
        design: that of all items.
        options: level and seed of the comparison.
    """
    columns: dict[tuple[tuple[str, Label], ...], dict[str, Rival]] = {}
    called: dict[str, RankedUncertainty] = {}
    for line, each in numbers:
        for number in each:
            if is_group(number.entry.subset):
                continue
            uncertainty = number.entry.settings.get(UNCERTAINTY)
            one = RankedUncertainty(row=line.row.name, uncertainty=uncertainty)
            name = f"{one.row} {one.uncertainty}"
            called[name] = one
            columns.setdefault(_column(line, number.entry), {})[name] = Rival(
                name,
                summary(number.values).mean,
                number.entries,
                number.replicates,
                number.seeds,
                number.few,
                number.far,
                made_by=one.row,
                by_run=number.values,
            )
    several = {
        column: list(rivals.values())
        for column, rivals in columns.items()
        if len({called[name].row for name in rivals}) < len(rivals)
    }
    return [
        UncertaintyRanking(
            labels=dict(column),
            best=called[ranking.group.best],
            members=tuple(called[name] for name in ranking.group.members),
            compared=tuple(called[rival.name] for rival in several[column]),
            reason=ranking.group.reason,
        )
        for column, ranking in rankings(several, design, options).items()
    ]


def _column(line: Line, entry: Entry) -> tuple[tuple[str, Label], ...]:
    """Return the labels that numbers must share to be compared."""
    settings = {k: v for k, v in entry.settings.items() if k != UNCERTAINTY}
    labels: dict[str, Label] = {
        "variant": line.variant.name,
        **line.at,
        **settings,
        "subset": entry.subset,
        "score": entry.score_name,
    }
    return tuple(labels.items())
