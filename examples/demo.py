"""What `make demo` does: score foreign files, run four benchmarks, write a site.

Every command is printed before it runs, so that it can be typed again. The files are
made up (`examples/known_files.py`) and the benchmarks have simulated data, so nothing
is downloaded. The last line names the site that shows everything that was made.
"""

import itertools
import os
import shlex
import subprocess
import sys
import time
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
BENCHMARKS = (
    "retina/country --methods map,mc_dropout",
    "regression",
    "values --methods softmax,tta,ssn",
    "url --methods ce,elk,losspred,sngp",
)
SHOWN = 20
"""Lines of the first result that are printed."""


def main(folder: Path) -> None:
    started = time.monotonic()
    files = score_known_files(folder)  # first, as it takes seconds
    run_benchmarks(folder)
    site = folder / "site"
    qualms("report", str(folder / "runs"), *files, "--out", str(site))
    minutes = (time.monotonic() - started) / 60
    print(f"\nThe demo took {minutes:.1f} minutes. Everything it made is shown here:")
    print((site / "index.html").resolve().as_uri())


def score_known_files(folder: Path) -> list[str]:
    """Score files of each task, compare with what must come out; return the files."""
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
    print("\nwhat each file was made to have, and what was scored")
    print("\n".join(f"  {line}" for line in told))
    return scored


def run_benchmarks(folder: Path) -> None:
    """Train, predict and judge a choice of methods of each benchmark."""
    for chosen in BENCHMARKS:
        qualms(
            *("run", *chosen.split(), "--preset", "demo"),
            *("--out", str(folder / "runs"), "--data", str(folder / "data")),
            *("--device", "cpu"),
        )


def qualms(*arguments: str, show: bool | None = None) -> str:
    """Print a command of the command line, and run it; gives what it printed.

    Args:
        arguments: what stands after `qualms`.
        show: print the first lines of the output, or none; by default the command
            prints for itself, with its bars, and '' is given.
    """
    print(f"\n$ {shlex.join(['qualms', *arguments])}", flush=True)
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
    lines = done.stdout.splitlines()
    if show:
        print("\n".join(lines[:SHOWN]))
    print(f"... {len(lines)} lines; the site shows all of them")
    return done.stdout


if __name__ == "__main__":
    try:
        main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path("demo"))
    except subprocess.CalledProcessError as error:
        sys.exit(error.returncode)  # the command has said what is wrong
    except KeyboardInterrupt:
        sys.exit("interrupted; what is done is kept, run again to go on")
