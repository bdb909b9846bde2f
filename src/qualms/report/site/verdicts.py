"""Findings in words, each filled in from cells of a table by a stated rule.

A sentence without its numbers is left out. None of them has an adjective, a cause or a
claim without a rule; `RULES` states them, and stands folded below the sentences.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from qualms import scores
from qualms.evaluate import Results
from qualms.evaluate.rows import QUESTIONS
from qualms.report._findings import ALONE
from qualms.report.benchmark_report import BenchmarkReport, EffectAnswer
from qualms.report.site.markup import Child, Html, element, link, name
from qualms.report.site.tables import decimals_of, signed, signed_words
from qualms.report.table import Column, Table, TableCell, interval_text, with_spread

RULES = (
    "Each sentence is filled in from a table by a fixed rule, and links to it. “Cannot"
    " be told apart” names the rows that a model confidence set keeps beside the best"
    " one. “Every” and “k of n” count rows whose whole interval of the difference"
    " excludes 0; the two samples are independent (Newcombe's interval). “Reaches”, “is"
    " below” and “cannot be told apart from” compare an interval with an estimate. “By"
    " the whole interval” means that its upper end is below. Where seeds are too few"
    " for intervals, means are named and nothing is claimed of others."
)
SAME, FALL, RISE, NO, YES, UNKNOWN = "≈", "↘", "↗", "✗", "✓", "?"
_CLASSES = {FALL: "bad", NO: "bad", RISE: "good", YES: "good"}
HOME, AWAY = "in_domain", "shifted"


@dataclass(frozen=True, slots=True, kw_only=True)
class Sentence:
    """A finding in words."""

    sign: str
    """Shows at a glance what it says: ≈ ↘ ↗ ✓ ✗ ?"""
    words: Child
    evidence: str = ""
    """Address of the numbers behind it; "" for none."""


class _RowNumber(NamedTuple):
    """A row of a table in one column."""

    label: str
    cell: TableCell
    row: str


class _NumberColumn(NamedTuple):
    """A column of a table, with how its numbers are written."""

    table: Table
    column: Column
    lines: tuple[_RowNumber, ...]

    def number(self, value: float) -> str:
        """Return a number of the column with its unit."""
        unit = f"\N{NO-BREAK SPACE}{self.column.unit}" if self.column.unit else ""
        return self._plain(value) + unit

    def _plain(self, value: float) -> str:
        """Return a number without its unit."""
        return signed(with_spread(value, math.nan, self._decimals))

    def with_interval(self, cell: TableCell) -> list[Child]:
        """Return a number and its interval."""
        interval = signed(interval_text(cell, self._decimals))
        words: list[Child] = [element("b", self.number(cell.mean))]
        if interval.startswith("["):  # the range of few seeds
            interval = f"seeds {interval.strip('[]')}"
        if interval:
            words.append(element("span", f", {interval}", class_="interval"))
        return words

    def span(self) -> str:
        """Return the least and the most of all rows."""
        values = [line.cell.mean for line in self.lines]
        low, high = self._plain(min(values)), self.number(max(values))
        return high if high.startswith(low) else f"{low}\N{EN DASH}{high}"

    @property
    def label(self) -> str:
        """The score, without arrows."""
        return " ".join(self.column.label.replace("↑", "").replace("↓", "").split())

    @property
    def _decimals(self) -> int | None:
        return decimals_of(self.column, [line.cell for line in self.lines])


def benchmark_sentences(
    report: BenchmarkReport, tables: Sequence[Table], page: str
) -> list[Sentence]:
    """Return the findings of a benchmark, by its main tables.

    Args:
        report: The benchmark.
        tables: Its main tables.
        page: The slug of its page, which has the numbers.
    """
    board = f"{page}.html#{page}-leaderboard"
    sentences: list[Sentence] = []
    if tables:
        for find in (_best, _shift, _referral):
            sentences += find(tables[0], board)
    sentences += _broken_promises(report, tables, board)
    sentences += _effects(report.effects, "expected effects", f"{page}-effects", page)
    said = [each for each in report.findings if not each.meaning.endswith(ALONE)]
    sentences += _effects(said, "findings of the paper", f"{page}-findings", page)
    return sentences


def telling(sentences: Sequence[Sentence], most: int) -> list[Sentence]:
    """Return the sentences that tell most, in their order: of losses before others."""
    rank = {FALL: 0, NO: 0, YES: 2}
    first = sorted(sentences, key=lambda each: rank.get(each.sign, 1))[:most]
    return [each for each in sentences if each in first]


def file_sentences(results: Results, anchor: str) -> list[Sentence]:
    """Return the verdict of a predictions file: answers to four questions."""
    signs = {"yes": YES, "no": NO}
    return [
        Sentence(
            sign=signs.get(answer.answer, UNKNOWN),
            words=[
                f"{QUESTIONS[answer.question]} ",
                element("b", answer.words or answer.answer),
                f": {signed_words(answer.because)}",
            ],
            evidence=anchor,
        )
        for answer in results.verdict
    ]


def sentence_list(sentences: Sequence[Sentence], *, rules: str = RULES) -> Html | None:
    """Return findings as a list, with their rules folded below; None for none."""
    if not sentences:
        return None
    items = [
        element(
            "li",
            element(
                "span",
                each.sign,
                class_=f"sign {_CLASSES.get(each.sign, '')}".strip(),
                aria_hidden="true",
            ),
            element("p", each.words),
            link(each.evidence, "the numbers") if each.evidence else None,
        )
        for each in sentences
    ]
    fold = None
    if rules:
        fold = element(
            "details",
            element("summary", "How these sentences are made"),
            element("p", rules),
            class_="rules",
        )
    return element("div", element("ol", items, class_="verdict"), fold)


def _best(table: Table, board: str) -> Iterator[Sentence]:
    """Say who is best, and who cannot be told apart from it."""
    place = next((p for p in _places(table) if any(x.cell.tied for x in p.lines)), None)
    if place is None:
        yield from _highest(table, board)
        return
    tied = [line for line in place.lines if line.cell.tied]
    best = next((line for line in tied if line.cell.best), tied[0])
    others = len(tied) - 1
    on = _on(place)
    if len(tied) == len(place.lines) > 1:
        words: list[Child] = [
            f"No method can be told apart from the best on {on}: ",
            *_named(best, place),
            " is the best estimate.",
        ]
    elif others:
        words = [
            *_named(best, place),
            f" and {others} of {len(place.lines) - 1} others cannot be told apart on"
            f" {on}.",
        ]
    else:
        words = [*_named(best, place), f" is best on {on}."]
    yield Sentence(sign=SAME if others else YES, words=words, evidence=board)


def _highest(table: Table, board: str) -> Iterator[Sentence]:
    """Name the best estimate where no more is known."""
    for place in _places(table):
        if better_of(place.column, table) == "" or len(place.lines) < 2:
            continue
        lower = better_of(place.column, table) == "lower"
        best = (min if lower else max)(place.lines, key=lambda line: line.cell.mean)
        few = any(line.cell.seeds for line in place.lines)
        why = (
            "There is no interval of others: the seeds are too few."
            if few
            else "No winner is marked among the rows."
        )
        yield Sentence(
            sign=UNKNOWN,
            words=[
                *_named(best, place),
                f" is the {'lowest' if lower else 'highest'} estimate on {_on(place)}."
                f" {why}",
            ],
            evidence=board,
        )
        return


def _shift(table: Table, board: str) -> Iterator[Sentence]:
    """Say how far a score falls from in-domain to shifted items."""
    for home in _places(table, subset=HOME):
        away = _same_score(table, home, AWAY)
        if away is None or better_of(home.column, table) == "":
            continue
        worse = -1.0 if better_of(home.column, table) == "higher" else 1.0
        falls = [
            _difference(a.cell, b.cell, worse)
            for a, b in zip(home.lines, away.lines, strict=True)
        ]
        bounded = [fall for fall in falls if fall is not None]
        goes = f"{home.label} goes from {home.span()} to {away.span()}"
        if not bounded:
            words = f"Under shift {goes}, by the means of the seeds."
            yield Sentence(sign=UNKNOWN, words=words, evidence=board)
            return
        got_worse = sum(low > 0 for low, _ in bounded)
        got_better = sum(high < 0 for _, high in bounded)
        if got_worse == len(falls):
            words = f"Under shift {goes}: every method gets worse."
        else:
            words = (
                f"Under shift {goes}: {got_worse} of {len(falls)} methods get worse by"
                f" their whole interval, {got_better} better."
            )
        sign = FALL if got_worse else RISE if got_better else SAME
        yield Sentence(sign=sign, words=words, evidence=board)
        return


def _referral(table: Table, board: str) -> Iterator[Sentence]:
    """Say what referring the most uncertain items brings under shift."""
    for home in _places(table, subset=HOME, referred=None):
        places = [
            p
            for p in _places(table, subset=AWAY, score=home.column.keys.get("score"))
            if isinstance(p.column.keys.get("referred"), int | float)
        ]
        if not places or better_of(home.column, table) == "":
            continue
        places.sort(key=lambda p: float(p.column.keys["referred"]))
        higher = better_of(home.column, table) == "higher"
        pick: Callable[..., _RowNumber] = max if higher else min
        place = places[-1]
        best = pick(place.lines, key=lambda line: line.cell.mean)
        at_home = next((x for x in home.lines if x.row == best.row), None)
        if at_home is None:
            continue
        share = 100 * float(place.column.keys["referred"])
        aim = at_home.cell.mean
        sign, how = _against(best.cell, aim, higher=higher)
        yield Sentence(
            sign=sign,
            words=[
                f"Referring the most uncertain {share:g}\N{NO-BREAK SPACE}% of shifted"
                " items brings ",
                *_named(best, place),
                f" in {home.label}: {how} its {home.number(aim)} at home without"
                " referral.",
            ],
            evidence=board,
        )
        return


def _broken_promises(
    report: BenchmarkReport, tables: Sequence[Table], board: str
) -> Iterator[Sentence]:
    """Say how many kinds of intervals hold less than they promise."""
    shifts = {variant.name: variant.shift for variant in report.variants}
    for table in tables:
        alpha = table.keys.get("alpha")
        place = next(iter(_places(table, score="coverage")), None)
        if place is None or not isinstance(alpha, float):
            continue
        aim = 1 - alpha
        bounded = [line for line in place.lines if line.cell.bounded]
        if not bounded:
            continue
        below = [line for line in bounded if line.cell.high < aim]
        shifted = bool(shifts.get(str(table.keys.get("variant", ""))))
        where = " under shift" if shifted else ""
        data = str(table.keys.get("dataset", "") or table.title)
        hold = "hold" if shifted else "hold, without shift,"
        yield Sentence(
            sign=NO if below else YES,
            words=[
                f"Intervals that promise {100 * aim:g}\N{NO-BREAK SPACE}% {hold}"
                f" {place.span()}{where} on ",
                name(data),
                f"; {len(below)} of {len(bounded)} kinds hold less by their whole"
                " interval.",
            ],
            evidence=board,
        )


def _effects(
    answers: Sequence[EffectAnswer], what: str, anchor: str, page: str
) -> Iterator[Sentence]:
    """Count the expected effects or findings that hold."""
    agreeing = sum(answer.answer in ("held", "holds") for answer in answers)
    against = [a for a in answers if a.answer in ("not held", "does not hold")]
    decided = agreeing + len(against)
    if not decided:
        return
    all_of = "" if decided == len(answers) else " that these runs can decide"
    verb = "holds" if agreeing == 1 else "hold"
    first = f" This does not: {against[0].text}." if len(against) == 1 else ""
    yield Sentence(
        sign=NO if against else YES,
        words=f"{agreeing} of {decided} {what}{all_of} {verb}.{first}",
        evidence=f"{page}.html#{anchor}",
    )


def _places(table: Table, **keys: object) -> Iterator[_NumberColumn]:
    """Yield the columns whose results have these labels, with their numbers."""
    for at, column in enumerate(table.columns):
        if column.released or any(column.keys.get(k) != v for k, v in keys.items()):
            continue
        lines = tuple(
            _RowNumber(
                ", ".join(line.labels), line.cells[at], str(line.keys.get("row"))
            )
            for line in table.lines
        )
        if lines and all(math.isfinite(line.cell.mean) for line in lines):
            yield _NumberColumn(table, column, lines)


def _same_score(
    table: Table, place: _NumberColumn, subset: str
) -> _NumberColumn | None:
    """Return the column of the same score on other items."""
    keys = {**place.column.keys, "subset": subset}
    return next(
        (p for p in _places(table, **keys) if len(p.column.keys) == len(keys)), None
    )


def better_of(column: Column, table: Table) -> str:
    """Return whether higher or lower is better; "" where neither is."""
    score = getattr(scores, str(column.keys.get("score", "")), None)
    if callable(score):
        better = str(scores.about(score).better)
        return better if better in ("higher", "lower") else ""
    words = f"{column.label} {column.group} {table.title}"
    return "higher" if "↑" in words else "lower" if "↓" in words else ""


def _on(place: _NumberColumn) -> str:
    group = place.column.group
    head = f"{place.label}, {group}" if group else place.label
    if any(arrow in place.table.title for arrow in "↑↓"):
        head = f"{place.table.title.strip(' ↑↓')}, {head}"
    return head if head.lower() not in place.table.title.lower() else place.table.title


def _named(line: _RowNumber, place: _NumberColumn) -> list[Child]:
    """Return a row with its number and interval."""
    return [name(line.label), " (", *place.with_interval(line.cell), ")"]


def _difference(
    home: TableCell, away: TableCell, worse: float
) -> tuple[float, float] | None:
    """Return the interval of how much worse a score is away; None without intervals.

    The items are two independent samples (Newcombe, 1998).
    """
    if not (home.bounded and away.bounded):
        return None
    difference = away.mean - home.mean
    low = difference - math.hypot(away.mean - away.low, home.high - home.mean)
    high = difference + math.hypot(away.high - away.mean, home.mean - home.low)
    return (low, high) if worse > 0 else (-high, -low)


def _against(cell: TableCell, aim: float, *, higher: bool) -> tuple[str, str]:
    """Return how an interval compares with an estimate, as a sign and in words."""
    if not cell.bounded:
        return UNKNOWN, "a mean of few seeds, beside"
    good = cell.low > aim if higher else cell.high < aim
    bad = cell.high < aim if higher else cell.low > aim
    if good:
        return RISE, "it is better than"
    if bad:
        return FALL, "it is worse than"
    return SAME, "it cannot be told apart from"
