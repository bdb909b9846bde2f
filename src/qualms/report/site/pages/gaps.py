"""The page of gaps: what the site could show and does not, and how to make it."""

from collections.abc import Iterator

from qualms.report.site.contents import SiteContents, SiteGap
from qualms.report.site.markup import Html, element, name
from qualms.report.site.page import Fragment, Page, fragment, section, slug


def gaps(contents: SiteContents) -> Iterator[Page]:
    """Yield the page of gaps."""
    yield Page(
        path="gaps.html",
        title="What is missing",
        nav="Gaps" if contents.gaps else "",
        order=90,
        lead="What this site could show and does not, with the command that makes it.",
        body=tuple(_sections(contents)),
    )


def _sections(contents: SiteContents) -> Iterator[Fragment]:
    if not contents.gaps:
        yield fragment(element("p", "Nothing is missing."))
    anchors: list[str] = []
    for group in dict.fromkeys(gap.group for gap in contents.gaps):
        anchor = slug(f"gaps-{group}", anchors)
        anchors.append(anchor)
        items = [_item(gap) for gap in contents.gaps if gap.group == group]
        yield section(
            anchor, group or "Others", element("ul", items, class_="plain cards")
        )


def _item(gap: SiteGap) -> Html:
    return element(
        "li",
        element("p", element("b", name(gap.what, most=200))),
        element("p", gap.why, class_="small") if gap.why else None,
        element("pre", element("code", gap.remedy)) if gap.remedy else None,
    )
