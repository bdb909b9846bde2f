"""What a plan does on new items, in a terminal and as JSON."""

from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from rich.console import Console

from qualms import __version__
from qualms.evaluate import AppliedPlan, Departure, Workload
from qualms.evaluate.refer.applied import interval_words
from qualms.report.refer import indented, words_table
from qualms.report.refer_json import PLAN_FORMAT, ends, json_numbers
from qualms.report.table import Table, digits
from qualms.report.terminal import escape, print_table

LISTED = 5
STYLES = {
    "alike": "bold green",
    "slightly unlike": "bold yellow",
    "unlike": "bold red",
    "too few items": "bold",
}
READING = (
    "differ by: the most that a share of items moved, of those below any value or of "
    "any set of classes; by chance: what that is on average where nothing changed; "
    "p: corrected for two tests, * where it is {:.2g} or less."
)
OUTPUTS = (
    "The check sees what the network says, not whether it is right: a network can be "
    "wrong in new ways with outputs as before."
)


def print_applied(
    applied: AppliedPlan, *, listed: bool = True, console: Console | None = None
) -> None:
    """Print which items to refer, the workload, and whether the plan is for them.

    Args:
        applied: What `apply` gave.
        listed: Whether the first items of the list are shown.
        console: Where to print.
    """
    console = console or Console()
    work = applied.workload
    of = f" of {work.clusters:,} clusters" if work.clusters else ""
    said = f"[bold]{escape(applied.name)}[/]: {work.items:,} new items{of}"
    console.print(said, highlight=False)
    for line in _workload(applied):
        indented(console, line)
    for warning in applied.warnings:
        console.print(f"[bold red]warning:[/] {escape(warning)}", highlight=False)
    console.print()
    check = applied.check
    style = STYLES[check.verdict]
    console.print(f"[{style}]{check.verdict.capitalize()}.[/] {check.sentence}")
    print_table(_departures(applied), console=console)
    for line in (READING.format(1.0 - check.level), OUTPUTS):
        console.print(line, style="dim", highlight=False)
    if listed and len(applied.items):
        console.print()
        print_table(_list(applied), console=console)
    for note in applied.notes:
        console.print(f"note: {escape(note)}", style="dim", highlight=False)


def applied_to_json(applied: AppliedPlan) -> dict[str, Any]:
    """Plain data of an applied plan; stable within a `format`."""
    check = applied.check
    whole = {
        "format": PLAN_FORMAT,
        "qualms": __version__,
        "name": applied.name,
        "rule": applied.rule,
        "promise": applied.promise,
        "workload": _workload_data(applied.workload),
        "check": {
            "verdict": check.verdict,
            "sentence": check.sentence,
            "items": check.items,
            "reference": check.reference,
            "level": check.level,
            "departures": [asdict(each) for each in check.departures],
        },
        "items": [
            dict(zip(applied.items.columns, line, strict=True))
            for line in applied.items.first(len(applied.items))
        ],
        "warnings": list(applied.warnings),
        "notes": list(applied.notes),
    }
    plain: dict[str, Any] = json_numbers(whole)
    return plain


def _workload(applied: AppliedPlan) -> Iterator[str]:
    work = applied.workload
    number, low, high = work.expected
    yield f"[bold]{escape(applied.rule)}[/]"
    goes = "goes" if work.referred == 1 else "go"
    yield (
        f"[bold]{work.referred:,} {goes} to the expert[/], the network decides "
        f"{work.items - work.referred:,}."
    )
    share, planned = work.share, work.planned
    per_thousand = [round(1000 * end) for end in (share.value, share.low, share.high)]
    yield (
        f"Workload {interval_words(share)}: of 1,000 such items about "
        f"{per_thousand[0]} ({per_thousand[1]} to {per_thousand[2]})."
    )
    yield (
        f"Planned were {interval_words(planned)}: of {work.items:,} items about "
        f"{number:,} ({low:,} to {high:,})."
    )
    promise = applied.promise or "The plan promises nothing for new items."
    yield f"[dim]{escape(promise)}[/]"


def _departures(applied: AppliedPlan) -> Table:
    heads = ("", "of the plan", "now", "differ by", "by chance", "p")
    rows = [_departure(each) for each in applied.check.departures]
    work = applied.workload
    shares = (f"{100 * work.planned.value:.1f}%", f"{100 * work.share.value:.1f}%")
    change = f"{100 * abs(work.change.value):.1f} points"
    rows.append(("share referred", *shares, change, "", ""))
    return words_table(heads, rows)


def _departure(found: Departure) -> tuple[str, ...]:
    share = found.example.startswith("class")
    planned, now = (
        f"{100 * value:.1f}%" if share else digits(value)
        for value in (found.planned, found.now)
    )
    return (
        f"{found.what.replace('classes', 'class').replace('values', 'value')}"
        f" ({found.example.removeprefix('class ')})",
        planned,
        now,
        f"{100 * found.distance:.1f} points",
        f"{100 * found.by_chance:.1f}",
        f"{found.p:.2g}" + (" *" if found.differs else ""),
    )


def _list(applied: AppliedPlan) -> Table:
    heads = ("most uncertain first", "row", "uncertainty", "predicted")
    rows = [
        (str(item), f"{row:,}", digits(uncertainty), _value(predicted))
        for item, row, uncertainty, predicted, *_ in applied.items.first(LISTED)
    ]
    more = len(applied.items) - len(rows)
    if more:
        rows.append((f"and {more:,} more: --items FILE writes all", "", "", ""))
    return words_table(heads, rows)


def _value(predicted: float) -> str:
    return str(predicted) if isinstance(predicted, int) else digits(predicted)


def _workload_data(work: Workload) -> dict[str, Any]:
    number, low, high = work.expected
    return {
        "items": work.items,
        "clusters": work.clusters,
        "referred": work.referred,
        "share": ends(work.share),
        "planned": ends(work.planned),
        "change": ends(work.change),
        "expected": {"value": number, "low": low, "high": high},
    }
