"""Findings of papers are answered by numbers with intervals."""

import json
import math
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from rich.console import Console

from qualms.effects import DecidingNumber, estimates, mean_of, together
from qualms.evaluate.benchmark_results import BenchmarkResults, Check
from qualms.evaluate.entry import Curve
from qualms.evaluate.findings import because, finding_records, published_results
from qualms.inference import Influence, interval_of
from qualms.labels import Labelled
from qualms.report._findings import findings_summary, print_findings, write_findings
from qualms.results import Result, ResultsTable, result
from qualms.shelf import find
from qualms.study import Expectation

BENCHMARKS = {
    name: find("benchmarks", name)()
    for name in ("retina", "regression", "values", "url")
}
NOT_PRINTED = {
    "retina": {
        "At home MC dropout meets the NHS standard: 85 % sensitivity at 80 % "
        "specificity",
        "At home no method but MC dropout meets the NHS standard",
        "Abroad essentially all methods surpass the NHS standard (most of them)",
    },
    "regression": {
        "Coverage drops step by step as the shift grows, from Cells to Cells-Tails "
        "(most steps and methods)"
    },
    "values": set(),
    "url": set(),
}
"""Findings that the papers show in figures alone."""


@pytest.mark.parametrize("name", BENCHMARKS)
def test_what_a_paper_found_holds_by_the_numbers_that_it_prints(name):
    findings = published_results(BENCHMARKS[name]).findings
    assert len(findings) >= 10
    assert all(check.expectation.where for check in findings)
    for check in findings:
        text = check.expectation.text
        absent = text in NOT_PRINTED[name]
        assert bool(check.estimates) != absent, text
        assert check.answer == ("cannot be told" if absent else "holds"), text


def named(name, text):
    """The finding of a benchmark whose text begins so."""
    return next(f for f in BENCHMARKS[name].findings if f.text.startswith(text))


@pytest.mark.parametrize(
    ("text", "value", "answer"),
    [
        ("Selecting by variance", 0.05, "holds"),
        ("Selecting by variance", -0.2, "does not hold"),
        ("On real data selective GMM", 0.05, "holds"),
        ("On real data selective GMM", -0.2, "does not hold"),
    ],
)
def test_only_marginally_is_neither_more_nor_worse(text, value, answer):
    asked = replace(
        named("regression", text),
        numbers=lambda _: {"a": DecidingNumber(value, value - 0.01, value + 0.01)},
    )
    assert Check.of(asked, judged_by(finding=asked)).answer == answer


def test_limits_of_the_papers_data_are_not_asked_of_other_data():
    url = BENCHMARKS["url"]
    asked = replace(
        named("url", "No uncertainty of a pretrained network"),
        numbers=lambda _: {"ce": DecidingNumber(0.9, 0.89, 0.91)},
    )
    plan = url.plan("demo")
    table = ResultsTable.of([result({**plan.lines[0].labels, "score": "s"}, (0.9,))])
    check = Check.of(asked, BenchmarkResults(plan=plan, table=table))
    assert check.answer == "cannot be told"
    assert because(check).startswith("not comparable")


def test_ambiguity_is_modelled_best_by_ncc_in_figure_3():
    values = BENCHMARKS["values"].findings
    assert not any("figure 4" in each.where for each in values)
    best = named("values", "SSN models ambiguity best")
    numbers = best.numbers(published_results(BENCHMARKS["values"]))
    assert "GTA5/CS, ttd, shifted" in numbers
    assert all(number.value <= 0 for number in numbers.values())


def test_a_part_of_the_methods_and_numbers_alone_are_said():
    printed = published_results(BENCHMARKS["retina"])
    summary = findings_summary(printed)
    assert "that only its numbers state" in summary
    assert "a part" not in summary
    (check, *_) = (c for c in printed.findings if c.printed > 1)
    some = dict(list(check.estimates.items())[:1])
    part = replace(check, estimates=some, values={n: v.value for n, v in some.items()})
    assert part.part
    assert f"the paper has {check.printed} numbers" in because(part)


def judged_by(*numbers, finding):
    """Results of rows, each (row, dataset, value, half the length of its interval)."""
    benchmark = replace(BENCHMARKS["regression"], findings=(finding,))
    table = ResultsTable.of(
        Result(
            labels={
                "dataset": dataset,
                "simulated": simulated,
                "row": row,
                "score": "s",
            },
            value=value,
            low=value - half,
            high=value + half,
        )
        for row, dataset, simulated, value, half in numbers
    )
    return BenchmarkResults(plan=benchmark.plan("demo"), table=table)


def finding(numbers=None, **limits):
    numbers = numbers or estimates({"score": "s", "dataset": "d"})
    return Expectation(text="it is small", where="Table 1", numbers=numbers, **limits)


def answer(*numbers, of):
    (check,) = judged_by(*numbers, finding=of).findings
    return check


@pytest.mark.parametrize(
    ("value", "half", "word"),
    [
        (0.4, 0.05, "holds"),
        (0.6, 0.05, "does not hold"),
        (0.52, 0.05, "cannot be told"),
        (0.4, math.nan, "cannot be told"),
        (math.nan, math.nan, "cannot be told"),
    ],
)
def test_an_interval_across_the_limit_cannot_tell(value, half, word):
    check = answer(("a", "d", True, value, half), of=finding(high=0.5))
    assert check.answer == word


def test_no_number_at_all_cannot_tell():
    check = answer(("a", "elsewhere", True, 0.1, 0.0), of=finding(high=0.5))
    assert check.answer == "cannot be told"
    assert because(check) == "not in these results"


def test_all_most_or_any_numbers_must_fit():
    numbers = [("a", "d", True, 0.1, 0.1), ("b", "d", True, 0.9, 0.05)]
    numbers.append(("c", "d", True, 0.2, 0.1))
    assert answer(*numbers, of=finding(high=0.5)).answer == "does not hold"
    assert answer(*numbers, of=finding(high=0.5, most=True)).answer == "holds"
    assert answer(*numbers, of=finding(low=0.8, any_row=True)).answer == "holds"
    assert answer(*numbers, of=finding(low=0.8, most=True)).answer == "does not hold"
    unclear = [*numbers[:2], ("c", "d", True, 0.5, 0.1)]
    assert answer(*unclear, of=finding(high=0.5, most=True)).answer == "cannot be told"


def test_differences_have_the_intervals_of_both_numbers():
    numbers = [("a", "d", True, 0.8, 0.03), ("b", "d", True, 0.5, 0.04)]
    of = finding(estimates({"score": "s"}, minus={"row": "b"}), low=0.0)
    check = answer(*numbers, of=of)
    assert list(check.estimates) == ["a"]  # nothing is compared with itself
    assert check.estimates["a"] == pytest.approx((0.3, 0.25, 0.35))
    assert check.answer == "holds"


def test_real_data_are_taken_before_simulated_ones_and_never_mixed():
    numbers = [
        *(("a", "d", True, 0.8, 0.0), ("b", "d", True, 0.5, 0.0)),
        ("a", "d", False, 0.6, 0.0),
    ]
    assert answer(*numbers, of=finding()).values == {"a": 0.6, "b": 0.5}
    of = finding(estimates({"score": "s"}, minus={"row": "b"}))
    assert answer(*numbers, of=of).values == pytest.approx({"a": 0.3})


def test_numbers_without_an_interval_decide_nothing():
    """Two seeds have a spread, and no interval."""
    table = ResultsTable.of(
        [Result(labels={"row": "a", "score": "s"}, value=0.4, spread=0.02)]
    )
    plan = BENCHMARKS["regression"].plan("demo")
    judged = BenchmarkResults(plan=plan, table=table)
    number = estimates({"score": "s"})(judged)["a"]
    assert number.value == 0.4
    assert math.isnan(number.low)
    assert math.isnan(number.high)
    asked = finding(estimates({"score": "s"}), high=0.9)
    assert Check.of(asked, judged).answer == "cannot be told"


def equal_methods(rng, methods, seeds):
    """Numbers of methods of one truth, with the intervals of their seeds."""
    common = rng.normal(size=100)
    numbers = {}
    for method in map(str, range(methods)):
        own = math.sqrt(0.6) * common + math.sqrt(0.4) * rng.normal(size=100)
        values = own.mean() + 0.2 * rng.normal(size=seeds)
        change = (own - own.mean()) / 100
        limits = {"scale": "linear", "low": -math.inf, "high": math.inf}
        repeats = [Influence(value=v, values=change, **limits) for v in values]
        interval = interval_of(repeats)
        numbers[method] = DecidingNumber(
            float(values.mean()), interval.low, interval.high
        )
    return numbers


@pytest.mark.parametrize(("seeds", "most"), [(2, 0), (3, 12), (5, 12)])
@pytest.mark.parametrize("enough", [{}, {"most": True}, {"any_row": True}])
def test_equal_methods_are_rarely_said_to_hold_or_not(seeds, most, enough):
    """At a limit that is the truth, 5 % of 120 answers are 6; 12 of them have 2 %."""
    answers = Counter()
    for sample in range(120):
        numbers = equal_methods(np.random.default_rng([sample, seeds]), 6, seeds)
        asked = finding(lambda _, numbers=numbers: numbers, high=0.0, **enough)
        answers[Check.of(asked, None).answer] += 1
        gaps = {name: numbers[name] - numbers["0"] for name in "12345"}
        asked = finding(lambda _, gaps=gaps: gaps, high=0.0, **enough)
        answers[f"best: {Check.of(asked, None).answer}"] += 1
    assert answers["best: holds"] + answers["best: does not hold"] <= most
    assert answers["holds"] + answers["does not hold"] <= most


def test_means_and_unions_of_numbers():
    mean = mean_of([DecidingNumber(0.2, 0.1, 0.3), DecidingNumber(0.4, 0.4, 0.4)])
    assert mean == pytest.approx((0.3, 0.25, 0.35))
    both = together(lambda _: {"a": 1.0}, lambda _: {"b": 2.0})
    assert both(None) == {"a": 1.0, "b": 2.0}


def test_answers_are_printed_in_short_and_complete_in_json(tmp_path):
    numbers = [("a", "d", True, 0.1, 0.1), ("b", "d", True, 0.9, 0.1)]
    judged = judged_by(*numbers, finding=finding(high=0.5))
    console = Console(width=80)
    with console.capture() as capture:
        print_findings(judged, console=console)
    assert capture.get().splitlines() == [
        "0 of 1 finding of the paper hold, 1 does not",
        "  does not hold: it is small",
    ]
    data = json.loads(write_findings(judged, tmp_path / "f.json").read_text("utf-8"))
    (record,) = data["findings"]
    assert record["answer"] == "does not hold"
    assert record["because"] == (
        "1 of 2 numbers fit; against it: b 0.900 (0.800 to 1.000)"
    )
    assert record["numbers"][1]["name"] == "b"
    assert record["low"] is None
    assert record["high"] == 0.5
    assert list(finding_records(judged.findings)) == data["findings"]


def test_answers_of_simulated_data_say_so():
    benchmark = BENCHMARKS["regression"]
    plan = benchmark.plan("demo")
    labels = {**plan.lines[0].labels, "subset": "test", "score": "coverage"}
    table = ResultsTable.of([result(labels, (0.9,))])
    console = Console(width=120)
    with console.capture() as capture:
        print_findings(BenchmarkResults(plan=plan, table=table), console=console)
    assert "13 cannot be told, on simulated data" in capture.get()


def test_a_benchmark_without_findings_says_nothing():
    judged = judged_by(finding=finding())
    silent = replace(
        judged, plan=replace(judged.plan, benchmark=find("benchmarks", "own")())
    )
    console = Console(width=80)
    with console.capture() as capture:
        print_findings(silent, console=console)
    assert capture.get() == ""
    with pytest.raises(ValueError, match="'own' has no published numbers"):
        published_results(silent.benchmark)


def nhs(height, counts, *, repeats=3, stderr=0.0):
    """Answer the first finding of RETINA by a ROC curve of this height."""
    retina = BENCHMARKS["retina"]
    labels = {"shift": "country", "selection": "in_domain", "subset": "in_domain"}
    labels |= {"method": "mc_dropout", "pool": 1}
    x = np.linspace(0, 1, 101)
    curve = Curve(
        name="roc",
        label="",
        subset="in_domain",
        x_label="",
        x=x,
        y=np.minimum(1, x * height / 0.2),
        stderr=np.full(101, stderr),
        counts=counts,
    )
    judged = BenchmarkResults(
        plan=retina.plan("demo"),
        table=ResultsTable.of([result({**labels, "score": "auroc"}, (0.9,) * repeats)]),
        curves=Labelled.of([({**labels, "name": "roc"}, curve)]),
    )
    return judged.findings[0]


def test_a_roc_curve_decides_the_nhs_standard():
    many = (100_000, 100_000)
    assert nhs(0.9, many).answer == "holds"
    assert nhs(0.8, many).answer == "does not hold"
    assert nhs(0.9, (50, 200)).answer == "cannot be told"
    assert nhs(0.9, many, stderr=0.02).answer == "cannot be told"
    assert nhs(0.9, many, repeats=1).answer == "cannot be told"
    assert nhs(0.9, many, repeats=2).answer == "cannot be told"
    assert nhs(0.9, many).values == pytest.approx({"mc_dropout": 0.9})
