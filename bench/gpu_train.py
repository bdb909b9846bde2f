"""Training speed on a GPU: recorded and eager, one run and several, and predicting.

    python bench/gpu_train.py [--limit 232]
    python bench/gpu_train.py --check

The first trains the ResNet-34 of the regression benchmark (21 million parameters,
64x64, batch 32) on noise, through `qualms.training` from end to end, in as many ways as
`limit` seconds hold. It prints a table, and writes it to $OUT/gpu_train.md where OUT is
set. The second compares, in half a minute, weights that must be equal: recorded and
eager, together and alone, stopped and not. Neither needs an installation of qualms.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).resolve()
sys.path.insert(0, str(HERE.parents[1] / "src"))

# ruff: noqa: E402
import noise
import torch
from turns import STARTED, all_lines

from qualms.networks import make_network
from qualms.spec import Part, RunSpec, Task
from qualms.training import run_together
from qualms.training._build import make_run
from qualms.training._callbacks import NoCallbacks
from qualms.training._loop import begin, train_and_predict
from qualms.training._provenance import describe_job
from qualms.training._run import DeviceResources
from qualms.training._shared_training import TrainingJob
from qualms.training._splits import Splits
from qualms.training.machine import make_machine, make_stream, numerics
from qualms.training.options import training

ITEMS = 10_000
EPOCHS = 4
REPLAYS = 100


class Line(NamedTuple):
    """One row of the table."""

    what: str
    precision: str
    steady: float
    whole: float
    note: str = ""


class Ticks:
    """Callbacks that note when each epoch of each run ended."""

    def __init__(self):
        self.ticks, self.said, self.losses = {}, [], {}

    def epoch(self, spec, *values):
        """Note the end of an epoch."""
        self.ticks.setdefault(spec.seed, []).append(time.monotonic())
        self.losses.setdefault(spec.seed, []).append(values[2])

    def message(self, _, text):
        """Note a message."""
        self.said.append(text)


def dataset(items=ITEMS):
    sizes = {"train": items, "val": 64, "test": items}
    splits = {
        name: noise.split((count, 64, 64, 1), seed, noise.brightness)
        for seed, (name, count) in enumerate(sizes.items())
    }
    return noise.dataset(Task(name="regression"), splits)


def spec(seed, *, method="map", options=None, **chosen):
    return RunSpec(
        benchmark="bench",
        dataset=Part(name="noise"),
        network=Part(name="resnet34_ddu"),
        method=Part(name=method, options=options or {}),
        seed=seed,
        training=chosen,
        splits=("val",),
    )


def rate(ticks):
    """Images per second of all runs, in the time when none was recording any more.

    Recording is over in the third epoch, when the smaller last batch was seen thrice.
    """
    first = max(0, min(2, min(map(len, ticks.values())) - 2))
    start = max(times[first] for times in ticks.values())
    end = min(times[-1] for times in ticks.values())
    total = 0.0
    for times in ticks.values():
        # Epochs are cut where the common time cuts them.
        for since, until in pairwise(times):
            shared = max(0.0, min(until, end) - max(since, start))
            total += ITEMS * shared / (until - since)
    return total / (end - start) if end > start else float("nan")


def trained(data, count, **chosen):
    """Train `count` runs at once; return the callbacks and images per second."""
    callbacks, since = Ticks(), time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        specs = [spec(seed, **chosen) for seed in range(count)]
        folders = [Path(folder) / str(seed) for seed in range(count)]
        run_together(specs, data, folders, device="cuda", callbacks=callbacks)
        seconds = time.monotonic() - since
    return callbacks, count * len(data.splits["train"]) * chosen["epochs"] / seconds


def measured(data, what, count=1, **chosen):
    """Train and say how fast that was."""
    callbacks, whole = trained(data, count, **{"epochs": EPOCHS, **chosen})
    memory = torch.cuda.max_memory_reserved() / 2**30
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    losses = " ".join(f"{loss:.4g}" for loss in callbacks.losses[0])
    said = "".join(f"; {text}" for text in dict.fromkeys(callbacks.said))
    note = f"{memory:.1f} GiB; losses of seed 0: {losses}{said}"
    return Line(what, chosen["precision"], rate(callbacks.ticks), whole, note)


def processes(count, **chosen):
    """Independent processes at once, each recording its own steps."""
    command = [sys.executable, str(HERE), "--worker", json.dumps(chosen)]
    with tempfile.TemporaryDirectory() as folder:
        gate = Path(folder) / "go"
        started = [
            subprocess.Popen([*command, gate], stdout=subprocess.PIPE, text=True)
            for _ in range(count)
        ]
        for process in started:
            assert process.stdout.readline().strip() == "ready"
        gate.touch()
        since = time.monotonic()
        said = [process.communicate()[0] for process in started]
    seconds = time.monotonic() - since
    ticks = {seed: json.loads(text.splitlines()[-1]) for seed, text in enumerate(said)}
    what = f"{count} independent processes, recorded, channels last"
    whole = count * ITEMS * EPOCHS / seconds
    return Line(what, chosen["precision"], rate(ticks), whole)


def stacked(count, *, compiled=False):
    """Weights of `count` networks as one more axis of every tensor, by `torch.vmap`."""
    step = stacked_step(count, "resnet34_ddu", "cuda", compiled=compiled)
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        for _ in range(5):
            step()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, stream=stream):
            step()
        stream.synchronize()
        seconds = min(timed(replayed, graph, stream) for _ in range(3))
    what = f"{count} runs stacked by vmap, replays alone, channels last"
    images = REPLAYS * count * 32 / seconds
    return Line(what + ", compiled" * compiled, "bf16", images, images)


def stacked_step(count, name, device, *, compiled=False):
    """A step of Adam for all of the networks, each with a batch of its own."""
    models = [
        make_network(Part(name=name), channels=3).to(device) for _ in range(count)
    ]
    models = [model.to(memory_format=torch.channels_last).train() for model in models]
    weights, buffers = torch.func.stack_module_state(models)
    optimiser = torch.optim.Adam(
        weights.values(), lr=1e-3, capturable=device == "cuda", foreach=True
    )
    image = torch.randn(count, 32, 3, 64, 64, device=device)

    def loss(own, state, x):
        return torch.func.functional_call(models[0], (own, state), (x,)).square().mean()

    both = torch.vmap(loss, randomness="different")
    both = torch.compile(both) if compiled else both

    def step():
        optimiser.zero_grad(set_to_none=True)
        with torch.autocast(device, torch.bfloat16):
            total = both(weights, buffers, image).sum()
        total.backward()
        optimiser.step()

    return step


def replayed(graph, stream):
    for _ in range(REPLAYS):
        graph.replay()
    stream.synchronize()


def worker(chosen, gate):
    """Train one run once the gate opens; prints when its epochs ended."""
    data = dataset()
    torch.zeros(1, device="cuda")
    print("ready", flush=True)
    while not Path(gate).exists():
        time.sleep(0.01)
    callbacks, _ = trained(data, 1, epochs=EPOCHS, **json.loads(chosen))
    print(json.dumps(callbacks.ticks[0]), flush=True)


@contextmanager
def opened(data, asked):
    """Yield the run of a spec on its stream, to take its steps by hand."""
    options = training(asked.training)
    machine = make_machine("cuda", options.execution)
    splits = Splits({"": data}, machine.device)
    resources = DeviceResources(machine=machine, splits=splits, callbacks=NoCallbacks())
    with tempfile.TemporaryDirectory() as folder, numerics(machine, options.execution):
        job = TrainingJob(asked, Path(folder) / "run")
        describe_job(job, machine)
        with make_stream(machine)():
            run = make_run(job, resources, options.steps.batch)
            yield run


def replays(data):
    """The steps of an epoch and nothing else: what the loop around them costs."""
    with opened(data, spec(0, epochs=EPOCHS, precision="tf32")) as run:
        seconds = [timed(steps, run, epoch) for epoch in range(EPOCHS)]
    note = "no log, no checkpoint"
    whole = EPOCHS * ITEMS / sum(seconds)
    return Line("one run, replays alone", "tf32", ITEMS / seconds[-1], whole, note)


def steps(run, epoch):
    moment = begin(run, epoch)
    for count in run.data.step_sizes:
        run.stepper.feed.advance()
        run.take_step(0, moment, count)
    torch.cuda.synchronize()


def predicting(data, select=()):
    """Predict 10,000 items: mean, variance, and scores of the features."""
    chosen = {"epochs": 1, "precision": "tf32", "predict_batch": 512}
    asked = spec(0, method="gaussian", options={"select": select}, **chosen)
    with opened(data, asked) as run:
        for _ in train_and_predict(run):
            pass
        items = run.resources.splits["test"]
        seconds = [timed(run.predictor, items) for _ in range(4)]
    told = " + ".join(("mean, variance", *select))
    note = f"fitting took {run.state.fit_seconds:.1f} s"
    steady = ITEMS / min(seconds[1:])
    return Line(f"predicting {told}", "tf32", steady, ITEMS / seconds[0], note)


def timed(function, *arguments):
    since = time.perf_counter()
    function(*arguments)
    return time.perf_counter() - since


def work(data):
    """(seconds it may take, what is measured), the most important first."""
    one, many = "one run, recorded", "{} runs together, recorded".format
    last = {"precision": "bf16", "channels_last": True}
    measure = partial(measured, data)
    eager = {"capture": False, "epochs": 2}
    wide = {"precision": "tf32", "channels_last": True}
    compiled = {**last, "compile": True}
    return [
        (12, partial(measure, f"{one}, channels last", **last)),
        (20, partial(measure, many(5) + ", channels last", 5, **last)),
        (50, partial(measure, f"{one}, channels last, compiled", **compiled)),
        (50, partial(measure, many(5) + ", channels last, compiled", 5, **compiled)),
        (15, partial(stacked, 5)),
        (35, partial(processes, 5, **last)),
        (60, partial(stacked, 5, compiled=True)),
        (15, partial(measure, f"{one}, channels last", **wide)),
        (25, partial(measure, many(5) + ", channels last", 5, **wide)),
        (30, partial(predicting, data, ("gmm4", "knn10"))),
        (50, partial(measure, many(8) + ", channels last, compiled", 8, **compiled)),
        (20, partial(measure, "one run, eager", precision="tf32", **eager)),
        (15, partial(measure, one, precision="tf32")),
        (10, partial(replays, data)),
        (20, partial(measure, one, precision="float32")),
        (25, partial(measure, many(5), 5, precision="tf32")),
        (35, partial(measure, many(5), 5, precision="float32")),
    ]


def check():
    """Print how far apart weights are that should be equal."""
    data = dataset(336)
    random = {"augment": ("hflip", "noise")}
    for chosen in (
        random,
        {"optimiser": "sgd", "lr": 1e-4},
        {"optimiser": "rmsprop", "lr": 1e-4},
        {"optimiser": "lamb", "schedule": "polynomial"},
        {"accumulate": 2, "clip": 1.0},
        {"precision": "bf16", "channels_last": True},
    ):
        eager = small_weights(data, [0], capture=False, **chosen)[0]
        recorded = small_weights(data, [0], capture=True, **chosen)[0]
        compare(f"recorded and eager, {chosen}", recorded, eager)
    alone = small_weights(data, [1], **random)[0]
    compare("together and alone", small_weights(data, range(3), **random)[1], alone)
    compare("stopped and not", small_weights(data, [1], stop=3, **random)[0], alone)


def small_weights(data, seeds, stop=None, **chosen):
    """Final weights of a small network trained with each of `seeds` at once."""
    options = {"epochs": 6, "deterministic": True, **chosen}
    specs = [
        replace(spec(seed, **options), network=Part(name="resnet_small"))
        for seed in seeds
    ]
    with tempfile.TemporaryDirectory() as folder:
        folders = [Path(folder) / str(seed) for seed in seeds]
        callbacks, stopping = Ticks(), Ticks()
        if stop is not None:
            stopping.epoch = partial(interrupt, stop)
            with suppress(InterruptedError):
                run_together(specs, data, folders, device="cuda", callbacks=stopping)
        run_together(specs, data, folders, device="cuda", callbacks=callbacks)
        for text in callbacks.said:
            print(text)
        states = [torch.load(f / "checkpoint.pt", weights_only=True) for f in folders]
    return [state["network"] for state in states]


def interrupt(stop, _, epoch, *__):
    if epoch == stop:
        raise InterruptedError


def compare(what, one, other):
    far = max(float((one[n].float() - other[n].float()).abs().max()) for n in one)
    print(f"largest difference {far:.3g}: {what}", flush=True)


def table(lines):
    rows = [
        f"| {line.what} | {line.precision} | {line.steady:,.0f} | {line.whole:,.0f} |"
        f" {line.note} |"
        for line in lines
    ]
    head = (
        f"ResNet-34 (21 M parameters), 64x64, batch 32, {ITEMS:,} items per epoch, on"
        f" {torch.cuda.get_device_name()}, torch {torch.__version__}. Images per second"
        " of all runs together; steady: without building and recording, with"
        f" checkpoints; whole: {EPOCHS} epochs (eager: 2) from building the network to"
        " the predictions. float32 is strict, tf32 rounds products to ten bits."
    )
    columns = "| work | precision | steady | whole | note |\n|---|---|---:|---:|---|"
    return "\n".join([head, "", columns, *rows, ""])


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--worker", nargs=2)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--limit", type=float, default=232.0)
    asked = parser.parse_args()
    if asked.worker:
        worker(*asked.worker)
        return
    if not torch.cuda.is_available():
        sys.exit("this needs a CUDA device")
    if asked.check:
        check()
        return
    trained(dataset(320), 1, epochs=1, precision="tf32")  # starts the libraries
    text = table(all_lines(work(dataset()), asked.limit))
    print(f"\n{text}\n{time.monotonic() - STARTED:.0f} s in all")
    if os.environ.get("OUT"):
        (Path(os.environ["OUT"]) / "gpu_train.md").write_text(text)


if __name__ == "__main__":
    main()
