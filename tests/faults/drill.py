"""Tiny runs, trained in this process as a worker trains them, and how they end."""

import hashlib
import subprocess
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest

from launch.fakes import Channel
from qualms.launch import prepare_datasets
from qualms.launch._worker import Job, WorkerSetup, serve_launcher
from qualms.launch.data import data_key
from qualms.processes import Epoch, Message
from qualms.runs import is_done, run_folder
from qualms.spec import Part, RunSpec
from qualms.training import run_together

CELLS = Part(name="cells", options={"sizes": {"train": 24, "val": 8, "test": 8}})
EPOCHS = 4


def spec(seed=0, *, method="map", sources=None, **training):
    """A run that takes a fraction of a second."""
    return RunSpec(
        benchmark="toy",
        dataset=CELLS,
        network=Part(name="resnet_small", options={"width": 2}),
        method=Part(name=method),
        seed=seed,
        training={"epochs": EPOCHS, "batch": 8, **training},
        sources=sources or {},
    )


class Ended:
    """How runs ended, with all that the user is told."""

    def __init__(self, channel):
        self.status = {end.spec.seed: end.status for end in channel.ends}
        self.error = {end.spec.seed: end.error for end in channel.ends}
        sent = (each for each in channel.sent if isinstance(each, Message))
        self.messages = [message.text for message in sent]
        epochs = (each for each in channel.sent if isinstance(each, Epoch))
        self.epochs = [(each.spec.hash, each.values[0]) for each in epochs]


def train(out, specs, cache, *, work=run_together, **setup):
    """Prepare the data of runs and train them, one after another."""
    folders = prepare_datasets([run.dataset for run in specs], cache, workers=1)
    jobs = [
        Job((run,), (run_folder(out, run),), {"": folders[data_key(run.dataset)]})
        for run in specs
    ]
    channel = Channel(*jobs)
    setup = WorkerSetup(device="cpu", threads=1, command=[], work=work, **setup)
    with pytest.raises(EOFError):
        serve_launcher(channel, setup)
    return Ended(channel)


def after_epoch(last, act, run=None):
    """Work that calls `act(folder)` once an epoch of a run is over."""
    return partial(_train_with, last, act, run)


def _train_with(last, act, run, specs, data, folders, *, callbacks, **options):
    watch = _Watch(
        last,
        act,
        run,
        {run.hash: folder for run, folder in zip(specs, folders, strict=True)},
        callbacks,
    )
    run_together(specs, data, folders, callbacks=watch, **options)


class _Watch:
    def __init__(self, last, act, run, folders, callbacks):
        self.last, self.act, self.run = last, act, run
        self.folders, self.callbacks = folders, callbacks

    def epoch(self, spec, epoch, *values):
        self.callbacks.epoch(spec, epoch, *values)
        if epoch == self.last and self.run in (None, spec):
            self.act(self.folders[spec.hash])

    def message(self, spec, text):
        self.callbacks.message(spec, text)


def predictions(out, run):
    """The bytes of all predictions of a run."""
    assert is_done(run_folder(out, run), run)
    paths = sorted((run_folder(out, run) / "predictions").iterdir())
    assert len(paths) == len(run.splits)
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in paths}


def trained_epochs(ended, run):
    """The epochs of a run that were trained."""
    return [epoch for run_hash, epoch in ended.epochs if run_hash == run.hash]


@contextmanager
def small_disk(folder: Path, size: str):
    """Mount a disk of so many bytes; skip the test where that is not allowed."""
    folder.mkdir(exist_ok=True)
    mount = ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder)]
    if subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("a disk of its own needs root")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)
