"""Faults of a Ray cluster: a worker or the driver is lost in mid-epoch."""

import os
import subprocess
import sys
from functools import partial
from importlib.util import find_spec
from pathlib import Path

import pytest

from faults import ray_driver
from faults.drill import predictions, spec
from launch.fakes import train_until_killed
from qualms.launch import Engine, run_all
from qualms.runs import done_path, run_folder

pytestmark = [
    pytest.mark.faults,
    pytest.mark.slow,
    pytest.mark.skipif(find_spec("ray") is None, reason="needs the extra scale"),
]
TESTS = Path(__file__).parents[1]


class Heard:
    def __init__(self):
        self.messages = []

    def epoch(self, *_):
        pass

    def message(self, _, text):
        self.messages.append(text)


@pytest.fixture(autouse=True)
def _importable(monkeypatch):
    """Processes on the cluster import the tests."""
    monkeypatch.setenv("PYTHONPATH", str(TESTS))
    monkeypatch.setenv("OMP_NUM_THREADS", "1")


def launch(runs, out, cache, **options):
    heard = Heard()
    outcomes = run_all(
        runs,
        out=out,
        data=cache,
        workers=1,
        device="cpu",
        callbacks=heard,
        **options,
    )
    assert {outcome.status for outcome in outcomes} == {"done"}
    return heard.messages


def test_a_worker_on_ray_that_is_lost(tmp_path, cache, undisturbed, report):
    run, other = spec(0), spec(1)
    work = partial(train_until_killed, run, 2)
    engine = Engine(launcher="ray")
    (message,) = launch([run, other], tmp_path, cache, work=work, engine=engine)
    assert message.startswith("its process was killed by SIGKILL")
    for each in (run, other):
        assert predictions(tmp_path, each) == undisturbed[each.hash]
    report(
        "Ray worker lost in mid-epoch",
        happens="the run is tried again, from its last checkpoint",
        sentence=message,
        lost="the current epoch",
    )


def test_a_driver_of_ray_that_is_lost(tmp_path, cache, undisturbed, report):
    runs, out = ray_driver.RUNS, tmp_path / "out"
    with subprocess.Popen(
        [sys.executable, ray_driver.__file__, str(out), str(cache)],
        env=os.environ | {"PYTHONPATH": os.pathsep.join([str(TESTS), *sys.path])},
        stdout=subprocess.PIPE,
        text=True,
    ) as driver:
        assert driver.stdout.readline() == "0 done\n"
        driver.kill()
    done = done_path(run_folder(out, runs[0]))
    stamp = done.stat().st_mtime_ns
    outcomes = run_all(runs, out=out, data=cache, workers=1, device="cpu")
    status = {outcome.spec.seed: outcome.status for outcome in outcomes}
    assert status[0] == "skipped"
    assert set(status.values()) == {"skipped", "done"}
    assert done.stat().st_mtime_ns == stamp
    for run in runs:
        assert predictions(out, run) == undisturbed[run.hash]
    report(
        "Ray driver lost in mid-epoch",
        happens="its processes end; the same command goes on, on Ray or not",
        sentence=", ".join(f"seed {seed} {text}" for seed, text in status.items()),
        lost="the current epoch",
    )
