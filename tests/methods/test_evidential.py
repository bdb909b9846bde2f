"""Losses and predictions of evidential networks against distributions of SciPy."""

import numpy as np
import pytest
import torch
from scipy import integrate, stats
from sklearn.datasets import load_digits
from torch import nn

from methods.tiny import TASKS, built, data, made, moment, predicted, trained
from qualms.methods import Batch
from qualms.methods.evidential import (
    dirichlet_divergence,
    dirichlet_entropy,
    dirichlet_losses,
    evidential,
    value_losses,
)
from qualms.spec import Task

ALPHA = np.array([[1.0, 1.0, 1.0], [4.0, 1.5, 1.0], [2.0, 7.0, 3.0]])


def drawn(alpha, count=200_000):
    return stats.dirichlet(alpha).rvs(count, random_state=0)


def test_class_loss_is_the_expected_squared_error():
    found = dirichlet_losses(torch.tensor(ALPHA), torch.tensor([0, 1, 2]), 0.0)
    for k, alpha in enumerate(ALPHA):
        error = (np.eye(3)[k] - drawn(alpha)) ** 2
        assert found[k].item() == pytest.approx(error.sum(1).mean(), rel=5e-3)


def test_divergence_is_the_mean_of_log_densities():
    found = dirichlet_divergence(torch.tensor(ALPHA))
    assert found[0].item() == pytest.approx(0, abs=1e-12)
    for k, alpha in enumerate(ALPHA):
        log = stats.dirichlet(alpha).logpdf(drawn(alpha).T) - np.log(2)
        assert found[k].item() == pytest.approx(log.mean(), rel=1e-2, abs=1e-6)


def test_evidence_of_the_true_class_is_not_misleading():
    alpha = torch.tensor([[9.0, 1.0, 1.0]])
    loss = [dirichlet_losses(alpha, torch.tensor([k]), 1.0).item() for k in (0, 1)]
    plain = [dirichlet_losses(alpha, torch.tensor([k]), 0.0).item() for k in (0, 1)]
    assert loss[0] == pytest.approx(plain[0])
    expected = dirichlet_divergence(alpha).item()
    assert loss[1] - plain[1] == pytest.approx(expected, rel=1e-6)


def test_expected_entropy_is_that_of_draws():
    found = dirichlet_entropy(torch.tensor(ALPHA))
    expected = [stats.entropy(drawn(alpha), axis=1).mean() for alpha in ALPHA]
    np.testing.assert_allclose(found, expected, rtol=5e-3)


def test_divergence_grows_in_the_first_epochs():
    task, method = TASKS["classification"], evidential(annealing=10)
    network = built(method, task).eval()
    x, target = data(task)
    batch = Batch(x=x, target=target)
    with torch.no_grad():
        losses = [
            method.loss(network, batch, moment(step=s)).item() for s in (0, 5, 10, 50)
        ]
    assert losses[1] - losses[0] == pytest.approx((losses[2] - losses[0]) / 2, rel=1e-3)
    assert losses[2] == losses[3] > losses[0]


class Digits(nn.Module):
    """Features of 8 x 8 pixels."""

    features = 64

    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 64))

    def forward(self, x):
        return self.layers(x.flatten(1)).relu()


def test_few_items_are_learned():
    x, target = load_digits(return_X_y=True)
    x, target = torch.tensor(x / 16, dtype=torch.float32), torch.tensor(target)
    torch.manual_seed(0)
    task, method = Task(name="classification", classes=10), evidential()
    network = method.build(Digits(), task).train()
    optimiser = torch.optim.Adam(method.groups(network), lr=5e-3)
    for step in range(300):
        rows = torch.randint(1300, (64,))
        batch = Batch(x=x[rows], target=target[rows])
        optimiser.zero_grad()
        method.loss(network, batch, moment(step=step + 1, steps=300)).backward()
        optimiser.step()
    with torch.no_grad():
        probs = method.predict(network.eval(), x[1300:], task)["probs"][0]
    assert (probs.argmax(1) == target[1300:]).float().mean() > 0.9


@pytest.mark.parametrize(("evidence", "learns"), [("relu", False), ("exp", True)])
def test_a_class_without_evidence_is_learned_unless_it_is_cut_off(evidence, learns):
    task, method = TASKS["classification"], evidential(evidence=evidence)
    network = built(method, task).eval()
    with torch.no_grad():
        network.head.last.bias[0] = -9.0
    x, target = data(task)
    method.loss(network, Batch(x=x, target=target), moment()).backward()
    assert bool(network.head.last.bias.grad[0] != 0) == learns


def parameters(outputs):
    gamma, nu, alpha, beta = outputs
    nu, alpha, beta = np.logaddexp(0, [nu, alpha, beta]) + 1e-6
    return gamma, nu, alpha + 1, beta


OUTPUTS = np.array([[0.3, 0.2, 1.0, -0.5], [-2.0, 1.5, 0.1, 2.0]])


def test_value_loss_is_the_likelihood_of_a_student_distribution():
    target = np.array([1.0, -5.0])
    found = value_losses(torch.tensor(OUTPUTS), torch.tensor(target), 0.0)
    for k, outputs in enumerate(OUTPUTS):
        gamma, nu, alpha, beta = parameters(outputs)
        scale = np.sqrt(beta * (1 + nu) / (nu * alpha))
        student = stats.t(2 * alpha, loc=gamma, scale=scale)
        assert found[k].item() == pytest.approx(-student.logpdf(target[k]), rel=1e-6)


def test_penalty_is_the_error_times_the_evidence():
    target = torch.tensor([1.0, -5.0])
    outputs = torch.tensor(OUTPUTS)
    extra = value_losses(outputs, target, 0.5) - value_losses(outputs, target, 0.0)
    for k, (gamma, nu, alpha, _) in enumerate(map(parameters, OUTPUTS)):
        expected = 0.5 * abs(target[k].item() - gamma) * (2 * nu + alpha)
        assert extra[k].item() == pytest.approx(expected, rel=1e-6)


def test_variance_is_that_of_the_student_distribution():
    task, method = TASKS["regression"], evidential()
    network = trained(method, task)
    found = predicted(method, network, task)
    with torch.no_grad():
        outputs = network(data(task)[0]).double().numpy()
    gamma, nu, alpha, beta = parameters(outputs.T)
    scale = np.sqrt(beta * (1 + nu) / (nu * alpha))
    np.testing.assert_allclose(found["mean"][0], gamma, rtol=1e-5)
    expected = stats.t(2 * alpha, scale=scale).var()
    np.testing.assert_allclose(found["var"][0], expected, rtol=1e-4)


def test_without_evidence_nothing_is_known():
    task, method = TASKS["classification"], evidential(evidence="relu")
    network = built(method, task)
    with torch.no_grad():
        network.head.last.bias.fill_(-1e6)
    outputs = predicted(method, network, task)
    assert (outputs["probs"] == 1 / 3).all()
    assert (outputs["uncertainty/vacuity"] == 1).all()


def test_parts_of_the_entropy_add_up():
    task, method = TASKS["classification"], evidential()
    outputs = predicted(method, trained(method, task), task)
    entropy = stats.entropy(outputs["probs"][0].numpy(), axis=1)
    parts = [
        outputs[f"uncertainty/{name}"]
        for name in ("expected_entropy", "mutual_information")
    ]
    np.testing.assert_allclose(sum(parts), entropy, rtol=1e-5)
    assert (parts[1] > 0).all()


def test_draws_of_labels_follow_the_distribution_of_a_pixel():
    task, method = TASKS["segmentation"], evidential(evidence="relu", draws=3000)
    network = built(method, task)
    with torch.no_grad():
        network.head.last.weight.zero_()
        network.head.last.bias.copy_(torch.tensor([1.0, -1.0, -1.0]))
        outputs = method.predict(network.eval(), data(task)[0][:1, :, :2, :2], task)
    np.testing.assert_allclose(outputs["mean_probs"][0, :, 0, 0], [0.5, 0.25, 0.25])

    def density(p):  # P(class 0 is the largest) of Dirichlet(2, 1, 1)
        rest = 1 - p
        room = np.clip(min(p, rest) - max(0, rest - p), 0, None)
        return stats.dirichlet([2, 1, 1]).pdf([p, rest / 2, rest / 2]) * room

    expected = integrate.quad(density, 1e-9, 1 - 1e-9, points=[1 / 3, 0.5])[0]
    share = (outputs["draw_labels"][:, 0] == 0).float().mean().item()
    assert share == pytest.approx(expected, abs=0.02)


def test_options_are_checked():
    with pytest.raises(ValueError, match="evidence must be 'relu'"):
        made("evidential", {"evidence": "sigmoid"})
    with pytest.raises(ValueError, match="annealing and draws must be"):
        made("evidential", {"annealing": 0})
