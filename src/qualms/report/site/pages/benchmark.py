"""The page of a benchmark: findings, leaderboard, figures, tables, and its making."""

from collections.abc import Iterator, Sequence

from qualms.report.benchmark_report import BenchmarkReport, EffectAnswer
from qualms.report.figures import Drawing
from qualms.report.site.charts import figure_of, file_link, on_paper
from qualms.report.site.contents import ShownBenchmark, SiteContents
from qualms.report.site.costs import cost_section
from qualms.report.site.leaderboard import leaderboard, main_tables
from qualms.report.site.markup import Child, Html, element, link, name
from qualms.report.site.page import Fragment, Page, fragment, section, slug
from qualms.report.site.severity_curves import severity_figure
from qualms.report.site.table_pages import PlacedTable, placed_tables
from qualms.report.site.tables import signed_words
from qualms.report.site.verdicts import benchmark_sentences, sentence_list
from qualms.wording import plural

_CLASSES = {
    "held": "good",
    "holds": "good",
    "not held": "bad",
    "does not hold": "bad",
}


OPEN_FIGURES = 4
"""Figures of a benchmark that are not folded."""
MOST_IN_NAVIGATION = 8
"""More benchmarks than this are found from the front page."""


def benchmark(contents: SiteContents) -> Iterator[Page]:
    """Yield a page for each benchmark."""
    few = len(contents.benchmarks) <= MOST_IN_NAVIGATION
    for number, shown in enumerate(contents.benchmarks):
        report = shown.report
        placed = placed_tables(shown)
        yield Page(
            path=f"{shown.slug}.html",
            title=report.title,
            nav=report.name if few else "",
            order=10 + number,
            lead=report.note,
            chips=tuple(_chips(report)),
            simulated=report.simulated,
            body=tuple(_sections(shown, placed, paper=contents.on_paper)),
        )
        yield from _table_pages(shown, placed)


def _chips(report: BenchmarkReport) -> Iterator[str]:
    if report.paper:
        yield f"after {report.paper}"
    if report.preset:
        yield f"preset {report.preset}"
    if report.part:
        yield f"part of it: {report.part}"
    if report.rows:
        yield f"{len(report.rows)} {plural(len(report.rows), 'row')}"


def _sections(
    shown: ShownBenchmark, placed: Sequence[PlacedTable], *, paper: bool
) -> Iterator[Fragment]:
    report, tables = shown.report, main_tables(shown.report)
    if not report.complete:
        yield fragment(
            element(
                "p",
                "Only the results table of this benchmark was given. Figures, effects"
                " and declared tables need its folder; see ",
                link("gaps.html", "what is missing"),
                ".",
                class_="note",
            )
        )
    sentences = sentence_list(benchmark_sentences(report, tables, shown.slug))
    if sentences is not None:
        yield fragment(sentences)
    if tables:
        board = leaderboard(shown, tables, shown.slug)
        yield section(f"{shown.slug}-leaderboard", "Leaderboard", board)
    severity = severity_figure(shown, paper=paper)
    if severity is not None:
        title = "Every score against severity"
        yield section(f"{shown.slug}-severity", title, severity)
    if report.figures:
        yield _figures(shown, paper=paper)
    yield from _answers(shown)
    costs = cost_section(shown, tables, shown.slug, paper=paper)
    if costs is not None:
        yield section(f"{shown.slug}-costs", "Costs", costs)
    if placed:
        yield _table_list(shown, placed)
    yield _making(shown)


def _answers(shown: ShownBenchmark) -> Iterator[Fragment]:
    report = shown.report
    if report.effects:
        yield section(
            f"{shown.slug}-effects",
            "Expected effects",
            *_effects(report),
            about="What these data must show if the code is right.",
        )
    if report.findings:
        yield section(
            f"{shown.slug}-findings",
            "Findings of the paper",
            *_findings(report),
            about="Asked of the numbers of this page, with their intervals.",
        )


def _effects(report: BenchmarkReport) -> Iterator[Html]:
    """Yield the effects that were not seen, and those that were folded."""
    agreeing = [a for a in report.effects if a.answer == "held"]
    others = [a for a in report.effects if a.answer != "held"]
    if others:
        yield _answer_table(others)
    if agreeing:
        count = len(agreeing)
        words = f"{count} of {len(report.effects)} {'holds' if count == 1 else 'hold'}"
        yield element("details", element("summary", words), _answer_table(agreeing))


def _findings(report: BenchmarkReport) -> Iterator[Html]:
    """Yield the findings that are decided, and the others folded."""
    decided = [a for a in report.findings if a.answer in _CLASSES]
    others = [a for a in report.findings if a.answer not in _CLASSES]
    if decided:
        yield _answer_table(decided)
    if others:
        count = len(others)
        words = f"{count} {plural(count, 'finding')} that cannot be told by these runs"
        yield element("details", element("summary", words), _answer_table(others))


def _answer_table(answers: Sequence[EffectAnswer]) -> Html:
    rows = [
        element(
            "li",
            element("span", a.answer, class_=f"answer {_class(a)}"),
            element(
                "div",
                element("p", a.text),
                element("p", signed_words(a.numbers), class_="small")
                if a.numbers
                else None,
                element("p", a.meaning, class_="small") if a.meaning else None,
            ),
        )
        for a in answers
    ]
    return element("ul", rows, class_="answers")


def _class(answer: EffectAnswer) -> str:
    return _CLASSES.get(answer.answer, "warn")


def _figures(shown: ShownBenchmark, *, paper: bool) -> Fragment:
    folder = shown.report.folder
    captions: dict[str, Drawing] = {}
    figures = []
    for drawing in shown.report.figures:
        first = captions.setdefault(drawing.caption, drawing)
        name = _figure_name(shown, drawing)
        drawn = None if folder is None else folder / "figures"
        figures.append(
            figure_of(
                drawing,
                name,
                downloads=on_paper(drawing, name, drawn) if paper else (),
                caption=drawing.caption if first is drawing else _see(shown, first),
            )
        )
    return section(f"{shown.slug}-figures", "Figures", *_folded(figures))


def _folded(figures: Sequence[Fragment]) -> Iterator[Fragment]:
    """Yield the first figures, and the others folded."""
    first, others = figures[:OPEN_FIGURES], figures[OPEN_FIGURES:]
    yield from first
    if others:
        words = f"{len(others)} more {plural(len(others), 'figure')}"
        yield fragment(element("summary", words), *others, tag="details")


def _figure_name(shown: ShownBenchmark, drawing: Drawing) -> str:
    return slug(f"{shown.slug}-{drawing.name}")


def _see(shown: ShownBenchmark, first: Drawing) -> Child:
    """Point to the caption of another figure, which is the same."""
    anchor = f"#{_figure_name(shown, first)}-figure"
    return ["Read as ", link(anchor, name(first.title)), "."]


def _table_list(shown: ShownBenchmark, placed: Sequence[PlacedTable]) -> Fragment:
    """Return links to the tables, which have pages of their own."""
    items = [
        element(
            "li",
            link(f"{each.page}.html#{each.anchor}", name(each.title, most=200)),
            element("span", map(file_link, each.fragment.downloads), class_="exports"),
        )
        for each in placed
    ]
    return section(
        f"{shown.slug}-tables-list",
        "Tables",
        element("ul", items, class_="plain links"),
    )


def _table_pages(
    shown: ShownBenchmark, placed: Sequence[PlacedTable]
) -> Iterator[Page]:
    report = shown.report
    back = element("p", link(f"{shown.slug}.html", f"Everything about {report.name}"))
    for path in dict.fromkeys(each.page for each in placed):
        tables = [each.fragment for each in placed if each.page == path]
        yield Page(
            path=f"{path}.html",
            title=f"Tables of {report.name}",
            simulated=report.simulated,
            body=(fragment(back), *tables),
        )


def _making(shown: ShownBenchmark) -> Fragment:
    report = shown.report
    data = [
        element(
            "li",
            name(variant.label),
            ": simulated data" if variant.simulated else ": real data",
            f", shifted: {variant.shift}" if variant.shift else None,
        )
        for variant in report.variants
    ]
    versions = ", ".join(f"{name} {of}" for name, of in report.versions.items())
    hardware = f"Runs on {'; '.join(report.hardware)}." if report.hardware else ""
    return section(
        f"{shown.slug}-making",
        "How it was made",
        element("ul", data) if data else None,
        element("pre", element("code", report.command)) if report.command else None,
        element("p", f"With {versions}." if versions else None, class_="small"),
        element("p", hardware, class_="small") if hardware else None,
        element("ul", [element("li", note) for note in report.notes], class_="small"),
    )
