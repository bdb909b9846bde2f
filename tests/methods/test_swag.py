"""SWAG against moments that NumPy computes of the weights on the way."""

import numpy as np
import pytest
import torch
from torch import nn
from torch.optim.swa_utils import update_bn

from methods.tiny import (
    TASKS,
    batches,
    built,
    data,
    made,
    moment,
    predicted,
    trained,
)
from qualms.methods._weights import all_parts, assign, flattened, trained_parts
from qualms.methods.swag import draw_weights, swag

TASK = TASKS["classification"]


def walked(method, epochs, *, count=12):
    """A network that collected on a random walk, and the weights after each epoch."""
    network = built(method, TASK)
    parts, path = trained_parts(network), []
    torch.manual_seed(1)
    for epoch in range(count):
        with torch.no_grad():
            method.epoch(network, moment(epoch, epochs=epochs), batches(TASK))
            for part in parts:
                part += 0.1 * torch.randn_like(part)
        path.append(flattened(parts).double().numpy())
    return network, np.array(path)


def by_numpy(path, rank):
    """Mean and covariance of equation 1, with deviations from the running mean."""
    mean = path.mean(0)
    running = np.cumsum(path, 0) / np.arange(1, len(path) + 1)[:, None]
    columns = (path - running)[-rank:]
    low_rank = columns.T @ columns / (len(columns) - 1)
    return mean, (np.diag(path.var(0)) + low_rank) / 2


@pytest.mark.parametrize("rank", [4, 20])
def test_moments_are_those_of_the_collected_weights(rank):
    network, path = walked(swag(start=0.5, rank=rank), 12)
    collected = path[5:11]  # 6 to 11 epochs are done
    found = network.fitted
    assert found.get("count") == 6
    np.testing.assert_allclose(found.get("mean"), collected.mean(0), atol=1e-5)
    var = found.get("squares") / 6
    np.testing.assert_allclose(var, collected.var(0), rtol=1e-3, atol=1e-7)


@pytest.mark.parametrize("rank", [3, 20])
def test_draws_have_the_mean_and_covariance_of_the_paper(rank):
    network, path = walked(swag(start=0.0, rank=rank), 9, count=8)
    few = slice(None, 6)
    torch.manual_seed(0)
    drawn = torch.stack([draw_weights(network)[few] for _ in range(20_000)]).numpy()
    mean, covariance = by_numpy(path[:7, few], rank)
    size = np.sqrt(np.diag(covariance)).max()
    np.testing.assert_allclose(drawn.mean(0), mean, atol=0.04 * size)
    np.testing.assert_allclose(np.cov(drawn.T), covariance, atol=0.05 * size**2)


def test_statistics_of_each_draw_are_those_of_torch():
    method = swag(start=0.0, draws=2)
    network = trained(method, TASK)
    reference = built(method, TASK)
    (one, two) = network.fitted.get("weights")
    assert not torch.equal(one, two)
    assign(all_parts(reference), two)
    update_bn([batch.x for batch in batches(TASK)()], reference)
    found = flattened(all_parts(reference))
    np.testing.assert_allclose(found, two, rtol=1e-5, atol=1e-6)


def test_predicting_leaves_the_network_as_it_is():
    method = swag(start=0.0, draws=3)
    network = trained(method, TASK)
    before = {name: part.clone() for name, part in network.state_dict().items()}
    outputs = predicted(method, network, TASK)
    assert outputs["probs"].shape[0] == 3
    assert all(torch.equal(part, before[n]) for n, part in network.state_dict().items())
    momenta = [m.momentum for m in network.modules() if isinstance(m, nn.BatchNorm2d)]
    assert momenta
    assert None not in momenta
    assert not any(module.training for module in network.modules())


def test_without_collected_epochs_all_draws_are_the_network():
    method = swag(start=0.9, draws=2, rank=1)
    network = trained(method, TASK)
    one, two = network.fitted.get("weights")
    assert torch.equal(one, two)


def test_heads_on_cached_features_are_drawn_alone():
    from qualms.training._features import head_on_features, layers_of

    method = swag(start=0.0, draws=2)
    network = built(method, TASK)
    head = head_on_features(network, layers_of(network.backbone))
    x = data(TASK)[0]
    torch.manual_seed(0)
    with torch.no_grad():
        for epoch in range(1, 4):
            network.head.last.bias += 1.0 + torch.arange(3)
            method.epoch(head, moment(epoch), batches(TASK))
        method.after(head, batches(TASK))
        outputs = method.predict(network.eval(), x, TASK)["probs"]
        assert network.fitted.get("weights").shape[1] < sum(
            part.numel() for part in network.parameters()
        )
        for draw, values in zip(outputs, network.fitted.get("weights"), strict=True):
            assign(trained_parts(network), values)
            assert torch.allclose(network(x).softmax(1), draw)


def test_the_rate_falls_to_a_constant_before_weights_are_collected():
    time = torch.tensor([0.0, 25.0, 35.0, 45.0, 99.0], dtype=torch.float64)
    factors = swag(start=0.5, rate=0.2).schedule(time, 100)
    np.testing.assert_allclose(factors, [1, 1, 0.6, 0.2, 0.2])
    assert swag(rate=None).schedule is None


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"start": 1.0}, "start must be"),
        ({"rank": 0}, "rank and draws must be"),
        ({"rate": 0.0}, "rate must be positive"),
    ],
)
def test_options_are_checked(options, message):
    with pytest.raises(ValueError, match=message):
        made("swag", options)
