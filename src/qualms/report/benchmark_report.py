"""Plain records of a judged benchmark, which pages show and files store.

A `BenchmarkReport` is made once, when a benchmark is judged, and stored beside its
`results.csv`. Pages are written from it in a moment, without the predictions, and
without the code of the benchmark. Of a results table alone there is a report too; it
has no figures, and says so by `complete`.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from qualms.evaluate.benchmark_results import BenchmarkResults, Check, Cost
from qualms.evaluate.findings import because
from qualms.evaluate.pairs import PairedScore
from qualms.labels import Labels
from qualms.report._thinned import thinned
from qualms.report.figures import Drawing
from qualms.report.judged import check_numbers
from qualms.report.table import Table
from qualms.results import ResultsTable
from qualms.runs import environment
from qualms.study import TableRow, Variant


class VariantFacts(NamedTuple):
    """One dataset of a benchmark."""

    name: str
    label: str
    simulated: bool
    shift: str = ""
    """The shift in words."""
    test: str = ""
    """The split whose scores tables show."""


class RowFacts(NamedTuple):
    """One row of the tables of a benchmark."""

    name: str
    label: str
    method: str = ""
    """Name of the method on its shelf."""
    pool: int = 1
    """Runs that are pooled in each repeat."""
    options: Mapping[str, object] = {}
    """Options of the method."""
    beyond: bool = False
    """True if the paper does not have it."""


class EffectAnswer(NamedTuple):
    """An expected effect or a finding of the paper, and whether it holds."""

    text: str
    answer: str
    """"held", "not held" or "unknown"; of a finding also "cannot be told"."""
    numbers: str = ""
    """The numbers that decide it."""
    meaning: str = ""
    """Meaning for a model, or the place where a paper states it."""


class MissingRuns(NamedTuple):
    """Runs without predictions, of one kind."""

    number: int
    dataset: str
    method: str
    reason: str
    remedy: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchmarkReport:
    """A judged benchmark as pages show it."""

    name: str
    """Of the benchmark, such as "retina"."""
    title: str
    preset: str = ""
    """The preset, with what was changed."""
    note: str = ""
    """Description of the preset."""
    part: str = ""
    """The part of the preset that was judged; "" for all of it."""
    version: int = 0
    paper: str = ""
    task: str = ""
    variants: tuple[VariantFacts, ...] = ()
    """The listed datasets that have a number."""
    rows: tuple[RowFacts, ...] = ()
    table: ResultsTable = field(default_factory=ResultsTable, repr=False)
    """Every number of these datasets with its labels."""
    unlisted: ResultsTable = field(default_factory=ResultsTable, repr=False)
    """The numbers of other datasets, such as corrupted test items."""
    pairs: tuple[PairedScore, ...] = ()
    """The difference of every two rows, by each score."""
    tables: tuple[Table, ...] = ()
    """The tables that the benchmark declares; those with `main` are leaderboards."""
    figures: tuple[Drawing, ...] = ()
    effects: tuple[EffectAnswer, ...] = ()
    findings: tuple[EffectAnswer, ...] = ()
    missing: tuple[MissingRuns, ...] = ()
    notes: tuple[str, ...] = ()
    costs: Mapping[tuple[str, str], Cost] = field(default_factory=dict)
    """By the names of variant and row."""
    seconds_each: Mapping[tuple[str, str], float] = field(default_factory=dict)
    """By the names of variant and row, seconds of the runs that one repeat pools."""
    hardware: tuple[str, ...] = ()
    seconds: float | None = None
    """Seconds of all runs together."""
    level: float = 0.95
    command: str = ""
    """The command or call that made the results."""
    when: str = ""
    """Time at which they were judged, by ISO 8601."""
    versions: Mapping[str, str] = field(default_factory=dict)
    """Versions of qualms, Python and packages, and the commit."""
    complete: bool = False
    """True if it has all of this; false if it is made of a results table alone."""
    incomplete: str = (
        "only its results table was given, or it was made by another version"
    )
    """Why it is not complete, if it is not."""
    folder: Path | None = None
    """The folder of the results; None for a results table alone. It is not stored."""

    @property
    def simulated(self) -> bool:
        """True if some of its data are simulated."""
        return any(variant.simulated for variant in self.variants)

    def row_label(self, name: str) -> str:
        """Return the label of a row; its name where it has none."""
        return next((row.label for row in self.rows if row.name == name), name)

    def predictions(self) -> Iterator[tuple[Labels, Path]]:
        """Yield the folder of the predictions of each run, with its labels.

        The labels are `run`, the name of the link, such as "map-seed0", and `variant`
        where there are several. The folder has a file for each split.
        """
        links = None if self.folder is None else self.folder / "predictions"
        if links is None or not links.is_dir():
            return
        for path in sorted(links.rglob("*")):
            if path.is_symlink() and path.is_dir():
                above = path.parent
                variant = {} if above == links else {"variant": above.name}
                yield {**variant, "run": path.name}, path


def benchmark_report(
    results: BenchmarkResults,
    tables: Sequence[Table],
    figures: Sequence[Drawing],
    *,
    notes: Sequence[str] = (),
    command: str = "",
    folder: Path | None = None,
) -> BenchmarkReport:
    """Return what pages show of judged results, with long curves thinned.

    Args:
        results: The judged benchmark.
        tables: The tables of its presentation.
        figures: The figures of its presentation.
        notes: All notes.
        command: What made the results.
        folder: Where results are written.
    """
    benchmark, plan = results.benchmark, results.plan
    judged_rows = set(results.table.distinct("row"))
    variants = [v for v in results.variants if v.listed] or list(results.variants)
    names = [variant.name for variant in variants]
    unlisted = [v.name for v in results.variants if v.name not in names]
    return BenchmarkReport(
        name=benchmark.name,
        title=benchmark.title,
        preset=plan.preset_text,
        note=plan.preset.note,
        part=plan.part,
        version=benchmark.version,
        paper=benchmark.paper,
        task=benchmark.task,
        variants=tuple(map(_variant_facts, variants)),
        rows=tuple(_row_facts(r) for r in plan.every_row if r.name in judged_rows),
        table=results.table.where(variant=names),
        unlisted=results.table.where(variant=unlisted),
        pairs=tuple(p for p in results.pairs if p.labels["variant"] in names),
        tables=tuple(tables),
        figures=tuple(map(thinned, figures)),
        effects=effect_answers(results),
        findings=finding_answers(results.findings),
        missing=missing_runs(results),
        notes=tuple(notes),
        costs={place: c for place, c in results.costs.items() if place[0] in names},
        seconds_each=seconds_each(results),
        hardware=results.hardware,
        seconds=results.seconds,
        level=results.level,
        command=command,
        when=str(environment()["started"]),
        versions=versions(),
        complete=True,
        folder=folder,
    )


def versions() -> dict[str, str]:
    """Return the versions of all that has a part in the numbers, and the commit."""
    facts = environment()
    first = {"qualms": facts["qualms"], "Python": facts["python"]}
    commit = {"commit": facts["commit"]} if facts["commit"] else {}
    return {**first, **facts["packages"], **commit}


def missing_runs(results: BenchmarkResults) -> tuple[MissingRuns, ...]:
    """Count the runs without predictions, by kind and reason."""
    kinds = Counter((m.dataset, m.method, m.reason, m.remedy) for m in results.missing)
    return tuple(MissingRuns(number, *kind) for kind, number in kinds.items())


def seconds_each(results: BenchmarkResults) -> dict[tuple[str, str], float]:
    """Return the seconds of the runs of one repeat, by names of variant and row."""
    seconds: dict[tuple[str, str], float] = {}
    for line in results.plan.lines:
        place = (line.variant.name, line.row.name)
        cost = results.costs.get(place)
        if cost is not None and cost.seconds is not None and line.runs:
            seconds[place] = line.row.pool * cost.seconds / len(line.runs)
    return seconds


def effect_answers(results: BenchmarkResults) -> tuple[EffectAnswer, ...]:
    """Return the expected effects of a preset, and whether they held."""
    return tuple(
        EffectAnswer(
            check.expectation.text,
            _answer(check),
            check_numbers(results, check),
            check.expectation.meaning,
        )
        for check in results.checks
    )


def finding_answers(checks: Sequence[Check]) -> tuple[EffectAnswer, ...]:
    """Return the findings of the paper, and whether they hold by these results."""
    return tuple(
        EffectAnswer(
            check.expectation.text,
            check.answer,
            because(check),
            check.expectation.where,
        )
        for check in checks
    )


def _variant_facts(variant: Variant) -> VariantFacts:
    return VariantFacts(
        variant.name, variant.label, variant.simulated, variant.shift, variant.test
    )


def _row_facts(row: TableRow) -> RowFacts:
    options = {name: _plain_option(value) for name, value in row.method.options.items()}
    return RowFacts(row.name, row.label, row.method.name, row.pool, options, row.beyond)


def _plain_option(value: object) -> object:
    """Return an option as a page shows it."""
    return value if isinstance(value, str | int | float | bool) else str(value)


def _answer(check: Check) -> str:
    if not check.known:
        return "unknown"
    return "held" if check.held else "not held"
