"""A residual network small enough for a laptop's CPU, for demonstrations.

Blocks are those of `resnet34_ddu`, so that densities of its features are meaningful.
Squares of pixels are folded into channels first, which halves the time at the same
accuracy. The stem halves the image, and so does each stage: 64x64 ends at 2x2.
"""

from collections.abc import Sequence

from torch import nn

from qualms.networks._residual import ResidualStage, ResidualTrunk


def resnet_small(
    *,
    channels: int,
    width: int = 16,
    blocks: Sequence[int] = (1, 1, 1),
    fold: int = 2,
) -> nn.Module:
    """Return a network from images to features, by default 64.

    It has 75,936 parameters for 3 channels.

    Args:
        channels: channels of the images.
        width: width of the first stage; it doubles with every stage.
        blocks: residual blocks in each stage.
        fold: side of the squares of pixels that become channels; it must divide the
            sides of the images.
    """
    if width < 1 or fold < 1 or not blocks or min(blocks) < 1:
        raise ValueError(
            "width, fold and every number of blocks must be at least 1, got width "
            f"{width}, fold {fold} and blocks {tuple(blocks)}"
        )
    stages = [ResidualStage(width * 2**i, count) for i, count in enumerate(blocks)]
    return ResidualTrunk(channels=channels, stages=stages, stride=2, fold=fold)
