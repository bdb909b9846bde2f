"""Tables as HTML for notebooks: every name escaped, no style attributes, no scripts."""

import math
from collections.abc import Iterator
from html import escape

from qualms.evaluate.benchmark_results import BenchmarkResults
from qualms.report.judged import check_numbers
from qualms.report.table import (
    MARK,
    Table,
    TableLine,
    interval_text,
    legend,
    remarks,
    with_spread,
)


def html_table(table: Table, *, title: bool = True) -> str:
    """Return a table as a `<figure>`: its title above, and how to read it below.

    Args:
        table: The table.
        title: Whether the title is shown.
    """
    places = table.filled()
    chip = '<span class="chip">simulated data</span> ' if table.simulated else ""
    heading = f"<b>{text(table.title)}</b> " if title else ""
    below = "".join(
        f"<p>{text(note)}</p>"
        for note in (*table.every_note, *remarks(table), " ".join(legend([table])))
        if note
    )
    about = text(table.about)
    caption = f"{heading}{chip}{about}"
    return (
        '<figure class="table">'
        + (f"<figcaption>{caption}</figcaption>" if caption else "")
        + f'<div class="scroll"><table>{_head(table, places)}'
        + "".join(_body(table, places))
        + f'</table></div><div class="notes">{below}</div></figure>'
    )


def effects_html(results: BenchmarkResults) -> str:
    """Return the expected effects as a table; '' where there are none."""
    rows = []
    for check in results.checks:
        verdict = ("held" if check.held else "not held") if check.known else "unknown"
        numbers = check_numbers(results, check)
        meaning = check.expectation.meaning
        below = f"<p>{text(meaning)}</p>" if meaning else ""
        rows.append(
            f"<tr><td>{verdict}</td><td>{text(check.expectation.text)}{below}</td>"
            f"<td>{text(numbers)}</td></tr>"
        )
    if not rows:
        return ""
    head = "<tr><th>verdict</th><th>effect</th><th>numbers</th></tr>"
    return f"<table><thead>{head}</thead><tbody>{''.join(rows)}</tbody></table>"


def text(words: str) -> str:
    """Return words from anywhere as text of a page.

    >>> text("<b>")
    '&lt;b&gt;'
    """
    # What is no letter in any encoding cannot be written to a file either.
    return escape(words.encode("utf-8", errors="replace").decode("utf-8"), quote=True)


def _head(table: Table, places: list[int]) -> str:
    left = "".join(f'<th scope="col">{text(label)}</th>' for label in table.left)
    last = "".join(
        f'<th scope="col" class="n">{text(table.columns[p].head)}</th>' for p in places
    )
    groups = table.groups(places)
    first = ""
    if any(head for head, _ in groups):
        cells = "".join(
            f'<th scope="colgroup" class="g" colspan="{len(members)}">{text(head)}</th>'
            for head, members in groups
        )
        first = f'<tr><td colspan="{len(table.left)}"></td>{cells}</tr>'
    return f"<thead>{first}<tr>{left}{last}</tr></thead>"


def _body(table: Table, places: list[int]) -> Iterator[str]:
    for title, lines in table.sections():
        yield "<tbody>"
        if title:
            span = len(table.left) + len(places)
            yield f'<tr><th class="s" colspan="{span}">{text(title)}</th></tr>'
        for line in lines:
            labels = "".join(f"<td>{text(label)}</td>" for label in line.labels[1:])
            cells = "".join(_cell(table, line, place) for place in places)
            first = f'<th scope="row">{text(line.labels[0])}</th>'
            yield f"<tr>{first}{labels}{cells}</tr>"
        yield "</tbody>"


def _cell(table: Table, line: TableLine, place: int) -> str:
    cell, decimals = table.shown(place, line), table.decimals(place, line)
    spread = cell.spread if cell.seeds is None else math.nan
    number = text(cell.text or with_spread(cell.mean, spread, decimals))
    if cell.best:
        number = f"<b>{number}</b>"
    if cell.tied:
        tip = "best, or cannot be told apart from the best"
        number = f'<span class="tie" title="{tip}">{MARK}</span> {number}'
    small = [interval_text(cell, decimals)]
    if cell.published is not None:
        printed = with_spread(cell.published.mean, cell.published.std, decimals)
        far = f", {cell.difference:+.1f}" if math.isfinite(cell.difference) else ""
        small.append(f"({printed}{far})")
    below = "".join(f"<small>{text(line)}</small>" for line in small if line)
    why = f' title="{text(cell.why)}"' if cell.why else ""
    return f'<td class="n"{why}>{number}{below}</td>'
