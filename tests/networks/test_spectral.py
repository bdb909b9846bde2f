import pytest
import torch
from torch import nn
from torch.nn import functional

from qualms.networks.resnet34_ddu import bound_convolutions, resnet34_ddu


def operator_norm(weight, shape, stride):
    """Largest singular value of the convolution written as a dense matrix."""
    images = torch.eye(shape.numel()).view(-1, *shape)
    columns = functional.conv2d(images, weight, stride=stride, padding=1)
    return torch.linalg.matrix_norm(columns.flatten(1), 2).item()


def convolution(stride, scale):
    torch.manual_seed(0)
    layer = nn.Conv2d(3, 4, 3, stride=stride, padding=1, bias=False)
    nn.init.normal_(layer.weight, std=scale)
    return layer


@pytest.mark.parametrize("stride", [1, 2])
def test_a_large_norm_is_brought_down_to_the_bound(stride):
    layer = convolution(stride, scale=2.0)
    free = layer.weight.detach().clone()
    bound_convolutions(layer, coefficient=3.0, channels=3, size=8)
    with torch.no_grad():
        for _ in range(200):
            layer(torch.zeros(1, 3, 8, 8))
    shape = torch.Size((3, 8, 8))
    assert operator_norm(free, shape, stride) > 3.3
    assert operator_norm(layer.weight.detach(), shape, stride) == pytest.approx(
        3.0, rel=1e-3
    )


def test_a_small_norm_is_left_alone():
    layer = convolution(1, scale=0.1)
    free = layer.weight.detach().clone()
    bound_convolutions(layer, coefficient=3.0, channels=3, size=8)
    assert operator_norm(free, torch.Size((3, 8, 8)), 1) < 3
    assert torch.equal(layer.weight, free)


def test_evaluation_changes_nothing():
    layer = convolution(1, scale=2.0)
    bound_convolutions(layer, coefficient=1.0, channels=3, size=8)
    before = {name: values.clone() for name, values in layer.state_dict().items()}
    layer.eval()(torch.zeros(1, 3, 8, 8))
    after = layer.state_dict()
    assert all(torch.equal(before[name], after[name]) for name in before)
    layer.train()(torch.zeros(1, 3, 8, 8))
    name = "parametrizations.weight.0.inputs"
    assert not torch.equal(before[name], layer.state_dict()[name])


def test_gradients_flow_through_two_passes():
    layer = convolution(1, scale=2.0)
    bound_convolutions(layer, coefficient=1.0, channels=3, size=8)
    x = torch.randn(2, 3, 8, 8)
    (layer(x) + layer(x.flip(0))).square().sum().backward()
    assert torch.isfinite(layer.parametrizations.weight.original.grad).all()


def test_every_convolution_of_the_network_is_bounded():
    network = resnet34_ddu(channels=3, spectral=3.0, size=16)
    bounded = [m for m in network.modules() if type(m).__name__ == "_SpectralBound"]
    assert len(bounded) == 33
    assert sum(p.numel() for p in network.parameters()) == 21_103_168
    assert network.training


def test_the_bound_must_be_positive():
    with pytest.raises(ValueError, match="the spectral bound must be positive, got 0"):
        bound_convolutions(nn.Identity(), coefficient=0.0, channels=1, size=4)


def test_named_padding_is_refused():
    layer = nn.Conv2d(1, 1, 3, padding="same")
    with pytest.raises(ValueError, match="must state its padding in pixels"):
        bound_convolutions(layer, coefficient=1.0, channels=1, size=4)
