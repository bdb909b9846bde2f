"""Tables on a page: numbers with their intervals as strips, and their exports.

They are plain HTML that needs no script. With it (`assets/table.js`) they are sorted by
their columns, and their lines chosen by labels.
"""

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median

from qualms.report._csv_files import table_csv
from qualms.report._latex import latex_table
from qualms.report.judged import ERROR
from qualms.report.site.charts import file_link
from qualms.report.site.definition_texts import defined_scores, definition_link
from qualms.report.site.markup import Child, Html, element, html_of, link, name
from qualms.report.site.page import Download, Fragment, fragment, slug
from qualms.report.table import (
    MARK,
    Column,
    Table,
    TableCell,
    TableLine,
    digits,
    interval_text,
    legend,
    remarks,
    with_spread,
)

WIDE, TALL = 92, 9
"""Size of a strip in CSS pixels."""
MOST_CHOICES = 12
"""Labels with more values than this are found by text, not chosen from a list."""
MOST_LINES = 200
"""Lines that are shown; the CSV file has all of them."""
MOST_CELLS = 900
"""Cells that are shown, so that a page weighs less than 500 kB."""
WIDE_COLUMNS, FOLDED_COLUMNS = 6, 12
"""More columns than this stand closer together, and show one group at a time."""
FEWEST_LINES = 10
"""Lines that are shown of however many columns."""
_HIGHER, _LOWER = "↑", "↓"
_WORDS = {_HIGHER: "higher is better", _LOWER: "lower is better"}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Scale:
    """Decimals and range by which the numbers of a column are printed and drawn."""

    decimals: int | None
    low: float
    high: float

    def across(self, value: float) -> float:
        """Return where a value stands on a strip."""
        share = (value - self.low) / ((self.high - self.low) or 1.0)
        return 4 + share * (WIDE - 8)


def table_fragment(  # noqa: PLR0913 - the parts of a table on a page
    table: Table,
    anchor: str,
    *,
    title: bool = True,
    filters: Sequence[Mapping[str, str]] = (),
    level: int = 3,
    by_line: bool = False,
    pages: Mapping[str, str] = {},
) -> Fragment:
    """Return a table with its strips, notes and exports.

    Args:
        table: The table.
        anchor: Its id, unique in the site; its files are named after it.
        title: Whether the title is shown.
        filters: For each line, labels by which lines are chosen; () for none.
        level: Level of the heading.
        by_line: Whether lines and not columns have a scale, as lines of scores do.
        pages: By the label `row` of a line, the page that it links.
    """
    places = table.filled()
    scales = _scales(table, places, by_line=by_line)
    downloads = exports(table, anchor)
    groups = table.groups(places)
    region = element(
        "div",
        element(
            "table",
            element("caption", table.title, class_="unseen"),
            _head(table, groups),
            _bodies(table, places, scales, filters, _group_numbers(groups), pages),
            data_sortable=True,
        ),
        class_="scroll",
        tabindex=0,
        role="region",
        aria_label=table.title,
    )
    bar = element(
        "div",
        _group_tabs(groups, folded=len(places) > FOLDED_COLUMNS),
        _choices(filters),
        element("span", map(file_link, downloads), class_="exports"),
        class_="bar",
    )
    return fragment(
        Fragment(html=Html(), downloads=downloads),
        element(f"h{level}", table.title) if title else None,
        element("p", table.about, class_="about") if table.about else None,
        bar,
        region,
        _meanings(table, places),
        _notes(table),
        tag="div",
        class_=_width_class(groups),
        id=anchor,
    )


def _width_class(groups: Sequence[tuple[str, list[int]]]) -> str:
    """Return the classes of a table, by the number of its columns."""
    count = sum(len(places) for _, places in groups)
    if count <= WIDE_COLUMNS:
        return "table"
    folded = count > FOLDED_COLUMNS and len(groups) > 1
    return "table wide folded" if folded else "table wide"


def exports(table: Table, anchor: str) -> tuple[Download, ...]:
    """Return a table as files of CSV and LaTeX."""
    stem = slug(anchor)
    texts = {"csv": table_csv(table), "tex": latex_table(table)}
    return tuple(
        Download(name=f"{stem}.{ending}", content=text.encode("utf-8", "replace"))
        for ending, text in texts.items()
    )


def comparable(table: Table, cell: TableCell) -> bool:
    """Return whether a published number may stand beside ours: of the same data."""
    return not (table.simulated or cell.published is None or cell.released is None)


def signed(number: str) -> str:
    """Return a number with the sign that printers use for minus."""
    return number.replace("-", "\N{MINUS SIGN}")


def signed_words(words: str) -> str:
    """Return words with that sign before negative numbers.

    >>> signed_words("two-sided -0.2 (-0.3 to 0.1)").replace("\N{MINUS SIGN}", "minus ")
    'two-sided minus 0.2 (minus 0.3 to 0.1)'
    """
    return re.sub(r"(?<![\w.])-(?=[\d.])", "\N{MINUS SIGN}", words)


def decimals_of(column: Column, cells: Sequence[TableCell]) -> int | None:
    """Return how many decimals a column has.

    By the rule of the Particle Data Group: of the median half-width, two digits are
    given if it begins with less than 3.55, else one.
    """
    halves = [(cell.high - cell.low) / 2 for cell in cells if cell.bounded]
    half = median(halves) if halves else 0.0
    if column.decimals is not None or not half > 0:
        return column.decimals
    power = math.floor(math.log10(half))
    more = 1 if half / 10**power < 3.55 else 0
    return min(6, max(0, more - power))


_Scales = Callable[[TableLine, int], _Scale]


def _scales(table: Table, places: Sequence[int], *, by_line: bool) -> _Scales:
    """Return a function from a line and a place to the scale of the cell."""
    if by_line:
        first = table.columns[0] if table.columns else Column(label="")
        of_lines = {
            id(line): _scale(table, first, [table.shown(at, line) for at in places])
            for line in table.lines
        }
        return lambda line, _: of_lines[id(line)]
    of_places = {
        place: _scale(
            table,
            table.columns[place],
            [table.shown(place, line) for line in table.lines],
        )
        for place in places
    }
    return lambda _, place: of_places[place]


def _scale(table: Table, column: Column, cells: Sequence[TableCell]) -> _Scale:
    values = [
        value
        for cell in cells
        for value in (cell.mean, cell.low, cell.high, *(cell.seeds or ()))
        if math.isfinite(value)
    ]
    values += [
        cell.published.mean
        for cell in cells
        if comparable(table, cell) and cell.published is not None
    ]
    return _Scale(
        decimals=decimals_of(column, cells),
        low=min(values, default=0.0),
        high=max(values, default=1.0),
    )


def _head(table: Table, groups: Sequence[tuple[str, list[int]]]) -> Html:
    first = None
    if any(head for head, _ in groups):
        cells = [
            element(
                "th",
                head,
                scope="colgroup",
                colspan=len(places),
                class_=f"group g{number}",
            )
            for number, (head, places) in enumerate(groups)
        ]
        first = element("tr", element("td", colspan=len(table.left)), cells)
    left = [
        _sorted_head(element("bdi", words), at, first="ascending")
        for at, words in enumerate(table.left)
    ]
    right = [
        _sorted_head(
            _head_words(table.columns[place]),
            len(table.left) + place,
            first="ascending" if _LOWER in table.columns[place].label else "descending",
            class_=f"n g{number}" + (" begins" if place == places[0] else ""),
        )
        for number, (_, places) in enumerate(groups)
        for place in places
    ]
    return element("thead", first, element("tr", left, right))


def _head_words(column: Column) -> list[Child]:
    """Return the head of a column; arrows are read out in words."""
    plain = column.head.replace(_HIGHER, "").replace(_LOWER, "")
    arrow = next((a for a in _WORDS if a in column.label or a in column.group), "")
    words: list[Child] = [element("bdi", " ".join(plain.split()))]
    if arrow and arrow in column.label:
        spoken = element("span", f", {_WORDS[arrow]}", class_="unseen")
        words += [" ", element("span", arrow, aria_hidden="true"), spoken]
    return words


def _sorted_head(
    words: Child, column: int, *, first: str, class_: str | None = None
) -> Html:
    button = element("button", words, type="button", data_first=first)
    return element("th", button, scope="col", data_column=column, class_=class_)


def _group_numbers(groups: Sequence[tuple[str, list[int]]]) -> dict[int, str]:
    """Return the classes of the cells of each column."""
    return {
        place: f"g{number}" + (" begins" if place == places[0] else "")
        for number, (_, places) in enumerate(groups)
        for place in places
    }


def _bodies(
    table: Table,
    places: list[int],
    scales: _Scales,
    filters: Sequence[Mapping[str, str]],
    classes: Mapping[int, str],
    pages: Mapping[str, str],
) -> Iterator[Html]:
    number, most = 0, _most_lines(len(places))
    for title, lines in table.sections():
        rows = []
        if title:
            span = len(table.left) + len(places)
            head = element("th", name(title), colspan=span, scope="colgroup")
            rows.append(element("tr", head, class_="section"))
        for line in lines:
            labels = filters[number] if number < len(filters) else {}
            number += 1
            if number <= most:
                rows.append(_row(table, line, places, scales, labels, classes, pages))
        yield element("tbody", rows)


def _most_lines(columns: int) -> int:
    """Return how many lines are shown of a table with so many columns."""
    return min(MOST_LINES, max(FEWEST_LINES, MOST_CELLS // max(1, columns)))


def _row(  # noqa: PLR0913 - the parts of a line
    table: Table,
    line: TableLine,
    places: list[int],
    scales: _Scales,
    labels: Mapping[str, str],
    classes: Mapping[int, str],
    pages: Mapping[str, str],
) -> Html:
    page = pages.get(str(line.keys.get("row", "")))
    words = name(line.labels[0])
    score = str(line.keys.get("score", ""))
    linked = definition_link(score, words) if page is None else link(page, words)
    first = element("th", linked, scope="row")
    left = [element("td", name(label) if label else None) for label in line.labels[1:]]
    cells = [
        _cell(table, table.shown(place, line), scales(line, place), classes[place])
        for place in places
    ]
    chosen = {f"data_l{at}": value for at, value in enumerate(labels.values())}
    return element("tr", first, left, cells, **chosen)


def _cell(table: Table, cell: TableCell, scale: _Scale, class_: str) -> Html:
    if cell.text:
        return element("td", name(cell.text), class_=class_)
    value = "" if math.isnan(cell.mean) else repr(cell.mean)
    if not value:
        dash = element("span", digits(math.nan), title=cell.why or cell.remark or None)
        return element("td", dash, class_=f"n {class_}", data_v="")
    number = signed(with_spread(cell.mean, math.nan, scale.decimals))
    interval = signed(interval_text(cell, scale.decimals))
    tie = None
    if cell.tied:
        spoken = element("span", "best or tied with the best, ", class_="unseen")
        tie = html_of([element("span", MARK, class_="tie", aria_hidden="true"), spoken])
    return element(
        "td",
        tie,
        element("b" if cell.best else "span", number, class_="number"),
        element("small", interval, title=cell.no_interval or None)
        if interval
        else None,
        _strip(table, cell, scale),
        _published(table, cell, scale),
        class_=f"n {class_}",
        data_v=value,
    )


def _strip(table: Table, cell: TableCell, scale: _Scale) -> Html | None:
    """Return dot and whisker on the scale of the column; a bracket for few seeds."""
    low, high = (cell.low, cell.high) if cell.bounded else cell.seeds or (None, None)
    if low is None or high is None or not math.isfinite(cell.mean):
        return None
    left, right = f"{scale.across(low):.1f}", f"{scale.across(high):.1f}"
    line = f"M{left},4.5H{right}" if cell.bounded else f"M{left},2v5M{right},2v5"
    marks = [element("path", d=line)]
    if comparable(table, cell) and cell.published is not None:
        at = scale.across(cell.published.mean)
        marks.append(element("path", d=f"M{at:.1f},0V9", class_="printed"))
    dot = element("circle", cx=f"{scale.across(cell.mean):.1f}", cy=4.5, r=2.6)
    return element(
        "svg",
        marks,
        dot,
        class_="strip",
        viewBox=f"0 0 {WIDE} {TALL}",
        aria_hidden="true",
    )


def _published(table: Table, cell: TableCell, scale: _Scale) -> Html | None:
    """Return the published number, and how far ours lies from it."""
    if not comparable(table, cell) or cell.published is None:
        return None
    printed = with_spread(cell.published.mean, cell.published.std, scale.decimals)
    words = f"paper {printed}"
    if math.isfinite(cell.difference):
        unit = "se" if table.spread == ERROR else "sd"
        words += f", {cell.difference:+.1f} {unit}"
    return element("small", signed(words), class_="paper", title=cell.remark or None)


def _group_tabs(
    groups: Sequence[tuple[str, list[int]]], *, folded: bool
) -> Html | None:
    """Return buttons that choose a group of columns on a narrow page.

    Of many columns there is one that shows all, on a wide page too.
    """
    if len(groups) < 2:
        return None
    buttons = [
        element(
            "button",
            head or "other",
            type="button",
            value=number,
            aria_pressed="true" if number == 0 else "false",
        )
        for number, (head, _) in enumerate(groups)
    ]
    if folded:
        buttons.append(
            element("button", "all", type="button", value="all", aria_pressed="false")
        )
    return element(
        "div", buttons, class_="tabs narrow", role="group", aria_label="Columns"
    )


def _choices(filters: Sequence[Mapping[str, str]]) -> Html | None:
    """Return lists and a field that choose lines by their labels."""
    if len(filters) < 2:
        return None
    lists = []
    for at, label in enumerate(filters[0]):
        values = list(dict.fromkeys(each.get(label, "") for each in filters))
        if 1 < len(values) <= MOST_CHOICES:
            options = [element("option", f"{label}: all", value="")]
            options += [element("option", value, value=value) for value in values]
            lists.append(
                element("select", options, data_label=at, aria_label=f"Choose {label}")
            )
    field = element(
        "input", type="search", placeholder="Filter", aria_label="Filter lines by text"
    )
    return html_of([*lists, field])


def _meanings(table: Table, places: Sequence[int]) -> Html | None:
    """Return links to the definitions of the scores of columns."""
    scores: dict[str, str] = {}
    for place in places:
        column = table.columns[place]
        score = str(column.keys.get("score", ""))
        if score in defined_scores():
            plain = column.label.replace(_HIGHER, "").replace(_LOWER, "")
            scores.setdefault(score, " ".join(plain.split()))
    links = [
        [" · " if number else "", definition_link(score, words)]
        for number, (score, words) in enumerate(scores.items())
    ]
    if not links:
        return None
    return element("p", "What they are: ", links, class_="small meanings")


def _notes(table: Table) -> Html | None:
    shown = own_numbers(table)
    sentences = [*shown.every_note, *remarks(table), " ".join(legend([shown]))]
    most = _most_lines(len(table.filled()))
    if len(table.lines) > most:
        sentences.append(f"The first {most} of {len(table.lines)} lines.")
    texts = [element("p", sentence) for sentence in sentences if sentence]
    return element("div", texts, class_="notes") if texts else None


def own_numbers(table: Table) -> Table:
    """Return a table without the published numbers that are of other data than ours."""
    lines = tuple(
        replace(
            line,
            cells=tuple(
                cell if comparable(table, cell) else replace(cell, published=None)
                for cell in line.cells
            ),
        )
        for line in table.lines
    )
    return replace(table, lines=lines)
