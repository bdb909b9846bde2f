"""Contents of a site: the one record that page builders read.

`read_contents` (`_read.py`) makes it of runs folders, results tables and predictions
files, and of results that are passed from Python.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from qualms.evaluate import Comparison, Results, Scored
from qualms.report.benchmark_report import BenchmarkReport
from qualms.report.search_report import SearchReport

TITLE = "Does it know when it does not know?"


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownBenchmark:
    """A judged benchmark, and where its page is."""

    slug: str
    """The page of the benchmark is `slug + ".html"`, and ids on it begin with it."""
    report: BenchmarkReport


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownSearch:
    """A search of options, and where its page is."""

    slug: str
    """The page of the search is `slug + ".html"`, and ids on it begin with it."""
    report: SearchReport


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoredFile:
    """A predictions file with its scores."""

    slug: str
    """Unique in the site; for names of data and ids that are about this file."""
    results: Results
    path: Path | None = None
    """Where the predictions are; None if they were passed as arrays."""
    val: Path | None = None
    """Validation predictions of the same run."""
    gallery: Path | None = None
    """Embeddings among which its neighbours were sought; None for its own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FileGroup:
    """Files that share a page: one, or a few with the same items."""

    slug: str
    """The page is `slug + ".html"`, and ids on it begin with it."""
    files: tuple[ScoredFile, ...]
    comparison: Comparison | None = None
    """Their differences, paired over items; None for one file."""

    @property
    def scored(self) -> Scored:
        """The results of the files, as tables take them."""
        results = tuple(file.results for file in self.files)
        return Scored(results=results, comparison=self.comparison)

    @property
    def title(self) -> str:
        """The names of the files."""
        return ", ".join(file.results.name for file in self.files)


@dataclass(frozen=True, slots=True, kw_only=True)
class SiteGap:
    """Something that the site could show and does not, and how to make it."""

    what: str
    """The missing thing, in a clause: "figures of cells, preset demo"."""
    why: str
    """Why, in a clause: "only its results table was given"."""
    remedy: str = ""
    """A command that makes it, or advice; "" where there is none."""
    group: str = ""
    """Its group, such as the name of a benchmark."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Made:
    """Command, time and versions by which the site was made."""

    command: str = ""
    when: str = ""
    """By ISO 8601."""
    versions: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class SiteContents:
    """Everything that pages may show."""

    title: str = TITLE
    benchmarks: tuple[ShownBenchmark, ...] = ()
    groups: tuple[FileGroup, ...] = ()
    """Predictions files, by page."""
    searches: tuple[ShownSearch, ...] = ()
    gaps: tuple[SiteGap, ...] = ()
    made: Made = Made()
    data: Path | None = None
    """Folder of prepared datasets, from which pages take pictures of items."""
    linked: bool = True
    """True if there are pages of items, plans and comparisons to link."""
    on_paper: bool = True
    """True to save figures as PDF too, where that is possible."""

    @property
    def files(self) -> tuple[ScoredFile, ...]:
        """Every predictions file."""
        return tuple(file for group in self.groups for file in group.files)

    @property
    def simulated(self) -> bool:
        """True if some of the data are simulated."""
        benchmarks = (shown.report.simulated for shown in self.benchmarks)
        searches = (shown.report.simulated for shown in self.searches)
        return any(benchmarks) or any(searches)
