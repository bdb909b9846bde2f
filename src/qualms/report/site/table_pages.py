"""The tables of a benchmark by page: as many pages as their size asks for."""

from typing import NamedTuple

from qualms.report.site.contents import ShownBenchmark
from qualms.report.site.leaderboard import line_labels
from qualms.report.site.page import Fragment, slug
from qualms.report.site.tables import table_fragment

PAGE_LETTERS = 350_000
"""Letters of tables on a page at most, unless one table alone has more."""


class PlacedTable(NamedTuple):
    """A table, and where it stands."""

    page: str
    """Slug of its page."""
    anchor: str
    title: str
    fragment: Fragment


def placed_tables(shown: ShownBenchmark) -> list[PlacedTable]:
    """Return the tables that a benchmark declares, with their pages."""
    placed: list[PlacedTable] = []
    number, letters = 1, 0
    for table in shown.report.tables:
        anchor = slug(f"{shown.slug}-{table.name}")
        content = table_fragment(
            table, anchor, filters=line_labels(shown.report, table), level=2
        )
        size = len(content.html.text)
        if letters and letters + size > PAGE_LETTERS:
            number, letters = number + 1, 0
        letters += size
        page = f"{shown.slug}-tables" + (f"-{number}" if number > 1 else "")
        placed.append(PlacedTable(page, anchor, table.title, content))
    return placed
