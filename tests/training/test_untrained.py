"""Runs that predict with the weights of another run, without training."""

import json
import re

import numpy as np
import pytest
import torch

from qualms import predictions
from qualms.runs import read_costs
from qualms.training import TrainingError, run_alone
from training import made


def lent(first, method="dropout", **options):
    return made.spec(method=method, start=first.hash, **{"epochs": 0, **options})


def weights(folder):
    return torch.load(folder / "checkpoint.pt", weights_only=True)["network"]


def facts(folder):
    return json.loads((folder / "done.json").read_text())


def test_it_predicts_with_the_weights_that_the_other_run_selected(shelf, tmp_path):
    dataset, first = made.dataset(), made.spec(select_by="val_loss", lr=0.3, epochs=5)
    run_alone(first, dataset, tmp_path / first.hash)
    same, drawn = lent(first, "plain"), lent(first)
    for spec in (same, drawn):
        run_alone(spec, dataset, tmp_path / spec.hash)
    held = weights(tmp_path / first.hash)
    for name, part in weights(tmp_path / same.hash).items():
        assert torch.equal(part, held[name])
    one, other, draws = (
        predictions.read(tmp_path / spec.hash / "predictions/test.safetensors")
        for spec in (first, same, drawn)
    )
    np.testing.assert_array_equal(one.arrays["mean"], other.arrays["mean"])
    assert draws.arrays["mean"].shape == (3, 30)
    assert draws.header.method == "dropout"


def test_it_costs_the_training_of_its_weights_and_what_it_fits_itself(shelf, tmp_path):
    fitted = []
    shelf(fits={"after": lambda _, batches: fitted.append(len([*batches()]))})
    dataset, first = made.dataset(), made.spec()
    run_alone(first, dataset, tmp_path / first.hash)
    second = lent(first, "fits", predict_batch=10)
    run_alone(second, dataset, tmp_path / second.hash)
    assert fitted == [5]
    before, after = (facts(tmp_path / spec.hash) for spec in (first, second))
    assert after["seconds"] > before["seconds"]
    assert (after["epochs"], after["steps"], after["images_per_second"]) == (0, 0, None)
    assert read_costs(tmp_path / second.hash).training == after["seconds"]


def test_killed_while_it_predicts_it_goes_on_without_the_other_run(shelf, tmp_path):
    dataset, first = made.dataset(), made.spec()
    run_alone(first, dataset, tmp_path / first.hash)
    second = lent(first)
    folder = tmp_path / second.hash
    run_alone(second, dataset, folder)
    before = predictions.read(folder / "predictions/test.safetensors").arrays["mean"]
    (folder / "done.json").unlink()
    (folder / "predictions/test.safetensors").unlink()
    (tmp_path / first.hash / "checkpoint.pt").unlink()
    run_alone(second, dataset, folder)
    after = predictions.read(folder / "predictions/test.safetensors").arrays["mean"]
    np.testing.assert_array_equal(after, before)


def test_weights_of_another_network_are_refused(shelf, tmp_path):
    first = made.spec()
    run_alone(first, made.dataset(), tmp_path / first.hash)
    shelf(network=lambda channels: made.Tiny(channels, outputs=2))
    second = lent(first)
    with pytest.raises(TrainingError, match="whose network is another one"):
        run_alone(second, made.dataset(), tmp_path / second.hash)


@pytest.mark.parametrize("damaged", [True, False])
def test_a_finished_run_whose_weights_are_lost_is_to_be_made_again(
    shelf, tmp_path, damaged
):
    first = made.spec()
    folder = tmp_path / first.hash
    run_alone(first, made.dataset(), folder)
    if damaged:
        (folder / "checkpoint.pt").write_bytes(b"nothing")
    else:
        (folder / "checkpoint.pt").unlink()
    message = f"finished, but its checkpoint is missing or damaged; delete {folder} and"
    spec = lent(first)
    with pytest.raises(TrainingError, match=re.escape(message)):
        run_alone(spec, made.dataset(), tmp_path / spec.hash)


def test_without_weights_there_must_be_training(shelf, tmp_path):
    with pytest.raises(TrainingError, match="epochs=0 trains nothing"):
        run_alone(made.spec(epochs=0), made.dataset(), tmp_path)
