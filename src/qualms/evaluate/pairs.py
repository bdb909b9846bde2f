"""Paired differences of every two files or rows.

`compare` finds those that may be best and the differences to the best. Here any file or
row may be the reference, such as the network that is in use today.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from qualms.evaluate._compare import (
    files_of_one_task,
    rivals_of,
    unpaired,
    with_one_aim,
)
from qualms.evaluate._ranking import PairDifference, pair_differences
from qualms.evaluate._results import Results
from qualms.evaluate.entry import Entry, ScoreOptions
from qualms.labels import Labels
from qualms.scores import Better


class PairedDifference(NamedTuple):
    """A file or row minus another, by one score."""

    row: str
    reference: str
    value: float
    low: float
    high: float
    p: float
    reason: str = ""
    """Reason for having no interval; '' if it has one."""

    @property
    def reversed(self) -> "PairedDifference":
        """The opposite difference: the reference minus the row."""
        return PairedDifference(
            self.reference,
            self.row,
            -self.value,
            -self.high,
            -self.low,
            self.p,
            self.reason,
        )


class PairedScore(NamedTuple):
    """One score of several files or rows, with the difference of every two of them."""

    labels: Labels
    """Subset, score and settings; in a benchmark also the labels of the data."""
    label: str
    better: Better
    values: Mapping[str, float]
    """Values by file or row."""
    differences: tuple[PairedDifference, ...]
    """Differences, paired over items, of every two files or rows."""
    aim: float | None = None
    """The best value, if it is neither the lowest nor the highest; differences are then
    those of the distances from it."""

    def difference(self, row: str, reference: str) -> PairedDifference | None:
        """Return `row` minus `reference`; None if they were not compared."""
        for each in self.differences:
            if (each.row, each.reference) == (row, reference):
                return each
            if (each.reference, each.row) == (row, reference):
                return each.reversed
        return None

    @property
    def compared(self) -> str:
        """Name of the compared number: the score, or its distance from an aim."""
        if self.aim is None:
            return self.label
        return f"{self.label}, distance from {self.aim:g}"


def compare_pairs(results: Sequence[Results]) -> tuple[PairedScore, ...]:
    """Return the paired differences of every two files, score by score.

    Raises:
        ValueError: If the files do not hold the same items.
    """
    files = files_of_one_task(results)
    reason = unpaired(files)
    if reason:
        raise ValueError(f"{reason}; compare files with the same items")
    columns = with_one_aim(rivals_of(files), files)
    design = files[0].design
    if design is None:
        return ()
    options = ScoreOptions(
        resamples=files[0].resamples, level=files[0].level, seed=files[0].seed
    )
    differences = pair_differences(columns, design, options)
    return tuple(
        paired_score(
            {"score": score, "subset": subset, **dict(settings)},
            columns[score, subset, settings][0].entries[0],
            {rival.name: rival.value for rival in columns[score, subset, settings]},
            pairs,
        )
        for (score, subset, settings), pairs in differences.items()
    )


def paired_score(
    labels: Labels,
    entry: Entry,
    values: Mapping[str, float],
    pairs: Mapping[tuple[str, str], PairDifference],
) -> PairedScore:
    """Return the record of the differences in a column."""
    return PairedScore(
        labels=labels,
        label=entry.label,
        better=entry.better,
        values=values,
        differences=tuple(
            PairedDifference(
                row,
                reference,
                pair.difference.value,
                pair.difference.low,
                pair.difference.high,
                pair.difference.p,
                pair.reason,
            )
            for (row, reference), pair in pairs.items()
        ),
        aim=entry.aim,
    )
