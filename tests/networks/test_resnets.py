import pytest
import torch
from torch import nn
from torch.nn import functional

from qualms.networks._residual import ResidualStage, ResidualTrunk
from qualms.networks.resnet34_ddu import resnet34_ddu
from qualms.networks.resnet_small import resnet_small


def count(network):
    return sum(p.numel() for p in network.parameters())


@pytest.mark.parametrize(("channels", "parameters"), [(3, 21_103_168), (8, 21_106_048)])
def test_backbone_has_the_paper_s_parameters(channels, parameters):
    assert count(resnet34_ddu(channels=channels)) == parameters


def test_every_stage_halves_the_image():
    sizes = []
    network = resnet34_ddu(channels=3).eval()
    for block in network.blocks:
        block.register_forward_hook(lambda _m, _i, out: sizes.append(out.shape[1:]))
    with torch.no_grad():
        features = network(torch.zeros(1, 3, 64, 64))
    shapes = [(64, 32, 32), (128, 16, 16), (256, 8, 8), (512, 4, 4)]
    expected = [s for s, n in zip(shapes, (3, 4, 6, 3), strict=True) for _ in range(n)]
    assert sizes == expected
    assert features.shape == (1, network.features) == (1, 512)


def test_shortcuts_average_and_add_empty_channels():
    """With all convolutions zero, an image only passes the shortcuts."""
    stages = [ResidualStage(2, 1), ResidualStage(4, 2)]
    network = ResidualTrunk(channels=2, stages=stages).eval()
    for layer in network.modules():
        if isinstance(layer, nn.Conv2d):
            nn.init.zeros_(layer.weight)
    network.stem = nn.Identity()
    x = torch.rand(3, 2, 8, 8)
    expected = torch.cat([x.mean((2, 3)), torch.zeros(3, 2)], 1)
    torch.testing.assert_close(network(x), expected)


def test_activations_leak_a_hundredth():
    layer = next(
        m for m in resnet34_ddu(channels=1).modules() if isinstance(m, nn.LeakyReLU)
    )
    assert layer(torch.tensor([-1.0])).item() == pytest.approx(-0.01)


@pytest.mark.parametrize("size", [32, 45])
def test_other_sizes_work(size):
    network = resnet34_ddu(channels=1).eval()
    with torch.no_grad():
        assert network(torch.zeros(1, 1, size, size)).shape == (1, 512)


@pytest.mark.parametrize(("channels", "parameters"), [(1, 74_784), (3, 75_936)])
def test_small_network_is_small(channels, parameters):
    network = resnet_small(channels=channels)
    assert count(network) == parameters
    assert network(torch.zeros(2, channels, 64, 64)).shape == (2, 64)


def test_folding_is_that_of_pixels_into_channels():
    torch.manual_seed(0)
    folded = resnet_small(channels=1, fold=2).eval()
    plain = resnet_small(channels=4, fold=1).eval()
    plain.load_state_dict(folded.state_dict())
    x = torch.rand(2, 1, 64, 64)
    assert torch.equal(folded(x), plain(functional.pixel_unshuffle(x, 2)))


def test_small_network_refuses_empty_stages():
    with pytest.raises(ValueError, match=r"got width 8, fold 2 and blocks \(1, 0\)"):
        resnet_small(channels=1, width=8, blocks=(1, 0))


@pytest.mark.parametrize("make", [resnet34_ddu, resnet_small])
def test_memory_format_and_half_precision_change_little(make):
    torch.manual_seed(0)
    network = make(channels=3).eval()
    x = torch.rand(2, 3, 64, 64)
    with torch.no_grad():
        plain = network(x)
        network.to(memory_format=torch.channels_last)
        turned = network(x.to(memory_format=torch.channels_last))
        with torch.autocast("cpu", torch.bfloat16):
            half = network(x)
    torch.testing.assert_close(turned, plain, rtol=1e-3, atol=1e-4)
    torch.testing.assert_close(half.float(), plain, rtol=0.1, atol=0.1)
