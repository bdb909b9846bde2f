"""Results of the RETINA benchmark in which every number is the published one."""

import math
from statistics import NormalDist

import numpy as np

from qualms.benchmarks.retina import retina
from qualms.evaluate import Curve, Histogram
from qualms.evaluate.results import BenchmarkResults, Cell, DrawnKey, Key
from qualms.published import published

BENCHMARK = retina()
PAPER, DEMO = BENCHMARK.presets["paper"], BENCHMARK.presets["demo"]
SUBSETS = {"in-domain": "in_domain", "shifted": "shifted", "joint": "joint"}
SUBSETS |= {"balanced": "balanced"}
SCALES = {"percent": 100.0, "x100_inferred": 100.0}
SCORES = ("accuracy", "nll", "auroc", "auprc")
TRUTH = ("in_domain/aleatoric_spearman", "in_domain/aleatoric_mae")
TRUTH += ("in_domain/epistemic_spearman", "joint/epistemic_shift_auroc")


def results_as_published(
    *, preset=PAPER, simulated=False, drawn=False, only=("000_retina", "")
):
    """A cell for each number of the tables, with repeats around its mean, and drawings.

    What the tables do not print but figures and our own tables need is made up. `only`
    is the source, and the table where it is to be one alone: others repeat numbers with
    other digits.
    """
    source, table = only
    variants = [v for v in preset.variants if v.simulated == simulated]
    cells = {}
    for number in published("retina").numbers:
        at = number.where
        if at["source"] != source or table not in ("", at["table"]):
            continue
        for found in variants:
            row = row_named(at, preset)
            if setting(found) == (at["task"], at["tuned_on"], at["blur_constant"]):
                value = number.mean / SCALES.get(number.unit, 1.0)
                add(cells, Key(found.name, row, "", score_of(at)), value)
    for found in variants:
        for row in found.rows or preset.rows:
            add_unprinted(cells, found, row)
    return BenchmarkResults(
        benchmark=BENCHMARK,
        preset=preset,
        cells=cells,
        curves=dict(curves(preset, variants)) if drawn else {},
        histograms=dict(histograms(preset, variants)) if drawn else {},
    )


def setting(found):
    blur = found.dataset.options.get("blur") or 30
    chosen = found.selection.replace("_", "")
    return found.dataset.options["shift"], chosen, float(blur)


def row_named(at, preset):
    name = {"radial_mfvi": "radial"}.get(at["method"], at["method"])
    pooled = next(row for row in preset.rows if row.startswith(f"{name}_"))
    return pooled if at["ensemble"] == "true" else name


def score_of(at):
    name = at["metric"]
    if name.startswith("r_"):
        name = f"referral_{name[2:-4]}_oracle_area"
    elif at["referral"]:
        name = f"{name}@{at['referral']:g}"
    return f"{SUBSETS[at['dataset']]}/{name}"


def add(cells, key, value):
    low, high = 0.99 * value, 1.01 * value
    cells[key] = Cell(
        key=key, values=(low, high), as_published=(value,), low=low, high=high
    )


def add_unprinted(cells, found, row):
    for subset in SUBSETS.values():
        for score in SCORES:
            name = f"{subset}/referral_{score}_area"
            add(cells, Key(found.name, row, "", name), 0.7)
    for score in ("auroc", "auprc"):
        add(cells, Key(found.name, row, "", f"balanced/{score}"), 0.8)
    if found.simulated:
        for name in TRUTH:
            add(cells, Key(found.name, row, "", name), 0.4)


def curves(preset, variants):
    """Curves that run through the published points where there are any."""
    rng = np.random.default_rng(0)
    fpr, share = np.linspace(0, 1, 51), np.linspace(0, 0.995, 200)
    known = points(preset)
    for found in variants:
        one_class = found.dataset.options["shift"] == "severity"
        for place, row in enumerate(found.rows or preset.rows):
            for subset in (*SUBSETS.values(), "rebalanced"):
                at = (*setting(found), row, subset)
                error = 0.002 + 0.02 * share**4
                for score in SCORES:
                    if subset == "shifted" and one_class and score.startswith("au"):
                        continue
                    y = known.get((*at, score), (0.85, 0.9, 0.92))
                    ends = (*y, min(y[-1] + 0.01, 1.0))
                    wobble = np.cumsum(rng.normal(size=200)) * 0.0004 * share
                    mean = np.interp(share, (0, 0.5, 0.7, 1), ends) + wobble
                    at_name = (subset, f"referral_{score}")
                    yield curve(found, row, at_name, share, mean, error)
                if subset != "shifted" or not one_class:
                    area = known.get((*at, "auroc"), (0.9,))[0]
                    width = 0.04 * fpr * (1 - fpr) + 0.003
                    yield curve(
                        found, row, (subset, "roc"), fpr, binormal(fpr, area), width
                    )
            flagged = binormal(fpr, 0.35 + 0.05 * (place % 6))
            yield curve(found, row, ("joint", "ood_roc"), fpr, flagged, 0 * fpr + 0.01)


def curve(found, row, what, x, y, stderr):
    subset, name = what
    made = Curve(
        name=name, label=name, subset=subset, x_label="", x=x, y=y, stderr=stderr
    )
    return DrawnKey(found.name, row, "", subset, name), made


def points(preset):
    """Published values at shares 0, 0.5 and 0.7 referred, by setting, row and score."""
    found = {}
    for number in published("retina").numbers:
        at = number.where
        if at["source"] == "000_retina" and at["referral"] != "":
            row = row_named(at, preset)
            key = (at["task"], at["tuned_on"], at["blur_constant"], row)
            key += (SUBSETS[at["dataset"]], at["metric"])
            value = number.mean / SCALES.get(number.unit, 1.0)
            found.setdefault(key, {})[at["referral"]] = value
    return {
        key: tuple(by_tau.get(tau, by_tau[0.0]) for tau in (0.0, 0.5, 0.7))
        for key, by_tau in found.items()
    }


def binormal(fpr, area):
    normal = NormalDist()
    distance = math.sqrt(2) * normal.inv_cdf(area)
    inner = np.clip(fpr, 1e-9, 1 - 1e-9)
    return np.array([normal.cdf(distance + normal.inv_cdf(x)) for x in inner])


def histograms(preset, variants):
    edges = np.linspace(0, np.log(2), 41)
    centres = (edges[1:] + edges[:-1]) / 2
    for found in variants:
        severity = found.dataset.options["shift"] == "severity"
        if found.rows:
            continue
        for place, row in enumerate(preset.rows):
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
                    yield (
                        DrawnKey(found.name, row, "", subset, name),
                        Histogram(
                            name=name,
                            label=name,
                            subset=subset,
                            edges=edges,
                            parts=parts,
                        ),
                    )
