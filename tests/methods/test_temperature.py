"""Temperature scaling against a search by SciPy and the laws of a temperature."""

import numpy as np
import pytest
import torch
from scipy.optimize import minimize_scalar
from scipy.special import log_softmax

from methods.tiny import TASKS, batches, built, data, made, predicted, trained
from qualms.methods import Batch
from qualms.spec import Task


def nll(logits, target, value):
    logs = log_softmax(logits / value, axis=1)
    return -logs[np.arange(len(target)), target].mean()


def best(logits, target):
    return minimize_scalar(
        lambda log: nll(logits, target, np.exp(log)), bounds=(-4, 4), method="bounded"
    )


def calibrated(task, factor=5.0):
    """A network that is far too certain, and its temperature on the items."""
    method = made("temperature")
    network = trained(method, task)
    with torch.no_grad():
        network.head.last.weight *= factor
        network.head.last.bias *= factor
        method.calibrate(network.eval(), batches(task))
    return method, network


@pytest.mark.parametrize("classes", [2, 3])
def test_no_temperature_has_a_smaller_nll(classes):
    task = Task(name="classification", classes=classes)
    method = made("temperature")
    network = built(method, task)
    x, target = data(TASKS["classification"])
    target = target.clamp(max=classes - 1)
    with torch.no_grad():
        network.head.last.weight *= 20
        method.calibrate(network.eval(), lambda: iter([Batch(x=x, target=target)]))
        logits = network(x).double()
    if classes == 2:
        logits = torch.cat([torch.zeros_like(logits), logits], 1)
    found = network.fitted.get("temperature").item()
    expected = best(logits.numpy(), target.numpy())
    assert nll(logits.numpy(), target.numpy(), found) <= expected.fun + 1e-9


def test_pixels_with_a_label_share_a_temperature():
    task = TASKS["segmentation"]
    _, network = calibrated(task)
    x, target = data(task)
    with torch.no_grad():
        logits = network(x).double().movedim(1, -1).flatten(0, -2).numpy()
    target = target.flatten().numpy()
    known = target != task.ignore
    expected = best(logits[known], target[known])
    found = network.fitted.get("temperature").item()
    assert found == pytest.approx(np.exp(expected.x), rel=1e-3)


def test_classes_stay_and_probabilities_are_those_of_the_divided_logits():
    task = TASKS["classification"]
    method, network = calibrated(task)
    value = network.fitted.get("temperature")
    outputs = predicted(method, network, task)["probs"][0]
    with torch.no_grad():
        logits = network(data(task)[0])
    assert torch.equal(outputs.argmax(1), logits.argmax(1))
    assert torch.allclose(outputs, (logits / value).softmax(1))


def test_a_scale_of_the_logits_goes_into_the_temperature():
    task = TASKS["classification"]
    one, two = (calibrated(task, factor)[1] for factor in (2.0, 6.0))
    ratio = two.fitted.get("temperature") / one.fitted.get("temperature")
    assert ratio.item() == pytest.approx(3, rel=1e-3)


def test_it_starts_from_the_weights_of_the_plain_network():
    task = TASKS["classification"]
    plain, own = (built(made(n), task).state_dict() for n in ("map", "temperature"))
    assert plain.keys() == own.keys()


def test_items_of_no_known_class_are_refused():
    task, method = TASKS["classification"], made("temperature")
    network = built(method, task).eval()
    x = data(task)[0]
    unknown = Batch(x=x, target=torch.full((len(x),), -1))
    with (
        torch.no_grad(),
        pytest.raises(ValueError, match="needs items with a known class"),
    ):
        method.calibrate(network, lambda: iter([unknown]))
