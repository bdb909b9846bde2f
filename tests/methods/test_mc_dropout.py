from functools import partial

import pytest
import torch
from torch import nn
from torch.nn import functional

from methods.tiny import TASKS, Volumes, built, made, predicted
from qualms.methods._dropout_layers import InsertedDropout
from qualms.networks import make_network
from qualms.networks.resnet50 import Bottlenecks
from qualms.spec import Part, Task

TASK = TASKS["regression"]


def places(name, place):
    """How many layers of network `name` are followed by dropout."""
    method = made("mc_dropout", {"place": place})
    network = method.build(make_network(Part(name=name), channels=3), TASK)
    return [n for n, m in network.named_modules() if isinstance(m, InsertedDropout)]


# Activations: the stem's, two or three of each block, and the one of the head.
@pytest.mark.parametrize(
    ("network", "activations", "blocks"),
    [
        ("resnet34_ddu", 1 + 16 * 2 + 1, 16),
        ("timm:resnet18", 1 + 8 * 2 + 1, 8),
        ("timm:vit_tiny_patch16_224", 12 + 1, 12),
        ("timm:convnext_atto", 12 + 1, 12),
    ],
)
def test_dropout_goes_after_every_activation_or_block(network, activations, blocks):
    assert len(places(network, "activations")) == activations
    assert len(places(network, "blocks")) == blocks


def test_a_network_may_declare_its_places():
    """RETINA's: stem, both inner activations of 16 blocks, 4 projections."""
    with torch.device("meta"):
        declared = places("resnet50", None)
        assert places("resnet50", "declared") == declared
        assert len(places("resnet50", "activations")) == 1 + 16 * 3 + 1
    assert len(declared) == 37 == len(set(declared))
    ends = [name.split(".")[-2] for name in declared]
    assert [ends.count(end) for end in ("stem", "first", "second", "shortcut")] == [
        *(1, 16, 16, 4)
    ]


def test_declared_places_follow_activations_and_projections():
    method, seen = made("mc_dropout", {"rate": 0.5}), {}
    part = Part(name="resnet50", options={"init": "uniform"})  # the quicker start
    network = method.build(make_network(part, channels=1), TASK)
    for name, layer in network.named_modules():
        if isinstance(layer, InsertedDropout):
            note = partial(seen.__setitem__, name)
            layer.register_forward_hook(lambda _m, _i, out, note=note: note(out))
    torch.manual_seed(0)
    network(torch.rand(2, 1, 32, 32))
    assert len(seen) == 37
    for name, out in seen.items():
        # Half of an activation is zero already, and half of the rest is dropped.
        zero = (out == 0).double().mean().item()
        expected = 0.5 if "shortcut" in name else 0.75
        assert zero == pytest.approx(expected, abs=0.12), name
        assert (out.min() < 0) == ("shortcut" in name)


def test_networks_that_declare_nothing_get_dropout_after_activations():
    assert places("resnet34_ddu", None) == places("resnet34_ddu", "activations")
    with pytest.raises(ValueError, match="no layer to follow for place='declared'"):
        places("resnet34_ddu", "declared")


def test_gates_are_left_alone():
    gated = places("timm:mobilenetv3_small_050", "activations")
    assert gated
    assert not [name for name in gated if name.endswith("gate")]


def test_draws_differ_in_evaluation_mode():
    method = made("mc_dropout", {"draws": 4})
    mean = predicted(method, built(method, TASK).eval(), TASK)["mean"]
    assert mean.shape[0] == 4
    assert (mean.std(0) > 0).all()


def test_the_embedding_is_the_mean_over_draws():
    task = TASKS["embedding"]
    method = made("mc_dropout", {"draws": 400, "projection": 5, "rate": 0.2})
    network = built(method, task).eval()
    arrays = predicted(method, network, task)
    assert arrays["embedding"].shape[1] == 5
    few = made("mc_dropout", {"draws": 2, "projection": 5, "rate": 0.2})
    spread = [predicted(few, network, task, seed)["embedding"] for seed in range(20)]
    noise = torch.stack(spread).std(0)
    gap = arrays["embedding"] - torch.stack(spread).mean(0)
    assert (noise > 0).any()
    assert (gap.abs() <= 5 * noise / 20**0.5 + 1e-6).all()
    assert (arrays["uncertainty/mutual_information"] > 0).all()


def test_dropout_has_the_rate_asked_for_and_keeps_the_mean():
    class Ones(nn.Module):
        features = 10_000

        def __init__(self):
            super().__init__()
            self.activation = nn.ReLU()

        def forward(self, x):
            return self.activation(x)

    method = made("mc_dropout", {"rate": 0.3})
    network = method.build(Ones(), TASKS["classification"]).eval()
    torch.manual_seed(0)
    out = network.backbone(torch.ones(10, 10_000))
    assert (out == 0).double().mean().item() == pytest.approx(0.3, abs=0.01)
    assert out.mean().item() == pytest.approx(1.0, abs=0.01)


@pytest.mark.parametrize("network", ["resnet_small", "resnet50"])
def test_dropout_changes_no_name_of_a_weight(network):
    with torch.device("meta"):
        names, plain = (
            list(
                made(name)
                .build(make_network(Part(name=network), channels=1), TASK)
                .state_dict()
            )
            for name in ("mc_dropout", "map")
        )
    assert names == plain


def test_a_network_without_activation_layers_is_refused():
    class Functional(nn.Module):
        features = 4

        def forward(self, x):
            return functional.relu(x.flatten(1)[:, :4])

    method = made("mc_dropout")
    with pytest.raises(ValueError, match="found no layer to follow for place=None"):
        method.build(Functional(), TASKS["classification"])


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"rate": 1.0}, "rate must lie between 0 and 1, got 1.0"),
        ({"draws": 0}, "draws must be at least 1, got 0"),
        ({"place": "stem"}, "or 'own', got 'stem'"),
    ],
)
def test_options_out_of_range_are_refused(options, sentence):
    with pytest.raises(ValueError, match=sentence):
        made("mc_dropout", options)


def test_dropout_runs_on_volumes():
    task = Task(name="segmentation", classes=3, space=3)
    method = made("mc_dropout", {"draws": 3})
    network = method.build(Volumes(), task).eval()
    torch.manual_seed(0)
    with torch.no_grad():
        arrays = method.predict(network, torch.rand(2, 1, 6, 6, 6), task)
    assert arrays["draw_labels"].shape == (3, 2, 6, 6, 6)
    assert arrays["mean_probs"].shape == (2, 3, 6, 6, 6)
    first, second = (network(torch.ones(1, 1, 6, 6, 6)) for _ in range(2))
    assert not torch.equal(first, second)


def test_a_network_with_dropout_compiles_as_one_graph():
    backbone = Bottlenecks(channels=1, width=2, blocks=(1, 1), zero_last=False)
    backbone.compile(fullgraph=True, backend="eager")
    network = made("mc_dropout").build(backbone, TASK)
    assert torch.isfinite(network(torch.rand(2, 1, 16, 16))).all()
    torch._dynamo.reset()
