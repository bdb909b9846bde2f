"""The training loop from top to bottom: epochs of steps, then fitting and predicting.

It is a generator, so that several runs can take turns on one device. It yields True
after every step, and False while it waits: for the device at the end of an epoch, when
the losses are read, and for the disk at the end of training.
"""

import shutil
import time
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from qualms.methods import Moment
from qualms.runs import is_stored, predictions_folder
from qualms.training._error import TrainingError, writing
from qualms.training.features import forget_features
from qualms.training.followers import lend
from qualms.training.predict import Pace, split_path, write_split
from qualms.training.record import finish, header
from qualms.training.runs import Run
from qualms.training.schedule import rates
from qualms.training.seeds import seed
from qualms.training.selection import RULES, selection_score
from qualms.training.stand import BestEpoch
from qualms.training.validate import seen_by, validation_loss

_LATE = 10**9
"""An epoch late enough for every method to be in its last phase."""


def train_and_predict(run: Run) -> Iterator[bool]:
    """Train `run` from where it stands, fit, and write what it predicts."""
    feed, board, team = run.stepper.feed, run.stepper.board, run.place.machine.team
    _tell_phase(run)
    for epoch in range(run.stand.epoch, run.options.epochs):
        started = time.perf_counter()
        moment = begin(run, epoch)
        phase = run.learner.method.phase(epoch)
        for count in run.counts:
            feed.advance()
            run.step(phase, moment, count // team.size)
            yield True
        yield from _device(run)
        losses = team.mean(board.losses).cpu()
        seconds = time.perf_counter() - started
        loss = _mean(run, epoch, losses)
        val = team.heard(_look(run, moment) if team.leads else None)
        _end(run, loss, val, seconds)
    if not team.leads:
        return
    yield from _disk(run)
    if not run.stand.fitted:
        lend(run.followers, run.folder, run.state(), run.stand)
    _fit(run)
    pace = {}
    for split in run.spec.splits:
        pace[split] = _predict(run, split)
        yield True
    yield from _disk(run)
    forget_features(run.folder)
    finish(run, pace)


def _tell_phase(run: Run) -> None:
    """Tell the user if training ends before the last phase of the method begins."""
    phase, epochs = run.learner.method.phase, run.options.epochs
    if not epochs:
        return
    reached, last = phase(epochs - 1), phase(_LATE)
    if reached != last:
        run.place.watch.message(
            run.spec,
            f"{epochs} epochs end in the method's phase {reached!r}, and its last one,"
            f" {last!r}, is never trained; train longer or shorten the others",
        )


def _device(run: Run) -> Iterator[bool]:
    """Yield until the device has finished the work of this run."""
    if run.place.machine.cuda:
        done = torch.cuda.current_stream().record_event()
        while not done.query():
            yield False


def _disk(run: Run) -> Iterator[bool]:
    """Yield until the last checkpoint is on the disk."""
    while not run.saver.idle:
        yield False
    run.saver.wait()


def begin(run: Run, epoch: int) -> Moment:
    """Start an epoch: seed it, call the method, set the order and learning rates."""
    feed, board, network = run.stepper.feed, run.stepper.board, run.learner.trained
    steps, epochs = len(run.counts), run.options.epochs
    seed(run.spec.seed, "epoch", epoch)
    moment = Moment(
        epoch=epoch,
        epochs=epochs,
        items=run.size,
        batch=run.options.batch,
        progress=board.progress,
    )
    board.progress.fill_(epoch / epochs)  # also where a checkpoint was gone on from
    network.eval()
    with torch.no_grad():
        run.learner.method.epoch(network, moment, run.batches)
    network.train()
    team = run.place.machine.team
    if not team.leads:  # each draws noise of its own
        seed(run.spec.seed, "epoch", epoch, "rank", team.rank)
    done = epoch * steps + torch.arange(1, steps + 1, dtype=torch.float64)
    lr = rates(
        run.options,
        epoch=epoch,
        steps=steps,
        plateau=run.stand.plateau,
        own=run.learner.method.schedule,
    )
    board.begin(lr, done / (steps * epochs))
    order = run.order(epoch)
    feed.begin(team.part(order, run.options.batch))
    if run.stepper.weights is not None:
        run.stepper.weights.begin(order)
    return moment


def _mean(run: Run, epoch: int, losses: Tensor) -> float:
    """The mean loss of the items; raises if the loss of a step is not a number."""
    wrong = (~losses.isfinite()).nonzero().flatten().tolist()
    if not wrong:
        weight = torch.tensor(run.counts, dtype=torch.float64)
        return float((losses.double() * weight).sum() / weight.sum())
    step = wrong[0]
    start = sum(run.counts[:step])
    rows = run.order(epoch)[start : start + run.counts[step]].numpy()
    items = ", ".join(map(str, run.items.split.item[rows]))
    last = f"epoch {run.stand.epoch - 1}" if run.stand.epoch else "none so far"
    raise TrainingError(
        f"the loss became {float(losses[step])} in epoch {epoch}, step {step}; train"
        f" with a smaller learning rate. Last good checkpoint, which is kept: {last}."
        f" Items of the step: {items}"
    )


def _look(run: Run, moment: Moment) -> float | None:
    """The loss on `val`, None in epochs without one; keeps the best weights."""
    options, best = run.options, run.stand.best
    every = 1 if options.needs_val else options.validate
    if not every or (moment.epoch + 1) % every:
        return None
    loss = None
    with run.place.machine.autocast():
        if run.has_loss:
            loss = validation_loss(run.validator, run.validation_split("val"), moment)
        values = _goodness(run, loss)
    better = {rule: v for rule, v in values.items() if v > best[rule].value}
    if better:
        state = run.learner.network.state_dict()
        weights = {name: part.clone() for name, part in state.items()}
        best |= {r: BestEpoch(value=v, weights=weights) for r, v in better.items()}
    return loss


def _goodness(run: Run, loss: float | None) -> dict[str, float]:
    """How good the epoch is, larger is better, by every rule that is followed.

    It is nan where a rule leaves the epoch out.
    """
    found, seen = dict[str, float](), dict[str, Any]()
    for rule in run.stand.best:
        if rule == "val_loss" and loss is not None:
            found[rule] = -loss
        elif RULES[rule].score is not None:
            splits = run.selected_on(rule)
            for name in splits:
                if name not in seen:
                    items = run.validation_split(name)
                    seen[name] = seen_by(run.options, run.validator, items)
            found[rule] = selection_score(rule, [seen[name] for name in splits])
    return found


def _end(run: Run, loss: float, val: float | None, seconds: float) -> None:
    """Log an epoch, then save the checkpoint: no epoch of a checkpoint lacks a log."""
    epoch, epochs, count = run.stand.epoch, run.options.epochs, sum(run.counts)
    run.stand.epoch += 1
    run.stand.seconds += seconds
    if val is not None:
        run.stand.plateau = run.stand.plateau.after(val, run.options.patience)
    if run.log is None:
        return
    entry = {"epoch": epoch, "steps": len(run.counts), "loss": loss, "val": val}
    pace = {"images_per_second": count / seconds, "seconds": seconds}
    run.log.write({**entry, **pace, "lr": float(run.learner.tuned.rates[0].value)})
    run.saver.save(run.state())
    left = (epochs - run.stand.epoch) * seconds
    run.place.watch.epoch(
        run.spec, run.stand.epoch, epochs, loss, count / seconds, left
    )


def _fit(run: Run) -> None:
    """Load the chosen weights, let the method fit what it needs, save the result."""
    if run.stand.fitted:
        return
    # Predictions of an earlier attempt may be of weights that were lost with it.
    shutil.rmtree(predictions_folder(run.folder), ignore_errors=True)
    started, network = time.perf_counter(), run.learner.network
    method, trained = run.learner.method, run.learner.trained
    chosen = run.stand.best.get(run.options.select_by)
    run.stand.best = {}
    if chosen is not None and chosen.weights is not None:
        network.load_state_dict(chosen.weights)
    elif run.options.epochs and run.options.select_by != "last":
        _tell_last(run)
    seed(run.spec.seed, "after")
    network.eval()
    with torch.no_grad():
        method.after(trained.eval(), run.batches)
        if method.calibrate is not None:
            method.calibrate(trained, run.held_out)
    run.stand.fitted = True
    run.stand.fit_seconds = time.perf_counter() - started
    run.saver.save(run.state())


def _tell_last(run: Run) -> None:
    by = run.options.select_by
    why = f"no epoch counts for select_by={by!r}"
    if not run.learner.method.selects:
        why = f"this method uses the weights of many epochs, so select_by={by!r} is not"
        why += " followed"
    run.place.watch.message(run.spec, f"{why}; the weights of the last one are kept")


def _predict(run: Run, split: str) -> Pace:
    if is_stored(run.folder, split, run.spec):
        return {}
    path = split_path(run.folder, split, run.place.splits.dataset.task)
    seed(run.spec.seed, "predict", split)
    with writing(run.folder):
        items = run.place.splits[split]
        return write_split(path, run.predictor, items, header(run, split))
