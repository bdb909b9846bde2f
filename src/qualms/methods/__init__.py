"""Methods, one file each; the folder is the registry.

A method is a function of its options that returns a `Method`: a record of a few
functions, whose defaults are the plain network. This package exports that record, what
training passes to a method, and the parts of the plain network that methods share.
"""

from qualms.methods._batch import Batch, Batches, Loss, Moment
from qualms.methods._headed import (
    Draw,
    Headed,
    Readout,
    class_readout,
    embed,
    embedding_readout,
    features_of,
    headed,
    last_inputs,
    read_head,
    regression_readout,
    through_windows,
    upsampled,
)
from qualms.methods._learning import Learning, learning_of
from qualms.methods._method import Method
from qualms.methods._plain import (
    class_likelihood,
    class_logits,
    counted_classes,
    counted_labels,
    kernels_decay,
    likelihood_loss,
    one_pass,
    passes,
    plain_head,
    plain_loss,
    plain_predict,
    summarise,
    weighted_mean,
)
from qualms.methods._untrained import with_untrained
from qualms.methods._windows import Blend, Windows, margins, window_starts

__all__ = [
    "Batch",
    "Batches",
    "Blend",
    "Draw",
    "Headed",
    "Learning",
    "Loss",
    "Method",
    "Moment",
    "Readout",
    "Windows",
    "class_likelihood",
    "class_logits",
    "class_readout",
    "counted_classes",
    "counted_labels",
    "embed",
    "embedding_readout",
    "features_of",
    "headed",
    "kernels_decay",
    "last_inputs",
    "learning_of",
    "likelihood_loss",
    "margins",
    "one_pass",
    "passes",
    "plain_head",
    "plain_loss",
    "plain_predict",
    "read_head",
    "regression_readout",
    "summarise",
    "through_windows",
    "upsampled",
    "weighted_mean",
    "window_starts",
    "with_untrained",
]
