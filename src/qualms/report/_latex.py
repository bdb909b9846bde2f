"""One table as LaTeX: booktabs, ours beside the paper's."""

import math
from collections.abc import Iterator

from qualms.report._paper_tables import METRICS, Compared, PaperTable, pair

_ESCAPES = {"_": r"\_", "%": r"\%", "&": r"\&", "#": r"\#"}


def latex(table: PaperTable) -> str:
    """A complete `table` environment; needs booktabs and graphicx."""
    columns = "l" + "rrr" * len(METRICS)
    heads = " & ".join(
        rf"\multicolumn{{3}}{{c}}{{{escaped(label)}}}" for label in METRICS.values()
    )
    spans = " ".join(
        rf"\cmidrule(lr){{{start}-{start + 2}}}"
        for start in range(2, 2 + 3 * len(METRICS), 3)
    )
    lines = [
        r"\begin{table}",
        r"\centering",
        rf"\caption{{{escaped(caption(table))}}}",
        r"\resizebox{\textwidth}{!}{%",
        rf"\begin{{tabular}}{{{columns}}}",
        r"\toprule",
        rf" & {heads} \\",
        spans,
        "method" + r" & ours & paper & $\Delta/\sigma$" * len(METRICS) + r" \\",
        r"\midrule",
        *_body(table),
        r"\bottomrule",
        r"\end{tabular}}",
        r"\end{table}",
    ]
    return "\n".join(lines) + "\n"


def caption(table: PaperTable) -> str:
    """What the table shows, in words."""
    shift = f", shift: {table.variant.shift}" if table.variant.shift else ""
    note = f" Published numbers: {table.note}." if table.note else ""
    return (
        f"Table {table.name} on {table.variant.label} ({table.data}{shift}), "
        f"{1 - table.alpha:.0%} intervals.{note} Mean and standard deviation over "
        "repeats, ours by the rank of the released code; the difference is in units of "
        "the published deviation."
    )


def escaped(text: str) -> str:
    """`text` with what LaTeX would read as commands made plain."""
    return "".join(_ESCAPES.get(letter, letter) for letter in text)


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
    ours = _pair(*(cell.ours if beyond else cell.by_their_rule))
    paper = _pair(known.mean, known.spread) if known else "--"
    gap = compared.difference
    return ours, paper, f"${gap:+.1f}$" if math.isfinite(gap) else ""


def _pair(mean: float, spread: float | None) -> str:
    text = pair(mean, spread, plus_minus=r"\pm")
    return {"-": "--", "inf": r"$\infty$"}.get(text, f"${text}$")
