"""The front page: findings in words, a leaderboard for each benchmark, and files."""

from collections.abc import Iterator

from qualms.report.site.contents import SiteContents
from qualms.report.site.page import Page


def front(contents: SiteContents) -> Iterator[Page]:
    """Yield the front page."""
    yield Page(
        path="index.html",
        title=contents.title,
        nav="Overview",
        order=0,
        simulated=contents.simulated,
        body=(),
    )
