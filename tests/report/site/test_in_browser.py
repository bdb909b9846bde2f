"""The site in a real browser: drawn, used by keyboard, without findings of axe."""

import csv
import io
import re
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest

from qualms.report.site import write_contents
from qualms.report.table import Column, Table, TableCell, TableLine
from report.site.browsing import DRAW_ALL, OPEN_ALL, axe_findings, settle
from report.site.made_site import contents, hostile_contents

pytestmark = pytest.mark.browser
WIDTHS = (1280, 390)


@pytest.fixture(scope="module")
def sites(tmp_path_factory):
    """A plain site, a single file of it, and a site of hostile names."""
    folder = tmp_path_factory.mktemp("sites")
    return {
        "plain": write_contents(contents(), folder / "plain"),
        "single": write_contents(contents(), folder / "single.html", single=True),
        "hostile": write_contents(hostile_contents(), folder / "hostile"),
    }


@pytest.fixture
def visit(open_page):
    """Open a page, and draw what is not in view."""

    def visited(path, *, anchor="", wanted=DRAW_ALL, **look):
        page = open_page(Path(path).as_uri() + anchor, **look)
        page.evaluate(wanted)
        settle(page)
        return page

    return visited


def pages(index):
    return sorted(index.parent.glob("*.html"))


@pytest.mark.parametrize("which", ["plain", "hostile"])
@pytest.mark.parametrize("width", WIDTHS)
def test_no_page_scrolls_sideways_or_complains(visit, sites, which, width):
    for path in pages(sites[which]):
        page = visit(path, width=width, wanted=OPEN_ALL + DRAW_ALL)
        size = page.evaluate("document.documentElement.scrollWidth")
        assert size <= width, path
        for plot in page.locator("figure.chart .plot").all():
            assert plot.locator("svg").count() > 0, path


@pytest.mark.parametrize("anchor", ["", "#page-mine", "#mine-figures", "#nowhere"])
def test_a_single_file_shows_one_page_at_a_time(visit, sites, anchor):
    page = visit(sites["single"], anchor=anchor)
    shown = page.locator("article.page:visible")
    assert shown.count() == 1
    wanted = "page-mine" if "mine" in anchor else "page-index"
    assert shown.get_attribute("id") == wanted
    page.locator(".nav a", has_text="Mine").click()
    page.locator("#page-mine").wait_for()
    assert page.locator("article.page:visible").get_attribute("id") == "page-mine"
    page.locator("figure.chart:visible svg").first.wait_for()


@pytest.mark.parametrize(("width", "dark"), [(1280, False), (390, True)])
def test_axe_finds_nothing_serious(visit, sites, width, dark):
    findings = {}
    for path in [*pages(sites["plain"]), sites["hostile"]]:
        page = visit(path, width=width, dark=dark, wanted=OPEN_ALL + DRAW_ALL)
        findings[path.name] = axe_findings(page)
    assert not any(findings.values()), findings


def test_an_error_would_be_seen(browser, tmp_path):
    path = tmp_path / "broken.html"
    path.write_text("<script>throw new Error('on purpose')</script>")
    page = browser.new_page()
    errors = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.goto(path.as_uri())
    page.close()
    assert errors == ["on purpose"]


def test_the_theme_follows_the_system_and_the_switch(visit, sites):
    ground = "getComputedStyle(document.body).backgroundColor"
    light, dark = "rgb(255, 255, 255)", "rgb(17, 22, 28)"
    page = visit(sites["plain"], dark=True)
    assert page.evaluate(ground) == dark
    switch = page.locator("button.theme")
    assert switch.inner_text() == "Theme: auto"
    switch.click()
    assert switch.inner_text() == "Theme: light"
    assert page.evaluate(ground) == light
    page.emulate_media(color_scheme="light")
    switch.click()
    assert page.evaluate(ground) == dark
    # Another page has the same theme before it is drawn.
    page.goto(page.url.replace("index.html", "mine.html"))
    assert page.evaluate(ground) == dark
    switch = page.locator("button.theme")
    assert switch.inner_text() == "Theme: dark"
    switch.click()
    assert page.evaluate(ground) == light


def column(page, board, number):
    cells = page.locator(f"{board} tbody tr:visible")
    return [
        cells.nth(i).locator("th, td").nth(number).inner_text().split("\n")[0]
        for i in range(cells.count())
    ]


def test_tables_are_sorted_by_click_and_by_keyboard(visit, sites):
    page = visit(sites["plain"].parent / "careful-careless.html")
    board = "#careful-careless-main-scores"
    head = page.locator(f"{board} th[data-column]").nth(0)
    before = column(page, board, 0)
    head.locator("button").click()
    assert head.get_attribute("aria-sort") == "ascending"
    assert column(page, board, 0) == sorted(before, key=str.lower)
    head.locator("button").focus()
    page.keyboard.press("Enter")
    assert head.get_attribute("aria-sort") == "descending"
    assert column(page, board, 0) == sorted(before, key=str.lower, reverse=True)
    numbers = page.locator(f"{board} th[data-column]").nth(2)
    numbers.locator("button").click()
    assert page.locator(f"{board} th[aria-sort]").count() == 1
    cells = page.locator(f"{board} tbody tr td:nth-child(3)")
    values = [
        float(cells.nth(i).get_attribute("data-v") or "nan")
        for i in range(cells.count())
    ]
    defined = [value for value in values if value == value]
    assert defined == sorted(defined, reverse=True)
    assert all(value != value for value in values[len(defined) :])


def test_lines_are_chosen_by_label_and_by_text(visit, sites):
    page = visit(sites["plain"])
    board = page.locator("[id='index-mine-board-0']")
    rows = board.locator("tbody tr:visible")
    assert rows.count() == 3
    board.locator("select").first.select_option("map")
    assert rows.count() == 1
    assert "Mine" in rows.inner_text()
    board.locator("select").first.select_option("")
    board.locator("input[type=search]").fill("oth")
    assert rows.count() == 1
    assert "Other" in rows.inner_text()
    board.locator("input[type=search]").fill("none such")
    assert rows.count() == 0


def test_boards_of_several_data_are_switched(visit, sites):
    page = visit(sites["plain"])
    shown = page.locator("[data-of=index-mine-board]:visible")
    assert shown.count() == 1
    tabs = page.locator("[data-shows=index-mine-board] button")
    assert tabs.count() > 1
    tabs.nth(1).click()
    assert shown.count() == 1
    assert shown.get_attribute("data-key") == "1"
    assert tabs.nth(1).get_attribute("aria-pressed") == "true"
    assert tabs.nth(0).get_attribute("aria-pressed") == "false"


def test_a_phone_shows_one_group_of_columns(visit, sites):
    page = visit(sites["plain"].parent / "careful-careless.html", width=390)
    heads = page.locator("#careful-careless-main-scores thead th.group:visible")
    assert heads.all_inner_texts() == ["in-domain"]
    tabs = page.locator("#careful-careless-main-scores .tabs button")
    tabs.nth(1).click()
    assert heads.all_inner_texts() == ["shifted"]
    page = visit(sites["plain"].parent / "careful-careless.html")
    heads = page.locator("#careful-careless-main-scores thead th.group:visible")
    assert len(heads.all_inner_texts()) > 1


@pytest.fixture
def figure(visit, sites):
    """The figure of every mark, on its page."""
    page = visit(sites["plain"].parent / "mine.html")
    figure = page.locator("#mine-figure-1-figure")
    figure.scroll_into_view_if_needed()
    return figure


def test_every_kind_of_mark_is_drawn(figure):
    for kind in ("curve", "dot", "whisker", "bar", "error", "histogram", "cloud"):
        assert figure.locator(f".plot svg .{kind}").count() > 0, kind
    for kind in ("rule", "word", "outline"):
        assert figure.locator(f".plot svg .{kind}").count() > 0, kind
    assert figure.locator(".plot image").count() == 1
    assert figure.locator(".plot", has_text="it was not run").count() == 1
    natural = figure.locator(".plot image").evaluate("e => e.getBBox().width")
    assert natural > 50


def test_the_read_out_follows_the_pointer_and_the_keys(figure):
    page, readout = figure.page, figure.locator(".readout")
    assert "share 0.2" in readout.inner_text().replace("\n", " ")
    svg = figure.locator(".plot svg").first
    box = svg.bounding_box()
    page.mouse.move(box["x"] + box["width"] * 0.5, box["y"] + box["height"] / 2)
    moved = readout.inner_text()
    assert "share 0.2" not in moved
    svg.focus()
    page.keyboard.press("ArrowRight")
    assert readout.inner_text() != moved
    page.keyboard.press("ArrowDown")
    pressed = readout.locator("button[aria-pressed=true]")
    assert "Mine 0" in pressed.inner_text()
    assert figure.locator(".plot .band").count() == 1
    assert "Mine 0" in figure.locator(".unseen").inner_text()
    page.keyboard.press("Escape")
    assert pressed.count() == 0
    assert figure.locator(".plot .band").count() == 0
    readout.locator("button").nth(1).click()
    assert "Mine 1" in pressed.inner_text()


def test_the_read_out_has_the_values_of_the_data(figure):
    words = figure.locator(".readout").inner_text().replace("\n", " ")
    # The curves are x ** 0.5, x ** 1.5 and x ** 2.5 at 0.2.
    assert re.search(r"Mine 0 0\.447", words)
    assert re.search(r"Mine 1 0\.089", words)
    assert re.search(r"Mine 2 0\.0179", words)
    assert re.search(r"recommended 0\.4 0\.3\N{EN DASH}0\.5", words)


def test_numbers_of_a_figure_are_shown_and_saved(figure):
    page = figure.page
    figure.locator("[data-tool=table]").click()
    assert figure.locator(".numbers tbody tr").count() == 200
    assert "more lines in the CSV" in figure.locator(".numbers").inner_text()
    figure.locator("[data-tool=table]").click()
    assert figure.locator(".numbers").count() == 0
    with page.expect_download() as saved:
        figure.locator("[data-tool=csv]").click()
    text = Path(saved.value.path()).read_text("utf-8")
    assert saved.value.suggested_filename == "mine-figure-1.csv"
    lines = list(csv.DictReader(io.StringIO(text)))
    bars = [line for line in lines if line["panel"] == "bars"]
    assert [line["x"] for line in bars] == ["0", "1", "2"]
    assert [float(line["low"]) for line in bars] == [0.4] * 3
    assert len([line for line in lines if line["panel"] == "curves"]) > 1000


def test_a_picture_of_a_figure_is_saved(figure):
    with figure.page.expect_download() as saved:
        figure.locator("[data-tool=svg]").click()
    root = ElementTree.fromstring(Path(saved.value.path()).read_text("utf-8"))
    assert root.tag.endswith("svg")
    paths = [node for node in root.iter() if node.tag.endswith("}path")]
    drawn = [node for node in paths if node.get("stroke") == "rgb(41, 56, 181)"]
    assert drawn  # the colour of the first series, without a style sheet
    assert float(root.get("width")) > 500


def test_exports_of_tables_are_beside_the_page(visit, sites):
    page = visit(sites["plain"].parent / "careful-careless.html")
    link = page.locator("#careful-careless-main-scores .exports a").first
    target = sites["plain"].parent / link.get_attribute("href")
    lines = list(csv.DictReader(io.StringIO(target.read_text("utf-8"))))
    assert {"score", "file", "subset", "ours_mean"} <= set(lines[0])
    latex = target.with_suffix(".tex").read_text("utf-8")
    assert r"\toprule" in latex
    assert r"\mathbf{" in latex


def test_a_single_file_saves_its_tables(visit, sites):
    page = visit(sites["single"], anchor="#page-careful-careless")
    link = page.locator("article:visible .exports a").first
    with page.expect_download() as saved:
        link.click()
    assert saved.value.suggested_filename.endswith(".csv")
    assert "ours_mean" in Path(saved.value.path()).read_text("utf-8")


def test_differences_are_drawn_from_any_reference(visit, sites):
    page = visit(sites["plain"].parent / "compare.html")
    page.locator("#compare-files-1 > summary").click()
    figure = page.locator("#compare-files-1-forest-figure")
    figure.locator(".plot svg").wait_for()
    lines = "e => [...e.querySelectorAll('.plot text')].map(t => t.textContent)"
    before = figure.evaluate(lines)
    assert figure.locator(".plot .whisker").count() > 0
    at = before.index("Accuracy")
    name, words = before[at + 1 : at + 3]
    assert name == "careless"
    reference = figure.locator("select").first
    reference.focus()
    page.keyboard.press("ArrowDown")
    after = figure.evaluate(lines)
    turned = after[after.index("Accuracy") + 2]
    assert after[after.index("Accuracy") + 1] == "careful"
    value = float(words.partition(" ")[0].replace("\N{MINUS SIGN}", "-"))
    other = float(turned.partition(" ")[0].replace("\N{MINUS SIGN}", "-"))
    assert value == -other < 0
    assert "Against careless" in figure.locator(".readout").inner_text()
    assert "careful: " in figure.locator(".unseen").inner_text()
    figure.locator("select").nth(1).select_option(label="shifted")
    assert figure.evaluate(lines) != after


def test_differences_are_saved_with_their_reference(visit, sites):
    page = visit(sites["plain"].parent / "compare.html")
    page.locator("#compare-files-1 > summary").click()
    figure = page.locator("#compare-files-1-forest-figure")
    figure.locator(".plot svg").wait_for()
    figure.locator("select").first.select_option(label="careless")
    with page.expect_download() as saved:
        figure.locator("[data-tool=csv]").click()
    text = Path(saved.value.path()).read_text("utf-8")
    lines = list(csv.DictReader(io.StringIO(text)))
    assert {(line["row"], line["minus"]) for line in lines} == {("careful", "careless")}
    accuracy = next(line for line in lines if line["score"] == "Accuracy")
    assert float(accuracy["low"]) < float(accuracy["difference"])


def test_costs_are_points_with_a_front(visit, sites):
    page = visit(sites["plain"].parent / "mine.html")
    figure = page.locator("figure[data-chart=scatter]")
    assert figure.locator(".plot circle.dot").count() == 2
    assert "Mine" in figure.locator(".readout").inner_text()
    figure.locator(".readout button").first.click()
    assert figure.locator(".plot .faded").count() > 0
    figure.locator("[data-tool=table]").click()
    assert figure.locator(".numbers tbody tr").count() == 2


def test_pages_print_as_vectors(visit, sites):
    page = visit(sites["plain"].parent / "mine.html")
    page.emulate_media(media="print")
    assert page.locator(".top").is_hidden()
    assert page.locator(".tools").first.is_hidden()
    data = page.pdf(prefer_css_page_size=True)
    assert data.startswith(b"%PDF")
    assert len(data) > 20_000


def wide_contents(columns, groups):
    """A site with one table of so many columns in so many groups."""
    cell = TableCell(mean=0.91234, low=0.89, high=0.93, tied=True, repeats=5)
    table = Table(
        name="wide",
        title="Wide",
        columns=tuple(
            Column(label=f"score {at} (%) ↑", group=f"items {at * groups // columns}")
            for at in range(columns)
        ),
        lines=tuple(
            TableLine(labels=(f"A method of some length {n}",), cells=(cell,) * columns)
            for n in range(3)
        ),
    )
    made = contents(names=())
    (shown,) = made.benchmarks
    report = replace(shown.report, tables=(table,), pairs=(), effects=(), figures=())
    return replace(made, benchmarks=(replace(shown, report=report),))


@pytest.mark.parametrize(("columns", "groups"), [(7, 2), (10, 3), (24, 3)])
def test_wide_leaderboards_fit_a_desktop(visit, tmp_path, columns, groups):
    page = visit(write_contents(wide_contents(columns, groups), tmp_path / "site"))
    board = page.locator("#index-mine-board-0")
    scroll = board.locator(".scroll")
    beyond = "each => each.scrollWidth - each.clientWidth"
    assert scroll.evaluate(beyond) <= 0
    heads = board.locator("thead th.n:visible")
    folded = columns > 12
    assert heads.count() == (columns // groups if folded else columns)
    tabs = board.locator(".tabs button")
    assert tabs.first.is_visible() == folded
    if folded:
        tabs.nth(2).click()
        assert heads.first.inner_text().startswith("score 16")
        board.locator(".tabs button", has_text="all").click()
        assert heads.count() == columns
