"""Runs on a Ray cluster: the same files as on this machine, whatever is lost."""

from importlib.util import find_spec
from pathlib import Path

import pytest

from launch import fakes
from launch.fakes import spec
from qualms.launch import Engine, run_all

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(find_spec("ray") is None, reason="needs the extra scale"),
]


TESTS = Path(__file__).parents[1]


class Heard:
    def __init__(self):
        self.epochs, self.messages = [], []

    def epoch(self, spec, *values):
        self.epochs.append((spec.seed, *values))

    def message(self, spec, text):
        self.messages.append((spec.seed, text))


def test_runs_on_a_cluster_of_its_own(tmp_path, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(TESTS))  # for the stand-ins
    specs = [spec(0), spec(1, behave="fail"), spec(2, behave="killed once")]
    heard = Heard()
    outcomes = {
        outcome.spec.seed: outcome
        for outcome in run_all(
            specs,
            out=tmp_path / "runs",
            data=tmp_path / "data",
            workers=1,
            device="cpu",
            work=fakes.work,
            callbacks=heard,
            engine=Engine(launcher="ray"),
        )
    }
    statuses = {seed: outcome.status for seed, outcome in outcomes.items()}
    assert statuses == {0: "done", 1: "failed", 2: "done"}
    assert outcomes[1].error == "the loss must be finite, got nan at step 3"
    assert (0, 1, 2, 0.5, 100.0, 3.0) in heard.epochs
    ((seed, sentence),) = heard.messages
    assert seed == 2
    assert sentence.startswith("its process was killed by SIGKILL")
    assert not list((tmp_path / "runs").glob(".launcher-*"))
