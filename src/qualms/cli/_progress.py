"""Progress of runs: a live view in a terminal, plain lines elsewhere."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Protocol

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn

from qualms.launch import RunOutcome
from qualms.spec import Part, RunSpec

EVERY = 30.0
"""Seconds between two plain lines about the same run."""


class RunsView(Protocol):
    """Shows the progress of runs: `Callbacks` that also hear of data and of ends."""

    def epoch(self, spec: RunSpec, epoch: int, epochs: int, *values: float) -> None:
        """A run finished an epoch; loss, images per second and seconds left follow."""

    def message(self, spec: RunSpec, text: str) -> None:
        """A run has something to say."""

    def data(self, part: Part, done: int, units: int) -> None:
        """`done` of `units` of a dataset are made."""

    def ended(self, outcome: RunOutcome) -> None:
        """A run is over."""


@contextmanager
def view(total: int, console: Console) -> Iterator[RunsView]:
    """A view of `total` runs, open while the context lasts."""
    if not console.is_terminal:
        yield _Lines(total, console)
        return
    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=24),
        MofNCompleteColumn(),
        TextColumn("{task.fields[note]}", markup=False),
    )
    with Progress(*columns, console=console, transient=True) as bars:
        yield _Live(bars, bars.add_task("runs", total=total, note=""))


def name(spec: RunSpec) -> str:
    """The name of a run in a line of text."""
    return f"{data_name(spec.dataset)}, {spec.method.name}, seed {spec.seed}"


def data_name(part: Part) -> str:
    """The name of a dataset, with its options that are words; a digest is none."""
    said = (v for n, v in part.options.items() if n != "contents")
    words = [value for value in said if isinstance(value, str)]
    return " ".join([part.name, *words])


def duration(seconds: float) -> str:
    """Seconds in words.

    >>> duration(7384)
    '2 h 03 min'
    """
    if seconds < 60:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return (
        f"{minutes} min" if minutes < 60 else f"{minutes // 60} h {minutes % 60:02} min"
    )


@dataclass(slots=True, eq=False)
class _Lines:
    total: int
    console: Console
    done: int = 0
    last: dict[str, float] = field(default_factory=dict)
    """When something was said about a run, by hash."""

    def epoch(self, spec: RunSpec, epoch: int, epochs: int, *values: float) -> None:
        now = time.monotonic()
        if now - self.last.setdefault(spec.hash, now) >= EVERY:
            self.last[spec.hash] = now
            _say(
                self.console, f"{name(spec)}: epoch {epoch}/{epochs}, {_told(*values)}"
            )

    def message(self, spec: RunSpec, text: str) -> None:
        _say(self.console, f"{name(spec)}: {text}")

    def data(self, part: Part, done: int, units: int) -> None:
        if done == units:
            _say(self.console, f"made {data_name(part)}")

    def ended(self, outcome: RunOutcome) -> None:
        self.done += 1
        if outcome.status != "skipped":
            _say(self.console, f"[{self.done}/{self.total}] {_end(outcome)}")


@dataclass(slots=True, eq=False)
class _Live:
    bars: Progress
    overall: TaskID
    rows: dict[str, TaskID] = field(default_factory=dict)
    """Bars of what is going on, by hash or dataset."""

    def epoch(self, spec: RunSpec, epoch: int, epochs: int, *values: float) -> None:
        row = self.row(spec.hash, name(spec))
        self.bars.update(row, completed=epoch, total=epochs, note=_told(*values))

    def message(self, spec: RunSpec, text: str) -> None:
        _say(self.bars.console, f"{name(spec)}: {text}")

    def data(self, part: Part, done: int, units: int) -> None:
        row = self.row(str(part), f"making {data_name(part)}")
        self.bars.update(row, completed=done, total=units, visible=done < units)

    def ended(self, outcome: RunOutcome) -> None:
        self.bars.advance(self.overall)
        if outcome.spec.hash in self.rows:
            self.bars.remove_task(self.rows.pop(outcome.spec.hash))
        if outcome.status in ("failed", "busy"):
            _say(self.bars.console, _end(outcome))

    def row(self, key: str, text: str) -> TaskID:
        if key not in self.rows:
            self.rows[key] = self.bars.add_task(text, note="")
        return self.rows[key]


def _say(console: Console, text: str) -> None:
    console.print(text, markup=False, highlight=False, soft_wrap=True)


def _told(loss: float, images_per_second: float, seconds_left: float) -> str:
    speed = f"{images_per_second:,.0f} images/s"
    return f"loss {loss:.4g}, {speed}, {duration(seconds_left)} left"


def _end(outcome: RunOutcome) -> str:
    text = f"{name(outcome.spec)}: {outcome.status}"
    if outcome.status == "done":
        return f"{text} in {duration(outcome.seconds)}"
    return f"{text}: {outcome.error}" if outcome.error else text
