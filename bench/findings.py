"""Write docs/findings.md: what the papers found, by their numbers and by ours.

    python bench/findings.py RUNS

RUNS holds the finished runs of all four demo presets (`qualms run --preset demo --out
RUNS`). They are judged again, which takes a minute.
"""

import sys
from pathlib import Path

from qualms.evaluate.benchmark import judge_plan
from qualms.evaluate.benchmark_results import BenchmarkResults, Check
from qualms.evaluate.findings import because, published_results
from qualms.report._findings import findings_summary
from qualms.shelf import find

PAGE = Path(__file__).parents[1] / "docs" / "findings.md"
MARK = "<!-- made by bench/findings.py from here on -->\n"
NAMES = ("retina", "values", "url", "regression")


def main(runs: Path) -> None:
    """Judge the demo presets and write the part of the page below the mark."""
    head = PAGE.read_text("utf-8").split(MARK)[0]
    parts = [head + MARK]
    for name in NAMES:
        benchmark = find("benchmarks", name)()
        ours = judge_plan(benchmark.plan("demo"), runs)
        parts += section(published_results(benchmark), ours)
    PAGE.write_text("\n".join(parts) + "\n", encoding="utf-8")


def section(printed: BenchmarkResults, ours: BenchmarkResults) -> list[str]:
    """Return the lines of one benchmark."""
    benchmark = ours.benchmark
    lines = [
        f"## `{benchmark.name}`",
        "",
        f"{benchmark.paper}. Printed numbers: {findings_summary(printed)}. Preset"
        f" `demo`, simulated: {findings_summary(ours)}.",
        "",
        "| finding | where | printed | preset `demo` | its numbers |",
        "|---|---|---|---|---|",
    ]
    for theirs, check in zip(printed.findings, ours.findings, strict=True):
        cells = (
            check.expectation.text,
            check.expectation.where,
            printed_answer(theirs),
            check.answer,
            because(check),
        )
        lines.append(f"| {' | '.join(cells)} |")
    return [*lines, ""]


def printed_answer(check: Check) -> str:
    """Return the answer of the printed numbers, with what leaves it open."""
    if not check.estimates:
        return "not printed as numbers"
    if check.answer == "cannot be told":
        return f"cannot be told: {because(check)}"
    return check.answer


if __name__ == "__main__":
    main(Path(sys.argv[1]))
