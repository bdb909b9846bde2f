"""From what a user names to the contents of a site."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from qualms.evaluate import Results, Scored, ScoreOptions, compare, score_files
from qualms.evaluate.benchmark_results import BenchmarkResults
from qualms.evaluate.drawings import CURVE_POINTS
from qualms.predictions import pairing, same_items
from qualms.report.benchmark_report import BenchmarkReport, versions
from qualms.report.presented import report_of
from qualms.report.search_report import SearchReport
from qualms.report.site._sources import PredictionsSource, Sources
from qualms.report.site.contents import (
    TITLE,
    FileGroup,
    Made,
    ScoredFile,
    ShownBenchmark,
    ShownSearch,
    SiteContents,
    SiteGap,
)
from qualms.report.site.method_texts import method_page
from qualms.report.site.page import slug
from qualms.report.stored_report import read_report, read_table_report

TOGETHER = 6
"""At most so many files with the same items share a page; figures have six colours."""
LONGEST_PAGE = 40
"""Length of a page's slug at most; ids on the page begin with it."""
RESERVED = (
    *("index", "gaps", "compare", "methods", "planner", "main"),
    *("items", "viewer", "neighbours", "definitions"),
)
"""Slugs of pages that every site may have."""

SiteSource = str | Path | BenchmarkResults | BenchmarkReport | Results | Scored


@dataclass(frozen=True, slots=True, kw_only=True)
class SiteRequest:
    """Sources of a site, and options by which files are read."""

    sources: Sequence[SiteSource]
    val: Sequence[str | Path] = ()
    """Validation predictions: one for each predictions file, or one for all."""
    names: Sequence[str] = ()
    """Names of the predictions files in tables, in order."""
    options: ScoreOptions | None = None
    title: str = TITLE
    command: str = ""
    data: Path | None = None
    """Folder of prepared datasets, for pictures of items."""


def read_contents(request: SiteRequest) -> SiteContents:
    """Read and score everything that a site is made of."""
    paths = [Path(each) for each in request.sources if isinstance(each, str | Path)]
    sources = Sources()
    for path in paths:
        sources.add(path)
    reports = [*map(read_report, dict.fromkeys(sources.judged))]
    reports += map(read_table_report, sources.tables)
    files = _scored_files(sources.predictions, request)
    for source in request.sources:
        if isinstance(source, BenchmarkReport):
            reports.append(source)
        elif isinstance(source, BenchmarkResults):
            reports.append(report_of(source))
        elif isinstance(source, Results):
            files.append(ScoredFile(slug="", results=source))
        elif isinstance(source, Scored):
            files += [ScoredFile(slug="", results=each) for each in source.results]
    contents = contents_of_parts(
        reports,
        files,
        searches=sources.searches,
        title=request.title,
        command=request.command,
        gaps=sources.gaps,
    )
    return replace(contents, data=request.data)


def contents_of_parts(
    reports: Sequence[BenchmarkReport],
    files: Sequence[ScoredFile],
    *,
    searches: Sequence[SearchReport] = (),
    title: str = TITLE,
    command: str = "",
    gaps: Sequence[SiteGap] = (),
) -> SiteContents:
    """Return the contents of a site of these parts, with a slug for each page."""
    methods = {row.method for report in reports for row in report.rows}
    slugs = {*RESERVED, *map(method_page, methods)}
    shown = [
        ShownBenchmark(slug=_new_slug(_name_of(report, reports), slugs), report=report)
        for report in reports
    ]
    named = [replace(f, slug=_new_slug(f.results.name, slugs)) for f in files]
    of_searches = [
        ShownSearch(
            slug=_new_slug(f"tune {each.variant} {each.method}", slugs), report=each
        )
        for each in searches
    ]
    return SiteContents(
        title=title,
        benchmarks=tuple(shown),
        searches=tuple(of_searches),
        groups=tuple(_groups(named, slugs)),
        gaps=(*gaps, *(gap for report in reports for gap in _gaps_of(report))),
        made=made_now(command),
    )


def made_now(command: str) -> Made:
    """Return the facts of a site that is made at this moment."""
    now = datetime.now(UTC).isoformat(timespec="seconds")
    return Made(command=command, when=now, versions=versions())


def _name_of(report: BenchmarkReport, reports: Sequence[BenchmarkReport]) -> str:
    """Return the name of a benchmark, with its preset where there are several."""
    several = sum(other.name == report.name for other in reports) > 1
    return f"{report.name} {report.preset}" if several else report.name


def _new_slug(words: str, slugs: set[str]) -> str:
    new = slug(words, slugs, most=LONGEST_PAGE)
    slugs.add(new)
    return new


def _scored_files(
    sources: Sequence[PredictionsSource], request: SiteRequest
) -> list[ScoredFile]:
    """Score predictions files, those of one task together so that names differ."""
    if not sources:
        return []
    vals: list[str | Path | None] = [source.val for source in sources]
    if request.val:
        one = len(request.val) == 1
        vals = [*request.val] * (len(sources) if one else 1)
    if len(vals) != len(sources):
        raise ValueError(
            f"--val must be given once per file, in the same order: {len(sources)}"
            f" files, got {len(vals)} validation files"
        )
    scored = [
        _score(source.path, val, request.options)
        for source, val in zip(sources, vals, strict=True)
    ]
    names = list(request.names) or _distinct_names(scored, sources)
    if len(names) != len(scored):
        raise ValueError(
            f"--name must be given once per file, in the same order: {len(scored)}"
            f" files, got {len(names)} names"
        )
    return [
        ScoredFile(
            slug="",
            results=replace(results, name=name),
            path=source.path,
            val=None if val is None else Path(val),
        )
        for results, name, source, val in zip(scored, names, sources, vals, strict=True)
    ]


def _score(path: Path, val: str | Path | None, options: ScoreOptions | None) -> Results:
    vals = None if val is None else [val]
    shown = replace(options or ScoreOptions(), curve_points=CURVE_POINTS)
    return score_files([path], val=vals, options=shown).results[0]


def _distinct_names(
    results: Sequence[Results], sources: Sequence[PredictionsSource]
) -> list[str]:
    """Return the names of files; equal ones with the folders that distinguish them."""
    names = [each.name for each in results]
    paths = [source.path.with_suffix("") for source in sources]
    return [
        name if names.count(name) == 1 else _shortest_end(path, paths, name)
        for name, path in zip(names, paths, strict=True)
    ]


def _shortest_end(path: Path, paths: Sequence[Path], name: str) -> str:
    for depth in range(1, len(path.parts) + 1):
        ends = ["/".join(each.parts[-depth:]) for each in paths]
        end = "/".join(path.parts[-depth:])
        if ends.count(end) == 1:
            return f"{name} ({end})"
    return name


def _groups(files: Sequence[ScoredFile], slugs: set[str]) -> Iterator[FileGroup]:
    """Yield files by page: those with the same items together."""
    remaining = list(files)
    while remaining:
        first = remaining[0]
        same = [file for file in remaining if _are_paired(first.results, file.results)]
        together = same if len(same) <= TOGETHER else [first]
        remaining = [file for file in remaining if file not in together]
        comparison = None
        page = first.slug
        if len(together) > 1:
            comparison = compare([file.results for file in together])
            page = _new_slug("-".join(file.slug for file in together), slugs)
        yield FileGroup(slug=page, files=tuple(together), comparison=comparison)


def _are_paired(first: Results, other: Results) -> bool:
    """Return whether two files have the same task, items and targets."""
    if first is other:
        return True
    if first.task != other.task or first.items is None or other.items is None:
        return False
    same_drawn = first.design is not None and other.design is not None
    return same_drawn and same_items(pairing(first.items), pairing(other.items))


def _gaps_of(report: BenchmarkReport) -> Iterable[SiteGap]:
    """Yield what is missing of a benchmark."""
    if not report.complete:
        yield SiteGap(
            what=f"figures, effects and declared tables of {report.name}",
            why=report.incomplete,
            remedy=report.command or f"qualms run {report.name}",
            group=report.name,
        )
    for missing in report.missing:
        runs = "run" if missing.number == 1 else "runs"
        yield SiteGap(
            what=f"{missing.number} {runs} of {missing.method} on {missing.dataset}",
            why=missing.reason,
            remedy=missing.remedy or report.command,
            group=report.name,
        )
