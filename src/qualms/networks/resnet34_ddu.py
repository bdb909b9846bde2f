"""The ResNet-34 of deep deterministic uncertainty (Mukhoti et al., 2023).

The backbone of the regression benchmark (Gustafsson et al., 2023, arXiv:2302.03679):
3x3 stem without pooling, stages of 3, 4, 6 and 3 blocks with stride 2 in the first
block of every one, shortcuts without parameters, LeakyReLU, 512 features. Its 64x64
images end at 4x4; other sizes are averaged over whatever is left.
"""

from torch import nn

from qualms.networks._residual import Residual, Stage
from qualms.networks._spectral import bound_convolutions

STAGES = (Stage(64, 3), Stage(128, 4), Stage(256, 6), Stage(512, 3))


def resnet34_ddu(
    *, channels: int, spectral: float | None = None, size: int = 64
) -> nn.Module:
    """512 features of an image; 21,103,168 parameters for 3 channels.

    Args:
        channels: of the images.
        spectral: bound on the operator norm of every convolution, which soft spectral
            normalisation keeps; None for none, 3 in the paper's variation.
        size: side of the images, which the operator norm depends on.
    """
    network = Residual(channels=channels, stages=STAGES)
    if spectral is not None:
        bound_convolutions(network, coefficient=spectral, channels=channels, size=size)
    return network
