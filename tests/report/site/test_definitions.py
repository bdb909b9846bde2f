"""Definitions in the site: every score that is shown leads to its own."""

import re

import pytest

from qualms import scores
from qualms.documentation import documentation
from qualms.report.site import definition_texts, write_contents
from qualms.report.site.contents import SiteContents
from qualms.report.site.definition_texts import defined_scores, definition_sections
from qualms.report.site.markup import html_of
from qualms.report.site.pages.definitions import definitions
from qualms.report.site.tables import table_fragment
from qualms.report.table import Column, Table, TableCell, TableLine
from report.site.browsing import axe_findings
from report.site.made_site import contents


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    return write_contents(contents(), tmp_path_factory.mktemp("d") / "site").parent


def test_every_word_of_the_documentation_is_on_the_page(site):
    text = re.sub(r"<[^>]*>", " ", (site / "definitions.html").read_text("utf-8"))
    shown = set(re.findall(r"\w+", text))
    source = documentation()["definitions"].read_text("utf-8").partition("\n## ")[2]
    written = re.sub(r"\]\([^)]*\)", "]", source)
    assert set(re.findall(r"\w+", written)) <= shown | {"amp", "lt", "gt"}


def test_each_score_has_one_anchor(site):
    text = (site / "definitions.html").read_text("utf-8")
    ids = re.findall(r'id="([^"]+)"', text)
    assert len(ids) == len(set(ids))
    for score in ("auroc", "ece", "aurc", "interval_score", "dice", "recall_at_1"):
        assert score in defined_scores()
        assert f"definitions-{score.replace('_', '-')}" in ids


def test_scores_of_lines_and_of_columns_lead_to_their_definitions(site):
    files = (site / "careful-careless.html").read_text("utf-8")
    assert '<a href="definitions.html#definitions-accuracy">' in files
    assert '<a href="definitions.html#definitions-auroc">' in files
    board = (site / "index.html").read_text("utf-8")
    said = re.search(r'class="small meanings">What they are: (.*?)</p>', board)[1]
    assert 'href="definitions.html#definitions-accuracy">Accuracy</a>' in said


def table(score):
    column = Column(label="C", keys={"score": score})
    line = TableLine(labels=("L",), cells=(TableCell(mean=1.0),), keys={"score": score})
    return Table(name="t", title="T", columns=(column,), lines=(line,))


def test_a_score_of_somebody_else_has_no_link():
    assert "definitions.html" in table_fragment(table("nll"), "t").html.text
    assert "definitions.html" not in table_fragment(table("mine"), "t").html.text
    assert "definitions.html" not in table_fragment(table(""), "t").html.text


def test_scores_that_files_get_are_defined(site):
    """Every declared score that stands in a table of a file has its definition."""
    names = set()
    for group in contents().groups:
        for file in group.files:
            names |= {row.score for row in file.results.rows}
    ours = {name for name in names if hasattr(scores, name)}
    assert len(ours) > 10
    assert sorted(ours - defined_scores()) == []


def test_without_texts_there_is_neither_page_nor_link(monkeypatch):
    for function in (definition_texts.definition_lines, defined_scores):
        function.cache_clear()
    with monkeypatch.context() as patch:
        patch.setattr(definition_texts, "documentation", dict)
        assert list(definition_sections()) == []
        assert list(definitions(contents())) == []
        assert "definitions.html" not in table_fragment(table("nll"), "t").html.text
    for function in (definition_texts.definition_lines, defined_scores):
        function.cache_clear()
    assert list(definitions(SiteContents())) == []


def test_markdown_becomes_markup(monkeypatch):
    lines = (
        *("# Top", "", "## One & two", "A `b<c>` and **d** [e](f.md)", "and more."),
        *("- first", "  goes on", "- second", "", "| x | y |", "|---|---|"),
        *("| `k`, `l` | [m](https://example.org) - n |", "| `k` | again |"),
    )
    monkeypatch.setattr(definition_texts, "definition_lines", lambda: lines)
    ((title, pieces),) = definition_sections()
    text = html_of(pieces).text
    assert title == "One & two"
    assert "<p>A <code>b&lt;c&gt;</code> and <b>d</b> e and more.</p>" in text
    assert "<ul><li>first goes on</li><li>second</li></ul>" in text
    assert text.count('id="definitions-k"') == 1
    assert 'id="definitions-l"' in text
    assert '<a href="https://example.org">m</a> - n</td>' in text


@pytest.mark.browser
@pytest.mark.parametrize(("width", "dark"), [(1280, False), (390, True)])
def test_a_reader_goes_from_a_score_to_its_definition(open_page, site, width, dark):
    page = open_page((site / "careful-careless.html").as_uri(), width=width, dark=dark)
    board = page.locator("#careful-careless-main-scores")
    board.locator("th a", has_text="AURC").first.click()
    assert page.url.endswith("definitions.html#definitions-aurc")
    place = page.locator("#definitions-aurc").bounding_box()
    assert 0 < place["y"] < 900
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert axe_findings(page) == []
