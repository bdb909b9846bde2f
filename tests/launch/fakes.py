"""Stand-ins for training, importable by the processes of a launcher."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
from safetensors.numpy import save_file

from qualms.launch._worker import RunEnd
from qualms.predictions import Header, write
from qualms.processes import locked
from qualms.runs import lock_path, mark_done, run_folder, split_stem
from qualms.spec import Part, RunSpec


def spec(seed=0, *, method="map", behave="", **options):
    """A run on a tiny simulated dataset; `behave` says what the stand-in does."""
    sizes = {"train": 4, "val": 2, "test": 2}
    return RunSpec(
        benchmark="toy",
        dataset=Part(name="cells", options={"sizes": sizes}),
        network=Part(name="none"),
        method=Part(name=method, options=options),
        seed=seed,
        training={"behave": behave},
    )


def working_on(out, spec):
    """The lock of a run, as another process would hold it."""
    return locked(lock_path(run_folder(out, spec)))


def finish(spec, folder):
    (folder / "predictions").mkdir(exist_ok=True)
    for split in spec.splits:
        stem = split_stem(folder, split)
        save_file({"mean": np.zeros(2)}, stem.with_name(f"{stem.name}.safetensors"))
    mark_done(folder, spec, {"seconds": 0.1})


def work(specs, dataset, folders, *, device, callbacks):
    """Do to the runs what they ask for, in order."""
    for spec, folder in zip(specs, folders, strict=True):
        note(folder, "begun", f"{os.getpid()} {len(specs)} {device}")
        if isinstance(dataset, dict):
            told = (f"{name}={each.name}" for name, each in dataset.items())
            note(folder, "datasets", " ".join(told))
        else:
            sys.stdout.write(f"seed {spec.seed}, {len(dataset.splits)} splits\n")
        callbacks.epoch(spec, 1, 2, 0.5, 100.0, 3.0)
        BEHAVIOUR[spec.training["behave"]](spec, folder, callbacks)


def predict(specs, dataset, folders, *, device, callbacks):
    """Predict the target of every item, roughly, and finish."""
    for spec, folder in zip(specs, folders, strict=True):
        rng = np.random.default_rng(spec.seed)
        (folder / "predictions").mkdir(exist_ok=True)
        for split in spec.splits:
            items = dataset.splits[split]
            target = np.asarray(items.target, float)
            arrays = {"target": target, "item": np.asarray(items.item)}
            arrays["mean"] = target + rng.normal(scale=0.1, size=(1, len(target)))
            stem = split_stem(folder, split)
            header = Header(task="regression", split=split, seed=spec.seed)
            write(stem.with_name(f"{stem.name}.safetensors"), arrays, header=header)
        mark_done(folder, spec, {"seconds": 0.1})


def work_unless_odd(specs, dataset, folders, *, device, callbacks):
    """Finish runs with an even seed, fail the others."""
    for spec, folder in zip(specs, folders, strict=True):
        callbacks.epoch(spec, 2, 2, 0.25, 1234.0, 0.0)
        if spec.seed % 2:
            raise ValueError(f"seed must be even, got {spec.seed}")
        finish(spec, folder)


def train_until_killed(victim, last, specs, *given, callbacks, **options):
    """Train; the process kills itself when `victim` has finished the epoch `last`."""
    from qualms.training import run_together

    run_together(specs, *given, callbacks=_Deadly(victim, last, callbacks), **options)


class _Deadly:
    def __init__(self, victim, last, callbacks):
        self.victim, self.last, self.callbacks = victim, last, callbacks

    def epoch(self, spec, epoch, *values):
        self.callbacks.epoch(spec, epoch, *values)
        if (spec, epoch) == (self.victim, self.last):
            os.kill(os.getpid(), signal.SIGKILL)

    def message(self, spec, text):
        self.callbacks.message(spec, text)


class Channel:
    """A launcher in this process that sends jobs, and is gone after them."""

    def __init__(self, *jobs):
        self.jobs, self.sent = list(jobs), []

    def send(self, message):
        self.sent.append(message)

    def recv(self):
        if not self.jobs:
            raise EOFError
        return self.jobs.pop(0)

    def poll(self):
        return not self.jobs

    @property
    def ends(self):
        return [message for message in self.sent if isinstance(message, RunEnd)]


def note(folder, name, text=""):
    with (folder / name).open("a") as file:
        file.write(f"{text}\n")


def succeed(spec, folder, callbacks):
    finish(spec, folder)


def fail(spec, folder, callbacks):
    raise ValueError("the loss must be finite, got nan at step 3")


def break_unexpectedly(spec, folder, callbacks):
    raise ZeroDivisionError("division by zero\nand a second line")


def be_killed(spec, folder, callbacks):
    os.kill(os.getpid(), signal.SIGKILL)


def be_killed_once(spec, folder, callbacks):
    if len((folder / "begun").read_text().splitlines()) == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    finish(spec, folder)


def be_taken(spec, folder, callbacks):
    (folder / "owner.txt").write_text("process 1 on another")
    callbacks.epoch(spec, 2, 2, 0.5, 100.0, 0.0)
    finish(spec, folder)


def leave(spec, folder, callbacks):
    os._exit(3)


def fail_in_company(spec, folder, callbacks):
    company = (folder / "begun").read_text().splitlines()[-1].split()[1]
    if company != "1":
        raise RuntimeError("too many at once")
    finish(spec, folder)


def wait(spec, folder, callbacks):
    while not (folder / "go").exists():
        time.sleep(0.02)
    finish(spec, folder)


def wait_with_child(spec, folder, callbacks):
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    try:
        note(folder, "child", str(child.pid))  # from now on it may be interrupted
        wait(spec, folder, callbacks)
    except KeyboardInterrupt:
        note(folder, "told")
        raise


def refuse_to_stop(spec, folder, callbacks):
    while True:
        try:
            note(folder, "deaf")  # from now on it may be interrupted
            time.sleep(600)
        except KeyboardInterrupt:
            note(folder, "told")


def forget(spec, folder, callbacks):
    pass


def speak(spec, folder, callbacks):
    callbacks.message(spec, "the batch was halved")
    sys.stdout.write("to stdout\n")
    os.write(2, b"to stderr, past Python\n")
    finish(spec, folder)


def fill_disk(spec, folder, callbacks):
    raise OSError(28, "No space left on device")


BEHAVIOUR = {
    "": succeed,
    "datasets": succeed,
    "fail": fail,
    "break": break_unexpectedly,
    "killed": be_killed,
    "taken": be_taken,
    "killed once": be_killed_once,
    "leave": leave,
    "alone": fail_in_company,
    "wait": wait,
    "child": wait_with_child,
    "deaf": refuse_to_stop,
    "forget": forget,
    "speak": speak,
    "full": fill_disk,
}


def launch(out, data, *, workers, behaviours):
    """What a second launcher in a process of its own runs."""
    from qualms.launch import run_all
    from qualms.processes import _crew

    _crew.GRACE = 600.0
    specs = [spec(seed, behave=behave) for seed, behave in enumerate(behaviours)]
    for outcome in run_all(
        specs,
        out=Path(out),
        data=Path(data),
        workers=workers,
        device="cpu",
        work=work,
    ):
        sys.stdout.write(f"{outcome.spec.seed} {outcome.status}\n")
        sys.stdout.flush()
