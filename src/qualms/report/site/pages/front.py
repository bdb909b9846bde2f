"""The front page: findings in words, a leaderboard for each benchmark, and files."""

from collections.abc import Iterator
from dataclasses import replace

from qualms.report.site.contents import FileGroup, ShownBenchmark, SiteContents
from qualms.report.site.costs import cost_section
from qualms.report.site.leaderboard import leaderboard, main_tables
from qualms.report.site.markup import Html, element, link, name
from qualms.report.site.page import Fragment, Page, fragment, section
from qualms.report.site.verdicts import (
    Sentence,
    benchmark_sentences,
    file_sentences,
    sentence_list,
    telling,
)
from qualms.report.table import digits
from qualms.wording import plural

MOST_SENTENCES = 8
"""Findings on the front page, spread over benchmarks; their own pages have all."""
PAGE_LETTERS = 250_000
"""Letters after which further benchmarks are linked, without their leaderboards."""


def front(contents: SiteContents) -> Iterator[Page]:
    """Yield the front page."""
    yield Page(
        path="index.html",
        title=contents.title,
        nav="Overview",
        order=0,
        chips=tuple(_chips(contents)),
        simulated=contents.simulated,
        body=tuple(_sections(contents)),
    )


def _chips(contents: SiteContents) -> Iterator[str]:
    counts = {
        "benchmark": len(contents.benchmarks),
        "file": len(contents.files),
        "search": len(contents.searches),
    }
    for noun, count in counts.items():
        if count:
            yield f"{count} {plural(count, noun)}"
    rows = sum(len(shown.report.rows) for shown in contents.benchmarks)
    if rows:
        yield f"{rows} methods and pools"


def _sections(contents: SiteContents) -> Iterator[Fragment]:
    findings = sentence_list(list(_findings(contents)))
    if findings is not None:
        yield fragment(findings)
    letters = 0
    for shown in contents.benchmarks:
        with_board = letters < PAGE_LETTERS
        parts = _benchmark(shown, with_board=with_board, paper=contents.on_paper)
        board = section(
            f"index-{shown.slug}", shown.report.title, *parts, about=shown.report.note
        )
        letters += len(board.html.text)
        yield board
    if contents.groups:
        yield section("index-files", "Files", _files(contents))
    if contents.searches:
        yield section("index-searches", "Searches", _searches(contents))
    if contents.benchmarks:
        yield section("index-evaluated", "What was evaluated", _facts(contents))
    if contents.gaps:
        count = len(contents.gaps)
        yield fragment(
            element(
                "p",
                link("gaps.html", f"{count} {plural(count, 'thing')} missing"),
                ", with the commands that make them.",
                class_="note",
            )
        )


def _findings(contents: SiteContents) -> Iterator[Sentence]:
    """Yield the first findings of each benchmark, with its name before them."""
    if not contents.benchmarks:
        return
    most = max(1, MOST_SENTENCES // len(contents.benchmarks))
    for shown in contents.benchmarks[:MOST_SENTENCES]:
        tables = main_tables(shown.report)
        every = benchmark_sentences(shown.report, tables, shown.slug)
        for each in telling(every, most):
            of = element("span", name(shown.report.name), ": ", class_="of")
            yield replace(each, words=[of, each.words])


def _benchmark(
    shown: ShownBenchmark, *, with_board: bool, paper: bool
) -> Iterator[Fragment | Html | None]:
    report = shown.report
    tables = main_tables(report)
    yield element("p", link(f"{shown.slug}.html", f"Everything about {report.name}"))
    if tables and with_board:
        yield leaderboard(shown, tables, "index")
        yield cost_section(shown, tables, "index", paper=paper)


def _files(contents: SiteContents) -> Html:
    return element("ul", map(_card, contents.groups), class_="cards")


def _searches(contents: SiteContents) -> Html:
    """Return each search with its best value."""
    items = []
    for shown in contents.searches:
        report = shown.report
        first = report.objectives[0]
        best = report.best
        words = f"{len(report.trials)} {plural(len(report.trials), 'trial')}"
        if best is not None:
            words += f", best {first.label} {digits(best.values[0])}"
        items.append(
            element(
                "li",
                element("h3", link(f"{shown.slug}.html", name(report.title))),
                element("p", words, class_="small"),
            )
        )
    return element("ul", items, class_="cards")


def _card(group: FileGroup) -> Html:
    pieces = []
    for file in group.files:
        results = file.results
        items = f"{results.task}, {results.n:,} {plural(results.n, 'item')}"
        pieces += [
            element("h3", link(f"{group.slug}.html", name(results.name))),
            element("p", items, class_="small"),
            _short(group, file.slug),
        ]
    return element("li", pieces)


def _short(group: FileGroup, file: str) -> Html:
    """Return the verdict of a file in short lines."""
    results = next(each.results for each in group.files if each.slug == file)
    lines = [
        element("li", f"{each.sign} ", each.words)
        for each in file_sentences(results, "")
    ]
    return element("ul", lines, class_="small plain")


def _facts(contents: SiteContents) -> Html:
    facts = []
    for shown in contents.benchmarks:
        report = shown.report
        seconds = None if report.seconds is None else f"{report.seconds:,.0f} s of runs"
        details = (
            f"{len(report.rows)} {plural(len(report.rows), 'row')} on"
            f" {len(report.variants)} {plural(len(report.variants), 'dataset')}",
            "simulated data" if report.simulated else "real data",
            f"judged {report.when.partition('T')[0]}" if report.when else None,
            seconds,
            f"qualms {report.versions['qualms']}" if report.versions else None,
        )
        facts.append(
            element(
                "div",
                element("dt", name(f"{report.name}, {report.preset or 'no preset'}")),
                element(
                    "dd",
                    f"{len(report.table):,} numbers",
                    [element("small", words) for words in details if words],
                    element("small", element("code", report.command))
                    if report.command
                    else None,
                ),
            )
        )
    return element("dl", facts, class_="facts")
