"""`qualms.run` and `qualms.judge`: benchmarks from a request to their results."""

import inspect
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from operator import index
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from qualms.corruptions import parse_severities
from qualms.launch._dispatch import RETRIES
from qualms.launch.engine import Engine
from qualms.launch.judging import JudgedPlan, ResultsOutput, judge_runs
from qualms.launch.local import pending_runs
from qualms.launch.plan import RunRequest, parse_names, parse_seeds
from qualms.launch.progress import run_text
from qualms.launch.resources import Resources, resources_for
from qualms.launch.running import plans_for, run_plans
from qualms.shelf import include
from qualms.study import RunPlan
from qualms.wording import in_one_line

if TYPE_CHECKING:
    from qualms.evaluate.benchmark_results import BenchmarkResults

Paths = str | PathLike[str] | Iterable[str | PathLike[str]]


@in_one_line
def run(  # noqa: PLR0913 - the options of the command
    benchmark: str = "",
    *,
    source: str | PathLike[str] | None = None,
    corrupt: str | Iterable[str] = (),
    severity: str | int | Iterable[int] = (),
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
        corrupt: Corruptions of their test items, as a list or as "fog,blur".
        severity: How much, as a list or as "1-5"; all by default.
        preset: "demo", "small" or "paper".
        config: A named set of options.
        methods: Methods or rows of tables, as a list or as "map,deep_ensemble".
        seeds: Seeds instead of the preset's, as a list or as "0-4".
        options: Such as {"epochs": 3, "method.rate": 0.2, "network.width": 8}.
        network: Name of a network in place of the benchmark's, such as "timm:resnet50".
        frozen: Whether the network stays as its weights are, for benchmarks of
            embeddings: only methods that train nothing.
        data: Prepared datasets; $QUALMS_CACHE or ~/.cache/qualms by default.
        out: Where runs and tables go: a folder.
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
    request = _with_corruptions(request, corrupt, severity)
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


@in_one_line
def judge(  # noqa: PLR0913 - the options of the command
    benchmark: str = "",
    *,
    source: str | PathLike[str] | None = None,
    corrupt: str | Iterable[str] = (),
    severity: str | int | Iterable[int] = (),
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
    launcher: str = "local",
    address: str = "",
    cpus: float | None = None,
    include: Paths = (),
    write: bool = True,
) -> "BenchmarkResults | dict[str, BenchmarkResults]":
    """Judge the finished runs of a benchmark, and return the results.

    Nothing is trained: runs without predictions are listed in `results.missing`.

    Args:
        benchmark: As for `qualms.run`, which explains all arguments.
        source: Your own data, for the benchmark `own`.
        corrupt: The corruptions with which the runs were made.
        severity: Their severities.
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
        launcher: "local" for this machine, "ray" for the nodes of a Ray cluster.
        address: HOST:PORT of the cluster; one of its own is started by default.
        cpus: Cores of the cluster for each process; 1 by default.
        include: Files or folders with parts of your own.
        write: Whether tables, figures and a page are written to `out`.

    Returns:
        The results of the benchmark; by name, where there are several.
    """
    command = _call("judge", locals())
    _include(include)
    engine = Engine(launcher=launcher, address=address, cpus=cpus)
    resources = resources_for(out, data, device=device, engine=engine)
    request = _request(preset, config, methods, seeds, options)
    request = _with_corruptions(request, corrupt, severity)
    request = replace(request, network=network, frozen=frozen)
    plans = plans_for(benchmark, request, resources, source)
    _refuse_without_runs(plans, resources)
    output = ResultsOutput(command, write)
    return _answer([judge_runs(plan, resources, output) for plan in plans])


def _refuse_without_runs(plans: Sequence[RunPlan], resources: Resources) -> None:
    """Raise if there is nothing to judge."""
    runs = {spec.hash: spec for plan in plans for spec in plan.runs}
    if runs and len(pending_runs(list(runs.values()), resources.out)) == len(runs):
        names = ", ".join(plan.benchmark.name for plan in plans)
        raise ValueError(
            f"there must be runs to judge, and none of the {len(runs)} of {names} is in"
            f" {resources.out}; make them with qualms.run, or say out= for where they"
            " are"
        )


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


def _with_corruptions(
    request: RunRequest,
    corrupt: str | Iterable[str],
    severity: str | int | Iterable[int],
) -> RunRequest:
    if isinstance(corrupt, str):
        corrupt = parse_names(corrupt, "corruptions")
    several = [severity] if isinstance(severity, int) else severity
    text = several if isinstance(several, str) else ",".join(map(str, several))
    return replace(
        request, corruptions=tuple(corrupt), severities=parse_severities(text)
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
