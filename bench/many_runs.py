"""What do thousands of runs cost to judge, to list and to clear away?

`python bench/many_runs.py --runs 10000` makes small finished run folders in the format
of training, and measures judging from nothing, again, and after one added run.
"""

import argparse
import json
import os
import resource
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from qualms import predictions
from qualms.benchmarks.regression import regression
from qualms.catalogue import INDEX, list_runs
from qualms.evaluate import ScoreOptions
from qualms.evaluate.benchmark import judge_plan
from qualms.runs import describe, judged_cells, mark_done, run_folder, split_stem
from qualms.spec import Part, RunSpec
from qualms.study import Benchmark, Preset, RunPlan, TableRow, Variant

SEEDS = 5
METHODS = ("map", "mc_dropout", "mfvi", "radial", "rank1", "fsvi", "swag", "gaussian")
RATES = (0.1, 0.2)
ITEMS = {"val": 40, "test": 60}


def many(runs: int, *, ordinary: bool = False) -> RunPlan:
    """Return a plan of so many runs: rows of five seeds on as many variants as needed.

    They are judged by the protocol of the regression benchmark, or by the ordinary
    scores of the task.
    """
    rows = tuple(
        TableRow(
            name=f"{method}_{rate:g}",
            label=f"{method} {rate:g}",
            method=Part(name=method, options={"rate": rate}),
            settings={"interval": "gaussian"},
            beyond=True,
        )
        for method in METHODS
        for rate in RATES
    )
    count = -(-runs // (SEEDS * len(rows)))
    variants = tuple(
        Variant(
            name=f"clinic{number}",
            label=f"Clinic {number}",
            dataset=Part(name="cells", options={"seed": number}),
            simulated=True,
            at=({"alpha": 0.1},),
        )
        for number in range(count)
    )
    preset = Preset(
        name="small",
        variants=variants,
        rows=tuple(row.name for row in rows),
        network=Part(name="resnet_small", options={"width": 16}),
        training={"epochs": 3, "batch": 64, "lr": 0.05},
        seeds=tuple(range(SEEDS)),
        pools=tuple((seed,) for seed in range(SEEDS)),
    )
    benchmark = Benchmark(
        name="many",
        version=1,
        title="Many small runs",
        paper="",
        task="regression",
        rows=rows,
        presets={"small": preset},
        protocol=None if ordinary else regression().protocol,
    )
    return benchmark.plan("small")


def make_run(spec: RunSpec, out: Path) -> None:
    """Write the folder of a finished run, with invented predictions."""
    folder = run_folder(out, spec)
    describe(folder, spec, {"device": "cpu"})
    clinic = int(spec.dataset.options["seed"])
    rng = np.random.default_rng([clinic, int(spec.hash, 16) % 2**32])
    (folder / "predictions").mkdir(exist_ok=True)
    for split, n in ITEMS.items():
        of_data = np.random.default_rng([clinic, n])
        target = of_data.normal(0, 3, n)
        spread = of_data.gamma(4, 0.25, n)
        mean = target + rng.normal(0, 1, n) * spread
        path = split_stem(folder, split).with_suffix(".safetensors")
        predictions.write(
            path,
            {
                "target": target,
                "mean": mean,
                "var": np.square(spread * rng.gamma(9, 1 / 9, n)),
                "item": [f"{split}-{number:03d}" for number in range(n)],
            },
            header={
                "task": "regression",
                "benchmark": spec.benchmark,
                "dataset": spec.dataset.name,
                "split": split,
                "method": spec.method.name,
                "seed": spec.seed,
                "options": {"run": spec.hash, **spec.training},
                "hardware": "an invented machine",
            },
        )
    lines = [
        json.dumps({"epoch": epoch, "loss": 0.7 / (1 + epoch), "seconds": 2.0})
        for epoch in range(3)
    ]
    (folder / "log.jsonl").write_text("\n".join(lines) + "\n", "utf-8")
    mark_done(
        folder, spec, {"seconds": 6.0, "pace": {"test": {"seconds_per_item": 1e-3}}}
    )


@contextmanager
def measured(what: str) -> Iterator[None]:
    """Print the seconds of the context, its CPU seconds and those of its processes."""
    wall, cpu = time.perf_counter(), _cpu()
    yield
    wall, cpu = time.perf_counter() - wall, _cpu() - cpu
    print(
        f"{what}: {wall:.2f} s, {cpu:.2f} s of CPU, load {os.getloadavg()[0]:.1f},"
        f" most memory {_memory():.2f} GB",
        flush=True,
    )


def _cpu() -> float:
    both = map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(usage.ru_utime + usage.ru_stime for usage in both)


def _memory() -> float:
    """Return the most memory so far, of this process or one that it started."""
    both = map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return max(usage.ru_maxrss for usage in both) / 2**20


def measure_judging(plan: RunPlan, out: Path, workers: int) -> None:
    """Print what judging costs from nothing, again, and after one added run."""
    cells = judged_cells(out / "many")
    shutil.rmtree(cells, ignore_errors=True)
    options = ScoreOptions(workers=workers)
    folder = run_folder(out, plan.runs[len(plan.runs) // 2])
    away = folder.rename(out / "away")
    with measured(f"judged from nothing by {workers} processes"):
        judge_plan(plan, out, options=options, cells=cells)
    with measured("judged again"):
        judge_plan(plan, out, options=options, cells=cells)
    away.rename(folder)
    with measured("judged after one added run"):
        results = judge_plan(plan, out, options=options, cells=cells)
    size = sum(file.stat().st_size for file in cells.iterdir())
    print(f"{len(results.table):,} results, {size / 1e6:.0f} MB of cells")


def measure_listing(out: Path) -> None:
    """Print what listing runs costs, with an index and without."""
    for index in out.glob(f"{INDEX}*"):
        index.unlink()
    with measured("listed without an index, which is made"):
        list_runs(out)
    with measured("listed"):
        list_runs(out)
    with measured("filtered and sorted"):
        listing = list_runs(out, ["method=mfvi", "seed<3"], sort="-method.rate")
    print(listing)


def main() -> None:
    """Make runs where there are none, and measure."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--runs", type=int, default=10_000)
    parser.add_argument("--out", type=Path, default=Path("many"))
    parser.add_argument("--ordinary", action="store_true", help="all scores of a task")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--only-make", action="store_true")
    parser.add_argument("--only-list", action="store_true")
    given = parser.parse_args()
    plan = many(given.runs, ordinary=given.ordinary)
    with measured(f"plan of {len(plan.runs):,} runs"):
        many(given.runs).runs  # noqa: B018
    with measured("runs made"):
        for spec in plan.runs:
            if not run_folder(given.out, spec).exists():
                make_run(spec, given.out)
    if not given.only_make:
        measure_listing(given.out)
    if not given.only_make and not given.only_list:
        measure_judging(plan, given.out, given.workers)


if __name__ == "__main__":
    main()
