"""The live page, and what a served page has more than one on disk."""

from html import escape
from importlib.resources import files

from qualms.report.site._read import made_now
from qualms.report.site.contents import SiteContents
from qualms.report.site.markup import element
from qualms.report.site.page import Page, fragment
from qualms.report.site.shell import page_text

PAGE = "live.html"
ASSETS = ("live.js", "live.css")
_POLICY = escape("default-src 'none';")
_NAV = '<ul class="nav">'
_HEAD = "</head>"


def live_page(command: str) -> str:
    """Return the page that shows how far runs are."""
    table = element(
        "table",
        element(
            "thead",
            element(
                "tr",
                [
                    element("th", words, scope="col")
                    for words in ("Run", "State", "Epoch", "Loss", "Images/s", "Left")
                ],
            ),
        ),
        element("tbody"),
        id="live-runs",
    )
    page = Page(
        path=PAGE,
        title="Runs under way",
        nav="",
        body=(
            fragment(
                element("p", "…", id="live-summary", class_="lead", role="status"),
                element(
                    "progress", id="live-total", aria_label="runs done", hidden=True
                ),
                element("p", id="live-problem", class_="note", hidden=True),
                element(
                    "div",
                    table,
                    class_="scroll",
                    tabindex=0,
                    role="region",
                    aria_label="Runs",
                ),
                element(
                    "p",
                    "A run is listed from its start on; those that were asked for and"
                    " have not begun are waiting. Quiet: it has not written"
                    " anything for a while, and may have been stopped.",
                    class_="note",
                ),
            ),
        ),
    )
    start = Page(path="index.html", title="", nav="Overview", body=())
    return page_text(page, [start, page], SiteContents(made=made_now(command)))


def served(text: str, *, current: bool = False) -> str:
    """Return a page with a link to the live page, and the script that refreshes it.

    Args:
        text: A page of the site, or the live page.
        current: Whether it is the live page.
    """
    # Each is replaced once, where it stands before any name from a file.
    mark = ' aria-current="page"' if current else ""
    text = text.replace(_POLICY, f"{_POLICY} {escape(CONNECT)}", 1)
    text = text.replace(
        _HEAD,
        '<link rel="stylesheet" href="live.css"><script src="live.js" defer></script>'
        + _HEAD,
        1,
    )
    return text.replace(_NAV, f'{_NAV}<li><a href="{PAGE}"{mark}>Live</a></li>', 1)


CONNECT = "connect-src 'self';"


def asset(name: str) -> bytes:
    """Return a file that only served pages have."""
    return (files("qualms.report.site.live") / "assets" / name).read_bytes()
