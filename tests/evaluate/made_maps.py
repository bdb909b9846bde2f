"""A small benchmark named `values`, and run folders with invented segmentations.

Discs with three raters who draw them in different sizes. Draws of a network disagree at
the rim, and much more on shifted items, so that the effects of the study show.
"""

import zlib

import numpy as np

from qualms import predictions, scores
from qualms.benchmarks.values import values
from qualms.spec import Part
from qualms.study import Benchmark, Preset, Stage, TableRow, Variant

SIDE = 16
COUNTS = {"val": 4, "test": 10, "pool": 12, "test/a": 6, "test/b": 10}
MODELS = {
    "softmax": ("map", 1),
    "ttd": ("mc_dropout", 1),
    "ensemble": ("map", 3),
    "ssn": ("ssn", 1),
}
QUERIES = (
    {"measure": "PE", "aggregation": "patch"},
    {"measure": "MI", "aggregation": "threshold"},
)


def row(name, **options):
    method, pool = MODELS[name.partition("_")[0]]
    label = options.pop("label", name)
    part = Part(name=method)
    return TableRow(name=name, label=label, method=part, pool=pool, **options)


def stage(name, rule, **options):
    share = {"share": 0.5}
    splits = ("test",)
    return Stage(row=name, rule=rule, options=share, splits=splits, **options)


ROWS = (
    *(row(name, settings=values().row(name).settings) for name in MODELS),
    row(
        "ttd_queried",
        at=QUERIES,
        stage=stage("ttd", "most_uncertain", chosen_by=("measure", "aggregation")),
    ),
    row("ttd_random", stage=stage("ttd", "random_items"), settings={"first": "ttd"}),
)


def variant(name, splits=("val", "test", "pool"), **options):
    dataset = options.pop("dataset", name)
    part = Part(name="discs", options={"kind": dataset})
    return Variant(name=name, label=name, dataset=part, splits=splits, **options)


TOY_SPLITS = ("val", "test/a", "test/b")
VARIANTS = (
    variant(
        "toy_a",
        TOY_SPLITS,
        dataset="toy",
        test="test/a",
        only={"aggregation": ("patch", "object")},
        rows=tuple(MODELS),
    ),
    variant(
        "toy_b",
        TOY_SPLITS,
        dataset="toy",
        test="test/b",
        rows=tuple(MODELS),
    ),
    variant("lidc"),
    variant(
        "screened",
        ("test",),
        labels={"feature": "texture"},
        rows=("softmax",),
    ),
)


def made_benchmark(**changes):
    preset = Preset(
        name="demo",
        variants=VARIANTS,
        rows=tuple(row.name for row in ROWS),
        network=Part(name="unet"),
        training={"epochs": 1},
        seeds=tuple(range(6)),
        pools=((0, 1, 2), (3, 4, 5)),
        alone=(0, 1),
    )
    return Benchmark(
        name="values",
        version=1,
        title="Discs",
        paper="none",
        task="segmentation",
        rows=ROWS,
        presets={"demo": preset},
        protocol=values().protocol,
        **changes,
    )


def make_map_runs(plan, out, skip=(), draws=None):
    """Write predictions of every run of a plan but those that `skip` names."""
    for spec in plan.runs:
        if spec.hash in skip:
            continue
        for split in spec.splits:
            folder = out / plan.benchmark.name / spec.hash / "predictions"
            folder.mkdir(parents=True, exist_ok=True)
            write_split(folder / split.replace("/", "~"), spec, split, draws)


def write_split(folder, spec, split, vary=None):
    usual = "labels" if spec.method.name == "ssn" else "models"
    header = {
        "task": "segmentation",
        "dataset": spec.dataset.name,
        "split": split,
        "method": spec.method.name,
        "draws": vary or usual,
        "seed": spec.seed,
    }
    seed = zlib.crc32(repr((spec.hash, split)).encode())
    rng = np.random.default_rng(seed)
    # A second training segments shifted items better, the more so if it asked for them.
    rule = "" if spec.items is None else spec.items.name
    skill = {"": 0.0, "random_items": 0.5, "most_uncertain": 0.8}[rule]
    draws = 1 if spec.method.name == "map" else 4
    with predictions.SegmentationWriter(folder, header=header) as writer:
        for number in range(COUNTS[split]):
            shifted = split != "val" and number % 2 == 1
            maps = disc(rng, draws, number, shifted * (1 - skill))
            cluster = f"patient {number // 2}"
            writer.add(f"{split} {number}", maps, shifted=shifted, cluster=cluster)


def street(rng, draws):
    """Four classes, of which 3 is the second label of 1, and two ignored rows."""
    base = np.repeat([[0, 1, 2, 1]], SIDE, axis=0).repeat(SIDE // 4, axis=1)
    logits = rng.normal(0, 1, (draws, 4, SIDE, SIDE))
    for label in range(3):
        logits[:, label] += 3 * (base == label)
    odds = np.exp(logits)
    probs = (odds / odds.sum(axis=1, keepdims=True)).astype(np.float32)
    raters = np.stack([np.where(base == 1, 3, base) if r else base for r in (0, 1, 0)])
    raters[:, :2] = 255
    statistics = scores.sufficient_statistics(probs)
    return predictions.Maps(**statistics._asdict(), raters=raters.astype(np.uint8))


def disc(rng, draws, number, trouble):
    grid = np.arange(SIDE) - SIDE / 2
    distance = np.hypot(*np.meshgrid(grid, grid))
    radius = 3.0 + number % 4
    raters = np.stack([distance <= radius + r for r in (-1, 0, 1)]).astype(np.uint8)
    shift = rng.normal(0, 0.2 + 2.0 * trouble, (draws, 1, 1))
    noise = rng.normal(0, 0.3, (draws, SIDE, SIDE))
    logit = 1.5 * (radius - 1.5 * trouble + shift - distance) + noise
    p = 1 / (1 + np.exp(-logit))
    statistics = scores.sufficient_statistics(
        np.stack([1 - p, p], 1).astype(np.float32)
    )
    return predictions.Maps(**statistics._asdict(), raters=raters)
