"""ResNet-50 as the RETINA benchmark trains it (Band et al., 2021).

He et al. (2016) in version 1.5, with the stride in the 3x3 convolution, weights begun
anew, and convolutions padded as in TensorFlow. He's truncated normal begins the
kernels; batch normalisation has momentum 0.9 there, which is 0.1 here.
"""

from torch import nn

from qualms.networks._bottleneck import Bottlenecks


def resnet50(*, channels: int, zero_last: bool = False) -> nn.Module:
    """2048 features of an image; 23,508,032 parameters for 3 channels.

    Args:
        channels: of the images.
        zero_last: whether the last normalisation of each block begins with scale 0, so
            that every block begins as its shortcut.
    """
    return Bottlenecks(
        channels=channels, width=64, blocks=(3, 4, 6, 3), zero_last=zero_last
    )
