"""The page of definitions: what each score is, as the documentation has it."""

from collections.abc import Iterator

from qualms.report.site.contents import SiteContents
from qualms.report.site.definition_texts import PAGE, definition_sections
from qualms.report.site.page import Page, section, slug

LEAD = "What each score is, and how it treats ties, undefined cases and clusters."


def definitions(contents: SiteContents) -> Iterator[Page]:
    """Yield the page, where this package has the texts and there is a score."""
    sections = list(definition_sections())
    if not sections or not (contents.benchmarks or contents.files):
        return
    yield Page(
        path=f"{PAGE}.html",
        title="Definitions",
        nav="Definitions",
        order=80,
        lead=LEAD,
        body=tuple(
            section(slug(f"{PAGE} of {title}"), title, *pieces)
            for title, pieces in sections
        ),
    )
