"""The regression benchmark's tables and figures, ours beside the published numbers."""

import csv
import json
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

from qualms.benchmarks.regression._averages import averages
from qualms.benchmarks.regression._points import (
    COVERAGE,
    LOOKS,
    Source,
    coverage_error,
)
from qualms.benchmarks.regression._rows import COMMON, REAL, SELECTIVE, SYNTHETIC
from qualms.report._csv_files import write_results, write_table_csv
from qualms.report._latex import latex_table
from qualms.report.benchmark import print_benchmark
from qualms.report.figures import BarMark, CurveMark, PointMark
from qualms.report.presented import presentation_of
from qualms.results import ResultsTable
from report.made_results import BENCHMARK, NUMBERS, SMALL, add, results_as_published

DERIVED = json.loads(
    (
        Path(__file__).parents[1] / "published" / "regression_derived_figures.json"
    ).read_text("utf-8")
)


@pytest.fixture(scope="module")
def results():
    return results_as_published()


@pytest.fixture(scope="module")
def simulated():
    return results_as_published(simulated=True, plan=SMALL)


@pytest.fixture(scope="module")
def tables(results):
    return tables_of(results)


@pytest.fixture(scope="module")
def real(results):
    return Source(results, simulated=False)


def tables_of(results):
    return {table.name: table for table in presentation_of(results).tables(results)}


def figures(results):
    drawings = presentation_of(results).figures(results, None)
    return {drawing.name: drawing for drawing in drawings}


def with_numbers(results, *numbers):
    """The results with these numbers: variant, row, (subset, score) and value."""
    made = {}
    for variant, row, score, value in numbers:
        (line,) = results.lines(variant=variant, row=row, alpha=0.1)
        add(made, line, *score, value)
    new = [one.labels.items() for one in made.values()]
    kept = [
        row
        for row in results.table
        if not any(row.labels.items() <= items for items in new)
    ]
    return replace(results, table=ResultsTable.of([*kept, *made.values()]))


def lines_of(path):
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def printed(results, width=160, **options):
    console = Console(width=width)
    with console.capture() as capture:
        print_benchmark(results, console=console, **options)
    return capture.get()


def cell_of(table, label, subset, score):
    heads = [(column.keys["subset"], column.keys["score"]) for column in table.columns]
    line = next(line for line in table.lines if line.labels == (label,))
    return line.cells[heads.index((subset, score))]


def test_all_42_tables_are_there_for_the_papers_data(tables):
    real = {t.keys.get("number") for t in tables.values() if not t.simulated} - {None}
    assert real == {f"A{number}" for number in range(1, 43)}


def test_published_numbers_compared_with_themselves_differ_by_nothing(tables):
    cells = [
        cell
        for table in tables.values()
        if not table.simulated and "number" in table.keys
        for line in table.lines
        if not line.beyond
        for cell in line.cells
    ]
    assert len(cells) == len(NUMBERS)
    for cell in cells:
        if cell.published.std > 0:
            # A34 repeats a number of A4 with a misprint, which is corrected.
            assert cell.difference == pytest.approx(0.0, abs=1e-9)
        else:
            assert math.isnan(cell.difference)


def test_a_difference_is_in_units_of_the_published_deviation(results):
    value = 0.54402 + 2 * 0.0348
    changed = with_numbers(results, ("cell200_tails", "gaussian", COVERAGE, value))
    table = tables_of(changed)["table_A2_cell200_tails"]
    cell = cell_of(table, "Gaussian", "test", "coverage")
    at = {"table": "A2", "row": "gaussian"}
    number = NUMBERS.at(**at, subset="test", score="coverage")
    expected = (value - number.value) / number.spread
    assert cell.difference == pytest.approx(expected)


def test_published_numbers_do_not_stand_beside_simulated_data(simulated):
    cells = [cell for t in tables_of(simulated).values() for cell in t.cells]
    assert cells
    assert not any(cell.published for cell in cells)
    assert all(math.isnan(cell.difference) for cell in cells)
    table = tables_of(simulated)["table_A1_cells"]
    empty = cell_of(table, "Gaussian", "test", "coverage")
    assert empty.remark == "simulated data, not the paper's"
    for drawing in figures(simulated).values():
        assert "paper's numbers" not in drawing.caption
        assert "published" not in " ".join(drawing.labels)
        marks = [mark for panel in drawing.panels for mark in panel.marks]
        assert not any(isinstance(m, PointMark) and m.hollow for m in marks)


def test_averages_of_scatter_figures_are_tables_too(tables, real, simulated):
    real_ones = tables["table_averages_A1"]
    assert [line.keys["row"] for line in real_ones.lines] == list(COMMON)
    means = averages(real.theirs, real.complete(REAL, COMMON), COMMON)
    for line in real_ones.lines:
        for column, cell in zip(real_ones.columns, line.cells, strict=True):
            expected = getattr(means[line.keys["row"]], column.keys["score"])
            assert cell.published.mean == pytest.approx(expected)
            assert cell.mean == pytest.approx(expected, abs=1e-6)
    selective = tables["table_averages_A6"]
    assert {column.keys["score"] for column in selective.columns} == {
        *("coverage_error", "rate")
    }
    assert "12 of 12 datasets" in selective.notes[0]
    only = tables_of(simulated)["table_averages_A6_simulated"]
    assert "5 of 12 datasets" in only.notes[0]
    assert only.simulated


def test_rows_beyond_the_paper_stand_below_its_ten(tables):
    lines = tables["table_A1_cell200"].lines
    assert lines[9].labels == ("Gaussian Ensemble + Selective Ens Var",)
    beyond = [row.label for row in BENCHMARK.rows if row.beyond]
    assert [line.labels[0] for line in lines[10:]] == beyond
    assert lines[10].cells[0].published is None
    assert lines[10].cells[0].remark == "not in the paper"
    assert len(tables["table_A31_cell200"].lines) == 8


def test_every_table_says_its_data_and_preset(tables, tmp_path):
    assert "simulated data" in tables["table_A2_cells_tails"].about
    assert "simulated data" in latex_table(tables["table_A2_cells_tails"])
    assert "simulated" not in tables["table_A2_cell200_tails"].about
    assert all("preset paper" in table.about for table in tables.values())
    path = write_table_csv(tables["table_A2_cell200_tails"], tmp_path / "t.csv")
    (line,) = (
        line
        for line in lines_of(path)
        if (line["row"], line["subset"], line["score"])
        == ("gaussian", "test", "coverage")
    )
    assert float(line["published_mean"]) == 0.54402
    assert float(line["released_mean"]) == 0.54402
    assert float(line["ours_spread"]) == pytest.approx(0.01 * 0.54402)
    assert (line["data"], line["preset"], line["alpha"]) == (
        "the paper's data",
        "paper",
        "0.1",
    )


def test_a_cell_without_runs_and_a_misprint_say_so(tables):
    without = tables["table_A2_cells_tails"]
    empty = cell_of(without, "Conformal Prediction", "test", "coverage")
    assert empty.why == "was not run"
    printed = tables["table_A34_rc49"]
    misprint = cell_of(printed, "Gaussian + Selective kNN", "test", "prediction_rate")
    assert "misprint" in misprint.remark


def test_a_terminal_shows_the_main_tables_and_names_the_others(simulated):
    text = printed(simulated, width=80)
    assert max(map(len, text.splitlines())) <= 80
    message = " ".join(text.split())
    assert "Table A2: Cells-Tails, 90% intervals" in message
    assert "Table A14" not in message
    assert "preset small has no data for" in message
    assert "AssetWealth" in message
    assert "more tables are on the page, index.html" in message
    assert "Table A14" in printed(simulated, full=True)


def test_results_hold_every_number_with_how_it_was_made(results, tmp_path):
    changed = replace(results, hardware=("a machine",), seconds=12.5)
    path = write_results(changed, tmp_path / "r.csv", command="qualms run regression")
    lines = lines_of(path)
    assert len(lines) == len(results.table)
    assert {line["command"] for line in lines} == {"qualms run regression"}
    assert {line["alpha"] for line in lines} == {"0.05", "0.1", "0.2"}
    assert {line["hardware"] for line in lines} == {"a machine"}
    for line, row in zip(lines, results.table, strict=True):
        values = [float(text) for text in line["values"].split()]
        assert values == pytest.approx(row.values, rel=1e-7)


@pytest.mark.parametrize("means", ["ours", "theirs"])
def test_averages_over_real_datasets_are_those_derived_from_the_tables(real, means):
    variants = real.complete(REAL, COMMON)
    assert len(variants) == 6
    found = averages(getattr(real, means), variants, COMMON)
    for row in COMMON:
        derived = DERIVED["fig_A1_A3_real_world"][real.label(row)]
        mean = found[row]
        error = derived["avg_test_coverage_error"]
        assert mean.coverage_error == pytest.approx(error, abs=1e-6)
        assert mean.mae_rank == pytest.approx(derived["avg_val_mae_rank"], abs=1e-4)
        length = derived["avg_val_length_rank"]
        assert mean.length_rank == pytest.approx(length, abs=1e-4)


def test_averages_over_all_datasets_are_those_derived_from_the_tables(real):
    variants = real.complete(SYNTHETIC + REAL, SELECTIVE)
    found = averages(real.theirs, variants, SELECTIVE)
    assert len(variants) == 12
    for row in SELECTIVE:
        derived = DERIVED["fig_A6_all12"][real.label(row)]
        error = derived["avg_test_coverage_error"]
        assert found[row].coverage_error == pytest.approx(error, abs=1e-6)
        rate = derived["avg_test_prediction_rate"]
        assert found[row].rate == pytest.approx(rate, abs=1e-6)


@pytest.mark.parametrize("label", SYNTHETIC + REAL)
def test_heights_of_a16_and_a17_are_those_derived_from_the_tables(real, label):
    variant = real.variant(label)
    derived = DERIVED["fig_A16_A17_avg_coverage_error_over_five_methods"][label]
    found = coverage_error(real.theirs(variant, row, COVERAGE) for row in COMMON)
    assert found == pytest.approx(derived, abs=1e-6)


def test_every_figure_is_there_for_the_papers_data(results):
    names = {name.removeprefix("figure_") for name in figures(results)}
    appendix = {f"A{number}" for number in range(1, 18)}
    # Figure 4 has no numbers in print; figure 1 shows items, which are not here.
    assert names == {"2", "3", "5", "6"} | appendix


def test_simulated_figures_are_kept_apart_and_say_so(simulated):
    made = figures(simulated)
    assert "figure_1_simulated" in made
    assert "figure_3_simulated" not in made
    for name, drawing in made.items():
        assert name.endswith("_simulated")
        assert drawing.simulated
        assert "Simulated data, not the paper's; preset small" in drawing.caption


def test_figure_1_shows_items_of_training_and_test_with_their_targets(simulated):
    drawing = figures(simulated)["figure_1_simulated"]
    assert [side.splitlines()[-1] for side in drawing.sides[:2]] == ["train", "test"]
    shown = [panel.marks[0].pixels for panel in drawing.rows[0]]
    assert {pixels.shape for pixels in shown} == {(64, 64)}
    at = [side.replace("\n", " ") for side in drawing.sides].index("Cells- Tails test")
    targets = [float(panel.title.removeprefix("y = ")) for panel in drawing.rows[at]]
    assert all(target <= 50 or target >= 151 for target in targets)


def test_bars_stand_beside_published_numbers(results):
    drawing = figures(results)["figure_2"]
    panel = drawing.rows[0][1]
    bars = [mark for mark in panel.marks if isinstance(mark, BarMark)]
    points = [mark for mark in panel.marks if isinstance(mark, PointMark)]
    assert panel.title == "Cells-Tails"
    assert len(bars) == len(points) == len(COMMON)
    assert all(point.hollow for point in points)
    assert [bar.height for bar in bars] == pytest.approx([p.y for p in points])
    assert "published ± deviation" in drawing.labels


def test_coverage_is_drawn_while_the_shift_grows(simulated):
    steps = [
        (f"cells_tails_v{step}", row, COVERAGE, 0.9 - 0.1 * step)
        for step in (1, 2, 3)
        for row in COMMON
    ]
    drawing = figures(with_numbers(simulated, *steps))["figure_4_simulated"]
    curve = next(m for m in drawing.panels[0].marks if isinstance(m, CurveMark))
    assert np.diff(curve.y[:4]).max() < 0
    assert set(drawing.labels) == {BENCHMARK.row(row).label for row in COMMON}


def test_without_numbers_nothing_is_drawn(simulated):
    assert figures(replace(simulated, table=ResultsTable())) == {}


def test_rows_of_a_figure_have_different_colours(results):
    assert len(set(LOOKS.values())) == len(LOOKS)
    for name, drawing in figures(results).items():
        bars = [m for m in drawing.panels[0].marks if isinstance(m, BarMark)]
        assert len({bar.colour for bar in bars}) == len(bars), name
