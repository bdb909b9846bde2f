"""`qualms run` of a tiny grid in processes of its own, and what it leaves behind."""

import os
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

TESTS = Path(__file__).parents[1]
GRID = TESTS / "launch/grids/tiny_grid.py"
RUNS = 6


class WholeGrid(NamedTuple):
    """The grid without any fault."""

    cache: Path
    files: dict[str, bytes]


def environment(cache):
    paths = os.pathsep.join([str(TESTS), *filter(None, sys.path)])
    fixed = {"PYTHONPATH": paths, "QUALMS_CACHE": str(cache), "OMP_NUM_THREADS": "1"}
    return os.environ | fixed


def start(out, cache, *options, folder=None, **variables):
    """Start `qualms run` of the grid in `folder`, as a terminal does."""
    code = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler);"
    code += "from qualms.cli import main; main()"
    command = ["run", "tiny_grid", "--include", str(GRID), "--out", str(out)]
    return subprocess.Popen(
        [sys.executable, "-c", code, *command, "--device", "cpu", "--brief", *options],
        cwd=folder,
        env=environment(cache) | variables,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def files(out):
    """The bytes of all predictions of the grid."""
    runs = [path.parent for path in finished(out)]
    assert len(runs) == RUNS
    return {
        f"{run.name}/{path.name}": path.read_bytes()
        for run in runs
        for path in (run / "predictions").iterdir()
    }


def finished(out):
    return list(out.glob("tiny_grid/*/done.json"))


def until_a_run_is_done(out, launcher):
    while not finished(out):
        assert launcher.poll() is None, launcher.stderr.read()
        time.sleep(0.01)


def resume(out, whole):
    """Go on with the grid: what was done is left as it is, the rest is as it was.

    Returns the line that says how many runs were skipped and done.
    """
    done = {path: path.stat().st_mtime_ns for path in finished(out)}
    again = start(out, whole.cache)
    text, errors = again.communicate()
    assert again.returncode == 0, errors
    (counts,) = (line for line in text.splitlines() if f"{RUNS} runs: " in line)
    assert not done or f"{len(done)} skipped" in counts
    assert all(path.stat().st_mtime_ns == stamp for path, stamp in done.items())
    assert files(out) == whole.files
    return counts
