"""The paper's tables A1 to A42 with our numbers in them.

Every cell has our number twice. "ours" takes the finite-sample rank and has the
interval; "by their rule" takes the rank of the released code, and only that one is
compared with the paper, on its own data. Published numbers are not of simulated data,
and do not stand beside them.
"""

from qualms.benchmarks.regression._averages import average_tables
from qualms.evaluate.benchmark_results import BenchmarkResults
from qualms.report.judged import DEVIATION, NOT_PRINTED
from qualms.report.layout import Layout, LayoutColumn, layout_table, published_of
from qualms.report.own_uncertainties import own_uncertainty_table
from qualms.report.table import Table
from qualms.results import ResultsTable
from qualms.study import RunPlan, Variant

COLUMNS = (
    LayoutColumn(
        label="test coverage",
        labels={"subset": "test", "score": "coverage"},
        decimals=3,
    ),
    LayoutColumn(
        label="test prediction rate",
        labels={"subset": "test", "score": "prediction_rate"},
        decimals=3,
    ),
    LayoutColumn(label="val MAE ↓", labels={"subset": "val", "score": "mae"}),
    LayoutColumn(
        label="val interval length ↓",
        labels={"subset": "val", "score": "interval_length"},
    ),
)
_TEST_MAE = LayoutColumn(label="test MAE ↓", labels={"subset": "test", "score": "mae"})
RELABELLED = ("A5", "A6", "A7", "A8", "A9")
"""Tables whose row labels stand one line too high in the text that was read."""
_MAIN = 0.1


def regression_tables(results: BenchmarkResults) -> tuple[Table, ...]:
    """Return every table of the paper whose dataset was judged, and averages.

    Of a table's variants the simulated ones come last.
    """
    printed = _printed(results)
    tables = (
        _table(results, name, printed.where(table=name), variant)
        for name in printed.distinct("table")
        for variant in _variants(results.plan, printed.where(table=name))
    )
    own = (_own_uncertainties(results, variant) for variant in results.variants)
    judged = (table for table in (*own, *tables) if table is not None)
    return (*judged, *average_tables(results))


def _own_uncertainties(results: BenchmarkResults, variant: Variant) -> Table | None:
    """Lay out what a method's own uncertainties select, beside all test items."""
    return own_uncertainty_table(
        results,
        variant,
        (*COLUMNS[:2], _TEST_MAE),
        built_in="all items are predicted",
        where={"alpha": _MAIN},
        about=f"preset {results.plan.preset_text}; {1 - _MAIN:.0%} intervals",
        simulated=variant.simulated,
        keys={"variant": variant.name, "alpha": _MAIN},
    )


def tables_without_data(results: BenchmarkResults) -> list[str]:
    """Name the datasets of the paper's tables that the preset lacks, in a note."""
    printed, plan = _printed(results), results.plan
    datasets = {variant.label for variant in plan.variants}
    missing = [name for name in printed.distinct("dataset") if name not in datasets]
    if not missing:
        return []
    tables = printed.where(dataset=tuple(missing)).distinct("table")
    return [
        f"preset {plan.preset.name} has no data for {len(tables)} tables of the "
        f"paper, those of {', '.join(map(str, missing))}"
    ]


def _printed(results: BenchmarkResults) -> ResultsTable:
    book = published_of(results)
    assert book is not None  # the benchmark declares its published numbers
    return book.table


def _variants(plan: RunPlan, printed: ResultsTable) -> list[Variant]:
    """Return the variants that a printed table is of: real ones, then simulated."""
    labels, (alpha,) = printed.distinct("dataset"), printed.distinct("alpha")
    variants = [
        v for v in plan.variants if v.label in labels and {"alpha": alpha} in v.at
    ]
    return sorted(variants, key=lambda variant: variant.simulated)


def _table(
    results: BenchmarkResults, name: object, printed: ResultsTable, variant: Variant
) -> Table | None:
    rows, (alpha,) = printed.distinct("row"), printed.distinct("alpha")
    assert isinstance(alpha, float)
    # The variations have tables of their own; rows beyond the paper come last.
    complete = "gaussian" in rows
    beyond = [row.name for row in results.plan.rows if row.beyond and complete]
    data = (
        "simulated data, not the paper's" if variant.simulated else "the paper's data"
    )
    shift = f"; shifted: {variant.shift}" if variant.shift else ""
    corrected = (
        "Published numbers: the text read had its row labels one line too high; "
        "corrected."
    )
    layout = Layout(
        name=f"{name}_{variant.name}",
        title=f"Table {name}: {variant.label}, {1 - alpha:.0%} intervals",
        columns=COLUMNS,
        where={"variant": variant.name, "alpha": alpha, "row": (*rows, *beyond)},
        printed_in={"table": str(name)},
        spread=DEVIATION,
        notes=(
            f"Coverage should be {1 - alpha:g}: the share of targets that lie in their "
            "interval, among the items that are predicted at all (prediction rate).",
            *([corrected] if name in RELABELLED and not variant.simulated else []),
        ),
        main=complete and alpha == _MAIN,
    )
    return layout_table(
        results,
        layout,
        about=f"{data}; preset {results.plan.preset_text}{shift}",
        simulated=variant.simulated,
        absent=data if variant.simulated else NOT_PRINTED,
        keys={
            "number": str(name),
            "data": data,
            "dataset": variant.label,
            "variant": variant.name,
            "alpha": alpha,
        },
    )
