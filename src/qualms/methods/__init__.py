"""Methods, one file each; the folder is the registry.

A method is a function of its options that returns a `Method`: a record of a few
functions, whose defaults are the plain network. This package exports that record, what
training passes to a method, and the parts of the plain network that methods share.
"""

from qualms.methods._batch import Batch, Batches, Loss, Moment
from qualms.methods._headed import (
    EmbeddingDraw,
    Headed,
    Readout,
    embed,
    features_of,
    headed,
    last_inputs,
    read_head,
    through_windows,
    upsampled,
)
from qualms.methods._method import Method
from qualms.methods._plain import (
    kernels_decay,
    likelihood_loss,
    passes,
    plain_head,
    plain_loss,
    plain_predict,
    summarise,
    summarise_embeddings,
    weighted_mean,
)
from qualms.methods._untrained import with_untrained
from qualms.methods._windows import Blend, Windows, margins, window_starts

__all__ = [
    "Batch",
    "Batches",
    "Blend",
    "EmbeddingDraw",
    "Headed",
    "Loss",
    "Method",
    "Moment",
    "Readout",
    "Windows",
    "embed",
    "features_of",
    "headed",
    "kernels_decay",
    "last_inputs",
    "likelihood_loss",
    "margins",
    "passes",
    "plain_head",
    "plain_loss",
    "plain_predict",
    "read_head",
    "summarise",
    "summarise_embeddings",
    "through_windows",
    "upsampled",
    "weighted_mean",
    "window_starts",
    "with_untrained",
]
