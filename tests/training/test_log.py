import sys
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


@pytest.mark.parametrize("name", ["wandb", "tensorboard"])
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


def test_lines_that_a_crash_tore_are_dropped(tmp_path):
    file = tmp_path / "log.jsonl"
    good = b'{"epoch": 0, "loss": 1.0}\n'
    torn = [b"\xff\x00{\n", b"null\n", b'{"loss": 2.0}\n', b'{"epoch": 1, "lo']
    file.write_bytes(good + b"".join(torn))
    EpochLog(tmp_path, (), run="0" * 16, epoch=1)
    assert file.read_bytes() == good
