"""Pages of searches: the best options, the history, and all trials."""

import csv
import io
from dataclasses import replace
from pathlib import Path

import pytest

from qualms import write_site
from qualms.report.search_report import read_search
from qualms.report.site import write_contents
from qualms.report.site._read import contents_of_parts
from qualms.report.site.search_figures import best_so_far
from report.site.browsing import DRAW_ALL, OPEN_ALL, axe_findings, settle
from report.site.made_search import search, write_study
from report.site.made_site import HOSTILE, undrawn
from report.site.test_exports import lacking

LONG = HOSTILE[0] + HOSTILE[6]


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """Searches with one and with two objectives, of few trials, and of strangers."""
    folder = tmp_path_factory.mktemp("searches")
    (folder / "best.toml").write_text('name = "mine"\n')
    made = [
        search(folder=folder),
        search(objectives=2, method="swag"),
        search(4, method="map"),
        search(16, 2, word=LONG, method=LONG, title=LONG),
        replace(search(3), trials=(), method="sngp"),
    ]
    contents = contents_of_parts([], [], searches=made)
    with undrawn():
        return write_contents(contents, folder / "site").parent


def text_of(site, method):
    return (site / f"tune-home-{method}.html").read_text("utf-8")


def test_a_study_is_read_as_it_was_written(tmp_path):
    for number, made in enumerate((search(), search(12, 2), search(0))):
        folder = tmp_path / str(number)
        folder.mkdir()
        write_study(made, folder)
        found = read_search(folder)
        assert replace(found, when="", folder=made.folder) == made
        assert bool(found.when) == bool(made.trials)


def test_the_best_value_so_far_follows_the_direction():
    made = search(12, 2)
    numbers = [trial.number for trial in made.valued]
    higher, lower = best_so_far(made, 0), best_so_far(made, 1)
    assert [n for n, _ in higher] == [n for n, _ in lower] == numbers
    values = [value for _, value in higher]
    assert values == sorted(values)
    values = [value for _, value in lower]
    assert values == sorted(values, reverse=True)


def test_a_page_says_what_is_best_and_how_to_take_it(site):
    text = text_of(site, "mc-dropout")
    assert "<b>Trial 7</b> is best by AUROC of validation items: <b>0.9000</b>" in text
    assert "Of 20 trials: 14 done, 3 pruned, 3 failed." in text
    assert "qualms run mine/home --preset demo --methods mc_dropout --config" in text
    assert "try the config with several seeds" in text
    assert "Simulated data" in text
    config = site / "files" / "tune-home-mc-dropout-best.toml"
    assert config.read_text("utf-8") == 'name = "mine"\n'
    assert "tune-home-mc-dropout.html" in (site / "index.html").read_text("utf-8")
    assert text_of(site, "swag").count('data-chart="history"') == 2
    assert "No trial has a value." in text_of(site, "sngp")


def test_all_trials_are_a_table_with_their_options(site):
    text = (site / "files" / "tune-home-swag-table.csv").read_text("utf-8")
    lines = list(csv.DictReader(io.StringIO(text)))
    rates = [line for line in lines if line["option"] == "lr"]
    assert [float(line["ours_mean"]) for line in rates] == [
        pytest.approx(0.001 * (n + 1)) for n in range(20)
    ]
    assert [line["state"] for line in rates][:6] == [
        *("done", "done", "done", "failed", "done", "pruned")
    ]


def test_every_figure_can_be_saved(site):
    for path in site.glob("tune-*.html"):
        assert lacking(path.read_text("utf-8")) == {}, path.name


def test_folders_of_searches_are_found_and_their_trials_are_no_gaps(tmp_path):
    folder = tmp_path / "runs" / "mine" / "tune" / "home-mc_dropout"
    folder.mkdir(parents=True)
    write_study(search(), folder)
    run = tmp_path / "runs" / "mine" / f"{3:016x}"
    run.mkdir()
    (run / "spec.json").write_text("{}")
    (run / "failed.json").write_text('{"error": "the loss must be finite"}')
    for source in (folder, tmp_path / "runs"):
        with undrawn():
            index = write_site(source, out=tmp_path / "site")
        names = {path.name for path in index.parent.glob("*.html")}
        assert "tune-home-mc-dropout.html" in names
        assert "Nothing is missing" in (index.parent / "gaps.html").read_text("utf-8")


@pytest.fixture
def visit(open_page, site):
    def visited(method, **look):
        page = open_page((site / f"tune-home-{method}.html").as_uri(), **look)
        page.evaluate(OPEN_ALL + DRAW_ALL)
        settle(page)
        return page

    return visited


@pytest.mark.browser
@pytest.mark.parametrize(("width", "dark"), [(1280, False), (390, True)])
def test_pages_fit_and_have_no_findings(open_page, site, width, dark):
    for path in (p for p in site.glob("tune-*.html") if "sngp" not in p.stem):
        page = open_page(path.as_uri(), width=width, dark=dark)
        page.evaluate(OPEN_ALL + DRAW_ALL)
        settle(page)
        assert page.evaluate("document.documentElement.scrollWidth") <= width, path
        assert axe_findings(page) == [], path


@pytest.mark.browser
def test_the_history_is_walked_by_pointer_and_keyboard(visit):
    page = visit("mc-dropout")
    figure = page.locator("figure[data-chart=history]")
    head = figure.locator(".readout .head").first
    assert head.inner_text() == "trial 7, done: 0.9, the best"
    assert figure.locator("circle.dot").count() == 14
    assert figure.locator("path.rule").count() == 3
    legend = " ".join(figure.locator(".keys li").all_inner_texts())
    assert "14 done" in legend
    assert "3 pruned" in legend
    svg = figure.locator(".plot svg")
    svg.focus()
    page.keyboard.press("Home")
    assert head.inner_text() == "trial 0, done: 0.76"
    for _ in range(3):
        page.keyboard.press("ArrowRight")
    assert head.inner_text() == "trial 3, failed"
    assert "it was failed <b>early</b>" in figure.locator(".readout").inner_text()
    assert "epochs 3" in figure.locator(".readout").inner_text()
    assert "trial 3, failed" in figure.locator(".unseen").inner_text()
    box = figure.locator("circle.dot.c1").bounding_box()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    assert head.inner_text().startswith("trial 7")
    line = figure.locator("path.curve.soft").get_attribute("d")
    heights = [float(point.split(",")[1]) for point in line[1:].split("L")]
    assert heights == sorted(heights, reverse=True)  # values never get worse


@pytest.mark.browser
def test_a_history_is_saved_with_every_trial(visit):
    page = visit("mc-dropout")
    figure = page.locator("figure[data-chart=history]")
    with page.expect_download() as saved:
        figure.locator("[data-tool=csv]").click()
    text = Path(saved.value.path()).read_text("utf-8")
    lines = list(csv.DictReader(io.StringIO(text)))
    assert len(lines) == 20
    assert lines[3]["state"] == "failed"
    assert lines[3]["value"] == ""
    assert float(lines[-1]["best so far"]) == 0.9
    with page.expect_download() as saved:
        figure.locator("[data-tool=svg]").click()
    assert "14 done" in Path(saved.value.path()).read_text("utf-8")


@pytest.mark.browser
def test_trials_are_chosen_by_state_and_sorted(visit):
    page = visit("mc-dropout")
    table = page.locator("#tune-home-mc-dropout-table")
    table.locator("select").select_option("failed")
    assert table.locator("tbody tr:visible").count() == 3
    table.locator("select").select_option("")
    head = table.locator("th[data-column] button", has_text="AUROC")
    head.click()
    assert table.locator("tbody th").first.inner_text() == "7"
