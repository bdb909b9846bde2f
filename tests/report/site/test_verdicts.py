"""Findings in words: each follows its rule, and is left out without its numbers."""

import math
from dataclasses import replace

import pytest

from qualms.report.benchmark_report import (
    BenchmarkReport,
    EffectAnswer,
    VariantFacts,
)
from qualms.report.site.text import plain_text
from qualms.report.site.verdicts import Sentence, benchmark_sentences, telling
from qualms.report.table import Column, Table, TableCell, TableLine


def cell(mean, low=math.nan, high=math.nan, **more):
    return TableCell(mean=mean, low=low, high=high, repeats=3, **more)


def table(columns, rows, **more):
    return Table(
        name="t",
        title="Summary",
        columns=tuple(
            Column(label=label, group=keys.get("subset", ""), keys=keys, decimals=1)
            for label, keys in columns
        ),
        lines=tuple(
            TableLine(labels=(name,), cells=tuple(cells), keys={"row": name})
            for name, cells in rows
        ),
        **more,
    )


HOME = {"score": "accuracy", "subset": "in_domain"}
AWAY = {"score": "accuracy", "subset": "shifted"}
HALF = {**AWAY, "referred": 0.5}


def said(*tables, **facts):
    report = BenchmarkReport(name="mine", title="Mine", **facts)
    return [
        f"{each.sign} {plain_text(each.words)}".replace("\N{EN DASH}", "-")
        for each in benchmark_sentences(report, tables, "mine")
    ]


def test_the_best_is_named_with_those_that_may_be_best():
    rows = [
        ("a", [cell(90, 88, 92, tied=True, best=True)]),
        ("b", [cell(89, 87, 91, tied=True)]),
        ("c", [cell(80, 78, 82)]),
    ]
    (words,) = said(table([("accuracy ↑", HOME)], rows))
    assert words == (
        "≈ a (90.0, 88.0-92.0) and 1 of 2 others cannot be told apart on accuracy,"
        " in_domain."
    )
    rows[1] = ("b", [cell(80, 78, 82)])
    (words,) = said(table([("accuracy ↑", HOME)], rows))
    assert words == "✓ a (90.0, 88.0-92.0) is best on accuracy, in_domain."
    rows = [(name, [cell(90, 88, 92, tied=True)]) for name in "abc"]
    (words,) = said(table([("accuracy ↑", HOME)], rows))
    assert words.startswith("≈ No method can be told apart from the best on accuracy")


def test_few_seeds_claim_nothing():
    rows = [("a", [cell(90, seeds=(89, 91))]), ("b", [cell(95, seeds=(94, 96))])]
    (words,) = said(table([("accuracy ↑", HOME)], rows))
    assert words == (
        "? b (95.0, seeds 94.0-96.0) is the highest estimate on accuracy, in_domain."
        " There is no interval of others: the seeds are too few."
    )


@pytest.mark.parametrize(
    ("away", "words"),
    [
        ((70, 69, 71), "↘ Under shift accuracy goes from 90.0 to 70.0-80.0: every"),
        ((90, 80, 99), "1 of 2 methods get worse by their whole interval, 0 better."),
        ((99, 98.5, 99.5), "1 of 2 methods get worse by their whole interval, 1 bett"),
    ],
)
def test_a_fall_is_of_every_method_only_if_each_interval_shows_it(away, words):
    rows = [
        ("a", [cell(90, 89, 91), cell(*away)]),
        ("b", [cell(90, 89, 91), cell(80, 79, 81)]),
    ]
    sentences = said(table([("accuracy", HOME), ("accuracy", AWAY)], rows))
    assert any(words in sentence for sentence in sentences)


def test_an_error_that_rises_is_a_fall():
    home, away = {**HOME, "score": "nll"}, {**AWAY, "score": "nll"}
    rows = [("a", [cell(0.2, 0.1, 0.3), cell(0.8, 0.7, 0.9)])]
    words = said(table([("NLL", home), ("NLL", away)], rows))
    assert any("every method gets worse" in each for each in words)


@pytest.mark.parametrize(
    ("half", "sign", "words"),
    [
        ((95, 94, 96), "↗", "it is better than its 90.0 at home"),
        ((80, 79, 81), "↘", "it is worse than its 90.0 at home"),
        ((89, 85, 93), "≈", "it cannot be told apart from its 90.0 at home"),
    ],
)
def test_referral_is_compared_with_home(half, sign, words):
    columns = [("accuracy", HOME), ("accuracy", AWAY), ("half kept", HALF)]
    rows = [("a", [cell(90, 89, 91), cell(70, 69, 71), cell(*half)])]
    sentences = [each for each in said(table(columns, rows)) if "Referring" in each]
    (sentence,) = sentences
    assert sentence.startswith(f"{sign} Referring the most uncertain 50 % of shifted")
    assert words in sentence


def test_promises_are_broken_by_whole_intervals():
    coverage = [("coverage", {"score": "coverage", "subset": "test"})]
    rows = [("a", [cell(0.8, 0.7, 0.85)]), ("b", [cell(0.88, 0.85, 0.91)])]
    keys = {"alpha": 0.1, "variant": "tails", "dataset": "Tails"}
    variant = VariantFacts("tails", "Tails", True, "longer tails")
    (words,) = said(table(coverage, rows, keys=keys), variants=(variant,))
    assert words == (
        "✗ Intervals that promise 90 % hold 0.8-0.9 under shift on Tails; 1 of 2 kinds"
        " hold less by their whole interval."
    )


def test_effects_are_counted_and_undecided_ones_left_out():
    effects = (
        EffectAnswer("one", "held"),
        EffectAnswer("two", "not held"),
        EffectAnswer("three", "unknown"),
    )
    assert said(effects=effects) == [
        "✗ 1 of 2 expected effects that these runs can decide holds. This does not:"
        " two."
    ]
    assert said(findings=(EffectAnswer("one", "cannot be told"),)) == []
    assert said() == []


def test_undefined_numbers_leave_their_sentence_out():
    rows = [("a", [cell(math.nan)]), ("b", [cell(90, 88, 92)])]
    assert said(table([("accuracy ↑", HOME)], rows)) == []


def test_an_estimate_without_a_marked_winner_is_named_as_such():
    rows = [("a", [cell(0.9, 0.8, 1.0)]), ("b", [cell(0.7, 0.6, 0.8)])]
    shown = table([("Toy 1", {})], rows)
    (words,) = said(replace(shown, title="Table 4: NCC \N{UPWARDS ARROW}"))
    assert words == (
        "? a (0.9, 0.8-1.0) is the highest estimate on Table 4: NCC, Toy 1. No winner"
        " is marked among the rows."
    )


def test_losses_are_told_before_what_holds():
    sentences = [Sentence(sign=sign, words=str(n)) for n, sign in enumerate("✓≈✗?↘✗")]
    for most, signs in ((1, "✗"), (3, "✗↘✗"), (4, "≈✗↘✗"), (9, "✓≈✗?↘✗")):
        assert "".join(each.sign for each in telling(sentences, most)) == signs
    assert telling([], 3) == []
