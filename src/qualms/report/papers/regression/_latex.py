"""One table of the regression benchmark as LaTeX, ours beside the paper's."""

import math
from collections.abc import Iterator

from qualms.report._compared import Compared
from qualms.report._latex import environment, escaped, latex_pair, spanned
from qualms.report.papers.regression._tables import METRICS, PaperTable


def latex(table: PaperTable) -> str:
    """A complete `table` environment; needs booktabs and graphicx."""
    last = "method" + r" & ours & paper & $\Delta/\sigma$" * len(METRICS) + r" \\"
    return environment(
        caption=caption(table),
        columns="l" + "rrr" * len(METRICS),
        head=[*spanned((label, 3) for label in METRICS.values()), last],
        body=_body(table),
    )


def caption(table: PaperTable) -> str:
    """What the table shows, in words."""
    shift = f", shift: {table.variant.shift}" if table.variant.shift else ""
    note = f" Published numbers: {table.note}." if table.note else ""
    return (
        f"Table {table.name} on {table.variant.label} ({table.data}{shift}; preset "
        f"{table.preset}), "
        f"{1 - table.alpha:.0%} intervals.{note} Mean and standard deviation over "
        "repeats, ours by the rank of the released code; the difference is in units of "
        "the published deviation."
    )


def _body(table: PaperTable) -> Iterator[str]:
    beyond = False
    for line in table.lines:
        if line.row.beyond and not beyond:
            yield r"\midrule"
            beyond = True
        cells = [
            part
            for metric in METRICS
            for part in _cell(line.compared[metric], beyond=beyond)
        ]
        yield " & ".join([escaped(line.label), *cells]) + r" \\"


def _cell(compared: Compared, *, beyond: bool) -> tuple[str, str, str]:
    # Rows the paper does not have are not in its code either.
    cell, known = compared.cell, compared.number
    ours = latex_pair(*(cell.ours if beyond else cell.by_their_rule))
    paper = latex_pair(known.mean, known.spread) if known else "--"
    gap = compared.difference
    return ours, paper, f"${gap:+.1f}$" if math.isfinite(gap) else ""
