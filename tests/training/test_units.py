"""Targets are learned alike in any unit, and predicted in their own unit."""

from dataclasses import replace

import numpy as np
import pytest

from qualms.predictions import read
from qualms.training import TrainingError, run_alone
from training import made


def exact(target):
    """Numbers whose mean and distances from it are exact in either unit.

    Training makes so much of a last digit that some machines would tell them apart.
    """
    parts = (64 * target).round()
    parts[0] -= parts.sum() % len(parts)
    return parts / 64


@pytest.mark.parametrize("method", ["gaussian", "quantile", "laplace"])
def test_another_unit_gives_the_same_predictions_in_that_unit(method, tmp_path):
    from qualms.spec import Part

    dataset = made.dataset()
    found = []
    for place, unit, zero in (("a", 1, 0), ("b", 1024, 50_000)):
        splits = {
            name: replace(split, target=unit * exact(split.target) + zero)
            for name, split in dataset.splits.items()
        }
        spec = replace(
            made.spec(scale_targets=True, epochs=2),
            method=Part(name=method),
            network=Part(name="resnet_small", options={"width": 2}),
        )
        run_alone(spec, replace(dataset, splits=splits), tmp_path / place, device="cpu")
        path = tmp_path / place / "predictions" / "test.safetensors"
        found.append(read(path).arrays)
    mine, theirs = found
    for name in {"mean", "lower", "upper"} & mine.keys():
        np.testing.assert_allclose(1024 * mine[name] + 50_000, theirs[name], rtol=1e-6)
    if "var" in mine:
        np.testing.assert_allclose(1024**2 * mine["var"], theirs["var"], rtol=1e-2)
    np.testing.assert_array_equal(1024 * mine["target"] + 50_000, theirs["target"])


def test_classes_have_no_unit(tmp_path, monkeypatch):
    made.put_on_shelf(monkeypatch)
    with pytest.raises(TrainingError, match="scale_targets=true is for targets that"):
        run_alone(
            made.spec(scale_targets=True),
            made.dataset(kind="classification"),
            tmp_path,
            device="cpu",
        )
