"""Pages that show items: mistakes and successes, neighbours, segmentations."""

import base64
import json
import re
import shutil
import zlib
from pathlib import Path

import numpy as np
import pytest

from qualms import predictions, write_site
from qualms.report.site.query_gallery import query_gallery
from qualms.report.site.telling_items import telling_items
from report.site.made_site import HOSTILE

CHROMIUM = shutil.which("chromium")
browser_test = pytest.mark.skipif(
    CHROMIUM is None, reason="chromium is not installed: apt install chromium"
)
NAMES = [*HOSTILE[:15], *HOSTILE[16:20]]


def no_pictures(rows):
    return [""] * len(rows)


def two_classes(n=40, *, thumbnails=True):
    """The items 0, 10, 20, 30 are wrong; the higher the number, the more certain."""
    target = np.arange(n) % 2
    sure = 0.6 + 0.39 * np.arange(n) / max(n - 1, 1)
    shown = np.where(np.arange(n) % 10 == 0, 1 - target, target)
    names = [NAMES[i] if i < len(NAMES) else f"item {i}" for i in range(n)]
    arrays = {
        "target": target,
        "prob": np.where(shown == 1, sure, 1 - sure),
        "item": np.array([name.encode("utf-8", "replace").decode() for name in names]),
        "group": np.where(np.arange(n) % 3, "</script>", "home"),
    }
    if thumbnails:
        light = np.linspace(0, 255, n).astype(np.uint8)
        arrays["thumbnail"] = np.broadcast_to(
            light[:, None, None, None], (n, 8, 8, 3)
        ).copy()
    return arrays


def names_of(group):
    return [tile["name"] for tile in group["tiles"]]


def test_certain_mistakes_come_first():
    value = telling_items(predictions.build(two_classes()), no_pictures)
    mistakes, successes = value["groups"]
    assert names_of(mistakes)[:2] == ["item 30", "item 20"]
    assert len(mistakes["tiles"]) == 4
    assert not any(tile["right"] for tile in mistakes["tiles"])
    assert len(successes["tiles"]) == 12
    assert names_of(successes)[0] == NAMES[1]
    assert "4 of 40 items are mistakes" in value["about"]
    assert ("predicted", "1 (90.0\u00a0%)") in mistakes["tiles"][0]["lines"]


@pytest.mark.parametrize("right", [True, False])
def test_all_right_or_all_wrong_leaves_one_kind_empty(right):
    target = np.arange(5) % 2
    prob = np.where((target == 1) == right, 0.9, 0.1)
    value = telling_items(
        predictions.build({"target": target, "prob": prob}), no_pictures
    )
    counts = [len(group["tiles"]) for group in value["groups"]]
    assert counts == ([0, 5] if right else [5, 0])
    assert names_of(value["groups"][int(right)])  # rows stand for names


def test_values_are_wrong_outside_their_interval():
    arrays = {
        "target": np.array([0.0, 5.0, -5.0]),
        "lower": np.array([-1.0, -1.0, -3.0]),
        "upper": np.array([1.0, 1.0, 3.0]),
    }
    built = predictions.build(arrays, header={"alpha": 0.1})
    mistakes, successes = telling_items(built, no_pictures)["groups"]
    assert names_of(mistakes) == ["row 1", "row 2"]  # the shorter interval first
    assert names_of(successes) == ["row 0"]


def test_values_without_intervals_are_wrong_by_their_error():
    target = np.zeros(20)
    arrays = {"target": target, "mean": np.arange(20.0), "var": np.arange(20.0) + 1}
    value = telling_items(predictions.build(arrays), no_pictures)
    assert names_of(value["groups"][0]) == ["row 18", "row 19"]
    assert names_of(value["groups"][1])[0] == "row 9"
    arrays["mean"] = target
    value = telling_items(predictions.build(arrays), no_pictures)
    assert not value["groups"][0]["tiles"]  # every value is right


def test_items_of_no_known_target_cannot_be_judged():
    arrays = {"target": np.array([-1, -1]), "prob": np.array([0.2, 0.9])}
    with pytest.raises(ValueError, match="known"):
        telling_items(predictions.build(arrays), no_pictures)


def circle(n=30, *, classes=5):
    """Points on a circle in classes of neighbours, the first ones most certain."""
    angle = 2 * np.pi * np.arange(n) / n
    return {
        "embedding": np.stack([np.cos(angle), np.sin(angle)], 1).astype(np.float32),
        "target": np.arange(n) * classes // n,
        "uncertainty/mine": np.arange(n, dtype=np.float32),
        "item": np.array([f"<b>query {i}" for i in range(n)]),
        "thumbnail": np.full((n, 4, 4, 3), 9, np.uint8),
    }


def test_queries_stand_with_their_nearest_neighbours():
    arrays = circle()
    arrays["target"][0] = 3  # none of its neighbours has this class
    value = query_gallery(predictions.build(arrays), no_pictures)
    certain, uncertain, mistakes = value["groups"]
    assert names_of(certain) == [f"<b>query {i}" for i in range(12)]
    assert names_of(uncertain) == [f"<b>query {i}" for i in range(29, 17, -1)]
    assert names_of(mistakes)[0] == "<b>query 0"
    first = certain["tiles"][0]
    near = {tile["name"] for tile in first["neighbours"][:2]}
    assert near == {"<b>query 1", "<b>query 29"}
    assert len(first["neighbours"]) == 5
    assert not any(tile["right"] for tile in first["neighbours"])
    assert ("mine", "0") in first["lines"]


def test_a_gallery_of_two_items_has_one_neighbour_each():
    value = query_gallery(predictions.build(circle(2, classes=1)), no_pictures)
    certain, _, mistakes = value["groups"]
    assert [len(tile["neighbours"]) for tile in certain["tiles"]] == [1, 1]
    assert mistakes["tiles"] == []
    with pytest.raises(ValueError, match="fewer than two items"):
        query_gallery(predictions.build(circle(1)), no_pictures)


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("items")
    files = [
        predictions.write(folder / "classes.npz", two_classes()),
        predictions.write(folder / "plain.npz", two_classes(30, thumbnails=False)),
        predictions.write(folder / "circle.npz", circle()),
    ]
    return write_site(*files, out=folder / "site").parent


def data_of(site, name):
    text = (site / "data" / f"{name}.js").read_text("utf-8")
    return json.loads(re.fullmatch(r'qualms\.put\("[\w-]+",(.*)\);\n', text)[1])


def test_thumbnails_are_pictures_of_their_items(site):
    value = data_of(site, "items-source-0")
    tile = value["groups"][0]["tiles"][0]
    assert tile["name"] == "item 30"
    png = base64.b64decode(value["pictures"][tile["picture"]].partition(",")[2])
    light = round(30 / 39 * 255 - 0.5)
    lines = np.frombuffer(zlib.decompress(png[41:-16]), np.uint8).reshape(8, 25)
    assert set(lines[:, 1:].ravel().tolist()) == {light}
    assert set(data_of(site, "items-source-1")["pictures"]) == {""}


def test_data_on_demand_stay_below_a_megabyte(site):
    sizes = [path.stat().st_size for path in (site / "data").iterdir()]
    assert max(sizes) <= 1_000_000


@pytest.fixture(scope="module")
def browser():
    playwright = pytest.importorskip("playwright.sync_api")
    with playwright.sync_playwright() as started:
        opened = started.chromium.launch(
            executable_path=CHROMIUM,
            args=["--headless", "--no-sandbox", "--disable-gpu"],
        )
        yield opened
        opened.close()


@pytest.fixture
def visit(browser, site):
    """Open a page; it must say nothing on the console and stay at its width."""
    contexts, troubles = [], []

    def open_page(name, *, width=1280, dark=False):
        context = browser.new_context(
            viewport={"width": width, "height": 900},
            color_scheme="dark" if dark else "light",
        )
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda message: troubles.append(message.text))
        page.on("pageerror", lambda error: troubles.append(str(error)))
        page.on("dialog", lambda dialog: troubles.append(dialog.message))
        page.goto((Path(site) / name).as_uri())
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert troubles == []


def axe_findings(page):
    axe = pytest.importorskip(
        "axe_playwright_python.sync_playwright",
        reason="needs axe: pip install axe-playwright-python",
    ).Axe()
    found = axe.run(page, options={"preload": False}).response["violations"]
    return [
        (each["id"], each["nodes"][0]["html"][:200])
        for each in found
        if each["impact"] in ("serious", "critical")
    ]


@pytest.mark.browser
@browser_test
@pytest.mark.parametrize(("width", "dark"), [(1280, False), (390, True)])
def test_items_are_shown_with_names_of_strangers(visit, width, dark):
    page = visit("items.html", width=width, dark=dark)
    tiles = page.locator(".tiles .tile")
    tiles.first.wait_for()
    assert tiles.count() == 16
    assert page.locator(".tile.wrong").count() == 4
    assert page.locator(".tile img").count() == 16
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert axe_findings(page) == []


@pytest.mark.browser
@browser_test
def test_another_file_is_chosen_by_keyboard(visit):
    page = visit("items.html")
    page.locator(".tile").first.wait_for()
    page.locator(".source select").focus()
    page.keyboard.press("ArrowDown")
    page.locator(".no-picture").first.wait_for()
    assert page.locator(".tile.wrong").count() == 3
    assert "3 of 30 items" in page.locator(".items .about").inner_text()


@pytest.mark.browser
@browser_test
@pytest.mark.parametrize(("width", "dark"), [(1280, True), (390, False)])
def test_neighbours_stand_beside_their_query(visit, width, dark):
    page = visit("neighbours.html", width=width, dark=dark)
    query = page.locator(".query").first
    query.wait_for()
    assert (
        page.locator(".query").count()
        == 24 + page.locator("section:last-of-type .query").count()
    )
    assert query.locator(".neighbours .tile").count() == 5
    assert query.locator("img").count() == 6
    assert "<b>query 0" in query.inner_text()
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert axe_findings(page) == []
