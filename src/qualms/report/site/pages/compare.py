"""The page of comparisons: every two rows or files, paired, from any reference."""

import math
from collections.abc import Iterator, Sequence
from typing import Any

from qualms.evaluate import PairedDifference, PairedScore
from qualms.report.site.charts import chart, file_link, on_paper
from qualms.report.site.contents import SiteContents
from qualms.report.site.difference_figure import difference_drawing
from qualms.report.site.markup import Html, element, name
from qualms.report.site.page import Fragment, Page, fragment, section, slug
from qualms.report.site.paired import (
    ComparedRows,
    compared_rows,
    pair_table,
    reference_table,
    score_words,
    unpaired_files,
)
from qualms.report.site.tables import exports, table_fragment
from qualms.wording import plural

LEAD = (
    "Differences on the same items. What two rows share cancels, so that a difference"
    " can be clear where the intervals of the two overlap."
)
CAPTION = (
    "Each score has its own scale, and 0 in the middle: to the right of it a row is"
    " better than the reference. A filled dot has an interval without 0. No correction"
    " is made for the number of differences: at a level of 95 % one of twenty rows that"
    " are equally good seems better or worse."
)


def compare(contents: SiteContents) -> Iterator[Page]:
    """Yield the page of comparisons, where there is one."""
    compared = [each for each in compared_rows(contents) if len(each.rows) > 1]
    alone = unpaired_files(contents)
    if not compared:
        return
    yield Page(
        path="compare.html",
        title="How sure are the differences?",
        nav="Compare",
        order=55,
        lead=LEAD,
        simulated=any(each.simulated for each in compared),
        body=(*_sections(compared, paper=contents.on_paper), *_alone(alone)),
    )


def _sections(compared: Sequence[ComparedRows], *, paper: bool) -> Iterator[Fragment]:
    """Yield a section for each benchmark, and one for files; the first part is open."""
    for group in dict.fromkeys(each.group for each in compared):
        parts = [each for each in compared if each.group == group]
        yield section(
            slug(f"compare-of-{group}"),
            group[:200],
            *(
                _comparison(each, first=each is compared[0], paper=paper)
                for each in parts
            ),
        )


def _comparison(compared: ComparedRows, *, first: bool, paper: bool) -> Fragment:
    reference = next(iter(compared.rows))
    forest = f"{compared.slug}-forest"
    drawing = difference_drawing(compared, reference)
    table = reference_table(compared, reference)
    every = exports(pair_table(compared), f"{compared.slug}-pairs")
    return fragment(
        element("summary", name(compared.title, most=200)),
        element("p", _about(compared), class_="small"),
        *(element("p", note, class_="note") for note in compared.notes),
        chart(
            "forest",
            forest,
            _spec(compared),
            caption=CAPTION if first else None,
            downloads=on_paper(drawing, forest, None) if paper else (),
            on_demand=not first,
        ),
        Fragment(html=Html(), downloads=every),
        fragment(
            element("summary", name(table.title, most=200)),
            table_fragment(table, f"{compared.slug}-table", title=False, by_line=True),
            tag="details",
        ),
        element(
            "p", "The difference of every two rows: ", _spaced(every), class_="small"
        ),
        _unknown(compared),
        tag="details",
        id=compared.slug,
        open=first,
    )


def _about(compared: ComparedRows) -> str:
    data = " of simulated data" if compared.simulated else ""
    return (
        f"{len(compared.rows)} rows by {len(compared.scores)}"
        f" {plural(len(compared.scores), 'score')}{data}, with"
        f" {compared.level:.0%} intervals of the differences."
    )


def _spaced(downloads: Sequence[Any]) -> list[Html | str]:
    return [piece for each in downloads for piece in (file_link(each), " ")]


def _spec(compared: ComparedRows) -> dict[str, Any]:
    """Return the data of `assets/charts/forest.js`."""
    rows = list(compared.rows)
    words = [score_words(score) for score in compared.scores]
    items = list(dict.fromkeys(set_ for _, _, set_ in words))
    return {
        "head": ["score", "row", "minus", "difference", "low", "high"],
        "rows": [compared.rows[row] for row in rows],
        "items": items,
        "scores": [
            {
                "label": ", ".join(filter(None, (what, by))),
                "items": items.index(set_),
                "sign": 1 if score.better == "higher" and score.aim is None else -1,
                "pairs": [_pair(gap, rows) for gap in score.differences],
            }
            for score, (what, by, set_) in zip(compared.scores, words, strict=True)
        ],
    }


def _pair(gap: PairedDifference, rows: Sequence[str]) -> list[float]:
    place = rows.index(gap.row), rows.index(gap.reference)
    return [*place, gap.value, gap.low, gap.high]


def _unknown(compared: ComparedRows) -> Html | None:
    """Return sentences about scores that cannot be compared."""
    reasons: dict[str, list[str]] = {}
    for score in compared.scores:
        for reason in _reasons(score):
            what, by, items = score_words(score)
            words = ", ".join(filter(None, (what, by, items)))
            reasons.setdefault(reason, []).append(words)
    sentences = [
        element(
            "p",
            f"{len(labels)} {plural(len(labels), 'score')} cannot be compared"
            f" ({'; '.join(labels[:3])}{'; …' if len(labels) > 3 else ''}): {reason}.",
        )
        for reason, labels in reasons.items()
    ]
    return element("div", sentences, class_="notes") if sentences else None


def _reasons(score: PairedScore) -> list[str]:
    """Return why a score has differences without intervals, each reason once."""
    return list(
        dict.fromkeys(
            gap.reason or "no interval is known"
            for gap in score.differences
            if not (math.isfinite(gap.low) and math.isfinite(gap.high))
        )
    )


def _alone(names: Sequence[str]) -> Iterator[Fragment]:
    if names:
        items = [element("li", name(each)) for each in names]
        yield section(
            "compare-alone",
            "Not compared",
            element("ul", items),
            about="No other file has the same items in the same order, with the same"
            " targets, so that nothing can be paired.",
        )
