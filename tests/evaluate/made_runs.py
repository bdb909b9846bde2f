"""Run folders with invented predictions, laid out as training lays them out.

Errors grow and densities fall outside the targets a variant trains on, so that the
effects of the regression benchmark show without a network.
"""

import zlib

import numpy as np

from qualms import predictions
from qualms.datasets import trained_counts, trained_tenths

SIZES = {"val": 2_000, "test": 3_000}
RULES = {"gmm": "logmeanexp", "knn": "mean"}


def make_runs(plan, out, sizes=SIZES, ending=".safetensors", skip=()):
    """Write predictions of every run of `plan` but those of methods in `skip`."""
    for spec in plan.runs:
        if spec.method.name in skip:
            continue
        folder = out / plan.benchmark.name / spec.hash / "predictions"
        folder.mkdir(parents=True)
        for split in spec.splits:
            arrays = _arrays(spec, split, sizes[split])
            header = {
                "task": "regression",
                "dataset": spec.dataset.name,
                "split": split,
                "method": spec.method.name,
                "seed": spec.seed,
                "select": _rules(arrays),
                "alpha": spec.method.options.get("alpha"),
                "hardware": "an invented machine",
                "seconds": 2.0,
            }
            file = f"{split.replace('/', '~')}{ending}"
            predictions.write(folder / file, arrays, header=header)


def _arrays(spec, split, n):
    target, outside = _targets(spec.dataset, split, n)
    # How a run is trained must not change what is invented for it.
    about = (spec.dataset.name, spec.dataset.options, spec.method, spec.seed, split)
    text = repr(about)
    rng = np.random.default_rng(zlib.crc32(text.encode()))
    scale = np.where(outside, 6.0, 4.0)
    # Extrapolation errs alike in every run, which no ensemble averages away.
    mean = target + np.where(outside, 20.0, 0.0) + rng.normal(0, scale)
    name = spec.method.name
    arrays = {"target": target, "item": [f"item {i:05d}" for i in range(n)]}
    if name == "quantile":
        low, high = rng.gamma(9.0, 0.7, (2, n))
        return arrays | {"lower": mean - low, "upper": mean + high}
    if name == "mc_dropout":
        return arrays | {"mean": mean + rng.normal(0, 3, (8, n))}
    arrays["mean"] = mean
    if name in ("gaussian", "laplace"):
        arrays["var"] = np.exp(2 * np.log(scale**0.3 * 3) + rng.normal(0, 0.3, n))
    for select in spec.method.options.get("select", ()):
        arrays[f"select/{select}"] = np.where(outside, 60, 20) + rng.normal(0, 8, n)
    return arrays


def _targets(dataset, split, n):
    """Targets are those of the data: the same for every run on it."""
    variant = dataset.options.get("variant", "plain")
    text = f"{dataset.name}{variant}{split}"
    rng = np.random.default_rng(zlib.crc32(text.encode()))
    angles = dataset.name in ("chairs", "rc49")
    inside = trained_tenths if angles else trained_counts
    drawn = rng.integers(1, 899 if angles else 201, 20 * n)
    if split == "val":
        drawn = drawn[inside(drawn, variant)]
    drawn = drawn[:n]
    target = drawn / 10 if angles else drawn.astype(float)
    return target, ~inside(drawn, variant)


def _rules(arrays):
    names = [name[7:] for name in arrays if name.startswith("select/")]
    return {name: RULES[name[:3]] for name in names}
