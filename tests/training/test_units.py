"""Numbers in any unit are learned alike, and predicted in their own."""

from dataclasses import replace

import numpy as np
import pytest

from qualms.predictions import read
from qualms.training import TrainingError, run
from training import made


@pytest.mark.parametrize("method", ["gaussian", "quantile", "laplace"])
def test_another_unit_gives_the_same_predictions_in_that_unit(method, tmp_path):
    from qualms.spec import Part

    plain = made.dataset()
    moved = {
        name: replace(split, target=(1000 * split.target + 5e4).astype(np.float32))
        for name, split in plain.splits.items()
    }
    found = []
    for place, dataset in (("a", plain), ("b", replace(plain, splits=moved))):
        spec = replace(
            made.spec(scale_targets=True, epochs=2),
            method=Part(name=method),
            network=Part(name="resnet_small", options={"width": 2}),
        )
        run(spec, dataset, tmp_path / place, device="cpu")
        path = tmp_path / place / "predictions" / "test.safetensors"
        found.append(read(path).arrays)
    mine, theirs = found
    for name in {"mean", "lower", "upper"} & mine.keys():
        np.testing.assert_allclose(1000 * mine[name] + 5e4, theirs[name], rtol=1e-4)
    if "var" in mine:
        np.testing.assert_allclose(1e6 * mine["var"], theirs["var"], rtol=1e-2)
    np.testing.assert_allclose(1000 * mine["target"] + 5e4, theirs["target"], rtol=1e-6)


def test_classes_have_no_unit(tmp_path, monkeypatch):
    made.put_on_shelf(monkeypatch)
    with pytest.raises(TrainingError, match="scale_targets=true is for targets that"):
        run(
            made.spec(scale_targets=True),
            made.dataset(kind="classification"),
            tmp_path,
            device="cpu",
        )
