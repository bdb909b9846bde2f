import numpy as np
import pytest
from sklearn.metrics import mean_pinball_loss

from methods.tiny import TASKS, batches, built, made, moment

TASK = TASKS["regression"]


@pytest.mark.parametrize("alpha", [0.05, 0.1, 0.2])
def test_loss_is_the_mean_of_two_pinball_losses(alpha):
    method, batch = made("quantile", {"alpha": alpha}), next(batches(TASK)())
    network = built(method, TASK).eval()
    lower, upper = network(batch.x).detach().numpy().T
    reference = [
        mean_pinball_loss(batch.target.numpy(), lower, alpha=alpha / 2),
        mean_pinball_loss(batch.target.numpy(), upper, alpha=1 - alpha / 2),
    ]
    loss = method.loss(network, batch, moment(epoch=20))
    assert loss.item() == pytest.approx(np.mean(reference), rel=1e-5)


def test_both_heads_learn_the_mean_first():
    method, batch = made("quantile"), next(batches(TASK)())
    network = built(method, TASK).eval()
    errors = network(batch.x) - batch.target[:, None]
    loss = method.loss(network, batch, moment(epoch=19))
    assert loss.item() == pytest.approx(errors.square().mean().item(), rel=1e-5)


def test_the_level_is_stated_in_the_header():
    assert made("quantile", {"alpha": 0.2}).header == {"alpha": 0.2}


@pytest.mark.parametrize("alpha", [0.0, 1.0, -0.1])
def test_a_level_outside_0_to_1_is_refused(alpha):
    with pytest.raises(ValueError, match="alpha must lie between 0 and 1"):
        made("quantile", {"alpha": alpha})
