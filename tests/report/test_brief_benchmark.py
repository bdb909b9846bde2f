"""A judged benchmark in short: within the width and height of a terminal."""

from dataclasses import replace
from io import StringIO

import pytest
from rich.console import Console

from qualms.report._short_table import print_short_table
from qualms.report.brief_benchmark import print_brief
from qualms.report.table import Column, Table, TableCell, TableLine
from qualms.results import Summary
from report.site.made_site import HOSTILE, report


def table(lines=5, columns=4, *, groups=2, label="a method with a long name", best=0):
    """A table of numbers with intervals, published numbers and notes."""

    def cell(line, column):
        return TableCell(
            mean=line + column / 100,
            low=line - 0.1,
            high=line + 0.1,
            repeats=1,
            tied=line == best,
            best=line == best,
            published=Summary(0.5, 0.1),
            why="nobody knows",
        )

    return Table(
        name="table_1",
        title="Numbers",
        about="simulated",
        columns=tuple(
            Column(label=f"score {n}", group=f"group {n * groups // columns}")
            for n in range(columns)
        ),
        lines=tuple(
            TableLine(
                labels=(f"{label} {n}",),
                cells=tuple(cell(n, column) for column in range(columns)),
            )
            for n in range(lines)
        ),
        notes=("a note",),
    )


def printed(made, *, width=80, most=24):
    file = StringIO()
    print_short_table(made, console=Console(file=file, width=width), most=most)
    return file.getvalue()


@pytest.mark.parametrize("width", [40, 80, 200])
@pytest.mark.parametrize("columns", [1, 9, 30])
@pytest.mark.parametrize("lines", [1, 3, 11, 1000])
def test_a_table_of_any_size_fits(lines, columns, width):
    text = printed(table(lines, columns, groups=min(columns, 3)), width=width)
    shown = text.splitlines()
    assert len(shown) <= 24
    assert max(map(len, shown)) <= width
    assert "Numbers" in shown[0]
    assert "score 0" in text
    assert "a note" not in text
    assert "nobody knows" not in text
    assert "(0.500" not in text


def test_each_group_keeps_its_first_column_and_the_rest_is_counted():
    text = printed(table(4, 12, groups=3, label="row"), width=70)
    assert all(f"score {n}" in text for n in (0, 4, 8))
    assert "score 11" not in text
    assert text.splitlines()[-1].endswith("more columns are on the page")


def test_a_long_table_keeps_the_lines_that_may_be_best():
    text = printed(table(1000, 2, best=987, label="row"))
    assert "row 987" in text
    assert "row 0 " in text
    kept = sum(line.startswith("row ") for line in text.splitlines())
    assert f"{1000 - kept} more lines are on the page" in text


def test_a_table_that_fits_is_whole():
    assert "on the page" not in printed(table(2, 2))


def test_a_benchmark_prints_findings_and_one_table():
    file = StringIO()
    console = Console(file=file, width=80)
    print_brief(report(), console=console)
    text = file.getvalue()
    assert "Mine" in text
    assert "accuracy" in text.lower()
    assert "\N{NO-BREAK SPACE}" not in text
    assert max(map(len, text.splitlines())) <= 80


def test_a_benchmark_without_numbers_says_what_is_missing():
    file = StringIO()
    empty = replace(report(), tables=(), variants=(), rows=())
    print_brief(empty, console=Console(file=file, width=80))
    assert "no table has a number yet" in file.getvalue()


@pytest.mark.parametrize("words", HOSTILE)
def test_names_of_strangers_do_not_steer_the_terminal(words):
    file = StringIO()
    made = report(label=words.encode("utf-8", "replace").decode())
    print_brief(made, console=Console(file=file, width=80))
    text = file.getvalue()
    assert "\x1b" not in text
    assert all(len(line) <= 80 for line in text.split("\n"))
