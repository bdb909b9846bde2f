"""Scores of a network on validation items while it is trained."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import torch

from qualms.methods import Moment
from qualms.training.data import LoadedSplit
from qualms.training.predict import Predictor
from qualms.training.selection import RULES, PredictedSplit, selection_score


def validation_loss(predictor: Predictor, items: LoadedSplit, moment: Moment) -> float:
    """Mean loss of `items` in evaluation mode.

    The loss takes the form that it has at the end of training. A loss whose parts are
    weighted differently as training goes on could not be compared between epochs.
    """
    network, method = predictor.network, predictor.method
    end = replace(moment, progress=torch.ones_like(moment.progress))
    network.eval()
    total = torch.zeros((), dtype=torch.float64, device=items.device)
    with torch.no_grad():
        for raw in items.batches(torch.arange(len(items)), predictor.batch):
            batch = predictor.inputs.plain(raw)
            total += method.loss(network, batch, end) * len(raw.target)
    return float(total) / len(items)


def goodness(
    by: str, loss: float, predictor: Predictor, look: Callable[[str], LoadedSplit]
) -> float:
    """How good an epoch is, larger is better, by the rule `by`.

    Rules other than the loss judge what the method predicts, with all of its draws, for
    the splits that `look` gives by name.
    """
    if by == "val_loss":
        return -loss
    return selection_score(
        by, [_predicted(predictor, look(n)) for n in RULES[by].splits]
    )


def _predicted(predictor: Predictor, items: LoadedSplit) -> PredictedSplit:
    found = predictor(items)
    if "prob" in found:  # P(y=1) (M, N)
        probs = np.stack([1 - found["prob"], found["prob"]], axis=-1)
    else:
        probs = found["probs"]
    return PredictedSplit(probs, np.asarray(items.split.target))
