"""From finished runs to results, tables, figures and a page."""

import re
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from qualms.catalogue import write_scores
from qualms.launch._links import link_predictions
from qualms.launch.engine import judging_crew
from qualms.launch.resources import Resources
from qualms.processes import RemoteCrew
from qualms.progress import showing
from qualms.runs import judged_cells
from qualms.spec import digest
from qualms.study import RunPlan

if TYPE_CHECKING:
    from qualms.evaluate.benchmark_results import BenchmarkResults
    from qualms.report.benchmark import Written

LONGEST = 60
"""Most characters of a partial plan in the name of its folder."""


class JudgedPlan(NamedTuple):
    """A plan that was judged, and its files."""

    results: "BenchmarkResults"
    folder: Path
    files: "Written | None"
    """None where nothing was written."""
    predictions: tuple[Path, ...] = ()
    """Folders of the predictions of every run, with the names of rows and seeds."""


class ResultsOutput(NamedTuple):
    """Destination of results."""

    command: str
    """The command or call of the user, for all files."""
    write: bool = True
    """True to write tables, figures and a page."""
    show: Callable[[JudgedPlan], None] = lambda _: None
    """Called with each plan as soon as it is judged."""


def judge_runs(
    plan: RunPlan, resources: Resources, output: ResultsOutput
) -> JudgedPlan:
    """Judge a plan, write its files, and show it."""
    from qualms.evaluate.benchmark import judge_plan
    from qualms.report.benchmark import notebook_html, write_all

    folder = results_folder(plan, resources.out)
    with showing("judging"):
        cells = judged_cells(resources.out / plan.benchmark.name)
        results = judge_plan(
            plan, resources.out, cells=cells, remote=_remote(resources)
        )
        results = replace(results, html=notebook_html)
    judged = JudgedPlan(results, folder, None)
    try:  # before showing, since a closed pipe would end the command
        if output.write:
            with showing("drawing"):
                files = write_all(
                    results, folder, command=output.command, data=resources.data
                )
            write_scores(folder, {"preset": plan.preset_text}, results.run_scores)
            links = link_predictions(plan, resources.out, folder)
            judged = judged._replace(files=files, predictions=links)
    except OSError as error:
        raise OSError(
            f"cannot write tables to {folder}: {error.strerror or error}; free space"
            " there or make it writable, and run again: what is done is kept"
        ) from error
    finally:
        output.show(judged)
    return judged


def _remote(resources: Resources) -> Callable[[], RemoteCrew] | None:
    """Return what connects to other machines that see the runs; None without any."""
    if resources.engine.launcher == "local":
        return None
    return partial(judging_crew, resources.engine, out=resources.out)


def results_folder(plan: RunPlan, out: Path) -> Path:
    """Return the folder of the tables of a plan; partial plans have their own."""
    folder = out / plan.benchmark.name / plan.preset.name
    return folder / _part_name(plan.part) if plan.part else folder


def _part_name(part: str) -> str:
    """Return the name of the folder for results of a partial plan.

    >>> _part_name("cells, map, seeds 0-1")
    'part-cells,map,seeds_0-1'
    """
    plain = part.replace(", ", ",").replace(" ", "_")
    if re.fullmatch(r"[\w.,=+-]+", plain, re.ASCII) and len(plain) <= LONGEST:
        return f"part-{plain}"
    safe = re.sub(r"[^\w.,=+-]+", "_", plain, flags=re.ASCII)
    return f"part-{safe[:LONGEST]}-{digest(part)[:8]}"
