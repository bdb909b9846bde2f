"""What comes before the first dropout is computed once, and nothing else changes."""

import pytest
import torch
from torch import nn

from methods.tiny import TASKS, Dense, made
from qualms.methods import Headed, passes
from qualms.networks import make_network
from qualms.spec import Part

NETWORKS = (
    ("resnet_small", "activations"),
    ("resnet_small", "blocks"),
    ("timm:resnet18", "blocks"),
    ("timm:vit_tiny_patch16_224", "activations"),
)


def built(name, place, task):
    torch.manual_seed(0)
    method = made("mc_dropout", {"place": place, "draws": 3, "rate": 0.3})
    options = {"img_size": 32} if "vit" in name else {}
    backbone = make_network(Part(name=name, options=options), channels=3)
    return method, method.build(backbone, task).eval()


def both(method, network, task, x):
    found = []
    for predict in (method.predict, lambda *given: passes(3, *given)):
        torch.manual_seed(5)
        with torch.no_grad():
            found.append(predict(network, x, task))
    return found


def assert_same(one, other):
    assert one.keys() == other.keys()
    for name, values in one.items():
        assert torch.equal(values, other[name]), name


@pytest.mark.parametrize(("name", "place"), NETWORKS)
@pytest.mark.parametrize("task", ["classification", "embedding"])
def test_passes_are_the_same_bit_for_bit(name, place, task):
    method, network = built(name, place, TASKS[task])
    once, often = both(method, network, TASKS[task], torch.randn(4, 3, 32, 32))
    assert_same(once, often)
    assert not any("forward" in vars(layer) for layer in network.modules())
    assert not any(layer._forward_hooks for layer in network.modules())


def test_draws_differ():
    task = TASKS["classification"]
    method, network = built("resnet_small", "blocks", task)
    with torch.no_grad():
        probs = method.predict(network, torch.randn(4, 3, 32, 32), task)["probs"]
    assert not torch.equal(probs[0], probs[1])


def test_label_maps_are_the_same():
    task = TASKS["segmentation"]
    method = made("mc_dropout", {"draws": 3})
    network = method.build(Dense(), task).eval()
    assert_same(*both(method, network, task, torch.randn(2, 1, 16, 16)))


class Counted(nn.Module):
    def __init__(self):
        super().__init__()
        self.times = 0

    def forward(self, x):
        self.times += 1
        return x


class Late(nn.Module):
    """Two layers, one of them used twice, changed in place, before an activation."""

    features = 4

    def __init__(self):
        super().__init__()
        self.first = nn.Sequential(Counted(), nn.Linear(4, 4))
        self.again = nn.Linear(4, 4)
        self.counted = Counted()
        self.act = nn.ReLU()

    def forward(self, x):
        y = self.first(x)
        y += 1
        y = self.counted(self.again(self.again(y)))
        y = self.again(self.act(y))
        return self.counted(y)


def test_only_what_follows_the_first_dropout_is_computed_again():
    task = TASKS["classification"]
    method = made("mc_dropout", {"draws": 5, "rate": 0.3})
    backbone = Late()
    network = method.build(backbone, task).eval()
    assert isinstance(network, Headed)
    x = torch.randn(6, 4)
    torch.manual_seed(1)
    with torch.no_grad():
        once = method.predict(network, x, task)
    assert backbone.first[0].times == 1
    assert backbone.counted.times == 1 + 5
    torch.manual_seed(1)
    with torch.no_grad():
        assert_same(once, passes(5, network, x, task))


def test_an_error_within_leaves_the_network_as_it_was():
    task = TASKS["classification"]
    method = made("mc_dropout", {"draws": 5})
    network = method.build(Late(), task).eval()
    with torch.no_grad(), pytest.raises(RuntimeError):
        method.predict(network, torch.randn(6, 3), task)
    assert not any(layer._forward_hooks for layer in network.modules())
    assert not any(layer._forward_pre_hooks for layer in network.modules())
