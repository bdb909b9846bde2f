import torch
from torch import nn

from methods.tiny import TASKS, built, made
from qualms.methods._groups import kernels_decay
from qualms.training.optimiser import make_optimiser
from qualms.training.options import Training


def test_only_kernels_of_convolutions_and_dense_layers_decay():
    network = built(made("map"), TASKS["classification"])
    decaying, steady = made("map").groups(network)
    layers = [m for m in network.modules() if isinstance(m, nn.Conv2d | nn.Linear)]
    assert set(map(id, decaying["params"])) == {id(m.weight) for m in layers}
    assert "weight_decay" not in decaying
    assert steady["weight_decay"] == 0.0
    count = len(decaying["params"]) + len(steady["params"])
    assert count == len(list(network.parameters()))


def test_decay_shrinks_kernels_and_nothing_else():
    network = built(made("map"), TASKS["classification"])
    options = Training(optimiser="sgd", lr=0.1, momentum=0.0, weight_decay=0.5)
    tuned = make_optimiser(
        options, made("map").groups(network), torch.device("cpu")
    ).optimiser
    before = [p.detach().clone() for p in network.parameters()]
    for weight in network.parameters():
        weight.grad = torch.zeros_like(weight)
    tuned.step()
    for old, new in zip(before, network.parameters(), strict=True):
        torch.testing.assert_close(new.detach(), old * (0.95 if old.ndim > 1 else 1.0))


def test_weights_held_still_belong_to_no_group():
    layer = nn.Linear(3, 2)
    layer.weight.requires_grad_(False)
    (group,) = kernels_decay(layer.parameters())
    assert group["params"] == [layer.bias]
