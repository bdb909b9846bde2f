"""Options that say of a file what it does not: raters, draws, background."""

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

Draws = Annotated[
    str | None,
    typer.Option(
        "--draws",
        metavar="models|labels",
        help="What several draws vary, where the header does not say: models (ensemble,"
        " dropout) or labels (SSN, probabilistic U-Net).",
    ),
]
"""What aleatoric and epistemic measures depend on."""

Background = Annotated[
    str | None,
    typer.Option(
        "--background",
        metavar="CLASS",
        help="Segmentation: the class that is background, by name or number, or none.",
    ),
]
"""The class that the mean Dice leaves out."""
