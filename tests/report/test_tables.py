"""The paper's tables with our numbers beside the published ones."""

import csv
import math
from dataclasses import replace

import pytest
from rich.console import Console

from qualms.benchmarks import Expectation
from qualms.evaluate.benchmark import Check, Key, Missing
from qualms.published import published
from qualms.report._results_file import write_results
from qualms.report.benchmark import print_benchmark, print_checks
from qualms.report.papers.regression._files import write_tables
from qualms.report.papers.regression._latex import latex
from qualms.report.papers.regression._tables import (
    METRICS,
    absent_tables,
    paper_tables,
)
from report.made_results import BENCHMARK, add, results_as_published

SMALL = BENCHMARK.presets["small"]


@pytest.fixture(scope="module")
def results():
    return results_as_published()


@pytest.fixture(scope="module")
def tables(results):
    return {table.file: table for table in paper_tables(results)}


def lines_of(path):
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def printed(results, width=160, **options):
    console = Console(width=width, record=True, file=None, quiet=False)
    with console.capture() as capture:
        print_benchmark(results, console=console, **options)
    return capture.get()


def test_all_42_tables_are_there_for_the_papers_data(tables):
    real = {t.name for t in tables.values() if not t.variant.simulated}
    assert real == {f"A{number}" for number in range(1, 43)}


def test_published_numbers_compared_with_themselves_differ_by_nothing(tables):
    compared = [
        cell
        for table in tables.values()
        if not table.variant.simulated
        for line in table.lines
        if not line.row.beyond
        for cell in line.compared.values()
    ]
    assert len(compared) == len(published("regression").numbers)
    for cell in compared:
        if cell.number.spread:
            # A34 repeats a number of A4 with a misprint, which is corrected.
            assert cell.difference == pytest.approx(0.0, abs=1e-9)
        else:
            assert math.isnan(cell.difference)


def test_a_difference_is_in_units_of_the_published_deviation():
    results = results_as_published()
    key = Key("cell200_tails", 0.1, "gaussian", "test_coverage")
    add(results.cells, key, 0.54402 + 2 * 0.0348)
    table = next(t for t in paper_tables(results) if t.file == "table_A2_cell200_tails")
    cell = table.lines[2].compared["test_coverage"]
    number = published("regression").find(
        {"table": "A2", "method": "Gaussian", "metric": "test_coverage"}
    )
    expected = (0.54402 + 2 * 0.0348 - number.mean) / number.spread
    assert cell.difference == pytest.approx(expected)


def test_rows_beyond_the_paper_stand_below_its_ten(tables):
    labels = [line.label for line in tables["table_A1_cell200"].lines]
    assert labels[9] == "Gaussian Ensemble + Selective Ens Var"
    assert labels[10:] == [row.label for row in BENCHMARK.rows if row.beyond]
    beyond = tables["table_A1_cell200"].lines[10].compared["test_coverage"]
    assert beyond.number is None
    assert "not in the paper" in beyond.why
    variations = [line.label for line in tables["table_A31_cell200"].lines]
    assert len(variations) == 8


def test_simulated_data_are_called_so(tables):
    assert "simulated" in tables["table_A2_cells_tails"].data
    assert "simulated" not in tables["table_A2_cell200_tails"].data
    assert "simulated data" in latex(tables["table_A2_cells_tails"])


def test_every_table_says_its_preset(results, tables, tmp_path):
    assert all("preset paper)" in latex(table) for table in tables.values())
    paths = [p for p in write_tables(results, tmp_path) if p.suffix == ".csv"]
    assert {line["preset"] for p in paths for line in lines_of(p)} == {"paper"}


def test_a_cell_without_runs_says_why(tables):
    cell = tables["table_A2_cells_tails"].lines[0].compared["test_coverage"]
    assert cell.why == "not part of preset paper"
    assert math.isnan(cell.difference)


def test_a_misprint_is_remarked_on(tables):
    line = next(
        line
        for line in tables["table_A34_rc49"].lines
        if line.label == "Gaussian + Selective kNN"
    )
    assert "misprint" in line.compared["test_prediction_rate"].why


def test_tables_without_data_are_named():
    small = replace(results_as_published(), preset=SMALL)
    absent = absent_tables(small)
    assert absent["A7"] == "AssetWealth"
    assert "A1" not in absent
    assert {t.name for t in paper_tables(small)}.isdisjoint(absent)


def test_every_table_is_written_as_csv_and_latex(results, tables, tmp_path):
    written = write_tables(results, tmp_path / "tables")
    assert {p.stem for p in written} == set(tables)
    assert len(written) == 2 * len(tables)
    lines = lines_of(tmp_path / "tables" / "table_A2_cell200_tails.csv")
    (line,) = (
        line
        for line in lines
        if (line["method"], line["score"]) == ("Gaussian", "test_coverage")
    )
    assert float(line["published_mean"]) == 0.54402
    assert float(line["by_their_rule_mean"]) == 0.54402
    assert float(line["ours_std"]) == pytest.approx(0.01 * 0.54402)
    assert line["data"] == "the paper's data"


def test_latex_rows_have_as_many_cells_as_columns(tables):
    for table in tables.values():
        text = latex(table)
        assert text.count(r"\begin") == text.count(r"\end") == 2
        assert text.count(r"\toprule") == text.count(r"\bottomrule") == 1
        body = text.split(r"\midrule", 1)[1].split(r"\bottomrule")[0]
        for line in body.replace(r"\midrule", "").strip().splitlines():
            if line:
                assert line.count(" & ") == 3 * len(METRICS), line
        assert "_" not in text.replace(r"\_", "")


def test_results_hold_every_cell_with_how_it_was_made(results, tmp_path):
    made = replace(results, hardware=("a machine",), seconds=12.5)
    path = write_results(made, tmp_path / "r.csv", command="qualms run regression")
    lines = lines_of(path)
    assert len(lines) == len(results.cells)
    assert {line["command"] for line in lines} == {"qualms run regression"}
    assert {(line["hardware"], line["seconds_of_all_runs"]) for line in lines} == {
        ("a machine", "12.5")
    }
    assert all(len(line["values"].split()) == int(line["repeats"]) for line in lines)


def test_the_terminal_shows_ours_and_the_papers():
    text = printed(results_as_published(simulated=True, preset=SMALL))
    assert "Table A2: Cells-Tails, alpha 0.1" in text
    assert "simulated data, not the paper's; preset small" in text
    assert "0.544 ± 0.035 +0.0" in text
    assert "Table A14" not in text
    assert "more tables (other alphas, variations) are written as files" in text


def test_a_narrow_terminal_keeps_the_method_and_the_coverage():
    results = results_as_published(simulated=True, preset=SMALL)
    text = printed(results, width=80)
    assert all(len(line) <= 80 for line in text.splitlines() if "±" in line)
    assert "Conformal" in text
    assert "coverage" in text
    assert "val MAE" not in text


def test_all_tables_are_shown_when_asked_for():
    results = results_as_published(simulated=True, preset=SMALL)
    assert "Table A14" in printed(results, full=True)


EXPECTED = Expectation(
    text="coverage drops",
    variant="cells",
    rows=("gaussian",),
    score="test_coverage",
    low=0.1,
    high=1.0,
)


@pytest.mark.parametrize(
    ("value", "verdict"), [(0.3, "held"), (0.05, "NOT HELD"), (math.nan, "unknown")]
)
def test_effects_are_printed_with_their_numbers(value, verdict):
    check = Check(expectation=EXPECTED, values={"gaussian": value})
    results = replace(results_as_published(), checks=(check,))
    console = Console(width=120)
    with console.capture() as capture:
        print_checks(results, console=console)
    line = capture.get().splitlines()[1]
    assert line.split("coverage drops")[0].strip() == verdict
    assert ("missing" if math.isnan(value) else f"{value:.3f}") in line


def test_missing_runs_are_counted_by_kind():
    missing = [
        Missing(
            hash=f"{i}", dataset="cells", method="map", seed=i, reason="was not run"
        )
        for i in range(7)
    ]
    text = printed(replace(results_as_published(), missing=tuple(missing)))
    assert "7 runs are missing" in text
    assert "7 of map on cells: was not run" in text
