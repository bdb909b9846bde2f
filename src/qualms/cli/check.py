"""`qualms check`: is this a valid predictions file, and what is in it?"""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from qualms.predictions import Predictions


def check(
    files: Annotated[list[Path], typer.Argument(help="Predictions files or folders.")],
    task: Annotated[
        str | None, typer.Option(help="What the arrays are, where that is unclear.")
    ] = None,
    logits: Annotated[
        bool, typer.Option("--logits", help="The class scores are logits.")
    ] = False,
) -> None:
    """Check predictions files, say what they hold.

    A file that is not valid ends in one sentence on what to do, and exit code 2.
    """
    from qualms.predictions import read
    from qualms.report import printable

    for file in files:
        predictions = read(file, task=task, logits=logits)
        for maps in predictions.maps or ():
            del maps  # reading an item checks it
        lines = _describe(file, predictions).splitlines()
        typer.echo("\n".join(printable(line) for line in lines))


def _describe(file: Path, predictions: "Predictions") -> str:
    shapes = ", ".join(
        f"{name} {'x'.join(map(str, array.shape))}"
        for name, array in predictions.arrays.items()
    )
    lines = [
        f"{file}: valid {predictions.task} predictions, {predictions.n} items, "
        f"{predictions.draws} draw{'s' if predictions.draws != 1 else ''}",
        f"  arrays: {shapes}",
    ]
    header = predictions.header
    stated = {
        "benchmark": header.benchmark,
        "dataset": header.dataset,
        "split": header.split,
        "method": header.method,
        "seed": header.seed,
        "alpha": header.alpha,
    }
    known = [f"{key} {value}" for key, value in stated.items() if value is not None]
    if known:
        lines.append(f"  header: {', '.join(known)}")
    lines += [f"  note: {note}" for note in predictions.notes]
    return "\n".join(lines)
