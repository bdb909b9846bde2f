"""Progress of runs: live bars in a terminal or notebook, plain lines elsewhere."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Protocol

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn

from qualms.launch.local import RunOutcome
from qualms.progress import EVERY, duration_text, is_live, showing
from qualms.spec import Part, RunSpec

BARS = 24
"""Most bars of runs at a time; what a terminal cannot show takes time nevertheless."""
SURE = 0.05
"""Share of the work after which the remaining time is shown."""


class RunsView(Protocol):
    """Shows the progress of runs: `Callbacks` that also show datasets and outcomes."""

    def epoch(self, spec: RunSpec, epoch: int, epochs: int, *values: float) -> None:
        """Show an epoch of a run; loss, images per second and seconds left follow."""

    def message(self, spec: RunSpec, text: str) -> None:
        """Show a message of a run."""

    def data(self, part: Part, done: int, units: int) -> None:
        """Show that `done` of `units` of a dataset are made."""

    def ended(self, outcome: RunOutcome) -> None:
        """Show how a run ended."""


@contextmanager
def runs_view(
    total: int, console: Console, *, brief: bool = False
) -> Iterator[RunsView]:
    """Open a view of `total` runs for as long as the context lasts.

    Args:
        total: The number of runs.
        console: Where to show them.
        brief: Whether plain lines are about all runs together, and not about each.
    """
    now = time.monotonic()
    pace = Pace(total, now)
    if not is_live(console) and brief:
        yield _FewLines(pace, console, now)
        return
    if not is_live(console):
        with showing("runs", "runs") as advance:
            yield _Lines(total, console, advance)
        return
    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=24),
        MofNCompleteColumn(),
        TextColumn("{task.fields[note]}", markup=False),
    )
    with Progress(*columns, console=console, transient=True) as bars:
        yield _Live(bars, bars.add_task("runs", total=total, note=""), pace)


def print_line(console: Console, text: str) -> None:
    """Print a text as it is, on one line."""
    console.print(text, markup=False, highlight=False, emoji=False, soft_wrap=True)


def run_text(spec: RunSpec) -> str:
    """Return the name of a run for a line of text."""
    return f"{dataset_text(spec.dataset)}, {spec.method.name}, seed {spec.seed}"


def dataset_text(part: Part) -> str:
    """Return the name of a dataset and its string options, without hashes."""
    options = (value for name, value in part.options.items() if name != "contents")
    return " ".join([part.name, *(v for v in options if isinstance(v, str))])


@dataclass(slots=True, eq=False)
class Pace:
    """Progress of all runs, and the time that the rest will take at this pace."""

    total: int
    started: float
    done: int = 0
    """Runs that ended, those that were skipped among them."""
    skipped: int = 0
    shares: dict[str, float] = field(default_factory=dict)
    """Share that is done of each run under way, by hash."""
    under_way: float = 0.0
    """The sum of these shares: a thousand of them are not added up at every epoch."""

    def wait(self) -> None:
        """Start the clock anew: no run was trained so far."""
        self.started = time.monotonic()

    def epoch(self, spec: RunSpec, epoch: int, epochs: int) -> None:
        """Note the progress of a run."""
        share = epoch / max(epochs, 1)
        self.under_way += share - self.shares.get(spec.hash, 0.0)
        self.shares[spec.hash] = share

    def ended(self, outcome: RunOutcome) -> None:
        """Note that a run ended."""
        self.done += 1
        self.under_way -= self.shares.pop(outcome.spec.hash, 0.0)
        if outcome.status == "skipped":
            self.skipped += 1
            self.wait()

    @property
    def left(self) -> str:
        """The time left, in words; "" while it is not known."""
        trained = self.done - self.skipped + self.under_way
        share = trained / max(self.total - self.skipped, 1)
        if not SURE <= share < 1:
            return ""
        seconds = (time.monotonic() - self.started) * (1 - share) / share
        return f"about {duration_text(seconds)} left"


@dataclass(slots=True, eq=False)
class _FewLines:
    """A line about all runs now and then, and one for each that failed."""

    pace: Pace
    console: Console
    last: float
    """Time of the last line, or of the start."""

    def epoch(self, spec: RunSpec, epoch: int, epochs: int, *_: float) -> None:
        self.pace.epoch(spec, epoch, epochs)
        self._tell()

    def message(self, spec: RunSpec, text: str) -> None:
        print_line(self.console, f"{run_text(spec)}: {text}")

    def data(self, *_: object) -> None:
        self.pace.wait()

    def ended(self, outcome: RunOutcome) -> None:
        self.pace.ended(outcome)
        if outcome.status in ("failed", "busy"):
            print_line(self.console, _outcome_text(outcome))
        self._tell()

    def _tell(self) -> None:
        now = time.monotonic()
        if now - self.last < EVERY:
            return
        self.last = now
        texts = (f"{self.pace.done} of {self.pace.total} runs", self.pace.left)
        print_line(self.console, ", ".join(filter(None, texts)))


@dataclass(slots=True, eq=False)
class _Lines:
    total: int
    console: Console
    advance: Callable[[int, int], None]
    """Notes how many runs ended, for a line now and then while no epoch does."""
    done: int = 0
    last: dict[str, float] = field(default_factory=dict)
    """Time of the last line about a run, by hash."""

    def epoch(self, spec: RunSpec, epoch: int, epochs: int, *values: float) -> None:
        now = time.monotonic()
        if now - self.last.setdefault(spec.hash, now) >= EVERY:
            self.last[spec.hash] = now
            self.message(spec, f"epoch {epoch}/{epochs}, {epoch_text(*values)}")

    def message(self, spec: RunSpec, text: str) -> None:
        print_line(self.console, f"{run_text(spec)}: {text}")

    def data(self, part: Part, done: int, units: int) -> None:
        if done == units:
            print_line(self.console, f"made {dataset_text(part)}")

    def ended(self, outcome: RunOutcome) -> None:
        self.done += 1
        self.advance(self.done, self.total)
        if outcome.status != "skipped":
            line = f"[{self.done}/{self.total}] {_outcome_text(outcome)}"
            print_line(self.console, line)


@dataclass(slots=True, eq=False)
class _Live:
    bars: Progress
    overall: TaskID
    pace: Pace
    tasks: dict[str, TaskID] = field(default_factory=dict)
    """Bars of runs, by hash, and of datasets."""

    def epoch(self, spec: RunSpec, epoch: int, epochs: int, *values: float) -> None:
        if spec.hash in self.tasks or len(self.tasks) < BARS:
            task = self.task(spec.hash, run_text(spec))
            note = epoch_text(*values)
            self.bars.update(task, completed=epoch, total=epochs, note=note)
        self.pace.epoch(spec, epoch, epochs)
        self.bars.update(self.overall, note=self.pace.left)

    def message(self, spec: RunSpec, text: str) -> None:
        print_line(self.bars.console, f"{run_text(spec)}: {text}")

    def data(self, part: Part, done: int, units: int) -> None:
        self.pace.wait()
        task = self.task(str(part), f"making {dataset_text(part)}")
        self.bars.update(task, completed=done, total=units, visible=done < units)

    def ended(self, outcome: RunOutcome) -> None:
        self.pace.ended(outcome)
        self.bars.update(self.overall, completed=self.pace.done, note=self.pace.left)
        if outcome.spec.hash in self.tasks:
            self.bars.remove_task(self.tasks.pop(outcome.spec.hash))
        if outcome.status in ("failed", "busy"):
            print_line(self.bars.console, _outcome_text(outcome))

    def task(self, key: str, text: str) -> TaskID:
        if key not in self.tasks:
            self.tasks[key] = self.bars.add_task(text, note="")
        return self.tasks[key]


def epoch_text(loss: float, images_per_second: float, seconds_left: float) -> str:
    """Say how a run stands at the end of an epoch."""
    speed = f"{images_per_second:,.0f} images/s"
    return f"loss {loss:.4g}, {speed}, {duration_text(seconds_left)} left"


def _outcome_text(outcome: RunOutcome) -> str:
    text = f"{run_text(outcome.spec)}: {outcome.status}"
    if outcome.status == "done":
        return f"{text} in {duration_text(outcome.seconds)}"
    return f"{text}: {outcome.error}" if outcome.error else text
