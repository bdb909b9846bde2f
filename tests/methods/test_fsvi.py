from dataclasses import replace

import pytest
import torch
from torch import nn
from torch.distributions import Normal, kl_divergence
from torch.func import functional_call, jacrev
from torch.nn import functional

from methods.tiny import TASKS, batches, built, made, moment, predicted, trained
from qualms.methods import last_inputs, likelihood_loss
from qualms.methods.fsvi import _divergence, _GaussianLast
from qualms.spec import Task

TASK = TASKS["classification"]


def network_of(options=None, task=TASK):
    """A network whose variances are large enough to matter."""
    network = built(made("fsvi", options), task).train()
    with torch.no_grad():
        network.head.last.log_variance.uniform_(-3.0, -1.0)
    return network


@pytest.mark.parametrize("task", ["classification", "regression"])
def test_variance_is_that_of_the_explicit_jacobian(task):
    network = network_of(task=TASKS[task]).eval()
    last, x = network.head.last, torch.randn(5, 1, 16, 16)
    inputs = last_inputs(network, x)
    means = {name: p.detach() for name, p in last.mean.named_parameters()}
    jacobian = jacrev(lambda m: functional_call(last.mean, m, (inputs,)))(means)
    logs = last.log_variance.detach()
    variances = {"weight": logs[:, :-1].exp(), "bias": logs[:, -1].exp()}
    expected = torch.zeros(5, len(logs))
    for name, slopes in jacobian.items():  # (B, K, *weights)
        expected += (slopes.square() * variances[name]).flatten(2).sum(2)
    torch.testing.assert_close(last.variance(inputs), expected)


def test_draws_have_the_linearised_mean_and_variance():
    """The layer is linear in its weights, so nothing is lost."""
    torch.manual_seed(0)
    last, inputs = _GaussianLast(6, 2), torch.randn(3, 6)
    with torch.no_grad():
        last.log_variance.uniform_(-3.0, 0.0)
        draws = last.draws(inputs, 100_000)
        assert draws.shape == (100_000, 3, 2)
        torch.testing.assert_close(draws.mean(0), last.mean(inputs), atol=0.05, rtol=0)
        torch.testing.assert_close(
            draws.var(0), last.variance(inputs), rtol=0.03, atol=0
        )


def test_divergence_is_that_of_gaussians():
    torch.manual_seed(0)
    mean, variance = torch.randn(10, 2), torch.rand(10, 2) + 0.1
    posterior, prior = Normal(mean, variance.sqrt()), Normal(0.0, 7.0**0.5)
    found = _divergence(mean, variance, 7.0).item()
    assert found == pytest.approx(kl_divergence(posterior, prior).sum().item())
    drawn = posterior.sample((200_000,))
    sampled = (posterior.log_prob(drawn) - prior.log_prob(drawn)).mean(0).sum()
    assert found == pytest.approx(sampled.item(), rel=0.01)


@pytest.mark.parametrize("stochastic", [False, True])
def test_loss_is_the_released_objective(stochastic):
    """-(LL - KL / n) / B, with LL summed over the batch and averaged over draws."""
    n, count, size, prior = 7, 4, 16, 3.0
    options = {"prior_cov": prior, "inducing": n, "train_draws": count}
    options["stochastic_linearisation"] = stochastic
    network = network_of(options)
    batch = next(batches(TASK, size=size)())
    torch.manual_seed(4)
    found = made("fsvi", options).loss(network, batch, moment(batch=size))
    torch.manual_seed(4)
    last, inputs = network.head.last, last_inputs(network, batch.x)
    draws = last.draws(inputs, count).log_softmax(2)
    fit = draws.gather(2, batch.target.expand(count, -1)[..., None]).mean(0).sum()
    mean = last.draws(inputs[:n], 1)[0] if stochastic else last.mean(inputs[:n])
    posterior = Normal(mean, last.variance(inputs[:n]).sqrt())
    pull = kl_divergence(posterior, Normal(0.0, prior**0.5)).sum()
    torch.testing.assert_close(found, -(fit - pull / n) / size)


def test_l2_acts_on_the_parameters_of_normalisation():
    network = network_of()
    (batch,) = batches(TASK, size=48)()
    losses = []
    for l2 in (0.0, 0.5):
        torch.manual_seed(4)
        losses.append(made("fsvi", {"l2": l2}).loss(network, batch, moment()))
    norms = [m for m in network.modules() if isinstance(m, nn.BatchNorm2d)]
    squares = sum(m.weight.square().sum() + m.bias.square().sum() for m in norms)
    torch.testing.assert_close(losses[1] - losses[0], 0.5 * squares)


def test_two_classes_have_two_logits_and_the_released_beginning():
    torch.manual_seed(0)
    network = made("fsvi").build(_Wide(), Task(name="classification", classes=2))
    last = network.head.last
    assert network(torch.zeros(3, 400)).shape == (3, 2)
    bound = 400**-0.5
    assert 0.95 * bound < last.mean.weight.abs().max().item() <= bound
    logs = last.log_variance
    assert (logs.min() >= -20) & (logs.max() <= -18)
    assert logs.mean().item() == pytest.approx(-19, abs=0.05)


class _Wide(nn.Module):
    features = 400
    head_sd = 0.01  # which is for plain classifiers

    def forward(self, x):
        return x


def test_draws_and_inducing_inputs_share_one_pass():
    method, passes = made("fsvi"), []
    network = built(method, TASK)
    network.backbone.register_forward_hook(lambda *_: passes.append(1))
    (batch,) = batches(TASK, size=48)()
    method.loss(network.train(), batch, moment())
    assert len(passes) == 1
    probs = predicted(method, network, TASK)["probs"]
    assert len(passes) == 2
    assert probs.shape == (5, 48, 3)


def test_a_batch_may_have_fewer_items_than_inducing_inputs():
    method = made("fsvi", {"inducing": 100})
    network = network_of()
    (batch,) = batches(TASK, size=48)()
    torch.manual_seed(1)
    loss_value = method.loss(network, batch, moment())
    torch.manual_seed(1)
    expected = made("fsvi", {"inducing": 48}).loss(network, batch, moment())
    assert torch.equal(loss_value, expected)


def test_the_prior_reaches_spreads_and_features():
    """The variance of functions grows towards the prior's, where data leave it room."""
    method = made("fsvi", {"prior_cov": 4.0})
    network = built(method, TASK)
    x = batches(TASK, size=48)
    (batch,) = x()
    before = network.head.last.variance(last_inputs(network, batch.x)).mean()
    method.loss(network.train(), batch, moment()).backward()
    last = network.head.last
    assert last.log_variance.grad.lt(0).all()  # a step makes all of them larger
    after = trained(method, TASK, epochs=range(30), lr=0.1)
    grown = after.head.last.variance(last_inputs(after, batch.x)).mean()
    assert grown > 10 * before


def test_l2_and_weight_decay_leave_the_last_layer_alone():
    network = network_of()
    kernels, steady, random = made("fsvi").groups(network)
    assert "weight_decay" not in kernels
    assert steady["weight_decay"] == random["weight_decay"] == 0.0
    last = {id(p) for p in network.head.last.parameters()}
    assert {id(p) for p in random["params"]} == last
    count = sum(len(group["params"]) for group in (kernels, steady, random))
    assert count == len(list(network.parameters()))


def test_weights_of_items_count():
    method, network = made("fsvi", {"train_draws": 1}), network_of()
    (batch,) = batches(TASK, size=48)()
    weighted = type(batch)(x=batch.x, target=batch.target, weight=torch.rand(48))
    found = []
    for this in (batch, weighted):
        torch.manual_seed(6)
        loss = method.loss(network, this, moment())
        torch.manual_seed(6)
        outputs = network.head.last.draws(last_inputs(network, batch.x), 1)[0]
        found.append(loss - likelihood_loss(outputs, this, TASK))
    torch.testing.assert_close(found[0], found[1])


def test_regression_reads_the_hidden_layer_of_the_plain_head():
    network = built(made("fsvi"), TASKS["regression"])
    assert network.head.last.mean.in_features == 512
    features = torch.randn(4, network.backbone.features)
    expected = functional.relu(network.head.trunk[0](features))
    assert torch.equal(network.head.trunk(features), expected)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"prior_cov": 0.0}, "prior_cov must be positive, got 0.0"),
        ({"l2": -1.0}, "l2 must not be negative, got -1.0"),
        ({"inducing": 0}, "must be at least 1, got 0, 5 and 5"),
        ({"draws": 0}, "must be at least 1, got 10, 5 and 0"),
    ],
)
def test_options_out_of_range_are_refused(options, sentence):
    with pytest.raises(ValueError, match=sentence):
        made("fsvi", options)


def test_the_pull_does_not_depend_on_how_a_batch_is_cut():
    options = {"inducing": 4}
    network = network_of(options).eval()
    (batch,) = batches(TASK, size=48)()
    when = moment()
    loss, free = made("fsvi", options).loss, made("fsvi", {**options, "prior_cov": 1e9})

    def pull(size):
        """Mean over the parts of a batch of what the prior adds, up to a constant."""
        found = []
        for first in range(0, 48, size):
            part = replace(
                batch,
                x=batch.x[first : first + size],
                target=batch.target[first : first + size],
            )
            torch.manual_seed(first)
            with_prior = loss(network, part, when)
            torch.manual_seed(first)
            found.append(with_prior - free.loss(network, part, when))
        return torch.stack(found).mean().item()

    assert pull(12) == pytest.approx(pull(48), rel=0.2)  # other items, the same weight
