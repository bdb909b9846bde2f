"""Pages of searches of options: the best one, the trials, and what matters."""

import math
from collections.abc import Iterator, Sequence

from qualms.report.search_report import CONFIG, SearchReport, TrialFacts
from qualms.report.site.charts import file_link
from qualms.report.site.contents import ShownSearch, SiteContents
from qualms.report.site.markup import Child, Html, element, html_of, name
from qualms.report.site.page import Download, Fragment, Page, fragment, section
from qualms.report.site.search_figures import (
    front_figures,
    history_figures,
    importance_figures,
    option_text,
)
from qualms.report.site.tables import table_fragment
from qualms.report.site.verdicts import Sentence, sentence_list
from qualms.report.table import Column, Table, TableCell, TableLine, digits
from qualms.wording import plural

MOST_IN_NAVIGATION = 3
"""More searches than this are found from the front page."""
SAMPLERS = {
    "sobol": "trials lie evenly in the ranges (scrambled Sobol sequence)",
    "tpe": "trials are proposed where earlier ones did well (TPE)",
    "nsga2": "trials are children of the best of earlier generations (NSGA-II)",
}
LUCK = (
    "The value of the best of many trials is larger than what another seed gives: try"
    " the config with several seeds before you use it."
)


def searches(contents: SiteContents) -> Iterator[Page]:
    """Yield a page for each search."""
    few = len(contents.searches) <= MOST_IN_NAVIGATION
    methods = [shown.report.method for shown in contents.searches]
    for shown in contents.searches:
        report = shown.report
        yield Page(
            path=f"{shown.slug}.html",
            title=f"Search: {report.method} on {report.benchmark}/{report.variant}",
            nav=_nav(report, alone=methods.count(report.method) == 1) if few else "",
            order=58,
            lead=f"Trials are judged on {report.items}." if report.items else "",
            chips=tuple(_chips(report)),
            simulated=report.simulated,
            body=tuple(_sections(shown, paper=contents.on_paper)),
        )


def _nav(report: SearchReport, *, alone: bool) -> str:
    return f"Tune {report.method}" + ("" if alone else f", {report.sampler}")


def _chips(report: SearchReport) -> Iterator[str]:
    yield f"{len(report.trials)} {plural(len(report.trials), 'trial')}"
    for words in (
        f"preset {report.preset}",
        f"selection {report.selection}",
        f"sampler {report.sampler}",
        f"pruner {report.pruner}" if report.pruner != "none" else "",
        f"seed {report.seed}",
    ):
        if words:
            yield words


def _sections(shown: ShownSearch, *, paper: bool) -> Iterator[Fragment]:
    report, page = shown.report, shown.slug
    sentences = sentence_list(list(_sentences(report, page)), rules=_rules(report))
    if sentences is not None:
        yield fragment(sentences)
    if report.best is not None:
        yield section(f"{page}-best", "The best options", *_best(report, page))
    if report.trials:
        yield section(
            f"{page}-history",
            "Trials",
            _side_by_side(history_figures(report, page, paper=paper)),
        )
    figures = importance_figures(report, page, paper=paper)
    why = fragment(element("p", report.no_importance, class_="note"))
    yield section(f"{page}-importance", "What matters", _side_by_side(figures or [why]))
    if len(report.objectives) > 1:
        yield section(
            f"{page}-front",
            "The front",
            _side_by_side(front_figures(report, page, paper=paper))
            if report.valued
            else "No trial has values.",
        )
    if report.trials:
        table = trial_table(report)
        states = [{"state": trial.state} for trial in report.trials]
        yield section(
            f"{page}-trials",
            "All trials",
            table_fragment(table, f"{page}-table", title=False, filters=states),
        )
    yield _making(report, page)


def _side_by_side(figures: Sequence[Fragment]) -> Fragment:
    return fragment(*figures, tag="div", class_="figures")


def _sentences(report: SearchReport, page: str) -> Iterator[Sentence]:
    first = report.objectives[0]
    best = next((t for t in report.trials if t.number == report.best), None)
    if best is None:
        words: Child = "No trial has a value."
        yield Sentence(sign="✗", words=words, evidence=f"#{page}-trials")
    else:
        yield Sentence(
            sign="✓",
            words=[
                element("b", f"Trial {best.number}"),
                f" is best by {first.label}: ",
                element("b", digits(best.values[0])),
                ".",
            ],
            evidence=f"#{page}-best",
        )
    counts = {
        state: sum(trial.state == state for trial in report.trials)
        for state in ("done", "pruned", "failed", "under way")
    }
    states = ", ".join(f"{count} {state}" for state, count in counts.items() if count)
    yield Sentence(
        sign="≈", words=f"Of {len(report.trials)} trials: {states or 'none'}."
    )
    if len(report.objectives) > 1 and report.front:
        count = len(report.front)
        names = ", ".join(each.label for each in report.objectives)
        yield Sentence(
            sign="≈",
            words=f"{count} {plural(count, 'trial')} of them {_stand(count)} on the"
            f" front of {names}: no other is better in one without being worse in"
            " another.",
            evidence=f"#{page}-front",
        )


def _stand(count: int) -> str:
    return "stands" if count == 1 else "stand"


def _rules(report: SearchReport) -> str:
    sampler = SAMPLERS.get(report.sampler, report.sampler)
    pruned = (
        ""
        if report.pruner == "none"
        else f" A trial that does badly by its loss on val is stopped early"
        f" ({report.pruner})."
    )
    return f"Rule of the search: {sampler}.{pruned} {LUCK}"


def _best(report: SearchReport, page: str) -> Iterator[Fragment | Html]:
    best = next(trial for trial in report.trials if trial.number == report.best)
    options = [
        element("li", element("code", f"{key} = {option_text(value)}"))
        for key, value in best.options.items()
    ]
    yield element("ul", options, class_="plain")
    if report.command:
        yield element("p", "Run the benchmark with them:")
        yield element("pre", element("code", report.command))
    if report.config:
        config = Download(name=f"{page}-{CONFIG}", content=report.config.encode())
        yield fragment(
            Fragment(html=Html(), downloads=(config,)),
            "The config file: ",
            file_link(config),
            tag="p",
            class_="small",
        )
    yield element("p", LUCK, class_="note")


def trial_table(report: SearchReport) -> Table:
    """Return every trial with its values and options."""
    arrows = {"higher": "↑", "lower": "↓"}
    values = [
        Column(
            label=f"{each.label} {arrows[each.better]}",
            group="value",
            keys={"objective": each.name},
        )
        for each in report.objectives
    ]
    names = list(dict.fromkeys(key for t in report.trials for key in t.options))
    if len(report.objectives) > 1:
        values.append(Column(label="on the front", group="value"))
    options = [
        Column(label=key, group="options", keys={"option": key}) for key in names
    ]
    return Table(
        name="trials",
        title="All trials",
        left=("trial", "state"),
        columns=(*values, *options),
        lines=tuple(_line(report, trial, names) for trial in report.trials),
        simulated=report.simulated,
        notes=tuple(
            f"Trial {trial.number}: {trial.error}"
            for trial in report.trials
            if trial.error
        )[:20],
    )


def _line(report: SearchReport, trial: TrialFacts, names: list[str]) -> TableLine:
    best = trial.number == report.best
    values = [
        TableCell(mean=value, best=best and place == 0, repeats=1)
        for place, value in enumerate(trial.values)
    ]
    cells = values or [TableCell() for _ in report.objectives]
    if len(report.objectives) > 1:
        on_front = trial.number in report.front
        cells.append(TableCell(text="yes" if on_front else "no"))
    return TableLine(
        labels=(str(trial.number), trial.state),
        cells=(*cells, *(_option(trial, key) for key in names)),
        keys={"trial": trial.number, "state": trial.state},
    )


def _option(trial: TrialFacts, key: str) -> TableCell:
    value = trial.options.get(key)
    if isinstance(value, float) and math.isfinite(value):
        return TableCell(mean=value, repeats=1)
    if isinstance(value, int) and not isinstance(value, bool):
        return TableCell(mean=float(value), repeats=1)
    return TableCell(text="" if value is None else str(value))


def _making(report: SearchReport, page: str) -> Fragment:
    versions = ", ".join(f"{key} {of}" for key, of in report.versions.items())
    when = f" on {report.when.partition('T')[0]}" if report.when else ""
    return section(
        f"{page}-making",
        "How it was made",
        html_of([element("p", name(report.title, most=300))]),
        element("p", f"With {versions}{when}.", class_="small") if versions else None,
    )
