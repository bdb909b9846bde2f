"""The VALUES benchmark's tables and figures, ours beside the published numbers."""

import csv
import math
from dataclasses import replace

import pytest
from rich.console import Console

from qualms.evaluate.results import Key
from qualms.published import published
from qualms.report.benchmark import paper_of, print_benchmark
from qualms.report.csv_files import write_table_csv
from qualms.report.html import html_table
from qualms.report.latex import latex_table
from qualms.report.papers.values.settings import (
    AUROC,
    NCC,
    Component,
    Study,
    published_components,
    theirs,
)
from qualms.report.papers.values.verdicts import (
    FIGURE_2A,
    MeasurePair,
    Verdict,
    verdict,
)
from report.made_values import BENCHMARK, DEMO, SMALL, add, results_as_published


@pytest.fixture(scope="module")
def results():
    return results_as_published()


@pytest.fixture(scope="module")
def small():
    return results_as_published(preset=SMALL)


@pytest.fixture(scope="module")
def tables(results):
    return {table.name: table for table in paper_of(results).tables(results)}


def tables_of(results):
    return {table.name: table for table in paper_of(results).tables(results)}


def printed(results, width=80, **options):
    console = Console(width=width)
    with console.capture() as capture:
        print_benchmark(results, console=console, **options)
    return capture.get()


def lines_of(path):
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_the_published_components_are_those_of_the_paper():
    # 13 models and measures, each with two aggregations.
    for dataset in ("toy2", "toy3a", "toy3b", "lidc_tex", "lidc_mal", "gta5_cs"):
        assert len(published_components(dataset)) == 26


def test_every_number_of_tables_4_to_6_stands_beside_ours(tables):
    cells = [
        cell
        for name, table in tables.items()
        if name in ("table_4a", "table_4b") or name.startswith(("table_5", "table_6"))
        for cell in table.cells
        if cell.published is not None
    ]
    known = [
        number
        for number in published("values").numbers
        if number.where["table"] in ("4a", "4b", "5", "6")
    ]
    assert len(cells) == len(known)
    for cell in cells:
        assert cell.gap == pytest.approx(0.0, abs=0.0051)
        assert cell.repeats == 3


def test_tables_5_and_6_have_26_lines_and_14_columns(tables):
    for name in ("table_5_lidc_tex", "table_5_lidc_mal", "table_6_gta5_cs"):
        table = tables[name]
        assert (len(table.lines), len(table.columns)) == (26, 14)
        assert not table.main
    heads = [column.head for column in tables["table_5_lidc_tex"].columns]
    assert heads[:4] == ["Dice i.i.d. ↑", "Dice OoD ↑", "AUROC ↑", "AURC i.i.d. ↓"]


def test_a_spread_is_the_sample_deviation_as_in_the_paper(tables):
    cell = tables["table_5_lidc_tex"].lines[0].cells[0]
    assert cell.mean == pytest.approx(81.42)
    assert cell.spread == pytest.approx(1.0)


def test_active_learning_is_not_asked_of_aleatoric_measures(tables):
    table = tables["table_5_lidc_tex"]
    (place,) = [i for i, c in enumerate(table.columns) if c.keys["score"] == "gain"]
    empty = {line.keys["type"] for line in table.lines if not line.cells[place].repeats}
    assert empty == {"AU"}


def test_lines_go_from_predictive_to_aleatoric_to_epistemic(tables):
    ssn = [line for line in tables["table_4b"].lines if line.keys["row"] == "ssn"]
    assert [line.labels for line in ssn] == [
        (measure, over)
        for measure in ("PE (PU)", "MI (AU)", "EE (EU)")
        for over in ("patch", "threshold", "image")
    ]


def test_stand_ins_are_marked_and_not_compared(small):
    table = tables_of(small)["table_5_lidc_tex"]
    assert table.simulated
    assert "simulated data, not the paper's (lidc_contours)" in table.about
    cell = table.lines[0].cells[0]
    assert cell.published is not None
    assert math.isnan(cell.difference)
    assert any("Published numbers in brackets" in note for note in table.notes)


def test_toy_volumes_are_compared_and_toy_images_are_not(small):
    places = {
        gap["dataset"]
        for gap in differences(tables_of(small)["table_4_cells"])
        if gap["published_mean"]
    }
    assert places == {"toy1", "toy2", "toy3a", "toy3b"}
    demo = results_as_published(preset=DEMO)
    assert "table_4_differences" not in tables_of(demo)
    assert "toy images of two dimensions" in tables_of(demo)["table_4b"].about


def differences(table):
    for line in table.lines:
        for column, cell in zip(table.columns, line.cells, strict=True):
            number = cell.published
            yield {
                **line.keys,
                **column.keys,
                "published_mean": "" if number is None else number.mean,
            }


def test_differences_from_table_4_are_counted(small):
    cells = dict(small.cells)
    at = {"measure": "MI", "aggregation": "patch"}
    text = ", ".join(f"{name}={value}" for name, value in at.items())
    one = Component("ensemble", **at)
    for variant, dataset, by in (("toy_2", "toy2", 0.06), ("toy_3a", "toy3a", -0.2)):
        key = Key(variant, "ensemble", text, "ood_auroc")
        add(cells, key, theirs(dataset, one, AUROC) + by)
    table = tables_of(replace(small, cells=cells))["table_4_differences"]
    found = {line.labels[0]: [cell.mean for cell in line.cells] for line in table.lines}
    assert found["Toy 2, AUROC"][:3] == [26, 25, 26]
    assert found["Toy 3a, AUROC"][:3] == [26, 25, 25]
    assert found["all"][:3] == [91, 89, 90]
    assert found["all"][5] == pytest.approx(0.2)


def test_every_cell_of_table_4_is_a_line_of_the_file(small, tmp_path):
    path = write_table_csv(tables_of(small)["table_4_cells"], tmp_path / "t.csv")
    lines = [line for line in lines_of(path) if line["published_mean"]]
    assert len(lines) == 91
    line = next(
        line
        for line in lines
        if (line["dataset"], line["row"], line["measure"], line["aggregation"])
        == ("toy2", "tta", "MI", "patch")
    )
    assert float(line["published_mean"]) == 0.95
    assert float(line["difference"]) == pytest.approx(0.0)
    assert line["text"] == "+0.00"


@pytest.mark.parametrize("width", [80, 120])
def test_a_terminal_shows_all_tables_within_its_width(results, width):
    text = printed(results, width=width, full=True)
    assert max(map(len, text.splitlines())) <= width
    assert "Table 6: GTA5/CS" in text


def test_other_renderers_show_the_tables(tables):
    for table in tables.values():
        assert table.title.partition(":")[0] in html_table(table)
        assert r"\end{table}" in latex_table(table)


def of_published(question, dataset):
    study = Study(results_as_published())
    ones = published_components("toy2" if dataset == "toy1" else dataset)
    by = {(one.row, one.aggregation, study.kind(one)): one for one in ones}
    pairs = [
        MeasurePair(one, by[row, over, "EU"])
        for (row, over, kind), one in by.items()
        if kind == "AU"
    ]
    return verdict(question, theirs, dataset, pairs)


def test_the_rule_gives_the_verdicts_of_figure_2a_for_the_published_numbers(tables):
    table = tables["table_questions"]
    words = {"often yes": "yes", "mostly not": "no", "depends on AU in data": "depends"}
    for line in table.lines:
        ours, published_numbers, said = (cell.text for cell in line.cells)
        assert ours == published_numbers
        if said:
            assert ours.partition(" ")[0] == words.get(said, said)
    named = [line.labels[0] for line in table.lines if line.cells[2].text]
    assert named == 4 * list(FIGURE_2A)


def test_a_verdict_counts_models_once_where_maps_are_compared():
    assert of_published("Q1", "toy1") == Verdict(4, 4)
    assert of_published("Q2", "toy1") == Verdict(0, 4)
    assert of_published("Q4", "toy3b") == Verdict(0, 8)


def test_verdicts_follow_the_numbers():
    au, eu = Component("ttd", "EE", "patch"), Component("ttd", "MI", "patch")
    pairs = [MeasurePair(au, eu)]

    def asked(question, aleatoric, epistemic):
        def value(_dataset, one, score):
            assert score is (NCC[0] if question in ("Q1", "Q2") else AUROC)
            return aleatoric if one is au else epistemic

        return verdict(question, value, "toy1", pairs).held

    assert (asked("Q1", 0.5, 0.0), asked("Q1", 0.49, 0.0)) == (1, 0)
    assert (asked("Q2", 0.8, 0.65), asked("Q2", 0.8, 0.64)) == (1, 0)
    assert asked("Q2", -0.3, -0.2) == 0
    assert (asked("Q3", 0.9, 0.51), asked("Q3", 0.9, 0.5)) == (1, 0)
    assert (asked("Q4", 0.66, 0.8), asked("Q4", 0.64, 0.8)) == (1, 0)
    assert asked("Q4", 0.5, 0.5) == 0
    assert asked("Q4", 0.5, math.nan) == 0


@pytest.mark.parametrize(
    ("held", "cases", "word"),
    [(3, 4, "yes"), (2, 4, "partially"), (1, 4, "partially"), (1, 8, "no"), (0, 0, "")],
)
def test_a_word_stands_for_a_share_of_cases(held, cases, word):
    assert Verdict(held, cases).word == word


def test_without_numbers_there_are_no_tables(results):
    assert paper_of(replace(results, cells={})).tables(replace(results, cells={})) == ()


def test_kinds_are_those_that_the_rows_declare():
    study = Study(results_as_published())
    assert study.kind(Component("ssn", "EE", "patch")) == "EU"
    assert study.kind(Component("tta", "EE", "patch")) == "AU"
    assert study.kind(Component("softmax", "MSR", "patch")) == "PU"
    assert {row.name for row in BENCHMARK.rows if row.settings.get("measures")} >= {
        *("softmax", "ttd", "ensemble", "tta", "ssn"),
    }
