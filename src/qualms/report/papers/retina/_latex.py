"""One table of the RETINA benchmark as LaTeX: ours, and the paper's below it."""

import math
from collections.abc import Iterator
from itertools import groupby

from qualms.report._compared import Compared
from qualms.report._latex import environment, escaped, latex_pair, spanned
from qualms.report.papers.retina._layouts import Column
from qualms.report.papers.retina._numbers import shown
from qualms.report.papers.retina._table import Line, Part, Table


def latex(table: Table) -> str:
    """A complete `table` environment; needs booktabs and graphicx."""
    width = max(len(part.columns) for part in table.parts)
    first, *others = table.parts
    body = list(_body(first))
    before = first
    for part in others:
        body.append(r"\midrule")
        if _heads(part) != _heads(before):
            body += [*_head(part), r"\midrule"]
        body += _body(part)
        before = part
    return environment(
        caption=caption(table),
        columns="l" + "r" * width,
        head=_head(first),
        body=body,
    )


def caption(table: Table) -> str:
    """What the table shows, in words."""
    note = f" {table.note}" if table.note else ""
    return f"{table.heading} ({table.about}).{note} {_legend(table)}"


def _legend(table: Table) -> str:
    told = "Ours: mean ± standard error over repeats."
    if table.compares:
        told = (
            "First line: ours, mean ± standard error over repeats. Second: published, "
            "and in brackets the difference of ours by the released code's rule, in "
            "published standard errors."
        )
    if table.marks:
        told += " A dot marks what cannot be told apart from the best."
    return told


def _heads(part: Part) -> list[tuple[str, str]]:
    return [(column.head, column.label) for column in part.columns]


def _head(part: Part) -> list[str]:
    groups = [
        (head, len(list(columns)))
        for head, columns in groupby(part.columns, key=lambda column: column.head)
    ]
    labels = [escaped(_named(column)) for column in part.columns]
    return [*spanned(groups), " & ".join(["method", *labels]) + r" \\"]


def _named(column: Column) -> str:
    unit = column.score.unit.text
    return f"{column.label} ({unit})" if unit else column.label


def _body(part: Part) -> Iterator[str]:
    if part.title:
        span = len(part.columns) + 1
        yield rf"\multicolumn{{{span}}}{{l}}{{\textit{{{escaped(part.title)}}}}} \\"
    beyond = False
    for line in part.lines:
        if line.row.beyond and not beyond:
            yield r"\addlinespace"
            beyond = True
        yield " & ".join([escaped(line.label), *_ours(line, part)]) + r" \\"
        if any(compared.number for compared in line.compared):
            yield " & ".join([r"\quad published", *_theirs(line, part)]) + r" \\"


def _ours(line: Line, part: Part) -> Iterator[str]:
    for compared, column in zip(line.compared, part.columns, strict=True):
        text = latex_pair(*shown(compared, column), decimals=column.score.unit.decimals)
        yield text + (r"\,$^{\bullet}$" if compared.tied and not column.theirs else "")


def _theirs(line: Line, part: Part) -> Iterator[str]:
    for compared, column in zip(line.compared, part.columns, strict=True):
        yield _published(compared, column.score.unit.decimals)


def _published(compared: Compared, decimals: int) -> str:
    number, gap = compared.number, compared.difference
    if number is None:
        return "--"
    text = latex_pair(number.mean, number.spread, decimals=decimals)
    far = f" (${gap:+.1f}$)" if math.isfinite(gap) else ""
    return rf"{{\scriptsize {text}{far}}}"
