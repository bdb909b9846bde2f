"""Tables of a benchmark that declares none: rows by scores."""

from collections.abc import Collection, Iterator, Sequence
from typing import Any

from qualms import scores
from qualms.evaluate.benchmark_results import BenchmarkResults
from qualms.evaluate.subsets import SIDE_BY_SIDE, subset_kind, subset_label
from qualms.labels import Label, Labels, labels_text
from qualms.report.judged import data_text, only_judged
from qualms.report.layout import Layout, LayoutColumn, layout_table
from qualms.report.presentation import Presentation
from qualms.report.table import Table
from qualms.results import ResultsTable
from qualms.study import Variant

ARROWS = {"higher": " ↑", "lower": " ↓", "neither": ""}
_NUMBER = ("subset", "score")
"""Labels that columns are made of."""


def ordinary() -> Presentation:
    """Show one table for each variant and each of its settings."""
    return Presentation(tables=_tables)


def _tables(results: BenchmarkResults) -> tuple[Table, ...]:
    return only_judged(
        _table(results, variant, settings)
        for variant in results.variants
        for settings in _settings(results, variant)
    )


def _settings(results: BenchmarkResults, variant: Variant) -> Iterator[Labels]:
    """Yield the settings of the numbers of a variant, such as an uncertainty."""
    of_lines = {name for line in results.plan.lines_of(variant) for name in line.labels}
    of_lines -= {name for line in results.plan.lines_of(variant) for name in line.at}
    table = results.table.where(variant=variant.name)
    names = [n for n in table.labels if n not in (*of_lines, *_NUMBER)]
    rows: Sequence[tuple[Label | None, ...]] = table.pivot(names, ()).rows
    for row in rows:
        named = zip(names, row, strict=True)
        yield {name: value for name, value in named if value is not None}


def _table(
    results: BenchmarkResults, variant: Variant, settings: Labels
) -> Table | None:
    plan = results.plan
    lines = plan.lines_of(variant)
    of_lines = {name for line in lines for name in line.labels}
    table = results.table.where(variant=variant.name)
    others = {
        name: None
        for name in table.labels
        if name not in (*of_lines, *_NUMBER, *settings)
    }
    where = {"variant": variant.name, **others, **settings}
    about = (
        data_text(variant),
        f"preset {plan.preset_text}",
        f"shifted: {variant.shift}" if variant.shift else "",
        plan.selection_text(variant),
    )
    text = labels_text(settings)
    title = (results.benchmark.title, variant.label, text)
    layout = Layout(
        name="_".join(filter(None, (variant.name, _file(text)))),
        title=", ".join(filter(None, title)),
        columns=tuple(_columns(results.table.where(**where))),
        where=where,
        printed_in=None,
        main=True,
    )
    return layout_table(
        results,
        layout,
        about="; ".join(filter(None, about)),
        simulated=variant.simulated,
        absent="",
        keys={
            "data": data_text(variant),
            "selection": variant.selection,
            "variant": variant.name,
            **settings,
        },
    )


def _columns(table: ResultsTable) -> Iterator[LayoutColumn]:
    """Yield a column for each judged score, grouped by set of items."""
    every = [pair for pair in table.pivot(_NUMBER, ()).rows if pair[1] is not None]
    subsets = list(dict.fromkeys(subset for subset, _ in every))
    pairs = [pair for pair in every if not _mixes(pair, every)]
    for subset, name in sorted(pairs, key=lambda pair: subsets.index(pair[0])):
        score = getattr(scores, str(name), None)
        label = str(name)
        if callable(score):
            about = scores.about(score)
            label = f"{about.label}{ARROWS[about.better]}"
        yield LayoutColumn(
            label=label,
            group="" if subset == "all" else subset_label(str(subset)),
            labels={"subset": subset, "score": name},
        )


def _mixes(pair: tuple[Label | None, ...], pairs: Collection[Any]) -> bool:
    """Return whether in-domain items are mixed with shifted ones that stand apart."""
    subset, score = pair
    apart = all((kind, score) in pairs for kind in SIDE_BY_SIDE)
    return apart and subset_kind(str(subset)) in ("all", "balanced")


def _file(text: str) -> str:
    """Return settings as part of a file's name."""
    return "".join(c if c.isalnum() or c in "._-" else "_" for c in text)
