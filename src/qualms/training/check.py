"""Check of a run before it is made: would it be refused?

The options, the items, the network and its method are brought together as for training,
and one item passes the network. Nothing is trained, and no file is written.
"""

from collections.abc import Mapping
from functools import partial
from math import prod

import torch
from torch import nn

from qualms.datasets import Dataset, Ragged
from qualms.networks import network_colours
from qualms.spec import RunSpec
from qualms.training._build import check_fit, check_method, step_sizes
from qualms.training._error import TrainingError
from qualms.training._inputs import Inputs, make_inputs
from qualms.training._items import trained_task
from qualms.training._learner import bare_backbone, make_learner
from qualms.training._patches import patch_rule
from qualms.training._splits import LoadedSplit, Splits, load_split
from qualms.training.machine import make_machine
from qualms.training.options import training
from qualms.training.predict import check_predictable
from qualms.training.selection import check_selection
from qualms.wording import error_words

LARGEST = 512 * 512
"""Pixels of the largest item that is passed through a network."""
_CPU = torch.device("cpu")


def check_run(spec: RunSpec, datasets: Mapping[str, Dataset]) -> None:
    """Raise what the run would raise before its first step, as far as that is cheap.

    Args:
        spec: the run. Items that a rule chooses are not looked at.
        datasets: all datasets that it reads, named as in `RunSpec.parts`.

    Raises:
        TrainingError: In one sentence, why the run cannot be made.
    """
    options = training(spec.training)
    splits = Splits(datasets, _CPU, partial(patch_rule, options))
    task = trained_task(spec, splits)
    check_fit(options, spec, task, splits)
    check_selection(options.selection, splits)
    patch = patch_rule(options, splits.dataset.task)
    items = load_split(splits.stored("train"), _CPU, fits=False, patch=patch)
    if spec.items is None:
        step_sizes(len(items), options, by_rule=False)
    colours = network_colours(spec.network)
    inputs = make_inputs(items, options, ignore=task.ignore, colours=colours)
    for split in spec.splits:
        check_predictable(split, splits, inputs)
    with torch.random.fork_rng(devices=[]):
        machine = make_machine("cpu", options.execution)
        learner = make_learner(spec, task, options, inputs, machine)
        check_method(learner, options, spec, splits, task)
        backbone = bare_backbone(learner.network)
        alike = patch is None and not isinstance(items.split.image, Ragged)
        if alike and backbone is not learner.network:
            _check_passes(backbone, items, inputs)


def _check_passes(backbone: nn.Module, items: LoadedSplit, inputs: Inputs) -> None:
    """Raise if an item does not pass through the network."""
    sides = items.split.image.shape[1:-1]
    if prod(sides) > LARGEST:
        return
    (raw,) = items.batches(torch.zeros(1, dtype=torch.int64), 1)
    try:
        with torch.no_grad():
            backbone.eval()(inputs.plain(raw).x)
    except (RuntimeError, TypeError, ValueError) as error:
        raise TrainingError(
            f"the network fails on items of {' x '.join(map(str, sides))} pixels and"
            f" {inputs.channels} channels ({error_words(error)}); choose another"
            " network, or other options of it"
        ) from error
