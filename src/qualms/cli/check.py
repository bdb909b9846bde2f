"""`qualms check`: whether predictions files are valid, and what they hold."""

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from qualms.cli._include import Include
from qualms.cli._raters import Raters
from qualms.progress import showing
from qualms.wording import plural

if TYPE_CHECKING:
    from collections.abc import Callable

    from qualms.predictions import Predictions

# Most characters of a name or value on the screen; those in files may be longer.
_SHOWN = 60


def check(
    files: Annotated[list[Path], typer.Argument(help="Predictions files or folders.")],
    task: Annotated[
        str | None, typer.Option(help="What the arrays are, where that is unclear.")
    ] = None,
    logits: Annotated[
        bool, typer.Option("--logits", help="The class scores are logits.")
    ] = False,
    renormalise: Annotated[
        bool,
        typer.Option("--renormalise", help="Divide class scores by their sums."),
    ] = False,
    raters: Raters = None,
    include: Include = None,  # noqa: ARG001 - its callback takes it
) -> None:
    """Check predictions files and say what they hold.

    Every file gets its answer; one that is not valid gets a sentence on what to do, and
    then the exit code is 2.
    """
    from qualms.predictions import read

    reading = partial(
        read,
        task=task,
        logits=logits,
        renormalise=renormalise,
        raters=raters or (),
    )
    errors = [error for file in files if (error := _check(file, reading))]
    if not errors:
        return
    for error in errors[:-1]:
        typer.echo(f"qualms: {_printable(str(error))}", err=True)
    raise errors[-1]


def _check(file: Path, reading: "Callable[[Path], Predictions]") -> Exception | None:
    """Say what a file holds; return the error of one that is not valid."""
    from qualms.predictions import facts

    try:
        with showing(f"reading {file.name}"):
            predictions = reading(file)
            contents = facts(predictions)  # reads and checks every segmented item
    except (ValueError, LookupError, OSError, MemoryError) as error:
        return error
    lines = _describe(file, predictions, contents)
    typer.echo("\n".join(map(_printable, lines)))
    return None


def _printable(line: str) -> str:
    # Names come from files: none of them may break the line or control the terminal.
    return "".join(c if c.isprintable() else "\ufffd" for c in line)


def _describe(
    file: Path, predictions: "Predictions", contents: tuple[str, ...]
) -> list[str]:
    lines = [
        f"{file}: valid {predictions.task} predictions, {_counts(predictions)}",
        f"  arrays: {_arrays(predictions)}",
        *(f"  {fact}" for fact in contents),
    ]
    header = predictions.header
    header_fields = {
        "benchmark": header.benchmark,
        "dataset": header.dataset,
        "split": header.split,
        "method": header.method,
        "seed": header.seed,
        "alpha": header.alpha,
    }
    shown = [
        f"{key} {value!s:.{_SHOWN}}"
        for key, value in header_fields.items()
        if value is not None
    ]
    if shown:
        lines.append(f"  header: {', '.join(shown)}")
    return [*lines, *(f"  note: {note}" for note in predictions.notes)]


def _counts(predictions: "Predictions") -> str:
    is_known = predictions.get("known")
    unknown = 0 if is_known is None else int((~is_known).sum())
    items = f"{predictions.n} {plural(predictions.n, 'item')}" + (
        f" ({unknown} of no known class)" if unknown else ""
    )
    return f"{items}, {predictions.draws} {plural(predictions.draws, 'draw')}"


def _arrays(predictions: "Predictions") -> str:
    shown = [
        f"{name:.{_SHOWN}} {'x'.join(map(str, array.shape)) or '1'}"
        for name, array in list(predictions.arrays.items())[:30]
    ]
    more = len(predictions.arrays) - len(shown)
    return ", ".join(shown) + (f" and {more} more" if more else "")
