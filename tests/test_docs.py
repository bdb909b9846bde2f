"""The documentation runs, and names everything there is to name."""

import importlib
import inspect
import re
from pathlib import Path

import pytest

from qualms import scores
from qualms.scores import About

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
PAPERS = ("retina", "values", "url", "regression")
DEFINITIONS = (ROOT / "docs" / "definitions.md").read_text(encoding="utf-8")


def blocks(page):
    return re.findall(r"^```python\n(.*?)^```", page.read_text("utf-8"), re.M | re.S)


@pytest.mark.parametrize("page", [p for p in PAGES if blocks(p)], ids=lambda p: p.name)
def test_the_python_of_a_page_runs_in_order(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = {"__name__": "__main__"}
    for number, block in enumerate(blocks(page)):
        exec(compile(block, f"{page.name}, block {number + 1}", "exec"), names)


def test_the_pages_with_examples_are_found():
    assert {page.name for page in PAGES if blocks(page)} >= {
        "README.md",
        "predictions.md",
    }


@pytest.mark.parametrize("paper", PAPERS)
def test_every_released_variant_is_explained(paper):
    module = importlib.import_module(f"qualms.scores.as_published.{paper}")
    public = [
        name
        for name, value in vars(module).items()
        if inspect.isfunction(value)
        and value.__module__ == module.__name__
        and not name.startswith("_")
    ]
    assert public
    missing = [name for name in public if f"`{paper}.{name}`" not in DEFINITIONS]
    assert missing == []


def test_every_released_variant_that_is_explained_exists():
    for paper, name in re.findall(rf"`({'|'.join(PAPERS)})\.(\w+)`", DEFINITIONS):
        module = importlib.import_module(f"qualms.scores.as_published.{paper}")
        assert callable(getattr(module, name)), f"{paper}.{name}"


def test_every_score_is_defined():
    named = [
        name
        for name in scores.__all__
        if isinstance(getattr(getattr(scores, name), "__score__", None), About)
    ]
    assert len(named) > 40
    assert [name for name in named if f"`{name}`" not in DEFINITIONS] == []


def test_what_the_pages_link_to_is_there():
    for page in PAGES:
        found = re.findall(r"`((?:docs|examples)/[\w./]*)`", page.read_text("utf-8"))
        assert [path for path in found if not (ROOT / path).exists()] == [], page
