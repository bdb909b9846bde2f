"""The front page: findings in words, a leaderboard for each benchmark, and files."""

from collections.abc import Iterator

from qualms.report.site.contents import ShownBenchmark, SiteContents
from qualms.report.site.leaderboard import leaderboard, main_tables
from qualms.report.site.markup import element, link
from qualms.report.site.page import Fragment, Page, section


def front(contents: SiteContents) -> Iterator[Page]:
    """Yield the front page."""
    yield Page(
        path="index.html",
        title=contents.title,
        nav="Overview",
        order=0,
        simulated=contents.simulated,
        body=tuple(_boards(contents)),
    )


def _boards(contents: SiteContents) -> Iterator[Fragment]:
    for shown in contents.benchmarks:
        yield section(f"index-{shown.slug}", shown.report.title, _board(shown))


def _board(shown: ShownBenchmark) -> Fragment:
    from qualms.report.site.page import fragment

    tables = main_tables(shown.report)
    more = element(
        "p", link(f"{shown.slug}.html", f"Everything about {shown.report.name}")
    )
    return fragment(more, leaderboard(shown, tables, "index") if tables else None)
