"""Run folders with invented embeddings, laid out as training lays them out.

Items near the border of their class are retrieved wrongly, and every uncertainty tells
so, better for some methods than for others; crops are less certain.
"""

import zlib

import numpy as np

from qualms import predictions
from qualms.runs import split_stem
from qualms.spec import parse_split

CLASSES, DIMENSIONS, VOTERS = 12, 8, 6
SIZES = {"val": 60, "test": 90, "test/odd": 48}
NAMES = {
    "map": ("entropy",),
    "infonce": ("inverse_norm",),
    "mcinfonce": ("head",),
    "elk": ("head", "entropy"),
    "nivmf": ("head", "entropy"),
    "hib": ("head",),
    "hetxl": ("entropy", "log_determinant"),
    "losspred": ("head", "entropy"),
    "mc_dropout": ("entropy", "mutual_information", "expected_entropy"),
    "head_ensemble": ("entropy", "mutual_information", "expected_entropy"),
    "sngp": ("entropy", "variance"),
}


def make_embedding_runs(plan, out, sizes=SIZES, skip=(), classes=CLASSES):
    """Write predictions of every run of `plan` but those of methods in `skip`."""
    for spec in plan.runs:
        folder = out / plan.benchmark.name / spec.hash
        if spec.method.name in skip or folder.exists():
            continue
        for split in spec.splits:
            path = split_stem(folder, split)
            path.parent.mkdir(parents=True, exist_ok=True)
            header = {
                "task": "embedding",
                "dataset": spec.parts[parse_split(split)[0]].name,
                "split": parse_split(split)[1],
                "method": spec.method.name,
                "seed": spec.seed,
                "hardware": "an invented machine",
                "seconds": 12.0,
                "parameters": 1_000_000 + len(spec.method.name),
                "about": {"seconds_per_item": 0.002, "seconds_per_crop": 0.002},
            }
            arrays = made_arrays(spec, split, sizes, classes)
            predictions.write(f"{path}.safetensors", arrays, header=header)


def made_arrays(spec, split, sizes=SIZES, classes=CLASSES):
    """What a run predicts for a split."""
    name, own = parse_split(split)
    n = sizes[own]
    target, noise, ambiguity = _items(name, own, n, classes)
    text = repr((spec.method, spec.seed, sorted(spec.training.items()), split))
    rng = np.random.default_rng(zlib.crc32(text.encode()))
    quality = 0.3 + 0.7 * (zlib.crc32(spec.method.name.encode()) % 10) / 10
    seen = np.random.default_rng(zlib.crc32(f"{name}{own}".encode()))
    centre = seen.normal(size=(CLASSES, DIMENSIONS))
    embedding = centre[target] + (0.3 + ambiguity)[:, None] * noise
    embedding += 0.1 * rng.normal(size=embedding.shape)
    arrays = {
        "target": target,
        "item": np.array([f"{split}/{i:04d}" for i in range(n)]),
        "embedding": embedding.astype(np.float32),
        "extra/ambiguity": ambiguity.astype(np.float32),
    }
    if spec.method.name not in ("infonce", "mcinfonce", "hib"):
        arrays["predicted"] = np.where(rng.random(n) < 0.6, target, 0)
    for place, u in enumerate(NAMES[spec.method.name]):
        value = quality * ambiguity + (0.2 + 0.2 * place) * rng.random(n)
        arrays[f"uncertainty/{u}"] = value + 0.1 * (name != "")
        arrays[f"uncertainty_cropped/{u}"] = value + 0.3 * rng.random(n)
    if name in ("votes", "cifar10h", "benthic", "pig", "turkey", "treeversity"):
        drawn = seen.random((n, VOTERS)) < ambiguity[:, None] / 3
        wrong = drawn.sum(axis=1)
        arrays["votes"] = np.stack([VOTERS - wrong, wrong], axis=1).astype(float)
    return arrays


def _items(name, split, n, classes):
    """Targets, directions of noise and ambiguity: the same for every run."""
    rng = np.random.default_rng(zlib.crc32(f"items {name}{split}".encode()))
    ambiguity = 2.5 * rng.random(n) ** 2
    return np.arange(n) % classes, rng.normal(size=(n, DIMENSIONS)), ambiguity
