"""One record of a table, and what each of its renderers makes of it."""

import csv
import math
import re
import shutil
import subprocess
from dataclasses import replace
from html.parser import HTMLParser

import pytest
from rich.console import Console

from qualms.report import Column, Table, TableCell, TableLine, digits, print_table
from qualms.report._csv_files import write_table_csv
from qualms.report._html import html_table
from qualms.report._latex import latex_table
from qualms.report.table import remarks
from qualms.results import Summary

HOSTILE = "</td><script>alert(1)</script>[bold]\x1b[31m_%&#$~^\\{}"


def table(*, columns=6, published=True, label="MC Dropout Ensemble of 2", **more):
    cell = TableCell(
        mean=93.04,
        spread=0.41,
        low=91.7,
        high=94.1,
        repeats=6,
        tied=True,
        best=True,
        released=Summary(92.9, 0.4),
        published=Summary(91.9, 0.5) if published else None,
    )
    other = TableCell(mean=-0.004, low=-1.0, high=2.0, repeats=6)
    empty = TableCell(why="only one class among these items")
    lines = (
        TableLine(labels=(label,), cells=(cell,) * columns, keys={"row": label}),
        TableLine(labels=("MAP",), cells=(other,) * columns, keys={"row": "map"}),
        TableLine(labels=("FSVI",), cells=(empty,) * columns, keys={"row": "fsvi"}),
    )
    return Table(
        name="table_1",
        title="Table 1: Country Shift",
        about="simulated data, not the paper's; preset demo",
        simulated=True,
        columns=tuple(
            Column(
                label="AUROC ↑",
                group=f"{50 * (i // 2)}% referred",
                unit="%",
                decimals=1,
                keys={"score": f"auroc{i}"},
            )
            for i in range(columns)
        ),
        lines=lines,
        spread="standard error",
        keys={"preset": "demo"},
        **more,
    )


def shown(made, width):
    console = Console(width=width)
    with console.capture() as capture:
        print_table(made, console=console)
    return capture.get()


@pytest.mark.parametrize("width", [60, 80, 120, 200])
@pytest.mark.parametrize("columns", [1, 2, 7, 14])
def test_a_terminal_is_not_overrun_and_no_cell_is_cut(width, columns):
    text = shown(table(columns=columns), width)
    assert max(map(len, text.splitlines())) <= width
    assert "…" not in text
    assert text.count("93.0") == columns
    assert text.count("91.7–94.1") == columns  # noqa: RUF001 - as printed
    assert text.count("(91.9, +2.0)") == columns


def test_wide_tables_are_broken_between_column_groups():
    text = shown(table(columns=6), 80)
    heads = [line for line in text.splitlines() if line.endswith("referred")]
    assert [re.findall(r"\d+%", line) for line in heads] == [["0%", "50%"], ["100%"]]


@pytest.mark.parametrize("label", ["predictive, threshold", "ResNet-50, " * 3])
def test_labels_stand_on_one_line_where_there_is_room(label):
    made = table(columns=1)
    lines = (replace(line, labels=("AURC", label)) for line in made.lines)
    made = replace(made, left=("score", "by"), lines=tuple(lines))
    assert re.search(rf"AURC +{label.strip()} ", shown(made, 80))


def test_a_terminal_says_why_cells_are_empty_and_what_the_table_is_of():
    text = " ".join(shown(table(columns=2), 100).split())
    assert "simulated data, not the paper's; preset demo" in text
    assert "0% referred, AUROC ↑ of FSVI: only one class among these items" in text


def test_the_best_is_marked_in_every_form(tmp_path):
    written_table = table(columns=1)
    assert "93.0 91.7–94.1●" in shown(written_table, 100)  # noqa: RUF001 - as printed
    best = r"$\mathbf{93.0}$ {\scriptsize 91.7--94.1}\,$^{\bullet}$"
    assert best in latex_table(written_table)
    assert "●</span> <b>93.0 ± 0.4</b>" in html_table(written_table)
    with write_table_csv(written_table, tmp_path / "t.csv").open(
        encoding="utf-8"
    ) as file:
        first, second, _ = csv.DictReader(file)
    assert (first["best"], first["tied_with_best"], second["best"]) == (
        "True",
        "True",
        "False",
    )


def test_a_csv_file_has_a_line_per_cell_with_all_its_numbers(tmp_path):
    path = write_table_csv(table(columns=2), tmp_path / "table.csv")
    with path.open(encoding="utf-8", newline="") as file:
        lines = list(csv.DictReader(file))
    assert len(lines) == 6
    assert lines[0] == {
        "table": "table_1",
        "preset": "demo",
        "row": "MC Dropout Ensemble of 2",
        "score": "auroc0",
        "unit": "%",
        "ours_mean": "93.04",
        "ours_spread": "0.41",
        "ours_low": "91.7",
        "ours_high": "94.1",
        "no_interval": "",
        "repeats": "6",
        "released_mean": "92.9",
        "released_spread": "0.4",
        "published_mean": "91.9",
        "published_spread": "0.5",
        "spread": "standard error",
        "difference": "1",
        "difference_in_published_spread": "2",
        "best": "True",
        "tied_with_best": "True",
        "remark": "",
    }
    assert lines[-1]["remark"] == "only one class among these items"


@pytest.mark.parametrize("name", ["=1+1", "+cmd|' /C calc'!A0", "@SUM(A1)", "-2+3"])
def test_a_name_is_no_formula_to_a_spreadsheet(name, tmp_path):
    path = write_table_csv(table(label=name), tmp_path / "table.csv")
    with path.open(encoding="utf-8", newline="") as file:
        rows = {line["row"] for line in csv.DictReader(file)}
        assert f"'{name}" in rows
    # Numbers stay numbers, negative ones too.
    assert "-0.004" in path.read_text(encoding="utf-8")


def check_latex(text):
    assert text.count(r"\begin") == text.count(r"\end") == 2
    assert text.count("{") - text.count(r"\{") == text.count("}") - text.count(r"\}")
    assert (text.count("$") - text.count(r"\$")) % 2 == 0
    assert text.isascii()
    width = len(re.search(r"\\begin{tabular}{(l+r*)}", text)[1])
    for line in text.splitlines():
        if line.endswith(r"\\"):
            spans = [int(n) - 1 for n in re.findall(r"\\multicolumn{(\d+)}", line)]
            assert line.count(" & ") + sum(spans) < width, line
    plain = re.sub(r"\\[_%&#$]", "", text)
    assert not re.search(r"[#%_~]", plain.replace("{!}{%", ""))
    assert "^" not in re.sub(r"\$[^$]*\$", "", plain)


@pytest.mark.parametrize("columns", [1, 6, 14])
@pytest.mark.parametrize("label", ["MAP", HOSTILE])
def test_latex_is_balanced_and_escaped(columns, label):
    check_latex(latex_table(table(columns=columns, label=label, notes=(label,))))


def test_control_characters_are_visible_in_latex():
    text = latex_table(table(label="A\x00B\x1b[1mC\x7fD\x9b\xadE\xa0F|G"))
    assert r"A?B?[1mC?D??E F\textbar{}G" in text
    check_latex(text)


def test_latex_has_the_ranges_of_its_caption_and_no_spread_of_two_seeds():
    bounded = latex_table(table(columns=1, published=False))
    assert "Ranges are 95\\% intervals." in bounded
    assert r"{\scriptsize 91.7--94.1}" in bounded
    assert r"\pm" not in bounded
    two = TableCell(mean=93.0, spread=0.0, repeats=2, seeds=(93.0, 93.0))
    two = replace(two, released=Summary(92.9, 0.0))
    few = table(columns=1, published=False)
    few = replace(few, lines=(replace(few.lines[0], cells=(two,)),))
    for released in (False, True):
        columns = (replace(few.columns[0], released=released),)
        text = latex_table(replace(few, columns=columns))
        assert r"\pm" not in text
        assert "standard error" not in text
        assert ("[93.0--93.0]" in text) != released


@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="no LaTeX here")
@pytest.mark.parametrize("label", [HOSTILE, "".join(map(chr, range(256))) + "αж…"])
def test_latex_compiles(tmp_path, label):
    body = latex_table(table(columns=14, label=label))
    page = tmp_path / "all.tex"
    page.write_text(
        "\\documentclass{article}\\usepackage{booktabs,graphicx}\n"
        f"\\begin{{document}}\n{body}\\end{{document}}\n",
        encoding="utf-8",
    )
    command = ["pdflatex", "-halt-on-error", page.name]
    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)


class Tags(HTMLParser):
    """Which tags open and close, and the words between."""

    def __init__(self):
        super().__init__()
        self.open, self.seen, self.attributes, self.words = [], set(), set(), []

    def handle_starttag(self, tag, attrs):
        self.open.append(tag)
        self.seen.add(tag)
        self.attributes |= {name for name, _ in attrs}

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.words.append(data)


def test_html_is_balanced_and_escapes_names():
    tags = Tags()
    tags.feed(html_table(table(columns=7, label=HOSTILE, notes=(HOSTILE,))))
    assert tags.open == []
    assert tags.seen <= {
        *("figure", "figcaption", "div", "table", "thead", "tbody", "tr", "th", "td"),
        *("b", "p", "small", "span"),
    }
    # No style and no handler: a strict policy holds.
    assert tags.attributes <= {"class", "scope", "colspan", "title"}
    assert sum(HOSTILE in words for words in tags.words) == 2


def test_names_do_not_steer_a_terminal():
    text = shown(table(label=HOSTILE, columns=1), 200)
    assert "\x1b[31m" not in text
    assert "[bold]" in text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.89672, "0.8967"),
        (3.33, "3.330"),
        (25.0, "25.00"),
        (12345.6, "12346"),
        (1e-15, "0.0000"),
        (2e-5, "2.000e-05"),
        (math.inf, "inf"),
        (-0.5, "-0.5000"),
    ],
)
def test_numbers_have_four_digits(value, text):
    assert digits(value) == text


def test_a_rounded_zero_has_no_sign():
    assert digits(-0.004, 1) == "0.0"


def test_a_line_stands_only_in_the_blocks_that_have_its_numbers():
    columns = tuple(
        Column(label=f"a column that is wide {number}", group=f"group {number}")
        for number in range(4)
    )
    one = TableCell(mean=1.0, text="a rather long text that stands alone")
    lines = tuple(
        TableLine(
            labels=(f"line {row}",),
            cells=tuple(one if place == row else TableCell() for place in range(4)),
            section=f"a section with a title that is longer than its column {row}",
        )
        for row in range(4)
    )
    made = Table(name="t", title="t", columns=columns, lines=lines)
    console = Console(width=60)
    with console.capture() as capture:
        print_table(made, console=console)
    text = capture.get()
    assert max(map(len, text.splitlines())) <= 60
    for row in range(4):
        assert text.count(f"line {row}") == 1
        assert f"a section with a title that is longer than its column {row}" in text


@pytest.mark.parametrize(
    ("columns", "words"),
    [(1, "column 0"), (3, "column 0; column 1; column 2"), (4, "4 columns")],
)
def test_a_reason_that_many_columns_share_says_how_many_they_are(columns, words):
    cells = (TableCell(mean=1.0, no_interval="one seed"),) * columns
    shown = Table(
        name="t",
        title="T",
        columns=tuple(Column(label=f"column {n}") for n in range(columns)),
        lines=(
            TableLine(labels=("a",), cells=cells),
            TableLine(labels=("b",), cells=(TableCell(mean=2.0),) * columns),
        ),
    )
    assert remarks(shown) == [f"{words} of a: no interval: one seed"]
