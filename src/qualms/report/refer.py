"""A referral plan in a terminal, in words that a clinic can act on."""

import math
from collections.abc import Iterator, Sequence

from rich.console import Console
from rich.padding import Padding

from qualms.evaluate import Measure, Outcome, ReferralPlan
from qualms.evaluate.refer.request import as_asked, promised
from qualms.report.printed import sparkline
from qualms.report.scored import ARROW
from qualms.report.table import Column, Table, TableCell, TableLine, digits
from qualms.report.terminal import escape, print_table
from qualms.scores import Estimate
from qualms.wording import plural

SHARES = ("accuracy", "balanced_accuracy", "sensitivity", "specificity")
LARGE = 1000
"""Numbers from here on have no decimals."""
PER_CLUSTER = "of one random item per cluster"
EXPERT = "* network and expert together, an expert who is always right"
VERDICTS = {
    "met": "met",
    "missed": "[bold red]missed[/]",
    "undecided": "cannot be told from so few items",
}


def print_plan(plan: ReferralPlan, *, console: Console | None = None) -> None:
    """Print the rule, its promise, what it does on every set, and other choices."""
    console = console or Console()
    console.print(_headline(plan), highlight=False)
    for line in (_rule(plan), *_promise_lines(plan)):
        indented(console, line)
    for warning in plan.warnings:
        console.print(f"[bold red]warning:[/] {escape(warning)}", highlight=False)
    for outcome in plan.outcomes:
        console.print()
        _print_outcome(console, plan, outcome)
    if plan.offers:
        console.print()
        print_table(_offers(plan), console=console)
    console.print(EXPERT, style="dim", highlight=False)
    for note in plan.notes:
        console.print(f"note: {escape(note)}", style="dim", highlight=False)


def indented(console: Console, line: str) -> None:
    """Print a line below a heading."""
    console.print(Padding(line, (0, 0, 0, 2)), highlight=False)


def _headline(plan: ReferralPlan) -> str:
    first, request = plan.outcomes[0], plan.request
    if request.budget is not None:
        asked = f"refer at most {as_asked(request.budget)} of the items"
    else:
        wanted = (f"{name} {as_asked(x)}" for name, x in request.targets.items())
        asked = f"the kept items must reach {' and '.join(wanted)}"
    return f"[bold]Referral plan[/] from {escape(_place(first))}: {asked}"


def _rule(plan: ReferralPlan) -> str:
    what = escape(plan.uncertainty)
    if not plan.found:
        return f"[bold red]No threshold on the {what} can promise that.[/]"
    if math.isinf(plan.threshold):
        return "[bold]Refer no item[/]: the network decides all of them."
    return (
        f"[bold]Refer an item when its {what} is {plan.shown.rounded!r} or more[/]; "
        "the network decides the rest."
    )


def _promise_lines(plan: ReferralPlan) -> Iterator[str]:
    """What may be relied on: for whom, and how sure."""
    promise = plan.promise
    if promise is None:
        yield "Nothing is promised for new items: see the intervals below."
        return
    clustered = plan.outcomes[0].clusters is not None
    units = "clusters" if clustered else "items"
    if plan.found:
        of = f", {PER_CLUSTER}" if clustered else ""
        said = promised(promise)
        yield f"Promise for new {units} like these{of}: {said}."
    else:
        of = f" {PER_CLUSTER}" if clustered else ""
        yield (
            f"The most that {promise.items:,} independent items can promise{of}: "
            f"{promised(promise, _lower)}, {_threshold(plan)}. The numbers below "
            "are about that."
        )
        yield _missing(plan)
    yield (
        f"[dim]Confidence {promise.confidence:g}: at least "
        f"{as_asked(promise.confidence)} of such sets of {promise.items:,} {units} "
        "lead to a promise that is true. It says nothing of items unlike these.[/]"
    )


def _threshold(plan: ReferralPlan) -> str:
    if math.isinf(plan.shown.threshold):
        return "referring none"
    referred = _share(plan.shown.referred)
    return f"with a threshold of {plan.shown.rounded!r}, which refers {referred}"


def _missing(plan: ReferralPlan) -> str:
    """What would help where no threshold passes."""
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
        f"[bold]{escape(_place(outcome))}[/]: {outcome.n:,}"
        f" {plural(outcome.n, 'item')}{clusters}{chosen}",
        highlight=False,
    )
    print_table(_measures(plan, outcome), console=console)
    indented(console, _per_thousand(outcome))
    for name, verdict in outcome.verdicts.items():
        wanted = plan.request.budget if name == "budget" else plan.request.targets[name]
        line = f"{name} {as_asked(wanted or 0.0)}, as asked for: {VERDICTS[verdict]}"
        indented(console, line)
    indented(console, _curve(outcome))
    if outcome.groups:
        print_table(_groups(outcome), console=console)


def _measures(plan: ReferralPlan, outcome: Outcome) -> Table:
    heads = ("referring none", "kept by the plan", "with expert*")
    rows = [("  referred", "0.0%", _interval(outcome.referred, share=True), "")]
    rows += [_row(measure) for measure in outcome.measures]
    return words_table((f"{plan.level:.0%} intervals", *heads), rows)


def _row(measure: Measure) -> tuple[str, str, str, str]:
    share = measure.score in SHARES
    together = "" if math.isnan(measure.with_expert) else _share(measure.with_expert)
    if together and not share:
        large = abs(measure.with_expert) >= LARGE
        together = digits(measure.with_expert, None if large else 3)
    kept = _interval(measure.kept, share=share)
    if math.isnan(measure.kept.value):
        kept = f"undefined: {measure.why}"
    return (
        f"{ARROW[measure.better]} {measure.label}",
        _interval(measure.before, share=share),
        kept,
        together,
    )


def words_table(
    heads: tuple[str, ...], rows: Sequence[tuple[str, ...]], *, title: str = ""
) -> Table:
    """A table of words, as a clinic reads them: shares in percent, others not."""
    return Table(
        name="",
        title=title,
        left=heads[:1],
        columns=tuple(Column(label=head) for head in heads[1:]),
        lines=tuple(
            TableLine(
                labels=row[:1], cells=tuple(TableCell(text=t or " ") for t in row[1:])
            )
            for row in rows
        ),
    )


def _per_thousand(outcome: Outcome) -> str:
    each = outcome.per_thousand
    referred = round(each.referred)
    if math.isnan(each.wrong):
        return (
            f"Of 1,000 such items {referred} go to the expert; the network decides "
            f"{1000 - referred}."
        )
    wrong, kinds = round(each.wrong), ""
    if not math.isnan(each.missed):
        missed = round(each.missed)
        kinds = f" ({missed} missed, {wrong - missed} false alarms)" if wrong else ""
    return (
        f"Of 1,000 such items {referred} go to the expert; the network decides "
        f"{1000 - referred}, {wrong} of them wrongly{kinds}."
    )


def _curve(outcome: Outcome) -> str:
    curve = outcome.curve
    if curve is None:
        return ""
    # The last tenth is the noise of few items.
    shown = curve.y[: max(1, math.floor(0.9 * len(curve.y)))]
    first, last = float(shown[0]), float(shown[-1])
    line = sparkline(shown, width=28)
    if curve.name == "referral_accuracy":
        range_ = f"{_share(first)} → {_share(last)}"
        return f"accuracy kept {line} {range_} referring 0 → 90%"
    return f"error kept {line} {first:.3g} → {last:.3g} referring 0 → 90%"


def _groups(outcome: Outcome) -> Table:
    rows = []
    for group in outcome.groups:
        accuracy = group.measure("accuracy")
        row = (
            group.subset.removeprefix("group="),
            f"{group.n:,}",
            _interval(group.referred, share=True),
            _share(accuracy.before.value),
            _interval(accuracy.kept, share=True) if group.kept else "none is kept",
        )
        rows.append(row)
    heads = ("items", "referred", "accuracy referring none", "accuracy kept")
    return words_table(("group", *heads), rows)


def _offers(plan: ReferralPlan) -> Table:
    own, sure = plan.outcomes[0], plan.request.sure
    of = "" if own.clusters is None else f", promised {PER_CLUSTER}"
    rows = []
    for offer in plan.offers:
        made = offer.choice
        cut = "-" if math.isinf(made.threshold) else repr(made.rounded)
        row = (
            _share(made.referred),
            cut,
            _share(made.accuracy),
            _lower(offer.promised),
        )
        rows.append(row)
    promised = f"promised (confidence {sure:g})"
    heads = ("referred", "threshold", "accuracy kept", promised)
    return words_table(heads, rows, title=f"Other choices on {_place(own)}{of}")


def _place(outcome: Outcome) -> str:
    items = outcome.subset.replace("_", "-")
    return ", ".join(part for part in (outcome.name, items) if part)


def _interval(found: Estimate, *, share: bool) -> str:
    if math.isnan(found.value):
        return "undefined"
    if share:
        ends = f"{100 * found.low:.1f}, {100 * found.high:.1f}"
        return f"{_share(found.value)} [{ends}]"
    decimals = 3 if abs(found.value) < LARGE else None
    low, high = digits(found.low, decimals), digits(found.high, decimals)
    return f"{digits(found.value, decimals)} [{low}, {high}]"


def _share(value: float) -> str:
    return f"{100 * value:.1f}%"


def _lower(bound: float) -> str:
    """A lower bound, which must not be rounded up."""
    return f"{math.floor(1000 * bound + 1e-9) / 10:.1f}%"
