"""Do thresholds, targets, groups, bands and sets keep their promises? A simulation.

`python -m bench.operating_points --write` draws samples from populations whose scores
are known, counts how often 95 % intervals hold the truth, how often a promised rate is
reached, how often a target is wrongly said to be met or missed, and how often sets hold
their target, and writes the tables of docs/intervals.md. `--repetitions 50` is quick.
"""

import argparse
import math
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import numpy as np
from scipy.special import expit, softmax

import qualms
from qualms import scores
from qualms.evaluate import PointOptions, ScoreOptions
from qualms.evaluate.drawings import CALIBRATION_GRID, calibration_band
from qualms.inference import influence_of, interval_of, sampling_design
from qualms.scores.arguments import called_in_order

PAGE = Path(__file__).parents[1] / "docs" / "intervals.md"
BEGIN = (
    "<!-- Written by bench/operating_points.py: do not edit up to the next mark. -->"
)
END = "<!-- End of what bench/operating_points.py writes. -->"
THRESHOLD, LARGE = 0.3, 2_000_000
SIZES = (50, 200, 1_000)


def patients(n, rng, *, share=0.3, eyes=1, effect=1.6):
    """Return items: `eyes` of each patient, whose noise and outcome they share."""
    people = max(n // eyes, 1)
    person = np.repeat(np.arange(people), eyes)
    together = 0.8 if eyes > 1 else 0.0
    common = rng.normal(size=people)[person]
    positive = rng.random(people)[person] < share
    if eyes > 1:
        positive ^= (rng.random(len(person)) < 0.05) & positive
    noise = math.sqrt(together) * common
    noise = noise + math.sqrt(1 - together) * rng.normal(size=len(person))
    prob = expit(1.3 * (noise + effect * positive) - 1.8)
    return {"prob": prob, "positive": positive, "person": person}


POPULATIONS = {
    "30 % positives": partial(patients),
    "5 % positives": partial(patients, share=0.05),
    "four eyes of each patient": partial(patients, eyes=4),
}
AT_THRESHOLD = {
    "Sensitivity": scores.sensitivity,
    "Specificity": scores.specificity,
    "PPV": scores.ppv,
    "NPV": scores.npv,
    "LR+": scores.lr_positive,
    "LR-": scores.lr_negative,
    "PPV at 1 %": partial(scores.ppv, prevalence=0.01),
    "NPV at 1 %": partial(scores.npv, prevalence=0.01),
}
OF_SCORES = {
    "Sensitivity at 80 %": scores.sensitivity_at_specificity,
    "Calibration slope": scores.calibration_slope,
    "Calibration intercept": scores.calibration_intercept,
}


def cases(items) -> Iterator[tuple]:
    """Yield label, score and arrays of every score of two classes."""
    called = scores.called_positive(items["prob"], THRESHOLD)
    for label, score in AT_THRESHOLD.items():
        yield label, score, (called, items["positive"])
    for label, score in OF_SCORES.items():
        yield label, score, (items["prob"], items["positive"])


def covered(repetitions) -> list[list[str]]:
    """Return coverage of every score, by population and number of items."""
    cells: dict[str, dict] = {}
    for name, draw in POPULATIONS.items():
        rng = np.random.default_rng(1)
        truth = {
            label: called_in_order(score, *arrays)
            for label, score, arrays in cases(draw(LARGE, rng))
        }
        for n in SIZES:
            held = {label: [] for label in truth}
            for _ in range(repetitions):
                items = draw(n, rng)
                clustered = name.startswith("four")
                cluster = items["person"] if clustered else None
                design = sampling_design(len(items["prob"]), cluster=cluster)
                for label, score, arrays in cases(items):
                    influence = influence_of(score, *arrays)
                    interval = interval_of(influence, design=design)
                    held[label].append(
                        math.nan
                        if math.isnan(interval.low) or math.isnan(influence.value)
                        else interval.low <= truth[label] <= interval.high
                    )
            for label, found in held.items():
                cells.setdefault(label, {})[name, n] = found
    return [
        [label, *(percent(by[name, n]) for name in POPULATIONS for n in SIZES)]
        for label, by in cells.items()
    ]


def percent(found) -> str:
    """Return the share of what was found; '-' where most have no interval."""
    held = [value for value in found if not math.isnan(value)]
    if len(held) < len(found) / 2:
        return "-"
    missing = "" if len(held) == len(found) else "*"
    return f"{100 * np.mean(held):.1f}{missing}"


def promises(repetitions) -> list[list[str]]:
    """Return how often a promised rate is reached, and by how much it is exceeded."""
    lines = []
    for name in ("30 % positives", "four eyes of each patient"):
        draw = POPULATIONS[name]
        rng = np.random.default_rng(2)
        many = draw(LARGE, rng)
        for n in (200, 1_000):
            kept = {0.8: [], 0.9: []}
            for _ in range(repetitions):
                val = draw(n, rng)
                for wanted, reached in kept.items():
                    results = points_of(val, (f"promised-sensitivity={wanted}",))
                    called = many["prob"] >= results[0].threshold
                    reached.append(called[many["positive"]].mean())
            for wanted, reached in kept.items():
                rate = np.mean(np.array(reached) >= wanted)
                lines.append(
                    [
                        *(name, f"{n}", f"{wanted:.0%}"),
                        *(f"{100 * rate:.1f}", f"{100 * np.mean(reached):.1f}"),
                    ]
                )
    return lines


def points_of(val, rules, test=None, **options):
    """Return the operating points of a file."""

    def arrays(items):
        given = {"target": items["positive"].astype(int), "prob": items["prob"]}
        return {**given, "cluster": items["person"]}

    small = {name: values[:4] for name, values in val.items()}
    return qualms.score(
        arrays(small if test is None else test),
        val=arrays(val),
        force_val=True,
        points=PointOptions(thresholds=rules, **options),
    ).points


def answers(repetitions) -> list[list[str]]:
    """Return how often a target that is exactly missed, or met, is misjudged."""
    draw, rng = POPULATIONS["30 % positives"], np.random.default_rng(3)
    many = draw(LARGE, rng)
    called = many["prob"] >= THRESHOLD
    rates = {
        "sensitivity": called[many["positive"]].mean(),
        "specificity": (~called)[~many["positive"]].mean(),
    }
    curve = scores.sensitivity_at_specificity(
        score=many["prob"], positive=many["positive"], specificity=0.8
    )
    at_curve = {"sensitivity": curve, "specificity": 0.8}
    lines = []
    for what, target, place in (
        ("both rates exactly at the target", rates, 0),
        ("the ROC curve exactly at the target", at_curve, 1),
        (
            "one rate at the target, the other above",
            {**rates, "specificity": rates["specificity"] - 0.2},
            0,
        ),
    ):
        for n in (200, 1_000):
            found = []
            for _ in range(repetitions):
                items = draw(n, rng)
                found.append(
                    points_of(items, (THRESHOLD,), items, meets=target)[place].answer
                )
            counts = (found.count(answer) for answer in ("yes", "no"))
            shares = [f"{100 * count / len(found):.1f}" for count in counts]
            lines.append([what, f"{n}", *shares])
    return lines


def groups(repetitions) -> list[list[str]]:
    """Return how often the intervals of worst group and largest gap hold the truth."""
    lines = []
    for count, apart in ((2, 0.0), (2, 0.1), (5, 0.0), (5, 0.1), (20, 0.0)):
        rng = np.random.default_rng(4)
        right_in = 0.9 - apart * (np.arange(count) == 0)
        held = {"worst": [], "gap": [], "no gap": []}
        for _ in range(repetitions):
            n = 100 * count
            group = rng.integers(count, size=n)
            target = rng.integers(2, size=n)
            right = rng.random(n) < right_in[group]
            prob = np.where(right == (target == 1), 0.8, 0.2)
            results = qualms.score(
                {"target": target, "prob": prob, "group": group},
                options=ScoreOptions(by_group=True),
            )
            (spread,) = (g for g in results.groups if g.score == "accuracy")
            held["worst"].append(spread.least.low <= 0.9 - apart <= spread.least.high)
            held["gap"].append(spread.gap.low <= apart <= spread.gap.high)
            held["no gap"].append(spread.gap.low > 0.0)
        shares = [f"{100 * np.mean(found):.1f}" for found in held.values()]
        lines.append([f"{count}", f"{apart:.0%}", *shares])
    return lines


def bands(repetitions) -> list[list[str]]:
    """Return how often the band of the calibration curve holds the truth, on average.

    The points are those within the middle 90 % of the probabilities.
    """
    lines = []
    for name, slope in (("calibrated", 1.0), ("over-confident", 0.6)):
        for n in (200, 1_000, 5_000):
            rng, held = np.random.default_rng(5), []
            for _ in range(repetitions):
                logits = 1.5 * rng.normal(size=n)
                positive = rng.random(n) < expit(slope * logits)
                curve = calibration_band(
                    expit(logits), positive, subset="all", design=sampling_design(n)
                )
                ends = expit(1.5 * np.array([-1.645, 1.645]))
                inside = (ends[0] <= curve.x) & (curve.x <= ends[1])
                inside &= ~np.isnan(curve.y)
                grid = CALIBRATION_GRID[inside]
                truth = expit(slope * np.log(grid / (1 - grid)))
                assert curve.low is not None
                assert curve.high is not None
                low, high = curve.low[inside], curve.high[inside]
                held.append(np.mean((low <= truth) & (truth <= high)))
            lines.append([name, f"{n}", f"{100 * np.mean(held):.1f}"])
    return lines


def grades(n, rng, *, hard=1.0, share=None):
    """Return probabilities and classes of five grades; a share of each class."""
    target = rng.choice(5, n, p=share)
    away = np.abs(np.arange(5) - target[:, None])
    logits = -1.2 * away / hard + rng.normal(size=(n, 5)) * hard
    return softmax(logits, axis=1), target


def sets(repetitions) -> list[list[str]]:
    """Return mean coverage of sets and intervals that aim at 90 %."""
    rng, n = np.random.default_rng(6), 300
    found: dict[str, list] = {}

    def note(name, inside):
        found.setdefault(name, []).append(float(np.mean(inside)))

    moved = np.array([0.05, 0.05, 0.1, 0.3, 0.5])
    for _ in range(repetitions):
        val, new = grades(n, rng), grades(n, rng)
        for rule in ("lac", "aps", "saps"):
            fitted = scores.fit_conformal_sets(*val, alpha=0.1, rule=rule)
            note(rule, scores.set_coverage(fitted.apply(new[0]), new[1]))
        shifted = grades(n, rng, share=moved)
        plain = scores.fit_conformal_sets(*val, alpha=0.1)
        inside = scores.set_coverage(plain.apply(shifted[0]), shifted[1])
        note("lac, other shares of classes", inside)
        for name, weight in (
            ("lac, label shift, shares known", moved * 5),
            (
                "lac, label shift, shares estimated",
                scores.label_shift_weights(*val, shifted[0]),
            ),
        ):
            fitted = scores.fit_label_shift_sets(*val, weight, alpha=0.1)
            note(name, scores.set_coverage(fitted.apply(shifted[0]), shifted[1]))
        group = np.repeat([0, 1], [n // 2, n - n // 2])
        scale = np.where(group == 0, 1.0, 3.0)
        zeros, target, other = np.zeros(n), *(rng.normal(size=(2, n)) * scale)
        by_group = scores.mondrian_offset(
            lower=zeros,
            upper=zeros,
            target=target,
            group=group,
            test_group=group,
            alpha=0.1,
        )
        alone = scores.conformal_offset(
            lower=zeros, upper=zeros, target=target, alpha=0.1
        )
        for number in (0, 1):
            own = group == number
            note(f"intervals, group {number + 1}", np.abs(other)[own] <= alone)
            note(
                f"intervals by group, group {number + 1}",
                np.abs(other)[own] <= by_group[own],
            )
    return [[name, f"{100 * np.mean(shares):.1f}"] for name, shares in found.items()]


def table(heads, lines) -> list[str]:
    return [
        f"|{'|'.join(heads)}|",
        f"|{'|'.join('---' for _ in heads)}|",
        *(f"|{'|'.join(line)}|" for line in lines),
        "",
    ]


def tables(repetitions) -> str:
    few = max(repetitions // 4, 1)
    columns = [f"{name}, n = {n}" for name in POPULATIONS for n in SIZES]
    return "\n".join(
        [
            f"{repetitions:,} repetitions of intervals, bands and sets; {few:,} of "
            "promises, answers and groups. Numbers are %.",
            "",
            *table(["Score", *columns], covered(repetitions)),
            *table(
                ["Population", "Validation items", "Promised", "Kept", "Mean rate"],
                promises(few),
            ),
            *table(["Target", "n", "Yes", "No"], answers(few)),
            *table(
                [
                    *("Groups of 100", "One is worse by", "Worst group"),
                    *("Difference", "Difference above 0"),
                ],
                groups(few),
            ),
            *table(["Calibration curve", "n", "Band"], bands(max(few, 100))),
            *table(["Sets that aim at 90 %", "Coverage"], sets(repetitions)),
        ]
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repetitions", type=int, default=2_000)
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    text = tables(options.repetitions)
    print(text)
    if options.write:
        page = PAGE.read_text("utf-8")
        before, after = page.split(BEGIN)[0], page.split(END)[1]
        PAGE.write_text(f"{before}{BEGIN}\n\n{text}\n{END}{after}", "utf-8")


if __name__ == "__main__":
    main()
