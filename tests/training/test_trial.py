"""A method is tried on made-up items, and what fails is named."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from qualms.methods import Method, summarise
from qualms.shelf import find, names
from qualms.training import TrainingError
from qualms.training.trial import ITEMS, try_method

CASES = [
    (name, task) for name in names("methods") for task in find("methods", name)().tasks
]


def learns(method, task):
    """As the tests do that `qualms new method` writes."""
    tried = (try_method(method, task, epochs=20, seed=seed) for seed in range(3))
    return any(after < before or not method.trains for (before, after), *_ in tried)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "task"), sorted(CASES))
def test_every_method_of_the_package_learns(name, task):
    assert learns(find("methods", name)(), task)


@pytest.mark.parametrize("task", names("tasks"))
def test_the_plain_network_learns_every_task_the_same_way_each_time(task):
    before = torch.get_rng_state()
    assert learns(Method(), task)
    first, again, other = (
        try_method(Method(), task, seed=seed).arrays for seed in (1, 1, 2)
    )
    assert all(np.array_equal(first[name], again[name]) for name in first)
    assert not all(np.array_equal(first[name], other[name]) for name in first)
    assert torch.equal(torch.get_rng_state(), before)


def few(network, x, task):
    return summarise([network(x[:5])], task)


def nans(network, x, task):
    return {name: part * torch.nan for name, part in few(network, x, task).items()}


def raises(*_):
    raise KeyError("logits")


@pytest.mark.parametrize(
    ("hooks", "said"),
    [
        ({"predict": raises}, r"predict of the method fails .*\(KeyError 'logits'\)"),
        ({"loss": raises}, "loss of the method fails on made-up items of classif"),
        ({"after": raises}, "after of the method fails"),
        ({"build": raises}, "build of the method fails"),
        ({"predict": few}, f"must give 'probs' for each of {ITEMS} items"),
        ({"predict": lambda *_: {}}, "must return 'probs' or 'prob'"),
        ({"predict": nans}, "probs' for each|must give finite numbers"),
        ({"needs": ("values",)}, "is for regression, and not for"),
    ],
)
def test_what_fails_is_named(hooks, said):
    with pytest.raises(TrainingError, match=said):
        try_method(replace(Method(), **hooks), "classification")
