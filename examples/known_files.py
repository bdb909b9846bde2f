"""Predictions files as any framework may write them, with scores known in advance.

Each function writes the files of one task, with ties and a shift, and says what
`qualms score` is given and what one of the scores must be. `examples/demo.py` scores
them.
"""

from pathlib import Path
from typing import NamedTuple

import numpy as np

from qualms import predictions
from qualms.scores import sufficient_statistics


class Known(NamedTuple):
    """What `qualms score` is given, and what must come out."""

    arguments: list[str]
    score: str
    subset: str
    value: float


def classification(folder: Path) -> Known:
    """Two methods; accuracy is 0.9 in-domain by construction, 0.7 on shifted items."""
    rng = np.random.default_rng(1)
    shifted = np.repeat([False, True], [2000, 500])
    target = rng.permutation(np.arange(2500) % 2)
    wrong = np.zeros(2500, bool)
    wrong[rng.choice(2000, 200, replace=False)] = True
    wrong[2000 + rng.choice(500, 150, replace=False)] = True
    clinic = np.where(shifted, "abroad", "home")
    patient = np.arange(2500) // 2  # two eyes of one patient
    for method, blur in (("careful", 1.0), ("careless", 0.15)):
        # Wrong items are less confident where the method is careful; decimals tie.
        confidence = 0.5 + 0.5 * rng.beta(5 - 3.5 * blur * wrong, 1 + 2 * blur * wrong)
        confidence = np.clip(np.round(confidence, 3), 0.501, 0.999)
        prob = np.where(wrong ^ (target == 1), confidence, 1 - confidence)
        arrays = {"target": target, "prob": prob, "shifted": shifted, "group": clinic}
        header = {"method": method, "dataset": "demo", "split": "test"}
        predictions.write(
            folder / f"{method}.safetensors",
            arrays | {"cluster": patient},
            header=header,
        )
        half = rng.permutation(2000)[:1000]
        predictions.write(
            folder / f"{method}_val.npz",
            {"target": target[half], "prob": prob[half]},
            header=header | {"split": "val"},
        )
    files = [str(folder / f"{name}.safetensors") for name in ("careful", "careless")]
    vals = [str(folder / f"{name}_val.npz") for name in ("careful", "careless")]
    command = [*files, "--val", vals[0], "--val", vals[1], "--compare"]
    return Known(command, "accuracy", "in_domain", 0.9)


def regression(folder: Path) -> Known:
    """Five draws with variances; 90 % of the in-domain targets lie in the interval."""
    rng = np.random.default_rng(2)

    def split(n: int, missed: int, far: float):
        mean = rng.uniform(0, 100, n)
        half = 1.6448536269514722 * 2.0  # half width at alpha = 0.1 and variance 4
        offset = rng.uniform(-0.99, 0.99, n) * half
        out = rng.choice(n, missed, replace=False)
        offset[out] = (
            rng.choice([-1, 1], missed) * half * rng.uniform(1.01, far, missed)
        )
        select = rng.random(n) + (np.arange(n) >= 1000)
        return {
            "target": mean + offset,
            "mean": np.stack([mean] * 5),
            "var": np.full((5, n), 4.0),
            "select/feature_distance": select,
        }

    test, val = split(1500, 300, 3.0), split(1000, 100, 2.0)
    # The first 1000 items are in-domain and hold exactly 100 misses.
    inside = np.abs(test["target"] - test["mean"][0]) <= 1.6448536269514722 * 2.0
    order = np.concatenate(
        [np.flatnonzero(~inside)[:100], np.flatnonzero(inside)[:900]]
    )
    rest = np.setdiff1d(np.arange(1500), order)
    order = np.concatenate([rng.permutation(order), rest])
    chosen = ("target", "mean", "var")
    test = {k: v[..., order] if k in chosen else v for k, v in test.items()}
    test["shifted"] = np.arange(1500) >= 1000
    predictions.write(folder / "regression.safetensors", test)
    predictions.write(folder / "regression_val.safetensors", val)
    file = str(folder / "regression.safetensors")
    val_file = str(folder / "regression_val.safetensors")
    return Known([file, "--val", val_file], "coverage", "in_domain", 0.9)


def segmentation(folder: Path) -> Known:
    """Squares against two raters' squares; every in-domain item has Dice 0.85."""
    for split, count in (("val", 12), ("test", 30)):
        rng = np.random.default_rng(3 + count)
        with predictions.SegmentationWriter(
            folder / f"segmentation_{split}", header={"method": "demo", "split": split}
        ) as writer:
            for i in range(count):
                shifted = split == "test" and i >= 20
                writer.add(f"square-{i}", _square(rng, shifted), shifted=shifted)
    file = str(folder / "segmentation_test")
    arguments = [file, "--val", str(folder / "segmentation_val")]
    return Known(arguments, "dice", "in_domain", 0.85)


def _square(rng: np.random.Generator, shifted: bool) -> predictions.Maps:
    row, column = rng.integers(4, 24, 2)
    truth = np.zeros((48, 48), np.uint8)
    truth[row : row + 20, column : column + 20] = 1
    # Moved by 4 of 20 pixels from one rater and by 2 from the other: Dice 0.8 and 0.9.
    move = 12 if shifted else 4
    way = -1 if column + 20 + move > 48 else 1
    predicted = np.roll(truth, way * move, axis=1)
    other = np.roll(truth, way * 2, axis=1)
    blur = 0.3 + 0.2 * shifted
    draws = np.clip(
        0.5 + (predicted - 0.5) * (0.9 - blur * rng.random((8, 1, 1))), 0.01, 0.99
    )
    probs = np.stack([1 - draws, draws], axis=1)
    statistics = sufficient_statistics(probs)
    return predictions.Maps(
        mean_probs=statistics.mean_probs,
        expected_entropy=statistics.expected_entropy,
        draw_labels=statistics.draw_labels,
        raters=np.stack([truth, other]),
    )


def embedding(folder: Path) -> Known:
    """Pairs of near-equal vectors; 70 % of the downstream pairs share their class."""
    rng = np.random.default_rng(4)
    pairs, dimensions = 300, 64
    centre = rng.standard_normal((pairs, dimensions))
    vectors = np.repeat(centre, 2, axis=0) + 0.01 * rng.standard_normal(
        (600, dimensions)
    )
    pair_class = np.arange(pairs)
    target = np.repeat(pair_class, 2)
    upstream = np.repeat(np.arange(pairs) >= 200, 2)
    wrong = rng.choice(200, 60, replace=False)  # 30 % of 200 downstream pairs
    target[2 * wrong + 1] = pairs + np.arange(60)
    failed = np.repeat(np.isin(np.arange(pairs), wrong), 2)
    uncertainty = np.round(rng.random(600) + 0.4 * failed - 0.3 * upstream, 1)
    arrays = {
        "embedding": vectors,
        "target": target,
        "upstream": upstream,
        "uncertainty/head": uncertainty,
        "uncertainty_cropped/head": uncertainty + rng.normal(0.1, 0.1, 600),
        "votes": rng.multinomial(8, [0.6, 0.3, 0.1], 600),
    }
    predictions.write(folder / "embedding.npz", arrays)
    return Known([str(folder / "embedding.npz")], "recall_at_1", "all", 0.7)
