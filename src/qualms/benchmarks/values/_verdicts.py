"""The four questions of the separation study, answered by a rule.

Q1 and Q2 ask whether aleatoric (AU) and epistemic (EU) measures capture the raters'
disagreement, Q3 and Q4 whether epistemic and aleatoric ones capture a shift. A measure
that is meant to capture something does so if it is better than a fixed value; the other
one does if it is moreover hardly worse than the one that is meant to. The verdict is
the share of cases (prediction models, and aggregations for a shift) in which it does.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from qualms.arrays import Array, Flags
from qualms.benchmarks.values._rows import FIRST_NAMES
from qualms.benchmarks.values._settings import (
    AUROC,
    NCC,
    Study,
    stands_in,
    study_about,
)
from qualms.report.table import Column, Table, TableCell, TableLine
from qualms.results import ResultsTable

CLEAR = 0.5
"""An NCC must reach this value, and an AUROC exceed it."""
MARGIN = 0.15
"""Largest gap to the measure that is meant to capture an uncertainty, at which
another measure still counts as good."""
MOST, FEW = 0.75, 0.25
"""Shares of cases: from the first on the verdict is yes, below the second no."""
QUESTIONS = {
    "Q1": "Do AU measures capture AU?",
    "Q2": "Do EU measures capture AU?",
    "Q3": "Do EU measures capture EU?",
    "Q4": "Do AU measures capture EU?",
}
_GROUPS: dict[str, dict[str, tuple[str, ...]]] = {
    "Toy": {"Q1": ("Toy 1",), "Q3": ("Toy 2", "Toy 3a", "Toy 3b")},
    "LIDC": {"Q1": ("LIDC TEX", "LIDC MAL"), "Q3": ("LIDC TEX", "LIDC MAL")},
    "GTA5/CS": {"Q1": ("GTA5/CS",), "Q3": ("GTA5/CS",)},
}
FIGURE_2A = {
    "Toy": ("yes", "no", "yes", "depends on AU in data"),
    "LIDC": ("partially", "often yes", "yes", "partially"),
    "GTA5/CS": ("partially", "no", "yes", "mostly not"),
}
"""The paper's answers to Q1 to Q4, by numbers."""
QUALITATIVE = {
    "Toy": ("yes", "no"),
    "LIDC": ("often (i.i.d.)", "often yes"),
    "GTA5/CS": ("partially", "no"),
}
"""Its answers to Q1 and Q2 after looking at maps."""


class Verdict(NamedTuple):
    """Number of cases in which a measure captures an uncertainty, and of all cases."""

    captured: int
    cases: int

    @property
    def word(self) -> str:
        """Yes, no, or partially; '' where nothing was judged."""
        if not self.cases:
            return ""
        share = self.captured / self.cases
        if share >= MOST:
            return "yes"
        return "no" if share < FEW else "partially"

    @property
    def text(self) -> str:
        """The word, with the cases that it rests on."""
        return f"{self.word} ({self.captured}/{self.cases})" if self.cases else ""


def verdict(question: str, numbers: ResultsTable) -> Verdict:
    """Answer Q1, Q2, Q3 or Q4 by the numbers of one dataset, ours or published.

    A case is a model, and for a shift each of its aggregations; maps are compared
    before anything is aggregated.
    """
    ambiguity = question in ("Q1", "Q2")
    score = NCC[0] if ambiguity else AUROC
    chosen = numbers.where(**score.labels, row=FIRST_NAMES, type=("AU", "EU"))
    cases = chosen.pivot(("row",) if ambiguity else ("row", "aggregation"), ("type",))
    columns = {str(name): cases.values[:, i] for i, (name,) in enumerate(cases.columns)}
    if columns.keys() != {"AU", "EU"}:
        return Verdict(0, 0)
    intended, other = columns["AU"], columns["EU"]
    if not ambiguity:
        intended, other = other, intended
    defined = np.isfinite(intended) & np.isfinite(other)
    captured = (
        _captures(intended, ambiguity=ambiguity)
        if question in ("Q1", "Q3")
        else _as_good(other, intended, ambiguity=ambiguity)
    )
    return Verdict(int((captured & defined).sum()), int(defined.sum()))


def _captures(values: Array, *, ambiguity: bool) -> Flags:
    return values >= CLEAR if ambiguity else values > CLEAR


def _as_good(other: Array, intended: Array, *, ambiguity: bool) -> Flags:
    """Return whether a measure captures what another one is meant to capture."""
    chance = 0.0 if ambiguity else 0.5
    # Published numbers have two decimals, whose differences are not exact.
    return (other > chance) & (other >= intended - MARGIN - 1e-9)


def verdict_table(study: Study) -> Iterator[Table]:
    """Yield answers to Q1 to Q4: ours, by published numbers, and the paper's words."""
    lines = tuple(_verdict_lines(study))
    if not lines:
        return
    variants = study.variants
    yield Table(
        name="table_questions",
        title="Can aleatoric and epistemic uncertainty be separated?",
        about=study_about(study.results, variants),
        simulated=any(map(stands_in, variants)),
        columns=(
            Column(label="ours", keys={"of": "ours"}),
            Column(label="published numbers", keys={"of": "published numbers"}),
            Column(label="figure 2a", keys={"of": "figure 2a"}),
        ),
        lines=lines,
        left=("data",),
        notes=(
            f"Captures AU: NCC of at least {CLEAR:g} (Q1), or above 0 and at most "
            f"{MARGIN:g} below that of the AU measure (Q2). Captures EU: AUROC above "
            f"{CLEAR:g} (Q3), and at most {MARGIN:g} below that of the EU measure "
            f"(Q4). In brackets: of how many models and aggregations; yes from "
            f"{MOST:.0%} of them on, no below {FEW:.0%}; it depends where the answers "
            "of toy scenarios are opposite. Figure 2a is as printed; its answers by "
            "eye, from looking at maps, are not computed.",
            *_unanswered(lines),
        ),
        keys={"number": "2a", "preset": study.results.plan.preset_text},
    )


def _unanswered(lines: Sequence[TableLine]) -> Iterator[str]:
    if not any(line.cells[0].text for line in lines):
        yield (
            "No answer of ours: only prediction models of the paper with an AU and an "
            "EU measure count, and none of them was run."
        )


def _verdict_lines(study: Study) -> Iterator[TableLine]:
    judged = {variant.label for variant in study.variants}
    for place, question in enumerate(QUESTIONS):
        for group, datasets in _GROUPS.items():
            names = datasets["Q1" if place < 2 else "Q3"]
            # Published numbers of data that were not judged would compare unlike sets.
            present = [name for name in names if name in judged]
            answers = {name: _both_verdicts(study, question, name) for name in present}
            if not present:
                continue
            printed = FIGURE_2A[group][place]
            yield _verdict_line(question, group, [*answers.values()], printed)
            if place < 2:
                by_eye = QUALITATIVE[group][place]
                yield _verdict_line(question, f"{group}, by eye", [], by_eye)
            if len(names) > 1:
                for name in present:
                    yield _verdict_line(question, name, [answers[name]], "")


VerdictPair = tuple[Verdict, Verdict]
"""Ours, and by the published numbers."""


def _both_verdicts(study: Study, question: str, dataset: str) -> VerdictPair:
    return (
        verdict(question, study.ours.where(dataset=dataset)),
        verdict(question, study.printed.where(dataset=dataset)),
    )


def _verdict_line(
    question: str, data: str, answers: Sequence[VerdictPair], printed: str
) -> TableLine:
    texts = [_together(data, each) for each in zip(*answers, strict=True)] or ["", ""]
    return TableLine(
        labels=(data,),
        cells=tuple(TableCell(text=text) for text in (*texts, printed)),
        section=f"{question}: {QUESTIONS[question]}",
        keys={"question": question, "data": data},
    )


def _together(data: str, verdicts: Sequence[Verdict]) -> str:
    """Return one answer; where those of toy scenarios differ, that it depends."""
    answers = [each for each in verdicts if each.cases]
    words = {each.word for each in answers}
    total = Verdict(sum(v.captured for v in answers), sum(v.cases for v in answers))
    if data == "Toy" and {"yes", "no"} <= words:
        return f"depends ({total.captured}/{total.cases})"
    return total.text
