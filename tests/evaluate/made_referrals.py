"""Run folders of the retina benchmark with invented predictions.

Severity decides how likely a referral is. Runs see it with errors that grow under
shift, where their draws also lie further apart.
"""

import zlib

import numpy as np

from qualms import predictions

SIZES = {"val": 60, "val/shifted": 40, "test": 300, "test/shifted": 120}


def make_runs(plan, out, *, skip=(), order=None, truth=True):
    """Write predictions of every run of `plan` but those of methods in `skip`.

    `order` maps the number of items of a split to the order they are written in.
    """
    for spec in plan.runs:
        if spec.method.name in skip:
            continue
        folder = out / plan.benchmark.name / spec.hash / "predictions"
        folder.mkdir(parents=True)
        for split in spec.splits:
            arrays = made_arrays(spec, split)
            if not truth:
                del arrays["target_probs"]
            rows = slice(None) if order is None else order(len(arrays["target"]))
            arrays = {
                name: array[:, rows] if name == "probs" else array[rows]
                for name, array in arrays.items()
            }
            header = {
                "task": "classification",
                "dataset": spec.dataset.name,
                "split": split,
                "method": spec.method.name,
                "seed": spec.seed,
                "hardware": "an invented machine",
                "seconds": 2.0,
            }
            name = split.replace("/", "~") + ".npz"
            predictions.write(folder / name, arrays, header=header)


def made_arrays(spec, split):
    shift = spec.dataset.options["shift"]
    shifted = split.endswith("/shifted")
    grade, quality = _eyes(shift, split)
    n = len(grade)
    severity = 1.6 * (grade - 1.5) + quality
    chance = _sigmoid(severity)
    if shift == "severity" and shifted:
        target = np.ones(n, np.int64)
    else:
        target = (_rng(shift, split, "target").random(n) < chance).astype(np.int64)
    rng = _rng(shift, split, spec.method.name, str(spec.seed))
    draws = 1 if spec.method.name == "map" else 5
    evidence = severity + rng.normal(0, 1.5 if shifted else 0.7, n)
    spread = rng.normal(0, 1.0 if shifted else 0.4, (draws, n))
    prob = _sigmoid(evidence + (draws > 1) * spread)
    return {
        "target": target,
        "probs": np.stack([1 - prob, prob], axis=-1),
        "target_probs": np.stack([1 - chance, chance], axis=-1),
        "group": grade,
        "cluster": np.array([f"{split} patient {i // 2}" for i in range(n)]),
        "item": np.array([f"{split} eye {i:04d}" for i in range(n)]),
        "shifted": np.full(n, shifted),
    }


def _eyes(shift, split):
    """Return grades and qualities of the photographs, the same for every run."""
    rng = _rng(shift, split)
    shares = [0.5, 0.1, 0.25, 0.1, 0.05]
    if shift == "severity":
        bad = split.endswith("/shifted")
        shares = [0, 0, 0, 0.5, 0.5] if bad else [0.6, 0.15, 0.25, 0, 0]
    grade = rng.choice(5, SIZES[split], p=shares)
    # Every grade has at least one eye, so that sets can be rebalanced.
    grades = np.flatnonzero(shares)
    grade[: len(grades)] = grades
    return grade, rng.normal(0, 0.8, SIZES[split])


def _rng(*text):
    return np.random.default_rng(zlib.crc32("".join(text).encode()))


def _sigmoid(x):
    return 1 / (1 + np.exp(-x))
