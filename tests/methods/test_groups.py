import pytest
import torch
from torch import nn

from methods.tiny import TASKS, built, made
from qualms.methods import kernels_decay
from qualms.networks import make_network
from qualms.spec import Part
from qualms.training._optimiser import make_optimiser
from qualms.training.options import training


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
    options = training(
        {"optimiser": "sgd", "lr": 0.1, "momentum": 0.0, "weight_decay": 0.5}
    ).optimisation
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
    (group,) = kernels_decay(layer)
    assert group["params"] == [layer.bias]


def test_weights_apart_belong_to_no_group():
    layer = nn.Linear(3, 2)
    (group,) = kernels_decay(layer, apart=[layer.bias])
    assert group == {"params": [layer.weight]}


TRANSFORMERS = {
    "vit_tiny_patch16_224": {"img_size": 32, "depth": 2, "init_values": 0.1},
    "swin_tiny_patch4_window7_224": {
        "img_size": 56,
        "depths": (2, 2),
        "num_heads": (1, 2),
        "embed_dim": 8,
    },
}
FREE = {
    "vit_tiny_patch16_224": {"cls_token", "pos_embed", "gamma"},
    "swin_tiny_patch4_window7_224": {"relative_position_bias_table"},
}


@pytest.mark.parametrize("name", TRANSFORMERS)
@pytest.mark.parametrize("method", ["map", "mfvi", "rank1", "fsvi"])
def test_tokens_positions_and_gains_of_transformers_do_not_decay(name, method):
    backbone = make_network(Part(name=name, options=TRANSFORMERS[name]), channels=3)
    kernels = {
        id(m.weight) for m in backbone.modules() if isinstance(m, nn.Conv2d | nn.Linear)
    }
    special = {
        key.rpartition(".")[2]: id(weight)
        for key, weight in backbone.named_parameters()
        if key.rpartition(".")[2] in FREE[name]
    }
    assert special.keys() == FREE[name]
    network = made(method).build(backbone, TASKS["classification"])
    groups = made(method).groups(network)
    decaying = {id(w) for g in groups if "weight_decay" not in g for w in g["params"]}
    within = {id(weight) for weight in network.backbone.parameters()}
    assert decaying & within == kernels
    assert not decaying & set(special.values())
    everything = [id(w) for group in groups for w in group["params"]]
    assert sorted(everything) == sorted(map(id, network.parameters()))


def test_a_weight_behind_a_parametrisation_decays():
    layer = nn.utils.parametrizations.orthogonal(nn.Linear(3, 3))
    decaying, steady = kernels_decay(layer)
    assert decaying["params"] == [layer.parametrizations.weight.original]
    assert steady["params"] == [layer.bias]


def test_kernels_of_attention_decay_and_its_biases_do_not():
    layer = nn.MultiheadAttention(4, 2, add_bias_kv=True)
    decaying, steady = kernels_decay(layer)
    kernels = [layer.in_proj_weight, layer.out_proj.weight]
    assert set(map(id, decaying["params"])) == set(map(id, kernels))
    assert id(layer.bias_k) in set(map(id, steady["params"]))
