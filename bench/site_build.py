"""Measure how long a site takes to build, and what it weighs.

    python bench/site_build.py demo/runs demo/files/*.safetensors --data demo/data

It runs `qualms report` in a fresh process as often as `--times` says, and prints a line
of a table: the best time, CPU seconds of all its processes, runs, pages and weights.
"""

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

MOST_SECONDS = 20.0
"""A site of 50 runs on two cores."""
HEADS = (
    *("runs", "s", "CPU s", "load before", "pages", "largest page kB"),
    *("largest data kB", "script kB", "site MB"),
)


def main() -> None:
    """Build the site, and print what it took."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("sources", nargs="+", type=Path, help="runs and files")
    parser.add_argument("--data", type=Path, help="prepared datasets")
    parser.add_argument("--times", type=int, default=3)
    options = parser.parse_args()
    data = ["--data", str(options.data)] if options.data else []
    load = os.getloadavg()[0]
    with tempfile.TemporaryDirectory() as folder:
        site = Path(folder) / "site"
        sources = [*map(str, options.sources), *data, "--out", str(site)]
        command = [sys.executable, "-m", "qualms", "report", *sources]
        took = [built(command) for _ in range(options.times)]
        seconds, cpu = min(took)
        cells = (
            str(sum(len(list(s.rglob("done.json"))) for s in options.sources)),
            f"{seconds:.1f}",
            f"{cpu:.1f}",
            f"{load:.1f}",
            str(len(list(site.glob("*.html")))),
            kilobytes(max(page_bytes(site, page) for page in site.glob("*.html"))),
            kilobytes(max(path.stat().st_size for path in site.glob("data/*.js"))),
            kilobytes((site / "assets" / "site.js").stat().st_size),
            f"{folder_bytes(site) / 1e6:.1f}",
        )
    print("| " + " | ".join(HEADS) + " |")
    print("|---" * len(HEADS) + "|")
    print("| " + " | ".join(cells) + " |")
    sys.exit(0 if seconds < MOST_SECONDS else 1)


def built(command: list[str]) -> tuple[float, float]:
    """Return the seconds that a command took, and those of its processors."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    start = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    seconds = time.perf_counter() - start
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return seconds, cpu


def page_bytes(site: Path, page: Path) -> int:
    """Return the bytes of a page with the script, the style and its own data."""
    data = site / "data" / f"{page.stem}.js"
    shared = sum(path.stat().st_size for path in site.glob("assets/*"))
    return page.stat().st_size + shared + (data.stat().st_size if data.exists() else 0)


def folder_bytes(folder: Path) -> int:
    """Return the bytes of all files below a folder."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def kilobytes(size: int) -> str:
    """Return bytes in kilobytes."""
    return f"{size / 1000:.0f}"


if __name__ == "__main__":
    main()
