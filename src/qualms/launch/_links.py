"""Readable names for the folders of runs, which are called by hashes."""

import os
import shutil
from collections.abc import Mapping
from pathlib import Path

from qualms.labels import Label
from qualms.runs import predictions_folder, run_folder, was_finished
from qualms.spec import RunSpec
from qualms.study import Line, RunPlan

FOLDER = "predictions"


def link_predictions(plan: RunPlan, out: Path, folder: Path) -> tuple[Path, ...]:
    """Link the predictions of finished runs in `folder` by row and seed.

    Returns:
        The links; () where the file system has none.
    """
    links = folder / FOLDER
    shutil.rmtree(links, ignore_errors=True)
    paths = []
    for name, spec in _names(plan).items():
        target = run_folder(out, spec)
        if not was_finished(target):
            continue
        path = links / name
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            path.symlink_to(os.path.relpath(predictions_folder(target), path.parent))
        except OSError:
            return ()
        paths.append(path)
    return tuple(paths)


def _names(plan: RunPlan) -> Mapping[str, RunSpec]:
    """Return every run by its name; runs that several rows share have the first."""
    several = sum(variant.listed for variant in plan.variants) > 1
    specs: dict[str, RunSpec] = {}
    hashes: set[str] = set()
    # Rows that pool runs of others come last, so that a run has the name of its own.
    for line in sorted(plan.lines, key=lambda line: line.row.pool):
        for spec in line.runs:
            if spec.hash not in hashes:
                hashes.add(spec.hash)
                name = "-".join((line.row.name, *_settings(line), f"seed{spec.seed}"))
                specs[f"{line.variant.name}/{name}" if several else name] = spec
    return specs


def _settings(line: Line) -> list[str]:
    """Return the settings of a line for which it has runs of its own."""
    values: list[tuple[str, Label]] = [(n, line.at[n]) for n in line.row.trained_by]
    return [f"{name}={value}" for name, value in values]
