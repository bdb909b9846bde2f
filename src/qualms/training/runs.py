"""A run and everything it holds, built anew or brought back from its checkpoint."""

import math
from collections.abc import Callable, Iterator
from concurrent.futures import Executor
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor

from qualms.methods import Batch, Windows
from qualms.networks import IMAGENET, Colours, network_colours
from qualms.spec import RunSpec, Task
from qualms.training._error import TrainingError
from qualms.training.capture import Recorder
from qualms.training.checkpoint import Saver, State, read_checkpoint
from qualms.training.checks import check_method_fits, check_options_fit
from qualms.training.data import LoadedSplit, Splits, feed
from qualms.training.features import FeatureCache, feature_inputs
from qualms.training.followers import Assigned, followed
from qualms.training.inputs import Inputs, make_inputs, patch_inputs
from qualms.training.items import (
    Listed,
    TrainingItems,
    trained_task,
    training_items,
)
from qualms.training.learner import (
    Learner,
    backbone_note,
    make_learner,
    start_from,
)
from qualms.training.log import Log
from qualms.training.machine import Machine
from qualms.training.options import Training, training
from qualms.training.predict import Predictor, check_predictable
from qualms.training.seeds import shuffled
from qualms.training.selection import RULES, check_selection, selection_splits
from qualms.training.stand import Stand, stand_of
from qualms.training.step import Board, Stepper
from qualms.training.team import check_divides, make_objective
from qualms.training.watch import Watch
from qualms.training.weights import make_weights


@dataclass(frozen=True, slots=True, kw_only=True)
class Workplace:
    """What runs on one device share."""

    machine: Machine
    splits: Splits
    watch: Watch
    writer: Executor | None = None
    """Writes checkpoints in the background; None to write them at once."""
    lists: dict[str, Listed] = field(default_factory=dict)
    """Training items that were chosen here, see `training_items`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One run while it is trained."""

    spec: RunSpec
    folder: Path
    followers: tuple[Assigned, ...]
    """Runs that are not trained, whose rules it has followed from the first epoch."""
    options: Training
    place: Workplace
    task: Task
    """Of the dataset whose items it trains on."""
    items: LoadedSplit
    """What it trains on: a split, or several, joined."""
    rows: Tensor
    """Those of `items` that it trains on."""
    counts: list[int]
    """Items in each step of an epoch."""
    learner: Learner
    inputs: Inputs
    """How images become batches; the stepper's own may be of cached features."""
    cache: FeatureCache | None
    """Where the features of a frozen backbone are kept."""
    stepper: Stepper
    step: Recorder
    saver: Saver
    log: Log | None
    """None where another process of the team writes."""
    stand: Stand
    looked_at: dict[str, LoadedSplit] = field(default_factory=dict)
    """Features of validation items that are loaded already."""

    @property
    def at_once(self) -> int:
        """Items looked at without a step; fewer where memory was short for a step."""
        passed = self.stepper.micro * self.place.machine.team.size
        size = _at_once(self.options, passed)
        if self.items.draw is None:
            return size
        cutter = self.items.cutter
        seen = cutter.rule.sides if cutter else self.items.split.target.shape[2:]
        return max(1, min(size, _PIXELS // math.prod(seen)))

    @property
    def size(self) -> int:
        """Items it trains on, or patches that all of them together are worth."""
        cutter = self.items.cutter
        return len(self.rows) if cutter is None else cutter.size(self.rows.tolist())

    @property
    def predictor(self) -> Predictor:
        """The whole network as it is now, to be asked about images."""
        return Predictor(
            network=self.learner.network,
            method=self.learner.method,
            task=self.task,
            inputs=self.inputs,
            batch=self.at_once,
            say=partial(self.place.watch.message, self.spec),
            crops=self.options.crop_pass,
            windows=self._windows,
        )

    @property
    def _windows(self) -> Windows | None:
        if self.items.cutter is None:
            return None
        return Windows(
            sides=self.items.cutter.rule.sides,
            overlap=self.options.overlap,
            blend=self.options.blend,
            together=self.at_once,
        )

    @property
    def validator(self) -> Predictor:
        """What is trained as it is now, to be asked about `validation_split`s."""
        network, inputs = self.learner.trained, self.stepper.inputs
        return replace(self.predictor, network=network, inputs=inputs, crops=False)

    def validation_split(self, name: str) -> LoadedSplit:
        """A split that the run looks at in training: its images, or their features."""
        items = self.place.splits[name]
        if self.cache is None:
            return items
        if name not in self.looked_at:
            rows = torch.arange(len(items))
            self.looked_at[name] = self.cache.load(name, items, rows)
        return self.looked_at[name]

    @property
    def has_loss(self) -> bool:
        """Whether `val` has a loss: rules by retrieval need no such split.

        Nor is there one where the run trains on items of another dataset.
        """
        splits, rule = self.place.splits, RULES[self.options.select_by]
        if self.task != splits.dataset.task:
            return False
        return splits.has("val") or rule.task != "embedding"

    def selected_on(self, rule: str) -> tuple[str, ...]:
        """The splits by which `rule` chooses an epoch."""
        options = replace(self.options, select_by=rule)
        return selection_splits(options, self.place.splits)

    def order(self, epoch: int) -> Tensor:
        """The rows that `epoch` visits, step by step."""
        passes = self.options.epoch_passes
        first = epoch * passes
        orders = [
            shuffled(self.rows, self.spec.seed, number)
            for number in range(first, first + passes)
        ]
        return torch.cat(orders)[: sum(self.counts)]

    def batches(self) -> Iterator[Batch]:
        """One pass over the items it trains on, in order, without augmentation."""
        for raw in self.items.batches(self.rows, self.at_once):
            yield self.stepper.inputs.plain(raw)

    def held_out(self) -> Iterator[Batch]:
        """One pass over the split `val`, for methods that are calibrated on it."""
        items = self.validation_split("val")
        for raw in items.batches(torch.arange(len(items)), self.at_once):
            yield self.stepper.inputs.plain(raw)

    def state(self) -> State:
        """What a checkpoint keeps; a fitted run needs no optimiser any more."""
        learned = self.learner.state()
        if self.stand.fitted:
            learned = {"network": learned["network"]}
        return {"hash": self.spec.hash, **learned, "stand": self.stand.state()}


_PIXELS = 2**22
"""Most pixels of label maps at once: 16 volumes of 64 x 64 x 64."""


class _Setup(NamedTuple):
    """What a run is made from."""

    job: Assigned
    place: Workplace
    options: Training
    micro: int
    """Items in a forward pass of a step, over all devices."""


def make_run(job: Assigned, place: Workplace, micro: int) -> Run:
    """The run of `job`, with at most `micro` items in a forward pass.

    It stands where its checkpoint says, else at the beginning.
    """
    (spec, folder, _), splits, machine = job, place.splits, place.machine
    setup = _Setup(job, place, training(spec.training), micro)
    options, task = setup.options, trained_task(spec, splits)
    check_options_fit(options, spec, task, splits)
    check_selection(options, splits)
    chosen = _chosen(job, place)
    check_divides(options, len(chosen.rows), machine.team)
    inputs = _inputs(setup, chosen.items, task)
    for split in spec.splits:
        check_predictable(split, splits, inputs)
    learner = make_learner(spec, task, options, inputs, machine)
    check_method_fits(learner, options, spec, splits, task)
    _tell_backbone(learner, setup)
    stand = _resumed(setup, learner)
    cache = _cache(setup, learner, inputs)
    if cache is not None:
        chosen = _on_features(cache, chosen)
    counts = _counts(len(chosen.rows) * options.epoch_passes, setup)
    seen = inputs if cache is None else feature_inputs(inputs, options)
    seen = patch_inputs(seen, chosen.items, options, ignore=task.ignore)
    stepper = _stepper(setup, learner, chosen.items, seen, counts)
    return Run(
        spec=spec,
        folder=folder,
        followers=followed(job, stand, splits, selects=learner.method.selects),
        options=options,
        place=place,
        task=task,
        items=chosen.items,
        rows=chosen.rows,
        counts=counts,
        learner=learner,
        inputs=inputs,
        cache=cache,
        stepper=stepper,
        step=_recorder(stepper, partial(place.watch.message, spec)),
        saver=Saver(folder, place.writer),
        log=_log(job, options, stand) if machine.team.leads else None,
        stand=stand,
    )


def _chosen(job: Assigned, place: Workplace) -> TrainingItems:
    """What the run trains on; one process of a team writes it down."""
    leads = place.machine.team.leads
    return training_items(
        job.spec, job.folder, place.splits, known=place.lists, write=leads
    )


def _inputs(setup: _Setup, items: LoadedSplit, task: Task) -> Inputs:
    colours = _colours(setup.options, setup.job.spec)
    return make_inputs(items, setup.options, ignore=task.ignore, colours=colours)


def _stepper(
    setup: _Setup,
    learner: Learner,
    items: LoadedSplit,
    inputs: Inputs,
    counts: list[int],
) -> Stepper:
    options, machine = setup.options, setup.place.machine
    dataset, team = setup.place.splits.dataset, machine.team
    rows, stride = sum(counts), options.batch * options.accumulate
    return Stepper(
        learner=learner,
        objective=make_objective(learner.method, learner.trained, team),
        board=Board(len(counts), machine.device, learner.tuned.rates[0].value.dtype),
        feed=feed(items, rows=rows // team.size, stride=stride // team.size),
        inputs=inputs,
        machine=machine,
        options=options,
        micro=-(-setup.micro // team.size),
        weights=make_weights(options, dataset, items.split, machine),
    )


def _cache(setup: _Setup, learner: Learner, inputs: Inputs) -> FeatureCache | None:
    if setup.options.features != "cached":
        return None
    return FeatureCache(
        folder=setup.job.folder,
        run=setup.job.spec.hash,
        network=learner.network,
        inputs=inputs,
        machine=setup.place.machine,
        batch=_at_once(setup.options, setup.micro),
    )


def _on_features(cache: FeatureCache, chosen: TrainingItems) -> TrainingItems:
    loaded = cache.load("train", chosen.items, chosen.rows)
    return TrainingItems(loaded, torch.arange(len(loaded)))


def _log(job: Assigned, options: Training, stand: Stand) -> Log:
    return Log(job.folder, options.sinks, run=job.spec.hash, epoch=stand.epoch)


def _at_once(options: Training, passed: int) -> int:
    """Items looked at without a step, where a forward pass of a step has `passed`."""
    return max(1, options.predict_batch * passed // options.batch)


def _counts(rows: int, setup: _Setup) -> list[int]:
    """Items in each step of an epoch.

    Few items that a rule has chosen make one step, if they do not fill one.
    """
    options, alone = setup.options, setup.place.machine.team.size == 1
    stride = options.batch * options.accumulate
    steps, left = divmod(rows, stride)
    few = not steps and setup.job.spec.items is not None and alone
    smaller = options.partial or few
    if not smaller and not steps:
        raise TrainingError(
            f"partial=false leaves no step: one takes {stride} items, and there are"
            f" {rows} to train on; choose a smaller batch"
        )
    return [stride] * steps + [left] * (left > 0 and smaller)


def _colours(options: Training, spec: RunSpec) -> Colours:
    """Mean and deviation of colours as the network knows them."""
    return network_colours(spec.network) if options.normalise == "network" else IMAGENET


def _tell_backbone(learner: Learner, setup: _Setup) -> None:
    if note := backbone_note(learner.network):
        setup.place.watch.message(setup.job.spec, note)


def _resumed(setup: _Setup, learner: Learner) -> Stand:
    (spec, folder, _), trains = setup.job, setup.options.epochs > 0
    say = partial(setup.place.watch.message, spec)
    state = read_checkpoint(folder, spec.hash, say)
    if state is None:
        if spec.start is None:
            return Stand()
        spent = start_from(learner.network, folder, spec.start, say if trains else None)
        # Weights that are used as they are cost what their training did.
        return Stand() if trains else Stand(seconds=spent)
    try:
        learner.restore(state)
        return stand_of(state["stand"])
    except torch.OutOfMemoryError:
        raise
    except (RuntimeError, LookupError, TypeError, ValueError, AttributeError) as error:
        why = str(error).strip().partition("\n")[0]
        raise TrainingError(
            f"the checkpoint in {folder} was written by other code and does not fit"
            f" this one ({why}); delete the folder to start anew"
        ) from error


def _recorder(stepper: Stepper, say: Callable[[str], None]) -> Recorder:
    asked, mixed = stepper.options.capture, stepper.options.precision == "fp16"
    alone = stepper.machine.team.size == 1
    able = stepper.machine.cuda and alone and not mixed
    if asked is True and not able:
        why = "without a CUDA device" if alone else "on several devices"
        why = "with precision 'fp16'" if mixed else why
        say(f"steps cannot be recorded {why} and stay eager")
    return Recorder(stepper, record=able and asked is not False, say=say)
