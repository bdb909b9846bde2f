"""Pages of methods: what each is, and every score that it has anywhere."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from qualms.report.benchmark_report import RowFacts
from qualms.report.site.charts import file_link
from qualms.report.site.contents import ShownBenchmark, SiteContents
from qualms.report.site.markup import Child, Html, element, link, name
from qualms.report.site.method_scores import (
    cost_table,
    method_table,
    place_of,
    rows_of,
)
from qualms.report.site.method_texts import MethodText, method_page, method_text
from qualms.report.site.page import Fragment, Page, fragment, section
from qualms.report.site.paired import is_main, main_labels
from qualms.report.site.tables import exports, table_fragment
from qualms.report.table import Table, TableLine
from qualms.wording import plural

MOST_CELLS = 400
"""Numbers of a benchmark that a page shows; its CSV file has all of them."""
RULES = (
    "A score counts as best or tied if a model confidence set keeps the row; scores"
    " for which no winner is marked are not counted."
)


def methods(contents: SiteContents) -> Iterator[Page]:
    """Yield the list of methods and a page for each."""
    names = dict.fromkeys(
        row.method
        for shown in contents.benchmarks
        for row in shown.report.rows
        if row.method
    )
    if not names:
        return
    texts = {method: method_text(method) for method in names}
    yield Page(
        path="methods.html",
        title="Methods",
        nav="Methods",
        order=56,
        lead="What was evaluated, and every score of it.",
        simulated=contents.simulated,
        body=(fragment(element("ul", _cards(contents, texts), class_="cards")),),
    )
    for method, text in texts.items():
        yield _method(contents, method, text)


def _cards(contents: SiteContents, texts: dict[str, MethodText]) -> Iterator[Html]:
    for method, text in texts.items():
        page = f"{method_page(method)}.html"
        yield element(
            "li",
            element("h3", link(page, name(method))),
            element("p", text.what, class_="small") if text.what else None,
            [
                element("p", words, class_="small")
                for words in _places(contents, method)
            ],
        )


def _method(contents: SiteContents, method: str, text: MethodText) -> Page:
    page = method_page(method)
    shown = [s for s in contents.benchmarks if rows_of(s.report, method)]
    few = max(1, MOST_CELLS // len(shown))
    return Page(
        path=f"{page}.html",
        title=method,
        order=57,
        lead=text.what,
        simulated=any(each.report.simulated for each in shown),
        body=(
            fragment(
                element("p", link("methods.html", "All methods"), class_="small"),
                element("ul", _place_items(shown, method), class_="plain"),
                element("p", RULES, class_="note"),
            ),
            section(f"{page}-what", "What it is", *_what(method, text)),
            section(
                f"{page}-options", "Options in these runs", *_options(shown, method)
            ),
            *(_scores(each, method, page, few) for each in shown),
        ),
    )


def _place_items(shown: Sequence[ShownBenchmark], method: str) -> Iterator[Html]:
    for each in shown:
        page = f"{each.slug}.html"
        yield element(
            "li", link(page, name(each.report.title)), f": {_place(each, method)}"
        )


def _places(contents: SiteContents, method: str) -> Iterator[str]:
    for shown in contents.benchmarks:
        if rows_of(shown.report, method):
            yield f"{shown.report.name}: {_place(shown, method)}"


def _place(shown: ShownBenchmark, method: str) -> str:
    rows = tuple(row.name for row in rows_of(shown.report, method))
    tied, ranked, others = place_of(shown.report.table.where(row=rows).computed())
    if not ranked:
        return f"{others} {plural(others, 'number')}, of which none has a winner"
    return f"best or tied with the best in {tied} of {ranked} numbers with a winner"


def _what(method: str, text: MethodText) -> Iterator[Html]:
    for paragraph in text.paragraphs:
        yield element("p", paragraph)
    if text.paper:
        paper: Child = text.paper
        yield element(
            "p", "Paper: ", link(text.address, paper) if text.address else paper
        )
    if not text.what:
        yield element(
            "p",
            "The code of ",
            name(method),
            " is not known where this site was made, so that nothing is said of it.",
            class_="note",
        )
    if text.defaults:
        defaults = ", ".join(f"{option}={value}" for option, value in text.defaults)
        yield element("p", "Options and defaults: ", element("code", defaults))


def _options(shown: Sequence[ShownBenchmark], method: str) -> Iterator[Html]:
    items = [
        element(
            "li",
            name(each.report.name),
            ", ",
            name(row.label),
            f": {_options_of(row)}",
        )
        for each in shown
        for row in rows_of(each.report, method)
    ]
    yield element("ul", items)


def _options_of(row: RowFacts) -> str:
    options = ", ".join(f"{key}={value}" for key, value in row.options.items())
    pool = f"; {row.pool} networks are pooled" if row.pool > 1 else ""
    return f"{options or 'as the method has them by default'}{pool}"


def _scores(shown: ShownBenchmark, method: str, page: str, few: int) -> Fragment:
    report = shown.report
    rows = rows_of(report, method)
    table = method_table(report, rows)
    anchor = f"{page}-{shown.slug}"
    labels = main_labels(report)
    main = [line for line in table.lines if is_main(line.keys, labels)]
    others = [line for line in table.lines if not is_main(line.keys, labels)]
    most = max(10, few // max(1, len(rows)))
    every = exports(table, f"{anchor}-every")
    cost = cost_table(report, rows)
    return section(
        f"{anchor}-section",
        report.title,
        _part(table, main[:most], anchor),
        _folded(table, others[: max(0, most - len(main))], f"{anchor}-others"),
        fragment(
            Fragment(html=Html(), downloads=every),
            f"All {len(table.lines)} {plural(len(table.lines), 'line')}: ",
            [[file_link(each), " "] for each in every],
            tag="p",
            class_="small",
        ),
        table_fragment(cost, f"{anchor}-cost")
        if cost is not None
        else Fragment(html=Html()),
        about="Simulated data." if report.simulated else "",
    )


def _part(table: Table, lines: Sequence[TableLine], anchor: str) -> Fragment:
    """Return some lines of a table."""
    if not lines:
        return Fragment(html=Html())
    part = replace(table, lines=tuple(lines))
    return table_fragment(part, anchor, title=False, by_line=True)


def _folded(table: Table, lines: Sequence[TableLine], anchor: str) -> Fragment:
    """Return further lines of a table, which are opened by a click."""
    if not lines:
        return Fragment(html=Html())
    words = f"{len(lines)} more {plural(len(lines), 'score')}"
    return fragment(
        element("summary", words), _part(table, lines, anchor), tag="details"
    )
