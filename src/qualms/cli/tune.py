"""`qualms tune`: search the options of a method on validation items."""

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


def tune(
    target: Annotated[
        str,
        typer.Argument(
            metavar="BENCHMARK/VARIANT",
            help="What to search on.",
            autocompletion=complete_benchmarks,
        ),
    ],
    method: Annotated[
        str,
        typer.Option(
            help="Whose options, e.g. mc_dropout.", autocompletion=complete_methods
        ),
    ],
    selection: Annotated[
        str,
        typer.Option(
            help="in_domain, or joint with shifted validation items; the variant's own"
            " by default.",
            show_default=False,
        ),
    ] = "",
    trials: Annotated[int, typer.Option(help="How many to try.")] = 32,
    pruner: Annotated[
        str,
        typer.Option(
            help="Which trials are stopped early: none, or by their loss on val after"
            " each epoch: median."
        ),
    ] = "none",
    objective: Annotated[
        str,
        typer.Option(
            help="A further objective beside the selection's rule: nll, brier, ece or"
            " accuracy.",
            show_default=False,
        ),
    ] = "",
    seed: Annotated[int, typer.Option(help="Of the search and of its runs.")] = 0,
    preset: Annotated[str, typer.Option(help="demo, small or paper.")] = "demo",
    config: Annotated[str, typer.Option(help="A named set of options.")] = "",
    data: Annotated[
        Path | None,
        typer.Option(help="Prepared datasets ($QUALMS_CACHE or ~/.cache/qualms)."),
    ] = None,
    out: Annotated[Path, typer.Option(help="Where runs and results go.")] = Path(
        "runs"
    ),
    workers: Workers = None,
    device: Device = "auto",
    launcher: Launcher = "local",
    address: Address = "",
    cpus: Cpus = None,
    gpus: Gpus = None,
    retries: Retries = 3,
    option: Annotated[
        list[str] | None,
        typer.Option("-o", help="Held fixed, e.g. epochs=3; not searched then."),
    ] = None,
    include: Include = None,  # noqa: ARG001 - its callback takes it
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only list the trials.")
    ] = False,
) -> None:
    """Search the ranges that a benchmark states for a method.

    Trials are ordinary runs that predict validation items only. Finished trials are not
    made again: after an interrupt, run the same command to continue. With more --trials
    the search goes on. Exit code 1 means that no trial has a result.
    """
    from qualms.cli._tuning import make_trials, show_trials
    from qualms.launch import Engine, RunRequest, data_root, parse_options
    from qualms.launch.resources import Resources, runs_folder
    from qualms.launch.tune import search_of

    out = runs_folder(out)
    request = RunRequest(
        preset=preset,
        config=config,
        methods=(method,),
        seeds=(seed,),
        options=parse_options(option or []),
    )
    engine = Engine(
        launcher=launcher, address=address, cpus=cpus, gpus=gpus, retries=retries
    )
    search = search_of(
        target,
        request,
        selection,
        pruner=pruner,
        objective=objective,
    )
    if dry_run:
        show_trials(search, trials, out)
        return
    root = data_root(data)
    resources = Resources(
        out=out, data=root, workers=workers, device=device, engine=engine
    )
    raise typer.Exit(make_trials(search, trials, resources))
