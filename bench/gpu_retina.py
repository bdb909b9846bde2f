"""What each RETINA method costs on a GPU, beside `map`: ResNet-50, 512 px, bf16.

    python bench/gpu_retina.py [--batch 128] [--limit 400] [--methods map,mfvi]
                               [--only compiled]

Trains through `qualms.training` on noise that lies on the device, channels last, first
as written and then compiled, both recorded as CUDA graphs where that can be; then
predicts with one and with five draws. Prints a table after every piece of work, and
writes it to $OUT/gpu_retina.md where OUT is set. It needs no installation of qualms.
"""

import argparse
import os
import sys
import tempfile
import time
import traceback
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).resolve()
sys.path.insert(0, str(HERE.parents[1] / "src"))

# ruff: noqa: E402
import noise
import torch

from qualms.spec import Part, RunSpec, Task
from qualms.training._build import make_run
from qualms.training._callbacks import NoCallbacks
from qualms.training._loop import begin
from qualms.training._provenance import describe_job
from qualms.training._run import DeviceResources
from qualms.training._shared_training import TrainingJob
from qualms.training._splits import Splits
from qualms.training.machine import make_machine, make_stream, numerics
from qualms.training.options import training

METHODS = ("map", "mfvi", "rank1", "mc_dropout", "fsvi", "radial")
DRAWS = 5
STEPS = 8
SIZE = 512


class Cost(NamedTuple):
    """What training a method costs."""

    method: str
    how: str
    images: float
    """Trained per second."""
    memory: float
    """GiB at most."""
    seconds: float
    """Until steps are recorded."""


class Asked(NamedTuple):
    """What predicting costs."""

    method: str
    one: float
    """Seconds of one draw."""
    all: float
    """Seconds of all draws."""
    memory: float
    """Of all draws, over that of one."""


class Said(NoCallbacks):
    """Callbacks that print messages."""

    def message(self, _, text):
        """Print it."""
        print("  ", text, flush=True)


def dataset(items):
    sizes = {"train": items, "val": 64}
    splits = {
        name: noise.split((count, SIZE, SIZE, 3), 0, noise.parity)
        for name, count in sizes.items()
    }
    return noise.dataset(Task(name="classification", classes=2), splits)


def spec(method, batch, **chosen):
    options = {} if method == "map" else {"draws": DRAWS}
    return RunSpec(
        benchmark="bench",
        dataset=Part(name="noise"),
        network=Part(name="resnet50"),
        method=Part(name=method, options=options),
        seed=0,
        training={
            "epochs": 100,
            "batch": batch,
            "optimiser": "sgd",
            "lr": 0.01,
            "precision": "bf16",
            "channels_last": True,
            "normalise": "none",
            **chosen,
        },
        splits=("val",),
    )


class Bench:
    """One run at a time on the data, which is copied to the device once."""

    def __init__(self, data):
        self.machine = make_machine("cuda", training(spec("map", 1).training).execution)
        self.splits = Splits({"": data}, self.machine.device)

    def cost(self, asked, how):
        """Train `asked` for a few epochs, and say how fast the last ones were."""
        options = training(asked.training)
        since = time.perf_counter()
        fresh()
        with (
            tempfile.TemporaryDirectory() as folder,
            numerics(self.machine, options.execution),
        ):
            stream = make_stream(self.machine)
            run = self._run(asked, Path(folder), stream)
            for epoch in range(4):
                steps(run, stream, epoch)
            warm = time.perf_counter() - since
            seconds = min(timed(steps, run, stream, 4 + epoch) for epoch in range(3))
        memory = torch.cuda.max_memory_reserved() / 2**30
        images = sum(run.data.step_sizes) / seconds
        return Cost(asked.method.name, how, images, memory, warm)

    def asked(self, method, batch):
        """Predict one batch with one draw, then with all of them."""
        found = []
        x = torch.rand(batch, 3, SIZE, SIZE, device="cuda")
        x = x.contiguous(memory_format=torch.channels_last)
        for draws in (1, DRAWS):
            whole = spec(method, batch)
            if method != "map":
                part = Part(name=method, options={"draws": draws})
                whole = replace(whole, method=part)
            options = training(whole.training)
            with (
                tempfile.TemporaryDirectory() as folder,
                numerics(self.machine, options.execution),
                torch.no_grad(),
            ):
                run = self._run(whole, Path(folder), make_stream(self.machine))
                run.learner.network.eval()
                task = self.splits.dataset.task
                ask = run.learner.method.predict
                ask(run.learner.network, x, task)
                fresh()
                held = torch.cuda.memory_allocated()
                seconds = min(
                    timed(ask, run.learner.network, x, task) for _ in range(3)
                )
                found.append((seconds, torch.cuda.max_memory_allocated() - held))
        (one, low), (every, high) = found
        return Asked(method, one, every, high / low)

    def _run(self, asked, folder, stream):
        resources = DeviceResources(
            machine=self.machine, splits=self.splits, callbacks=Said()
        )
        job = TrainingJob(asked, folder / "run")
        describe_job(job, self.machine)
        with stream():
            return make_run(job, resources, asked.training["batch"])


def steps(run, stream, epoch):
    with stream():
        moment = begin(run, epoch)
        for count in run.data.step_sizes:
            run.stepper.feed.advance()
            run.take_step(0, moment, count)
    torch.cuda.synchronize()


def timed(function, *arguments):
    torch.cuda.synchronize()
    since = time.perf_counter()
    function(*arguments)
    torch.cuda.synchronize()
    return time.perf_counter() - since


def fresh():
    torch.cuda.synchronize()
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()


def table(costs, asked, batch):
    plain = {cost.how: cost.images for cost in costs if cost.method == "map"}
    lines = [
        f"ResNet-50, {SIZE} px, batch {batch}, bf16, channels last, on"
        f" {torch.cuda.get_device_name()}, torch {torch.__version__}.",
        "",
        "| method | steps | images/s | x map | GiB | s to start |",
        "|---|---|---:|---:|---:|---:|",
    ]
    for cost in costs:
        times = plain.get(cost.how, float("nan")) / cost.images
        lines.append(
            f"| {cost.method} | {cost.how} | {cost.images:,.0f} | {times:.2f} |"
            f" {cost.memory:.1f} | {cost.seconds:.0f} |"
        )
    lines += [
        "",
        f"| method | one draw, ms | {DRAWS} draws, ms | times | memory, times |",
        "|---|---:|---:|---:|---:|",
    ]
    for one in asked:
        lines.append(
            f"| {one.method} | {1e3 * one.one:.1f} | {1e3 * one.all:.1f} |"
            f" {one.all / one.one:.2f} | {one.memory:.2f} |"
        )
    return "\n".join([*lines, ""])


def work(bench, methods, batch, only):
    """(seconds it may take, what is measured), the most important first."""
    for method in methods if only in (None, "written") else ():
        yield 25, bench.cost, (spec(method, batch), "as written")
    for method in methods if only in (None, "asked") else ():
        yield 15, bench.asked, (method, 64)
    for method in methods if only in (None, "compiled") else ():
        # From a warm cache of the compiler it takes a quarter of this.
        yield 80, bench.cost, (spec(method, batch, compile=True), "compiled")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--batch", type=int, default=128)
    parser.add_argument("--limit", type=float, default=400.0)
    parser.add_argument("--methods", default=",".join(METHODS))
    parser.add_argument("--only", choices=("written", "asked", "compiled"))
    chosen = parser.parse_args()
    if not torch.cuda.is_available():
        sys.exit("this needs a CUDA device")
    started, found = time.monotonic(), []
    bench = Bench(dataset(STEPS * chosen.batch))
    methods = chosen.methods.split(",")
    for seconds, measure, given in work(bench, methods, chosen.batch, chosen.only):
        if time.monotonic() - started + seconds > chosen.limit:
            print(f"left out: {measure.__name__} {given[0]}", flush=True)
            continue
        try:
            found.append(measure(*given))
        except Exception:  # the others are still worth measuring
            traceback.print_exc()
        else:
            print(f"{time.monotonic() - started:5.0f} s  {found[-1]}", flush=True)
    costs = [one for one in found if isinstance(one, Cost)]
    text = table(costs, [one for one in found if isinstance(one, Asked)], chosen.batch)
    print(f"\n{text}\n{time.monotonic() - started:.0f} s in all")
    if os.environ.get("OUT"):
        (Path(os.environ["OUT"]) / "gpu_retina.md").write_text(text)


if __name__ == "__main__":
    main()
