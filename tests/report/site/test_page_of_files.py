"""The page of `qualms score --html`: what it shows of a file, and its faults."""

import json
import re
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from qualms import predictions
from qualms.cli import app
from qualms.predictions import read
from qualms.report.site.item_pictures import ItemPictures
from qualms.report.site.segmented_cases import segmented_cases
from report.site.browsing import DRAW_ALL, OPEN_ALL, axe_findings, settle, wait
from report.site.test_item_pages import circle, segmented, two_classes

CASE_BYTES = 1_000_000


def values(n=40):
    rng = np.random.default_rng(0)
    var = rng.random(n) + 0.1
    mean = rng.standard_normal(n)
    target = mean + np.sqrt(var) * rng.standard_normal(n)
    return {"target": target, "mean": mean, "var": var}


MAKERS = {
    "classification": lambda folder: predictions.write(
        folder / "classes.npz", two_classes()
    ),
    "regression": lambda folder: predictions.write(folder / "values.npz", values()),
    "embedding": lambda folder: predictions.write(
        folder / "circle.npz", circle(6, classes=3)
    ),
    "segmentation": lambda folder: predictions.write(
        folder / "volumes",
        segmented(
            classes=3,
            header={
                "method": "ensemble",
                "classes": ["air", "<b>lung", "nodule"],
                "draws": "models",
            },
        ),
    ),
}
PAGES = {"embedding": "neighbours", "segmentation": "viewer"}


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """The page of a file of each task."""
    folder = tmp_path_factory.mktemp("pages")
    paths = {}
    for task, make in MAKERS.items():
        path = folder / f"{task}.html"
        words = ["score", str(make(folder)), "--html", str(path), "--resamples", "0"]
        result = CliRunner().invoke(app, words)
        assert result.exit_code == 0, result.output
        paths[task] = path
    return paths


def blocks(path):
    """The data in a page by name, as text."""
    found = re.findall(
        r'data-name="([\w-]+)">(.*?)</script>', path.read_text("utf-8"), re.DOTALL
    )
    return dict(found)


def test_a_folder_of_segmentations_has_its_viewer(written):
    data = blocks(written["segmentation"])
    cases = {name: text for name, text in data.items() if name.startswith("viewer-c")}
    assert len(cases) == 4
    assert max(map(len, cases.values())) <= CASE_BYTES
    case = json.loads(cases["viewer-case-0-0"])
    titles = [panel["title"] for panel in case["panels"]]
    assert titles[:3] == ["Rater 1 of 2", "Rater 2 of 2", "Prediction"]
    assert [title[:2] for title in titles[3:]] == ["PU", "AU", "EU"]
    assert case["shape"] == [6, 10, 12]
    assert [1, "<b>lung"] in case["classes"]


@pytest.mark.parametrize("task", sorted(set(MAKERS) - {"segmentation"}))
def test_other_files_have_no_viewer(written, task):
    assert not any(name.startswith("viewer") for name in blocks(written[task]))


@pytest.mark.browser
@pytest.mark.parametrize("task", sorted(MAKERS))
@pytest.mark.parametrize(("width", "dark"), [(1280, False), (390, True)])
def test_axe_finds_nothing_serious(open_page, written, task, width, dark):
    shown = PAGES.get(task, "items")
    for anchor in ("", f"#page-{shown}"):
        address = written[task].as_uri() + anchor
        page = open_page(address, width=width, dark=dark)
        page.evaluate(OPEN_ALL + DRAW_ALL)
        settle(page)
        wait(page, "[...document.querySelectorAll('figure')].some(f => f.clientWidth)")
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        assert axe_findings(page) == []


@pytest.mark.browser
def test_slices_of_a_folder_are_walked_and_classes_have_names(open_page, written):
    page = open_page(written["segmentation"].as_uri() + "#page-viewer")
    wait(page, "document.querySelectorAll('.scan canvas').length === 6")
    wait(page, "document.querySelector('.scan canvas').width > 300")
    legend = page.locator(".picture > .keys li").all_inner_texts()
    assert set(legend) == {"air", "<b>lung"}
    canvas = page.locator(".scan canvas").nth(2)
    middle = canvas.bounding_box()
    canvas.hover(position={"x": middle["width"] / 2, "y": middle["height"] / 2})
    assert "Prediction <b>lung" in page.locator(".value").inner_text()
    before = canvas.evaluate("each => each.toDataURL()")
    page.locator("#viewer-slice").focus()
    for _ in range(3):
        page.keyboard.press("ArrowLeft")
    assert page.locator(".dials output").inner_text() == "1/6"
    assert canvas.evaluate("each => each.toDataURL()") != before


@pytest.mark.browser
def test_the_picture_of_a_case_is_saved(open_page, written):
    page = open_page(written["segmentation"].as_uri() + "#page-viewer")
    wait(page, "document.querySelectorAll('.scan canvas').length === 6")
    wait(page, "document.querySelector('.scan canvas').width > 300")
    with page.expect_download() as saved:
        page.locator("[data-tool=svg]:visible").click()
    text = Path(saved.value.path()).read_text("utf-8")
    assert text.count("<image") == 6
    assert text.count("data:image/png") == 6
    assert "&lt;b&gt;lung" in text
    assert "PU: predictive entropy" in text


def test_one_class_of_two_has_its_name(tmp_path):
    built = segmented(
        items=1, header={"method": "softmax", "classes": ["body", "tumour"]}
    )
    path = predictions.write(tmp_path / "two", built)
    case = segmented_cases(read(path), ItemPictures(None), "case").cases[0].value
    names = {panel["title"]: panel.get("names") for panel in case["panels"]}
    assert names["Prediction"] == ["tumour"]
