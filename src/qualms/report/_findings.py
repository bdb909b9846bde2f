"""The findings of a benchmark's paper: printed in short, and as JSON."""

import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from qualms import __version__
from qualms.atomic import replacing
from qualms.evaluate.benchmark_results import AnswerWord, BenchmarkResults, Check
from qualms.evaluate.findings import finding_records
from qualms.report._terminal import escape
from qualms.wording import plural

FINDINGS_FORMAT = 1
UNTOLD: AnswerWord = "cannot be told"
MOST_CONTRADICTED = 3
"""Findings that do not hold which a terminal shows."""


ALONE = "numbers alone"
"""Ends the place of a finding that a paper states by a table, in no sentence."""


def findings_summary(results: BenchmarkResults) -> str:
    """Count the answers, e.g. "7 of 10 findings of the paper hold, 1 does not".

    Findings that only numbers of the paper state are counted apart.
    """
    alone = [c for c in results.findings if c.expectation.where.endswith(ALONE)]
    said = [check for check in results.findings if check not in alone]
    text = _counted(said, "of the paper")
    if alone:
        text += f"; {_counted(alone, 'that only its numbers state')}"
    if parts := sum(
        check.part and check.answer != UNTOLD for check in results.findings
    ):
        are = "is" if parts == 1 else "are"
        text += f"; {parts} {are} answered by a part of its methods or datasets"
    return text


def _counted(checks: Sequence[Check], whose: str) -> str:
    answers = Counter(check.answer for check in checks)
    count, holding = len(checks), answers["holds"]
    hold = "holds" if holding == 1 else "hold"
    parts = [f"{holding} of {count} {plural(count, 'finding')} {whose} {hold}"]
    if against := answers["does not hold"]:
        parts.append(f"{against} {'does' if against == 1 else 'do'} not")
    if unclear := answers[UNTOLD]:
        parts.append(f"{unclear} cannot be told")
    return ", ".join(parts)


def print_findings(results: BenchmarkResults, *, console: Console) -> None:
    """Print how many findings hold, and the first of those that do not."""
    if not results.findings:
        return
    summary = f"[bold]{findings_summary(results)}[/bold]{_data(results)}"
    console.print(summary, highlight=False)
    against = [c for c in results.findings if c.answer == "does not hold"]
    for check in against[:MOST_CONTRADICTED]:
        line = f"  does not hold: {check.expectation.text}"
        console.print(escape(line), highlight=False)
    if len(against) > MOST_CONTRADICTED:
        more = len(against) - MOST_CONTRADICTED
        console.print(f"  and {more} more on the page, index.html", highlight=False)


def _data(results: BenchmarkResults) -> str:
    """Say where the answers are of simulated data alone."""
    return ", on simulated data" if results.simulated else ""


def write_findings(results: BenchmarkResults, path: Path) -> Path:
    """Write all findings with their answers and numbers as JSON (docs/findings.md)."""
    data = {
        "format": FINDINGS_FORMAT,
        "qualms": __version__,
        "benchmark": results.benchmark.name,
        "version": results.benchmark.version,
        "preset": results.plan.preset_text,
        "findings": list(finding_records(results.findings)),
    }
    with replacing(path) as temporary:
        temporary.write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")
    return path
