"""What a site is made of: the one record that page builders read.

`read_contents` makes it of runs folders, results tables and predictions files, and
`write_site` of what is passed from Python.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from qualms.evaluate import Comparison, Results
from qualms.report.benchmark_report import BenchmarkReport


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownBenchmark:
    """A judged benchmark, and where its page is."""

    slug: str
    """The page of the benchmark is `slug + ".html"`, and ids on it begin with it."""
    report: BenchmarkReport


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoredFile:
    """A predictions file with its scores, and where its page is."""

    slug: str
    results: Results
    path: Path | None = None
    """Where the predictions are; None if they were passed as arrays."""
    val: Path | None = None
    """Validation predictions of the same run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedFiles:
    """Files with the same items, compared pair by pair of items."""

    names: tuple[str, ...]
    comparison: Comparison


@dataclass(frozen=True, slots=True, kw_only=True)
class SiteGap:
    """Something that the site could show and does not, and how to make it."""

    what: str
    """What is missing, in a clause: "figures of retina, preset demo"."""
    why: str
    """Why, in a clause: "only its results table was given"."""
    remedy: str = ""
    """A command that makes it; "" where there is none."""
    group: str = ""
    """What it belongs to, such as the name of a benchmark."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Made:
    """How the site was made."""

    command: str = ""
    when: str = ""
    """By ISO 8601."""
    versions: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class SiteContents:
    """Everything that pages may show."""

    title: str = "Does it know when it does not know?"
    benchmarks: tuple[ShownBenchmark, ...] = ()
    files: tuple[ScoredFile, ...] = ()
    compared: tuple[ComparedFiles, ...] = ()
    gaps: tuple[SiteGap, ...] = ()
    made: Made = Made()

    @property
    def simulated(self) -> bool:
        """Whether some of the data are simulated."""
        return any(shown.report.simulated for shown in self.benchmarks)
