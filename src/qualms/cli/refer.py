"""`qualms refer`: which items an expert should see, and what that promises."""

import json
from pathlib import Path
from typing import Annotated, NoReturn

import typer

from qualms.cli._outputs import check_ending, refuse_foreign, refuse_overwriting
from qualms.cli._raters import Draws
from qualms.progress import showing

WITH_APPLY = {"file", "apply", "items", "logits", "seed", "as_json"}
"""Options that --apply takes."""


def refer(
    context: typer.Context,
    file: Annotated[
        Path,
        typer.Argument(
            help="Labelled predictions to choose the threshold on; with --apply new "
            "ones, labelled or not."
        ),
    ],
    budget: Annotated[
        float | None, typer.Option(help="Refer at most this share of the items.")
    ] = None,
    accuracy: Annotated[
        float | None, typer.Option(help="Least accuracy of the kept items.")
    ] = None,
    sensitivity: Annotated[
        float | None, typer.Option(help="Least sensitivity of the kept items.")
    ] = None,
    specificity: Annotated[
        float | None, typer.Option(help="Least specificity of the kept items.")
    ] = None,
    confidence: Annotated[
        float | None,
        typer.Option(
            help="Confidence of the promise for new items: 0.9 with --accuracy, "
            "--sensitivity or --specificity; without it a budget holds for the given "
            "items only."
        ),
    ] = None,
    plan: Annotated[
        Path | None, typer.Option(help="Write the plan here (JSON), for --apply.")
    ] = None,
    items: Annotated[
        Path | None, typer.Option(help="Write the items to refer here (CSV).")
    ] = None,
    apply: Annotated[
        Path | None, typer.Option(help="Apply this plan, which --plan wrote, to FILE.")
    ] = None,
    on: Annotated[
        list[Path] | None,
        typer.Option(help="Apply the threshold to these as well, e.g. a shifted set."),
    ] = None,
    uncertainty: Annotated[
        str | None,
        typer.Option(
            help="entropy, aleatoric, epistemic, or an array's <name>; of regression "
            "std, width, or an array's <name>. By default the one that the header "
            "names, else the file's own, else entropy, width or std."
        ),
    ] = None,
    gallery: Annotated[
        Path | None,
        typer.Option(help="Embeddings: seek neighbours among the items of this file."),
    ] = None,
    draws: Draws = None,
    logits: Annotated[
        bool, typer.Option("--logits", help="The class scores are logits.")
    ] = False,
    by_group: Annotated[
        bool, typer.Option("--by-group", help="Also each group on its own.")
    ] = False,
    level: Annotated[float, typer.Option(help="Level of the intervals.")] = 0.95,
    seed: Annotated[
        int, typer.Option(min=0, help="Seed that draws one item of each cluster.")
    ] = 0,
    as_json: Annotated[
        bool,
        typer.Option(
            "--json", help="Print JSON (`qualms docs plan_files`), nothing else."
        ),
    ] = False,
) -> None:
    """Choose which items an expert must see.

    Give --budget, or what the kept items must reach (--accuracy, --sensitivity,
    --specificity). Prints the threshold on the uncertainty, how many items it refers,
    how good the others are, and what may be promised for new items. --plan keeps the
    plan in a file, and --apply tells which of new items to refer, how many, and whether
    they look like those the plan was made on. Exit code 1: no threshold can promise
    what was asked, or the new items do not look like those of the plan.
    """
    refuse_overwriting([plan, items], [file, apply, gallery, *(on or ())])
    check_ending("--plan", plan, ".json")
    check_ending("--items", items, ".csv", ".txt")
    refuse_foreign("--plan", plan, '"kind": "qualms referral plan"')
    refuse_foreign("--items", items, "item,row,uncertainty")
    if apply is not None:
        _check_with_apply(context)
        _apply(apply, file, items, logits=logits, seed=seed, as_json=as_json)
    from qualms import referral
    from qualms.report import plan_to_json, print_plan

    options = referral.ReferralOptions(
        sensitivity=sensitivity,
        specificity=specificity,
        uncertainty=uncertainty,
        draws=draws,
        logits=logits,
        gallery=gallery,
        by_group=by_group,
        level=level,
        seed=seed,
    )
    with showing("choosing the threshold"):
        result = referral.refer(
            file,
            budget=budget,
            accuracy=accuracy,
            confidence=confidence,
            on=on or (),
            options=options,
        )
    if plan is not None and result.found:
        result.save(plan)
    if items is not None and result.items is not None:
        result.items.save(items)
    if as_json:
        typer.echo(json.dumps(plan_to_json(result)))
    else:
        print_plan(result)
        _print_written([plan, items], complete=result.found)
    raise typer.Exit(0 if result.found else 1)


def _apply(
    plan: Path,
    file: Path,
    items: Path | None,
    *,
    logits: bool,
    seed: int,
    as_json: bool,
) -> NoReturn:
    from qualms.referral import read_plan
    from qualms.report import applied_to_json, print_applied

    with showing("applying the plan"):
        applied = read_plan(plan).apply(file, logits=logits, seed=seed)
    if items is not None:
        applied.items.save(items)
    if as_json:
        typer.echo(json.dumps(applied_to_json(applied)))
    else:
        print_applied(applied, listed=items is None)
        _print_written([items], complete=True)
    raise typer.Exit(1 if applied.check.verdict == "unlike" else 0)


def _check_with_apply(context: typer.Context) -> None:
    """Raise where an option was given that --apply does not take."""
    for option in context.command.params:
        name = option.name or ""
        source = context.get_parameter_source(name)
        typed = source is not None and source.name == "COMMANDLINE"
        if typed and name not in WITH_APPLY:
            raise ValueError(
                f"{option.opts[0]} belongs to making a plan, and --apply takes a plan "
                "as it is; leave it out, or make a new plan"
            )


def _print_written(paths: list[Path | None], *, complete: bool) -> None:
    """Print which files were written, or that there is no plan to write."""
    files = [path for path in paths if path is not None]
    if files and not complete:
        typer.echo("There is no plan to write.")
    elif files:
        typer.echo(f"Written: {', '.join(map(str, files))}")
    elif complete and len(paths) > 1:
        typer.echo("--plan FILE writes the plan, --items FILE the items to refer.")
