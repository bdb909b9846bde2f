import pytest
import torch
from torch import nn
from torch.nn import functional
from torch.nn.utils import spectral_norm
from torch.nn.utils.parametrizations import orthogonal

from methods.tiny import TASKS, batches, built, made, moment
from qualms.methods import Batch
from qualms.methods._layers import WITH_KERNELS, replace_layers
from qualms.networks import make_network
from qualms.spec import Part

each_method = pytest.mark.parametrize("method", ["mfvi", "radial", "rank1"])


class Wrapped(nn.Module):
    def __init__(self, layer):
        super().__init__()
        self.layer = layer


class Subclass(nn.Conv2d):
    pass


def network():
    return nn.Sequential(
        nn.Conv2d(1, 2, 3),
        nn.Sequential(nn.Conv3d(2, 2, 1), nn.ReLU(), nn.Linear(4, 4)),
        nn.BatchNorm2d(2),
        nn.Linear(4, 1),
    )


def test_convolutions_and_linear_layers_are_replaced_wherever_they_stand():
    plain = network()
    whole = replace_layers(plain, Wrapped)
    assert whole is plain
    kinds = [type(layer).__name__ for layer in (*whole[1], *whole)]
    assert kinds == [
        *("Wrapped", "ReLU", "Wrapped"),
        *("Wrapped", "Sequential", "BatchNorm2d", "Wrapped"),
    ]
    assert isinstance(whole[0].layer, nn.Conv2d)


def test_none_keeps_a_layer():
    whole = replace_layers(
        network(), lambda layer: Wrapped(layer) if type(layer) is nn.Conv3d else None
    )
    assert type(whole[0]) is nn.Conv2d
    assert type(whole[1][0]) is Wrapped
    assert type(whole[3]) is nn.Linear


@pytest.mark.parametrize(
    ("make", "kind"),
    [
        (lambda: Subclass(2, 2, 1), "Subclass"),
        (lambda: nn.Conv1d(2, 2, 1), "Conv1d"),
        (lambda: nn.ConvTranspose2d(2, 2, 1, groups=2), "ConvTranspose2d"),
        (lambda: nn.Bilinear(2, 2, 1), "Bilinear"),
        (lambda: nn.LSTM(2, 2), "LSTM"),
        (lambda: nn.MultiheadAttention(4, 2), "MultiheadAttention"),
        (lambda: orthogonal(nn.Linear(2, 2)), "ParametrizedLinear"),
        (lambda: spectral_norm(nn.Conv2d(2, 2, 1)), "Conv2d"),
    ],
)
def test_layers_that_would_stay_as_they_are_are_refused(make, kind):
    plain = nn.Sequential(nn.Linear(2, 2), make(), nn.Sequential(make()))
    sentence = f"layers for which it cannot: 2 of type {kind}[,;].*choose a network"
    with pytest.raises(ValueError, match=sentence):
        replace_layers(plain, Wrapped)
    assert type(plain[0]) is nn.Linear  # nothing was changed


@each_method
def test_a_network_with_unknown_convolutions_has_no_random_kernels(method):
    part = Part(name="resnet34_ddu", options={"spectral": 3.0, "size": 8})
    with pytest.raises(ValueError, match="33 of type ParametrizedConv2d; choose"):
        made(method).build(make_network(part, channels=1), TASKS["classification"])


@pytest.mark.parametrize(
    ("name", "left"),
    [
        ("nf_resnet26", "29 of type ScaledStd"),
        ("tf_efficientnet_b0", "5 of type Conv2dSame"),
    ],
)
def test_timm_s_own_convolutions_are_refused(name, left):
    plain = make_network(Part(name=f"timm:{name}"), channels=3)
    with pytest.raises(ValueError, match=left):
        replace_layers(plain, Wrapped)


@pytest.mark.parametrize(
    ("name", "count"),
    [
        ("resnet18", 20),
        ("vit_tiny_patch16_224", 1 + 12 * 4),
        ("swin_tiny_patch4_window7_224", 1 + 12 * 4 + 3),
        ("convnext_atto", 4 + 12 * 3),
        ("mobilenetv3_small_050", 53),
    ],
)
def test_all_of_a_timm_network_is_replaced(name, count):
    whole = replace_layers(make_network(Part(name=f"timm:{name}"), channels=3), Wrapped)
    inside = [m for m in whole.modules() if isinstance(m, Wrapped)]
    kinds = [m for m in whole.modules() if isinstance(m, WITH_KERNELS)]
    assert len(inside) == len(kinds) == count


def test_a_layer_in_two_places_stays_one():
    layer = nn.Linear(2, 2)
    calls = []
    whole = replace_layers(
        nn.Sequential(layer, nn.Sequential(layer)),
        lambda given: calls.append(given) or Wrapped(given),
    )
    assert whole[0] is whole[1][0]
    assert calls == [layer]


def test_a_network_that_is_one_layer_is_exchanged():
    layer = nn.Linear(2, 2)
    assert replace_layers(layer, Wrapped).layer is layer


def test_a_compiled_network_runs_its_new_layers():
    plain = nn.Sequential(nn.Linear(2, 3))
    plain.compile(backend="eager")
    replace_layers(plain, lambda _: nn.Linear(2, 5))
    assert plain(torch.zeros(1, 2)).shape == (1, 5)


class Looks(nn.Module):
    """Looks at the sizes of its layers, as DaViT does."""

    def __init__(self):
        super().__init__()
        self.conv, self.linear = nn.Conv2d(1, 3, (5, 3)), nn.Linear(3, 4)
        self.features = 4

    def forward(self, x):
        height, width = self.conv.kernel_size
        maps = self.conv(functional.pad(x, (0, width - 1, 0, height - 1)))
        assert self.linear.in_features == self.conv.out_channels
        return self.linear(maps.mean((2, 3)))


@each_method
def test_random_layers_have_the_sizes_of_those_they_replace(method):
    network = made(method).build(Looks(), TASKS["classification"])
    assert network(torch.randn(2, 1, 4, 4)).shape == (2, 3)


class Reads(nn.Module):
    """Multiplies by the weights of a layer that it does not call."""

    features = 4

    def __init__(self):
        super().__init__()
        self.called, self.read = nn.Linear(4, 4), nn.Linear(4, 4)

    def forward(self, x):
        return self.called(x) @ self.read.weight.T


def some(shape):
    return lambda: iter([Batch(x=torch.randn(5, *shape), target=torch.zeros(5))])


@each_method
def test_a_network_that_uses_weights_without_calling_the_layer_is_refused(method):
    chosen = made(method)
    network = chosen.build(Reads(), TASKS["classification"]).eval()
    with pytest.raises(ValueError, match=r"weights of 1 layers .* as 'read'"):
        chosen.epoch(network, moment(0), some((4,)))
    chosen.epoch(network, moment(1), some((4,)))  # only ever in the first epoch


@each_method
def test_attention_that_reads_the_weights_of_its_layers_is_refused(method):
    options = {"img_size": 32, "depth": 2, "embed_dim": 12, "num_heads": 2}
    part = Part(name="timm:beit_base_patch16_224", options=options)
    chosen = made(method)
    network = chosen.build(make_network(part, channels=3), TASKS["classification"])
    with pytest.raises(ValueError, match=r"weights of 2 layers .*\.0\.attn\.qkv'"):
        chosen.epoch(network.eval(), moment(0), some((3, 32, 32)))


@each_method
def test_the_first_pass_leaves_random_numbers_and_hooks_as_they_were(method):
    chosen, task = made(method), TASKS["classification"]
    network = built(chosen, task).eval()
    state = torch.get_rng_state()
    chosen.epoch(network, moment(0), batches(task))
    assert torch.equal(torch.get_rng_state(), state)
    kinds = [m for m in network.modules() if m._forward_hooks]
    assert kinds == []
