"""Files of every task and format, and the commands that `bench/equal.py` compares.

    PYTHONPATH=src python bench/equal_files.py FOLDER

Values have ties, shifts, groups, clusters, unknown classes and several draws.
"""

import json
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from qualms import predictions
from qualms.scores import sufficient_statistics

Arrays = dict[str, Any]
Files = dict[str, tuple[Arrays, Mapping[str, Any] | None]]
"""Arrays and header of each file by its name."""
WRITTEN = Path(__file__).resolve().parents[1] / "tests" / "readers" / "written"
"""Predictions as nnU-Net and MONAI wrote them."""


def classes(seed: int, items: int, count: int, draws: int = 1) -> Arrays:
    """Return rounded probabilities that are more often right when they are sure."""
    rng = np.random.default_rng(seed)
    target = rng.integers(0, count, items)
    logits = rng.normal(0, 1, (draws, items, count)) + rng.normal(0, 1, (items, count))
    logits[:, np.arange(items), target] += rng.exponential(2, items)
    odds = np.exp(logits - logits.max(-1, keepdims=True))
    return {"target": target, "probs": odds / odds.sum(-1, keepdims=True)}


def two_classes(seed: int, items: int, draws: int = 1, decimals: int = 3) -> Arrays:
    both = classes(seed, items, 2, draws)
    return {"target": both["target"], "prob": both["probs"][..., 1].round(decimals)}


def one_draw(arrays: Arrays) -> Arrays:
    """Return the arrays without the axis of draws, as tables have it."""
    return {
        name: array[0] if name in ("probs", "prob", "mean", "var") else array
        for name, array in arrays.items()
    }


def described(arrays: Arrays, seed: int) -> Arrays:
    """Add names, sites, patients and a shift to the items."""
    rng = np.random.default_rng(seed + 100)
    items = len(arrays["target"])
    return arrays | {
        "item": np.array([f"item {number}" for number in range(items)]),
        "group": rng.choice(["east", "north", "west"], items),
        "cluster": np.arange(items) // 2,
        "shifted": np.arange(items) >= (3 * items) // 4,
    }


def values(seed: int, items: int, draws: int = 1) -> Arrays:
    rng = np.random.default_rng(seed)
    centre, scale = rng.uniform(0, 100, items), rng.uniform(1, 5, items)
    mean = centre + rng.normal(0, 0.5, (draws, items))
    target = centre + scale * rng.standard_t(5, items)
    return {"target": target, "mean": mean, "var": np.tile(scale**2, (draws, 1))}


def intervals(seed: int, items: int) -> Arrays:
    made = values(seed, items)
    half = 1.6 * np.sqrt(made["var"][0])
    middle = made["mean"][0]
    return {"target": made["target"], "lower": middle - half, "upper": middle + half}


def vectors(seed: int, items: int, wide: int = 16) -> Arrays:
    rng = np.random.default_rng(seed)
    target = rng.integers(0, 25, items)
    places = rng.normal(0, 1, (25, wide))[target] + rng.normal(0, 0.7, (items, wide))
    return {"target": target, "embedding": places.astype(np.float32)}


def masks(folder: Path, seed: int, sides: tuple[int, ...], count: int) -> None:
    """Write a folder of discs that move between raters and draws."""
    header = {"method": "discs", "split": "test"}
    with predictions.SegmentationWriter(folder, header=header) as writer:
        for number in range(12):
            rng = np.random.default_rng([seed, number])
            far = number >= 8
            grid = np.stack(np.meshgrid(*map(np.arange, sides), indexing="ij"), -1)
            centre = np.array(sides) / 2 + rng.normal(0, 2, len(sides))
            away = np.linalg.norm(grid - centre, axis=-1)
            logits = [
                np.where(
                    away < 4 * label + rng.normal(0, 1 + far, (4, *away.shape)), 2.0, 0
                )
                * label
                for label in range(1, count)
            ]
            odds = np.exp(np.stack([np.zeros((4, *away.shape)), *logits], 1))
            made = sufficient_statistics(odds / odds.sum(1, keepdims=True))
            raters = [
                np.sum([away < 4 * label + move for label in range(1, count)], axis=0)
                for move in (0.0, 1.5)
            ]
            maps = predictions.Maps(
                mean_probs=made.mean_probs,
                expected_entropy=made.expected_entropy,
                draw_labels=made.draw_labels,
                raters=np.stack(raters).astype(np.uint8),
            )
            writer.add(f"case {number}", maps, shifted=far)


def write_all(folder: Path) -> None:
    """Write every file into `folder`."""
    folder.mkdir(parents=True)
    written = {**of_classes(), **of_values(), **of_vectors()}
    for name, (arrays, header) in written.items():
        predictions.write(folder / name, arrays, header=header)
    masks(folder / "masks", 25, (32, 24), 2)
    masks(folder / "masks_val", 26, (32, 24), 2)
    masks(folder / "masks_of_three", 27, (28, 30), 3)
    masks(folder / "volumes", 28, (12, 14, 16), 2)
    for name in ("nnunet", "monai"):
        shutil.copytree(WRITTEN / name, folder / name)
    target, prob = two_classes(12, 50)["target"], two_classes(12, 50)["prob"][0]
    np.savez(folder / "sklearn.npz", y_true=target, y_prob=prob)
    table = "\n".join(f"{t},{p}" for t, p in zip(target, prob, strict=True))
    (folder / "sklearn.csv").write_text(f"y_true,y_prob\n{table}\n", encoding="utf-8")
    note = {"what": "no predictions"}
    (folder / "foreign.json").write_text(json.dumps(note), encoding="utf-8")


def of_classes() -> Files:
    two = described(two_classes(1, 400, draws=3), 1)
    other = described(two_classes(2, 400) | {"target": two["target"]}, 1)
    mine = {"uncertainty/mine": np.arange(300) % 7}
    three = described(classes(6, 300, 3, draws=2), 6)
    known = {"known": np.arange(500) < 450}
    one = two_classes(12, 50)
    labels = {"target_probs": classes(14, 200, 4)["probs"][0]}
    names = {"classes": ["cat", "cow", "dog"]}
    return {
        "two.npz": (two, None),
        "two.csv": (one_draw(two), None),
        "two_other.safetensors": (other, None),
        "two_val.npz": (two_classes(3, 300, draws=3), None),
        "saturated.npz": (two_classes(4, 200, decimals=0), None),
        "own.safetensors": (two_classes(5, 300) | mine, None),
        "three.parquet": (one_draw(three), None),
        "three.npz": (three, names),
        "three_val.npz": (classes(7, 200, 3, draws=2), None),
        "nine.safetensors": (classes(8, 500, 9) | known, None),
        "hundred.npz": (classes(9, 400, 100), None),
        "ten_items.npz": (two_classes(10, 10), None),
        "three_items.csv": (one_draw(two_classes(11, 3)), None),
        "one_class.npz": (one | {"target": np.ones(50, int)}, None),
        "unlabelled.npz": ({"prob": one["prob"]}, None),
        "distribution.npz": (classes(13, 200, 4) | labels, None),
    }


def of_values() -> Files:
    far = {"select/far": np.arange(300) % 11}
    drawn = values(18, 150, draws=8)
    held_out = values(17, 200, draws=5) | {"select/far": np.arange(200) % 11}
    return {
        "values.safetensors": (described(values(15, 300, draws=5), 15) | far, None),
        "values.csv": (one_draw(described(values(16, 120), 16)), None),
        "values_val.safetensors": (held_out, None),
        "draws.npz": ({n: a for n, a in drawn.items() if n != "var"}, None),
        "intervals.parquet": (described(intervals(19, 200), 19), {"alpha": 0.1}),
        "intervals_val.npz": (intervals(20, 150), {"alpha": 0.1}),
    }


def of_vectors() -> Files:
    rng = np.random.default_rng(22)
    more = {
        "uncertainty/head": rng.random(500).round(2),
        "uncertainty_cropped/head": rng.random(500).round(2) + 0.1,
        "votes": rng.multinomial(8, [0.6, 0.3, 0.1], 500),
        "upstream": np.arange(500) % 5 == 0,
    }
    return {
        "embedding.npz": (described(vectors(21, 500), 21) | more, None),
        "plain_embedding.safetensors": (vectors(23, 300), None),
        "gallery.npz": (vectors(24, 400), None),
    }


SCORED = (
    "two.npz",
    "two.csv --all",
    "two.npz --val two_val.npz --all",
    "two.npz two_other.safetensors --compare",
    "two.npz --by-group",
    "two.npz --threshold 0.3 --threshold youden --val two_val.npz"
    " --meets sensitivity=0.7",
    "saturated.npz",
    "own.safetensors",
    "three.parquet",
    "three.npz --val three_val.npz --all",
    "nine.safetensors",
    "hundred.npz",
    "ten_items.npz",
    "three_items.csv",
    "one_class.npz",
    "distribution.npz",
    "values.safetensors --val values_val.safetensors --all",
    "values.csv --by-group",
    "draws.npz",
    "intervals.parquet --val intervals_val.npz",
    "embedding.npz --all",
    "embedding.npz --nearest 5 --map-at-r",
    "plain_embedding.safetensors --gallery gallery.npz",
    "masks",
    "masks --val masks_val --all",
    "masks_of_three",
    "volumes",
    "nnunet/labels",
    "nnunet/regions",
    "monai/classes",
    "sklearn.npz",
    "sklearn.csv",
)
CHECKED = (
    "two.npz",
    "two.csv",
    "own.safetensors",
    "three.npz",
    "nine.safetensors",
    "unlabelled.npz",
    "values.safetensors",
    "intervals.parquet",
    "embedding.npz",
    "masks",
    "volumes",
    "nnunet/labels",
    "monai/classes",
    "sklearn.csv",
)
PLANNED = (
    "two.npz --budget 0.2",
    "two.npz --accuracy 0.8 --confidence 0.9 --on two_other.safetensors",
    "two.npz --sensitivity 0.8",
    "three.npz --accuracy 0.7 --uncertainty epistemic",
    "values.safetensors --budget 0.3 --confidence 0.9",
    "intervals.parquet --budget 0.25",
    "embedding.npz --accuracy 0.5",
    "own.safetensors --budget 0.5",
)
COMMANDS = (
    *(f"score {words} --json" for words in SCORED),
    "score two.npz",
    "score three.npz --all",
    "score values.safetensors --val values_val.safetensors",
    "score masks",
    *(f"check {words}" for words in CHECKED),
    *(f"refer {words} --json" for words in PLANNED),
    "refer two.npz --accuracy 0.8",
    "run retina/country --preset demo --dry-run",
    "run regression --preset paper --dry-run",
    "run values --preset small --dry-run",
    "run url --preset demo --dry-run",
    "list methods",
    "list scores",
    "list datasets",
)
FAILING = (
    "score foreign.json",
    "score absent.npz",
    "score unlabelled.npz",
    "score two.npz values.csv --compare",
    "score two.npz --task regresion",
    "refer masks --budget 0.2",
    "refer values.csv --accuracy 0.9",
    "check embedding.npz --task classification",
    "run retinaa",
    "run retina/country --methods mcdropout --dry-run",
)
"""Commands of which only the sentence with the mistake is compared."""

if __name__ == "__main__":
    write_all(Path(sys.argv[1]))
