"""A run in training: its data, its network, and its progress."""

import math
from collections.abc import Iterator
from concurrent.futures import Executor
from dataclasses import dataclass, field, replace
from pathlib import Path

import torch
from torch import Tensor

from qualms.methods import Batch, Windows
from qualms.spec import RunSpec, Task
from qualms.training._callbacks import Callbacks
from qualms.training._checkpoint import Checkpoint, CheckpointWriter, TrainingState
from qualms.training._features import FeatureCache
from qualms.training._inputs import Inputs
from qualms.training._items import ItemList
from qualms.training._learner import Learner
from qualms.training._log import EpochLog
from qualms.training._shared_training import TrainingJob
from qualms.training._splits import LoadedSplit, Splits
from qualms.training._step import Recorder, Stepper
from qualms.training.machine import Machine
from qualms.training.options import Training
from qualms.training.predict import Predictor
from qualms.training.seeds import shuffled
from qualms.training.selection import RULES, selection_splits

_PIXELS = 2**22
"""Most pixels of label maps at once: 16 volumes of 64 x 64 x 64."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceResources:
    """Resources that the runs on one device share."""

    machine: Machine
    splits: Splits
    callbacks: Callbacks
    executor: Executor | None = None
    """Writes checkpoints in the background; None to write them at once."""
    item_lists: dict[str, ItemList] = field(default_factory=dict)
    """Training items that rules have chosen, see `training_items`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingData:
    """Items that a run trains on, and how they become batches."""

    task: Task
    """Task of the dataset that the items are of."""
    items: LoadedSplit
    """A split, several splits as one, or features of their images."""
    rows: Tensor
    """Rows of `items` that are trained on."""
    step_sizes: list[int]
    """Items in each step of an epoch."""
    inputs: Inputs
    """Functions that make batches of images for the complete network."""
    cache: FeatureCache | None
    """Features of a frozen backbone; None if the backbone is trained."""

    @property
    def size(self) -> int:
        """Number of items, or of patches with as many pixels as all items."""
        cutter = self.items.cutter
        return len(self.rows) if cutter is None else cutter.size(self.rows.tolist())

    def order(self, seed: int, epoch: int, passes: int) -> Tensor:
        """Return the rows that `epoch` visits, step by step."""
        first = epoch * passes
        orders = [
            shuffled(self.rows, seed, number) for number in range(first, first + passes)
        ]
        return torch.cat(orders)[: sum(self.step_sizes)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """A run in training."""

    job: TrainingJob
    """The run, its folder, and the dependents whose rules are followed."""
    options: Training
    resources: DeviceResources
    data: TrainingData
    stepper: Stepper
    take_step: Recorder
    """The stepper, recorded if possible."""
    checkpoints: CheckpointWriter
    log: EpochLog | None
    """None if another process of the team writes it."""
    state: TrainingState

    @property
    def spec(self) -> RunSpec:
        """The run as plain data."""
        return self.job.spec

    @property
    def folder(self) -> Path:
        """The folder of the run."""
        return self.job.folder

    @property
    def learner(self) -> Learner:
        """The network and its optimiser."""
        return self.stepper.learner

    def message(self, text: str) -> None:
        """Report a sentence to the user."""
        self.resources.callbacks.message(self.spec, text)

    @property
    def batch_without_step(self) -> int:
        """Items per forward pass outside of steps; fewer if memory was short."""
        passed = self.stepper.forward_items * self.resources.machine.team.size
        size = scaled_batch(self.options, passed)
        items = self.data.items
        if items.draw is None:
            return size
        cutter = items.cutter
        sides = cutter.rule.sides if cutter else items.split.target.shape[2:]
        return max(1, min(size, _PIXELS // math.prod(sides)))

    @property
    def predictor(self) -> Predictor:
        """The complete network with its present weights, for images."""
        return Predictor(
            network=self.learner.network,
            method=self.learner.method,
            task=self.data.task,
            inputs=self.data.inputs,
            batch=self.batch_without_step,
            message=self.message,
            crops=self.options.output.crop_pass,
            windows=self._windows,
        )

    def predictor_of(self, split: str) -> tuple[Predictor, LoadedSplit]:
        """Return what predicts a split, and its items: images, or their features."""
        items, cache = self.resources.splits[split], self.data.cache
        if cache is None:
            return self.predictor, items
        predictor = replace(
            self.predictor,
            network=self.learner.trained,
            inputs=self.stepper.inputs,
            crop_features=cache.crops(split, items) if self.predictor.crops else None,
        )
        return predictor, cache.split(split, items)

    @property
    def _windows(self) -> Windows | None:
        if self.data.items.cutter is None:
            return None
        return Windows(
            sides=self.data.items.cutter.rule.sides,
            overlap=self.options.patches.overlap,
            blend=self.options.patches.blend,
            together=self.batch_without_step,
        )

    @property
    def validator(self) -> Predictor:
        """The trained module with its present weights, for `validation_split`s."""
        network, inputs = self.learner.trained, self.stepper.inputs
        return replace(self.predictor, network=network, inputs=inputs, crops=False)

    def validation_split(self, name: str) -> LoadedSplit:
        """Return a split for the trained module: its images, or their features."""
        items = self.resources.splits[name]
        return items if self.data.cache is None else self.data.cache.split(name, items)

    @property
    def has_val_loss(self) -> bool:
        """True if there is a loss on the split `val`.

        Rules by retrieval do not need that split, and it has no loss if the run trains
        on items of another dataset.
        """
        splits = self.resources.splits
        if self.data.task != splits.dataset.task:
            return False
        rule = RULES[self.options.selection.select_by]
        return splits.has("val") or not rule.retrieves

    def splits_of_rule(self, rule: str) -> tuple[str, ...]:
        """Return the splits by which `rule` chooses an epoch."""
        selection = replace(self.options.selection, select_by=rule)
        return selection_splits(selection, self.resources.splits)

    def order(self, epoch: int) -> Tensor:
        """Return the rows that `epoch` visits, step by step."""
        return self.data.order(self.spec.seed, epoch, self.options.steps.epoch_passes)

    def training_batches(self) -> Iterator[Batch]:
        """Yield the training items once, in order, without augmentation."""
        data = self.data
        for raw in data.items.batches(data.rows, self.batch_without_step):
            yield self.stepper.inputs.plain(raw)

    def validation_batches(self) -> Iterator[Batch]:
        """Yield the split `val` once, for methods that are calibrated on it."""
        items = self.validation_split("val")
        for raw in items.batches(torch.arange(len(items)), self.batch_without_step):
            yield self.stepper.inputs.plain(raw)

    def checkpoint(self) -> Checkpoint:
        """Return a checkpoint of the run; a fitted run needs no optimiser any more."""
        learned = self.learner.state()
        if self.state.fitted:
            learned = {"network": learned["network"]}
        return {
            "hash": self.spec.hash,
            "data": self.resources.splits.dataset.fingerprint,
            **learned,
            "stand": self.state.to_dict(),
        }


def scaled_batch(options: Training, passed: int) -> int:
    """Return `predict_batch`, scaled down if a step's forward pass has `passed` items.

    A step passes fewer items than its batch if memory was short.
    """
    return max(1, options.output.predict_batch * passed // options.steps.batch)
