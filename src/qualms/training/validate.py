"""Scores of a network on validation items while it is trained."""

from dataclasses import replace

import numpy as np
import torch

from qualms.methods import Moment
from qualms.training.data import LoadedSplit
from qualms.training.neighbours import find_nearest
from qualms.training.options import Training
from qualms.training.predict import Predictor
from qualms.training.selection import (
    RULES,
    PredictedSplit,
    RetrievedSplit,
    stated_uncertainty,
)


def validation_loss(predictor: Predictor, items: LoadedSplit, moment: Moment) -> float:
    """Mean loss of `items`, or of patches that cover them, in evaluation mode.

    The loss takes the form that it has at the end of training. A loss whose parts are
    weighted differently as training goes on could not be compared between epochs.
    """
    network, method = predictor.network, predictor.method
    end = replace(moment, progress=torch.ones_like(moment.progress))
    network.eval()
    total = torch.zeros((), dtype=torch.float64, device=items.device)
    seen = 0
    with torch.no_grad():
        for raw in items.batches(torch.arange(len(items)), predictor.batch):
            batch = predictor.inputs.plain(raw)
            total += method.loss(network, batch, end) * len(raw.target)
            seen += len(raw.target)
    return float(total) / seen


def seen_by(
    options: Training, predictor: Predictor, items: LoadedSplit
) -> PredictedSplit | RetrievedSplit:
    """What rules like that of `options` judge a network by on `items`.

    It is what the method predicts, with all of its draws.
    """
    if RULES[options.select_by].task == "embedding":
        return _retrieved(predictor, items, options.select_uncertainty)
    return _predicted(predictor, items)


def _predicted(predictor: Predictor, items: LoadedSplit) -> PredictedSplit:
    found = predictor(items)
    if "prob" in found:  # P(y=1) (M, N)
        probs = np.stack([1 - found["prob"], found["prob"]], axis=-1)
    else:
        probs = found["probs"]
    return PredictedSplit(probs, np.asarray(items.split.target))


def _retrieved(predictor: Predictor, items: LoadedSplit, name: str) -> RetrievedSplit:
    """Neighbours are sought where the embeddings are."""
    found = predictor.tensors(items)
    embedding = found["embedding"]
    target = torch.from_numpy(np.array(items.split.target)).to(embedding.device)
    known = (target >= 0).nonzero()[:, 0]
    # An item of no known class is no one's neighbour, as in all scores.
    hits = find_nearest(embedding[known], target[known]).hits
    uncertainty = stated_uncertainty(found, name)[known]
    return RetrievedSplit(hits.cpu().numpy(), uncertainty.double().cpu().numpy())
