"""Options that say where runs are made, which `run` and `tune` share."""

from typing import Annotated

import typer

Workers = Annotated[
    int | None, typer.Option(min=1, help="Processes; one per GPU or core.")
]
Device = Annotated[
    str, typer.Option(help="auto, cpu, cuda, cuda:1, or cuda:0,1 for each run.")
]
Launcher = Annotated[
    str, typer.Option(help="local, or ray: on the nodes of a Ray cluster.")
]
Address = Annotated[
    str,
    typer.Option(
        metavar="HOST:PORT",
        help="The Ray cluster; one of its own by default.",
        show_default=False,
    ),
]
Cpus = Annotated[
    float | None, typer.Option(help="Ray: cores of each process; 1 by default.")
]
Gpus = Annotated[
    float | None, typer.Option(help="Ray: GPUs of each process, e.g. 0.5.")
]
Retries = Annotated[
    int, typer.Option(help="New attempts after a process or node was lost.")
]
