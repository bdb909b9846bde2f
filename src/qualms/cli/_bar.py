"""A bar for work that counts its items, in a terminal."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def counting_bar(name: str) -> Iterator[Callable[[int, int], None] | None]:
    """A function that is told how many of how many items are done, or None."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(transient=True, console=Console(stderr=True)) as bar:
        work = bar.add_task(name, total=None)
        yield lambda done, total: bar.update(work, completed=done, total=total)
