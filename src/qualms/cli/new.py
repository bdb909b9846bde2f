"""`qualms new`: begin a part of your own, such as a method or a corruption."""

import shlex
from pathlib import Path
from typing import Annotated

import typer

_TRY = {
    "method": "qualms run retina/country --methods map,{name} --include {code}",
    "dataset": "qualms prepare {name} --include {code}",
    "network": "qualms run own --from DIR -o network.name={name} --include {code}",
    "score": "qualms score FILE --include {code}",
    "benchmark": "qualms run {name} --include {code}",
    "reader": "qualms score FILE --include {code}",
    "corruption": "qualms run own --from DIR --corrupt {name} --include {code}",
}
"""Command that shows each kind of part at work."""


def new(
    kind: Annotated[
        str,
        typer.Argument(
            help="method, dataset, network, score, benchmark, reader or corruption."
        ),
    ],
    name: Annotated[str, typer.Argument(help="Of the part and of its file.")],
    to: Annotated[Path, typer.Option(help="The folder to write to.")] = Path(),
) -> None:
    """Write a working skeleton of a part of your own, with its test.

    NAME.py and test_NAME.py work as they are; change them. Nothing is overwritten.
    """
    from qualms.launch import KINDS, new_part

    code, test = new_part(kind, name, to)
    typer.echo(f"wrote {code} and {test}; they work as they are, change them")
    quoted = shlex.quote(str(code))
    typer.echo(f"  pytest {shlex.quote(str(test))}")
    typer.echo(f"  qualms list {KINDS[kind]} --include {quoted}")
    typer.echo(f"  {_TRY[kind].format(name=name, code=quoted)}")
