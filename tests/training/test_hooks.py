"""Hooks by which a method is calibrated, sets the rate, and keeps many epochs."""

import json
from dataclasses import replace

import pytest
import torch

from qualms import predictions
from qualms.networks.resnet_small import resnet_small
from qualms.shelf import find
from qualms.spec import Part
from qualms.training import TrainingError, _learner, run_alone
from training import made


def checkpoint(folder):
    return torch.load(folder / "checkpoint.pt", weights_only=True)["network"]


def test_calibrate_sees_the_items_of_val_once_and_after_after(shelf, tmp_path):
    calls = []

    def after(_, batches):
        calls.append(("after", sum(len(batch.target) for batch in batches())))

    def calibrate(network, batches):
        assert not network.training
        assert not torch.is_grad_enabled()
        targets = torch.cat([batch.target for batch in batches()])
        calls.append(("calibrate", targets.tolist()))

    shelf(held={"after": after, "calibrate": calibrate})
    dataset = made.dataset()
    run_alone(made.spec(method="held", splits=("test",)), dataset, tmp_path)
    expected = dataset.splits["val"].target.tolist()
    assert calls == [("after", 50), ("calibrate", pytest.approx(expected))]


def test_calibrate_without_val_is_refused_before_training(shelf, tmp_path):
    shelf(held={"calibrate": lambda _network, _batches: None})
    dataset = made.dataset()
    left = {name: part for name, part in dataset.splits.items() if name != "val"}
    with pytest.raises(TrainingError, match="calibrated on the split 'val'"):
        run_alone(
            made.spec(method="held", splits=("test",)),
            replace(dataset, splits=left),
            tmp_path,
        )


def test_the_schedule_of_a_method_sets_the_rate(shelf, tmp_path):
    shelf(slow={"schedule": lambda time, _: torch.full_like(time, 0.25)})
    run_alone(made.spec(method="slow", schedule="linear"), made.dataset(), tmp_path)
    lines = (tmp_path / "log.jsonl").read_text().splitlines()
    assert [json.loads(line)["lr"] for line in lines] == [2.5e-3] * 3


def test_a_method_of_many_epochs_keeps_the_last_one(shelf, tmp_path):
    shelf(many={"selects": False})
    callbacks = made.CallbackLog()
    options = {"lr": 0.3, "epochs": 5, "splits": ("test",)}
    run_alone(made.spec(method="many", **options), made.dataset(), tmp_path / "last")
    run_alone(
        made.spec(method="many", select_by="val_loss", **options),
        made.dataset(),
        tmp_path / "selected",
        callbacks=callbacks,
    )
    last, selected = (checkpoint(tmp_path / name) for name in ("last", "selected"))
    assert all(torch.equal(part, selected[name]) for name, part in last.items())
    assert any("select_by='val_loss' is not followed" in m for m in callbacks.messages)


CASES = [
    ("swag", "regression", {}, {"start": 0.0, "draws": 3}),
    ("snapshot", "classification", {}, {"cycles": 3}),
    ("temperature", "classification", {}, {}),
    ("swag", "classification", {"features": "cached"}, {"start": 0.0, "draws": 3}),
    ("temperature", "classification", {"features": "cached"}, {}),
]


@pytest.mark.parametrize(("name", "kind", "training", "options"), CASES)
def test_whole_runs_give_the_same_after_a_break(
    name, kind, training, options, monkeypatch, tmp_path
):
    monkeypatch.setattr(
        _learner,
        "make_network",
        lambda _, channels: resnet_small(channels=channels, width=4, blocks=(1, 1)),
    )
    assert find("methods", name)
    dataset = made.dataset(kind=kind)
    spec = replace(
        made.spec(splits=("test",), **training), method=Part(name=name, options=options)
    )
    run_alone(spec, dataset, tmp_path / "whole")

    class Stop:
        message = made.CallbackLog().message

        def epoch(self, *values):
            if values[1] == 2:
                raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_alone(spec, dataset, tmp_path / "broken", callbacks=Stop())
    run_alone(spec, dataset, tmp_path / "broken")
    one, other = (
        predictions.read(tmp_path / folder / "predictions/test.safetensors")
        for folder in ("whole", "broken")
    )
    key = "mean" if kind == "regression" else "probs"
    assert len(one.arrays[key]) == (1 if name == "temperature" else 3)
    assert (one.arrays[key] == other.arrays[key]).all()
