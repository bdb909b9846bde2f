"""Validation of an epoch: the loss on `val`, and the best weights by each rule."""

from dataclasses import replace
from typing import Any

import numpy as np
import torch

from qualms.methods import Moment
from qualms.training._checkpoint import BestEpoch
from qualms.training._neighbours import find_nearest
from qualms.training._run import Run
from qualms.training._splits import LoadedSplit
from qualms.training.options import EpochSelection
from qualms.training.predict import Predictor
from qualms.training.selection import (
    RULES,
    PredictedSplit,
    RetrievedSplit,
    selection_score,
    stated_uncertainty,
)


def validate_epoch(run: Run, moment: Moment) -> float | None:
    """Keep the best weights, and return the loss on `val`; None if there is none."""
    options, best = run.options, run.state.best
    every = 1 if options.needs_val else options.selection.validate
    if not every or (moment.epoch + 1) % every:
        return None
    loss = None
    with run.resources.machine.autocast():
        if run.has_val_loss:
            loss = validation_loss(run.validator, run.validation_split("val"), moment)
        scores = _scores(run, loss)
    better = {rule: s for rule, s in scores.items() if s > best[rule].value}
    if better:
        state = run.learner.network.state_dict()
        weights = {name: part.clone() for name, part in state.items()}
        best |= {r: BestEpoch(value=s, weights=weights) for r, s in better.items()}
    return loss


def _scores(run: Run, loss: float | None) -> dict[str, float]:
    """Return the score of the epoch by every rule that is followed; larger is better.

    It is nan where a rule leaves the epoch out.
    """
    scores, predicted = dict[str, float](), dict[str, Any]()
    for rule in run.state.best:
        if rule == "val_loss" and loss is not None:
            scores[rule] = -loss
        elif RULES[rule].score is not None:
            splits = run.splits_of_rule(rule)
            for name in splits:
                if name not in predicted:
                    items = run.validation_split(name)
                    predicted[name] = validation_predictions(
                        run.options.selection, run.validator, items
                    )
            scores[rule] = selection_score(rule, [predicted[name] for name in splits])
    return scores


def validation_loss(predictor: Predictor, items: LoadedSplit, moment: Moment) -> float:
    """Return the mean loss of `items`, or of patches that cover them.

    The network is in evaluation mode. The loss takes the form that it has at the end of
    training: a loss whose parts are weighted differently as training goes on could not
    be compared between epochs.
    """
    network, method = predictor.network, predictor.method
    end = replace(moment, progress=torch.ones_like(moment.progress))
    network.eval()
    total = torch.zeros((), dtype=torch.float64, device=items.device)
    count = 0
    with torch.no_grad():
        for raw in items.batches(torch.arange(len(items)), predictor.batch):
            batch = predictor.inputs.plain(raw)
            total += method.loss(network, batch, end) * len(raw.target)
            count += len(raw.target)
    return float(total) / count


def validation_predictions(
    selection: EpochSelection, predictor: Predictor, items: LoadedSplit
) -> PredictedSplit | RetrievedSplit:
    """Return what rules like that of `selection` score: predictions with all draws."""
    if RULES[selection.select_by].retrieves:
        return _retrieved(predictor, items, selection.select_uncertainty)
    return _predicted(predictor, items)


def _predicted(predictor: Predictor, items: LoadedSplit) -> PredictedSplit:
    arrays = predictor(items)
    if "prob" in arrays:  # P(y=1) (M, N)
        probs = np.stack([1 - arrays["prob"], arrays["prob"]], axis=-1)
    else:
        probs = arrays["probs"]
    return PredictedSplit(probs, np.asarray(items.split.target))


def _retrieved(predictor: Predictor, items: LoadedSplit, name: str) -> RetrievedSplit:
    """Find nearest neighbours on the device of the embeddings."""
    arrays = predictor.tensors(items)
    embedding = arrays["embedding"]
    target = torch.from_numpy(np.array(items.split.target)).to(embedding.device)
    rows = (target >= 0).nonzero()[:, 0]
    # An item of unknown class is nobody's neighbour, as in all scores.
    hits = find_nearest(embedding[rows], target[rows]).hits
    uncertainty = stated_uncertainty(arrays, name)[rows]
    return RetrievedSplit(hits.cpu().numpy(), uncertainty.double().cpu().numpy())
