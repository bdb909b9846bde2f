"""What `make demo` does: score foreign files, run four benchmarks, write a site.

Every command is printed before it runs, so that it can be typed again. The files are
made up (`examples/known_files.py`) and the benchmarks have simulated data, so nothing
is downloaded. Each part prints its findings and one table; the last line names the site
that shows everything, which is opened where there is a display.
"""

import itertools
import os
import shlex
import subprocess
import sys
import time
import webbrowser
from collections.abc import Callable
from pathlib import Path

import known_files

from qualms import score
from qualms.evaluate import ScoreOptions

TASKS: tuple[Callable[[Path], known_files.Known], ...] = (
    known_files.classification,
    known_files.regression,
    known_files.segmentation,
    known_files.embedding,
)
BENCHMARKS = {
    "retina/country --methods map,mc_dropout": "RETINA: does it help to refer the most"
    " uncertain patients?",
    "regression": "Regression: do prediction intervals keep their promise?",
    "values --methods softmax,tta,ssn": "VALUES: which uncertainty of pixels is"
    " useful, and for what?",
    "url --methods ce,elk,losspred,sngp": "URL: does an embedding know what it will"
    " confuse?",
}
"""What is run, and what it asks."""
PARTS = len(BENCHMARKS) + 2
"""Files of others, the benchmarks, and the site."""
WIDTH = 80
"""Letters of a line that is printed."""
SHOWN = 24
"""Lines of the first result that are printed at most."""


def main(folder: Path) -> None:
    """Make everything in `folder`."""
    started = time.monotonic()
    files = score_known_files(folder)  # first, as it takes seconds
    run_benchmarks(folder)
    heading(PARTS, "The site: all of it, with a planner of referrals")
    site = folder / "site"
    data = ("--data", str(folder / "data"))  # pictures of items
    qualms("report", str(folder / "runs"), *files, *data, "--out", str(site))
    minutes = (time.monotonic() - started) / 60
    print(f"\nThe demo took {minutes:.1f} minutes. Everything it made is shown here:")
    address = (site / "index.html").resolve().as_uri()
    print(address, flush=True)
    if has_display():
        webbrowser.open(address)


def score_known_files(folder: Path) -> list[str]:
    """Score files of each task, compare with what must come out; return the files."""
    heading(1, "Files of any framework: whose uncertainty can be trusted?")
    files = folder / "files"
    files.mkdir(parents=True, exist_ok=True)
    told: list[str] = []
    scored: list[str] = []
    for task in TASKS:
        arguments, name, subset, value = task(files)
        printed = qualms("score", *arguments, show=not told)
        (folder / f"{task.__name__}.txt").write_text(printed, encoding="utf-8")
        row = score(Path(arguments[0]), options=ScoreOptions(resamples=0)).row(
            name, subset=subset
        )
        agrees = "agrees" if abs(value - row.value) < 1e-9 else "DIFFERS"
        told.append(f"{task.__name__:15} {row.label:12} {value:.6f}  {row.value:.6f}")
        told[-1] += f"  {agrees}"
        scored += itertools.takewhile(lambda word: word[:2] != "--", arguments)
    print(f"all that they print: {folder}/{TASKS[1].__name__}.txt and so on")
    print("\nwhat each file was made to have, and what was scored")
    head = f"{'file':15} {'score':12} {'made':8}  {'scored':8}"
    print("\n".join(f"  {line}" for line in (head, *told)), flush=True)
    return scored


def run_benchmarks(folder: Path) -> None:
    """Train, predict and judge a choice of methods of each benchmark."""
    for number, (chosen, question) in enumerate(BENCHMARKS.items(), start=2):
        heading(number, question)
        qualms(
            *("run", *chosen.split(), "--preset", "demo", "--brief"),
            *("--out", str(folder / "runs"), "--data", str(folder / "data")),
            *("--device", "cpu"),
        )


def heading(number: int, words: str) -> None:
    """Print the heading of a part."""
    text = f"{number}/{PARTS}  {words}"
    print(f"\n{text}\n{'─' * len(text)}", flush=True)


def qualms(*arguments: str, show: bool | None = None) -> str:
    """Print a command of the command line, and run it; gives what it printed.

    Args:
        arguments: what stands after `qualms`.
        show: print the first table of the output, or nothing; by default the command
            prints for itself, with its bars, and '' is given.
    """
    print("\n".join(typed(["qualms", *arguments])), flush=True)
    command = [sys.executable, "-m", "qualms", *arguments]
    if show is None:
        subprocess.run(command, check=True)
        return ""
    done = subprocess.run(
        command,
        check=True,
        stdout=subprocess.PIPE,
        encoding="utf-8",
        env={**os.environ, "PYTHONUTF8": "1"},
    )
    if show:
        print("\n".join(first_tables(done.stdout.splitlines())))
    return done.stdout


def typed(words: list[str], width: int = WIDTH) -> list[str]:
    """Return a command as it is typed, on as many lines as its width asks for."""
    lines = ["$"]
    for word in map(shlex.quote, words):
        if len(lines[-1]) + len(word) + 3 > width and lines[-1].strip() != "$":
            lines[-1] += " \\"
            lines.append("   ")
        lines[-1] += f" {word}"
    return lines


def first_tables(lines: list[str], most: int = SHOWN) -> list[str]:
    """Return the first lines of an output, up to the end of a table."""
    if len(lines) <= most:
        return lines
    shown = lines[:most]
    ends = [number for number, line in enumerate(shown) if not line.strip()]
    return [*shown[: ends[-1] if ends else most - 1], "… the site shows all of it"]


def has_display() -> bool:
    """Return whether somebody sits at a screen that can show a page."""
    if not sys.stdout.isatty():
        return False
    screens = ("DISPLAY", "WAYLAND_DISPLAY")
    on_screen = sys.platform in ("darwin", "win32")
    return on_screen or any(os.environ.get(name) for name in screens)


if __name__ == "__main__":
    try:
        main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path("demo"))
    except subprocess.CalledProcessError as error:
        sys.exit(error.returncode)  # the command has said what is wrong
    except KeyboardInterrupt:
        sys.exit("interrupted; what is done is kept, run again to go on")
