"""Builds a run, anew or from its checkpoint.

Options, methods and data that do not fit together are refused before training begins.
"""

from collections.abc import Callable
from math import prod
from typing import NamedTuple

import numpy as np
import torch

from qualms.datasets import Dataset, Ragged, Split
from qualms.networks import IMAGENET, Colours, network_colours
from qualms.runs import shared_features
from qualms.spec import RunSpec, Task
from qualms.training._checkpoint import (
    Checkpoint,
    CheckpointWriter,
    TrainingState,
    read_checkpoint,
    state_from_dict,
)
from qualms.training._error import TrainingError
from qualms.training._features import (
    FeatureCache,
    backbone_identity,
    feature_inputs,
)
from qualms.training._feed import make_feed, make_weights
from qualms.training._inputs import Inputs, make_inputs, patch_inputs
from qualms.training._items import TrainingItems, trained_task, training_items
from qualms.training._learner import Learner, backbone_note, make_learner, start_from
from qualms.training._log import EpochLog
from qualms.training._patches import patch_rule
from qualms.training._run import DeviceResources, Run, TrainingData, scaled_batch
from qualms.training._shared_training import TrainingJob, follow_dependents
from qualms.training._splits import Splits
from qualms.training._step import Recorder, Stepper, StepTensors
from qualms.training._team import check_divides, make_loss
from qualms.training.options import Training, task_refusal, training
from qualms.training.predict import check_predictable
from qualms.training.selection import check_selection

MOST_OF_ITEM = 4
"""Most pixels of a patch, in pixels of the largest item."""


class _Setup(NamedTuple):
    """Arguments of `make_run`, with the parsed options."""

    job: TrainingJob
    resources: DeviceResources
    options: Training
    forward_items: int
    """Items in a forward pass of a step, over all devices."""

    def message(self, text: str) -> None:
        self.resources.callbacks.message(self.job.spec, text)


def make_run(job: TrainingJob, resources: DeviceResources, forward_items: int) -> Run:
    """Build the run of `job`, with at most `forward_items` items in a forward pass.

    It goes on from its checkpoint, if there is one.
    """
    spec, splits, machine = job.spec, resources.splits, resources.machine
    options = training(spec.training)
    setup = _Setup(job, resources, options, forward_items)
    task = trained_task(spec, splits)
    check_fit(options, spec, task, splits)
    check_selection(options.selection, splits)
    chosen = _chosen_items(job, resources)
    check_divides(options.steps, len(chosen.rows), machine.team)
    colours = _colours(options, spec)
    inputs = make_inputs(chosen.items, options, ignore=task.ignore, colours=colours)
    for split in spec.splits:
        check_predictable(split, splits, inputs)
    learner = make_learner(spec, task, options, inputs, machine)
    check_method(learner, options, spec, splits, task)
    if note := backbone_note(learner.network):
        setup.message(note)
    state = _restored(setup, learner)
    data = _data(setup, learner, inputs, chosen, task)
    stepper = _stepper(setup, learner, data)
    selects = learner.method.selects
    return Run(
        job=follow_dependents(job, state, splits, selects=selects),
        options=options,
        resources=resources,
        data=data,
        stepper=stepper,
        take_step=_recorder(stepper, setup.message),
        checkpoints=CheckpointWriter(job.folder, resources.executor),
        log=_log(job, options, state) if machine.team.leads else None,
        state=state,
    )


def _chosen_items(job: TrainingJob, resources: DeviceResources) -> TrainingItems:
    """Return the training items; one process of a team writes their list."""
    return training_items(
        job.spec,
        job.folder,
        resources.splits,
        lists=resources.item_lists,
        write=resources.machine.team.leads,
    )


def _colours(options: Training, spec: RunSpec) -> Colours:
    """Return mean and deviation of colours as the network was trained with them."""
    of_network = options.preprocessing.normalise == "network"
    return network_colours(spec.network) if of_network else IMAGENET


def _restored(setup: _Setup, learner: Learner) -> TrainingState:
    """Load the checkpoint of the run, if there is one, else the weights of `start`."""
    spec, folder, _ = setup.job
    checkpoint = read_checkpoint(folder, spec.hash, setup.message)
    if checkpoint is None:
        if spec.start is None:
            return TrainingState()
        trains = setup.options.steps.epochs > 0
        message = setup.message if trains else None
        seconds = start_from(learner.network, folder, spec.start, message)
        # Weights that are used without further training cost what theirs did.
        return TrainingState() if trains else TrainingState(seconds=seconds)
    _check_data(setup, checkpoint)
    try:
        learner.restore(checkpoint)
        return state_from_dict(checkpoint["stand"])
    except torch.OutOfMemoryError:
        raise
    except (RuntimeError, LookupError, TypeError, ValueError, AttributeError) as error:
        why = str(error).strip().partition("\n")[0]
        raise TrainingError(
            f"the checkpoint in {folder} was written by other code and does not fit"
            f" this one ({why}); delete the folder to start anew"
        ) from error


def _check_data(setup: _Setup, checkpoint: Checkpoint) -> None:
    """Raise if the first epochs were trained on another version of the dataset."""
    dataset, folder = setup.resources.splits.dataset, setup.job.folder
    before = checkpoint.get("data", dataset.fingerprint)  # older ones do not state it
    if before != dataset.fingerprint:
        raise TrainingError(
            f"the dataset {dataset.name} has changed since this run began: its"
            f" fingerprint was {before} and is {dataset.fingerprint}; bring the former"
            f" files back, or delete {folder} to start anew"
        )


def _data(
    setup: _Setup, learner: Learner, inputs: Inputs, chosen: TrainingItems, task: Task
) -> TrainingData:
    items, rows = chosen
    cache = _cache(setup, learner, inputs)
    if cache is not None:
        items = cache.load("train", items, rows)
        rows = torch.arange(len(items))
    return TrainingData(
        task=task,
        items=items,
        rows=rows,
        step_sizes=step_sizes(
            len(rows),
            setup.options,
            by_rule=setup.job.spec.items is not None,
            team=setup.resources.machine.team.size,
        ),
        inputs=inputs,
        cache=cache,
    )


def _cache(setup: _Setup, learner: Learner, inputs: Inputs) -> FeatureCache | None:
    if setup.options.objective.features != "cached":
        return None
    spec, splits = setup.job.spec, setup.resources.splits
    return FeatureCache(
        folder=shared_features(setup.job.folder.parent),
        identity=backbone_identity(
            learner.network, spec, setup.options, setup.resources.machine
        ),
        fingerprint=lambda split: splits.dataset_of(split).fingerprint,
        network=learner.network,
        inputs=inputs,
        machine=setup.resources.machine,
        batch=scaled_batch(setup.options, setup.forward_items),
    )


def step_sizes(
    rows: int, options: Training, *, by_rule: bool, team: int = 1
) -> list[int]:
    """Return the items in each step of an epoch on `rows` items.

    Items chosen by a rule make one step, even if they do not fill it.
    """
    stride = options.steps.items_per_step
    items = rows * options.steps.epoch_passes
    steps, rest = divmod(items, stride)
    few = not steps and by_rule and team == 1
    smaller = options.steps.partial or few
    if not smaller and not steps:
        raise TrainingError(
            f"partial=false leaves no step: one takes {stride} items, and there are"
            f" {items} to train on; choose a smaller batch"
        )
    return [stride] * steps + [rest] * (rest > 0 and smaller)


def _stepper(setup: _Setup, learner: Learner, data: TrainingData) -> Stepper:
    options, machine, steps = setup.options, setup.resources.machine, data.step_sizes
    dataset, team = setup.resources.splits.dataset, machine.team
    rate = learner.tuned.rates[0].value.dtype
    stride = options.steps.items_per_step // team.size
    inputs = data.inputs if data.cache is None else feature_inputs(data.inputs, options)
    return Stepper(
        learner=learner,
        loss=make_loss(learner.method, learner.trained, team),
        tensors=StepTensors(len(steps), machine.device, rate),
        feed=make_feed(data.items, rows=sum(steps) // team.size, stride=stride),
        inputs=patch_inputs(inputs, data.items, options, ignore=data.task.ignore),
        machine=machine,
        options=options,
        forward_items=-(-setup.forward_items // team.size),
        weights=make_weights(options, dataset, data.items.split, machine),
    )


def _recorder(stepper: Stepper, message: Callable[[str], None]) -> Recorder:
    execution = stepper.options.execution
    capture, mixed = execution.capture, execution.precision == "fp16"
    alone = stepper.machine.team.size == 1
    possible = stepper.machine.cuda and alone and not mixed
    if capture is True and not possible:
        why = "without a CUDA device" if alone else "on several devices"
        why = "with precision 'fp16'" if mixed else why
        message(f"steps cannot be recorded {why} and stay eager")
    record = possible and capture is not False
    return Recorder(stepper, record=record, message=message)


def _log(job: TrainingJob, options: Training, state: TrainingState) -> EpochLog:
    sinks = options.output.sinks
    return EpochLog(job.folder, sinks, run=job.spec.hash, epoch=state.epoch)


def check_fit(options: Training, spec: RunSpec, task: Task, splits: Splits) -> None:
    """Raise unless the options fit the task of a run, and its items."""
    dataset = splits.dataset
    if refusal := task_refusal(options, task.name, data=repr(spec.dataset.name)):
        raise TrainingError(refusal)
    _check_patches(options, splits)
    if options.optimisation.schedule == "plateau" and "val" not in dataset.splits:
        raise TrainingError(
            f"schedule='plateau' needs the split 'val', which {dataset.name!r} does not"
            " have; take another schedule"
        )


def _check_epochs(trains: bool, epochs: int, spec: RunSpec) -> None:
    """Raise if a method that trains has no epoch, or one that trains nothing has."""
    if trains and not epochs and spec.start is None:
        raise TrainingError(
            "epochs=0 trains nothing, so the run must start from the weights of another"
            " one; train for an epoch or more, or state that run in 'start'"
        )
    if not trains and epochs:
        raise TrainingError(
            f"method {spec.method.name!r} trains nothing, so it must have epochs=0, got"
            f" {epochs}; leave 'epochs' out"
        )


def _check_patches(options: Training, splits: Splits) -> None:
    if options.patches.patch:
        _check_patch_size(options, splits.dataset)
        if options.objective.features == "cached":
            raise TrainingError(
                "features='cached' keeps the features of whole items, and patch takes"
                " parts of them; leave one of the two out"
            )
        return
    for name in ("train", *(("val",) if options.needs_val else ())):
        if name in splits.dataset.splits:
            _check_alike(name, splits.dataset.splits[name])


def _check_patch_size(options: Training, dataset: Dataset) -> None:
    """Raise if patches are far larger than the items, whose rims would be repeated."""
    rule = patch_rule(options, dataset.task)
    image = dataset.splits["train"].image
    if rule is None:
        return
    shapes = image.sides[:, :-1] if isinstance(image, Ragged) else [image.shape[1:-1]]
    largest = max(np.asarray(shapes).tolist(), key=prod)
    if prod(rule.sides) > MOST_OF_ITEM * prod(largest):
        pixels = " x ".join(map(str, largest))
        raise TrainingError(
            f"patch={options.patches.patch} must not be far larger than the items, and"
            f" the largest of 'train' has {pixels} pixels; choose at most its sides, or"
            " leave the patch out to train on whole items"
        )


def _check_alike(name: str, split: Split) -> None:
    """Raise if items differ in shape, so that they can only be cut into patches."""
    if isinstance(split.image, Ragged):
        raise TrainingError(
            f"the images of {name!r} differ in their sides, so they cannot be trained"
            " on as they are; train on patches of them, as with '-o patch=64'"
        )
    if isinstance(split.target, Ragged):
        raise TrainingError(
            f"the items of {name!r} differ in their number of raters; train on patches"
            " of them, as with '-o patch=64', or give all items as many"
        )


def check_method(
    learner: Learner, options: Training, spec: RunSpec, splits: Splits, task: Task
) -> None:
    """Raise unless epochs and batches suit it, and `val` is there for calibration."""
    _check_epochs(learner.method.trains, options.steps.epochs, spec)
    if learner.method.views > 1 and options.steps.batch == 1:
        raise TrainingError(
            f"method {spec.method.name!r} compares the items of a batch, so a batch"
            " must have two or more, got batch=1"
        )
    if learner.method.calibrate is None:
        return
    if splits.has("val") and task == splits.dataset.task:
        if not options.patches.patch:
            _check_alike("val", splits.stored("val"))
        return
    raise TrainingError(
        f"method {spec.method.name!r} is calibrated on the split 'val', which"
        f" {splits.dataset.name!r} does not have for what the run is trained on; choose"
        " a dataset with that split, or another method"
    )
