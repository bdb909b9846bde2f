"""The plain network, trained by maximum likelihood.

Every paper has it under a label of its own: MAP, softmax, direct, CE.
"""

from functools import partial

from qualms.methods._method import Method
from qualms.methods._plain import plain_head


def map(*, projection: int | None = None) -> Method:  # noqa: A001
    """The network as it is: class probabilities, label maps, means or embeddings.

    Args:
        projection: width of the embedding, a linear projection of the features; None
            for the features themselves. For the task embedding only.
    """
    return Method(build=partial(plain_head, projection=projection))
