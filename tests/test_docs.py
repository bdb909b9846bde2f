"""The documentation runs, and names everything there is to name."""

import importlib
import inspect
import re
import textwrap
from pathlib import Path

import pytest

from qualms import scores, shelf
from qualms.scores import About

ROOT = Path(__file__).parents[1]
NAMES = ("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md")
PAGES = [*(ROOT / name for name in NAMES), *sorted((ROOT / "docs").glob("*.md"))]
PAPERS = ("retina", "values", "url", "regression")
SITE = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
METHODS = (ROOT / "docs" / "methods.md").read_text(encoding="utf-8")
DEFINITIONS = (ROOT / "docs" / "definitions.md").read_text(encoding="utf-8")


def fenced(page):
    """The code blocks of a page: (language, text), in order."""
    found = re.findall(
        r"^( *)```(\w*)\n(.*?)^\1```", page.read_text("utf-8"), re.M | re.S
    )
    return [(language, textwrap.dedent(text)) for _, language, text in found]


def blocks(page):
    return [text for language, text in fenced(page) if language == "python"]


@pytest.mark.parametrize("page", [p for p in PAGES if blocks(p)], ids=lambda p: p.name)
def test_the_python_of_a_page_runs_in_order(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = {"__name__": "__main__", "__file__": str(tmp_path / "page.py")}
    for number, block in enumerate(blocks(page)):
        exec(compile(block, f"{page.name}, block {number + 1}", "exec"), names)


def test_the_pages_with_examples_are_found():
    assert {page.name for page in PAGES if blocks(page)} >= {
        *("README.md", "CONTRIBUTING.md", "predictions.md"),
    }


def test_the_smallest_benchmark_of_the_recipe_is_declared_in_full():
    (block,) = (b for b in blocks(ROOT / "CONTRIBUTING.md") if "Benchmark" in b)
    names = {}
    exec(compile(block, "CONTRIBUTING.md", "exec"), names)
    benchmark = names["counting"]()
    assert len(benchmark.plan("demo").runs) == 2


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


def test_every_method_is_listed_with_its_tasks():
    rows = re.findall(r"^\| (`.*?) \|.*\| ([CRSE ]+) \|", METHODS, re.M)
    told = {
        name: tasks for names, tasks in rows for name in re.findall("`(.*?)`", names)
    }
    assert set(told) == {*shelf.names("methods"), "deep_ensemble"}
    for name in shelf.names("methods"):
        tasks = shelf.find("methods", name)().tasks
        assert set(told[name].split()) == {task[0].upper() for task in tasks}, name


def test_every_score_is_defined():
    named = [
        name
        for name in scores.__all__
        if isinstance(getattr(getattr(scores, name), "__score__", None), About)
    ]
    assert len(named) > 40
    assert [name for name in named if f"`{name}`" not in DEFINITIONS] == []


def test_what_the_pages_link_to_is_there():
    inside = r"`((?:docs|examples|src|tests|bench|results)/[\w./]*)`"
    for page in PAGES:
        text = page.read_text("utf-8")
        found = re.findall(inside, text) + re.findall(r"\]\(([\w./-]+)\)", text)
        # A link is seen from its page, a path in backticks from the root.
        gone = [
            p for p in found if not ((ROOT / p).exists() or (page.parent / p).exists())
        ]
        assert gone == [], page


def tree_of(text):
    """The paths in the tree of ARCHITECTURE.md, folders with a slash at the end."""
    (tree,) = re.findall(r"```\nsrc/qualms/\n(.*?)```", text, re.S)
    folder = ""
    for line in tree.splitlines():
        indent, first, words = re.match(r"( +)(\S+)(.*)", line).groups()
        names = [first, *re.findall(r"(?<![\w/])\w+(?:\.py|/)", words)]
        if len(indent) == 2:
            folder = first if first.endswith("/") else ""
            yield from names
        else:
            yield from (folder + name for name in names)


def test_the_tree_of_the_architecture_is_that_of_the_package():
    text = (ROOT / "ARCHITECTURE.md").read_text("utf-8")
    paths, source = set(tree_of(text)), ROOT / "src" / "qualms"
    assert [path for path in paths if not (source / path).exists()] == []
    modules = {*source.glob("*.py"), *source.glob("*/[!_]*.py")}
    names = {path.relative_to(source).as_posix() for path in modules}
    # `qualms list` lists these.
    shelves = ("methods/", "networks/", "datasets/", "readers/", "corruptions/")
    assert {name for name in names - paths if not name.startswith(shelves)} == set()


def test_the_architecture_names_files_that_exist():
    text = (ROOT / "ARCHITECTURE.md").read_text("utf-8")
    found = set(re.findall(r"`([\w/]+(?:\.py|\.css|\.csv|/))`", text))
    assert len(found) > 40
    source = ROOT / "src" / "qualms"
    assert [
        p for p in found if not ((source / p).exists() or (ROOT / p).exists())
    ] == []


def test_the_site_has_every_page_and_every_module():
    from public_names import public_modules

    listed = re.findall(r"^ +- (?:\w[^:\n]*: )?([\w/.]+\.md)$", SITE, re.M)
    assert len(listed) == len(set(listed))
    written = {page.name for page in (ROOT / "docs").glob("*.md")}
    assert written <= {*listed}
    modules = {f"api/{module}.md" for module in public_modules()}
    assert {name for name in listed if name.startswith("api/")} == modules
    notebooks = {
        f"tutorials/{path.stem}.md" for path in (ROOT / "examples").glob("*.ipynb")
    }
    assert {name for name in listed if name.startswith("tutorials/")} == notebooks
