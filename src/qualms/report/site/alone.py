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
from qualms.report.site.pages.files import files
from qualms.report.site.shell import single_text

_LINK = re.compile(r'<a href="#page-([\w-]+)">(.*?)</a>', re.DOTALL)
PAGE_BYTES = 2_000_000
"""Room that the page of a few files needs at most."""


def write_page(scored: Scored, path: Path, *, command: str = "") -> None:
    """Write the page of scored files into one file that opens from disk."""
    taken: list[str] = []
    members = []
    for results in scored.results:
        taken.append(slug(results.name, taken))
        members.append(ScoredFile(slug=taken[-1], results=results))
    group = FileGroup(slug="files", files=tuple(members), comparison=scored.comparison)
    made = made_now(command)
    contents = SiteContents(groups=(group,), made=made, on_paper=False)
    _write_alone(list(files(contents)), contents, path)


def write_benchmark_page(report: BenchmarkReport, path: Path) -> Path:
    """Write the page of a benchmark into one file, and return its path."""
    shown = ShownBenchmark(slug=slug(report.name), report=report)
    made = made_now(report.command)
    contents = SiteContents(benchmarks=(shown,), made=made, on_paper=False)
    _write_alone(list(benchmark(contents)), contents, path)
    return path


def _write_alone(pages: list[Page], contents: SiteContents, path: Path) -> None:
    """Write pages as one file, without links to pages that are not there."""
    alone = [replace(page, nav="") for page in pages]
    titled = replace(contents, title=alone[0].title)
    text = _without_dead_links(single_text(alone, titled), alone)
    with replacing(path) as temporary:
        temporary.write_text(text, encoding="utf-8", errors="replace")


def _without_dead_links(text: str, pages: Sequence[Page]) -> str:
    """Return a page with the words alone of links to other pages of a site."""
    there = {page.slug for page in pages}
    return _LINK.sub(lambda m: m[0] if m[1] in there else m[2], text)
