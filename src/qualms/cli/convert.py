"""`qualms convert`: predictions of another program as a predictions file."""

from pathlib import Path
from typing import Annotated

import typer

from qualms.cli._complete import complete_readers
from qualms.cli._include import Include
from qualms.cli._outputs import refuse_overwriting
from qualms.cli._raters import Background, Draws, Raters
from qualms.progress import showing
from qualms.wording import plural


def convert(
    layout: Annotated[
        str,
        typer.Argument(
            metavar="LAYOUT",
            help="See `qualms list readers`.",
            autocompletion=complete_readers,
        ),
    ],
    source: Annotated[
        Path, typer.Argument(metavar="SRC", help="What the program wrote.")
    ],
    out: Annotated[
        Path,
        typer.Option(
            help="The predictions file to write; for segmentation a new folder."
        ),
    ],
    raters: Raters = None,
    draws: Draws = None,
    background: Background = None,
    task: Annotated[
        str | None, typer.Option(help="What the arrays are, where that is unclear.")
    ] = None,
    option: Annotated[
        list[str] | None,
        typer.Option("-o", help="An option of the reader, such as postfix=prob."),
    ] = None,
    include: Include = None,  # noqa: ARG001 - its callback takes it
) -> None:
    """Convert what another program wrote to a predictions file.

    `qualms score`, `check`, `refer` and `report` read the same layouts by themselves;
    convert what needs options, or what should be kept.
    """
    from qualms.launch import check_options, options_of, parse_options
    from qualms.predictions import check_destination, read, with_stated, write
    from qualms.shelf import find

    make = find("readers", layout)
    options = check_options(
        layout, parse_options(option or []), options_of(make, shelf="readers")
    )
    refuse_overwriting([out], [source, *(raters or ())])
    reader = make(**options)
    with showing("converting"):
        predictions = with_stated(
            read(source, task=task, raters=raters or (), reader=reader),
            draws=draws,
            background=background,
        )
        check_destination(out, task=predictions.task)
        path = write(out, predictions)
    for note in predictions.notes:
        typer.echo(f"note: {note}")
    typer.echo(
        f"{path}: {predictions.task} predictions, {predictions.n}"
        f" {plural(predictions.n, 'item')}, {predictions.draws}"
        f" {plural(predictions.draws, 'draw')}"
    )
