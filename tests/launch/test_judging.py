"""Which machines judge runs: those that made them, if they see the same folder."""

from qualms.launch import Engine
from qualms.launch.judging import _remote
from qualms.launch.resources import resources_for
from qualms.processes import LocalCrew, RemoteCrew


def test_runs_are_judged_where_they_are_made(tmp_path, monkeypatch):
    asked = []

    def crew(engine, *, out):
        asked.append((engine.address, out))
        return RemoteCrew(2, LocalCrew)

    monkeypatch.setattr("qualms.launch.judging.judging_crew", crew)
    ray = Engine(launcher="ray", address="10.0.0.1:6379")
    there = resources_for(tmp_path, tmp_path, engine=ray)
    remote = _remote(there)
    assert asked == [], "no cluster is asked before it is needed"
    assert remote().workers == 2
    assert asked == [("10.0.0.1:6379", tmp_path)]
    assert _remote(resources_for(tmp_path, tmp_path)) is None
