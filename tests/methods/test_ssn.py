import math

import pytest
import torch
from torch import nn
from torch.distributions import LowRankMultivariateNormal
from torch.nn import functional

from methods.tiny import Dense, batches, built, made, moment, predicted
from qualms.methods import Batch
from qualms.methods.ssn import (
    LogitGaussian,
    draw_likelihoods,
    logit_draws,
    logit_gaussian,
)
from qualms.spec import Task

RANK, LEAST = 3, 1e-5
TWO = Task(name="segmentation", classes=2, ignore=255)
THREE = Task(name="segmentation", classes=3, ignore=255)


def outputs(classes, seed=0, batch=2, side=3):
    generator = torch.Generator().manual_seed(seed)
    shape = (batch, (2 + RANK) * classes, side, side)
    return torch.randn(shape, generator=generator)


def gaussian(maps, task):
    return logit_gaussian(maps, task, rank=RANK, least=LEAST)


def paper_distribution(maps, classes):
    """As the released code builds it, from views of flat vectors."""
    mean = maps[:, :classes].reshape(len(maps), -1)
    diagonal = maps[:, classes : 2 * classes].exp().reshape(len(maps), -1) + LEAST
    factor = maps[:, 2 * classes :].reshape(len(maps), RANK, -1).transpose(1, 2)
    return LowRankMultivariateNormal(mean, factor, diagonal)


def difference(classes, pixels):
    """The matrix from all logits to those of class 1 minus class 0."""
    one = torch.eye(pixels)
    return torch.cat([-one, one], 1) if classes == 2 else torch.eye(classes * pixels)


@pytest.mark.parametrize("task", [TWO, THREE], ids=["two", "three"])
def test_moments_are_those_of_the_closed_form(task):
    maps = outputs(task.classes)
    density = gaussian(maps, task)
    wanted = paper_distribution(maps, task.classes)
    turn = difference(task.classes, 9)
    mean = wanted.mean @ turn.T
    covariance = turn @ wanted.covariance_matrix @ turn.T
    factor = density.factor
    made_of = factor.transpose(1, 2) @ factor + density.deviation.square().diag_embed()
    torch.testing.assert_close(density.mean, mean)
    torch.testing.assert_close(made_of, covariance, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("task", [TWO, THREE], ids=["two", "three"])
def test_draws_have_these_moments(task):
    torch.manual_seed(1)
    density = gaussian(outputs(task.classes, side=2), task)
    count = 40_000
    drawn = logit_draws(density, count)
    factor, deviation = density.factor, density.deviation
    covariance = factor.transpose(1, 2) @ factor + deviation.square().diag_embed()
    spread = covariance.diagonal(dim1=1, dim2=2).sqrt()
    error = (drawn.mean(1) - density.mean).abs() / spread
    assert error.max() < 5 / math.sqrt(count)
    centred = drawn - density.mean[:, None]
    empirical = centred.transpose(1, 2) @ centred / count
    scale = spread[:, :, None] * spread[:, None]
    assert ((empirical - covariance).abs() / scale).max() < 7 / math.sqrt(count)


def test_without_a_factor_logits_are_independent():
    density = gaussian(outputs(3), THREE)
    for still in (
        density._replace(factor=None),
        density._replace(factor=0 * density.factor),
    ):
        torch.manual_seed(2)
        drawn = logit_draws(still, 20_000)
        correlation = torch.corrcoef(drawn[0].T) - torch.eye(27)
        assert correlation.abs().max() < 0.04
        torch.testing.assert_close(drawn.std(1), density.deviation, rtol=0.05, atol=0)


def test_channels_last_changes_nothing():
    for task in (TWO, THREE):
        maps = outputs(task.classes)
        other = maps.contiguous(memory_format=torch.channels_last)
        for one, two in zip(gaussian(maps, task), gaussian(other, task), strict=True):
            assert torch.equal(one, two)


@pytest.mark.parametrize("task", [TWO, THREE], ids=["two", "three"])
def test_likelihood_is_the_sum_over_labelled_pixels(task, monkeypatch):
    density = gaussian(outputs(task.classes), task)
    fixed = logit_draws(density, 4)
    monkeypatch.setattr("qualms.methods.ssn.logit_draws", lambda *_: fixed)
    target = torch.randint(0, task.classes, (2, 3, 3))
    target[:, 1] = 255
    logs = draw_likelihoods(density, target, task, 4)
    for item in range(2):
        for draw in range(4):
            logits = fixed[item, draw].view(-1, 9)
            if task.classes == 2:
                logits = torch.cat([torch.zeros_like(logits), logits])
            labels = target[item].flatten()
            kept = labels != 255
            wanted = -functional.cross_entropy(
                logits.T[kept], labels[kept], reduction="sum"
            )
            assert logs[item, draw].item() == pytest.approx(wanted.item(), rel=1e-5)


def test_ignored_pixels_have_no_gradient():
    for task in (TWO, THREE):
        maps = outputs(task.classes).requires_grad_()
        target = torch.zeros(2, 3, 3, dtype=torch.uint8)
        target[:, 1] = 255
        logs = draw_likelihoods(gaussian(maps, task), target, task, 5)
        logs.logsumexp(1).sum().backward()
        assert not maps.grad[:, :, 1].any()
        assert maps.grad[:, :, 0].abs().sum(1).all()


def test_loss_is_the_logarithm_of_the_mean_likelihood(monkeypatch):
    logs = torch.tensor([[-3.0, -5.0], [-1000.0, -1001.0], [-2.0, -2.0]])
    monkeypatch.setattr("qualms.methods.ssn.draw_likelihoods", lambda *_: logs)
    method = made("ssn", {"train_draws": 2})
    network = built(method, THREE)
    batch = next(batches(THREE, size=3)())
    weight = torch.tensor([1.0, 1.0, 2.0])
    batch = Batch(x=batch.x, target=batch.target, weight=weight)
    each = [
        -math.log((math.exp(-3) + math.exp(-5)) / 2),
        1000 - math.log((1 + math.exp(-1)) / 2),
        2.0,
    ]
    wanted = (each[0] + each[1] + 2 * each[2]) / 3
    assert method.loss(network, batch, moment(9)).item() == pytest.approx(wanted)


def test_two_classes_have_the_loss_that_both_logits_give():
    """Against the mean likelihood of many draws of the released code's distribution."""
    torch.manual_seed(4)
    maps, target = outputs(2, batch=1, side=2), torch.tensor([[[0, 1], [1, 255]]])
    count = 100_000
    ours = draw_likelihoods(gaussian(maps, TWO), target, TWO, count)
    drawn = paper_distribution(maps, 2).sample([count])[:, 0].view(count, 2, 4)
    labels = target.flatten().expand(count, 4)
    theirs = functional.cross_entropy(drawn, labels, ignore_index=255, reduction="none")
    theirs = theirs.sum(1).neg().exp()
    error = 5 * theirs.std().item() / math.sqrt(count)
    assert ours[0].exp().mean().item() == pytest.approx(theirs.mean().item(), abs=error)


def test_the_factor_does_not_learn_in_the_first_epochs():
    method = made("ssn", {"rank": 2, "mean_epochs": 3})
    assert [method.phase(epoch) for epoch in (0, 2, 3)] == [
        *("independent", "independent", "correlated")
    ]
    network = built(method, THREE).train()
    batch = next(batches(THREE)())
    for epoch, learns in ((2, False), (3, True)):
        network.zero_grad()
        method.loss(network, batch, moment(epoch)).backward()
        gradient = network.head.last.weight.grad.flatten(1).abs().sum(1)
        assert gradient[:6].all()
        assert bool(gradient[6:].any()) == learns


def test_draws_cost_one_pass_of_the_backbone():
    method = made("ssn", {"draws": 7})
    network = built(method, THREE)
    passes = []
    network.backbone.register_forward_hook(lambda *_: passes.append(1))
    arrays = predicted(method, network, THREE)
    assert len(passes) == 1
    assert arrays["draw_labels"].shape[0] == 7


def test_pixels_of_a_draw_are_correlated():
    """A shared factor turns all pixels of a draw to the same class."""
    found = LogitGaussian(
        torch.zeros(1, 50), torch.full((1, 50), 1e-3), torch.ones(1, 1, 50)
    )
    torch.manual_seed(0)
    labels = logit_draws(found, 200)[0] > 0
    assert 0.4 < labels.float().mean() < 0.6
    agree = labels.float().mean(1)
    assert ((agree < 0.02) | (agree > 0.98)).float().mean() > 0.95


def test_diverged_outputs_end_in_a_sentence():
    method = made("ssn")
    network = built(method, TWO)
    nn.init.constant_(network.head.last.bias, 1e4)
    with pytest.raises(ValueError, match="must be finite, and some are not: its train"):
        predicted(method, network, TWO)


def test_draws_of_a_pixel_follow_the_mean_for_a_small_variance():
    method = made("ssn", {"rank": 1, "draws": 4})
    network = built(method, THREE)
    with torch.no_grad():
        network.head.last.weight[3:].zero_()
        network.head.last.bias[3:6] = -30.0
        network.head.last.bias[6:] = 0.0
    arrays = predicted(method, network, THREE)
    assert (arrays["draw_labels"] == arrays["draw_labels"][0]).float().mean() > 0.99


def test_heads_are_three_convolutions_on_the_features():
    network = made("ssn", {"rank": 5}).build(Dense(), THREE)
    last = network.head.last
    assert isinstance(last, nn.Conv2d)
    assert last.out_channels == 3 + 3 + 5 * 3
    assert last.kernel_size == (1, 1)


@pytest.mark.parametrize("task", [TWO, THREE], ids=["two", "three"])
def test_the_factor_starts_at_the_square_of_its_scale_and_moves_by_its_scale(task):
    maps = {}
    for scale in (1.0, 0.1):
        network = built(made("ssn", {"rank": RANK, "factor_scale": scale}), task)
        maps[scale] = network(torch.ones(1, 1, 16, 16))
    kinds = {
        scale: logit_gaussian(maps[scale], task, rank=RANK, least=LEAST, scale=scale)
        for scale in maps
    }
    torch.testing.assert_close(kinds[0.1].factor, 0.01 * kinds[1.0].factor)
    torch.testing.assert_close(kinds[0.1].mean, kinds[1.0].mean)
    moved = logit_gaussian(
        maps[0.1] + 1e-2 * maps[1.0], task, rank=RANK, least=LEAST, scale=0.1
    )
    step = 0.1 * 1e-2 * kinds[1.0].factor
    torch.testing.assert_close(moved.factor, kinds[0.1].factor + step)


def test_two_classes_of_whole_images_are_told_apart():
    task = Task(name="classification", classes=2)
    method = made("ssn", {"draws": 6})
    network = built(method, task)
    x = torch.randn(5, 1, 16, 16)
    batch = Batch(x=x, target=torch.tensor([0, 1, 1, 0, 1]))
    loss = method.loss(network, batch, moment(9))
    loss.backward()
    with torch.no_grad():
        probs = method.predict(network.eval(), x, task)["probs"]
    assert probs.shape == (6, 5, 2)
    torch.testing.assert_close(probs.sum(2), torch.ones(6, 5))


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"rank": 0}, "must be at least 1, got 0, 10 and 10"),
        ({"draws": 0}, "must be at least 1, got 10, 0 and 10"),
        ({"mean_epochs": -1}, "must not be negative, got -1 and 1e-05"),
        ({"least_variance": -1.0}, "must not be negative, got 5 and -1.0"),
        ({"factor_scale": 0.0}, "factor_scale must be above 0, got 0.0"),
    ],
)
def test_options_out_of_range_are_refused(options, sentence):
    with pytest.raises(ValueError, match=sentence):
        made("ssn", options)
