"""What is refused before a run begins: options and data that do not go together."""

from qualms.datasets import Ragged, Split
from qualms.spec import RunSpec, Task
from qualms.training._error import TrainingError
from qualms.training.data import Splits
from qualms.training.learner import Learner
from qualms.training.options import Training


def check_options_fit(
    options: Training, spec: RunSpec, task: Task, splits: Splits
) -> None:
    """Refuse options that are not for the task of a run, or for its items."""
    _check_patches(options, splits)
    if options.loss != "likelihood" and task.name != "segmentation":
        raise TrainingError(
            f"loss={options.loss!r} is for segmentation, and {spec.dataset.name!r} is"
            f" {task.name}; train with loss='likelihood'"
        )
    if options.crop_pass and task.name != "embedding":
        raise TrainingError(
            f"crop_pass=true is for embeddings, and {spec.dataset.name!r} is"
            f" {task.name}; leave it out"
        )
    if not options.epochs and spec.start is None:
        raise TrainingError(
            "epochs=0 trains nothing, so the run must start from the weights of another"
            " one; train for an epoch or more, or state that run in 'start'"
        )


def _check_patches(options: Training, splits: Splits) -> None:
    if options.patch:
        if options.features == "cached":
            raise TrainingError(
                "features='cached' keeps the features of whole items, and patch takes"
                " parts of them; leave one of the two out"
            )
        return
    for name in ("train", *(("val",) if options.needs_val else ())):
        if name in splits.dataset.splits:
            _check_alike(name, splits.dataset.splits[name])


def _check_alike(name: str, split: Split) -> None:
    """Refuse items that can only be cut into patches."""
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


def check_method_fits(
    learner: Learner, options: Training, spec: RunSpec, splits: Splits, task: Task
) -> None:
    """Refuse batches without company, and needs of the split `val` that are not met."""
    if learner.method.views > 1 and options.batch == 1:
        raise TrainingError(
            f"method {spec.method.name!r} compares the items of a batch, so a batch"
            " must have two or more, got batch=1"
        )
    if learner.method.calibrate is None:
        return
    if splits.has("val") and task == splits.dataset.task:
        if not options.patch:
            _check_alike("val", splits.stored("val"))
        return
    raise TrainingError(
        f"method {spec.method.name!r} is calibrated on the split 'val', which"
        f" {splits.dataset.name!r} does not have for what the run is trained on; choose"
        " a dataset with that split, or another method"
    )
