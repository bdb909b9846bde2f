"""The option `--raters` of the verbs that read what other programs wrote."""

from pathlib import Path
from typing import Annotated

import typer

Raters = Annotated[
    list[Path] | None,
    typer.Option(
        "--raters",
        metavar="DIR",
        help="Files of another program: a folder with the label maps of a rater, once"
        " for each.",
    ),
]
"""Folders with the label maps of raters."""
