"""The plain network, trained by maximum likelihood.

Papers call it MAP, softmax, direct or CE.
"""

from functools import partial

from torch import nn

from qualms.methods._headed import Headed
from qualms.methods._method import Method
from qualms.methods._plain import (
    check_smoothing,
    plain_head,
    plain_loss,
    smoothed_loss,
)
from qualms.spec import Task


def map(*, projection: int | None = None, smoothing: float = 0.0) -> Method:  # noqa: A001
    """Predict by the network as it is: probabilities, label maps, means or embeddings.

    Args:
        projection: width of the embedding, a linear projection of the features; None
            for the features themselves. For the task embedding only.
        smoothing: share of each label that is spread over all classes in the loss. URL
            (Kirchhof et al., 2023) reports none; its released code has 0.1.
    """
    check_smoothing(smoothing)
    return Method(
        build=partial(_build, projection, smoothing),
        loss=partial(smoothed_loss, smoothing) if smoothing else plain_loss,
    )


def _build(
    projection: int | None, smoothing: float, backbone: nn.Module, task: Task
) -> Headed:
    check_smoothing(smoothing, task)
    return plain_head(backbone, task, projection=projection)
