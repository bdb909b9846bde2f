"""What readers can save: every figure and table of a site, in every form it has."""

import csv
import io
from dataclasses import replace
from html.parser import HTMLParser

import pytest

from qualms import predictions, write_site
from qualms.report._draw import drawn_pdf
from qualms.report.site import write_contents
from qualms.report.site.item_files import item_files
from report.site.made_site import contents, undrawn
from report.site.test_item_pages import circle, segmented, two_classes

FIGURE = {"csv", "svg", "pdf", "tex"}
LIST = {"csv", "tex"}
"""Tables, and lists of items, have no picture that is drawn from numbers."""


class Exports(HTMLParser):
    """Collects what can be saved of each figure and each table of a page."""

    def __init__(self, text):
        super().__init__()
        self.figures, self.tables, self.links = {}, {}, []
        self._inside = []  # open elements, and the forms of what they stand in
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        named = dict(attributes)
        forms = self._inside[-1][1] if self._inside else set()
        if tag == "figure":
            forms = set()
            self.figures[named["id"]] = (named["data-chart"], forms)
        elif tag == "div" and "table" in (named.get("class") or "").split():
            forms = self.tables[named["id"]] = set()
        if named.get("data-tool") in FIGURE:
            forms.add(named["data-tool"])
        if (named.get("href") or "").startswith("files/"):
            self.links.append(named["href"])
            forms.add(named["href"].rpartition(".")[2])
        if tag not in ("meta", "link", "input", "br", "img", "hr"):
            self._inside.append((tag, forms))

    def handle_endtag(self, tag):
        assert self._inside.pop()[0] == tag


def lacking(text):
    """Return the figures and tables of a page that lack a form, with those forms."""
    page = Exports(text)
    wanted = {
        name: (LIST if kind == "items" else FIGURE) - forms
        for name, (kind, forms) in page.figures.items()
    }
    wanted |= {name: LIST - forms for name, forms in page.tables.items()}
    return {name: forms for name, forms in wanted.items() if forms}


@pytest.fixture(scope="module")
def sites(tmp_path_factory):
    """A benchmark with files from memory, and files of every task from disk."""
    folder = tmp_path_factory.mktemp("exports")
    few = segmented(items=2, space=(8, 9))
    files = [
        predictions.write(folder / "classes.npz", two_classes(40)),
        predictions.write(folder / "circle.npz", circle(6, classes=3)),
        predictions.write(folder / "spheres", few),
    ]
    made = replace(contents(), on_paper=True)
    with undrawn() as drawings:
        sites = (
            write_contents(made, folder / "judged").parent,
            write_site(*files, out=folder / "files").parent,
        )
    return sites, drawings


def test_every_figure_and_table_can_be_saved_in_every_form(sites):
    kinds, tables = set(), 0
    for site in sites[0]:
        for path in site.glob("*.html"):
            text = path.read_text("utf-8")
            page = Exports(text)
            assert lacking(text) == {}, path.name
            assert all((site / link).stat().st_size > 0 for link in page.links)
            kinds |= {kind for kind, _ in page.figures.values()}
            tables += len(page.tables)
    assert {"panels", "scatter", "forest", "planner", "viewer", "items"} <= kinds
    assert tables > 10


@pytest.mark.parametrize("form", sorted(FIGURE))
def test_a_form_that_lacks_is_found(sites, form):
    text = (sites[0][1] / "planner.html").read_text("utf-8")
    other = text.replace(f'data-tool="{form}"', "").replace(f'.{form}"', '.x"')
    assert lacking(other) == {"planner-figure": {form}}


@pytest.mark.parametrize("name", ["compare-files-1", "costs", "plan", "cases"])
def test_figures_are_drawn_for_paper(sites, name):
    drawing = next(each for each in sites[1] if each.name == name)
    assert drawing.caption
    assert drawing.width <= 7.5
    assert drawn_pdf(drawing).startswith(b"%PDF")


def test_figures_come_with_latex_that_names_their_pdf(sites):
    for path in sites[0][0].glob("files/*-forest.tex"):
        text = path.read_text("utf-8")
        pdf = path.with_suffix(".pdf")
        assert rf"{{{pdf.name}}}" in text
        assert r"\caption{" in text
        assert pdf.read_bytes().startswith(b"%PDF")


def test_items_are_saved_line_by_line():
    value = {
        "about": "Chosen.",
        "groups": [
            {"title": "Mistakes", "tiles": [tile("=1+1", right=False, group="a")]},
            {"title": "Right", "tiles": [tile("b", right=True, item="twice")]},
            {"title": "None", "tiles": []},
        ],
    }
    text, tex = (file.content.decode() for file in item_files(value, "x", "50 % & $"))
    first, second = csv.DictReader(io.StringIO(text))
    assert first == {
        **{"kind": "Mistakes", "item": "'=1+1", "right": "no"},
        **{"group": "a", "value of item": ""},
    }
    assert (second["value of item"], second["group"]) == ("twice", "")
    assert r"50 \% \& \$" in tex
    assert r"\textit{Mistakes}" in tex
    empty = {"about": "", "groups": [{"title": "None", "tiles": []}]}
    assert [len(file.content) > 0 for file in item_files(empty, "x", "t")] == [
        True,
        True,
    ]


def tile(name, *, right, **lines):
    return {"name": name, "right": right, "lines": list(lines.items())}
