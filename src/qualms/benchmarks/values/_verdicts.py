"""The four questions of the separation study, answered by a rule.

Q1 and Q2 ask whether aleatoric (AU) and epistemic (EU) measures capture the raters'
disagreement, Q3 and Q4 whether epistemic and aleatoric ones capture a shift. A measure
that is meant to capture something does so if it is better than a fixed value; the other
one does if it is moreover hardly worse than the one that is meant to. The verdict is
the share of cases (prediction models, and aggregations for a shift) in which it does.
"""

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from qualms.report.papers.values.lines import study_about
from qualms.report.papers.values.settings import (
    AUROC,
    DATASETS,
    NCC,
    Component,
    Study,
    Value,
    published_components,
    stands_in,
    theirs,
)
from qualms.report.table import Column, Table, TableCell, TableLine

CLEAR = 0.5
"""What an NCC must reach, and an AUROC exceed."""
MARGIN = 0.15
"""How far below the measure that is meant to capture it another one may lie and still
count as good."""
MOST, FEW = 0.75, 0.25
"""Shares of cases: from the first on the verdict is yes, below the second no."""
QUESTIONS = {
    "Q1": "Do AU measures capture AU?",
    "Q2": "Do EU measures capture AU?",
    "Q3": "Do EU measures capture EU?",
    "Q4": "Do AU measures capture EU?",
}
_GROUPS: dict[str, dict[str, tuple[str, ...]]] = {
    "Toy": {"Q1": ("toy1",), "Q3": ("toy2", "toy3a", "toy3b")},
    "LIDC": {"Q1": ("lidc_tex", "lidc_mal"), "Q3": ("lidc_tex", "lidc_mal")},
    "GTA5/CS": {"Q1": ("gta5_cs",), "Q3": ("gta5_cs",)},
}
FIGURE_2A = {
    "Toy": ("yes", "no", "yes", "depends on AU in data"),
    "LIDC": ("partially", "often yes", "yes", "partially"),
    "GTA5/CS": ("partially", "no", "yes", "mostly not"),
}
"""What the paper says to Q1 to Q4, quantitatively."""
QUALITATIVE = {
    "Toy": ("yes", "no"),
    "LIDC": ("often (i.i.d.)", "often yes"),
    "GTA5/CS": ("partially", "no"),
}
"""What it says to Q1 and Q2 after looking at maps."""


class Verdict(NamedTuple):
    """In how many cases a measure captures what is asked."""

    held: int
    cases: int

    @property
    def word(self) -> str:
        """Yes, no, or partially; '' where nothing was judged."""
        if not self.cases:
            return ""
        share = self.held / self.cases
        if share >= MOST:
            return "yes"
        return "no" if share < FEW else "partially"

    @property
    def text(self) -> str:
        """The word, with the cases that it rests on."""
        return f"{self.word} ({self.held}/{self.cases})" if self.cases else ""


class MeasurePair(NamedTuple):
    """The aleatoric and the epistemic measure of one model and aggregation."""

    aleatoric: Component
    epistemic: Component


def verdict(
    question: str, value: Value, dataset: str, pairs: Sequence[MeasurePair]
) -> Verdict:
    """The answer to Q1, Q2, Q3 or Q4 on one dataset.

    Args:
        question: Which one.
        value: Our numbers, or the published ones.
        dataset: By its published name.
        pairs: The measures of each model and aggregation.
    """
    ambiguity = question in ("Q1", "Q2")
    score = NCC[0] if ambiguity else AUROC
    held = cases = 0
    for pair in _once_for_maps(pairs) if ambiguity else pairs:
        found = [value(dataset, one, score) for one in pair]
        # The first is meant to capture what is asked, the second is not.
        meant, other = found if ambiguity else reversed(found)
        if math.isfinite(meant) and math.isfinite(other):
            cases += 1
            held += (
                _captures(meant, ambiguity=ambiguity)
                if question in ("Q1", "Q3")
                else _as_good(other, meant, ambiguity=ambiguity)
            )
    return Verdict(held, cases)


def _captures(value: float, *, ambiguity: bool) -> bool:
    return value >= CLEAR if ambiguity else value > CLEAR


def _as_good(other: float, meant: float, *, ambiguity: bool) -> bool:
    """Whether a measure captures what another one is meant to capture."""
    chance = 0.0 if ambiguity else 0.5
    # Published numbers have two decimals, whose differences are not exact.
    return other > chance and other >= meant - MARGIN - 1e-9


def _once_for_maps(pairs: Sequence[MeasurePair]) -> list[MeasurePair]:
    """One pair of each model: no aggregation enters where maps are compared."""
    found: dict[str, MeasurePair] = {}
    for pair in pairs:
        found.setdefault(pair.aleatoric.row, pair)
    return list(found.values())


def verdict_table(study: Study) -> Iterator[Table]:
    """Q1 to Q4: ours, the published numbers by the same rule, and the paper's words."""
    lines = tuple(_verdict_lines(study))
    if not lines:
        return
    variants = list(study.variants.values())
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
            "of toy scenarios are opposite. Figure 2a is as printed; what it says by "
            "eye, after looking at maps, is not computed.",
            *_lacking(lines),
        ),
        keys={"number": "2a", "preset": study.results.preset.told},
    )


def _lacking(lines: Sequence[TableLine]) -> Iterator[str]:
    if not any(line.cells[0].text for line in lines):
        yield (
            "Nothing of ours answers: only prediction models of the paper with an AU "
            "and an EU measure count, and none of them was run."
        )


def _verdict_lines(study: Study) -> Iterator[TableLine]:
    judged = study.variants
    for place, question in enumerate(QUESTIONS):
        for group, datasets in _GROUPS.items():
            asked = datasets["Q1" if place < 2 else "Q3"]
            there = [name for name in asked if name in judged]
            if there:
                each = [_both_verdicts(study, question, name) for name in asked]
                yield _verdict_line(question, group, each, FIGURE_2A[group][place])
            if there and place < 2:
                said = QUALITATIVE[group][place]
                yield _verdict_line(question, f"{group}, by eye", [], said)
            if len(asked) > 1 and there:
                for name in there:
                    pair = _both_verdicts(study, question, name)
                    yield _verdict_line(question, DATASETS[name], [pair], "")


VerdictPair = tuple[Verdict, Verdict]
"""Ours, and by the published numbers."""


def _both_verdicts(study: Study, question: str, dataset: str) -> VerdictPair:
    variant = study.variants.get(dataset)
    ours = [] if variant is None else study.components([variant])
    # What the paper does not have would count in ours alone.
    ours = [one for one in ours if not study.beyond(one)]
    known = published_components(dataset)
    if dataset == "toy1":
        known = published_components("toy2")
    return (
        verdict(question, study.ours, dataset, measure_pairs(study, ours)),
        verdict(question, theirs, dataset, measure_pairs(study, known)),
    )


def measure_pairs(study: Study, ones: Sequence[Component]) -> list[MeasurePair]:
    """The aleatoric and epistemic measure of each model and aggregation."""
    by_kind = {(one.row, one.aggregation, study.kind(one)): one for one in ones}
    return [
        MeasurePair(one, by_kind[row, aggregation, "EU"])
        for (row, aggregation, kind), one in by_kind.items()
        if kind == "AU" and (row, aggregation, "EU") in by_kind
    ]


def _verdict_line(
    question: str, data: str, each: Sequence[VerdictPair], said: str
) -> TableLine:
    texts = [_together(data, found) for found in zip(*each, strict=True)] or ["", ""]
    return TableLine(
        labels=(data,),
        cells=tuple(TableCell(text=text) for text in (*texts, said)),
        section=f"{question}: {QUESTIONS[question]}",
        keys={"question": question, "data": data},
    )


def _together(data: str, verdicts: Sequence[Verdict]) -> str:
    """One answer; of scenarios whose answers differ, that it depends on the data."""
    known = [one for one in verdicts if one.cases]
    words = {one.word for one in known}
    whole = Verdict(sum(v.held for v in known), sum(v.cases for v in known))
    if data == "Toy" and {"yes", "no"} <= words:
        return f"depends ({whole.held}/{whole.cases})"
    return whole.text
