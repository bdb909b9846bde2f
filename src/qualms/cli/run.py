"""`qualms run`: make the runs of a benchmark, judge them, and show the tables."""

import shlex
import sys
from pathlib import Path
from typing import Annotated

import typer

from qualms.cli._complete import complete_benchmarks, complete_methods
from qualms.cli._include import Include
from qualms.cli._machines import (
    Address,
    Cpus,
    Device,
    Gpus,
    Launcher,
    Retries,
    Workers,
)


def run(
    benchmark: Annotated[
        str,
        typer.Argument(
            metavar="BENCHMARK[/VARIANT,...]",
            help="What to run; all benchmarks by default.",
            show_default=False,
            autocompletion=complete_benchmarks,
        ),
    ] = "",
    source: Annotated[
        Path | None,
        typer.Option(
            "--from", help="Your own data, for `own`: a folder, a CSV or a TOML file."
        ),
    ] = None,
    corrupt: Annotated[
        str,
        typer.Option(
            metavar="NAME,...",
            help="Corrupt the test items of your own data too, e.g. fog,blur.",
        ),
    ] = "",
    severity: Annotated[
        str, typer.Option(help="How much, e.g. 1-5 (the default) or 1,3,5.")
    ] = "",
    preset: Annotated[str, typer.Option(help="demo, small or paper.")] = "demo",
    config: Annotated[
        str,
        typer.Option(
            metavar="NAME|FILE.toml",
            help="A named set of options, or the best.toml of a search.",
        ),
    ] = "",
    methods: Annotated[
        str,
        typer.Option(
            help="Only these, e.g. map,deep_ensemble.", autocompletion=complete_methods
        ),
    ] = "",
    seeds: Annotated[
        str, typer.Option(help="These, e.g. 0-4 or 0,2, instead of the preset's.")
    ] = "",
    data: Annotated[
        Path | None,
        typer.Option(help="Prepared datasets ($QUALMS_CACHE or ~/.cache/qualms)."),
    ] = None,
    out: Annotated[
        str,
        typer.Option(metavar="FOLDER", help="Where runs and tables go."),
    ] = "runs",
    workers: Workers = None,
    device: Device = "auto",
    together: Annotated[
        int | None, typer.Option(min=1, help="Seeds that one process trains at once.")
    ] = None,
    launcher: Launcher = "local",
    address: Address = "",
    cpus: Cpus = None,
    gpus: Gpus = None,
    retries: Retries = 3,
    option: Annotated[
        list[str] | None,
        typer.Option("-o", help="epochs=3, method.rate=0.2, network.width=8 ..."),
    ] = None,
    network: Annotated[
        str,
        typer.Option(
            help="In place of the benchmark's, e.g. timm:resnet50.", show_default=False
        ),
    ] = "",
    frozen: Annotated[
        bool,
        typer.Option(
            "--frozen",
            help="Embeddings: train nothing, the network stays as its weights are.",
        ),
    ] = False,
    include: Include = None,  # noqa: ARG001 - its callback takes it
    dry_run: Annotated[
        bool,
        typer.Option(
            "--dry-run",
            help="Only list what lacks a result, and refuse what the run would.",
        ),
    ] = False,
    judge: Annotated[
        bool, typer.Option("--judge/--no-judge", help="Make tables and figures.")
    ] = True,
    brief: Annotated[
        bool,
        typer.Option("--brief", help="Print findings and one table that fits."),
    ] = False,
) -> None:
    """Train every method of a benchmark, judge it, and show the tables.

    Finished runs are not made again: after an interrupt, run the same command to
    continue. Exit code 1 means that runs failed, which are listed with their logs, or
    that predictions cannot be read, which are listed with what to do.
    """
    from qualms.cli._running import (
        show_brief,
        show_judged,
        show_plans,
        stopping_on_request,
    )
    from qualms.corruptions import parse_severities
    from qualms.launch import (
        Engine,
        RunRequest,
        parse_names,
        parse_options,
        parse_seeds,
    )
    from qualms.launch.judging import ResultsOutput
    from qualms.launch.resources import resources_for
    from qualms.launch.running import check_plans, plans_for, run_plans

    request = RunRequest(
        preset=preset,
        config=config,
        methods=parse_names(methods),
        seeds=parse_seeds(seeds),
        options=parse_options(option or []),
        corruptions=parse_names(corrupt, "corruptions"),
        severities=parse_severities(severity),
        network=network,
        frozen=frozen,
    )
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
    plans = plans_for(benchmark, request, resources, source)
    if dry_run:
        show_plans(plans, resources)
        for note in check_plans(plans, resources, named="/" in benchmark):
            typer.echo(f"note: {note}")
        return
    command = shlex.join(["qualms", *sys.argv[1:]])
    show = show_brief if brief else show_judged
    output = ResultsOutput(command, show=show) if judge else None
    with stopping_on_request():
        report = run_plans(
            plans, resources, named="/" in benchmark, output=output, brief=brief
        )
    raise typer.Exit(0 if report.is_complete else 1)
