"""What `make demo` does: score foreign files, run four benchmarks, link results.

Every command is printed before it runs, so that it can be typed again. The files are
made up (`examples/known_files.py`) and the benchmarks have simulated data, so nothing
is downloaded. The last line names the page that links everything that was made.
"""

import os
import re
import shlex
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import known_files

from qualms import score
from qualms.evaluate import ScoreOptions
from qualms.report import LinkedPage, write_index

TASKS: dict[Callable[[Path], known_files.Known], str] = {
    known_files.classification: "Two methods on the same patients, at home and abroad:"
    " which is better, and which cannot be told apart?",
    known_files.regression: "Prediction intervals: how many targets do they cover, at"
    " home and under a shift?",
    known_files.segmentation: "Pixel uncertainty of segmented images with two raters.",
    known_files.embedding: "Embeddings with an uncertainty for each item.",
}
BENCHMARKS = {
    "retina/country --methods map,mc_dropout": (
        "RETINA: photographs of the retina, country shift",
        "Does it help to refer the patients that the network is least certain of?"
        " Simulated photographs, two methods and their pairs.",
    ),
    "regression": (
        "Regression: prediction intervals under shift",
        "Do prediction intervals keep their coverage? Simulated cells, the paper's ten"
        " kinds of interval.",
    ),
    "values --methods softmax,tta,ssn": (
        "VALUES: uncertainty of segmentation, by its parts",
        "Which prediction model, measure and aggregation makes the uncertainty of"
        " pixels useful? Toy images with known causes of uncertainty: raters who"
        " disagree, and shapes that were never seen.",
    ),
    "url --methods ce,elk,losspred,sngp": (
        "URL: uncertainty of representations on unseen classes",
        "Does a network know which images of classes it never saw it will confuse?"
        " Simulated species, four methods.",
    ),
}
ENDINGS = {".csv", ".tex", ".pdf", ".png"}
SHOWN = 20
"""Lines of the first result that are printed."""


def main(folder: Path) -> None:
    started = time.monotonic()
    scored = list(score_known_files(folder))  # first, as it takes seconds
    pages = [*run_benchmarks(folder), *scored]
    title = "qualms demo: everything that was made"
    index = write_index(pages, folder / "index.html", title=title, command="make demo")
    minutes = (time.monotonic() - started) / 60
    print(f"\nThe demo took {minutes:.1f} minutes. Everything it made is linked here:")
    print(index.resolve().as_uri())


def score_known_files(folder: Path) -> Iterator[LinkedPage]:
    """Score one file or two for each task, and compare with what must come out."""
    files = folder / "files"
    files.mkdir(parents=True, exist_ok=True)
    told = []
    for task, summary in TASKS.items():
        arguments, name, subset, value = task(files)
        page = folder / f"{task.__name__}.html"
        printed = qualms("score", *arguments, "--html", str(page), show=not told)
        page.with_suffix(".txt").write_text(printed, encoding="utf-8")
        row = score(Path(arguments[0]), options=ScoreOptions(resamples=0)).row(
            name, subset=subset
        )
        agrees = "agrees" if abs(value - row.value) < 1e-9 else "DIFFERS"
        told.append(f"{task.__name__:15} {row.label:12} {value:.6f}  {row.value:.6f}")
        told[-1] += f"  {agrees}"
        as_text = LinkedPage("the same as text", page.with_suffix(".txt"))
        title = f"Foreign files: {task.__name__}"
        yield LinkedPage(title, page, summary, files=(as_text,))
    print("\nwhat each file was made to have, and what was scored")
    print("\n".join(f"  {line}" for line in told))


def run_benchmarks(folder: Path) -> Iterator[LinkedPage]:
    """Train, predict and judge a choice of methods of each benchmark."""
    runs, data = folder / "runs", folder / "data"
    for chosen, (title, summary) in BENCHMARKS.items():
        name = re.split("[/ ]", chosen)[0]
        before = time.time()
        qualms(
            *("run", *chosen.split(), "--preset", "demo"),
            *("--out", str(runs), "--data", str(data), "--device", "cpu"),
        )
        for page in sorted((runs / name / "demo").rglob("index.html")):
            if page.stat().st_mtime >= before:
                yield LinkedPage(title, page, summary, tuple(files_of(page)))


def files_of(page: Path) -> Iterator[LinkedPage]:
    """The tables and figures that stand beside the page of a benchmark."""
    for path in sorted(page.parent.rglob("*")):
        if path.suffix in ENDINGS:
            yield LinkedPage(path.relative_to(page.parent).as_posix(), path)


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
    print(f"... {len(lines)} lines; the page shows all of them")
    return done.stdout


if __name__ == "__main__":
    try:
        main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path("demo"))
    except subprocess.CalledProcessError as error:
        sys.exit(error.returncode)  # the command has said what is wrong
    except KeyboardInterrupt:
        sys.exit("interrupted; what is done is kept, run again to go on")
