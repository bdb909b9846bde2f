"""The option `--include` of every verb that looks for parts."""

from pathlib import Path
from typing import Annotated

import typer


def _take(paths: list[Path] | None) -> list[Path] | None:
    from qualms.shelf import include

    include(paths or [])
    return paths


Include = Annotated[
    list[Path] | None,
    typer.Option(
        "--include",
        callback=_take,
        is_eager=True,
        help="A file or folder with parts of your own.",
    ),
]
"""Takes parts from files outside the package before anything else is looked at."""
