import copy

import numpy as np
import pytest
import torch
from torch import nn

from qualms.training._optimiser import (
    make_optimiser,
    optimiser_state,
    restore_optimiser,
    set_rates,
)
from qualms.training.options import training

CPU = torch.device("cpu")


def parameter(seed, shape):
    return nn.Parameter(torch.tensor(np.random.default_rng(seed).normal(size=shape)))


def test_lamb_takes_the_steps_of_the_url_benchmark(golden):
    case = golden("url")["F_lamb_3steps"]
    weights = [parameter(90, (3, 4)), parameter(91, 4)]
    options = training(
        {"optimiser": "lamb", "lr": 0.01, "weight_decay": 2e-5}
    ).optimisation
    groups = [{"params": weights[:1]}, {"params": weights[1:], "weight_decay": 0.0}]
    tuned = make_optimiser(options, groups, CPU)
    for step in range(3):
        for seed, weight in zip((92, 95), weights, strict=True):
            weight.grad = parameter(seed + step, weight.shape).data
        tuned.optimiser.step()
    for name, weight in zip(("p1", "p2"), weights, strict=True):
        found = weight.detach().numpy().ravel()
        np.testing.assert_allclose(found, case[name], rtol=1e-8, atol=1e-9)


def trained(network, tuned, steps, seed=0):
    generator = torch.Generator().manual_seed(seed)
    for _ in range(steps):
        x = torch.randn(16, 5, generator=generator)
        tuned.zero_grad()
        (network(x) - x.sum(1, keepdim=True)).square().mean().backward()
        tuned.step()
    return [p.detach().clone() for p in network.parameters()]


def network():
    torch.manual_seed(3)
    return nn.Sequential(nn.Linear(5, 7), nn.ReLU(), nn.Linear(7, 1))


REFERENCES = {
    "adam": lambda p: torch.optim.Adam(p, 0.01, weight_decay=1e-3, foreach=False),
    "sgd": lambda p: torch.optim.SGD(
        p, 0.01, momentum=0.8, weight_decay=1e-3, nesterov=True, foreach=False
    ),
    "plain sgd": lambda p: torch.optim.SGD(
        p, 0.01, momentum=0.8, weight_decay=1e-3, foreach=False
    ),
    "rmsprop": lambda p: torch.optim.RMSprop(
        p, 0.01, momentum=0.8, weight_decay=1e-3, foreach=False
    ),
}


@pytest.mark.parametrize("name", REFERENCES)
def test_optimisers_are_those_of_torch(name):
    mine, theirs = network(), network()
    options = training(
        {
            "optimiser": name.removeprefix("plain "),
            "lr": 0.01,
            "momentum": 0.8,
            "nesterov": "plain" not in name,
            "weight_decay": 1e-3,
        }
    ).optimisation
    tuned = make_optimiser(options, [{"params": mine.parameters()}], CPU)
    found = trained(mine, tuned.optimiser, 20)
    expected = trained(theirs, REFERENCES[name](theirs.parameters()), 20)
    for a, b in zip(found, expected, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("name", ["adam", "sgd", "rmsprop", "lamb"])
def test_an_optimiser_goes_on_from_its_state_bit_by_bit(name):
    options = training(
        {"optimiser": name, "lr": 0.01, "weight_decay": 1e-3}
    ).optimisation
    whole, parted = network(), network()
    tuned = make_optimiser(options, [{"params": whole.parameters()}], CPU)
    trained(whole, tuned.optimiser, 3)
    trained(whole, tuned.optimiser, 3, seed=1)
    first = make_optimiser(options, [{"params": parted.parameters()}], CPU)
    trained(parted, first.optimiser, 3)
    state = copy.deepcopy(optimiser_state(first.optimiser))
    second = make_optimiser(options, [{"params": parted.parameters()}], CPU)
    restore_optimiser(second, state)
    trained(parted, second.optimiser, 3, seed=1)
    for a, b in zip(whole.parameters(), parted.parameters(), strict=True):
        assert torch.equal(a, b)


def test_a_group_may_scale_the_learning_rate_and_set_its_own_decay():
    made = network()
    groups = [
        {"params": made[0].parameters(), "lr_scale": 0.5, "weight_decay": 0.1},
        {"params": made[2].parameters()},
    ]
    tuned = make_optimiser(training({}).optimisation, groups, CPU)
    set_rates(tuned.rates, torch.tensor(0.2, dtype=torch.float64))
    held = tuned.optimiser.param_groups
    assert [float(g["lr"]) for g in held] == [0.1, 0.2]
    assert [g["weight_decay"] for g in held] == [0.1, 0.0]


def test_groups_that_state_the_same_are_one():
    made = network()
    groups = [
        {"params": made[0].parameters()},
        {"params": made[2].parameters(), "weight_decay": 0.0},
    ]
    one = make_optimiser(training({}).optimisation, groups, CPU).optimiser.param_groups
    assert [len(group["params"]) for group in one] == [4]
    two = make_optimiser(
        training({"weight_decay": 0.1}).optimisation, groups, CPU
    ).optimiser.param_groups
    assert [group["weight_decay"] for group in two] == [0.1, 0.0]


def test_momentum_may_start_later_for_weights_without_a_gradient_at_first():
    made = network()
    tuned = make_optimiser(
        training({"optimiser": "sgd", "lr": 0.1}).optimisation,
        [{"params": made.parameters()}],
        CPU,
    )
    first, last = made[0].weight, made[2].weight
    before = first.detach().clone()
    for late in (False, True):
        tuned.optimiser.zero_grad()
        last.grad = torch.ones_like(last)
        first.grad = torch.ones_like(first) if late else None
        tuned.optimiser.step()
    torch.testing.assert_close(first.detach(), before - 0.1 * 1.9)
