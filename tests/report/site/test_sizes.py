"""How much pages weigh: also with the many rows of the preset `small`."""

import math
from dataclasses import replace

import pytest

from qualms.report.presented import report_of
from qualms.report.site import write_contents
from qualms.report.site._read import contents_of_parts
from qualms.report.site.assets import script, style
from qualms.report.site.tables import table_fragment
from qualms.report.table import Column, Table, TableCell, TableLine
from report import made_retina, made_values

PAGE, ON_DEMAND = 500_000, 1_000_000
"""Bytes at most."""


def table(lines, columns):
    cell = TableCell(mean=0.123456789, low=0.1, high=0.2, tied=True, repeats=5)
    return Table(
        name="table",
        title="A table",
        columns=tuple(Column(label=f"column {n} ↑") for n in range(columns)),
        lines=tuple(
            TableLine(labels=(f"method {n}",), cells=(cell,) * columns)
            for n in range(lines)
        ),
    )


@pytest.mark.parametrize(
    ("lines", "columns", "shown"), [(3, 2, 3), (300, 1, 200), (100, 60, 15), (9, 99, 9)]
)
def test_a_table_shows_as_many_lines_as_a_page_can_hold(lines, columns, shown):
    text = table_fragment(table(lines, columns), "anchor").html.text
    assert text.count('scope="row"') == shown
    assert (f"The first {shown} of {lines} lines." in text) == (shown < lines)
    assert len(text.encode()) + len(script()) + len(style()) < PAGE


@pytest.mark.slow
def test_pages_of_the_preset_small_are_light(tmp_path):
    retina = made_retina.results_as_published(
        plan=made_retina.BENCHMARK.plan("small"), simulated=True, drawn=True
    )
    values = made_values.results_as_published(plan=made_values.SMALL, drawn=True)
    contents = contents_of_parts([report_of(retina), report_of(values)], [])
    index = write_contents(replace(contents, on_paper=False), tmp_path / "site")
    shared = sum(path.stat().st_size for path in index.parent.glob("assets/*"))
    pages = list(index.parent.glob("*.html"))
    assert len(pages) > 10
    for page in pages:
        data = index.parent / "data" / f"{page.stem}.js"
        own = data.stat().st_size if data.exists() else 0
        assert page.stat().st_size + own + shared <= PAGE, page.name
    sizes = [path.stat().st_size for path in index.parent.glob("data/*.js")]
    assert max(sizes, default=math.inf) <= ON_DEMAND
