"""A table of the uncertainties that methods, such as one from outside, have themselves.

Their numbers have the label `uncertainty`; those of the built-in uncertainty, which
have no such label, stand above them. All are ranked together by each score.
"""

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Any

from qualms.evaluate.benchmark_results import BenchmarkResults
from qualms.evaluate.uncertainty_ranking import UNCERTAINTY
from qualms.labels import Label, Labels
from qualms.report.layout import Layout, LayoutColumn, Wishes, layout_table
from qualms.report.table import Table
from qualms.study import RunPlan, Variant


def own_uncertainty_table(  # noqa: PLR0913 - what differs between benchmarks
    results: BenchmarkResults,
    variant: Variant,
    columns: Sequence[LayoutColumn],
    *,
    built_in: str = "",
    usual: Collection[Label] = (),
    where: Wishes | None = None,
    by: tuple[str, ...] = (),
    every_row: bool = False,
    **table: Any,
) -> Table | None:
    """Return the table of a variant; None if no method has uncertainties of its own.

    Args:
        results: The judged benchmark.
        variant: The variant.
        columns: Scores that depend on the uncertainty.
        built_in: What the built-in uncertainty is called; '' to leave it out.
        usual: Names of uncertainties that all methods of the task have.
        where: Further labels of all numbers, such as an alpha.
        by: Further labels whose values are lines, such as an aggregation.
        every_row: Whether rows without uncertainties of their own stand in it too.
        **table: `about`, `simulated` and `keys` of `layout_table`.
    """
    numbers = results.table.where(variant=variant.name, **(where or {}))
    names = numbers.distinct(UNCERTAINTY)
    own = [name for name in names if name not in usual]
    if not own:
        return None
    with_own = numbers.where(**{UNCERTAINTY: own}).distinct("row")
    rows = numbers.distinct("row") if every_row else with_own

    def words(plan: RunPlan, labels: Labels) -> tuple[str, ...]:
        others = (str(labels.get(name, "")) for name in by)
        name = str(labels.get(UNCERTAINTY, built_in))
        return (plan.row(str(labels["row"])).label, name, *others)

    layout = Layout(
        name=f"own_uncertainties_{variant.name}",
        title=f"{variant.label}: uncertainties of the methods' own",
        columns=tuple(columns),
        where={
            "variant": variant.name,
            "row": rows,
            UNCERTAINTY: (*names, *([None] if built_in else [])),
            **(where or {}),
        },
        lines=("row", UNCERTAINTY, *by),
        line_labels=words,
        left=("method", UNCERTAINTY, *("over" for _ in by)),
        printed_in=None,
        compares=False,
        among_uncertainties=True,
        main=True,
    )
    filled = layout_table(results, layout, **table)
    if filled is None:
        return None
    # A map has a line without an aggregation, which some columns have no number of.
    lines = (line for line in filled.lines if any(c.repeats for c in line.cells))
    return replace(filled, lines=tuple(lines))
