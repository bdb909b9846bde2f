"""Referral plans, and what they do on new items, in words that a clinic can act on."""

import math
from collections.abc import Iterator, Sequence

from rich.console import Console
from rich.padding import Padding

from qualms import scores
from qualms.referral import (
    AppliedPlan,
    Departure,
    Measure,
    Outcome,
    ReferralPlan,
    Workload,
    referral_of,
)
from qualms.referral.shares import (
    exact_percent,
    lower_percent,
    percent,
    percent_interval,
)
from qualms.report._printed import sparkline
from qualms.report._scored import ARROW
from qualms.report._terminal import escape, print_table
from qualms.report.table import Column, Table, TableCell, TableLine, digits
from qualms.scores import Estimate, about
from qualms.wording import plural

SHARES = ("accuracy", "balanced_accuracy", "sensitivity", "specificity")
LARGE = 1000
"""Numbers from here on have no decimals."""
LISTED = 5
"""Items to refer that are shown."""
PER_CLUSTER = "of one random item per cluster"
EXPERT = "* network and expert together, an expert who is always right"
VERDICTS = {
    "met": "met",
    "missed": "[bold red]missed[/]",
    "undecided": "cannot be told from so few items",
}
LIKENESS_STYLES = {
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
OUTPUTS_ONLY = (
    "The check sees what the network says, not whether it is right: a network can be "
    "wrong in new ways with outputs as before."
)


def print_plan(plan: ReferralPlan, *, console: Console | None = None) -> None:
    """Print the rule, its promise, what it does on every set, and other choices.

    Of a plan that was read from its file, these are the rule and the promise.
    """
    console = console or Console()
    console.print(_headline(plan), highlight=False)
    for line in (_rule(plan), *_promise_lines(plan)):
        _indented(console, line)
    _print_warnings(console, plan.warnings)
    for outcome in plan.outcomes:
        console.print()
        _print_outcome(console, plan, outcome)
    if plan.offers:
        console.print()
        print_table(_offers(plan), console=console)
    if plan.outcomes:
        console.print(EXPERT, style="dim", highlight=False)
    _print_notes(console, plan.notes)


def print_applied(
    applied: AppliedPlan, *, listed: bool = True, console: Console | None = None
) -> None:
    """Print which items to refer, the workload, and whether the plan is for them.

    Args:
        applied: The result of `plan.apply`.
        listed: Whether the first items of the list are shown.
        console: Where to print.
    """
    console = console or Console()
    work, check = applied.workload, applied.check
    clusters = f" of {work.clusters:,} clusters" if work.clusters else ""
    head = f"[bold]{escape(applied.name)}[/]: {work.items:,} new items{clusters}"
    console.print(head, highlight=False)
    for line in _workload_lines(applied):
        _indented(console, line)
    _print_warnings(console, applied.warnings)
    console.print()
    style = LIKENESS_STYLES[check.verdict]
    console.print(f"[{style}]{check.verdict.capitalize()}.[/] {check.sentence}")
    print_table(_departures(applied), console=console)
    for line in (READING.format(1.0 - check.level), OUTPUTS_ONLY):
        console.print(line, style="dim", highlight=False)
    if listed and len(applied.items):
        console.print()
        print_table(_items_to_refer(applied), console=console)
    _print_notes(console, applied.notes)


def _indented(console: Console, line: str) -> None:
    """Print a line below a heading."""
    console.print(Padding(line, (0, 0, 0, 2)), highlight=False)


def _print_warnings(console: Console, warnings: Sequence[str]) -> None:
    for warning in warnings:
        console.print(f"[bold red]warning:[/] {escape(warning)}", highlight=False)


def _print_notes(console: Console, notes: Sequence[str]) -> None:
    for note in notes:
        console.print(f"note: {escape(note)}", style="dim", highlight=False)


def _headline(plan: ReferralPlan) -> str:
    request = plan.request
    name = plan.outcomes[0].label if plan.outcomes else plan.made_on.name
    if request.budget is not None:
        text = f"refer at most {exact_percent(request.budget)} of the items"
    else:
        share = referral_of(plan.task).accuracy
        label = share if share == "accuracy" else about(getattr(scores, share)).label
        least = (
            f"{label if name == 'accuracy' else name} {exact_percent(x)}"
            for name, x in request.at_least.items()
        )
        text = f"the kept items must reach {' and '.join(least)}"
    return f"[bold]Referral plan[/] from {escape(name)}: {text}"


def _rule(plan: ReferralPlan) -> str:
    if not plan.found:
        name = escape(plan.uncertainty.name)
        return f"[bold red]No threshold on the {name} can promise that.[/]"
    rule = f"[bold]{escape(plan.rule.removesuffix('.'))}[/]"
    if math.isinf(plan.threshold):
        return f"{rule}: the network decides all of them."
    return f"{rule}; the network decides the rest."


def _promise_lines(plan: ReferralPlan) -> Iterator[str]:
    """Yield the lines on the promise: for which items, and with which confidence."""
    promise = plan.promise
    if promise is None:
        yield "Nothing is promised for new items: see the intervals below."
        return
    units = "clusters" if plan.clustered else "items"
    accuracy = referral_of(plan.task).promise
    if plan.found:
        per = f", {PER_CLUSTER}" if plan.clustered else ""
        words = promise.words(accuracy=accuracy)
        yield f"Promise for new {units} like these{per}: {words}."
    else:
        per = f" {PER_CLUSTER}" if plan.clustered else ""
        yield (
            f"The most that {promise.items:,} independent items can promise{per}: "
            f"{promise.words(lower_percent, accuracy=accuracy)},"
            f" {_threshold(plan)}. The numbers below "
            "are about that."
        )
        yield _remedy(plan)
    yield (
        f"[dim]Confidence {promise.confidence:g}: at least "
        f"{exact_percent(promise.confidence)} of such sets of {promise.items:,} "
        f"{units} lead to a promise that is true. It says nothing of items unlike "
        "these.[/]"
    )


def _threshold(plan: ReferralPlan) -> str:
    if math.isinf(plan.shown.threshold):
        return "referring none"
    referred = percent(plan.shown.referred)
    return f"with a threshold of {plan.shown.rounded!r}, which refers {referred}"


def _remedy(plan: ReferralPlan) -> str:
    """Return what would help where no threshold passes."""
    if plan.needed is not None:
        return f"About {plan.needed:,} items like these would be enough to promise it."
    if plan.observed is None:
        return "Even on these items themselves no threshold reaches it."
    return "Not even a hundred times as many items like these would promise it."


def _print_outcome(console: Console, plan: ReferralPlan, outcome: Outcome) -> None:
    first = outcome is plan.outcomes[0]
    clusters = f" of {outcome.clusters:,} clusters" if outcome.clusters else ""
    chosen = ", which the plan was made from" if first else ""
    console.print(
        f"[bold]{escape(outcome.label)}[/]: {outcome.n:,}"
        f" {plural(outcome.n, 'item')}{clusters}{chosen}",
        highlight=False,
    )
    print_table(_measures(plan, outcome), console=console)
    _indented(console, _per_thousand(outcome))
    bounds = {"budget": plan.request.budget or 0.0, **plan.request.at_least}
    for name, verdict in outcome.verdicts.items():
        bound = exact_percent(bounds[name])
        _indented(console, f"{name} {bound}, as asked for: {VERDICTS[verdict]}")
    _indented(console, _curve(outcome))
    if outcome.groups:
        print_table(_groups(outcome), console=console)


def _measures(plan: ReferralPlan, outcome: Outcome) -> Table:
    heads = ("referring none", "kept by the plan", "with expert*")
    rows = [("  referred", "0.0%", _interval(outcome.referred, share=True), "")]
    rows += [_measure_row(measure) for measure in outcome.measures]
    return _words_table((f"{plan.level:.0%} intervals", *heads), rows)


def _measure_row(measure: Measure) -> tuple[str, str, str, str]:
    share = measure.score in SHARES
    together = "" if math.isnan(measure.with_expert) else percent(measure.with_expert)
    if together and not share:
        large = abs(measure.with_expert) >= LARGE
        together = digits(measure.with_expert, None if large else 3)
    kept_items = _interval(measure.kept, share=share)
    if math.isnan(measure.kept.value):
        kept_items = f"undefined: {measure.why}"
    return (
        f"{ARROW[measure.better]} {measure.label}",
        _interval(measure.before, share=share),
        kept_items,
        together,
    )


def _words_table(
    heads: tuple[str, ...], rows: Sequence[tuple[str, ...]], *, title: str = ""
) -> Table:
    """Return a table of words, as a clinic reads them."""
    return Table(
        name="",
        title=title,
        left=heads[:1],
        columns=tuple(Column(label=head) for head in heads[1:]),
        lines=tuple(
            TableLine(
                labels=row[:1],
                cells=tuple(TableCell(text=text or " ") for text in row[1:]),
            )
            for row in rows
        ),
    )


def _per_thousand(outcome: Outcome) -> str:
    counts = outcome.per_thousand
    referred = round(counts.referred)
    text = (
        f"Of 1,000 such items {referred} go to the expert; the network decides "
        f"{1000 - referred}"
    )
    if math.isnan(counts.wrong):
        return f"{text}."
    wrong, kinds = round(counts.wrong), ""
    if not math.isnan(counts.missed):
        missed = round(counts.missed)
        kinds = f" ({missed} missed, {wrong - missed} false alarms)" if wrong else ""
    return f"{text}, {wrong} of them wrongly{kinds}."


def _curve(outcome: Outcome) -> str:
    curve = outcome.curve
    if curve is None:
        return ""
    # The last tenth is the noise of few items.
    values = curve.y[: max(1, math.floor(0.9 * len(curve.y)))]
    first, last = float(values[0]), float(values[-1])
    line = sparkline(values, width=28)
    shares = {"referral_accuracy": "accuracy", "referral_recall_at_1": "R@1"}
    if label := shares.get(curve.name):
        change = f"{percent(first)} → {percent(last)}"
        return f"{label} kept {line} {change} referring 0 → 90%"
    return f"error kept {line} {first:.3g} → {last:.3g} referring 0 → 90%"


def _groups(outcome: Outcome) -> Table:
    rows = []
    for group in outcome.groups:
        accuracy = group.measure("accuracy")
        row = (
            group.subset.removeprefix("group="),
            f"{group.n:,}",
            _interval(group.referred, share=True),
            percent(accuracy.before.value),
            _interval(accuracy.kept, share=True) if group.kept else "none is kept",
        )
        rows.append(row)
    label = outcome.measure("accuracy").label
    heads = ("items", "referred", f"{label} referring none", f"{label} kept")
    return _words_table(("group", *heads), rows)


def _offers(plan: ReferralPlan) -> Table:
    rows = [
        (
            percent(offer.cutoff.referred),
            "-" if math.isinf(offer.cutoff.threshold) else repr(offer.cutoff.rounded),
            percent(offer.cutoff.accuracy),
            lower_percent(offer.promised),
        )
        for offer in plan.offers
    ]
    promised = f"promised (confidence {plan.request.effective_confidence:g})"
    label = plan.outcomes[0].measure("accuracy").label
    heads = ("referred", "threshold", f"{label} kept", promised)
    per = f", promised {PER_CLUSTER}" if plan.clustered else ""
    title = f"Other choices on {plan.outcomes[0].label}{per}"
    return _words_table(heads, rows, title=title)


def _interval(estimate: Estimate, *, share: bool) -> str:
    if math.isnan(estimate.value):
        return "undefined"
    if share:
        return percent_interval(estimate)
    decimals = 3 if abs(estimate.value) < LARGE else None
    low, high = digits(estimate.low, decimals), digits(estimate.high, decimals)
    return f"{digits(estimate.value, decimals)} [{low}, {high}]"


def _workload_lines(applied: AppliedPlan) -> Iterator[str]:
    work = applied.workload
    yield f"[bold]{escape(applied.rule)}[/]"
    goes = "goes" if work.referred == 1 else "go"
    yield (
        f"[bold]{work.referred:,} {goes} to the expert[/], the network decides "
        f"{work.items - work.referred:,}."
    )
    yield from _workload_shares(work)
    promise = applied.promise or "The plan promises nothing for new items."
    yield f"[dim]{escape(promise)}[/]"


def _workload_shares(work: Workload) -> Iterator[str]:
    share = work.share
    number, low, high = (round(1000 * x) for x in (share.value, share.low, share.high))
    yield (
        f"Workload {percent_interval(share)}: of 1,000 such items about "
        f"{number} ({low} to {high})."
    )
    number, low, high = work.expected
    yield (
        f"Planned were {percent_interval(work.planned)}: of {work.items:,} items about "
        f"{number:,} ({low:,} to {high:,})."
    )


def _departures(applied: AppliedPlan) -> Table:
    heads = ("", "of the plan", "now", "differ by", "by chance", "p")
    rows = [_departure_row(each) for each in applied.check.departures]
    work = applied.workload
    shares = (percent(work.planned.value), percent(work.share.value))
    change = f"{100 * abs(work.change.value):.1f} points"
    rows.append(("share referred", *shares, change, "", ""))
    return _words_table(heads, rows)


def _departure_row(departure: Departure) -> tuple[str, ...]:
    share = departure.example.startswith("class")
    planned, now = (
        percent(value) if share else digits(value)
        for value in (departure.planned, departure.now)
    )
    quantity = departure.what.replace("classes", "class").replace("values", "value")
    return (
        f"{quantity} ({departure.example.removeprefix('class ')})",
        planned,
        now,
        f"{100 * departure.distance:.1f} points",
        f"{100 * departure.by_chance:.1f}",
        f"{departure.p:.2g}" + (" *" if departure.differs else ""),
    )


def _items_to_refer(applied: AppliedPlan) -> Table:
    heads = ("most uncertain first", "row", "uncertainty", applied.items.output)
    rows = [
        (str(item), f"{row:,}", digits(uncertainty), _predicted(predicted))
        for item, row, uncertainty, predicted, *_ in applied.items.first(LISTED)
    ]
    more = len(applied.items) - len(rows)
    if more:
        rows.append((f"and {more:,} more: --items FILE writes all", "", "", ""))
    return _words_table(heads, rows)


def _predicted(value: float | str) -> str:
    return str(value) if isinstance(value, int | str) else digits(value)
