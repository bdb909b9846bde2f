"""The training options: names and values that `RunSpec.training` may hold.

A user names an option alone, as in `training({"epochs": 20, "lr": 0.1})`. `Training`
keeps options in groups, so that a function takes only those that it reads. Defaults are
those of Gustafsson et al. (2023).
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from functools import cache
from typing import (
    Annotated,
    Any,
    Literal,
    NamedTuple,
    get_args,
    get_origin,
    get_type_hints,
)

from qualms.methods import Blend, Loss
from qualms.shelf import tasks_with, traits
from qualms.training.selection import RULES
from qualms.wording import suggest

OptimiserName = Literal["adam", "sgd", "rmsprop", "lamb"]
ScheduleName = Literal["constant", "step", "linear", "polynomial", "plateau", "cosine"]
Precision = Literal["float32", "tf32", "bf16", "fp16"]
Normalise = Literal["network", "imagenet", "item", "none"]
Augmentation = Literal[
    "hflip",
    "flips",
    "rotate",
    "zoom",
    "noise",
    "byte_noise",
    "jitter",
    "hue_jitter",
    "grey",
    "blur",
    "crop",
]
ClassWeights = Literal["none", "minibatch"]
Features = Literal["learned", "cached"]
Sink = Literal["tensorboard", "wandb", "mlflow"]


class _OptionCheck(NamedTuple):
    """A check of an option's value, and the allowed values in words."""

    allows: Callable[[Any], bool]
    wanted: str


def _whole(least: int) -> _OptionCheck:
    def allows(value: Any) -> bool:
        return isinstance(value, int) and not isinstance(value, bool) and value >= least

    return _OptionCheck(allows, f"a whole number from {least} on")


def _real(least: float, most: float = float("inf")) -> _OptionCheck:
    def allows(value: Any) -> bool:
        number = isinstance(value, int | float) and not isinstance(value, bool)
        return number and least <= value <= most

    limits = f"{least:g} to {most:g}" if most < float("inf") else f"at least {least:g}"
    return _OptionCheck(allows, f"a number, {limits}")


def _are_sides(value: Any) -> bool:
    """Return whether `value` is a side, or one side for each axis."""
    sides = value if isinstance(value, tuple) else (value,)
    least = 0 if isinstance(value, int) else 1
    return bool(sides) and all(_whole(least).allows(side) for side in sides)


def _are_names(value: Any) -> bool:
    return isinstance(value, tuple) and all(isinstance(name, str) for name in value)


@dataclass(frozen=True, slots=True, kw_only=True)
class Steps:
    """Number of epochs, and the items of each training step."""

    epochs: Annotated[int, _whole(0)] = 75
    """0 trains nothing: the run fits and predicts with the weights of its `start`."""
    epoch_passes: Annotated[int, _whole(1)] = 1
    """Passes over the items that make an epoch. A batch may hold the end of one pass
    and the beginning of the next, so with as many passes as items in a batch an epoch
    has one step for each item, as in the released code of Kahl et al. (2024)."""
    batch: Annotated[int, _whole(1)] = 32
    """Items in a forward pass; the last batch of an epoch may be smaller."""
    accumulate: Annotated[int, _whole(1)] = 1
    """Batches whose gradients are averaged before the weights move."""
    partial: bool = True
    """Allow a smaller last step of an epoch; if false, the last few items of every
    epoch's order are skipped. If fewer items are chosen than fill a step, they make
    one step anyway."""

    @property
    def items_per_step(self) -> int:
        """Items after which the weights move."""
        return self.batch * self.accumulate


@dataclass(frozen=True, slots=True, kw_only=True)
class Objective:
    """Options of the loss: its weights, the unit of targets, and trained layers."""

    loss: Loss = "likelihood"
    """"dice_likelihood" adds the negative soft Dice of all classes to the likelihood of
    label maps (Kahl et al., 2024). A method with a loss of its own keeps it."""
    scale_targets: bool = False
    """Scale numbers to mean 0 and standard deviation 1 of the training items, so that
    their unit does not matter. Predictions are in the unit of the data."""
    class_weights: ClassWeights = "none"
    """"minibatch" lets an item of class k count 1 / (C p_k), where p_k is the share of
    class k in its batch and C the number of classes. For classification; the loss on
    the split `val` is never weighted."""
    features: Features = "learned"
    """"cached" trains the head alone: the backbone is kept as it starts, in evaluation
    mode, and its features of every item are computed once, without augmentation."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Optimisation:
    """The optimiser and the learning rate."""

    optimiser: OptimiserName = "adam"
    lr: Annotated[float, _real(0)] = 1e-3
    weight_decay: Annotated[float, _real(0)] = 0.0
    momentum: Annotated[float, _real(0, 1)] = 0.9
    """Momentum of "sgd" and "rmsprop"."""
    nesterov: bool = True
    """Use Nesterov's momentum for "sgd"."""
    clip: Annotated[float, _real(0)] = 0.0
    """Largest norm of the whole gradient; 0 clips nothing ("lamb" has its own 1.0)."""
    schedule: ScheduleName = "constant"
    warmup_epochs: Annotated[int, _whole(0)] = 0
    """Epochs at the start in which the rate rises to `lr`, by any schedule."""
    warmup_lr: Annotated[float, _real(0)] = 0.0
    """Learning rate that the warm-up of "cosine" starts from."""
    final_factor: Annotated[float, _real(0, 1)] = 0.01
    """Share of `lr` that "linear" ends with."""
    patience: Annotated[int, _whole(0)] = 10
    """Epochs without a lower validation loss after which "plateau" waits no more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Execution:
    """Options of how the device computes."""

    precision: Precision = "float32"
    """"float32" is strict; "tf32" lets the tensor cores of a GPU round products to ten
    bits; "bf16" and "fp16" are mixed ("fp16" is "bf16" on a CPU). Training and
    validation use this precision; predictions are never made in 16 bits."""
    compile: bool = False
    channels_last: bool = False
    capture: Annotated[
        bool | Literal["auto"],
        _OptionCheck(
            lambda v: isinstance(v, bool) or v == "auto", "true, false or 'auto'"
        ),
    ] = "auto"
    """Record a step as a CUDA graph. "auto" records it where possible; true also tells
    the user where it is not possible."""
    deterministic: bool = False
    """Use only algorithms that give the same bits every time; on a CPU all do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Preprocessing:
    """Options of how images are normalised and augmented."""

    normalise: Normalise = "network"
    """Images of 8 bits become 0..1. "network" then subtracts a mean of each colour,
    divides by its standard deviation, and repeats a single channel three times. These
    are the numbers that a network of timm was trained with, otherwise those of
    ImageNet, which "imagenet" takes for every network. "item" gives
    each channel of each item the mean 0 and the standard deviation 1; "none" does
    nothing more."""
    augment: tuple[Augmentation, ...] = ()
    """Random changes, in this order, of images in 0..1 or of images that
    normalise="item" has standardised. "flips" turns every axis and "noise" has a
    standard deviation up to 0.1; "hflip", "rotate" (by 22.5 degrees), "zoom" (0.8 to
    1.2) and "byte_noise" (of a variance of 10 to 50 on the scale 0..255) are those of
    street scenes. Kirchhof et al. (2023) have "crop", "jitter" and "hflip"; for two
    views "crop", "hue_jitter", "grey", "blur" and "hflip"."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EpochSelection:
    """Options of the selection of an epoch, and of validation."""

    select_by: Annotated[
        str, _OptionCheck(lambda value: value in RULES, f"one of {', '.join(RULES)}")
    ] = "last"
    """The last epoch, or the best by one of the rules of `qualms.training.selection`:
    "val_loss" and "val_auroc" on the split `val`, "val_referral" and
    "val_referral_kept" by the area under the referral curve of accuracy on as many
    items of `val` as of `val/shifted`; "val_r_auroc" and "val_recall" by retrieval on
    the splits of `select_on`."""
    select_on: Annotated[
        tuple[str, ...], _OptionCheck(_are_names, "a list of names of splits")
    ] = ()
    """Splits by which "val_r_auroc" and "val_recall" choose, such as "birds:val"; by
    default those called `val` of all further datasets without votes."""
    select_uncertainty: Annotated[
        str, _OptionCheck(lambda value: isinstance(value, str), "a name")
    ] = ""
    """Name of the uncertainty whose R-AUROC is taken; '' for that of the method's
    uncertainty head, else the entropy, else the only one."""
    validate: Annotated[int, _whole(0)] = 0
    """Validate every so many epochs; 0 validates only if the schedule or the selection
    needs it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PatchOptions:
    """Patches that a segmentation is trained on, and windows that it predicts by."""

    patch: Annotated[
        int | tuple[int, ...],
        _OptionCheck(
            _are_sides,
            "a whole number from 0 on, or a list of one from 1 on for each axis",
        ),
    ] = 0
    """Side of the patches that a segmentation is trained on, or one for each axis; 0
    trains on whole items. A step takes one random patch of each of its items; for
    more patches in an epoch set `epoch_passes`. Whole items are then predicted through
    windows of the same size."""
    patch_foreground: Annotated[float, _real(0, 1)] = 1 / 3
    """Share of the patches that are centred on a class other than 0, all classes of an
    item equally often (Isensee et al., 2021)."""
    overlap: Annotated[float, _real(0, 0.9)] = 0.25
    """Share of its side that a window has in common with the next one."""
    blend: Blend = "nearest"
    """Rule for pixels with several windows: take the logits of the window with the
    "nearest" centre, or average them, weighted ("gaussian") or equally ("flat")."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Output:
    """Options of predictions and of the log."""

    predict_batch: Annotated[int, _whole(1)] = 256
    """Items predicted at once; fewer where their label maps are large."""
    crop_pass: bool = False
    """Also predict embeddings for the centre of each image, a share of 0.1 to 0.75 of
    its side that the item's name decides; only the uncertainty is kept."""
    sinks: tuple[Sink, ...] = ()
    """Services to which epochs are logged in addition to log.jsonl."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Training:
    """All options of training, in groups."""

    steps: Steps = Steps()
    objective: Objective = Objective()
    optimisation: Optimisation = Optimisation()
    execution: Execution = Execution()
    preprocessing: Preprocessing = Preprocessing()
    selection: EpochSelection = EpochSelection()
    patches: PatchOptions = PatchOptions()
    output: Output = Output()

    @property
    def needs_val(self) -> bool:
        """True if the schedule or the selection needs validation in every epoch."""
        plateau = self.optimisation.schedule == "plateau"
        return plateau or self.selection.select_by != "last"


GROUPS: Mapping[str, type] = get_type_hints(Training)
"""The record of each group of options, by its name in `Training`."""


def training(options: Mapping[str, Any]) -> Training:
    """Return all training options; those that `options` does not name by default.

    Lists, as JSON has them, become tuples.

    >>> training({"epochs": 20}).steps
    Steps(epochs=20, epoch_passes=1, batch=32, accumulate=1, partial=True)

    Raises:
        LookupError: If there is no option of a name.
        ValueError: If an option does not allow its value.
    """
    checks = _checks()
    for name in options:
        if name not in checks:
            raise LookupError(
                f"no training option {name!r}.{suggest(name, checks)}"
                f" Known: {', '.join(checks)}."
            )
    values = {n: tuple(v) if isinstance(v, list) else v for n, v in options.items()}
    for name, value in values.items():
        if not checks[name].allows(value):
            raise ValueError(
                f"training option {name!r} must be {checks[name].wanted}, got {value!r}"
            )
    groups = {
        name: group(
            **{f.name: values[f.name] for f in fields(group) if f.name in values}
        )
        for name, group in GROUPS.items()
    }
    return Training(**groups)


def task_refusal(options: Training, task: str, *, data: str = "this") -> str:
    """Return why options do not fit a task, in a sentence; '' where they do.

    Args:
        options: The options of training.
        task: The name of what is trained.
        data: What the sentence calls the data.
    """
    objective, by = options.objective, options.selection.select_by
    # Of an embedding with classes, `check_selection` decides.
    chosen = RULES[by].tasks if "vectors" not in traits(task) else (task,)
    asked = {
        f"patch={options.patches.patch}": (
            bool(options.patches.patch),
            tasks_with("pixels"),
            "leave it out",
        ),
        f"loss={objective.loss!r}": (
            objective.loss != "likelihood",
            tasks_with("pixels"),
            "train with loss='likelihood'",
        ),
        "crop_pass=true": (
            options.output.crop_pass,
            tasks_with("vectors"),
            "leave it out",
        ),
        f"class_weights={objective.class_weights!r}": (
            objective.class_weights != "none",
            tasks_with("items classes"),
            "leave it out",
        ),
        f"select_by={by!r}": (True, chosen, "select by 'val_loss'"),
    }
    return next(
        (
            f"{option} is for {' and '.join(served)}, and {data} is {task}; {remedy}"
            for option, (is_set, served, remedy) in asked.items()
            if is_set and task not in served
        ),
        "",
    )


@cache
def _checks() -> Mapping[str, _OptionCheck]:
    """Return the check of every option by its name."""
    return {
        name: _check_of(hint)
        for group in GROUPS.values()
        for name, hint in get_type_hints(group, include_extras=True).items()
    }


def _check_of(hint: Any) -> _OptionCheck:
    """Return the check that an annotation states or implies."""
    if get_origin(hint) is Annotated:
        check: _OptionCheck = hint.__metadata__[0]
        return check
    if hint is bool:
        return _OptionCheck(lambda value: isinstance(value, bool), "true or false")
    if get_origin(hint) is Literal:
        choices = get_args(hint)
        return _OptionCheck(
            lambda value: value in choices, f"one of {', '.join(choices)}"
        )
    several = get_args(get_args(hint)[0])  # a tuple of literals
    return _OptionCheck(
        lambda value: isinstance(value, tuple) and set(value) <= set(several),
        f"a list of {', '.join(several)}",
    )
