import copy

import pytest
import torch
from torch import nn
from torch._dynamo.testing import CompileCounter
from torch.func import functional_call

from methods.tiny import TASKS, built, made
from qualms.methods import _flipout, rank1
from qualms.methods._flipout import Flipout
from qualms.methods._layers import ItemCounter, to_rows
from qualms.networks import make_network
from qualms.spec import Part

TASK = TASKS["classification"]
METHODS = ["mfvi", "radial", "rank1"]
each_method = pytest.mark.parametrize("name", METHODS)
# Images of 56 pixels have 2 x 2 windows in the first stage and one in the second.
SWIN = Part(
    name="swin_tiny_patch4_window7_224",
    options={
        "img_size": 56,
        "depths": (2, 2),
        "num_heads": (1, 2),
        "embed_dim": 8,
    },
)
B = 3


class Windows(nn.Module):
    """Sees each image as `windows` rows of its own, those of an image side by side."""

    features = 4

    def __init__(self, windows=3):
        super().__init__()
        self.windows = windows
        self.layer = nn.Linear(4, 4)

    def forward(self, x):
        rows = x.view(-1, x.shape[1] // self.windows, 4)
        return self.layer(rows).view(len(x), -1, 4).mean(1)


class Places(nn.Module):
    """Has a layer that sees places, the same for all items."""

    features = 4

    def __init__(self):
        super().__init__()
        self.places = nn.Parameter(torch.randn(1, 5, 4))
        self.layer = nn.Linear(4, 4)

    def forward(self, x):
        return x + self.layer(self.places).mean(1)


def scaled(layer, vectors):
    """Weights of one item of rank-1: scaled by its vectors."""
    weight = layer.layer.weight
    before, after = vectors.split(layer._channels)
    axes = (1,) * (weight.ndim - 2)
    return weight * before.view(1, -1, *axes) * after.view(-1, 1, *axes)


def turned(layer, vectors):
    """Weights of one item of flipout: with noise turned by its vectors."""
    incoming, outgoing = (vector.flatten() for vector in vectors)
    axes = (1,) * (layer.weight.ndim - 2)
    turns = incoming.view(1, -1, *axes) * outgoing.view(-1, 1, *axes)
    return layer.weight + layer.stddev * layer.noise.shared(layer.rho) * turns


def watched(network, name, monkeypatch):
    """Layers in the order they run, and what items have of their own in each."""
    order, kept = [], []
    module = rank1 if name == "rank1" else _flipout
    monkeypatch.setattr(
        module,
        "to_rows",
        lambda values, rows: kept.append(values) or to_rows(values, rows),
    )
    for layer in network.modules():
        if isinstance(layer, Flipout):
            fixed = layer.noise.shared(layer.rho)
            layer.noise = layer.noise._replace(shared=lambda _, fixed=fixed: fixed)
        if isinstance(layer, Flipout | rank1._ScaledLayer):
            layer.register_forward_pre_hook(lambda layer, _: order.append(layer))
    return order, kept


@each_method
def test_all_windows_of_an_image_in_swin_have_the_weights_of_the_image(
    name, monkeypatch
):
    torch.manual_seed(0)
    loud = {"dropout_rate": 0.1} if name == "rank1" else {"stddev_mean": 0.05}
    network = made(name, loud).build(make_network(SWIN, channels=3), TASK).eval()
    plain = made("map").build(make_network(SWIN, channels=3), TASK).eval()
    order, kept = watched(network, name, monkeypatch)
    with torch.no_grad():
        x = torch.randn(B, 3, 56, 56)
        outputs = network(x)
        assert all(len(values) == B for values in kept)
        state = {
            key.replace(".layer.", "."): v for key, v in network.state_dict().items()
        }
        state = {key: state[key] for key in plain.state_dict()}
        names = {layer: key for key, layer in network.named_modules()}
        if name != "rank1":
            kept = list(zip(kept[::2], kept[1::2], strict=True))
        for item in range(B):
            for layer, values in zip(order, kept, strict=True):
                if name == "rank1":
                    weight = scaled(layer, values[item])
                else:
                    weight = turned(layer, [part[item] for part in values])
                state[f"{names[layer]}.weight"] = weight
            one = functional_call(plain, state, (x[item : item + 1],))
            torch.testing.assert_close(
                outputs[item : item + 1], one, rtol=1e-3, atol=1e-4
            )
    assert outputs.std(0).min() > 0.01


@each_method
def test_rows_of_an_item_share_a_draw_and_items_do_not(name):
    torch.manual_seed(0)
    network = made(name, {}).build(Windows(), TASK).eval()
    calls = []
    network.backbone.layer.register_forward_hook(lambda *args: calls.append(args[2]))
    x = torch.randn(1, 1, 4).expand(B, 6, 4)
    with torch.no_grad():
        network(x)
    (rows,) = calls
    assert rows.shape == (9, 2, 4)
    by_item = rows.view(B, 6, 4)
    torch.testing.assert_close(by_item, by_item[:, :1].expand_as(by_item))
    assert len(by_item[:, 0].unique(dim=0)) == B


@each_method
def test_a_layer_that_sees_no_items_is_refused(name):
    network = made(name).build(Places(), TASK)
    with pytest.raises(ValueError, match="got 1 rows of 3 items; choose a network"):
        network(torch.randn(B, 4))


@each_method
def test_batches_of_any_size_follow_each_other(name):
    network = built(made(name), TASK).eval()
    with torch.no_grad():
        for size in (4, 3, 1, 8):
            assert len(network(torch.randn(size, 1, 16, 16))) == size
            assert len(network.backbone(torch.randn(size + 1, 1, 16, 16))) == size + 1


@each_method
def test_a_copy_counts_for_itself(name):
    network = made(name).build(Windows(), TASK).eval()
    network(torch.randn(4, 6, 4))
    other = copy.deepcopy(network)
    other(torch.randn(2, 6, 4))
    with pytest.raises(ValueError, match="got 6 rows of 4 items"):
        network.backbone.layer(torch.randn(6, 2, 4))
    assert len(other.backbone.layer(torch.randn(6, 2, 4))) == 6


@each_method
def test_windows_compile_into_one_graph(name):
    torch.manual_seed(0)
    network = made(name).build(Windows(), TASK)
    counter = CompileCounter()
    network.backbone.compile(fullgraph=True, backend=counter)
    for _ in range(3):
        network(torch.randn(B, 6, 4)).mean().backward()
    assert counter.frame_count == 1
    torch._dynamo.reset()


def test_without_a_network_every_row_is_an_item():
    assert ItemCounter().items_of(7) == 7


def test_values_of_items_go_to_rows_side_by_side():
    values = torch.tensor([[1.0], [2.0]])
    assert to_rows(values, 6)[:, 0].tolist() == [1, 1, 1, 2, 2, 2]
    assert to_rows(values, 2) is values
