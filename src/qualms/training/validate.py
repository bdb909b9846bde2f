"""How a network does on the split `val` while it is trained."""

from collections.abc import Callable, Mapping

import numpy as np
import torch

from qualms.methods._method import Moment
from qualms.training._error import TrainingError
from qualms.training.data import Items
from qualms.training.options import Selection
from qualms.training.predict import Arrays, Predictor


def validation_loss(predictor: Predictor, items: Items, moment: Moment) -> float:
    """Mean loss of `items` in evaluation mode."""
    network, method = predictor.network, predictor.method
    network.eval()
    total = torch.zeros((), dtype=torch.float64, device=items.device)
    with torch.no_grad():
        for raw in items.batches(torch.arange(len(items)), predictor.batch):
            batch = predictor.inputs.plain(raw)
            total += method.loss(network, batch, moment) * len(raw.target)
    return float(total) / len(items)


def goodness(by: Selection, loss: float, predictor: Predictor, items: Items) -> float:
    """How good an epoch is, larger is better, by the rule `by`."""
    if by in _SCORES:
        return _SCORES[by](predictor(items), np.asarray(items.split.target))
    return -loss


def _auroc(found: Arrays, target: np.ndarray) -> float:
    from qualms.scores import auroc  # compiles kernels, which few runs need

    prob = found["prob"] if "prob" in found else found["probs"][..., 1]
    if "probs" in found and found["probs"].shape[-1] != 2:
        raise TrainingError(
            "select_by='val_auroc' needs two classes, got"
            f" {found['probs'].shape[-1]}; select by 'val_loss'"
        )
    return auroc(prob.reshape(-1, len(target)).mean(0), target)


_SCORES: Mapping[str, Callable[[Arrays, np.ndarray], float]] = {"val_auroc": _auroc}
