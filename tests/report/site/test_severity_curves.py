"""Scores against severity: their numbers, and the figure in which one is chosen."""

import csv
import io
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from qualms.report.site import write_contents
from qualms.report.site._read import contents_of_parts
from qualms.report.site.contents import ShownBenchmark
from qualms.report.site.severity_curves import severity_figure, severity_scores
from qualms.report.stored_report import read_report, report_of_table, write_report
from qualms.results import ResultsTable
from report.site.browsing import DRAW_ALL, settle
from report.site.made_site import contents, report, severities, undrawn

SHOWN = report(unlisted=severities())


def test_scores_begin_at_the_items_as_they_are_stored():
    accuracy, brier, auroc = severity_scores(SHOWN)
    assert accuracy.label == "Accuracy ↑"
    assert accuracy.items == "corrupted items"
    assert accuracy.rows == ("Mine", "Other", "d", "e", "f")
    assert accuracy.severities.tolist() == [0, 1, 3]
    np.testing.assert_allclose(accuracy.values[0, 0], [0.9, 0.8, 0.6])
    np.testing.assert_allclose(accuracy.values[1, 1], [0.8, 0.68, 0.48])
    np.testing.assert_allclose(accuracy.low[1, 1], [0.75, 0.63, 0.43])
    assert np.isnan(accuracy.values[:, 2:]).all()
    assert brier.severities.tolist() == [1, 3]  # the stored items have none
    assert auroc.label == "OOD AUROC ↑, entropy"
    assert auroc.items == "corrupted and stored items together"
    assert auroc.reasons == ("one repeat",)


def test_a_benchmark_without_severities_has_no_figure():
    for unlisted in (ResultsTable(), SHOWN.table):
        shown = ShownBenchmark(slug="mine", report=replace(SHOWN, unlisted=unlisted))
        assert severity_figure(shown, paper=False) is None


def test_the_mean_needs_every_corruption():
    one = severities().where(corruption="fog")
    missing = severities().where(corruption="frost", severity=1)
    shown = replace(SHOWN, unlisted=one + missing)
    figure = severity_figure(ShownBenchmark(slug="mine", report=shown), paper=False)
    accuracy = figure.data[1].value
    mean, fog, frost = (panel["marks"][0] for panel in accuracy["panels"])
    assert mean["x"].tolist() == [0, 1]
    np.testing.assert_allclose(mean["y"], [0.9, 0.79])
    np.testing.assert_allclose(mean["low"], [0.85, 0.74])
    assert fog["x"].tolist() == [0, 1, 3]
    assert frost["x"].tolist() == [0, 1]
    alone = replace(SHOWN, unlisted=one)
    figure = severity_figure(ShownBenchmark(slug="mine", report=alone), paper=False)
    assert [panel["title"] for panel in figure.data[1].value["panels"]] == ["fog"]


def test_every_score_is_data_on_demand_and_the_first_have_a_pdf(tmp_path):
    made = replace(contents(names=()), on_paper=True)
    with undrawn():
        index = write_contents(made, tmp_path / "site")
    data = sorted(path.name for path in index.parent.glob("data/mine-severity-*"))
    assert data == [
        "mine-severity-corrupted-and-stored-items-together-ood-auroc-entropy.js",
        "mine-severity-corrupted-items-accuracy.js",
        "mine-severity-corrupted-items-brier.js",
        "mine-severity-scores.js",
    ]
    page = (index.parent / "mine.html").read_text("utf-8")
    assert not any(f'src="data/{name}"' in page for name in data)
    for ending in ("pdf", "tex", "txt"):
        assert f'files/mine-severity-corrupted-items-brier.{ending}"' in page
    assert 'src="assets/panels.js"' in page  # which draws what is chosen


def test_unlisted_numbers_are_read_from_the_results_table(tmp_path):
    made = SHOWN
    table = made.table + made.unlisted
    table.to_csv(tmp_path / "results.csv")
    write_report(made, tmp_path)
    for again in (read_report(tmp_path), report_of_table(table)):
        assert len(again.table) == len(made.table)
        assert len(again.unlisted) == len(made.unlisted)
        assert {v.name for v in again.variants} == {"clinic", "night"}
        assert len(list(severity_scores(again))) == 3


@pytest.fixture
def figure(open_page, tmp_path):
    """The figure on its page."""
    made = replace(contents_of_parts([SHOWN], []), on_paper=False)
    index = write_contents(made, tmp_path / "site")
    page = open_page((index.parent / "mine.html").as_uri())
    page.evaluate(DRAW_ALL)
    settle(page)
    figure = page.locator("figure[data-chart=severity]")
    figure.scroll_into_view_if_needed()
    figure.locator("svg.q").first.wait_for()
    return figure


def words(figure):
    return " ".join(figure.locator(".readout").inner_text().split())


@pytest.mark.browser
def test_a_score_and_a_corruption_are_chosen_by_keyboard(figure):
    page = figure.page
    assert "severity 3" in words(figure)
    assert "Mine 0.59 0.54\N{EN DASH}0.64" in words(figure)  # the mean of 0.6 and 0.58
    score, corruption = figure.locator("select").all()
    corruption.focus()
    page.keyboard.press("ArrowDown")
    assert "Mine 0.6 0.55\N{EN DASH}0.65" in words(figure)
    figure.locator("svg.q").focus()
    page.keyboard.press("ArrowLeft")
    assert "severity 1" in words(figure)
    page.keyboard.press("ArrowLeft")
    assert "Mine 0.9" in words(figure)
    page.keyboard.press("ArrowLeft")
    assert "severity 0" in words(figure)
    score.focus()
    page.keyboard.press("ArrowDown")
    settle(page)
    assert "severity 1" in words(figure)  # the stored items have no Brier score
    assert "Brier" in figure.locator(".unseen").inner_text()
    corruption.select_option(label="side by side")
    assert figure.locator("svg.q").count() == 3


@pytest.mark.browser
def test_bands_of_four_methods_show_and_of_more_that_in_focus(figure):
    assert figure.locator(".plot .band").count() == 2
    figure.locator(".readout button").first.click()
    assert figure.locator(".plot .band").count() == 1
    figure.locator(".readout button").first.click()
    score = figure.locator("select").first
    score.select_option(label="Brier ↓")
    settle(figure.page)
    assert figure.locator(".plot .curve").count() == 5
    assert figure.locator(".plot .band").count() == 0
    figure.locator(".readout button").nth(3).click()
    assert figure.locator(".plot .band").count() == 1
    score.select_option(label="OOD AUROC ↑, entropy")
    settle(figure.page)
    assert "No interval: one repeat." in figure.locator(".plot").inner_text()


@pytest.mark.browser
def test_the_chosen_score_is_saved(figure):
    score = figure.locator("select").first
    score.select_option(label="Brier ↓")
    settle(figure.page)
    with figure.page.expect_download() as saved:
        figure.locator("[data-tool=csv]").click()
    assert saved.value.suggested_filename == "mine-severity-corrupted-items-brier.csv"
    text = Path(saved.value.path()).read_text("utf-8")
    lines = list(csv.DictReader(io.StringIO(text)))
    shown = {
        (line["corruption"], line["method"], line["severity"]): line for line in lines
    }
    assert float(shown["fog", "Mine", "3"]["value"]) == 0.5
    assert float(shown["frost", "f", "1"]["high"]) == 0.77
    with figure.page.expect_download() as saved:
        figure.locator("[data-tool=svg]").click()
    assert saved.value.suggested_filename == "mine-severity-corrupted-items-brier.svg"
    assert "Brier" in Path(saved.value.path()).read_text("utf-8")
    figure.locator("[data-tool=table]").click()
    score.select_option(label="Accuracy ↑")
    settle(figure.page)
    assert "0.9" in figure.locator(".numbers").inner_text()
