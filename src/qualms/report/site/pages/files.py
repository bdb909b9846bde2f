"""Pages of predictions files: a verdict, curves, then scores grouped and folded."""

from collections.abc import Iterator

from qualms.evaluate import Results, with_shown_items
from qualms.report._group_spreads import spread_tables
from qualms.report._operating_points import point_tables
from qualms.report._scored import difference_table, score_notes
from qualms.report._thinned import thinned
from qualms.report.showing import showing_of
from qualms.report.site.charts import figure_of, on_paper
from qualms.report.site.contents import FileGroup, SiteContents
from qualms.report.site.file_figures import file_drawings
from qualms.report.site.file_scores import group_table, main_table, question_tables
from qualms.report.site.markup import Html, element, link, name
from qualms.report.site.page import Fragment, Page, fragment, section, slug
from qualms.report.site.tables import table_fragment
from qualms.report.site.verdicts import file_sentences, sentence_list
from qualms.report.table import Table
from qualms.wording import plural

RULES = (
    "Each answer compares the interval of a score with a cut: yes where the whole"
    " interval lies on the good side, no where it lies on the other, else it cannot be"
    " told. The command qualms docs verdict prints the rules of each task."
)
MOST_IN_NAVIGATION = 3
"""More pages of files than this are found from the front page."""
HEADER = ("method", "dataset", "split", "seed", "benchmark")


def files(contents: SiteContents) -> Iterator[Page]:
    """Yield a page for each file, or for a few with the same items."""
    few = len(contents.groups) <= MOST_IN_NAVIGATION
    for number, group in enumerate(contents.groups):
        yield Page(
            path=f"{group.slug}.html",
            title=group.title,
            nav=group.title if few else "",
            order=60 + number,
            chips=tuple(_chips(group)),
            body=(
                *(_links(group) if contents.linked else ()),
                *_sections(group, paper=contents.on_paper),
            ),
        )


def _links(group: FileGroup) -> Iterator[Fragment]:
    """Yield links to the other pages of files that can be read again."""
    if all(file.path is None for file in group.files):
        return
    pages = [*showing_of(group.files[0].results.task).pages]
    if len(group.files) > 1:
        pages.append(("compare.html", "differences"))
    links = [
        [" · " if number else "", link(*page)] for number, page in enumerate(pages)
    ]
    yield fragment("See also: ", *links, tag="p", class_="small")


def _chips(group: FileGroup) -> Iterator[str]:
    results = group.files[0].results
    yield results.task
    yield f"{results.n:,} {plural(results.n, 'item')}"
    if len(group.files) > 1:
        yield f"{len(group.files)} files with the same items"


def _sections(group: FileGroup, *, paper: bool) -> Iterator[Fragment]:
    scored = with_shown_items(group.scored)
    yield fragment(*(_verdict(group, each.results) for each in group.files))
    # Paper gets every point, and a page those that can be seen.
    drawings = list(file_drawings(scored.results))
    if drawings:
        figures = [
            figure_of(
                thinned(drawing),
                figure,
                downloads=on_paper(drawing, figure, None) if paper else (),
            )
            for drawing in drawings
            if (figure := slug(f"{group.slug}-{drawing.name}"))
        ]
        yield section(
            f"{group.slug}-curves",
            "Curves",
            fragment(*figures, tag="div", class_="figures"),
        )
    main = main_table(scored)
    yield section(
        f"{group.slug}-scores",
        "Main scores",
        table_fragment(main, f"{group.slug}-main-scores", title=False, by_line=True),
    )
    for table in (*point_tables(scored), *spread_tables(scored)):
        place = slug(f"{group.slug}-{table.name}")
        yield section(
            f"{place}-section",
            table.title,
            table_fragment(table, place, title=False, by_line=True),
        )
    yield section(f"{group.slug}-every", "All scores", *_folded(group))
    notes = [element("li", note) for note in score_notes(scored)]
    if notes:
        yield section(f"{group.slug}-notes", "Notes", element("ul", notes))


def _verdict(group: FileGroup, results: Results) -> Html:
    sentences = file_sentences(results, f"#{group.slug}-scores")
    several = len(group.files) > 1
    last = group.files[-1].results
    facts = [
        f"{field}: {value}"
        for field in HEADER
        if (value := getattr(results.header, field)) is not None
    ]
    if results.draws > 1:
        facts.append(f"{results.draws} draws")
    return element(
        "div",
        element("h2", name(results.name)) if several else None,
        element("p", ", ".join(facts), class_="small") if facts else None,
        # The rules of all files are the same: they stand below the last one.
        sentence_list(sentences, rules=RULES if results is last else ""),
    )


def _folded(group: FileGroup) -> Iterator[Fragment]:
    scored = with_shown_items(group.scored)
    tables = list(question_tables(scored))
    groups = group_table(scored)
    if groups is not None:
        tables.append(groups)
    if scored.comparison is not None and scored.comparison.contrasts:
        tables.append(difference_table(scored.comparison))
    for table in tables:
        yield _fold(group, table)


def _fold(group: FileGroup, table: Table) -> Fragment:
    count = f" ({len(table.lines)})"
    return fragment(
        element("summary", table.title, element("span", count, class_="small")),
        table_fragment(
            table, slug(f"{group.slug}-{table.name}"), title=False, by_line=True
        ),
        tag="details",
    )
