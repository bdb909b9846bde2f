"""What a run folder says of its run: spec, environment, headers, that it is done."""

import json
from pathlib import Path
from typing import Any

import qualms
from qualms.atomic import replacing
from qualms.predictions import Header
from qualms.predictions._stored import is_stored
from qualms.training import checkpoint
from qualms.training._error import TrainingError, writing
from qualms.training.hardware import commit, environment, hardware
from qualms.training.machine import Machine
from qualms.training.runs import Assigned, Run


def is_done(job: Assigned) -> bool:
    """Whether the run was finished in its folder, and its predictions are there."""
    spec, folder = job
    stated = _read(folder / "done.json")
    finished = stated is not None and stated.get("hash") == spec.hash
    return finished and all(is_stored(folder, split) for split in spec.splits)


def describe(job: Assigned, machine: Machine) -> None:
    """Make the folder of a run and say in it what the run is and what it runs on."""
    spec, folder = job
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / "spec.json"
        if path.exists() and path.read_text(encoding="utf-8") != spec.to_json():
            raise TrainingError(f"{folder} holds another run; choose another folder")
        _write(path, spec.to_json())
        if not (folder / "environment.json").exists():
            told = json.dumps(environment(machine.device), indent=1)
            _write(folder / "environment.json", told)


def header(run: Run, split: str) -> Header:
    """The header of the predictions of `split`."""
    spec, method = run.spec, run.learner.method
    dataset = run.place.splits.dataset
    stated = {
        "task": dataset.task.name,
        "benchmark": spec.benchmark,
        "dataset": dataset.name,
        "split": split,
        "method": spec.method.name,
        "seed": spec.seed,
        "options": _options(run),
        "fingerprint": dataset.fingerprint,
        "version": qualms.__version__,
        "commit": commit(),
        "hardware": _hardware(run),
        "seconds": run.stand.seconds + run.stand.fit_seconds,
        "ignore": dataset.task.ignore,
        "select": method.select,
    }
    return Header(**{**stated, **method.header})


def mark_done(run: Run) -> None:
    """Write done.json, last of all."""
    network, stand = run.learner.network, run.stand
    images = run.options.epochs * sum(run.counts)
    done = {
        "hash": run.spec.hash,
        "seconds": stand.seconds + stand.fit_seconds,
        "epochs": run.options.epochs,
        "parameters": sum(p.numel() for p in network.parameters()),
        "images_per_second": images / stand.seconds,
        "hardware": _hardware(run),
    }
    with writing(run.folder):
        checkpoint.forget_previous(run.folder)
        _write(run.folder / "done.json", json.dumps(done, indent=1))


def _hardware(run: Run) -> str:
    machine = run.place.machine
    each = hardware(machine.device)
    return each if machine.team.size == 1 else f"{machine.team.size} x {each}"


def _options(run: Run) -> dict[str, Any]:
    """All that made the predictions what they are, besides what has its own entry."""
    spec = run.spec
    return {
        "run": spec.hash,
        "dataset": dict(run.place.splits.dataset.options),
        "network": {"name": spec.network.name, **spec.network.options},
        "method": dict(spec.method.options),
        "training": dict(spec.training),
    }


def _read(path: Path) -> dict[str, Any] | None:
    try:
        stated = json.loads(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, ValueError):
        return None
    return stated if isinstance(stated, dict) else None


def _write(path: Path, text: str) -> None:
    with replacing(path) as temporary:
        temporary.write_text(text, encoding="utf-8")
