import json
import os
import subprocess
import sys
import warnings
from types import SimpleNamespace

import pytest

from qualms.training import TrainingError, run_alone
from qualms.training._log import EpochLog
from training import made


def test_epochs_go_to_weights_and_biases_offline(shelf, tmp_path, monkeypatch):
    logged, asked = [], {}

    def init(**options):
        asked.update(options)
        return SimpleNamespace(log=lambda values, step: logged.append((step, values)))

    monkeypatch.setitem(sys.modules, "wandb", SimpleNamespace(init=init))
    spec = made.spec(sinks=("wandb",))
    run_alone(spec, made.dataset(), tmp_path)
    assert asked["mode"] == "offline"
    assert asked["dir"] == str(tmp_path)
    assert [step for step, _ in logged] == [0, 1, 2]
    assert logged[0][1].keys() == {"loss", "images_per_second", "seconds", "lr"}


def test_a_run_that_goes_on_is_the_same_run_of_weights_and_biases(
    tmp_path, monkeypatch
):
    asked = []
    wandb = SimpleNamespace(init=lambda **options: asked.append(options))
    monkeypatch.setitem(sys.modules, "wandb", wandb)
    for name, epoch in (("a" * 16, 0), ("a" * 16, 2), ("b" * 16, 0)):
        EpochLog(tmp_path, ("wandb",), run=name, epoch=epoch)
    assert [options["id"] for options in asked] == ["a" * 16, "a" * 16, "b" * 16]
    assert {options["resume"] for options in asked} == {"allow"}


@pytest.mark.parametrize("name", ["wandb", "tensorboard", "mlflow"])
def test_a_sink_that_is_not_installed_is_named(shelf, tmp_path, monkeypatch, name):
    module = "torch.utils.tensorboard" if name == "tensorboard" else name
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(TrainingError, match=f"'{name}' needs the package {name}"):
        run_alone(made.spec(sinks=(name,)), made.dataset(), tmp_path)


def test_epochs_go_to_tensorboard(shelf, tmp_path, monkeypatch):
    written, begun = [], []

    class SummaryWriter:
        def __init__(self, folder, purge_step):
            assert folder == tmp_path / "tensorboard"
            begun.append(purge_step)

        def add_scalar(self, name, value, step):
            assert isinstance(value, float)
            written.append((name, step))

        def flush(self):
            pass

    stand_in = SimpleNamespace(SummaryWriter=SummaryWriter)
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", stand_in)
    run_alone(made.spec(sinks=("tensorboard",), validate=1), made.dataset(), tmp_path)
    assert ("val", 2) in written
    assert ("loss", 0) in written
    assert begun == [None]
    EpochLog(
        tmp_path, ("tensorboard",), run="0" * 16, epoch=2
    )  # as after a kill in the third epoch
    assert begun == [None, 2]


def test_what_tensorboard_reads_is_what_the_log_has(shelf, tmp_path):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        spec = made.spec(sinks=("tensorboard",), validate=1)
        run_alone(spec, made.dataset(), tmp_path)
        events = EventAccumulator(str(tmp_path / "tensorboard"))
        events.Reload()
    lines = (tmp_path / "log.jsonl").read_text("utf-8").splitlines()
    entries = [json.loads(line) for line in lines]
    for name in ("loss", "val", "lr"):
        points = [(point.step, point.value) for point in events.Scalars(name)]
        assert points == [
            (entry["epoch"], pytest.approx(entry[name], rel=1e-6)) for entry in entries
        ]


@pytest.mark.slow
def test_what_mlflow_reads_is_what_was_logged(tmp_path):
    target = tmp_path / "packages"
    packages = ["mlflow-skinny>=3,<4", "sqlalchemy", "alembic"]
    install = [sys.executable, "-m", "pip", "install", "-q", "--target", str(target)]
    subprocess.run([*install, *packages], check=True)
    code = f"""
from pathlib import Path
from qualms.training._log import EpochLog
from mlflow import MlflowClient

folder = Path({str(tmp_path)!r})
log = EpochLog(folder, ("mlflow",), run="a" * 16, epoch=0)
for epoch in range(3):
    log.write({{"epoch": epoch, "loss": 1.0 / (epoch + 1), "val": 0.5 + epoch / 10}})
# As after a kill: the third epoch is trained again.
log = EpochLog(folder, ("mlflow",), run="a" * 16, epoch=2)
for epoch in (2, 3):
    log.write({{"epoch": epoch, "loss": 1.0 / (epoch + 1), "val": 0.5 + epoch / 10}})
client = MlflowClient(tracking_uri=f"sqlite:///{{folder}}/mlflow.db")
number = client.get_experiment_by_name("qualms").experiment_id
(run,) = client.search_runs([number])
assert run.data.tags["qualms.run"] == "a" * 16
for name in ("loss", "val"):
    points = client.get_metric_history(run.info.run_id, name)
    print([(point.step, round(point.value, 6)) for point in points])
"""
    env = {**os.environ, "PYTHONPATH": str(target)}
    env.pop("MLFLOW_TRACKING_URI", None)
    result = subprocess.run(
        [sys.executable, "-c", code], env=env, capture_output=True, text=True
    )
    assert result.returncode == 0, result.stderr
    assert result.stdout.splitlines() == [
        "[(0, 1.0), (1, 0.5), (2, 0.333333), (3, 0.25)]",
        "[(0, 0.5), (1, 0.6), (2, 0.7), (3, 0.8)]",
    ]


def test_lines_that_a_crash_tore_are_dropped(tmp_path):
    file = tmp_path / "log.jsonl"
    good = b'{"epoch": 0, "loss": 1.0}\n'
    torn = [b"\xff\x00{\n", b"null\n", b'{"loss": 2.0}\n', b'{"epoch": 1, "lo']
    file.write_bytes(good + b"".join(torn))
    EpochLog(tmp_path, (), run="0" * 16, epoch=1)
    assert file.read_bytes() == good
