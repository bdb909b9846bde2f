"""Pages of searches of options: the best one, and the trials."""

import math
from collections.abc import Iterator

from qualms.report.search_report import CONFIG, SearchReport, TrialFacts
from qualms.report.site.charts import file_link
from qualms.report.site.contents import ShownSearch, SiteContents
from qualms.report.site.markup import Child, Html, element, html_of, name
from qualms.report.site.page import Download, Fragment, Page, fragment, section
from qualms.report.site.search_figures import history_figures, option_text
from qualms.report.site.tables import table_fragment
from qualms.report.site.verdicts import Sentence, sentence_list
from qualms.report.table import Column, Table, TableCell, TableLine, digits
from qualms.wording import plural

MOST_IN_NAVIGATION = 3
"""More searches than this are found from the front page."""
LUCK = (
    "The value of the best of many trials is larger than what another seed gives: try"
    " the config with several seeds before you use it."
)


def searches(contents: SiteContents) -> Iterator[Page]:
    """Yield a page for each search."""
    few = len(contents.searches) <= MOST_IN_NAVIGATION
    for shown in contents.searches:
        report = shown.report
        yield Page(
            path=f"{shown.slug}.html",
            title=f"Search: {report.method} on {report.benchmark}/{report.variant}",
            nav=f"Tune {report.method}" if few else "",
            order=58,
            lead=f"Trials are judged on {report.items}." if report.items else "",
            chips=tuple(_chips(report)),
            simulated=report.simulated,
            body=tuple(_sections(shown, paper=contents.on_paper)),
        )


def _chips(report: SearchReport) -> Iterator[str]:
    yield f"{len(report.trials)} {plural(len(report.trials), 'trial')}"
    for words in (
        f"preset {report.preset}",
        f"selection {report.selection}",
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
            fragment(
                *history_figures(report, page, paper=paper), tag="div", class_="figures"
            ),
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


def _sentences(report: SearchReport, page: str) -> Iterator[Sentence]:
    first = report.objectives[0]
    best = report.best
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


def _rules(report: SearchReport) -> str:
    pruned = (
        ""
        if report.pruner == "none"
        else f" A trial that does badly by its loss on val is stopped early"
        f" ({report.pruner})."
    )
    return (
        "Rule of the search: trials are proposed where earlier ones did well (TPE)."
        f"{pruned} {LUCK}"
    )


def _best(report: SearchReport, page: str) -> Iterator[Fragment | Html]:
    best = report.best
    assert best is not None
    options = [
        element("li", element("code", f"{key} = {option_text(value)}"))
        for key, value in best.options.items()
    ]
    yield element("ul", options, class_="plain")
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
    best = trial == report.best
    values = [
        TableCell(mean=value, best=best and place == 0, repeats=1)
        for place, value in enumerate(trial.values)
    ]
    cells = values or [TableCell() for _ in report.objectives]
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
    when = f" on {report.when[:10]}" if report.when else ""
    return section(
        f"{page}-making",
        "How it was made",
        html_of([element("p", name(report.title, most=300))]),
        element("p", f"With {versions}{when}.", class_="small") if versions else None,
    )
