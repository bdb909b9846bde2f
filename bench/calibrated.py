"""How often "Calibrated?" is answered with yes or no, for models whose truth is known.

`python -m bench.calibrated --write` draws samples, and writes the table of
docs/verdict.md. `--repetitions 20` is quick.
"""

import argparse
from collections import Counter
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
from scipy.special import expit

from qualms import predictions
from qualms.evaluate import Results, ScoreOptions
from qualms.evaluate.estimates import estimated
from qualms.evaluate.scoring import _row, judge_file
from qualms.tasks.classification._verdict import probabilities_calibrated

PAGE = Path(__file__).parents[1] / "docs" / "verdict.md"
BEGIN = "<!-- Written by bench/calibrated.py: do not edit up to the next mark. -->"
END = "<!-- End of what bench/calibrated.py writes. -->"
OPTIONS = ScoreOptions(resamples=0, workers=1)
SCORES = ("ece", "classwise_ece", "calibration_intercept", "calibration_slope")
STATED, TRUE = np.array([0.2, 0.3, 0.7, 0.8]), np.array([0.02, 0.1, 0.5, 0.62])
SIZES = (100, 300, 1_000, 3_000, 10_000)


def lines(n, rng, *, mean=0.0, spread=1.5, slope=1.0, shift=0.0):
    """Return items of two classes whose stated logits are `shift` + `slope` true."""
    logits = rng.normal(mean, spread, n)
    positive = rng.random(n) < expit(logits)
    return {"prob": expit(shift + slope * logits), "target": positive.astype(int)}


def cancelling(n, rng, *, true=TRUE):
    """Return items whose errors cancel in the probability of the predicted class."""
    kind = rng.integers(0, 4, n)
    return {"prob": STATED[kind], "target": (rng.random(n) < true[kind]).astype(int)}


def clustered(n, rng):
    """Return two eyes of each patient, with the same outcome."""
    eye = np.repeat(np.arange(n // 2), 2)
    arrays = lines(n // 2, rng)
    return {name: array[eye] for name, array in arrays.items()} | {"cluster": eye}


def classes(n, rng, *, count=3, exchanged=False, sharp=1.0):
    """Return items of several classes; the least probable two may be exchanged."""
    probs = rng.dirichlet([0.5] * count, n)
    true = probs.copy()
    if exchanged:
        order, rows = np.argsort(probs, axis=1), np.arange(n)
        for one, other in ((-2, -3), (-3, -2)):
            true[rows, order[:, one]] = probs[rows, order[:, other]]
    target = (rng.random(n)[:, None] > true.cumsum(axis=1)).sum(axis=1)
    probs = probs**sharp
    return {
        "probs": probs / probs.sum(axis=1, keepdims=True),
        "target": target.clip(0, count - 1),
    }


POPULATIONS = {
    "calibrated": lines,
    "calibrated, 12 % positives": partial(lines, mean=-2.8),
    "calibrated, 4 % positives": partial(lines, mean=-4.0),
    "calibrated, nearly always right": partial(lines, spread=12.0),
    "calibrated, four probabilities": partial(cancelling, true=STATED),
    "calibrated, two eyes of a patient": clustered,
    "calibrated, 3 classes": classes,
    "calibrated, 10 classes": partial(classes, count=10),
    "errors that cancel (.2, .3, .7, .8 for .02, .1, .5, .62)": cancelling,
    "log-odds twice as far from 0": partial(lines, slope=2.0),
    "odds twice too high": partial(lines, shift=np.log(2.0)),
    "odds twice too high, 4 % positives": partial(lines, mean=-4.0, shift=np.log(2.0)),
    "3 classes, two exchanged": partial(classes, exchanged=True),
    "10 classes, two exchanged": partial(classes, count=10, exchanged=True),
    "3 classes, too sure": partial(classes, sharp=2.0),
}


def answer(arrays):
    """Return the answer for these arrays; all other scores are left out."""
    file = predictions.build(arrays)
    judged = judge_file(file, None, OPTIONS)
    entries = tuple(
        e for e in judged.entries if e.score_name in SCORES and not e.settings
    )
    rows = map(_row, estimated([replace(judged, entries=entries)], OPTIONS))
    results = Results(
        name="", header=file.header, task=file.task, n=file.n, draws=1,
        rows=tuple(rows), items=file, design=judged.design,
    )  # fmt: skip
    return probabilities_calibrated(results, "all").answer


def table(repetitions):
    """Yield the lines of the table."""
    yield "|Model|" + "".join(f"n = {n:,}|" for n in SIZES)
    yield "|---|" + "---|" * len(SIZES)
    for number, (name, make) in enumerate(POPULATIONS.items()):
        cells = []
        for n in SIZES:
            seeds = [(number, n, each) for each in range(repetitions)]
            said = Counter(answer(make(n, np.random.default_rng(s))) for s in seeds)
            shares = (100 * said[word] / repetitions for word in ("yes", "no"))
            cells.append(" / ".join(f"{share:.0f}" for share in shares))
        yield f"|{name}|{'|'.join(cells)}|"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repetitions", type=int, default=100)
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    lines_ = []
    for line in table(options.repetitions):
        print(line, flush=True)
        lines_.append(line)
    if options.write:
        before, _, rest = PAGE.read_text().partition(BEGIN)
        after = rest.partition(END)[2]
        text = f"{options.repetitions} samples a cell.\n\n" + "\n".join(lines_)
        PAGE.write_text(f"{before}{BEGIN}\n\n{text}\n\n{END}{after}")


if __name__ == "__main__":
    main()
