import pytest
import torch
from torch import nn
from torch.nn import functional

from methods.tiny import TASKS, built, made, predicted
from qualms.networks import build
from qualms.spec import Part

TASK = TASKS["regression"]


def places(name, place):
    """How many layers of network `name` are followed by dropout."""
    method = made("mc_dropout", {"place": place})
    network = method.build(build(Part(name=name), channels=3), TASK)
    return [n for n, m in network.named_modules() if type(m).__name__ == "_Dropped"]


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


def test_gates_are_left_alone():
    gated = places("timm:mobilenetv3_small_050", "activations")
    assert gated
    assert not [name for name in gated if name.endswith("gate")]


def test_draws_differ_in_evaluation_mode():
    method = made("mc_dropout", {"draws": 4})
    mean = predicted(method, built(method, TASK).eval(), TASK)["mean"]
    assert mean.shape[0] == 4
    assert (mean.std(0) > 0).all()


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


def test_dropout_changes_no_name_of_a_weight():
    names, plain = (
        list(built(made(name), TASK).state_dict()) for name in ("mc_dropout", "map")
    )
    assert names == plain


def test_a_network_without_activation_layers_is_refused():
    class Functional(nn.Module):
        features = 4

        def forward(self, x):
            return functional.relu(x.flatten(1)[:, :4])

    method = made("mc_dropout")
    with pytest.raises(ValueError, match="found no activations among the layers"):
        method.build(Functional(), TASKS["classification"])


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"rate": 1.0}, "rate must lie between 0 and 1, got 1.0"),
        ({"draws": 0}, "draws must be at least 1, got 0"),
        ({"place": "stem"}, "place must be 'activations' or 'blocks', got 'stem'"),
    ],
)
def test_options_out_of_range_are_refused(options, sentence):
    with pytest.raises(ValueError, match=sentence):
        made("mc_dropout", options)
