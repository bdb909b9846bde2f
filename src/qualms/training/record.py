"""What training records about a run: its environment, its headers, and its end."""

import platform
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import torch

import qualms
from qualms import runs
from qualms.datasets import Dataset
from qualms.predictions import Header
from qualms.spec import RunSpec, parse_split
from qualms.training._error import TrainingError, writing
from qualms.training.followers import Assigned
from qualms.training.machine import Machine
from qualms.training.predict import Pace
from qualms.training.runs import Run


def announce(job: Assigned, machine: Machine) -> None:
    """Make the folder of a run, and write its spec and environment there."""
    facts = {
        "torch": torch.__version__,
        "cuda": torch.version.cuda,
        "hardware": hardware(machine.device),
    }
    try:
        with writing(job.folder):
            runs.describe(job.folder, job.spec, facts)
    except runs.RunFolderError as error:
        raise TrainingError(str(error)) from error


def header(run: Run, split: str) -> Header:
    """The header of the predictions of `split`."""
    spec, method = run.spec, run.learner.method
    dataset = run.place.splits.dataset_of(split)
    stated = {
        "task": run.place.splits.dataset.task.name,
        "benchmark": spec.benchmark,
        "dataset": dataset.name,
        "split": parse_split(split)[1],
        "method": spec.method.name,
        "seed": spec.seed,
        "options": _options(spec, dataset),
        "fingerprint": dataset.fingerprint,
        "version": qualms.__version__,
        "commit": runs.commit(),
        "hardware": _hardware(run),
        "parameters": sum(p.numel() for p in run.learner.network.parameters()),
        "ignore": dataset.task.ignore,
        "select": method.select,
    }
    return Header(**{**stated, **method.header})


def finish(run: Run, pace: Mapping[str, Pace]) -> None:
    """Record that a run is done and what it cost, `pace` by split; this comes last."""
    network, stand = run.learner.network, run.stand
    images = run.options.epochs * sum(run.counts)
    facts = {
        "seconds": stand.seconds + stand.fit_seconds,
        "epochs": run.options.epochs,
        "passes": run.options.epochs * run.options.epoch_passes,
        "steps": run.options.epochs * len(run.counts),
        "parameters": sum(p.numel() for p in network.parameters()),
        "images_per_second": images / stand.seconds if images else None,
        "hardware": _hardware(run),
        "pace": {split: dict(seconds) for split, seconds in pace.items() if seconds},
    }
    with writing(run.folder):
        runs.mark_done(run.folder, run.spec, facts)


def hardware(device: torch.device) -> str:
    """The device in words."""
    if device.type == "cuda":
        return torch.cuda.get_device_name(device)
    threads = torch.get_num_threads()
    return f"{_processor()}, {threads} thread{'s' * (threads > 1)}"


@cache
def _processor() -> str:
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        for line in cpuinfo.read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def _hardware(run: Run) -> str:
    machine = run.place.machine
    each = hardware(machine.device)
    return each if machine.team.size == 1 else f"{machine.team.size} x {each}"


def _options(spec: RunSpec, dataset: Dataset) -> dict[str, Any]:
    """What else determines the predictions, besides the other entries of the header."""
    return {
        "run": spec.hash,
        "dataset": dict(dataset.options),
        "network": {"name": spec.network.name, **spec.network.options},
        "method": dict(spec.method.options),
        "training": dict(spec.training),
    }
