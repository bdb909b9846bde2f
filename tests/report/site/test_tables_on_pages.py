"""Tables on pages: decimals, strips, published numbers, and what a cell says."""

import math
import re

import pytest

from qualms.report.site.tables import comparable, decimals_of, table_fragment
from qualms.report.table import Column, Table, TableCell, TableLine
from qualms.results import Summary


def cell(mean, low=math.nan, high=math.nan, **more):
    return TableCell(mean=mean, low=low, high=high, repeats=1, **more)


def table(*cells, **more):
    columns = {"columns": (Column(label="accuracy ↑", unit="%"),), **more}
    lines = tuple(
        TableLine(labels=(f"row {i}",), cells=(each,)) for i, each in enumerate(cells)
    )
    return Table(name="t", title="Title", lines=lines, **columns)


def html(made, **more):
    text = table_fragment(made, "mine-t", **more).html.text
    return text.replace("\N{EN DASH}", "-")


@pytest.mark.parametrize(
    ("half", "decimals"),
    [(3.6, 0), (3.5, 1), (12.0, 0), (0.4, 1), (0.2, 2), (0.0354, 3), (0.036, 2)],
)
def test_decimals_follow_the_median_half_width(half, decimals):
    cells = [cell(50, 50 - half, 50 + half)] * 3
    assert decimals_of(Column(label="x"), cells) == decimals
    assert decimals_of(Column(label="x", decimals=4), cells) == 4
    assert decimals_of(Column(label="x"), [cell(1.0)]) is None
    assert decimals_of(Column(label="x"), [cell(1.0, 1.0, 1.0)]) is None


def test_strips_share_the_scale_of_their_column():
    page = html(table(cell(10, 0, 20), cell(50, 0, 100)))
    paths = re.findall(r'<path d="M([\d.]+),4.5H([\d.]+)">', page)
    assert paths == [("4.0", "20.8"), ("4.0", "88.0")]
    dots = re.findall(r'<circle cx="([\d.]+)"', page)
    assert dots == ["12.4", "46.0"]


def test_lines_of_different_scores_have_scales_of_their_own():
    page = html(table(cell(10, 0, 20), cell(0.5, 0, 1)), by_line=True)
    paths = re.findall(r'<path d="M([\d.]+),4.5H([\d.]+)">', page)
    assert paths == [("4.0", "88.0"), ("4.0", "88.0")]


def test_seeds_that_carry_no_interval_have_a_bracket_and_a_sentence():
    page = html(table(cell(92, seeds=(91, 93), no_interval="2 seeds are too few")))
    assert re.search(r'<path d="M4.0,2v5M88.0,2v5">', page)
    assert "[91.00-93.00]" in page
    assert "too few, or too far apart, to say how far others lie" in page


def test_undefined_numbers_say_why():
    page = html(table(cell(math.nan, why="one class only"), cell(1.0)))
    assert '<span title="one class only">-</span>' in page
    assert "strip" not in page


def test_best_and_tied_are_marked_in_words_too():
    page = html(table(cell(9, 8, 10, best=True, tied=True), cell(8, 7, 9, tied=True)))
    assert page.count("best or tied with the best") == 2
    assert page.count('<b class="number">') == 1
    assert "higher is better" in page


PUBLISHED = {"published": Summary(90.0, 0.5), "released": Summary(91.0, 0.4)}


def test_published_numbers_stand_beside_ours_of_the_same_data_only():
    real = table(cell(91, 90, 92, **PUBLISHED), spread="standard error")
    assert comparable(real, real.cells[0])
    assert "paper 90.0 ± 0.5, +2.0 se" in html(real)
    assert 'class="printed"' in html(real)
    simulated = table(cell(91, 90, 92, **PUBLISHED), simulated=True)
    assert "paper" not in html(simulated)
    assert "printed" not in html(simulated)
    other = table(cell(91, 90, 92, published=Summary(90.0, 0.5)))
    assert "paper" not in html(other)


def test_long_tables_are_cut_and_say_so():
    made = table(*(cell(float(i)) for i in range(250)))
    page = html(made)
    assert page.count("<tr") == 201
    assert "The first 200 of 250 lines." in page
    csv = table_fragment(made, "mine-t").downloads[0].content.decode()
    assert csv.count("\n") == 251


def test_a_minus_is_a_minus():
    page = html(table(cell(-1.5, -2.5, -0.5)))
    assert "\N{MINUS SIGN}1.5" in page
    assert 'data-v="-1.5"' in page
