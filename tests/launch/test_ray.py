"""Runs on a Ray cluster: the same files as on this machine, whatever is lost."""

from importlib.util import find_spec
from pathlib import Path

import pytest
from bench.many_runs import make_run, many

from launch import fakes
from launch.fakes import spec
from qualms.evaluate.benchmark import judge_plan
from qualms.launch import Engine, run_all
from qualms.launch.engine import judging_crew
from qualms.processes import cores
from qualms.runs import judged_cells

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


def test_variants_are_judged_on_a_cluster_to_the_same_numbers(tmp_path):
    plan, crews = many(160), []
    for run in plan.runs:
        make_run(run, tmp_path)

    def remote():
        crews.append(judging_crew(Engine(launcher="ray"), out=tmp_path))
        return crews[-1]

    cells = judged_cells(tmp_path / "many")
    here = judge_plan(plan, tmp_path)
    there = judge_plan(plan, tmp_path, cells=cells, remote=remote)
    assert len(plan.variants) == 2
    assert [crew.workers for crew in crews] == [cores()]
    assert len(list(cells.glob("*.cell"))) == 2
    for part in ("table", "pairs", "run_scores", "notes"):  # as texts, for their nan
        assert str(getattr(there, part)) == str(getattr(here, part))
    assert [str(each) for each in there.table] == [str(each) for each in here.table]
    judge_plan(plan, tmp_path, cells=cells, remote=remote)
    assert len(crews) == 1, "nothing was new, so no cluster was needed"
