"""What every LaTeX table of ours is made of: booktabs, escapes, means with spread."""

from collections.abc import Iterable

from qualms.report._compared import pair

_ESCAPES = {
    "_": r"\_",
    "%": r"\%",
    "&": r"\&",
    "#": r"\#",
    "$": r"\$",
    "{": r"\{",
    "}": r"\}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "\\": r"\textbackslash{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "±": r"$\pm$",
    "↑": r"$\uparrow$",
    "↓": r"$\downarrow$",
}


def environment(
    *, caption: str, columns: str, head: Iterable[str], body: Iterable[str]
) -> str:
    """A complete `table` environment; needs booktabs and graphicx.

    Args:
        caption: In words; it is escaped here.
        columns: The argument of `tabular`.
        head: Lines between the top and the middle rule.
        body: Lines between the middle and the bottom rule.
    """
    lines = [
        r"\begin{table}",
        r"\centering",
        rf"\caption{{{escaped(caption)}}}",
        r"\resizebox{\textwidth}{!}{%",
        rf"\begin{{tabular}}{{{columns}}}",
        r"\toprule",
        *head,
        r"\midrule",
        *body,
        r"\bottomrule",
        r"\end{tabular}}",
        r"\end{table}",
    ]
    return "\n".join(lines) + "\n"


def spanned(groups: Iterable[tuple[str, int]]) -> list[str]:
    """Two lines of a head: each label over so many columns, a rule below each."""
    heads, rules, start = [], [], 2
    for label, width in groups:
        heads.append(rf"\multicolumn{{{width}}}{{c}}{{{escaped(label)}}}")
        rules.append(rf"\cmidrule(lr){{{start}-{start + width - 1}}}")
        start += width
    return [" & ".join(["", *heads]) + r" \\", " ".join(rules)]


def escaped(text: str) -> str:
    """`text` with what LaTeX would read as commands made plain."""
    return "".join(_ESCAPES.get(letter, letter) for letter in text)


def latex_pair(
    mean: float, spread: float | None, *, decimals: int | None = None
) -> str:
    """Mean and spread in mathematics; a dash where there is none."""
    text = pair(mean, spread, plus_minus=r"\pm", decimals=decimals)
    return {"-": "--", "inf": r"$\infty$"}.get(text, f"${text}$")
