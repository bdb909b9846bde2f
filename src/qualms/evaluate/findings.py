"""Findings of papers: answered by the numbers that the papers print, and as records."""

import math
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

from qualms.evaluate.benchmark_results import BenchmarkResults, Check
from qualms.published import published
from qualms.results import Result, ResultsTable
from qualms.study import Benchmark

NORMAL = 1.96
"""Standard errors from a mean to the ends of its 95 % interval."""


def published_results(benchmark: Benchmark) -> BenchmarkResults:
    """Return the numbers that a paper prints as results of its largest preset.

    Their intervals are 1.96 standard errors to either side. For a paper that prints no
    standard errors, or only deviations over repeats, the means decide.

    Raises:
        ValueError: If the benchmark has no published numbers.
    """
    if benchmark.published is None:
        raise ValueError(
            f"benchmark {benchmark.name!r} has no published numbers; declare their file"
            " as `published`"
        )
    book = published(benchmark.published)
    factor = NORMAL if book.spread == "standard error" else 0.0
    preset = list(benchmark.presets)[-1]
    return BenchmarkResults(
        plan=benchmark.plan(preset),
        table=ResultsTable.of(_bounded(number, factor) for number in book.table),
    )


def printed_numbers(benchmark: Benchmark) -> dict[str, int]:
    """Return how many printed numbers decide each finding of a paper, by its text."""
    if benchmark.published is None or not benchmark.findings:
        return {}
    printed = published_results(benchmark)
    return {each.text: len(each.numbers(printed)) for each in benchmark.findings}


def _bounded(number: Result, factor: float) -> Result:
    width = factor * number.spread if math.isfinite(number.spread) else 0.0
    return replace(number, low=number.value - width, high=number.value + width)


def because(check: Check, *, absent: str = "not in these results") -> str:
    """Return the numbers that decided a finding in words, the most important first.

    Args:
        check: The finding.
        absent: Words for a finding without numbers.
    """
    if not check.estimates:
        return absent
    if not check.comparable:
        return "not comparable: the limit is a number of the paper's data"
    numbers = check.estimates.items()
    against = [name for name, number in numbers if check.misses(number)]
    fitting = [name for name, number in numbers if check.fits(number)]
    unclear = [n for n in check.estimates if n not in against and n not in fitting]
    parts = [f"{len(fitting)} of {len(numbers)} numbers fit"]
    if against:
        parts.append(f"against it: {_listed(check, against)}")
    if unclear:
        parts.append(f"unclear: {_listed(check, unclear)}")
    words = parts if against or unclear else [_listed(check, fitting)]
    return "; ".join([*words, *_part(check)])


def _part(check: Check) -> list[str]:
    """Say where a part of the paper's methods or datasets gives the answer."""
    if not check.part:
        return []
    return [f"a part: the paper has {check.printed} numbers"]


def _listed(check: Check, names: list[str], most: int = 3) -> str:
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(f"{n} {_number(check, n)}" for n in names[:most]) + more


def _number(check: Check, name: str) -> str:
    value, low, high = check.estimates[name]
    if not math.isfinite(value):
        return "missing"
    if not (math.isfinite(low) and math.isfinite(high)):
        return f"{value:.3f} (no interval)"
    return f"{value:.3f}" if low == high else f"{value:.3f} ({low:.3f} to {high:.3f})"


def finding_records(checks: Iterable[Check]) -> Iterator[dict[str, Any]]:
    """Yield each finding with its answer as plain data, None for undefined numbers."""
    for check in checks:
        finding = check.expectation
        yield {
            "finding": finding.text,
            "where": finding.where,
            "answer": check.answer,
            "because": because(check),
            "low": _plain(finding.low),
            "high": _plain(finding.high),
            "comparable": check.comparable,
            "printed": check.printed,
            "enough": "any" if finding.any_row else ("most" if finding.most else "all"),
            "numbers": [
                {"name": name, **{k: _plain(v) for k, v in number._asdict().items()}}
                for name, number in check.estimates.items()
            ],
        }


def _plain(number: float) -> float | None:
    return number if math.isfinite(number) else None
