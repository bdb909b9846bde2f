"""The callback of Lightning, driven as its Trainer drives callbacks.

`tests/readers/test_tools.py` drives it by Lightning itself.
"""

import sys
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest
import torch

import qualms
from qualms.predictions import SegmentationWriter, read
from qualms.trained import lightning_callback

TRAINER = SimpleNamespace(world_size=1, sanity_checking=False)


@pytest.fixture(autouse=True)
def lightning(monkeypatch):
    """A package with the class of callbacks alone."""
    package = ModuleType("lightning.pytorch")
    package.Callback = type("Callback", (), {})
    monkeypatch.setitem(sys.modules, "lightning", ModuleType("lightning"))
    monkeypatch.setitem(sys.modules, "lightning.pytorch", package)
    return package


def run_test(callback, outputs):
    callback.on_test_start(TRAINER, None)
    for number, output in enumerate(outputs):
        callback.on_test_batch_end(TRAINER, None, output, None, number)


def test_batches_of_every_run_are_collected(lightning):
    probs = torch.softmax(torch.randn(30, 3, requires_grad=True), 1)
    target = torch.randint(0, 3, (30,))
    collected = qualms.Accumulator("classification")
    callback = lightning_callback(collected)
    assert isinstance(callback, lightning.Callback)
    batches = [
        {"probs": probs[k : k + 10], "target": target[k : k + 10], "loss": 0.5}
        for k in (0, 10, 20)
    ]
    run_test(callback, batches)
    run_test(callback, batches)  # a second run replaces the first
    assert len(collected) == 30
    arrays = collected.predictions().arrays
    np.testing.assert_allclose(arrays["probs"][0], probs.detach(), atol=1e-6)


def test_segmentations_are_written_item_by_item(tmp_path):
    draws = torch.softmax(torch.randn(4, 2, 3, 6, 5), 2)
    target = torch.randint(0, 3, (2, 6, 5), dtype=torch.uint8)
    with SegmentationWriter(tmp_path / "maps") as writer:
        callback = lightning_callback(writer, stage="predict")
        output = {"item": ["a", "b"], "draws": draws, "target": target}
        callback.on_predict_start(TRAINER, None)
        callback.on_predict_batch_end(TRAINER, None, output, None, 0)
        alone = {"item": ["c", "d"], "probs": draws[0], "raters": target[:, None]}
        callback.on_predict_batch_end(TRAINER, None, alone, None, 1)
    found = read(tmp_path / "maps")
    assert found.arrays["item"].tolist() == ["a", "b", "c", "d"]
    np.testing.assert_allclose(found.maps[1].mean_probs, draws[:, 1].mean(0), atol=1e-6)
    assert [len(maps.draw_labels) for maps in found.maps] == [4, 4, 1, 1]
    np.testing.assert_array_equal(found.maps[1].raters[0], target[1])


def test_sanity_checks_are_not_collected():
    collected = qualms.Accumulator("classification")
    callback = lightning_callback(collected, stage="validation")
    checking = SimpleNamespace(world_size=1, sanity_checking=True)
    output = {"probs": [[0.2, 0.8]], "target": [1]}
    callback.on_validation_start(checking, None)
    callback.on_validation_batch_end(checking, None, output, None, 0)
    assert len(collected) == 0


def test_what_cannot_be_collected_is_refused(tmp_path, monkeypatch):
    collected = qualms.Accumulator("classification")
    with pytest.raises(
        ValueError, match="must be one of test, validation, predict, got"
    ):
        lightning_callback(collected, stage="fit")
    with pytest.raises(TypeError, match=r"fills a qualms.Accumulator or a Segm.* list"):
        lightning_callback([])
    with pytest.raises(ValueError, match="test_step must return a mapping of arrays"):
        run_test(lightning_callback(collected), [torch.ones(3)])
    with pytest.raises(ValueError, match="each of 2 processes would collect its own"):
        lightning_callback(collected).on_test_start(
            SimpleNamespace(world_size=2, sanity_checking=False), None
        )
    with (
        pytest.raises(
            ValueError, match="must return 'item', and 'probs' or 'draws', got"
        ),
        SegmentationWriter(tmp_path / "maps") as writer,
    ):
        run_test(lightning_callback(writer), [{"probs": torch.ones(1, 2, 3, 3)}])
    for name in ("lightning.pytorch", "pytorch_lightning"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(ImportError, match="needs Lightning, which is not installed"):
        lightning_callback(collected)
