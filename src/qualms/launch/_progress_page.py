"""The page of runs under way: plain HTML beside their results, which reloads itself."""

import os
import platform
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from html import escape
from pathlib import Path

from qualms.atomic import replacing
from qualms.launch.local import RunOutcome
from qualms.launch.progress import Pace, RunsView, epoch_text, run_text
from qualms.spec import Part, RunSpec
from qualms.wording import plain_line

SECONDS = 5.0
"""Between two versions of the page; shorter work has none."""
MOST = 100
"""Runs that a table lists at most."""
_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">{reload}
<title>{done} of {total} runs · qualms</title></head>
<body><main><h1>{heading}</h1>
<p role="status">{summary}</p>
<progress aria-label="runs that ended" value="{done}" max="{total}"></progress>
{tables}
<p>Written at {when} by process {process} on {machine}: {command}</p>
</main></body></html>
"""
_RELOAD = f'\n<meta http-equiv="refresh" content="{SECONDS:.0f}">'


@dataclass(slots=True, eq=False)
class ProgressPage:
    """A view of runs that passes all it is told to another view, and writes a page."""

    view: RunsView
    file: Path
    command: str
    pace: Pace
    announce: Callable[[str], None]
    """Called with a sentence once the page is there."""
    written: float = field(default_factory=time.monotonic)
    exists: bool = False
    under_way: dict[str, tuple[str, str, str]] = field(default_factory=dict)
    """Name, epoch, and loss, speed and time left of each run, by hash."""
    failed: list[tuple[str, str]] = field(default_factory=list)

    def epoch(self, spec: RunSpec, epoch: int, epochs: int, *values: float) -> None:
        """Note the end of an epoch."""
        self.view.epoch(spec, epoch, epochs, *values)
        self.pace.epoch(spec, epoch, epochs)
        row = (run_text(spec), f"{epoch} of {epochs}", epoch_text(*values))
        self.under_way[spec.hash] = row
        self._refresh()

    def message(self, spec: RunSpec, text: str) -> None:
        """Pass a message of a run on."""
        self.view.message(spec, text)

    def data(self, part: Part, done: int, units: int) -> None:
        """Pass the progress of a dataset on."""
        self.view.data(part, done, units)
        self.pace.wait()

    def ended(self, outcome: RunOutcome) -> None:
        """Note how a run ended."""
        self.view.ended(outcome)
        self.pace.ended(outcome)
        self.under_way.pop(outcome.spec.hash, None)
        if outcome.status == "failed":
            self.failed.append((run_text(outcome.spec), outcome.error))
        self._refresh()

    def close(self) -> None:
        """Write the page a last time, if there is one."""
        if self.exists:
            self._write(over=True)

    def _refresh(self) -> None:
        if time.monotonic() - self.written >= SECONDS:
            self._write()

    def _write(self, *, over: bool = False) -> None:
        """Write the page; it reloads itself unless the runs are over."""
        counts = [f"{self.pace.done} of {self.pace.total} runs ended"]
        counts += [f"{len(self.failed)} failed"] if self.failed else []
        counts += [self.pace.left] if self.pace.left and not over else []
        under_way = [] if over else list(self.under_way.values())
        head = ("Run", "Epoch", "At the end of it")
        words = {
            "heading": "Runs that have ended" if over else "Runs under way",
            "summary": ", ".join(counts),
            "when": time.strftime("%H:%M:%S on %Y-%m-%d"),
            "process": str(os.getpid()),
            "machine": platform.node(),
            "command": self.command,
        }
        page = _PAGE.format(
            reload="" if over else _RELOAD,
            done=self.pace.done,
            total=self.pace.total,
            tables=_table("Failed", ("Run", "Error"), self.failed)
            + _table("Under way", head, under_way),
            **{name: escape(plain_line(text)) for name, text in words.items()},
        )
        self.written = time.monotonic()
        with suppress(OSError):  # runs must not end for a page
            self.file.parent.mkdir(parents=True, exist_ok=True)
            with replacing(self.file) as temporary:
                temporary.write_text(page, encoding="utf-8")
            if not self.exists:
                self.announce(f"{self.file} shows how far the runs are")
            self.exists = True


def _table(title: str, head: Iterable[str], rows: Sequence[tuple[str, ...]]) -> str:
    if not rows:
        return ""
    names = "".join(f'<th scope="col">{each}</th>' for each in head)
    cells = "".join(
        f"<tr>{''.join(f'<td>{escape(plain_line(cell))}</td>' for cell in row)}</tr>"
        for row in rows[:MOST]
    )
    more = f"<p>and {len(rows) - MOST} more</p>" if len(rows) > MOST else ""
    return (
        f"<h2>{title}</h2><table><thead><tr>{names}</tr></thead>"
        f"<tbody>{cells}</tbody></table>{more}"
    )
