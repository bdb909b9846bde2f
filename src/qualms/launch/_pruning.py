"""Pruning: a trial that does badly on validation items is stopped before its end.

The pruner is Optuna's median. What it compares is the loss on `val` that every epoch
of a run writes to its log, smaller is better. The process that trains a run decides,
after each of its epochs, by the logs of all trials that have begun. So nothing but the
folders of runs says what was decided, and by what.
"""

import math
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from qualms.runs import mark_pruned, read_progress, sibling, was_finished, why_pruned
from qualms.spec import RunSpec

if TYPE_CHECKING:
    from optuna import Study
    from optuna.trial import Trial

LossByEpoch = Mapping[int, float]
"""Loss on `val` by the number of epochs that were trained."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pruning:
    """A rule that stops runs of a search; it travels to the processes that train."""

    search: str
    """Name of the search. What another search has stopped is not stopped in this."""
    runs: tuple[str, ...]
    """Hashes of the runs of all trials so far, in the order of the trials."""

    def __call__(self, spec: RunSpec, folder: Path) -> str:
        """Return why the run in `folder` is stopped now; '' if it goes on.

        The answer is marked in the folder, and stays the same from then on.
        """
        if reason := why_pruned(folder, self.search):
            return reason
        progress = read_progress(folder)
        losses = validation_losses(folder)
        if progress is None or not losses or max(losses) < len(progress.epochs):
            return ""  # the last epoch has no loss to compare
        epoch, epochs = max(losses), _epochs_of(spec)
        if epoch >= epochs or not self._is_pruned(spec, folder):
            return ""
        reason = (
            f"the pruner median stopped it after epoch {epoch} of {epochs}, with"
            f" a loss of {losses[epoch]:.6g} on val"
        )
        mark_pruned(folder, spec, reason, search=self.search)
        return reason

    def _is_pruned(self, spec: RunSpec, folder: Path) -> bool:
        """Show Optuna the losses of all trials, this one's last, and ask its pruner."""
        import optuna

        optuna.logging.set_verbosity(optuna.logging.WARNING)
        with warnings.catch_warnings():
            # A run whose losses are all nan is pruned; NumPy would warn of them.
            warnings.simplefilter("ignore", RuntimeWarning)
            return self._asked(spec, folder)

    def _asked(self, spec: RunSpec, folder: Path) -> bool:
        import optuna

        study = optuna.create_study(
            direction="minimize", pruner=optuna.pruners.MedianPruner()
        )
        trials = {run: study.ask() for run in dict.fromkeys(self.runs)}
        own = trials.pop(spec.hash)
        for run, trial in trials.items():
            other = sibling(folder, run)
            losses = validation_losses(other)
            _replay(trial, losses)
            if losses and was_finished(other):
                _complete(study, trial, losses)
        return _replay(own, validation_losses(folder))


def validation_losses(folder: Path) -> LossByEpoch:
    """Return the losses on `val` in the log of a run, also those that are not finite.

    An epoch that was not validated is left out.
    """
    progress = read_progress(folder)
    entries = progress.epochs if progress else ()
    return {
        int(entry["epoch"]) + 1: float(entry["val"])
        for entry in entries
        if isinstance(entry.get("val"), float | int) and "epoch" in entry
    }


def _epochs_of(spec: RunSpec) -> int:
    from qualms.training.options import training

    return training(spec.training).steps.epochs


def _replay(trial: "Trial", losses: LossByEpoch) -> bool:
    """Report losses epoch by epoch; return whether one of them ends the trial."""
    for epoch, loss in losses.items():
        trial.report(loss, epoch)
        if trial.should_prune():
            return True
    return False


def _complete(study: "Study", trial: "Trial", losses: LossByEpoch) -> None:
    """Tell the study that a trial was trained to its end."""
    from optuna.trial import TrialState

    finite = [loss for loss in losses.values() if not math.isnan(loss)]
    if finite:
        study.tell(trial, min(finite))
    else:
        study.tell(trial, state=TrialState.FAIL)
