"""From plans to runs, and from finished runs to what was judged."""

import shlex
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, closing
from functools import partial
from os import PathLike
from pathlib import Path
from typing import NamedTuple

from rich.console import Console

from qualms.launch._devices import check_installed, devices_for
from qualms.launch._dry_run import check_runs, try_methods
from qualms.launch._own_data import given_text, with_data
from qualms.launch._progress_page import ProgressPage
from qualms.launch.data import (
    RequiredDataset,
    check_prepared,
    data_key,
    required_datasets,
)
from qualms.launch.engine import launcher_command
from qualms.launch.judging import JudgedPlan, ResultsOutput, judge_runs
from qualms.launch.local import RunOutcome, datasets_of, pending_runs, run_all
from qualms.launch.plan import RunRequest, check_data, plans_of, without_datasets
from qualms.launch.progress import (
    Pace,
    dataset_text,
    print_line,
    run_text,
    runs_view,
)
from qualms.launch.resources import Resources
from qualms.progress import duration_text, showing
from qualms.runs import check_place, check_writable
from qualms.shelf import broken, find
from qualms.study import RunPlan
from qualms.wording import plural

MANY = 6
"""From this number of missing versions of a dataset on, one line stands for all."""


class RunReport(NamedTuple):
    """The outcomes of runs, and the plans that were judged."""

    outcomes: tuple[RunOutcome, ...]
    judged: tuple[JudgedPlan, ...] = ()

    @property
    def failed(self) -> list[RunOutcome]:
        """Runs that failed."""
        return [outcome for outcome in self.outcomes if outcome.status == "failed"]

    @property
    def is_complete(self) -> bool:
        """True if no run failed, and all predictions of finished runs can be read."""
        ended = (o for o in self.outcomes if o.status in ("done", "skipped"))
        finished = {outcome.spec.hash for outcome in ended}
        missing = (run.hash for each in self.judged for run in each.results.missing)
        return not self.failed and finished.isdisjoint(missing)


def plans_for(
    benchmark: str,
    request: RunRequest,
    resources: Resources,
    source: str | PathLike[str] | None = None,
) -> list[RunPlan]:
    """Return the plans of a request; data in `source` are prepared first."""
    if source is None and (request.corruptions or request.severities):
        raise ValueError(
            "corruptions are of your own data: name a folder, a table in CSV or a TOML"
            " file with --from (`qualms docs corruptions`), or leave out --corrupt"
        )
    for sentence in () if benchmark else broken("benchmarks").values():
        print_line(Console(), f"note: {sentence}")
    if source is None:
        return plans_of(benchmark, request)
    benchmark, path = benchmark or "own", Path(source)
    check_data(find("benchmarks", benchmark.partition("/")[0]), has_data=True)
    with showing(path.name) as advance:
        request = with_data(
            request,
            path,
            data=resources.data,
            device=resources.device,
            workers=resources.workers,
            progress=advance,
        )
    assert request.given is not None
    print_line(Console(), given_text(request.given))
    for note in request.given.notes:
        print_line(Console(), f"note: {note}")
    return plans_of(benchmark, request)


def run_plans(
    plans: Sequence[RunPlan],
    resources: Resources,
    *,
    named: bool,
    output: ResultsOutput | None,
    brief: bool = False,
) -> RunReport:
    """Make the runs of plans that have no result, judge them, and list failed runs.

    Args:
        plans: The plans.
        resources: Folders, processes and device.
        named: Whether the user names variants; their datasets must be prepared. If
            not, variants without prepared datasets are left out.
        output: Destination of results; None if plans are not judged.
        brief: Whether progress is shown in few lines.
    """
    started = time.monotonic()
    if not named:
        plans = [_with_prepared_data(plan, resources) for plan in plans]
    report = RunReport(tuple(_make(plans, resources, brief=brief)))
    try:
        _print_summary(report.outcomes, time.monotonic() - started)
        if output is None:
            return report
        judged = tuple(
            judge_runs(plan, resources, output)
            for plan in plans
            if not _failed_completely(plan, report)
        )
        return report._replace(judged=judged)
    finally:
        _print_failed(report.failed)  # last, where users see it


def check_plans(
    plans: Sequence[RunPlan], resources: Resources, *, named: bool
) -> tuple[str, ...]:
    """Raise what `run_plans` would raise, or what its runs would be refused for.

    Returns:
        Notes on what could not be checked without making data.
    """
    specs = [
        spec
        for plan in plans
        for spec in (plan if named else _reduced(plan, resources).plan).runs
    ]
    pending = pending_runs(specs, resources.out)
    if not pending:
        return ()
    check_installed()
    if resources.engine.launcher == "local":
        devices_for(resources.device)
    check_place(resources.out)
    tasks = {plan.benchmark.name: plan.benchmark.task for plan in plans}
    try_methods((tasks[spec.benchmark], spec.method) for spec in pending)
    return check_runs(pending, check_prepared(datasets_of(pending), resources.data))


def data_line(dataset: RequiredDataset) -> str:
    """Say in a line whether a dataset is ready, and how to get it."""
    name = dataset_text(dataset.part)
    if dataset.items is not None:
        items = ", ".join(f"{split} {n:,}" for split, n in dataset.items.items())
        return f"{name}: ready ({items})"
    if dataset.folder is None:
        return f"{name}: not prepared; {dataset.remedy} first"
    return f"{name}: will be made, or now by `{dataset.command}`"


class _ReducedPlan(NamedTuple):
    plan: RunPlan
    missing: tuple[RequiredDataset, ...] = ()


def _reduced(plan: RunPlan, resources: Resources) -> _ReducedPlan:
    """Leave out variants whose runs cannot be made without data to prepare."""
    pending = pending_runs(plan.runs, resources.out)
    datasets = required_datasets(datasets_of(pending), resources.data)
    missing = {data_key(d.part): d for d in datasets if d.folder is None}
    reduced = without_datasets(plan, missing)
    if not reduced.variants:
        return _ReducedPlan(plan)  # the launcher says what to prepare
    return _ReducedPlan(reduced, tuple(missing.values()))


def _with_prepared_data(plan: RunPlan, resources: Resources) -> RunPlan:
    """Leave out variants without data, and say which."""
    reduced = _reduced(plan, resources)
    for line in _missing_lines(reduced.missing):
        print_line(Console(), f"left out: {line}")
    return reduced.plan


def _missing_lines(datasets: Iterable[RequiredDataset]) -> Iterator[str]:
    """List the missing datasets; one line stands for many versions of one."""
    versions: dict[str, list[RequiredDataset]] = {}
    for dataset in datasets:
        versions.setdefault(dataset.part.name, []).append(dataset)
    for name, group in versions.items():
        if len(group) < MANY:
            yield from map(data_line, group)
        else:
            more = f"{len(group) - 1} more of {name}, which --dry-run lists"
            yield f"{data_line(group[0])}, and likewise for {more}"


def _make(
    plans: Sequence[RunPlan], resources: Resources, *, brief: bool
) -> list[RunOutcome]:
    """Make the runs that have no result, and show their progress."""
    specs = [spec for plan in plans for spec in plan.runs]
    if pending_runs(specs, resources.out):  # report mistakes before preparing data
        check_installed()
        check_writable(resources.out)
    outcomes = []
    total = len({spec.hash for spec in specs})
    console = Console()
    with ExitStack() as stack:
        page = ProgressPage(
            view=stack.enter_context(runs_view(total, console, brief=brief)),
            file=resources.out / "progress.html",
            command=shlex.join(launcher_command()),
            pace=Pace(total, time.monotonic()),
            announce=partial(print_line, console),
        )
        view = stack.enter_context(closing(page))
        runs = run_all(
            specs,
            out=resources.out,
            data=resources.data,
            workers=resources.workers,
            device=resources.device,
            together=resources.together,
            engine=resources.engine,
            callbacks=view,
            progress=view.data,
        )
        with closing(runs):
            for outcome in runs:
                view.ended(outcome)
                outcomes.append(outcome)
    return outcomes


def _print_summary(outcomes: Sequence[RunOutcome], seconds: float) -> None:
    count = Counter(outcome.status for outcome in outcomes)
    statuses = ", ".join(f"{n} {status}" for status, n in sorted(count.items()))
    runs = f"{len(outcomes)} {plural(len(outcomes), 'run')}"
    console = Console()
    print_line(console, f"{runs}: {statuses or 'none'}; {duration_text(seconds)}")
    if count["busy"]:
        busy = "busy runs are being made by another process; run again to see them"
        print_line(console, busy)


def _print_failed(failed: Sequence[RunOutcome]) -> None:
    console = Console(stderr=True)
    for outcome in failed:
        spec = outcome.spec
        print_line(console, f"failed: {run_text(spec)} ({spec.hash})")
        print_line(console, f"  {outcome.error}")
        print_line(console, f"  log: {outcome.log}")


def _failed_completely(plan: RunPlan, report: RunReport) -> bool:
    """Return whether runs failed and none has a result; then print that."""
    status = {outcome.spec.hash: outcome.status for outcome in report.outcomes}
    statuses = {status.get(spec.hash) for spec in plan.runs}
    if "failed" not in statuses or statuses & {"done", "skipped"}:
        return False
    why = "every run failed" if len(statuses) == 1 else "no run has a result"
    name = plan.benchmark.name
    print_line(Console(), f"{name}: nothing was judged, since {why}")
    return True
