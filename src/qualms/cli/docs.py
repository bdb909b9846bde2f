"""`qualms docs`: the pages of the documentation, which the package carries."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from qualms.cli._complete import complete_pages
from qualms.documentation import documentation


def docs(
    page: Annotated[
        str | None,
        typer.Argument(
            help="Its name, such as refer; without one, all pages are listed.",
            autocompletion=complete_pages,
        ),
    ] = None,
    path: Annotated[
        bool, typer.Option("--path", help="Print where the page is, not its text.")
    ] = False,
) -> None:
    """Print a page of the documentation, or list them.

    Messages name pages in this way: the page own_data is `qualms docs own_data`.
    """
    from qualms.wording import suggest

    pages = documentation()
    if page is None:
        _list(pages)
        return
    name = page.removeprefix("docs/").removesuffix(".md")
    if name not in pages:
        raise LookupError(
            f"no page {page!r}.{suggest(name, pages)} `qualms docs` lists all pages."
        )
    if path:
        typer.echo(pages[name])
    else:
        _print(pages[name].read_text("utf-8"))


def _list(pages: dict[str, Path]) -> None:
    width = max(map(len, pages), default=0)
    for name, page in pages.items():
        with page.open(encoding="utf-8") as lines:
            title = next(lines).lstrip("# ").strip().replace("`", "")
        typer.echo(f"{name.ljust(width)}  {title}")


def _print(text: str) -> None:
    """Print Markdown: laid out for a person, as it stands for a program."""
    if not sys.stdout.isatty():
        typer.echo(text)
        return
    from rich.console import Console
    from rich.markdown import Markdown

    console = Console()
    with console.pager(styles=True):
        console.print(Markdown(text))
