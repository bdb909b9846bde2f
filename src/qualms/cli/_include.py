"""The option `--include` of every verb that looks for parts."""

from pathlib import Path
from typing import Annotated

import typer


def _include(paths: list[Path] | None) -> list[Path] | None:
    from qualms.shelf import include

    include(paths or [])
    return paths


Include = Annotated[
    list[Path] | None,
    typer.Option(
        "--include",
        callback=_include,
        is_eager=True,
        help="A file or folder with parts of your own.",
    ),
]
"""Includes parts from outside the package before other options are read."""
