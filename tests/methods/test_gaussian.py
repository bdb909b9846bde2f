import pytest
import torch
from torch.nn import functional

from methods.tiny import TASKS, batches, built, made, moment, predicted, trained

TASK = TASKS["regression"]
PHASES = {"warmup": 0, "frozen": 20, "all": 25}


def batch():
    return next(batches(TASK)())


def gradients(epoch):
    """Names of the parts that a step in `epoch` moves, and the network."""
    method = made("gaussian")
    network = built(method, TASK).train()
    method.loss(network, batch(), moment(epoch)).backward()
    moved = {
        ".".join(name.split(".")[:2]) if name.startswith("head") else "backbone"
        for name, p in network.named_parameters()
        if p.grad is not None
    }
    return moved, network


def test_phases_follow_the_paper_s_code():
    phase = made("gaussian").phase
    names = [phase(epoch) for epoch in range(75)]
    assert names == ["warmup"] * 20 + ["frozen"] * 5 + ["all"] * 50


def test_warm_up_trains_the_mean_alone():
    moved, _ = gradients(PHASES["warmup"])
    assert moved == {"backbone", "head.first"}


def test_frozen_phase_trains_the_heads_alone():
    moved, _ = gradients(PHASES["frozen"])
    assert moved == {"head.first", "head.second"}


def test_statistics_move_while_the_backbone_is_frozen():
    _, network = gradients(PHASES["frozen"])
    fresh = built(made("gaussian"), TASK)
    name = "backbone.stem.1.running_mean"
    assert not torch.equal(network.state_dict()[name], fresh.state_dict()[name])


def test_last_phase_trains_everything():
    moved, _ = gradients(PHASES["all"])
    assert moved == {"backbone", "head.first", "head.second"}


@pytest.mark.parametrize("phase", ["frozen", "all"])
def test_likelihood_is_twice_that_of_torch(phase):
    method, now = made("gaussian"), batch()
    network = built(method, TASK).eval()
    mean, log_variance = network(now.x).unbind(1)
    reference = functional.gaussian_nll_loss(mean, now.target, log_variance.exp())
    loss = method.loss(network, now, moment(PHASES[phase]))
    assert loss.item() == pytest.approx(2 * reference.item(), rel=1e-5)


def test_warm_up_loss_is_the_squared_error_of_the_mean():
    method, now = made("gaussian"), batch()
    network = built(method, TASK).eval()
    reference = functional.mse_loss(network(now.x)[:, 0], now.target)
    loss = method.loss(network, now, moment(0))
    assert loss.item() == pytest.approx(reference.item(), rel=1e-6)


def test_variance_is_the_exponential_of_its_head():
    method = made("gaussian")
    network = trained(method, TASK, epochs=[30])
    arrays = predicted(method, network, TASK)
    x = torch.cat([b.x for b in batches(TASK)()])
    with torch.no_grad():
        mean, log_variance = network(x).unbind(1)
    torch.testing.assert_close(arrays["mean"][0], mean)
    torch.testing.assert_close(arrays["var"][0], log_variance.exp())


def test_an_overflowing_variance_stays_finite():
    method = made("gaussian")
    network = built(method, TASK)
    with torch.no_grad():
        network.head.second.last.bias.fill_(1e4)
    assert torch.isfinite(predicted(method, network, TASK)["var"]).all()


def test_selection_scores_and_their_rules_come_with_the_method():
    method = made("gaussian", {"select": ("gmm2", "knn3")})
    assert method.select == {"gmm2": "logmeanexp", "knn3": "mean"}
    arrays = predicted(method, trained(method, TASK), TASK)
    assert arrays["select/gmm2"].shape == arrays["mean"].shape


def test_the_ridge_widens_the_mixture():
    found = []
    for ridge in (1e-6, 1e6):
        method = made("gaussian", {"select": ("gmm2",), "ridge": ridge})
        found.append(predicted(method, trained(method, TASK), TASK)["select/gmm2"])
    assert float(found[1].std()) < float(found[0].std())


@pytest.mark.parametrize("ridge", [-1e-6, float("inf"), float("nan")])
def test_a_ridge_that_is_no_variance_is_refused(ridge):
    with pytest.raises(ValueError, match="ridge must be a finite number, at least 0"):
        made("gaussian", {"ridge": ridge})
