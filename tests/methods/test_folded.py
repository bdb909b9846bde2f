import pytest
import torch
from torch import nn
from torch.nn import functional

from qualms.methods.rank1 import folded, worth_folding


@pytest.mark.parametrize("width", [1, 2, 3, 4, 7])
@pytest.mark.parametrize("padding", [0, 1, 2, 3])
@pytest.mark.parametrize("side", [8, 9, 13])
def test_folding_changes_neither_outputs_nor_gradients(width, padding, side):
    torch.manual_seed(0)
    image = torch.randn(2, 3, side, side + 3, dtype=torch.float64, requires_grad=True)
    weight = torch.randn(5, 3, width, width, dtype=torch.float64, requires_grad=True)
    plain = functional.conv2d(image, weight, stride=2, padding=padding)
    ours = folded(image, weight, (padding, padding))
    torch.testing.assert_close(ours, plain)
    found, expected = (
        torch.autograd.grad(outputs.sin().sum(), (image, weight))
        for outputs in (ours, plain)
    )
    torch.testing.assert_close(found, expected)


def test_sides_of_a_window_may_differ():
    image, weight = torch.randn(1, 2, 10, 11), torch.randn(4, 2, 3, 5)
    plain = functional.conv2d(image, weight, stride=2, padding=(1, 2))
    torch.testing.assert_close(folded(image, weight, (1, 2)), plain)


def test_outputs_are_laid_out_like_images():
    image, weight = torch.randn(2, 3, 8, 8), torch.randn(4, 3, 3, 3)
    last = image.contiguous(memory_format=torch.channels_last)
    assert folded(image, weight, (1, 1)).is_contiguous()
    outputs = folded(last, weight, (1, 1))
    assert outputs.is_contiguous(memory_format=torch.channels_last)


class OnGpu:
    """Stands for a tensor of a GPU."""

    is_cuda = True


@pytest.mark.parametrize(
    "other",
    [
        nn.Conv2d(3, 8, 7, padding=3),
        nn.Conv2d(64, 8, 3, stride=2),
        nn.Conv2d(4, 8, 3, stride=2, groups=2),
        nn.Conv2d(3, 8, 3, stride=2, dilation=2),
        nn.Conv2d(3, 8, 3, stride=2, padding=1, padding_mode="circular"),
        nn.Conv3d(3, 8, 3, stride=2),
        nn.Linear(3, 8),
    ],
    ids=str,
)
def test_only_convolutions_of_few_channels_with_stride_2_are_folded(other):
    stem = nn.Conv2d(3, 64, 7, stride=2, padding=3)
    assert worth_folding(stem, OnGpu())
    assert not worth_folding(stem, torch.zeros(1))
    assert not worth_folding(other, OnGpu())
