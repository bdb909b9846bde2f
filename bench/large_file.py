"""Time and memory of `qualms score --html` on a file with millions of items.

    python bench/large_file.py --items 10000000
    python bench/large_file.py --items 10000000 --beside ../before/src
    python bench/large_file.py --items 5000000 --allocations

Half of the items are marked as shifted. Each command runs in a process of its own.
`--beside` names the folder `src` of another checkout, which scores the same file
before and after, so that its ratios do not depend on what else the machine does.
`--allocations` prints bytes per item instead: what is held when intervals begin, by the
line that allocated it, and the peak.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
import tracemalloc
from pathlib import Path
from typing import NamedTuple

import numpy as np

from qualms import predictions

SOURCE = Path(__file__).parents[1] / "src"


class Cost(NamedTuple):
    """What one command took."""

    seconds: float
    cpu: float
    gigabytes: float


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--items", type=int, default=10_000_000)
    parser.add_argument("--beside", type=Path, help="Folder src of another checkout.")
    parser.add_argument("--allocations", action="store_true")
    args = parser.parse_args()
    if args.allocations:
        print_allocations(args.items)
        return
    print("| checkout | command | wall s | CPU s | peak GB |")
    print("|---|---|---:|---:|---:|")
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "predictions.safetensors"
        write(file, args.items)
        sources = {"beside": args.beside, "this": SOURCE}
        for more in ((), ("--html", str(Path(folder) / "page.html"))):
            for name, source in sources.items():
                if source is not None:
                    cost = scored(file, more, source)
                    words = "score --html" if more else "score"
                    print(
                        f"| {name} | {words} | {cost.seconds:.1f} | {cost.cpu:.1f}"
                        f" | {cost.gigabytes:.2f} |",
                        flush=True,
                    )


def print_allocations(items: int) -> None:
    """Print what scoring allocates for each item, in one thread."""
    from qualms.evaluate import ScoreOptions, scoring
    from qualms.evaluate.drawings import CURVE_POINTS

    estimated = scoring.estimated

    def watched(*args):
        held = tracemalloc.take_snapshot().statistics("lineno")
        for line in held:
            if line.size > 3 * items:
                frame = line.traceback[0]
                where = f"{Path(frame.filename).name}:{frame.lineno}"
                print(f"{line.size / items:6.1f}  {where}")
        return estimated(*args)

    scoring.estimated = watched
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "predictions.safetensors"
        write(file, items)
        tracemalloc.start()
        options = ScoreOptions(workers=1, curve_points=CURVE_POINTS)
        scoring.score(file, options=options)
        print(f"{tracemalloc.get_traced_memory()[1] / items:6.1f}  peak")


def write(file: Path, items: int) -> None:
    """Write predictions of two classes; half of the items are shifted, and noisier."""
    rng = np.random.default_rng(0)
    shifted = np.arange(items) % 2 == 1
    target = rng.integers(0, 2, items)
    logits = (1.5 - 0.7 * shifted) * (2 * target - 1) + 2 * rng.standard_normal(items)
    prob = (1 / (1 + np.exp(-logits))).astype(np.float32)
    predictions.write(file, {"target": target, "prob": prob, "shifted": shifted})


def scored(file: Path, more: tuple[str, ...], source: Path) -> Cost:
    """Run `qualms score` from `source`; return its cost."""
    command = [sys.executable, "-m", "qualms", "score", str(file), *more]
    start = time.perf_counter()
    process = subprocess.Popen(
        command,
        stdout=subprocess.DEVNULL,
        env={**os.environ, "PYTHONPATH": str(source.resolve())},
    )
    _, status, usage = os.wait4(process.pid, 0)
    if status:
        raise SystemExit(f"{' '.join(command)} failed")
    return Cost(
        time.perf_counter() - start,
        usage.ru_utime + usage.ru_stime,
        usage.ru_maxrss / 1e6,
    )


if __name__ == "__main__":
    main()
