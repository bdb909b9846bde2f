"""RETINA's figures: what is drawn where, and the files."""

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from matplotlib.colors import to_hex
from matplotlib.figure import Figure

from qualms.evaluate.benchmark import Band, Cell, DrawnKey, Key, Sides
from qualms.published import published
from qualms.report import _style
from qualms.report.papers.retina import _histograms, _sheets
from qualms.report.papers.retina._blur import blur_sheets
from qualms.report.papers.retina._curves import curve_sheets
from qualms.report.papers.retina._figures import write_figures
from qualms.report.papers.retina._looks import (
    BLUR_COLOURS,
    BLUR_MARKERS,
    COLOURS,
    CORRECT,
    INCORRECT,
    MARKERS,
)
from qualms.report.papers.retina._own_curves import own_sheets
from qualms.report.papers.retina._panels import draw_panel, points_of
from qualms.report.papers.retina._sheets import write_sheet
from qualms.report.papers.retina._words import wrapped
from report.made_retina import BENCHMARK, DEMO, results_as_published


@pytest.fixture(scope="module")
def real():
    return results_as_published(drawn=True)


@pytest.fixture(scope="module")
def simulated():
    return results_as_published(preset=DEMO, simulated=True, drawn=True)


@pytest.fixture(scope="module")
def said_of_real(real):
    return said(real, draw_panel=lambda *_: None)


@pytest.fixture(scope="module")
def said_of_simulated(simulated):
    return said(simulated, draw_panel=draw_panel)


def said(results, draw_panel):
    """What each figure says about itself, by name; nothing is rendered."""
    told, last = {}, []

    def say(figure, title, remark, handles, *, columns):
        text = " ".join(f"{title} {remark}".split())
        last[:] = text, [handle.get_label() for handle in handles]

    def save(figure, folder, name):
        told[name] = tuple(last)
        return [folder / f"{name}.pdf"]

    with pytest.MonkeyPatch.context() as patch:
        for module in (_sheets, _histograms):
            patch.setattr(module, "say", say)
            patch.setattr(module, "save", save)
        patch.setattr(_sheets, "draw_panel", draw_panel)
        write_figures(results, Path("nowhere"))
    return told


def sheets(results):
    made = (*curve_sheets(results), *blur_sheets(results), *own_sheets(results))
    return {sheet.file: sheet for sheet in made}


def panel_of(results, file, strip, place):
    return sheets(results)[file].strips[strip].panels[place]


def drawn(results, panel):
    axes = Figure().subplots()
    draw_panel(axes, results, panel)
    return axes


def test_every_figure_of_the_paper_is_drawn_from_its_data(said_of_real):
    numbers = {name.split("_")[1] for name in said_of_real}
    wanted = {"2", "3", *map(str, range(8, 18)), "19", "20"}
    assert numbers == wanted | {"referral", "ood"}
    assert {name for name in said_of_real if name.split("_")[1] in ("2", "3")} == {
        "figure_2_severity",
        "figure_3_country",
    }


def test_every_figure_says_its_regime(said_of_real):
    for name, (text, _) in said_of_real.items():
        regime = "joint" if "_joint" in name else "in-domain"
        if name.startswith("figure_15"):
            assert "regimes in-domain and joint" in text
        else:
            assert f"regime {regime}: chosen on" in text


def test_every_figure_says_what_its_data_are(said_of_real, said_of_simulated):
    for name, (text, _) in said_of_real.items():
        assert "simulated" not in name + text
        assert "the paper's data" in text
    for name, (text, _) in said_of_simulated.items():
        assert name.endswith("_simulated")
        assert "simulated data, not the paper's; preset demo, onset moderate" in text


def test_legends_name_methods_the_nhs_and_what_is_published(
    said_of_real, said_of_simulated
):
    methods = [row.label for row in BENCHMARK.rows if row.pool == 1]
    labels = {name: labels for name, (_, labels) in said_of_real.items()}
    added = ["NHS recommendation", "published (hollow)"]
    assert labels["figure_2_severity"] == methods + added
    assert labels["figure_ood_country"] == methods
    assert labels["figure_19_severity"][:4] == [f"blur {b}" for b in (5, 10, 20, 30)]
    assert added[1] not in str(said_of_simulated)


def test_a_roc_has_the_nhs_point_and_the_papers_axes(real):
    axes = drawn(real, panel_of(real, "figure_3_country", 0, 0))
    points = [tuple(np.ravel(line.get_xydata())) for line in axes.lines]
    assert (0.2, 0.85) in points
    assert axes.get_xlim() == pytest.approx((-0.03, 0.93))
    assert axes.get_ylim() == pytest.approx((0.45, 1.05))


def test_curves_are_means_with_bands_of_one_standard_error(real):
    x, mean, error = np.linspace(0, 1, 5), np.full(5, 0.9), np.full(5, 0.05)
    panel = panel_of(real, "figure_14_country", 0, 0)
    panel = panel._replace(curves=panel.curves[:1])
    key = DrawnKey("country", "map", "in_domain", "referral_accuracy")
    axes = drawn(replace(real, bands={key: Band(x, mean, error)}), panel)
    line, (band,) = axes.lines[0], axes.collections
    # Beyond 95 % referred there is too little left to draw.
    assert line.get_xdata().tolist() == [0.0, 0.25, 0.5, 0.75]
    height = band.get_paths()[0].vertices[:, 1]
    assert (height.min(), height.max()) == pytest.approx((0.85, 0.95))


@pytest.mark.parametrize(("score", "top"), [("accuracy", 1.01), ("nll", 1.05)])
def test_only_a_score_without_bound_has_an_axis_far_beyond_one(simulated, score, top):
    x = np.linspace(0, 1, 5)
    key = DrawnKey("severity", "map", "shifted", f"referral_{score}")
    place = ("accuracy", "auroc", "nll").index(score)
    panel = panel_of(simulated, "figure_referral_runs_severity_simulated", place, 1)
    made = replace(simulated, bands={key: Band(x, np.ones(5), np.full(5, np.nan))})
    assert drawn(made, panel).get_ylim()[1] == pytest.approx(top, abs=0.006)


def test_published_points_stand_at_the_shares_of_the_tables(real, simulated):
    panel = panel_of(real, "figure_3_country", 0, 3)
    curve = next(c for c in panel.curves if c.row.name == "mfvi")
    found = points_of(real, panel, curve)
    where = {"table": "1", "source": "000_retina", "dataset": "shifted"}
    where |= {"method": "mfvi", "ensemble": "false", "metric": "auroc"}
    book = published("retina")
    numbers = [book.find(where | {"referral": tau}) for tau in (0.0, 0.5, 0.7)]
    assert found == [(n.where["referral"], n.mean / 100) for n in numbers]
    other = panel_of(simulated, "figure_3_country_simulated", 0, 3)
    assert points_of(simulated, other, other.curves[0]) == []


@pytest.mark.parametrize("options", [{"onset": "mild"}, {"size": 256}])
def test_published_points_stand_beside_curves_of_their_own_setting_alone(real, options):
    variants = tuple(
        replace(v, dataset=replace(v.dataset, options={**v.dataset.options, **options}))
        for v in real.preset.variants
    )
    made = replace(real, preset=replace(real.preset, variants=variants))
    for sheet in sheets(made).values():
        for panel in (p for strip in sheet.strips for p in strip.panels):
            assert not any(points_of(made, panel, curve) for curve in panel.curves)
        assert f"onset {options.get('onset', 'moderate')}" in sheet.remark
        assert ("another setting" in sheet.remark) != ("_simulated" in sheet.file)


@pytest.mark.parametrize(
    ("why", "words"),
    [
        ("only one class among these items", "only one class\namong these\nitems"),
        ("", "no numbers"),
    ],
)
def test_an_empty_panel_says_why(simulated, why, words):
    panel = panel_of(simulated, "figure_referral_runs_severity_simulated", 1, 1)
    keys = [Key("severity", None, c.row.name, "shifted/auroc") for c in panel.curves]
    cells = simulated.cells | {key: Cell(key=key, why=why) for key in keys}
    axes = drawn(replace(simulated, cells=cells), panel)
    assert [text.get_text() for text in axes.texts] == [words]


def test_panels_of_the_same_score_share_their_limits(real, tmp_path, monkeypatch):
    kept = []
    monkeypatch.setattr(_sheets, "save", lambda figure, *_: kept.append(figure) or [])
    write_sheet(real, sheets(real)["figure_15_country"], tmp_path)
    assert len({axes.get_ylim() for axes in kept[0].axes}) == 1
    titles = [axes.get_title() for axes in kept[0].axes]
    assert titles[:2] == ["(a) regime in-domain", "(b) regime joint"]


def test_figures_8_and_11_take_grades_from_both_sets(real):
    variant = next(v for v in real.preset.variants if v.name == "severity")
    found = _histograms._found(real, variant, _histograms.FIGURES[0])
    assert [row.name for row, _ in found] == list(COLOURS)
    assert all(set(by_grade) == set("01234") for _, by_grade in found)
    pooled = _histograms._found(real, variant, _histograms.FIGURES[3])
    assert {row.pool for row, _ in pooled} == {3}


def test_right_decisions_are_blue_and_wrong_ones_red():
    axes = Figure().subplots()
    edges = np.linspace(0, math.log(2), 3)
    sides = Sides(edges, np.array([0.6, 0.2]), np.array([0.05, 0.15]))
    _histograms._cell(axes, sides, 0, 0)
    blue, red = axes.collections
    assert to_hex(blue.get_edgecolor()[0]).upper() == CORRECT
    assert to_hex(red.get_edgecolor()[0]).upper() == INCORRECT
    assert axes.texts[0].get_text() == "20% wrong"
    outline = red.get_paths()[0].vertices
    # Up to its own peak, the second bin; a third of that in the first.
    assert outline[:, 1].max() == pytest.approx(_histograms._HIGH)
    assert outline[1, 1] == pytest.approx(_histograms._HIGH / 3)


@pytest.mark.parametrize(
    ("wrong", "words"),
    [(0.0, "0%"), (0.004, "0.4%"), (0.0094, "0.9%"), (0.0096, "1%"), (0.02, "2%")],
)
def test_a_share_of_wrong_decisions_has_a_decimal_below_one_percent(wrong, words):
    axes = Figure().subplots()
    edges = np.array([0.0, math.log(2)])
    _histograms._cell(
        axes, Sides(edges, np.array([1 - wrong]), np.array([wrong])), 0, 0
    )
    assert axes.texts[0].get_text() == f"{words} wrong"


def test_a_figure_breaks_no_word_of_what_it_says(real):
    sheet = sheets(real)["figure_14_country"]
    for inches in (2, 3, 4, 5, 6):
        lines = wrapped(sheet.remark, inches).splitlines()
        assert len(lines) > 1
        assert not any(line.endswith("-") for line in lines)


@pytest.mark.parametrize(
    ("least", "words"),
    [
        (1, "one repeat, so no bands"),
        (2, "bands: standard error, none of a single repeat"),
        (3, "bands: standard error"),
    ],
)
def test_a_figure_says_why_curves_have_no_band(simulated, least, words):
    bands = dict(simulated.bands)
    for key, band in bands.items():
        if BENCHMARK.row(key.row).pool >= least:
            bands[key] = band._replace(stderr=np.full(len(band.x), np.nan))
    told = said(replace(simulated, bands=bands), draw_panel=lambda *_: None)
    assert told["figure_14_country_simulated"][0].endswith(f"; {words}")


def test_bins_are_joined_until_a_small_panel_can_show_them():
    edges = np.linspace(0, math.log(2), 41)
    fine = Sides(edges, np.arange(40.0), np.ones(40))
    coarse = _histograms._coarser(fine)
    assert coarse.edges.tolist() == edges[::2].tolist()
    assert coarse.correct[:2].tolist() == [1.0, 5.0]
    assert coarse.incorrect.sum() == 40


def test_files_of_the_same_results_are_the_same(simulated, tmp_path):
    sheet = sheets(simulated)["figure_ood_country_simulated"]
    first = write_sheet(simulated, sheet, tmp_path / "a")
    second = write_sheet(simulated, sheet, tmp_path / "b")
    assert [p.read_bytes() for p in first] == [p.read_bytes() for p in second]
    assert [p.read_bytes()[:4] for p in first] == [b"%PDF", b"\x89PNG"]


def test_histograms_are_written(simulated, tmp_path, monkeypatch):
    monkeypatch.setattr(_style, "KINDS", ("png",))
    variant = simulated.preset.variants[0]
    (path,) = _histograms._figure(simulated, variant, _histograms.FIGURES[1], tmp_path)
    assert path.name == "figure_9_country_simulated.png"
    assert path.stat().st_size > 10_000


def test_without_curves_nothing_is_drawn(simulated, tmp_path):
    assert write_figures(replace(simulated, bands={}, sides={}), tmp_path) == []


def test_every_method_and_every_blur_has_its_own_look():
    methods = {row.method.name for row in BENCHMARK.rows}
    assert methods == set(COLOURS) == set(MARKERS)
    for looks in (COLOURS, MARKERS, BLUR_COLOURS, BLUR_MARKERS):
        assert len(set(looks.values())) == len(looks)
