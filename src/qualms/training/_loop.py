"""The training loop from top to bottom: epochs of steps, then fitting and predicting.

The loop is a generator, so that several runs can take turns on one device. It yields
True after every step, and False while it waits: for the device at the end of an epoch,
when the losses are read, and for the disk at the end of training.
"""

import shutil
import time
from collections.abc import Iterator

import torch
from torch import Tensor

from qualms.methods import Moment
from qualms.runs import is_stored, predictions_folder
from qualms.shelf import traits
from qualms.training._error import TrainingError, writing
from qualms.training._optimiser import EpochSteps, step_rates
from qualms.training._provenance import finish, header
from qualms.training._run import Run
from qualms.training._shared_training import write_shared
from qualms.training._validate import validate_epoch
from qualms.training.predict import Pace, pace_of, split_path, write_split
from qualms.training.seeds import seed

_LATE = 10**9
"""An epoch late enough for every method to be in its last phase."""


def train_and_predict(run: Run) -> Iterator[bool]:
    """Train `run` from its last epoch on, fit, and write its predictions."""
    feed, tensors = run.stepper.feed, run.stepper.tensors
    team = run.resources.machine.team
    _report_phase(run)
    for epoch in range(run.state.epoch, run.options.steps.epochs):
        started = time.perf_counter()
        moment = begin(run, epoch)
        phase = run.learner.method.phase(epoch)
        for size in run.data.step_sizes:
            feed.advance()
            run.take_step(phase, moment, size // team.size)
            yield True
        yield from _wait_for_device(run)
        losses = team.mean(tensors.losses).cpu()
        seconds = time.perf_counter() - started
        loss = _mean_loss(run, epoch, losses)
        val = team.broadcast(validate_epoch(run, moment) if team.leads else None)
        _end(run, loss, val, seconds)
    if not team.leads:
        return
    yield from _wait_for_disk(run)
    if not run.state.fitted:
        write_shared(run.job, run.checkpoint(), run.state)
    _fit(run)
    pace = {}
    for split in run.spec.splits:
        pace[split] = _predict(run, split)
        yield True
    yield from _wait_for_disk(run)
    finish(run, pace)


def _report_phase(run: Run) -> None:
    """Tell the user if training ends before the last phase of the method begins."""
    phase, epochs = run.learner.method.phase, run.options.steps.epochs
    if not epochs:
        return
    reached, last = phase(epochs - 1), phase(_LATE)
    if reached != last:
        run.message(
            f"{epochs} epochs end in the method's phase {reached!r}, and its last one,"
            f" {last!r}, is never trained; train longer or shorten the others"
        )


def _wait_for_device(run: Run) -> Iterator[bool]:
    """Yield until the device has finished the work of this run."""
    if run.resources.machine.cuda:
        done = torch.cuda.current_stream().record_event()
        while not done.query():
            yield False


def _wait_for_disk(run: Run) -> Iterator[bool]:
    """Yield until the last checkpoint is on the disk."""
    while not run.checkpoints.idle:
        yield False
    run.checkpoints.wait()


def begin(run: Run, epoch: int) -> Moment:
    """Start an epoch: seed it, call the method, set the order and learning rates."""
    tensors, network = run.stepper.tensors, run.learner.trained
    options, steps = run.options, len(run.data.step_sizes)
    epochs, batch = options.steps.epochs, options.steps.batch
    seed(run.spec.seed, "epoch", epoch)
    moment = Moment(
        epoch=epoch,
        epochs=epochs,
        items=run.data.size,
        batch=batch,
        progress=tensors.progress,
    )
    tensors.progress.fill_(epoch / epochs)  # also after going on from a checkpoint
    network.eval()
    with torch.no_grad():
        run.learner.method.epoch(network, moment, run.training_batches)
    network.train()
    team = run.resources.machine.team
    if not team.leads:  # each process draws noise of its own
        seed(run.spec.seed, "epoch", epoch, "rank", team.rank)
    done = epoch * steps + torch.arange(1, steps + 1, dtype=torch.float64)
    rates = step_rates(
        options.optimisation,
        EpochSteps(epoch=epoch, epochs=epochs, steps=steps),
        run.state.plateau,
        run.learner.method.schedule,
    )
    tensors.begin(rates, done / (steps * epochs))
    order = run.order(epoch)
    run.stepper.feed.begin(team.part(order, batch))
    if run.stepper.weights is not None:
        run.stepper.weights.begin(order)
    return moment


def _mean_loss(run: Run, epoch: int, losses: Tensor) -> float:
    """Return the mean loss of the items; raise if the loss of a step is not finite."""
    sizes = run.data.step_sizes
    wrong = (~losses.isfinite()).nonzero().flatten().tolist()
    if not wrong:
        weight = torch.tensor(sizes, dtype=torch.float64)
        return float((losses.double() * weight).sum() / weight.sum())
    step = wrong[0]
    start = sum(sizes[:step])
    rows = run.order(epoch)[start : start + sizes[step]].numpy()
    items = ", ".join(map(str, run.data.items.split.item[rows]))
    last = f"epoch {run.state.epoch - 1}" if run.state.epoch else "none so far"
    raise TrainingError(
        f"the loss became {float(losses[step])} in epoch {epoch}, step {step}; train"
        f" with a smaller learning rate. Last good checkpoint, which is kept: {last}."
        f" Items of the step: {items}"
    )


def _end(run: Run, loss: float, val: float | None, seconds: float) -> None:
    """Log an epoch, then save the checkpoint: every epoch of a checkpoint is logged."""
    epoch, epochs = run.state.epoch, run.options.steps.epochs
    sizes = run.data.step_sizes
    run.state.epoch += 1
    run.state.seconds += seconds
    if val is not None:
        patience = run.options.optimisation.patience
        run.state.plateau = run.state.plateau.after(val, patience)
    if run.log is None:
        return
    speed = sum(sizes) / seconds
    entry = {"epoch": epoch, "steps": len(sizes), "loss": loss, "val": val}
    pace = {"images_per_second": speed, "seconds": seconds}
    run.log.write({**entry, **pace, "lr": float(run.learner.tuned.rates[0].value)})
    run.checkpoints.save(run.checkpoint())
    seconds_left = (epochs - run.state.epoch) * seconds
    run.resources.callbacks.epoch(
        run.spec, run.state.epoch, epochs, loss, speed, seconds_left
    )


def _fit(run: Run) -> None:
    """Load the chosen weights, let the method fit what it needs, save the result."""
    if run.state.fitted:
        return
    # Predictions of an earlier attempt may be of weights that were lost with it.
    shutil.rmtree(predictions_folder(run.folder), ignore_errors=True)
    started, network = time.perf_counter(), run.learner.network
    method, trained = run.learner.method, run.learner.trained
    select_by = run.options.selection.select_by
    best = run.state.best.get(select_by)
    run.state.best = {}
    if best is not None and best.weights is not None:
        network.load_state_dict(best.weights)
    elif run.options.steps.epochs and select_by != "last":
        _report_last_kept(run)
    seed(run.spec.seed, "after")
    network.eval()
    with torch.no_grad():
        method.after(trained.eval(), run.training_batches)
        if method.calibrate is not None:
            method.calibrate(trained, run.validation_batches)
    run.state.fitted = True
    run.state.fit_seconds = time.perf_counter() - started
    run.checkpoints.save(run.checkpoint())


def _report_last_kept(run: Run) -> None:
    rule = run.options.selection.select_by
    why = f"no epoch counts for select_by={rule!r}"
    if not run.learner.method.selects:
        why = f"this method uses the weights of many epochs, so select_by={rule!r} is"
        why += " not followed"
    run.message(f"{why}; the weights of the last one are kept")


def _predict(run: Run, split: str) -> Pace:
    if is_stored(run.folder, split, run.spec):
        return {}
    splits = run.resources.splits
    path = split_path(run.folder, split, splits.dataset.task)
    seed(run.spec.seed, "predict", split)
    predictor, items = run.predictor_of(split)
    with writing(run.folder):
        write_split(path, predictor, items, header(run, split))
    if "vectors" not in traits(splits.dataset.task.name):
        return {}
    return pace_of(run.predictor, splits[split])
