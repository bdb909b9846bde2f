import math

import pytest
import torch
from torch import nn

from methods.tiny import (
    TASKS,
    backbone,
    batches,
    built,
    made,
    moment,
    predicted,
    trained,
)
from methods.url_cases import FEATURES, normal, uniform
from qualms.methods.sngp import RandomFeatures, mean_field, orthogonal_rows
from qualms.spec import Task

TASK = TASKS["classification"]


def process(ridge=1.0):
    made_of = RandomFeatures(
        16, 7, features=32, layer_norm=True, length_scale=1.0, ridge=ridge
    )
    made_of.weight = normal(80, 32, 16)
    made_of.bias = uniform(81, 0, 2 * math.pi, 32)
    made_of.linear.weight.data = 0.01 * normal(82, 7, 32)
    return made_of.double()


def test_logits_have_the_golden_values(golden):
    exact = golden("url")["E_heads"]["sngp_train_logits_row0"]
    assert process()(FEATURES)[0].tolist() == pytest.approx(exact, abs=1e-7)


def test_variance_and_mean_field_have_the_golden_values(golden):
    """With the released precision, a running mean, and its ridge."""
    case, made_of = golden("url")["E_heads"], process(ridge=1e-6)
    phi = made_of.phi(FEATURES).detach()
    precision = torch.zeros(32, 32, dtype=torch.float64)
    for _ in range(2):
        precision = 0.999 * precision + 0.001 * phi.T @ phi / 12
    trace = case["sngp_precision_trace_after_two_momentum_updates"]
    assert precision.trace().item() == pytest.approx(trace, rel=1e-5)
    made_of.precision.add_(precision)
    variance = (phi @ made_of.factor()).square().sum(1)
    assert variance.tolist() == pytest.approx(case["sngp_working_pred_var"], rel=1e-3)
    logits = mean_field(made_of(FEATURES), variance)[0].tolist()
    assert logits == pytest.approx(case["sngp_working_meanfield_logits_row0"], abs=1e-6)


def test_the_covariance_is_that_of_equation_7():
    method = made("sngp", {"features": 20})
    network = trained(method, TASK)
    head = network.head.last
    with torch.no_grad():
        phi = torch.cat(
            [head.phi(network.backbone(batch.x)) for batch in batches(TASK)()]
        ).double()
    exact = torch.linalg.inv(torch.eye(20) + phi.T @ phi)
    wanted = ((phi @ exact) * phi).sum(1)
    outputs = predicted(method, network, TASK)
    assert outputs["uncertainty/variance"].tolist() == pytest.approx(
        wanted.tolist(), rel=1e-3
    )
    shrunk = head.linear(phi.float()) / (1 + wanted.float()).sqrt()[:, None]
    assert outputs["probs"][0] == pytest.approx(shrunk.softmax(1).detach(), abs=1e-5)


def test_the_precision_grows_with_an_epoch_and_starts_anew():
    method = made("sngp", {"features": 20})
    network = built(method, TASK).train()
    head = network.head.last
    calls = []
    for epoch in range(2):
        method.epoch(network, moment(epoch), batches(TASK))
        assert torch.equal(head.precision, torch.eye(20, dtype=torch.float64))
        for batch in batches(TASK)():
            method.loss(network, batch, moment(epoch))
        calls.append(head.precision.trace().item())
    # The square of a cosine is 1/2 on average.
    assert calls == pytest.approx([20 + 48 * 20 / 2] * 2, rel=0.1)
    network.eval()
    method.loss(network, batch, moment(1))
    assert head.precision.trace().item() == calls[1]


def test_what_is_far_from_training_items_is_uncertain():
    torch.manual_seed(0)
    made_of = RandomFeatures(
        4, 3, features=500, layer_norm=False, length_scale=1.0, ridge=1.0
    )
    near = torch.randn(300, 4) * 0.3
    made_of.update(made_of.phi(near))
    factor = made_of.factor().float()
    close, far = (
        (made_of.phi(x) @ factor).square().sum(1).mean().item()
        for x in (near, near + 5)
    )
    assert far > 20 * close


def test_random_features_have_a_gaussian_kernel():
    torch.manual_seed(0)
    scale = 2.0
    made_of = RandomFeatures(
        6, 3, features=6000, layer_norm=False, length_scale=scale, ridge=1.0
    )
    one, other = torch.randn(2, 10, 6).unbind(0)
    kernel = 2 * (made_of.phi(one) * made_of.phi(other)).mean(1)
    exact = (-(one - other).square().sum(1) / (2 * scale**2)).exp()
    assert kernel.tolist() == pytest.approx(exact.tolist(), abs=0.06)


def test_rows_are_orthogonal_within_blocks():
    torch.manual_seed(0)
    rows = orthogonal_rows(12, 8)
    gram = rows @ rows.T
    for block in (slice(0, 8), slice(8, 12)):
        inner = gram[block, block]
        assert inner - inner.diagonal().diag() == pytest.approx(
            torch.zeros_like(inner), abs=1e-4
        )
    lengths = torch.linalg.vector_norm(orthogonal_rows(4000, 8), dim=1).square()
    assert lengths.mean().item() == pytest.approx(8, rel=0.05)
    assert lengths.std().item() == pytest.approx(4, rel=0.1)


def test_every_convolution_but_the_first_is_bounded():
    method = made("sngp", {"spectral_bound": 0.5, "features": 8})
    network = built(method, TASK)
    layers = [m for m in network.backbone.modules() if isinstance(m, nn.Conv2d)]
    bounded = [hasattr(layer, "parametrizations") for layer in layers]
    assert bounded == [False] + [True] * (len(layers) - 1)
    first = dict(backbone(TASK).named_parameters())
    assert len(first) == len(dict(network.backbone.named_parameters()))
    trained(method, TASK)


def test_networks_without_convolutions_have_nothing_to_bound():
    class Flat(nn.Module):
        features = 4

    method = made("sngp", {"spectral_bound": 1.0})
    with pytest.raises(ValueError, match="networks with 2-D convolutions"):
        method.build(Flat(), TASK)


def test_two_classes_have_two_logits():
    task = Task(name="classification", classes=2)
    method = made("sngp", {"features": 8})
    outputs = predicted(method, built(method, task), task)
    assert outputs["probs"].shape == (1, 48, 2)
    assert outputs["uncertainty/variance"].isfinite().all()


def test_impossible_options_are_refused():
    with pytest.raises(ValueError, match="length_scale and ridge positive"):
        made("sngp", {"ridge": 0.0})
