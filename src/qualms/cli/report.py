"""`qualms report`: a site of runs, results and predictions that opens from disk."""

import shlex
import sys
from pathlib import Path
from typing import Annotated

import typer

from qualms.cli._include import Include
from qualms.progress import showing


def report(
    sources: Annotated[
        list[Path],
        typer.Argument(
            metavar="RUNS|FILES...",
            help="Folders of `qualms run`, results tables"
            " (results.csv), predictions files and folders, in any mix.",
            show_default=False,
        ),
    ],
    out: Annotated[
        Path, typer.Option(help="The folder of the site, or with --single its file.")
    ] = Path("site"),
    as_text: Annotated[
        bool, typer.Option("--text", help="Print it, and write no site.")
    ] = False,
    single: Annotated[
        bool, typer.Option("--single", help="Write everything into one file.")
    ] = False,
    val: Annotated[
        list[Path] | None,
        typer.Option(help="Validation predictions of the files: one each, or one."),
    ] = None,
    name: Annotated[
        list[str] | None,
        typer.Option(help="What to call the predictions files, once for each."),
    ] = None,
    title: Annotated[
        str | None, typer.Option(help="Heading of the front page.")
    ] = None,
    data: Annotated[
        Path | None,
        typer.Option(
            help="Prepared datasets, for pictures of items ($QUALMS_CACHE or"
            " ~/.cache/qualms)."
        ),
    ] = None,
    include: Include = None,  # noqa: ARG001 - its callback takes it
) -> None:
    """Write a site that shows judged benchmarks and predictions files.

    It opens from disk with no network: findings in words, leaderboards with intervals,
    every figure, a page for each file, and what is missing.
    """
    from qualms.launch import data_root
    from qualms.launch.resources import runs_folder
    from qualms.report.site import print_site, write_site
    from qualms.report.site.contents import TITLE

    sources = [runs_folder(source) for source in sources]
    if as_text:
        print_site(*sources, val=val or (), names=name or ())
        return
    command = shlex.join(["qualms", *sys.argv[1:]])
    with showing("writing the site"):
        path = write_site(
            *sources,
            out=out,
            single=single,
            val=val or (),
            names=name or (),
            title=title or TITLE,
            data=data_root(data),
            command=command,
        )
    size = path.stat().st_size if single else _size(path.parent)
    typer.echo(f"wrote {path} ({size / 1e6:.1f} MB)")


def _size(folder: Path) -> int:
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
