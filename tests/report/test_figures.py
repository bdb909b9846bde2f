"""The paper's figures: the numbers behind them, and the files."""

import json
from dataclasses import replace
from importlib.resources import files

import matplotlib as mpl
import pytest

from qualms.report import _style
from qualms.report.benchmark import write_all
from qualms.report.papers.regression import _bars
from qualms.report.papers.regression._figures import write_figures
from qualms.report.papers.regression._looks import COLOURS, MARKERS
from qualms.report.papers.regression._points import (
    COMMON,
    REAL,
    SYNTHETIC,
    Source,
    coverage_error,
    printed,
)
from qualms.report.papers.regression._scatter import (
    FIGURES,
    averages,
    our_means,
    published_means,
)
from report.made_results import BENCHMARK, results_as_published

DERIVED = json.loads(
    (files("qualms.published") / "regression_derived_figures.json").read_text("utf-8")
)
SMALL = BENCHMARK.presets["small"]
SELECTIVE = FIGURES[-1].rows


@pytest.fixture(scope="module")
def real():
    return Source(results_as_published(), simulated=False)


@pytest.fixture(scope="module")
def simulated():
    return results_as_published(simulated=True, preset=SMALL)


@pytest.mark.parametrize("means", [published_means, our_means])
def test_averages_over_real_datasets_are_those_derived_from_the_tables(real, means):
    variants = real.judged(REAL, COMMON)
    assert len(variants) == 6
    found = averages(means(real), variants, COMMON)
    for row in COMMON:
        derived = DERIVED["fig_A1_A3_real_world"][real.label(row)]
        mean = found[row]
        error = derived["avg_test_coverage_error"]
        assert mean.coverage_error == pytest.approx(error, abs=1e-6)
        assert mean.mae_rank == pytest.approx(derived["avg_val_mae_rank"], abs=1e-4)
        length = derived["avg_val_length_rank"]
        assert mean.length_rank == pytest.approx(length, abs=1e-4)


def test_averages_over_all_datasets_are_those_derived_from_the_tables(real):
    variants = real.judged(SYNTHETIC + REAL, SELECTIVE)
    found = averages(published_means(real), variants, SELECTIVE)
    assert len(variants) == 12
    for row in SELECTIVE:
        derived = DERIVED["fig_A6_all12"][real.label(row)]
        error = derived["avg_test_coverage_error"]
        assert found[row].coverage_error == pytest.approx(error, abs=1e-6)
        rate = derived["avg_test_prediction_rate"]
        assert found[row].rate == pytest.approx(rate, abs=1e-6)


@pytest.mark.parametrize("label", SYNTHETIC + REAL)
def test_heights_of_a16_and_a17_are_those_derived_from_the_tables(real, label):
    numbers = [printed(real, label, row, "test_coverage") for row in COMMON]
    derived = DERIVED["fig_A16_A17_avg_coverage_error_over_five_methods"][label]
    found = coverage_error(number.mean for number in numbers)
    assert found == pytest.approx(derived, abs=1e-6)


@pytest.fixture
def coarse(monkeypatch):
    """Drawn in full, but as small files."""
    monkeypatch.setattr(_style, "KINDS", ("png",))
    monkeypatch.setitem(_style._RC, "savefig.dpi", 30)


@pytest.mark.usefixtures("coarse")
def test_every_figure_is_drawn_from_the_papers_data(real, tmp_path):
    written = write_figures(real.results, tmp_path)
    names = {path.stem.removeprefix("figure_") for path in written}
    appendix = {f"A{number}" for number in range(1, 18)}
    # Figure 4 has no numbers in print; without graded variants it cannot be drawn.
    assert names == {"2", "3", "5", "6"} | appendix
    assert all(path.stat().st_size > 1000 for path in written)


@pytest.mark.usefixtures("coarse")
def test_simulated_figures_are_kept_apart(simulated, tmp_path):
    names = {path.stem for path in write_figures(simulated, tmp_path)}
    assert names
    assert all(name.endswith("_simulated") for name in names)
    assert "figure_3_simulated" not in names


def test_the_same_results_give_the_same_bytes(simulated, tmp_path):
    source = Source(simulated, simulated=True)
    figure = next(figure for figure in _bars.FIGURES if figure.name == "A7")
    first = _bars.bar_figure(source, figure, tmp_path / "a")
    second = _bars.bar_figure(source, figure, tmp_path / "b")
    assert [p.read_bytes() for p in first] == [p.read_bytes() for p in second]
    assert [p.read_bytes()[:4] for p in first] == [b"%PDF", b"\x89PNG"]


def test_drawing_leaves_the_settings_of_others_alone(simulated, tmp_path):
    before = dict(mpl.rcParams)
    source = Source(simulated, simulated=True)
    _bars.bar_figure(source, _bars.FIGURES[0], tmp_path)
    assert dict(mpl.rcParams) == before


def test_without_numbers_nothing_is_drawn(simulated, tmp_path):
    assert write_figures(replace(simulated, cells={}), tmp_path) == []


def test_every_row_of_a_figure_has_its_own_look():
    assert len(set(COLOURS.values())) == len(COLOURS) == len(set(MARKERS.values()))
    drawn = {row for figure in _bars.FIGURES for row in figure.rows}
    assert drawn | set(SELECTIVE) <= set(COLOURS)


def test_everything_is_written_into_one_folder(simulated, tmp_path, monkeypatch):
    monkeypatch.setattr("qualms.report.benchmark.find_spec", lambda _name: None)
    written = write_all(simulated, tmp_path / "regression", command="qualms run")
    assert written.results == tmp_path / "regression" / "results.csv"
    assert written.results.is_file()
    assert all(path.parent.name == "tables" for path in written.tables)
    assert written.figures == ()
    assert "pip install 'qualms[report]'" in written.notes[0]


@pytest.mark.usefixtures("coarse")
def test_figures_of_an_earlier_time_do_not_stay(simulated, tmp_path, monkeypatch):
    monkeypatch.setattr(_bars, "FIGURES", _bars.FIGURES[:1])
    (tmp_path / "figures").mkdir()
    (tmp_path / "figures" / "figure_A7_simulated.pdf").write_text("")
    written = write_all(simulated, tmp_path)
    assert tmp_path / "figures" / "figure_2_simulated.png" in written.figures
    assert set((tmp_path / "figures").iterdir()) == set(written.figures)
