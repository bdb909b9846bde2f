"""Pages that stand alone, each in one file: of scored files, and of a benchmark."""

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
    contents = SiteContents(groups=(group,), made=made_now(command))
    _write_alone(list(files(contents)), contents, path)


def write_benchmark_page(report: BenchmarkReport, path: Path) -> Path:
    """Write the page of a benchmark into one file, and return its path."""
    shown = ShownBenchmark(slug=slug(report.name), report=report)
    contents = SiteContents(benchmarks=(shown,), made=made_now(report.command))
    _write_alone(list(benchmark(contents)), contents, path)
    return path


def _write_alone(pages: list[Page], contents: SiteContents, path: Path) -> None:
    """Write pages as one file, without links to pages that are not there."""
    first = replace(pages[0], path="index.html")
    alone = [replace(page, nav="") for page in (first, *pages[1:])]
    titled = replace(contents, title=alone[0].title)
    with replacing(path) as temporary:
        temporary.write_text(
            single_text(alone, titled), encoding="utf-8", errors="replace"
        )
