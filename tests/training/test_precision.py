"""Options that must not change results beyond their precision."""

import shutil

import pytest
import torch

from qualms import predictions
from qualms.training import run_alone
from training import made

pytestmark = pytest.mark.slow


def mean(folder, **options):
    run_alone(made.spec(**options), made.dataset(), folder)
    found = predictions.read(folder / "predictions/test.safetensors")
    return torch.from_numpy(found.arrays["mean"])


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("precision", ["bf16", "fp16"])
def test_mixed_precision_stays_close(shelf, tmp_path, precision):
    full = mean(tmp_path / "full")
    low = mean(tmp_path / "low", precision=precision)
    assert not torch.equal(full, low)
    torch.testing.assert_close(full, low, rtol=0.05, atol=0.1)


@pytest.mark.filterwarnings("ignore")
def test_looks_are_as_precise_as_training_and_predictions_are_exact(shelf, tmp_path):
    kinds = {"look": set(), "prediction": set()}

    def loss(network, batch, moment):
        outputs = network(batch.x)
        kinds["look"].add(outputs.dtype)
        return (outputs[:, 0] - batch.target).square().mean()

    def predict(network, x, task):
        outputs = network(x)[:, 0]
        kinds["prediction"].add(outputs.dtype)
        return {"mean": outputs[None]}

    shelf(plain={"loss": loss, "predict": predict, "select": {}})
    mean(tmp_path, precision="bf16", select_by="val_loss")
    assert kinds == {"look": {torch.bfloat16}, "prediction": {torch.float32}}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.skipif(shutil.which("g++") is None, reason="there is no compiler here")
def test_a_compiled_network_stays_close(shelf, tmp_path):
    shelf(network=made.Bare)  # compiled dropout draws other numbers
    plain = mean(tmp_path / "plain")
    torch.testing.assert_close(
        plain, mean(tmp_path / "compiled", compile=True), rtol=1e-3, atol=1e-3
    )
