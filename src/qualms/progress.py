"""Counts of work that takes long, and their display in stderr.

Work that reads many items counts them here; commands show the counts. Where nobody
listens, counting does nothing.
"""

import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from importlib.util import find_spec
from threading import Event, Thread
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from rich.console import Console

T = TypeVar("T")
Listener = Callable[[int, int], None]
"""Called with the number of items that are done, and of all items."""
FIRST, EVERY = 10.0, 30.0
"""Seconds until the first plain line about some work, and between two of them."""
BAR, TURN = 1.0, 0.2
"""Seconds until a bar is shown, and between two of its changes."""
_listener: ContextVar[Listener | None] = ContextVar("listener", default=None)


def counting(items: Iterable[T], total: int) -> Iterator[T]:
    """Yield `items`, and report how many of `total` are done.

    >>> with reported_to(print):
    ...     letters = [letter for letter in counting("ab", 2)]
    1 2
    2 2
    """
    for done, item in enumerate(items, 1):
        yield item
        report(done, total)


def report(done: int, total: int) -> None:
    """Report how many of `total` items are done."""
    listener = _listener.get()
    if listener is not None:
        listener(done, total)


@contextmanager
def reported_to(listener: Listener) -> Iterator[None]:
    """Pass counts to `listener` for as long as the context lasts."""
    token = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(token)


@contextmanager
def showing(work: str, unit: str = "items") -> Iterator[Callable[[int, int], None]]:
    """Show work in stderr: a bar in a terminal, elsewhere a line now and then.

    Yields a function that sets done and total units; what `qualms.progress` counts is
    shown as well. Work of a second shows nothing.
    """
    counts = _Counts(work, unit)
    console = _console()
    with reported_to(counts.advance):
        if console is not None:
            with _bar(counts, console):
                yield counts.advance
            return
        with _repeating(counts.write, FIRST, EVERY):
            yield counts.advance


def _console() -> "Console | None":
    """Return the console of stderr if it can redraw what it has shown."""
    if not sys.stderr.isatty() and "ipykernel" not in sys.modules:
        return None  # a program reads it, and need not wait for rich
    from rich.console import Console

    console = Console(stderr=True)
    return console if is_live(console) else None


@contextmanager
def _bar(counts: "_Counts", console: "Console") -> Iterator[None]:
    """Show counts as a bar, which is removed in the end."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=24),
        MofNCompleteColumn(),
        TextColumn("{task.fields[note]}", markup=False),
    )
    with Progress(*columns, transient=True, console=console) as bar:
        task = bar.add_task(counts.work, total=None, note="", visible=False)

        def refresh() -> None:
            done, total, note = counts.done, counts.total or None, counts.note
            bar.update(task, completed=done, total=total, note=note, visible=True)

        with _repeating(refresh, BAR, TURN):
            yield


@contextmanager
def _repeating(act: Callable[[], None], first: float, then: float) -> Iterator[None]:
    """Call `act` after `first` seconds and every `then` seconds until the end."""
    ended = Event()

    def repeat() -> None:
        wait = first
        while not ended.wait(wait):
            act()
            wait = then

    thread = Thread(target=repeat, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


@dataclass(slots=True, eq=False)
class _Counts:
    """How much of some work is done, and how fast."""

    work: str
    unit: str
    started: float = field(default_factory=time.monotonic)
    begun: float = 0.0
    """Time of the first count: what came before is not the pace of units."""
    before: int = 0
    """Units at that time."""
    done: int = 0
    total: int = 0

    def advance(self, done: int, total: int) -> None:
        """Set how many of `total` units are done."""
        if done <= self.done or total != self.total:  # another part of the work
            self.begun, self.before = time.monotonic(), done
        self.done, self.total = done, total

    @property
    def note(self) -> str:
        """Units per second and the time left, in words; "" before two counts."""
        seconds = time.monotonic() - self.begun
        if self.done <= self.before or not seconds:
            return ""
        speed = (self.done - self.before) / seconds
        left = duration_text((self.total - self.done) / speed)
        return f"{speed:,.3g} {self.unit}/s, about {left} left"

    def write(self) -> None:
        """Write one line about the work to stderr."""
        text = f"{duration_text(time.monotonic() - self.started)} so far"
        if self.total:
            counts = f"{self.done:,} of {self.total:,} {self.unit}"
            text = ", ".join(filter(None, (counts, self.note)))
        sys.stderr.write(f"{self.work}: {text}\n")
        sys.stderr.flush()


def is_live(console: "Console") -> bool:
    """Return whether a console can redraw what it has shown."""
    in_notebook = console.is_jupyter and find_spec("ipywidgets") is not None
    return console.is_terminal or in_notebook


def duration_text(seconds: float) -> str:
    """Return seconds in words.

    >>> duration_text(7384)
    '2 h 03 min'
    """
    if seconds < 60:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return (
        f"{minutes} min" if minutes < 60 else f"{minutes // 60} h {minutes % 60:02} min"
    )
