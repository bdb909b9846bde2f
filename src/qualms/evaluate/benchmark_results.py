"""Every number of a judged benchmark as one labelled table, with its drawings."""

import math
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from statistics import NormalDist
from typing import Literal, NamedTuple

from qualms.effects import DecidingNumber
from qualms.evaluate.entry import Curve, Histogram, MapSlice, Scatter
from qualms.evaluate.pairs import PairedScore
from qualms.evaluate.uncertainty_ranking import UNCERTAINTY, UncertaintyRanking
from qualms.labels import Labelled, Wanted, fits
from qualms.results import Result, ResultsTable
from qualms.study import Benchmark, Expectation, Line, Preset, RunPlan, Variant

_ROUNDING = 1e-9
"""Largest rounding error of differences of printed numbers."""


_LEVEL = 0.95
_NORMAL = NormalDist()


@dataclass(frozen=True, slots=True, kw_only=True)
class Missing:
    """A run without readable predictions."""

    hash: str
    dataset: str
    method: str
    seed: int
    reason: str
    remedy: str = ""
    """Advice where the same command would not make the run again."""


AnswerWord = Literal["holds", "does not hold", "cannot be told"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """An expected effect or a finding, with the numbers that decide it."""

    expectation: Expectation
    values: Mapping[str, float]
    """Numbers by row, or by another thing that is compared; nan if missing."""
    estimates: Mapping[str, DecidingNumber] = field(default_factory=dict)
    """The same with intervals."""
    printed: int = 0
    """How many numbers the paper prints that decide it; 0 where that is not known."""
    comparable: bool = True
    """False if its limits are numbers of other data than these."""

    @classmethod
    def of(cls, expectation: Expectation, results: "BenchmarkResults") -> "Check":
        """Look up the numbers that decide an expectation."""
        numbers = expectation.numbers(results)
        estimates = {
            name: number
            if isinstance(number, DecidingNumber)
            else DecidingNumber(number)
            for name, number in numbers.items()
        }
        values = {name: number.value for name, number in estimates.items()}
        other = expectation.of_paper and results.simulated
        return cls(
            expectation=expectation,
            values=values,
            estimates=estimates,
            comparable=not other,
        )

    @property
    def part(self) -> bool:
        """True if it is answered by fewer numbers than the paper has."""
        return 0 < len(self.estimates) < self.printed

    @property
    def known(self) -> bool:
        """True if there are enough numbers to decide."""
        if self.expectation.any_row and self.held:
            return True
        return all(math.isfinite(value) for value in self.values.values())

    @property
    def held(self) -> bool:
        """True if it holds for every row, or for the required number of rows."""
        low, high = self.expectation.low, self.expectation.high
        within = [low <= value <= high for value in self.values.values()]
        return sum(within) >= self._enough

    @property
    def answer(self) -> AnswerWord:
        """The answer by numbers with intervals.

        A number speaks for it if its whole interval lies between the limits, and
        against it if no part does.
        """
        numbers = self.estimates.values()
        if not numbers or not self.comparable:
            return "cannot be told"
        if sum(map(self.fits, numbers)) >= self._enough:
            return "holds"
        possible = len(numbers) - sum(map(self.misses, numbers))
        return "does not hold" if possible < self._enough else "cannot be told"

    def fits(self, number: DecidingNumber) -> bool:
        """Return whether the interval of a number lies between the limits."""
        low, high = self.expectation.low, self.expectation.high
        # Where some of the numbers are enough, one too many must not fit by chance.
        ends = _widened(number, len(self.values) - self._enough + 1)
        return low - _ROUNDING <= ends.low and ends.high <= high + _ROUNDING

    def misses(self, number: DecidingNumber) -> bool:
        """Return whether no part of the interval lies between the limits."""
        low, high = self.expectation.low, self.expectation.high
        # Where all must fit, none of them must miss by chance.
        ends = _widened(number, self._enough)
        return ends.high < low - _ROUNDING or ends.low > high + _ROUNDING

    @property
    def _enough(self) -> int:
        """Required number of values between the limits."""
        if self.expectation.any_row:
            return 1
        count = len(self.values)
        return count // 2 + 1 if self.expectation.most else count


def _widened(number: DecidingNumber, numbers: int) -> DecidingNumber:
    """Return a number with an interval that holds for so many at once (Bonferroni)."""
    one = 0.5 - _LEVEL / 2.0
    wider = _NORMAL.inv_cdf(one / max(1, numbers)) / _NORMAL.inv_cdf(one)
    value, low, high = number
    return DecidingNumber(
        value, value - wider * (value - low), value + wider * (high - value)
    )


class Cost(NamedTuple):
    """Costs of the runs of a row, as far as they were recorded."""

    seconds: float | None
    """Seconds of all its runs together, for training and prediction."""
    parameters: int | None
    """Number of parameters of one network."""
    per_epoch: float | None = None
    """Seconds of an epoch of training."""
    per_item: float | None = None
    """Seconds to predict an item."""
    per_crop: float | None = None
    """Seconds to predict the crop of an item; None unless crops are predicted."""


@dataclass(frozen=True, kw_only=True)
class BenchmarkResults:
    """Every number of a plan, computed from predictions alone."""

    plan: RunPlan
    table: ResultsTable
    """One row for each number; a line without numbers has one row with the reason."""
    curves: Labelled[Curve] = field(default=Labelled())
    """Means over repeats; labelled as results are, with `subset` and `name`."""
    histograms: Labelled[Histogram] = field(default=Labelled())
    scatters: Labelled[Scatter] = field(default=Labelled())
    """Scatters of the first repeat, as are slices."""
    slices: Labelled[MapSlice] = field(default=Labelled())
    pairs: tuple[PairedScore, ...] = ()
    """The difference of every two rows, by each score."""
    uncertainties: tuple[UncertaintyRanking, ...] = ()
    """Uncertainties of all rows, ranked together by each score."""
    checks: tuple[Check, ...] = ()
    missing: tuple[Missing, ...] = ()
    hardware: tuple[str, ...] = ()
    """Machines named by the predictions."""
    seconds: float | None = None
    """Seconds of all runs together, as far as they were recorded."""
    costs: Mapping[tuple[str, str], Cost] = field(default_factory=dict)
    """Costs by the names of variant and row."""
    run_scores: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    """Scores of single runs by their hash and the name of the score; a run in several
    rows has those of the first."""
    notes: tuple[str, ...] = ()
    level: float = 0.95
    resamples: int = 1000
    seed: int = 0
    html: "Callable[[BenchmarkResults], str] | None" = field(
        default=None, repr=False, compare=False
    )
    """Function that makes the HTML for notebooks; None to show the summary only."""

    def __repr__(self) -> str:
        """Return a summary in words."""
        known = [check for check in self.checks if check.known]
        holding = sum(check.held for check in known)
        effects = f", {holding} of {len(known)} expected effects held" if known else ""
        return (
            f"<BenchmarkResults of {self.benchmark.name}, preset"
            f" {self.plan.preset_text}: {len(self.table):,} results,"
            f" {len(self.missing)} runs missing{effects}>"
        )

    def _repr_html_(self) -> str | None:
        return None if self.html is None else self.html(self)

    @property
    def benchmark(self) -> Benchmark:
        """The benchmark that was judged."""
        return self.plan.benchmark

    @property
    def preset(self) -> Preset:
        """The preset that was judged, as the benchmark declares it."""
        return self.plan.preset

    @cached_property
    def findings(self) -> tuple[Check, ...]:
        """Findings of the benchmark's paper, decided by these results."""
        from qualms.evaluate.findings import printed_numbers  # needs these classes

        printed = printed_numbers(self.benchmark)
        return tuple(
            replace(Check.of(finding, self), printed=printed.get(finding.text, 0))
            for finding in self.benchmark.findings
        )

    @property
    def simulated(self) -> bool:
        """True if all numbers are of simulated data."""
        return bool(self.variants) and all(v.simulated for v in self.variants)

    @cached_property
    def variants(self) -> tuple[Variant, ...]:
        """The variants with at least one number."""
        names = set(self.table.computed().distinct("variant"))
        return tuple(v for v in self.plan.variants if v.name in names)

    def among_uncertainties(self, number: Result) -> UncertaintyRanking | None:
        """Return how a number is ranked among the uncertainties of all rows.

        None where it is not, as no row has several uncertainties by this score.
        """
        labels = {k: v for k, v in number.labels.items() if k != UNCERTAINTY}
        row, uncertainty = number.labels.get("row"), number.labels.get(UNCERTAINTY)
        fitting = [
            ranking
            for ranking in self.uncertainties
            if fits(labels, ranking.labels)
            and any(
                (each.row, each.uncertainty) == (row, uncertainty)
                for each in ranking.compared
            )
        ]
        # A setting that the number has, and a ranking has not, is of another score.
        return max(fitting, key=lambda ranking: len(ranking.labels), default=None)

    def result(self, **labels: Wanted) -> Result:
        """Return the first number with these labels; without one, a result with why.

        Pass None for a setting, such as `measure`, that must be absent.
        """
        number = self.table.get(**labels)
        if number is not None:
            return number
        scalars = {n: v for n, v in labels.items() if isinstance(v, str | int | float)}
        names = self.plan.line_labels
        of_lines = {n: v for n, v in labels.items() if n in names}
        line = next(iter(self.lines(**of_lines)), None)
        return Result(
            labels={**(line.labels if line else {}), **scalars},
            why=self.why_absent(**labels),
        )

    def why_absent(self, **labels: Wanted) -> str:
        """Return why there is no number with these labels."""
        for result in self._absent:
            shared = {n: want for n, want in labels.items() if n in result.labels}
            if fits(result.labels, shared):
                return result.why
        return f"not part of preset {self.preset.name}"

    def lines(self, **labels: Wanted) -> tuple[Line, ...]:
        """Return the lines of the plan that have these labels."""
        lines: Collection[Line] = self.plan.lines
        variant, row = labels.get("variant"), labels.get("row")
        if isinstance(variant, str) and isinstance(row, str):
            lines = self._lines_by_place.get((variant, row), ())
        return tuple(line for line in lines if fits(line.labels, labels))

    @cached_property
    def _absent(self) -> tuple[Result, ...]:
        """The rows of lines without numbers, which hold the reason."""
        return tuple(self.table.where(score=None))

    @cached_property
    def _lines_by_place(self) -> Mapping[tuple[str, str], list[Line]]:
        """Lines by the names of variant and row."""
        lines: dict[tuple[str, str], list[Line]] = {}
        for line in self.plan.lines:
            lines.setdefault((line.variant.name, line.row.name), []).append(line)
        return lines
