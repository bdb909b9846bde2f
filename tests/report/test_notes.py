"""Notes below tables: few lines in a terminal, all of them on the page."""

import re
from dataclasses import replace

import pytest
from rich.console import Console

from qualms.report import Column, Table, TableCell, TableLine, print_table
from qualms.report._terminal import print_notes
from qualms.report.benchmark import print_benchmark, write_all
from report.small_study import small_study

NOTES = tuple(f"note {k} says something that takes more than one line" for k in "12345")


def printed(show, width=60):
    console = Console(width=width)
    with console.capture() as capture:
        show(console)
    return capture.get().splitlines()


def test_notes_take_so_many_lines_and_the_others_are_counted():
    console = Console(width=40)
    with console.capture() as capture:
        left_out = print_notes(NOTES, console=console, most_lines=3)
    lines = capture.get().splitlines()
    assert len(lines) == 2
    assert left_out == 4


def test_a_long_note_gives_way_to_a_short_one():
    lines = printed(lambda console: print_notes(["x" * 300, "y"], console=console))
    assert len(lines) == 6
    notes = ["word " * 60, "short"]
    lines = printed(lambda c: print_notes(notes, console=c, most_lines=3, head="! "))
    assert lines == ["! short"]


def reasons(count):
    lines = (
        TableLine(labels=(f"row {k}",), cells=(TableCell(why=f"reason {k}"),))
        for k in range(count)
    )
    shown = TableLine(labels=("whole",), cells=(TableCell(mean=1.0),))
    return Table(
        name="t",
        title="",
        columns=(Column(label="score"),),
        lines=(shown, *lines),
        notes=NOTES,
    )


def test_a_table_shows_three_lines_of_notes_and_of_reasons():
    lines = printed(lambda c: print_table(reasons(9), console=c, most_lines=3), 80)
    assert sum(line.startswith("note") for line in lines) == 3
    assert sum("reason" in line for line in lines) == 4
    assert lines[-1] == "2 more notes and 6 more reasons are on the page"
    lines = printed(lambda c: print_table(reasons(9), console=c), 80)
    assert sum("reason" in line for line in lines) == 9


@pytest.mark.parametrize("width", [60, 80, 160])
def test_a_benchmark_shows_three_lines_of_notes(width, tmp_path, monkeypatch):
    monkeypatch.setattr("qualms.report.benchmark.find_spec", lambda _name: None)
    results = replace(small_study(), notes=NOTES)
    lines = printed(lambda console: print_benchmark(results, console=console), width)
    start = next(k for k, line in enumerate(lines) if line.startswith("note: "))
    assert len(lines) - start <= 4
    assert re.fullmatch(r"\d more notes are on the page, index\.html", lines[-1])
    page = write_all(results, tmp_path).page.read_text(encoding="utf-8")
    assert all(note in page for note in NOTES)
    full = printed(lambda c: print_benchmark(results, console=c, full=True), width)
    assert sum(line.startswith("note: ") for line in full) == len(NOTES)
