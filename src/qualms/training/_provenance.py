"""Facts about a run in its files: environment, headers of predictions, and cost."""

from collections.abc import Mapping
from typing import Any

import torch

import qualms
from qualms import runs
from qualms.datasets import Dataset
from qualms.predictions import Header
from qualms.spec import CORRUPTIONS, RunSpec, parse_corrupted, parse_split
from qualms.training._error import TrainingError, writing
from qualms.training._run import Run
from qualms.training._shared_training import TrainingJob
from qualms.training.machine import Machine, hardware
from qualms.training.predict import Pace


def describe_job(job: TrainingJob, machine: Machine) -> None:
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
    """Return the header of the predictions of `split`."""
    spec, method = run.spec, run.learner.method
    dataset = run.resources.splits.dataset_of(split)
    facts = {
        "task": run.resources.splits.dataset.task.name,
        "benchmark": spec.benchmark,
        "dataset": dataset.name,
        "split": parse_split(split)[1],
        "method": spec.method.name,
        "seed": spec.seed,
        "options": {**_options(spec, dataset), **_corruption(spec, split)},
        "fingerprint": dataset.fingerprint,
        "version": qualms.__version__,
        "commit": runs.commit(),
        "hardware": _hardware(run),
        "parameters": sum(p.numel() for p in run.learner.network.parameters()),
        "ignore": dataset.task.ignore,
        "select": method.select,
    }
    return Header(**{**facts, **method.header})


def finish(run: Run, pace: Mapping[str, Pace]) -> None:
    """Mark a run as done and write what it cost, `pace` by split; this comes last."""
    network, state = run.learner.network, run.state
    steps, sizes = run.options.steps, run.data.step_sizes
    images = steps.epochs * sum(sizes)
    facts = {
        "seconds": state.seconds + state.fit_seconds,
        "epochs": steps.epochs,
        "passes": steps.epochs * steps.epoch_passes,
        "steps": steps.epochs * len(sizes),
        "parameters": sum(p.numel() for p in network.parameters()),
        "images_per_second": images / state.seconds if images else None,
        "hardware": _hardware(run),
        # Sums on a processor depend on it in their last bits.
        "threads": torch.get_num_threads(),
        "pace": {split: dict(seconds) for split, seconds in pace.items() if seconds},
    }
    with writing(run.folder):
        runs.mark_done(run.folder, run.spec, facts)


def _hardware(run: Run) -> str:
    machine = run.resources.machine
    each = hardware(machine.device)
    return each if machine.team.size == 1 else f"{machine.team.size} x {each}"


def _corruption(spec: RunSpec, split: str) -> dict[str, Any]:
    """Return how the items of a split were corrupted; {} if they were not."""
    corrupted = parse_corrupted(parse_split(split)[1])
    if corrupted is None:
        return {}
    _, name, severity = corrupted
    return {
        "corruption": {
            "name": name,
            "severity": severity,
            "code": spec.sources.get(f"{CORRUPTIONS}/{name}", ""),
        }
    }


def _options(spec: RunSpec, dataset: Dataset) -> dict[str, Any]:
    """Return what determines the predictions, besides other entries of the header."""
    return {
        "run": spec.hash,
        "dataset": dict(dataset.options),
        "network": {"name": spec.network.name, **spec.network.options},
        "method": dict(spec.method.options),
        "training": dict(spec.training),
    }
