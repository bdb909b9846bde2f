"""Layouts over a small results table: lines, columns, missing cells, the join."""

import math

import pytest

from qualms.evaluate.benchmark_results import BenchmarkResults
from qualms.report.layout import (
    Layout,
    LayoutColumn,
    Section,
    layout_table,
    published_number,
)
from qualms.results import Result, ResultsTable, result
from qualms.spec import Part
from qualms.study import Benchmark, Preset, TableRow, Variant

PUBLISHED = """table,variant,row,alpha,subset,score,simulated,mean,std,unit,note
1,clinic,map,0.1,in_domain,auroc,false,90,2,percent,
1,clinic,dropout,0.1,in_domain,auroc,true,80,4,percent,a misprint
2,clinic,map,0.1,in_domain,auroc,false,10,,percent,
"""
AUROC = {"subset": "in_domain", "score": "auroc"}
SHIFTED = {"subset": "shifted", "score": "auroc"}
COLUMNS = (
    LayoutColumn(
        label="AUROC ↑",
        labels=AUROC,
        group="in-domain",
        unit="%",
        scale=100,
        decimals=1,
    ),
    LayoutColumn(label="AUROC ↑", labels=SHIFTED, group="shifted"),
)
ROWS = (
    TableRow(name="map", label="MAP", method=Part(name="map")),
    TableRow(name="dropout", label="MC Dropout", method=Part(name="mc_dropout")),
    TableRow(name="mine", label="Mine", method=Part(name="swag"), beyond=True),
)


def plan(published=None):
    variants = tuple(
        Variant(
            name=name,
            label=name.title(),
            dataset=Part(name="fundus"),
            at=({"alpha": 0.1}, {"alpha": 0.05}),
        )
        for name in ("clinic", "night")
    )
    preset = Preset(
        name="demo",
        variants=variants,
        rows=tuple(row.name for row in ROWS),
        network=Part(name="resnet50"),
        training={"epochs": 1},
        seeds=(0, 1),
        pools=((0,), (1,)),
    )
    return Benchmark(
        name="toy",
        version=1,
        title="Toy",
        paper="nobody",
        task="classification",
        rows=ROWS,
        presets={"demo": preset},
        published=published,
    ).plan("demo")


def number(variant, row, values, *, alpha=0.1, more=AUROC, **fields):
    labels = {"variant": variant, "row": row, "alpha": alpha, **more}
    return result(labels, values, **fields)


NUMBERS = (
    number("night", "dropout", (0.7, 0.8)),
    number("clinic", "dropout", (0.8, 0.9), low=0.7, high=1.0, best="map", tied=True),
    number("clinic", "map", (0.9, 0.9), best="map", tied=True, released_values=(0.88,)),
    number("clinic", "map", (0.5, math.nan), more=SHIFTED),
    number("clinic", "mine", (0.6,), alpha=0.05),
    number("clinic", "mine", (), why="was not run"),
)


def results(published=None, numbers=NUMBERS):
    table = ResultsTable.of(numbers).with_labels(simulated=False)
    return BenchmarkResults(plan=plan(published), table=table)


@pytest.fixture
def printed(tmp_path):
    path = tmp_path / "published.csv"
    path.write_text(PUBLISHED, encoding="utf-8")
    return results(path)


CLINIC = {"variant": "clinic", "alpha": 0.1}


def layout(**more):
    options = {"name": "1", "title": "Table 1", "columns": COLUMNS, "where": CLINIC}
    return Layout(**{**options, **more})


def laid(judged, about="simulated data", **more):
    return layout_table(judged, layout(**more), about=about)


def cell(table, line, column=0):
    return next(x.cells[column] for x in table.lines if x.labels[0] == line)


def test_lines_are_the_rows_of_the_plan_in_its_order():
    table = laid(results())
    assert [line.labels for line in table.lines] == [
        ("MAP",),
        ("MC Dropout",),
        ("Mine",),
    ]
    assert [line.beyond for line in table.lines] == [False, False, True]
    assert table.lines[0].keys == {"row": "map"}


def test_numbers_are_in_the_unit_of_their_column():
    table = laid(results())
    ours = cell(table, "MC Dropout")
    assert (ours.mean, ours.spread) == pytest.approx((85, 5))
    assert (ours.low, ours.high) == pytest.approx((70, 100))
    assert ours.repeats == 2
    head, shifted = table.columns
    assert (head.group, head.unit, head.decimals) == ("in-domain", "%", 1)
    assert head.keys == AUROC
    assert shifted.head == "AUROC ↑"


def test_missing_cells_say_why():
    table = laid(results())
    undefined = cell(table, "MAP", 1)
    assert math.isnan(undefined.mean)
    assert undefined.why == "1 of 2 repeats are undefined"
    assert cell(table, "Mine").why == "was not run"
    absent = cell(table, "MC Dropout", 1)
    assert math.isnan(absent.mean)
    assert (absent.repeats, absent.text) == (0, "")


def test_columns_and_tables_without_results_are_left_out():
    more = LayoutColumn(label="NLL", labels={"variant": "elsewhere", "score": "nll"})
    table = laid(results(), where={"alpha": 0.1}, columns=(*COLUMNS, more))
    assert [column.label for column in table.columns] == ["AUROC ↑", "AUROC ↑"]
    assert laid(results(), where={"variant": "elsewhere"}) is None
    assert laid(results(), columns=(more,)) is None


def test_published_numbers_stand_beside_ours_in_the_same_unit(printed):
    table = laid(printed, printed_in={"table": "1"}, across=("simulated",))
    ours = cell(table, "MAP")
    assert ours.published == pytest.approx((90, 2))
    assert ours.released.mean == pytest.approx(88)
    assert ours.gap == pytest.approx(-2)
    assert ours.difference == pytest.approx(-1)
    # Of other data: shown, but not compared.
    other = cell(table, "MC Dropout")
    assert other.published == pytest.approx((80, 4))
    assert other.remark == "a misprint"
    assert other.released is None
    assert math.isnan(other.gap)
    assert cell(table, "Mine").published is None
    assert cell(table, "Mine").remark == "not in the paper"


def test_a_published_number_has_all_labels_of_ours(printed):
    numbers = ResultsTable.of(
        [Result(labels={"row": "map", "alpha": 0.1}, value=1.0)]
    ) + ResultsTable.of([Result(labels={"row": "map", "alpha": 0.05}, value=2.0)])
    ours = printed.table.get(variant="clinic", row="map")
    assert published_number(printed, numbers, ours).value == 1.0
    assert published_number(printed, numbers.where(alpha=0.05), ours) is None
    assert published_number(printed, None, ours) is None
    assert laid(printed, printed_in={"table": "3"}).compares is False
    assert laid(printed, printed_in=None).compares is False
    table = laid(printed, printed_in={"table": "2"})
    assert cell(table, "MAP").published.mean == pytest.approx(10)


def test_a_layout_may_neither_compare_nor_mark(printed):
    marked = laid(printed, printed_in={"table": "1"})
    assert marked.marks
    assert cell(marked, "MAP").best
    assert not cell(marked, "MC Dropout").best
    table = laid(printed, printed_in={"table": "1"}, marked=False, compares=False)
    assert not table.marks
    assert cell(table, "MAP").released is None
    assert cell(table, "MAP").published is not None


def test_sections_choose_the_lines_below_their_titles():
    table = laid(
        results(),
        where={},
        sections=(
            Section("Clinic", {"variant": "clinic"}),
            Section("Night", {"variant": "night"}),
        ),
        lines=("row", "alpha"),
        left=("method", "alpha"),
        line_labels=lambda plan, labels: (
            plan.row(labels["row"]).label,
            str(labels["alpha"]),
        ),
    )
    assert [(line.section, *line.labels) for line in table.lines] == [
        ("Clinic", "MAP", "0.1"),
        ("Clinic", "MC Dropout", "0.1"),
        ("Clinic", "Mine", "0.05"),
        ("Clinic", "Mine", "0.1"),
        ("Night", "MC Dropout", "0.1"),
    ]
    assert cell(table, "Mine").mean == pytest.approx(60)
    assert table.lines[-1].keys == {"variant": "night", "row": "dropout", "alpha": 0.1}


def test_values_of_labels_stand_in_the_stated_order_and_others_follow():
    words = {"line_labels": lambda _, labels: (labels["variant"],)}
    options = {"where": {"alpha": 0.1}, "lines": ("variant",), **words}
    for order, names in (
        (("night", "clinic"), ["night", "clinic"]),
        (("clinic",), ["clinic", "night"]),
    ):
        table = laid(results(), order={"variant": order}, **options)
        assert [line.labels[0] for line in table.lines] == names


def test_captions_and_keys_are_those_of_the_layout():
    table = layout_table(
        results(),
        layout(notes=("a remark",), spread="standard error", main=True),
        about="real data",
        simulated=True,
        keys={"selection": "in_domain"},
    )
    assert (table.name, table.title, table.about) == ("table_1", "Table 1", "real data")
    assert table.notes == ("a remark",)
    assert table.simulated
    assert table.main
    assert table.keys == {"preset": "demo", "selection": "in_domain"}
    # Of (0.8, 0.9): the standard error divides by n - 1.
    assert cell(table, "MC Dropout").spread == pytest.approx(5)


def test_intervals_that_cover_less_than_others_are_explained():
    """One run has a narrow interval, as nothing is known of its seeds."""

    def judged(**covers):
        return results(
            numbers=[
                number("clinic", name, (0.8,), low=0.7, high=0.9, covers=what)
                for name, what in covers.items()
            ]
        )

    mixed = laid(judged(map="items", dropout="items and seeds", mine="items"))
    (note,) = mixed.notes
    assert note.startswith(
        "Intervals and marks of MAP; Mine are about other items only"
    )
    for what in ("items", "items and seeds"):
        assert laid(judged(map=what, dropout=what)).notes == ()
