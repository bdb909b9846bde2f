"""Faults of processes: workers and launchers that are killed, or asked to stop."""

import os
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import pytest

from faults import killed
from faults.drill import predictions, spec
from launch.fakes import train_until_killed
from launch.storing import GRID
from qualms.launch import prepare_datasets, run_all

pytestmark = [pytest.mark.faults, pytest.mark.slow]
TESTS = Path(__file__).parents[1]
GRID_RUNS = 6


def environment(cache):
    paths = os.pathsep.join([str(TESTS), *filter(None, sys.path)])
    fixed = {"PYTHONPATH": paths, "QUALMS_CACHE": str(cache), "OMP_NUM_THREADS": "1"}
    return os.environ | fixed


class Heard:
    def __init__(self):
        self.messages = []

    def epoch(self, *_):
        pass

    def message(self, _, text):
        self.messages.append(text)


def test_a_worker_that_is_killed(tmp_path, cache, undisturbed, report):
    ended = subprocess.run(
        [sys.executable, killed.__file__, str(tmp_path)],
        env=environment(cache),
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    kills, rounds = map(int, ended.stdout.split())
    assert kills == killed.KILLS
    assert rounds >= 1
    prepare_datasets([spec(0).dataset], cache, workers=1)
    heard, out, run = Heard(), tmp_path / "out", spec(0)
    work = partial(train_until_killed, run, 2)
    options = {"data": cache, "device": "cpu", "work": work, "callbacks": heard}
    (outcome,) = run_all([run], out=out, **options)
    assert outcome.status == "done"
    assert predictions(out, run) == undisturbed[run.hash]
    (message,) = heard.messages
    assert "was killed by SIGKILL" in message
    report(
        f"worker killed at {kills} random points",
        happens="the run is tried again, from its last checkpoint",
        sentence=message,
        lost="the current epoch",
    )


@pytest.fixture(scope="module")
def grid_cache(tmp_path_factory):
    return tmp_path_factory.mktemp("grid")


@pytest.fixture(scope="module")
def whole_grid(tmp_path_factory, grid_cache):
    out = tmp_path_factory.mktemp("whole")
    launcher = start(out, grid_cache)
    _, errors = launcher.communicate()
    assert launcher.returncode == 0, errors
    return files(out)


def start(out, cache, *options):
    code = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler);"
    code += "from qualms.cli import main; main()"  # as from a terminal
    command = ["run", "tiny_grid", "--include", str(GRID), "--out", str(out)]
    return subprocess.Popen(
        [sys.executable, "-c", code, *command, "--device", "cpu", "--brief", *options],
        env=environment(cache),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def files(out):
    """The bytes of all predictions of the grid."""
    runs = [path.parent for path in (out / "tiny_grid").glob("*/done.json")]
    assert len(runs) == GRID_RUNS
    return {
        f"{run.name}/{path.name}": path.read_bytes()
        for run in runs
        for path in (run / "predictions").iterdir()
    }


def until_a_run_is_done(out, launcher):
    while not list(out.glob("tiny_grid/*/done.json")):
        assert launcher.poll() is None, launcher.stderr.read()
        time.sleep(0.01)


def resume(out, cache, whole):
    """Go on with the grid: what was done is left as it is, the rest is as it was."""
    done = {path: path.stat().st_mtime_ns for path in out.glob("tiny_grid/*/done.json")}
    again = start(out, cache)
    text, errors = again.communicate()
    assert again.returncode == 0, errors
    assert f"{len(done)} skipped" in text
    assert all(path.stat().st_mtime_ns == stamp for path, stamp in done.items())
    assert files(out) == whole


@pytest.mark.parametrize(
    ("fault", "signals", "code", "happens"),
    [
        (
            "Ctrl-C twice",
            [signal.SIGINT, signal.SIGINT],
            130,
            "workers are asked to stop, and killed at the second Ctrl-C",
        ),
        (
            "SIGTERM",
            [signal.SIGTERM],
            143,
            "workers are asked to stop, as at Ctrl-C",
        ),
    ],
)
def test_a_launcher_that_is_asked_to_stop(
    tmp_path, grid_cache, whole_grid, report, fault, signals, code, happens
):
    out = tmp_path / "out"
    launcher = start(out, grid_cache, "--workers", "1")
    until_a_run_is_done(out, launcher)
    for number in signals:
        if number == signal.SIGINT:
            os.killpg(launcher.pid, number)  # a terminal tells all processes
        else:
            launcher.send_signal(number)
        time.sleep(0.2)
    _, errors = launcher.communicate()
    assert launcher.returncode == code, errors
    assert "Traceback" not in errors
    (sentence,) = (line for line in errors.splitlines() if "finished work" in line)
    resume(out, grid_cache, whole_grid)
    report(fault, happens=happens, sentence=sentence, lost="the current epoch")


def test_two_launchers_on_one_folder(tmp_path, grid_cache, whole_grid, report):
    out = tmp_path / "out"
    launchers = [start(out, grid_cache, "--workers", "1") for _ in range(2)]
    ended = [launcher.communicate() for launcher in launchers]
    assert [launcher.returncode for launcher in launchers] == [0, 0], ended
    resume(out, grid_cache, whole_grid)
    counts = [
        line for text, _ in ended for line in text.splitlines() if "6 runs: " in line
    ]
    assert len(counts) == 2
    busy = "busy runs are being made by another process; run again to see them"
    texts = [text for text, _ in ended]
    if not any(busy in text for text in texts):
        assert any("skipped" in line for line in counts)
    report(
        "two launchers on one folder",
        happens="each run is made by one of them",
        sentence=next((busy for text in texts if busy in text), counts[0]),
        lost="none",
    )
