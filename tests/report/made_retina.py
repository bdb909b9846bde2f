"""Results of the RETINA benchmark in which every number is the published one."""

import math
from statistics import NormalDist

import numpy as np

from qualms.benchmarks.retina import retina
from qualms.evaluate import Curve, Histogram
from qualms.evaluate.benchmark_results import BenchmarkResults
from qualms.labels import Labelled
from qualms.published import published
from qualms.results import Result, ResultsTable, result

BENCHMARK = retina()
PAPER, DEMO = BENCHMARK.plan("paper"), BENCHMARK.plan("demo")
NUMBERS = published(BENCHMARK.published).table
SUBSETS = ("in_domain", "shifted", "joint", "balanced")
SCORES = ("accuracy", "nll", "auroc", "auprc")
TRUTH = (
    *(("in_domain", "aleatoric_spearman"), ("in_domain", "aleatoric_mae")),
    *(("in_domain", "epistemic_spearman"), ("joint", "epistemic_shift_auroc")),
)
LABELS = ("subset", "score", "referred")


def results_as_published(
    *, plan=PAPER, simulated=False, drawn=False, only=("000_retina", None)
):
    """A result for each number of the tables, repeats around its mean, and drawings.

    What the tables do not print but figures and our own tables need is made up. `only`
    is the source, and the table where it is to be one alone: others repeat numbers with
    other digits. Lines of other data were not run.
    """
    source, table = only
    wanted = {"source": source} if table is None else {"source": source, "table": table}
    numbers, made = NUMBERS.where(**wanted), {}
    for line in plan.lines:
        if line.variant.simulated != simulated:
            add(made, Result(labels=line.labels, why="was not run"))
            continue
        for number in numbers.where(**setting(line)):
            own = {n: number.labels[n] for n in LABELS if n in number.labels}
            add(made, around({**line.labels, **own}, number.value))
        for own, value in unprinted(line):
            add(made, around({**line.labels, **own}, value))
    lines = [line for line in plan.lines if line.variant.simulated == simulated]
    return BenchmarkResults(
        plan=plan,
        table=ResultsTable.of(made.values()),
        curves=Labelled.of(curves(lines) if drawn else ()),
        histograms=Labelled.of(histograms(lines) if drawn else ()),
    )


def setting(line):
    """The published labels of a line; simulated data and pairs are like the paper's."""
    return {
        "shift": line.labels["shift"],
        "selection": line.labels["selection"],
        "blur": line.labels.get("blur", 30),
        "method": line.row.method.name,
        "pool": 3 if line.row.pool > 1 else 1,
    }


def add(made, found):
    made[tuple(sorted(found.labels.items()))] = found


def around(labels, value):
    low, high = 0.99 * value, 1.01 * value
    return result(labels, (low, high), released_values=(value,), low=low, high=high)


def with_results(results, *changed):
    """The results with these in place of those with the same labels."""
    made = {}
    for found in (*results.table, *changed):
        add(made, found)
    return ResultsTable.of(made.values())


def unprinted(line):
    for subset in SUBSETS:
        for score in SCORES:
            yield {"subset": subset, "score": f"referral_{score}_area"}, 0.7
    for score in ("auroc", "auprc"):
        yield {"subset": "balanced", "score": score}, 0.8
    for subset, score in TRUTH if line.variant.simulated else ():
        yield {"subset": subset, "score": score}, 0.4


def curves(lines):
    """Curves that run through the published points where there are any."""
    rng = np.random.default_rng(0)
    fpr, share = np.linspace(0, 1, 51), np.linspace(0, 0.995, 200)
    for line in lines:
        one_class = line.labels["shift"] == "severity"
        place = rows_of(line, lines).index(line.row.name)
        for subset in (*SUBSETS, "rebalanced"):
            error = 0.002 + 0.02 * share**4
            for score in SCORES:
                if subset == "shifted" and one_class and score.startswith("au"):
                    continue
                y = points(line, subset, score)
                ends = (*y, min(y[-1] + 0.01, 1.0))
                wobble = np.cumsum(rng.normal(size=200)) * 0.0004 * share
                mean = np.interp(share, (0, 0.5, 0.7, 1), ends) + wobble
                name = f"referral_{score}"
                yield curve(line, (subset, name), share, mean, error)
            if subset != "shifted" or not one_class:
                area = points(line, subset, "auroc", (0.9,))[0]
                width = 0.04 * fpr * (1 - fpr) + 0.003
                yield curve(line, (subset, "roc"), fpr, binormal(fpr, area), width)
        flagged = binormal(fpr, 0.35 + 0.05 * (place % 6))
        yield curve(line, ("joint", "ood_roc"), fpr, flagged, 0 * fpr + 0.01)


def rows_of(line, lines):
    return [other.row.name for other in lines if other.variant is line.variant]


def curve(line, what, x, y, stderr):
    subset, name = what
    made = Curve(
        name=name, label=name, subset=subset, x_label="", x=x, y=y, stderr=stderr
    )
    return {**line.labels, "subset": subset, "name": name}, made


def points(line, subset, score, usual=(0.85, 0.9, 0.92)):
    """Published values at shares 0, 0.5 and 0.7 referred."""
    printed = NUMBERS.where(
        source="000_retina", **setting(line), subset=subset, score=score
    )
    by_share = {one.labels.get("referred", 0.0): one.value for one in printed}
    if not by_share:
        return usual
    return tuple(by_share.get(share, by_share[0.0]) for share in (0.0, 0.5, 0.7))


def binormal(fpr, area):
    normal = NormalDist()
    distance = math.sqrt(2) * normal.inv_cdf(area)
    inner = np.clip(fpr, 1e-9, 1 - 1e-9)
    return np.array([normal.cdf(distance + normal.inv_cdf(x)) for x in inner])


def histograms(lines):
    edges = np.linspace(0, np.log(2), 41)
    centres = (edges[1:] + edges[:-1]) / 2
    for line in lines:
        severity = line.labels["shift"] == "severity"
        if line.variant.rows:
            continue
        place = rows_of(line, lines).index(line.row.name)
        for subset in ("in_domain", "shifted"):
            grades = range(5)
            if severity:
                grades = range(3) if subset == "in_domain" else (3, 4)
            for grade in grades:
                right = np.exp(-centres * (12 - grade - place % 6))
                wrong = np.exp(-((centres - 0.6 + 0.05 * (place % 6)) ** 2) / 0.03)
                share = 0.03 + 0.05 * grade
                name = f"uncertainty/grade={grade}"
                parts = {
                    "correct": (1 - share) * right / right.sum(),
                    "incorrect": share * wrong / wrong.sum(),
                }
                made = Histogram(
                    name=name, label=name, subset=subset, edges=edges, parts=parts
                )
                yield {**line.labels, "subset": subset, "name": name}, made
