"""The separation study: do measures capture the uncertainty they are named after?

The paper answers its four questions in words (figure 2a). Here they are answered by
rules on the numbers of Table 4. For each row with draws, and for Q3 and Q4 each
aggregation of the paper that the variant is judged by:

- Q1, AU-measures capture AU: the NCC of AU is at least 0.3, and at least 0.05 above
  that of EU.
- Q2, EU-measures capture AU: the NCC of EU is at least 0.3, and less than 0.15 below
  that of AU.
- Q3, EU-measures capture EU: the AUROC of EU is above 0.5.
- Q4, AU-measures capture EU: the AUROC of AU is above 0.5, and at most 0.05 below that
  of EU.

The answer is yes where at least 80 % say so, no where at most 20 % do, and partially in
between. The margins were set once, so that the published Table 4 gives figure 2a; they
do not depend on our numbers.

Variants that state the same "family" in their settings are answered for together, as
the toy sets are in the paper. A variant that states "questions" is asked only those:
the paper asks Q1 and Q2 of the first toy set, and Q3 and Q4 of the others.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

from qualms.benchmarks import Variant
from qualms.evaluate.results import Answer, BenchmarkResults, Verdict
from qualms.scores import UNCERTAINTY_TYPES

AU, EU = "aleatoric", "epistemic"
LEAST = 0.3
"""An NCC below this is none."""
AHEAD = 0.05
BEHIND = 0.15
YES, NO = 0.8, 0.2
"""Shares of rows from which, and up to which, an answer is plain."""


class Question(NamedTuple):
    """One question of the study."""

    text: str
    score: str
    holds: Callable[[float, float], bool]
    """Whether numbers of AU and EU say yes."""
    rule: str


QUESTIONS: Mapping[str, Question] = {
    "Q1": Question(
        "Do AU-measures capture AU?",
        "in_domain/ncc",
        lambda au, eu: au >= LEAST and au - eu >= AHEAD,
        f"NCC of AU at least {LEAST:g}, and at least {AHEAD:g} above that of EU",
    ),
    "Q2": Question(
        "Do EU-measures capture AU?",
        "in_domain/ncc",
        lambda au, eu: eu >= LEAST and au - eu < BEHIND,
        f"NCC of EU at least {LEAST:g}, and less than {BEHIND:g} below that of AU",
    ),
    "Q3": Question(
        "Do EU-measures capture EU?",
        "ood_auroc",
        lambda _, eu: eu > 0.5,
        "AUROC of EU above 0.5",
    ),
    "Q4": Question(
        "Do AU-measures capture EU?",
        "ood_auroc",
        lambda au, eu: au > 0.5 and eu - au <= AHEAD,
        f"AUROC of AU above 0.5, and at most {AHEAD:g} below that of EU",
    ),
}
PUBLISHED: Mapping[str, Mapping[str, str]] = {
    "toy": {"Q1": "yes", "Q2": "no", "Q3": "yes", "Q4": "depends on AU in data"},
    "lidc": {"Q1": "partially", "Q2": "often yes", "Q3": "yes", "Q4": "partially"},
    "gta": {"Q1": "partially", "Q2": "no", "Q3": "yes", "Q4": "mostly not"},
}
"""Figure 2a, its quantitative lines, by family."""


def separation_verdicts(results: BenchmarkResults) -> tuple[Verdict, ...]:
    """The four questions, for each family of variants and for each variant."""
    families: dict[str, list[Variant]] = {}
    for variant in results.preset.variants:
        if variant.settings.get("study") != "screening":
            family = variant.settings.get("family", variant.name)
            families.setdefault(family, []).append(variant)
    return tuple(
        verdict
        for family, variants in families.items()
        for name in QUESTIONS
        for verdict in _answers(results, family, variants, name)
    )


def _answers(
    results: BenchmarkResults, family: str, variants: Sequence[Variant], name: str
) -> Iterator[Verdict]:
    """One for the family, then one for each variant if there are several."""
    asked = [v for v in variants if name in v.settings.get("questions", QUESTIONS)]
    held = {variant.name: _held(results, variant, name) for variant in asked}
    held = {variant: found for variant, found in held.items() if found}
    together = {
        f"{variant}: {where}" if len(held) > 1 else where: yes
        for variant, found in held.items()
        for where, yes in found.items()
    }
    told = PUBLISHED.get(family, {}).get(name, "")
    if together:
        yield _verdict(name, family, tuple(held), together, told)
    if len(held) > 1:
        for variant, found in held.items():
            yield _verdict(name, variant, (variant,), found)


def _verdict(
    name: str,
    where: str,
    variants: tuple[str, ...],
    held: Mapping[str, bool],
    told: str = "",
) -> Verdict:
    question = QUESTIONS[name]
    return Verdict(
        question=name,
        text=question.text,
        where=where,
        variants=variants,
        answer=answer_of(held),
        held=held,
        rule=question.rule,
        published=told,
    )


def answer_of(held: Mapping[str, bool]) -> Answer:
    """The answer that so many of them give."""
    if not held:
        return "unknown"
    share = sum(held.values()) / len(held)
    return "yes" if share >= YES else "no" if share <= NO else "partially"


def _held(results: BenchmarkResults, variant: Variant, name: str) -> dict[str, bool]:
    """By row, and aggregation where it matters, whether its numbers say yes."""
    question = QUESTIONS[name]
    aggregations = _aggregations(variant) if question.score == "ood_auroc" else [""]
    found = {}
    for place in results.benchmark.places(results.preset, variant):
        row = place.row
        if row.beyond or row.stage is not None:
            continue
        for aggregation in aggregations:
            values = _values(results, variant.name, row.name, question, aggregation)
            if values is not None:
                where = f"{row.label}, {aggregation}" if aggregation else row.label
                found[where] = question.holds(*values)
    return found


def _aggregations(variant: Variant) -> Sequence[str]:
    """Those of the paper's Table 4 for this variant."""
    stated: Sequence[str] = variant.settings.get("aggregations", ("patch", "threshold"))
    return stated


def _values(
    results: BenchmarkResults,
    variant: str,
    row: str,
    question: Question,
    aggregation: str,
) -> tuple[float, float] | None:
    """The numbers of AU and EU; None unless both are there."""
    method = results.benchmark.row(row).method.name
    # SSN has its own table; all other methods with draws share one.
    table = "ssn" if method == "ssn" else "ensemble"
    measures = {kind: name for name, kind in UNCERTAINTY_TYPES[table].items()}
    found = []
    for kind in (AU, EU):
        settings = {"measure": measures[kind]}
        if aggregation:
            settings["aggregation"] = aggregation
        found.append(results.cell(variant, row, question.score, settings).ours.mean)
    au, eu = found
    return None if math.isnan(au) or math.isnan(eu) else (au, eu)
