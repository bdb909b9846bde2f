"""`qualms refer`: which items should go to an expert, and what that promises."""

import json
from pathlib import Path
from typing import Annotated

import typer


def refer(
    file: Annotated[
        Path, typer.Argument(help="Labelled predictions to choose the threshold on.")
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
    on: Annotated[
        list[Path] | None,
        typer.Option(help="Apply the threshold to these as well, e.g. a shifted set."),
    ] = None,
    uncertainty: Annotated[
        str, typer.Option(help="entropy, aleatoric, epistemic, or an array's <name>.")
    ] = "entropy",
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
        bool, typer.Option("--json", help="Print JSON (docs/refer.md), nothing else.")
    ] = False,
) -> None:
    """Choose which items an expert must see.

    Give --budget, or what the kept items must reach (--accuracy, --sensitivity,
    --specificity). Prints the threshold on the uncertainty, how many items it refers,
    how good the others are, and what may be promised for new items. Exit code 1: no
    threshold can promise what was asked.
    """
    from qualms.evaluate import ReferralOptions
    from qualms.evaluate import refer as make_plan
    from qualms.report import plan_to_json, print_plan

    options = ReferralOptions(
        sensitivity=sensitivity,
        specificity=specificity,
        uncertainty=uncertainty,
        logits=logits,
        by_group=by_group,
        level=level,
        seed=seed,
    )
    plan = make_plan(
        file,
        budget=budget,
        accuracy=accuracy,
        confidence=confidence,
        on=on or (),
        options=options,
    )
    if as_json:
        typer.echo(json.dumps(plan_to_json(plan)))
    else:
        print_plan(plan)
    raise typer.Exit(0 if plan.found else 1)
