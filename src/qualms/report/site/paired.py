"""Rows of a benchmark, or files, that are compared pair by pair."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from qualms import scores
from qualms.evaluate import (
    PairedDifference,
    PairedScore,
    Scored,
    compare_pairs,
    with_main_scores,
)
from qualms.evaluate.subsets import is_group, subset_label
from qualms.labels import Label, Labels, labels_text, values_text
from qualms.predictions import pairing, same_items
from qualms.report.benchmark_report import BenchmarkReport, VariantFacts
from qualms.report.site.contents import ScoredFile, ShownBenchmark, SiteContents
from qualms.report.site.leaderboard import main_tables
from qualms.report.site.page import slug
from qualms.report.table import Column, Table, TableCell, TableLine
from qualms.results import Result

MOST_FILES = 6
"""Files that are compared with each other at most; every two of them take time."""
MOST_SCORES = 60
"""Scores of a benchmark that are compared at most."""
ONLY_BEST = (
    "Only differences from the best row of each score are known here; judge the runs"
    " again with this version for those of every two rows."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedRows:
    """Rows or files with the same items, and how every two of them differ."""

    slug: str
    title: str
    group: str
    """Its group: a benchmark, or the files of a user."""
    rows: Mapping[str, str]
    """The label of each row by its name; the first is the reference at first."""
    scores: tuple[PairedScore, ...]
    level: float
    notes: tuple[str, ...] = ()
    simulated: bool = False


def compared_rows(contents: SiteContents) -> Iterator[ComparedRows]:
    """Yield the rows of a site that can be compared, by dataset and set of items."""
    for shown in contents.benchmarks:
        for variant in shown.report.variants:
            compared = _of_variant(shown, variant)
            if compared.scores:
                yield compared
    groups = list(_same_items(contents.files))
    for number, files in enumerate(groups):
        if len(files) > 1:
            yield _of_files(files, number)


def unpaired_files(contents: SiteContents) -> tuple[str, ...]:
    """Return the names of files that share their items with no other."""
    alone = [files for files in _same_items(contents.files) if len(files) == 1]
    return tuple(file.results.name for files in alone for file in files)


def score_words(score: PairedScore) -> tuple[str, str, str]:
    """Return a score in words: what is compared, by which settings, on which items."""
    hidden = ("score", "subset", "variant", "benchmark")
    settings = {k: v for k, v in score.labels.items() if k not in hidden}
    subset = str(score.labels.get("subset", "all"))
    items = "all items" if subset == "all" else subset_label(subset)
    return score.compared, settings_words(settings), items


def settings_words(settings: Labels) -> str:
    """Return settings of a score in words: names stand with numbers alone.

    >>> settings_words({"uncertainty": "entropy", "alpha": 0.1})
    'entropy, alpha=0.1'
    """
    numbers = {k: v for k, v in settings.items() if isinstance(v, int | float)}
    texts = {k: v for k, v in settings.items() if k not in numbers}
    return ", ".join(filter(None, (values_text(texts), labels_text(numbers))))


def reference_table(compared: ComparedRows, reference: str) -> Table:
    """Return each row minus a reference, with scores by lines."""
    others = [row for row in compared.rows if row != reference]
    lines = []
    for score in compared.scores:
        gaps = [score.difference(row, reference) for row in others]
        if any(gaps):
            what, by, items = score_words(score)
            lines.append(
                TableLine(
                    labels=(what, by, items),
                    cells=tuple(map(_cell, gaps)),
                    keys=dict(score.labels),
                )
            )
    label = compared.rows[reference]
    return Table(
        name="differences",
        title=f"Differences from {label}",
        about=f"Each column is a row minus {label}, paired over items.",
        left=("score", "by", "items"),
        columns=tuple(
            Column(
                label=compared.rows[row],
                group=f"minus {label}",
                keys={"row": row, "reference": reference},
            )
            for row in others
        ),
        lines=tuple(lines),
        simulated=compared.simulated,
        level=compared.level,
    )


def pair_table(compared: ComparedRows) -> Table:
    """Return the difference of every two rows, one for each line."""
    lines = []
    for score in compared.scores:
        what, by, items = score_words(score)
        for gap in score.differences:
            row, reference = compared.rows[gap.row], compared.rows[gap.reference]
            lines.append(
                TableLine(
                    labels=(what, by, items, f"{row} - {reference}"),
                    cells=(_cell(gap), TableCell(mean=gap.p)),
                    keys={
                        **score.labels,
                        "row": gap.row,
                        "reference": gap.reference,
                    },
                )
            )
    return Table(
        name="pairs",
        title=f"{compared.group}, {compared.title}: the difference of every two rows",
        left=("score", "by", "items", "rows"),
        columns=(
            Column(label="difference", keys={"number": "difference"}),
            Column(label="p", keys={"number": "p"}),
        ),
        lines=tuple(lines),
        simulated=compared.simulated,
        level=compared.level,
    )


def _cell(gap: PairedDifference | None) -> TableCell:
    if gap is None:
        return TableCell(why="not compared")
    return TableCell(mean=gap.value, low=gap.low, high=gap.high, no_interval=gap.reason)


def _of_files(files: Sequence[ScoredFile], number: int) -> ComparedRows:
    first = files[:MOST_FILES]
    results = with_main_scores(Scored(results=tuple(f.results for f in first)))
    paired_scores = compare_pairs(results.results)
    names = [file.results.name for file in first]
    rows = dict.fromkeys(name for score in paired_scores for name in score.values)
    notes = []
    if len(files) > len(first):
        more = len(files) - len(first)
        notes.append(
            f"The first {len(first)} files are compared, and {more} more have the same"
            " items: give fewer files, or call qualms.evaluate.compare_pairs."
        )
    return ComparedRows(
        slug=slug(f"compare files {number + 1}"),
        title=", ".join(names),
        group="Files",
        rows={name: name for name in rows},
        scores=tuple(s for s in paired_scores if not is_group(str(s.labels["subset"]))),
        level=first[0].results.level,
        notes=tuple(notes),
    )


def _same_items(files: Sequence[ScoredFile]) -> Iterator[list[ScoredFile]]:
    """Yield files that can be paired together."""
    remaining = list(files)
    while remaining:
        together = [file for file in remaining if _are_paired(remaining[0], file)]
        yield together
        remaining = [file for file in remaining if file not in together]


def _are_paired(first: ScoredFile, other: ScoredFile) -> bool:
    if first is other:
        return True
    one, two = first.results, other.results
    if one.task != two.task or one.items is None or two.items is None:
        return False
    drawn = one.design is not None and two.design is not None
    return drawn and same_items(pairing(one.items), pairing(two.items))


def _of_variant(shown: ShownBenchmark, variant: VariantFacts) -> ComparedRows:
    report = shown.report
    known = report.pairs or tuple(_from_best(report))
    every = [score for score in known if score.labels.get("variant") == variant.name]
    shown_labels = main_labels(report)
    main = [score for score in every if is_main(score.labels, shown_labels)]
    chosen = (main or every)[:MOST_SCORES]
    names = {name for score in chosen for name in score.values}
    ordered = [row.name for row in report.rows if row.name in names]
    rows = [*ordered, *sorted(names.difference(ordered))]
    notes = [] if report.pairs else [ONLY_BEST]
    if not report.pairs:
        rows.sort(key=lambda row: -_times_best(row, chosen))
    if len(chosen) < len(main or every):
        notes.append(f"The first {len(chosen)} of {len(main or every)} scores.")
    return ComparedRows(
        slug=slug(f"compare {shown.slug} {variant.name}"),
        title=variant.label,
        group=report.title,
        rows={row: report.row_label(row) for row in rows},
        scores=tuple(chosen),
        level=report.level,
        notes=tuple(notes),
        simulated=variant.simulated,
    )


def _times_best(row: str, chosen: Sequence[PairedScore]) -> int:
    return sum(gap.reference == row for score in chosen for gap in score.differences)


def main_labels(report: BenchmarkReport) -> list[Labels]:
    """Return the labels of the numbers in the main tables."""
    return [
        {**table.keys, **line.keys, **column.keys}
        for table in main_tables(report)
        for line in table.lines
        for column in table.columns
    ]


def is_main(labels: Labels, tables: Iterable[Labels]) -> bool:
    """Return whether the number with these labels stands in a table."""
    return any(
        "score" in shown
        and all(shown.get(name, value) == value for name, value in labels.items())
        for shown in tables
    )


def _from_best(report: BenchmarkReport) -> Iterator[PairedScore]:
    """Yield the differences from the best rows that a results table has."""
    table = report.table.computed()
    of_rows = {"row", "method", "pool", "select"}
    names = [name for name in table.labels if name not in of_rows]
    columns: dict[tuple[Label | None, ...], list[Result]] = {}
    for result in table:
        key = tuple(result.labels.get(name) for name in names)
        if result.best and math.isfinite(result.value):
            columns.setdefault(key, []).append(result)
    for key, results in columns.items():
        labels = {n: v for n, v in zip(names, key, strict=True) if v is not None}
        function = getattr(scores, str(labels.get("score")), None)
        if callable(function):
            about = scores.about(function)
            yield PairedScore(
                labels=labels,
                label=about.label,
                better=about.better,
                values={str(r.labels["row"]): r.value for r in results},
                differences=tuple(map(_to_best, filter(_is_other, results))),
            )


def _is_other(result: Result) -> bool:
    return str(result.labels["row"]) != result.best


def _to_best(result: Result) -> PairedDifference:
    return PairedDifference(
        row=str(result.labels["row"]),
        reference=result.best,
        value=result.difference,
        low=result.difference_low,
        high=result.difference_high,
        p=math.nan,
        reason=result.no_winner,
    )
