"""Faults of processes: workers and launchers that are killed, or asked to stop."""

import os
import signal
import subprocess
import sys
import time
from functools import partial

import pytest

from faults import grid, killed
from faults.drill import predictions, spec
from launch.fakes import train_until_killed
from qualms.launch import prepare_datasets, run_all

pytestmark = [pytest.mark.faults, pytest.mark.slow]


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
        env=grid.environment(cache),
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
    report(f"worker killed at {kills} random points", message)


@pytest.mark.parametrize(
    ("fault", "signals", "code"),
    [
        ("Ctrl-C twice", [signal.SIGINT, signal.SIGINT], 130),
        ("SIGTERM", [signal.SIGTERM], 143),
    ],
)
def test_a_launcher_that_is_asked_to_stop(
    tmp_path, whole_grid, report, fault, signals, code
):
    out = tmp_path / "out"
    launcher = grid.start(out, whole_grid.cache, "--workers", "1")
    grid.until_a_run_is_done(out, launcher)
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
    grid.resume(out, whole_grid)
    report(fault, sentence)


def test_two_launchers_on_one_folder(tmp_path, whole_grid, report):
    out = tmp_path / "out"
    launchers = [
        grid.start(out, whole_grid.cache, "--workers", "1", "--no-judge")
        for _ in range(2)
    ]
    ended = [launcher.communicate() for launcher in launchers]
    assert [launcher.returncode for launcher in launchers] == [0, 0], ended
    grid.resume(out, whole_grid)
    texts = [text for text, _ in ended]
    counts = [line for t in texts for line in t.splitlines() if "6 runs: " in line]
    assert len(counts) == 2
    busy = "busy runs are being made by another process; run again to see them"
    if not any(busy in text for text in texts):
        assert any("skipped" in line for line in counts)
    report("two launchers on one folder", busy if busy in "".join(texts) else counts[0])
