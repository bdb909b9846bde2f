"""The ResNet-34 of deep deterministic uncertainty (Mukhoti et al., 2023).

The backbone of the regression benchmark (Gustafsson et al., 2023, arXiv:2302.03679): a
3x3 stem without pooling, stages of 3, 4, 6 and 3 blocks with stride 2 in the first
block of each, shortcuts without parameters, LeakyReLU, 512 features. Its 64x64 images
end at 4x4; the mean over the remaining space follows.

Soft spectral normalisation is an option: no convolution then stretches its input by
more than a bound. The norm is that of the convolution as an operator on images of its
input size. Power iteration computes it, with one step in every training step (Gouk et
al., 2021; Miyato et al., 2018). A weight is scaled only where its norm exceeds the
bound.
"""

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.grad import conv2d_input
from torch.nn.utils import parametrize

from qualms.networks._residual import ResidualStage, ResidualTrunk

STAGES = (
    ResidualStage(64, 3),
    ResidualStage(128, 4),
    ResidualStage(256, 6),
    ResidualStage(512, 3),
)
_FIRST_ITERATIONS = 15


def resnet34_ddu(
    *, channels: int, spectral: float | None = None, size: int = 64
) -> nn.Module:
    """Return a network from images to 512 features.

    It has 21,103,168 parameters for 3 channels.

    Args:
        channels: channels of the images.
        spectral: bound on the operator norm of every convolution, kept by soft spectral
            normalisation; None for no bound. The paper's variation has 3.
        size: side of the images, on which the operator norm depends.
    """
    network = ResidualTrunk(channels=channels, stages=STAGES)
    if spectral is not None:
        bound_convolutions(network, coefficient=spectral, channels=channels, size=size)
    return network


def bound_convolutions(
    network: nn.Module, *, coefficient: float, channels: int, size: int
) -> None:
    """Bound every 2-D convolution of `network`, for images (channels, size, size)."""
    if coefficient <= 0:
        raise ValueError(f"the spectral bound must be positive, got {coefficient}")
    for layer, shape in _input_shapes(network, (1, channels, size, size)):
        bound_convolution(layer, shape, coefficient)


def bound_convolution(
    layer: nn.Conv2d, shape: Sequence[int], coefficient: float
) -> None:
    """Bound the operator norm of `layer` on inputs of `shape` (1, channels, H, W)."""
    bound = _SpectralBound(layer, torch.Size(shape), coefficient)
    parametrize.register_parametrization(layer, "weight", bound)


class _SpectralBound(nn.Module):
    """A weight divided by max(1, norm / coefficient)."""

    inputs: Tensor
    outputs: Tensor

    def __init__(self, layer: nn.Conv2d, shape: torch.Size, coefficient: float) -> None:
        super().__init__()
        if isinstance(layer.padding, str):
            raise ValueError(
                "a convolution must state its padding in pixels to be bounded, got "
                f"{layer.padding!r}"
            )
        self.coefficient = coefficient
        self.stride, self.padding = layer.stride, layer.padding
        self.dilation, self.groups = layer.dilation, layer.groups
        with torch.no_grad():
            weight = layer.weight
            self.register_buffer("inputs", _normalised(torch.randn(shape).to(weight)))
            self.register_buffer(
                "outputs", _normalised(self._apply_to(self.inputs, weight))
            )
            for _ in range(_FIRST_ITERATIONS):
                self._iterate(weight)

    def forward(self, weight: Tensor) -> Tensor:
        """Scale `weight` down where its norm exceeds the coefficient."""
        with torch.autocast(weight.device.type, enabled=False):
            if self.training:
                with torch.no_grad():
                    self._iterate(weight)
            # Copies, as a second pass before the backward pass would move the buffers.
            inputs, outputs = self.inputs.clone(), self.outputs.clone()
            norm = (outputs * self._apply_to(inputs, weight)).sum()
            bounded: Tensor = weight / (norm / self.coefficient).clamp(min=1.0)
            return bounded

    def _iterate(self, weight: Tensor) -> None:
        images: Tensor = conv2d_input(  # type: ignore[no-untyped-call]
            self.inputs.shape,
            weight,
            self.outputs,
            stride=self.stride,
            padding=self.padding,
            dilation=self.dilation,
            groups=self.groups,
        )
        self.inputs.copy_(_normalised(images))
        self.outputs.copy_(_normalised(self._apply_to(self.inputs, weight)))

    def _apply_to(self, images: Tensor, weight: Tensor) -> Tensor:
        maps: Tensor = functional.conv2d(
            images,
            weight,
            stride=self.stride,
            padding=self.padding,
            dilation=self.dilation,
            groups=self.groups,
        )
        return maps


def _normalised(images: Tensor) -> Tensor:
    length: Tensor = torch.linalg.vector_norm(images)
    return images / length.clamp(min=1e-12)


def _input_shapes(
    network: nn.Module, shape: tuple[int, ...]
) -> list[tuple[nn.Conv2d, torch.Size]]:
    """Return every convolution with the shape of its input, noted in one pass."""
    shapes: list[tuple[nn.Conv2d, torch.Size]] = []

    def note(layer: nn.Module, inputs: tuple[Tensor, ...]) -> None:
        assert isinstance(layer, nn.Conv2d)
        shapes.append((layer, inputs[0].shape))

    hooks = [
        layer.register_forward_pre_hook(note)
        for layer in network.modules()
        if isinstance(layer, nn.Conv2d)
    ]
    was_training = network.training
    with torch.no_grad():
        network.eval()(torch.zeros(shape))
    network.train(was_training)
    for hook in hooks:
        hook.remove()
    return shapes
