"""Pages that stand alone, each in one file: of scored files, and of a benchmark."""

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from qualms.atomic import replacing
from qualms.evaluate import Scored
from qualms.report.benchmark_report import BenchmarkReport
from qualms.report.site._read import made_now
from qualms.report.site.contents import (
    FileGroup,
    ScoredFile,
    ShownBenchmark,
    SiteContents,
)
from qualms.report.site.page import Page, slug
from qualms.report.site.pages.benchmark import benchmark
from qualms.report.site.pages.definitions import definitions
from qualms.report.site.pages.files import files
from qualms.report.site.pages.items import items
from qualms.report.site.pages.neighbours import neighbours
from qualms.report.site.pages.viewer import viewer
from qualms.report.site.shell import single_text

_LINK = re.compile(r'<a href="#page-([\w-]+)">(.*?)</a>', re.DOTALL)
PAGE_BYTES = 8_000_000
"""Room that the page of a few files usually needs at most."""


def write_page(
    scored: Scored,
    path: Path,
    *,
    command: str = "",
    sources: Sequence[Path] = (),
    data: Path | None = None,
    gallery: Path | None = None,
) -> None:
    """Write the page of scored files into one file that opens from disk.

    Args:
        scored: The files.
        path: The page.
        command: What made it.
        sources: Where the predictions are, one for each file. With them come the items
            that tell most, queries with their nearest neighbours, and segmentations.
        data: Folder of prepared datasets, for pictures of items.
        gallery: Embeddings among which neighbours were sought for the scores, if not
            among those of each file.
    """
    slugs: list[str] = []
    members = []
    paths: Sequence[Path | None] = sources or [None] * len(scored.results)
    for results, source in zip(scored.results, paths, strict=True):
        slugs.append(slug(results.name, slugs))
        members.append(
            ScoredFile(slug=slugs[-1], results=results, path=source, gallery=gallery)
        )
    group = FileGroup(slug="files", files=tuple(members), comparison=scored.comparison)
    provenance = made_now(command)
    contents = SiteContents(
        groups=(group,), made=provenance, data=data, linked=False, on_paper=False
    )
    pages = [replace(page, nav="Scores") for page in files(contents)]
    # A file that needs options, such as logits, is scored but cannot be shown so.
    shown = (*neighbours(contents), *items(contents), *viewer(contents))
    more = [page for page in shown if page.data]
    _write_alone([*pages, *more, *definitions(contents)], contents, path)


def write_benchmark_page(report: BenchmarkReport, path: Path) -> Path:
    """Write the page of a benchmark into one file, and return its path."""
    shown = ShownBenchmark(slug=slug(report.name), report=report)
    provenance = made_now(report.command)
    contents = SiteContents(benchmarks=(shown,), made=provenance, on_paper=False)
    pages = [replace(page, nav="") for page in benchmark(contents)]
    _write_alone([*pages, *definitions(contents)], contents, path)
    return path


def _write_alone(pages: list[Page], contents: SiteContents, path: Path) -> None:
    """Write pages as one file, without links to pages that are not there."""
    several = sum(bool(page.nav) for page in pages) > 1
    alone = pages if several else [replace(page, nav="") for page in pages]
    titled = replace(contents, title=alone[0].title)
    text = _without_dead_links(single_text(alone, titled), alone)
    with replacing(path) as temporary:
        temporary.write_text(text, encoding="utf-8", errors="replace")


def _without_dead_links(text: str, pages: Sequence[Page]) -> str:
    """Return a page with the words alone of links to other pages of a site."""
    slugs = {page.slug for page in pages}
    return _LINK.sub(lambda m: m[0] if m[1] in slugs else m[2], text)
