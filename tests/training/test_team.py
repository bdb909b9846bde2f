import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from qualms.training import TrainingError
from qualms.training._team import Team, check_divides, work_together
from qualms.training.machine import device_names, needs_team
from qualms.training.options import training
from training import made, teamwork

TESTS = Path(__file__).parents[1]


def test_members_divide_every_batch_and_miss_nothing():
    values = torch.arange(24)
    parts = [Team(rank=rank, size=3).part(values, 6) for rank in range(3)]
    assert parts[1].tolist() == [2, 3, 8, 9, 14, 15, 20, 21]
    assert torch.equal(torch.cat(parts).sort().values, values)
    assert Team().part(values, 6) is values


def test_several_devices_have_one_name(monkeypatch):
    monkeypatch.delenv("LOCAL_RANK", raising=False)
    assert device_names("cuda:1") == ["cuda:1"]
    assert device_names("cuda:0,2") == ["cuda:0", "cuda:2"]
    assert not needs_team("cuda:1")
    assert needs_team("cuda:0,1")
    monkeypatch.setenv("LOCAL_RANK", "0")
    assert not needs_team("cuda:0,1")


@pytest.mark.parametrize("device", ["cuda:0,0", "cuda:0,x", "cuda,cpu", "cuda:0,"])
def test_a_name_of_several_devices_that_means_nothing_is_refused(device):
    with pytest.raises(TrainingError, match="named as in 'cuda:0,1', each once"):
        device_names(device)


def test_what_a_team_cannot_divide_is_refused():
    team = Team(size=2)
    with pytest.raises(TrainingError, match="got batch 7; choose a multiple of 2"):
        check_divides(training({"batch": 7}).steps, 70, team)
    with pytest.raises(TrainingError, match="16 items, which 50 do not fill; train wi"):
        check_divides(training({"batch": 8, "accumulate": 2}).steps, 50, team)
    check_divides(training({"batch": 8, "partial": False}).steps, 50, team)
    check_divides(training({"batch": 8}).steps, 48, team)
    check_divides(training({"batch": 7}).steps, 50, Team())


@pytest.mark.slow
def test_all_processes_work_and_are_heard():
    callbacks = made.CallbackLog()
    work_together(teamwork.rank_of, 2, callbacks)
    assert sorted(callbacks.messages) == ["rank 0", "rank 1"]


@pytest.mark.slow
def test_all_processes_end_when_one_fails(capfd):
    with pytest.raises(TrainingError, match="the second must not fail"):
        work_together(teamwork.fail_second, 2, made.CallbackLog())
    with pytest.raises(TrainingError, match="ended with exit code 3"):
        work_together(teamwork.leave, 2, made.CallbackLog())


def train(folder, *devices, stops=False, **options):
    """Train in another process, so that the processes of a team find the same shelf."""
    script = folder / "script.py"
    script.write_text(
        "from training import teamwork\n"
        "teamwork.put_on_shelf()\n"  # on import, as the processes of a team do
        "if __name__ == '__main__':\n"
        f"    teamwork.train({str(folder)!r}, *{devices!r}, **{options!r})\n"
    )
    given = {
        "PYTHONPATH": os.pathsep.join([str(TESTS), *sys.path]),
        "OMP_NUM_THREADS": "1",
    }
    return subprocess.run(
        [sys.executable, script],
        env=os.environ | given | ({"STOPS": str(folder)} if stops else {}),
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def weights(folder):
    return torch.load(folder / "checkpoint.pt", weights_only=True)["network"]


@pytest.mark.slow
@pytest.mark.parametrize(
    "options",
    [
        {"class_weights": "minibatch", "accumulate": 2, "clip": 0.1},
        {"method": "phased", "optimiser": "sgd"},
        {"select_by": "val_auroc", "schedule": "plateau"},
    ],
)
def test_two_processes_train_what_one_trains(tmp_path, options):
    result = train(tmp_path, "cpu", "cpu:0,1", **options)
    assert result.returncode == 0, result.stderr
    told = ["on cpu", "epoch 1", "epoch 2", "epoch 3"]
    told += ["on cpu:0,1", "epoch 1", "epoch 2", "epoch 3"]
    assert [" ".join(s.split()[:2]) for s in result.stdout.splitlines()] == told
    one, two = weights(tmp_path / "cpu"), weights(tmp_path / "cpu:0,1")
    assert one.keys() == two.keys()
    for name in one:
        torch.testing.assert_close(one[name], two[name], rtol=1e-4, atol=1e-5)
    files = [{p.name for p in (tmp_path / d).rglob("*")} for d in ("cpu", "cpu:0,1")]
    assert files[0] == files[1]


@pytest.mark.slow
def test_a_team_that_fails_says_why_and_goes_on_from_its_checkpoint(tmp_path):
    result = train(tmp_path, "cpu:0,1", stops=True)
    last = result.stderr.splitlines()[-1]
    assert last.endswith("TrainingError: the second stops in the second epoch")
    assert not (tmp_path / "cpu:0,1/done.json").exists()
    result = train(tmp_path, "cpu:0,1")
    assert result.returncode == 0, result.stderr
    epochs = [s.split()[1] for s in result.stdout.splitlines() if s.startswith("epoch")]
    assert epochs == ["2", "3"]
    stopped = weights(tmp_path / "cpu:0,1")
    (tmp_path / "whole").mkdir()
    train(tmp_path / "whole", "cpu:0,1")
    whole = weights(tmp_path / "whole" / "cpu:0,1")
    assert all(torch.equal(stopped[name], whole[name]) for name in whole)
