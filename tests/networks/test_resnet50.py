import math

import numpy as np
import pytest
import torch
from scipy import stats
from timm.models import resnet
from torch import nn

from qualms.methods import plain_head
from qualms.networks.resnet50 import Bottlenecks, _HalvingConvolution, _pooled, resnet50
from qualms.spec import Task

TWO = Task(name="classification", classes=2)


@pytest.fixture(scope="module")
def network():
    torch.manual_seed(0)
    return plain_head(resnet50(channels=3), TWO)


def test_it_has_the_paper_s_values(network):
    """With the one-logit head: 23,563,201 values in all."""
    trained = sum(p.numel() for p in network.parameters())
    statistics = sum(
        buffer.numel()
        for name, buffer in network.named_buffers()
        if name.endswith(("running_mean", "running_var"))
    )
    assert (trained, statistics) == (23_510_081, 53_120)
    assert trained + statistics == 23_563_201


def test_weights_are_those_of_an_outside_resnet50(network):
    with torch.device("meta"):
        theirs = resnet.resnet50(num_classes=1)
    ours, wanted = (sorted(p.shape for p in n.parameters()) for n in (network, theirs))
    assert ours == wanted


def test_outputs_are_those_of_an_outside_resnet50_on_odd_sides():
    """Where padding is the same on both sides at every stage, as in timm."""
    torch.manual_seed(0)
    blocks = (1, 2, 1, 1)
    ours = Bottlenecks(channels=3, width=64, blocks=blocks, zero_last=False).eval()
    theirs = resnet.ResNet(resnet.Bottleneck, blocks, num_classes=0).eval()
    # Both list the layers in the same order, a projection at the end of its block.
    state = zip(ours.state_dict(), theirs.state_dict().values(), strict=True)
    ours.load_state_dict(dict(state))
    x = torch.rand(2, 3, 65, 65)
    with torch.no_grad():
        torch.testing.assert_close(ours(x), theirs(x), rtol=1e-3, atol=1e-4)


def same_padding(side):
    """Zeros before and after a side, for windows of 3 at stride 2."""
    total = max((math.ceil(side / 2) - 1) * 2 + 3 - side, 0)
    return total // 2, total - total // 2


def windows(x, fill):
    """(B, C, H', W', 3, 3): what each place of a strided "same" layer sees."""
    pads = [same_padding(side) for side in x.shape[2:]]
    padded = np.pad(x, [(0, 0), (0, 0), *pads], constant_values=fill)
    return np.lib.stride_tricks.sliding_window_view(padded, (3, 3), (2, 3))[
        :, :, ::2, ::2
    ]


@pytest.mark.parametrize("shape", [(8, 8), (7, 7), (6, 9), (9, 6), (2, 1), (16, 4)])
def test_strided_layers_pad_as_tensorflow_does(shape):
    torch.manual_seed(0)
    x = torch.randn(2, 5, *shape)
    layer = _HalvingConvolution(5)
    weight = layer.layer.weight.detach().numpy()
    expected = np.einsum("bchwij,ocij->bohw", windows(x.numpy(), 0.0), weight)
    found = layer(x).detach().numpy()
    assert found.shape[2:] == tuple(math.ceil(side / 2) for side in shape)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)
    pooled = windows(x.numpy(), -np.inf).max((-2, -1))
    np.testing.assert_array_equal(_pooled(x).numpy(), pooled)


def test_the_stride_lies_in_the_3x3_convolution():
    network = Bottlenecks(channels=1, width=2, blocks=(1, 2, 1), zero_last=False)
    sizes = []
    for name, layer in network.named_modules():
        if isinstance(layer, nn.Conv2d):
            sizes.append((name, layer.kernel_size[0], layer.stride[0]))
    strided = [(name, kernel) for name, kernel, stride in sizes if stride == 2]
    assert strided == [
        ("stem.0", 7),
        ("blocks.1.second.0.layer", 3),
        ("blocks.1.shortcut.0", 1),
        ("blocks.3.second.0.layer", 3),
        ("blocks.3.shortcut.0", 1),
    ]


def test_each_stage_halves_the_image(network):
    sizes = []
    hooks = [
        block.register_forward_hook(lambda _m, _i, out: sizes.append(out.shape[1:]))
        for block in network.backbone.blocks
    ]
    with torch.no_grad():
        features = network.eval().backbone(torch.zeros(1, 3, 64, 64))
    for hook in hooks:
        hook.remove()
    shapes = [(256, 16, 16), (512, 8, 8), (1024, 4, 4), (2048, 2, 2)]
    expected = [s for s, n in zip(shapes, (3, 4, 6, 3), strict=True) for _ in range(n)]
    assert sizes == expected
    assert features.shape == (1, network.backbone.features) == (1, 2048)


def test_kernels_begin_as_he_s_truncated_normal(network):
    layers = [m for m in network.modules() if isinstance(m, nn.Conv2d)]
    assert len(layers) == 53
    for layer in (layers[0], layers[-1]):
        weight = layer.weight.detach().flatten().numpy()
        sd = math.sqrt(2 / layer.weight[0].numel())
        cut = 2 * sd / 0.8796
        assert np.abs(weight).max() <= cut * 1.001
        assert weight.std() == pytest.approx(sd, rel=0.02)
        reference = stats.truncnorm(-2, 2, scale=cut / 2)
        assert stats.kstest(weight[:5000], reference.cdf).pvalue > 1e-3


def test_kernels_may_start_uniformly():
    """As every convolution does in the released code of `fsvi`."""
    torch.manual_seed(0)
    network = resnet50(channels=3, init="uniform")
    layers = [m for m in network.modules() if isinstance(m, nn.Conv2d)]
    assert len(layers) == 53
    for layer in (layers[0], layers[-1]):
        weight = layer.weight.detach().flatten().numpy()
        end = 1 / math.sqrt(layer.weight[0].numel())
        reference = stats.uniform(-end, 2 * end)
        assert np.abs(weight).max() <= end
        assert stats.kstest(weight[:5000], reference.cdf).pvalue > 1e-3
    with pytest.raises(ValueError, match="'he_normal' or 'uniform', got 'zeros'"):
        resnet50(channels=3, init="zeros")


def test_the_head_begins_near_zero(network):
    last = network.head.last
    assert last.weight.std().item() == pytest.approx(0.01, rel=0.1)
    assert last.bias.item() == 0.0
    # A backbone that states nothing keeps torch's beginning.
    assert plain_head(_Silent(), TWO).head.last.bias.item() != 0.0


class _Silent(nn.Module):
    features = 8


def test_normalisation_has_the_paper_s_constants(network):
    norms = [m for m in network.modules() if isinstance(m, nn.BatchNorm2d)]
    assert {(norm.momentum, norm.eps) for norm in norms} == {(0.1, 1e-5)}


def test_blocks_may_begin_as_their_shortcuts():
    network = Bottlenecks(channels=1, width=2, blocks=(2, 1), zero_last=True)
    for block in network.blocks:
        assert not block.third[1].weight.any()
        assert block.second[1].weight.all()
    x = torch.rand(3, 8, 6, 6)
    torch.testing.assert_close(network.blocks[1].eval()(x), x)


def test_memory_format_and_half_precision_change_little():
    torch.manual_seed(0)
    network = Bottlenecks(channels=3, width=8, blocks=(1, 1, 1), zero_last=False).eval()
    x = torch.rand(2, 3, 64, 64)
    with torch.no_grad():
        plain = network(x)
        network.to(memory_format=torch.channels_last)
        turned = network(x.to(memory_format=torch.channels_last))
        with torch.autocast("cpu", torch.bfloat16):
            half = network(x)
    torch.testing.assert_close(turned, plain, rtol=1e-3, atol=1e-4)
    torch.testing.assert_close(half.float(), plain, rtol=0.1, atol=0.1)
