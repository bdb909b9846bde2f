"""The plain network, trained by maximum likelihood.

Every paper has it under a label of its own: MAP, softmax, direct, CE.
"""

from qualms.methods._method import Method


def map() -> Method:  # noqa: A001
    """The network as it is: class probabilities, label maps, or the mean alone."""
    return Method()
