"""`qualms.run` and `qualms.judge`: benchmarks from a request to their results."""

import inspect
import re
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from operator import index
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from rich.console import Console

from qualms.catalogue import write_scores
from qualms.launch._devices import check_installed, devices_for
from qualms.launch._dispatch import RETRIES
from qualms.launch._dry_run import check_runs
from qualms.launch._links import link_predictions
from qualms.launch._own_data import given_text, with_data
from qualms.launch._store import StoreError, is_address
from qualms.launch._store_runs import RunStore, run_store
from qualms.launch.data import (
    RequiredDataset,
    check_prepared,
    data_key,
    data_root,
    required_datasets,
)
from qualms.launch.engine import Engine
from qualms.launch.local import RunOutcome, datasets_of, pending_runs, run_all
from qualms.launch.plan import RunRequest, check_data, plans_of, without_datasets
from qualms.launch.progress import (
    counting_bar,
    dataset_text,
    duration_text,
    print_line,
    run_text,
    runs_view,
    waiting_for,
)
from qualms.runs import check_place, check_writable, judged_cells
from qualms.shelf import broken, find, include
from qualms.spec import digest
from qualms.study import RunPlan
from qualms.wording import plural

if TYPE_CHECKING:
    from qualms.evaluate.benchmark_results import BenchmarkResults
    from qualms.report.benchmark import Written

Paths = str | PathLike[str] | Iterable[str | PathLike[str]]
LONGEST = 60
"""Most characters of a partial plan in the name of its folder."""
MANY = 6
"""From this number of missing versions of a dataset on, one line stands for all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Resources:
    """Folders, processes and device of runs."""

    out: Path
    data: Path
    workers: int | None = None
    device: str = "auto"
    together: int | None = None
    engine: Engine = field(default_factory=Engine)
    store: RunStore | None = None
    """Where runs and tables are stored; `out` is then their mirror."""

    @property
    def place(self) -> str:
        """Where runs are, in words."""
        return self.store.store.address if self.store else str(self.out)

    def refresh(self, plans: "Iterable[RunPlan]") -> None:
        """Mirror the finished runs of plans if they are stored elsewhere."""
        if self.store is not None:
            self.store.refresh(spec for plan in plans for spec in plan.runs)


def resources_for(
    out: str | PathLike[str],
    data: str | PathLike[str] | None,
    *,
    workers: int | None = None,
    device: str = "auto",
    together: int | None = None,
    engine: Engine | None = None,
) -> Resources:
    """Return resources for runs in a folder, or in a store such as s3://bucket."""
    store = run_store(str(out)) if is_address(out) else None
    return Resources(
        out=store.mirror if store else Path(out),
        data=data_root(None if data is None else Path(data)),
        workers=workers,
        device=device,
        together=together,
        engine=engine or Engine(),
        store=store,
    )


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
    """Whether tables, figures and a page are written."""
    show: Callable[[JudgedPlan], None] = lambda _: None
    """Called with each plan as soon as it is judged."""


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
        """Whether no run failed, and all predictions of finished runs can be read."""
        ended = (o for o in self.outcomes if o.status in ("done", "skipped"))
        finished = {outcome.spec.hash for outcome in ended}
        missing = (run.hash for each in self.judged for run in each.results.missing)
        return not self.failed and finished.isdisjoint(missing)


def run(  # noqa: PLR0913 - the options of the command
    benchmark: str = "",
    *,
    source: str | PathLike[str] | None = None,
    preset: str = "demo",
    config: str = "",
    methods: str | Iterable[str] = (),
    seeds: str | Iterable[int] = (),
    options: Mapping[str, Any] | None = None,
    network: str = "",
    frozen: bool = False,
    data: str | PathLike[str] | None = None,
    out: str | PathLike[str] = "runs",
    workers: int | None = None,
    device: str = "auto",
    together: int | None = None,
    launcher: str = "local",
    address: str = "",
    cpus: float | None = None,
    gpus: float | None = None,
    retries: int = RETRIES,
    include: Paths = (),
    judge: bool = True,
    write: bool = True,
) -> "BenchmarkResults | dict[str, BenchmarkResults] | None":
    """Make the runs of a benchmark, judge them, and return the results.

    It does what `qualms run` does, and shows its progress in a terminal or notebook.
    Finished runs are not made again. Runs that fail are listed, and left out of the
    results; their logs say why.

    Args:
        benchmark: BENCHMARK or BENCHMARK/VARIANT,...; '' for all benchmarks.
        source: Your own data, for the benchmark `own`: a folder, a CSV or a TOML file.
        preset: "demo", "small" or "paper".
        config: A named set of options.
        methods: Methods or rows of tables, as a list or as "map,deep_ensemble".
        seeds: Seeds instead of the preset's, as a list or as "0-4".
        options: Such as {"epochs": 3, "method.rate": 0.2, "network.width": 8}.
        network: Name of a network in place of the benchmark's, such as "timm:resnet50".
        frozen: Whether the network stays as its weights are, for benchmarks of
            embeddings: only methods that train nothing.
        data: Prepared datasets; $QUALMS_CACHE or ~/.cache/qualms by default.
        out: Where runs and tables go: a folder, or s3://BUCKET/PREFIX.
        workers: Processes; one per GPU or core by default.
        device: "auto", "cpu", "cuda", "cuda:1", or "cuda:0,1" for each run.
        together: Seeds that one process trains at once.
        launcher: "local" for this machine, "ray" for a Ray cluster.
        address: HOST:PORT of the cluster; one of its own is started by default.
        cpus: Cores of the cluster for each process; 1 by default.
        gpus: GPUs of the cluster for each process, or a share of one.
        retries: How often a run is tried again after its process was lost.
        include: Files or folders with parts of your own.
        judge: Whether runs are judged; None is returned otherwise.
        write: Whether tables, figures and a page are written to `out`.

    Returns:
        The results of the benchmark; by name, where several were run.

    Raises:
        RuntimeError: If no run of the benchmark has a result.
    """
    command = _call("run", locals())
    _include(include)
    resources = resources_for(
        out,
        data,
        workers=workers,
        device=device,
        together=together,
        engine=Engine(
            launcher=launcher, address=address, cpus=cpus, gpus=gpus, retries=retries
        ),
    )
    request = _request(preset, config, methods, seeds, options)
    request = replace(request, network=network, frozen=frozen)
    report = run_plans(
        plans_for(benchmark, request, resources, source),
        resources,
        named="/" in benchmark,
        output=ResultsOutput(command, write) if judge else None,
    )
    if not judge:
        return None
    if not report.judged:
        first = report.failed[0]
        raise RuntimeError(
            f"no run of {benchmark or 'any benchmark'} has a result:"
            f" {run_text(first.spec)} failed: {first.error}; its log is {first.log}"
        )
    return _answer(report.judged)


def judge(  # noqa: PLR0913 - the options of the command
    benchmark: str = "",
    *,
    source: str | PathLike[str] | None = None,
    preset: str = "demo",
    config: str = "",
    methods: str | Iterable[str] = (),
    seeds: str | Iterable[int] = (),
    options: Mapping[str, Any] | None = None,
    network: str = "",
    frozen: bool = False,
    data: str | PathLike[str] | None = None,
    out: str | PathLike[str] = "runs",
    device: str = "auto",
    include: Paths = (),
    write: bool = True,
) -> "BenchmarkResults | dict[str, BenchmarkResults]":
    """Judge the finished runs of a benchmark, and return the results.

    Nothing is trained: runs without predictions are listed in `results.missing`.

    Args:
        benchmark: As for `qualms.run`, which explains all arguments.
        source: Your own data, for the benchmark `own`.
        preset: "demo", "small" or "paper".
        config: A named set of options.
        methods: Methods or rows of tables.
        seeds: Seeds instead of the preset's.
        options: The options with which the runs were made.
        network: The network with which they were made, in place of the benchmark's.
        frozen: Whether it was frozen.
        data: Prepared datasets, for figures that show items.
        out: Where runs are, and where tables go.
        device: Where runs on your own data were made: it chooses their network.
        include: Files or folders with parts of your own.
        write: Whether tables, figures and a page are written to `out`.

    Returns:
        The results of the benchmark; by name, where there are several.
    """
    command = _call("judge", locals())
    _include(include)
    resources = resources_for(out, data, device=device)
    request = _request(preset, config, methods, seeds, options)
    request = replace(request, network=network, frozen=frozen)
    plans = plans_for(benchmark, request, resources, source)
    resources.refresh(plans)
    _refuse_without_runs(plans, resources)
    output = ResultsOutput(command, write)
    return _answer([_judge(plan, resources, output) for plan in plans])


def _refuse_without_runs(plans: Sequence[RunPlan], resources: Resources) -> None:
    """Raise if there is nothing to judge."""
    runs = {spec.hash: spec for plan in plans for spec in plan.runs}
    if runs and len(pending_runs(list(runs.values()), resources.out)) == len(runs):
        names = ", ".join(plan.benchmark.name for plan in plans)
        raise ValueError(
            f"there must be runs to judge, and none of the {len(runs)} of {names} is in"
            f" {resources.place}; make them with qualms.run, or say out= for where they"
            " are"
        )


def parse_seeds(text: str) -> tuple[int, ...]:
    """Parse seeds from a text such as 0-4 or 0,2,7.

    >>> parse_seeds("0-2,7")
    (0, 1, 2, 7)
    """
    seeds: list[int] = []
    for part in filter(None, text.replace(" ", "").split(",")):
        first, dash, last = part.partition("-")
        last = last if dash else first
        numbers = re.fullmatch("[0-9]+", first) and re.fullmatch("[0-9]+", last)
        if not numbers or int(first) > int(last):
            raise ValueError(f"seeds must read like 0-4 or 0,2,7, got {text!r}")
        seeds += range(int(first), int(last) + 1)
    if text and not seeds:
        raise ValueError(f"seeds must name at least one, got {text!r}")
    return tuple(seeds)


def parse_names(text: str) -> tuple[str, ...]:
    """Parse methods from a text such as map,gaussian.

    >>> parse_names("map, gaussian")
    ('map', 'gaussian')
    """
    methods = tuple(filter(None, (part.strip() for part in text.split(","))))
    if text and not methods:
        raise ValueError(f"methods must name at least one, got {text!r}")
    return methods


def plans_for(
    benchmark: str,
    request: RunRequest,
    resources: Resources,
    source: str | PathLike[str] | None = None,
) -> list[RunPlan]:
    """Return the plans of a request; data in `source` are prepared first."""
    for sentence in () if benchmark else broken("benchmarks").values():
        print_line(Console(), f"note: {sentence}")
    if source is None:
        return plans_of(benchmark, request)
    benchmark, path = benchmark or "own", Path(source)
    check_data(find("benchmarks", benchmark.partition("/")[0]), given=True)
    with counting_bar(path.name) as advance:
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
        brief: Whether progress is told in few lines.
    """
    started = time.monotonic()
    resources.refresh(plans)
    if not named:
        plans = [_with_prepared_data(plan, resources) for plan in plans]
    report = RunReport(tuple(_make(plans, resources, brief=brief)))
    try:
        _print_summary(report.outcomes, time.monotonic() - started)
        if output is None:
            return report
        resources.refresh(plans)
        judged = tuple(
            _judge(plan, resources, output)
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
    if resources.store is not None:
        resources.store.check()
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


def _answer(
    judged: Sequence[JudgedPlan],
) -> "BenchmarkResults | dict[str, BenchmarkResults]":
    results = {each.results.benchmark.name: each.results for each in judged}
    return judged[0].results if len(judged) == 1 else results


def _request(
    preset: str,
    config: str,
    methods: str | Iterable[str],
    seeds: str | Iterable[int],
    options: Mapping[str, Any] | None,
) -> RunRequest:
    if isinstance(methods, str):
        methods = parse_names(methods)
    if isinstance(seeds, str):
        seeds = parse_seeds(seeds)
    return RunRequest(
        preset=preset,
        config=config,
        methods=tuple(methods),
        seeds=_whole_seeds(seeds),
        options=dict(options or {}),
    )


def _whole_seeds(seeds: Iterable[int]) -> tuple[int, ...]:
    try:
        return tuple(map(index, seeds))
    except TypeError as error:
        raise ValueError(
            f"seeds must be whole numbers, as in [0, 1] or '0-1', got {seeds!r:.60}"
        ) from error


def _include(paths: Paths) -> None:
    several = [paths] if isinstance(paths, str | PathLike) else paths
    include([Path(path) for path in several])


def _call(name: str, arguments: Mapping[str, Any]) -> str:
    """Write a call of a function of this module, as results.csv states it."""
    parameters = inspect.signature(globals()[name]).parameters
    texts = [
        f"{argument}={str(value) if isinstance(value, PathLike) else value!r}"
        for argument, value in arguments.items()
        if value is not parameters[argument].default
    ]
    return f"qualms.{name}({', '.join(texts)})"


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
        if resources.store is not None:
            resources.store.check()
    outcomes = []
    total = len({spec.hash for spec in specs})
    with runs_view(total, Console(), brief=brief) as view:
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
            store=resources.store,
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


def _judge(plan: RunPlan, resources: Resources, output: ResultsOutput) -> JudgedPlan:
    """Judge a plan, write its files, and show it."""
    from qualms.evaluate.benchmark import judge_plan
    from qualms.report.benchmark import notebook_html, write_all

    console = Console()
    folder = results_folder(plan, resources.out)
    with waiting_for("judging", console):
        cells = judged_cells(resources.out / plan.benchmark.name)
        results = judge_plan(plan, resources.out, cells=cells)
        results = replace(results, html=notebook_html)
    judged = JudgedPlan(results, folder, None)
    try:  # before showing, since a closed pipe would end the command
        if output.write:
            with waiting_for("drawing", console):
                files = write_all(
                    results, folder, command=output.command, data=resources.data
                )
            write_scores(folder, {"preset": plan.preset_text}, results.run_scores)
            links = link_predictions(plan, resources.out, folder)
            judged = judged._replace(files=files, predictions=links)
            if resources.store is not None:
                address = resources.store.push_results(folder)
                print_line(console, f"tables and figures are stored in {address}")
    except StoreError:
        raise
    except OSError as error:
        raise OSError(
            f"cannot write tables to {folder}: {error.strerror or error}; free space"
            " there or make it writable, and run again: what is done is kept"
        ) from error
    finally:
        output.show(judged)
    return judged


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
