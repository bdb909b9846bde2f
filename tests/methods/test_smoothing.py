import pytest
import torch

from methods.tiny import TASKS, backbone, batches, built, made, moment
from methods.url_cases import LOGITS, TARGET
from qualms.methods import Batch, likelihood_loss
from qualms.spec import Task

WITH_SMOOTHING = ("map", "mc_dropout", "head_ensemble", "hetxl", "sngp")


def test_smoothed_labels_have_the_golden_value(golden):
    case = golden("url")["D_losses"]
    batch = Batch(x=LOGITS, target=TARGET)
    task = Task(name="classification", classes=7)
    for smoothing, name in ((0.0, "cross_entropy"), (0.1, "label_smoothing_0.1")):
        loss = likelihood_loss(LOGITS, batch, task, smoothing=smoothing)
        assert loss.item() == pytest.approx(case[name], rel=1e-12)


@pytest.mark.parametrize("name", WITH_SMOOTHING)
def test_smoothing_changes_the_loss_and_is_off_by_default(name):
    task = TASKS["classification"]
    losses = []
    for options in ({}, {"smoothing": 0.0}, {"smoothing": 0.3}):
        method = made(name, options)
        network = built(method, task).eval()
        (batch,) = batches(task, size=48)()
        torch.manual_seed(1)
        losses.append(method.loss(network, batch, moment()).item())
    assert losses[0] == losses[1]
    assert losses[0] != losses[2]


def test_one_logit_of_two_classes_is_smoothed_as_two():
    task = Task(name="classification", classes=2)
    one, target = torch.randn(9, 1), torch.arange(9) % 2
    batch = Batch(x=one, target=target)
    two = torch.cat([torch.zeros_like(one), one], 1)
    losses = [
        likelihood_loss(outputs, batch, task, smoothing=0.2) for outputs in (one, two)
    ]
    assert losses[0] == losses[1]


@pytest.mark.parametrize("name", WITH_SMOOTHING)
def test_a_share_of_one_leaves_no_label(name):
    with pytest.raises(ValueError, match="smoothing must be at least 0 and below 1"):
        made(name, {"smoothing": 1.0})


@pytest.mark.parametrize("name", ["map", "mc_dropout"])
def test_numbers_are_not_smoothed(name):
    task = TASKS["regression"]
    with pytest.raises(ValueError, match="smoothing is for labels of classes"):
        made(name, {"smoothing": 0.1}).build(backbone(task), task)
