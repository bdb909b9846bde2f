"""The options of the loop: what `RunSpec.training` may say."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import Any, Literal, get_args

from qualms.methods import Blend, Loss
from qualms.training.selection import RULES
from qualms.wording import suggest

Optimiser = Literal["adam", "sgd", "rmsprop", "lamb"]
Schedule = Literal["constant", "step", "linear", "polynomial", "plateau", "cosine"]
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
Sink = Literal["tensorboard", "wandb"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Training:
    """How a network is trained; defaults are those of Gustafsson et al. (2023)."""

    epochs: int = 75
    """0 trains nothing: the run fits and predicts with the weights of its `start`."""
    epoch_passes: int = 1
    """Passes over the items that make an epoch. A batch may hold the end of one pass
    and the beginning of the next, so with as many passes as items in a batch an epoch
    has one step for each item, as in the released code of Kahl et al. (2024)."""
    batch: int = 32
    """Items in a forward pass; the last batch of an epoch may be smaller."""
    accumulate: int = 1
    """Batches whose gradients are averaged before the weights move."""
    partial: bool = True
    """Whether the last step of an epoch may be smaller than the others; if not, the
    last few items of every epoch's order are skipped. Chosen items that are too few
    for a step make one."""
    loss: Loss = "likelihood"
    """"dice_likelihood" adds the negative soft Dice of all classes to the likelihood of
    label maps (Kahl et al., 2024). A method with a loss of its own keeps it."""
    scale_targets: bool = False
    """Whether numbers are learned with mean 0 and standard deviation 1 of the training
    items, so that their unit does not matter. Predictions are in the unit of the
    data."""
    class_weights: ClassWeights = "none"
    """"minibatch" lets an item of class k count 1 / (C p_k), where p_k is the share of
    class k in its batch and C the number of classes. For classification; the loss on
    the split `val` is never weighted."""
    optimiser: Optimiser = "adam"
    lr: float = 1e-3
    weight_decay: float = 0.0
    momentum: float = 0.9
    """Of "sgd" and "rmsprop"."""
    nesterov: bool = True
    """Whether the momentum of "sgd" is Nesterov's."""
    clip: float = 0.0
    """Largest norm of the whole gradient; 0 clips nothing ("lamb" has its own 1.0)."""
    schedule: Schedule = "constant"
    warmup_epochs: int = 0
    """Epochs at the start in which the rate rises to `lr`, by any schedule."""
    warmup_lr: float = 0.0
    """Learning rate that the warm-up of "cosine" starts from."""
    final_factor: float = 0.01
    """Share of `lr` that "linear" ends with."""
    patience: int = 10
    """Epochs without a lower validation loss after which "plateau" waits no more."""
    precision: Precision = "float32"
    """"float32" is strict; "tf32" lets the tensor cores of a GPU round products to ten
    bits; "bf16" and "fp16" are mixed ("fp16" is "bf16" on a CPU). Training and
    validation use this precision; predictions are never made in 16 bits."""
    compile: bool = False
    channels_last: bool = False
    capture: bool | Literal["auto"] = "auto"
    """Whether a step is recorded as a CUDA graph. "auto" records it where possible;
    true also tells the user where it is not."""
    deterministic: bool = False
    """Use only algorithms that give the same bits every time; on a CPU all do."""
    normalise: Normalise = "network"
    """Images of 8 bits become 0..1. "network" then subtracts a mean of each colour,
    divides by its standard deviation, and repeats a single channel three times. These
    are the numbers that a network of timm was trained with, otherwise those of
    ImageNet, which "imagenet" takes for every network. "item" gives
    each channel of each item the mean 0 and the standard deviation 1; "none" does
    nothing more."""
    augment: tuple[Augmentation, ...] = ()
    """Random changes, in this order. They see images in 0..1, or what normalise="item"
    has made of them. "flips" turns every axis and "noise" has a standard deviation up
    to 0.1; "hflip", "rotate" (by 22.5 degrees), "zoom" (0.8 to 1.2) and "byte_noise"
    (of a variance of 10 to 50 on the scale 0..255) are those of street scenes.
    Kirchhof et al. (2023) have "crop", "jitter" and "hflip"; for two views "crop",
    "hue_jitter", "grey", "blur" and "hflip"."""
    features: Features = "learned"
    """"cached" trains the head alone: the backbone is kept as it starts, in evaluation
    mode, and its features of every item are computed once, without augmentation."""
    select_by: str = "last"
    """Which epoch's weights are kept: the last, or the best by one of the rules of
    `qualms.training.selection`: "val_loss" and "val_auroc" on the split `val`,
    "val_referral" and "val_referral_kept" by the area under the referral curve of
    accuracy on as many items of `val` as of `val/shifted`; "val_r_auroc" and
    "val_recall" by retrieval on the splits of `select_on`."""
    select_on: tuple[str, ...] = ()
    """Splits by which "val_r_auroc" and "val_recall" choose, such as "birds:val"; none
    are those called `val` of all further datasets without votes."""
    select_uncertainty: str = ""
    """Name of the uncertainty whose R-AUROC is taken; '' for that of the method's
    uncertainty head, else the entropy, else the only one."""
    validate: int = 0
    """Validate every so many epochs; 0 validates only if the schedule or the selection
    needs it."""
    patch: int | tuple[int, ...] = 0
    """Side of the patches that a segmentation is trained on, or one for each axis; 0
    trains on whole items. A step takes one random patch of each of its items; for
    more patches in an epoch set `epoch_passes`. Whole items are then predicted through
    windows of the same size."""
    patch_foreground: float = 1 / 3
    """Share of the patches that are centred on a class other than 0, all classes of an
    item equally often (Isensee et al., 2021)."""
    overlap: float = 0.25
    """Share of its side that a window has in common with the next one."""
    blend: Blend = "nearest"
    """Which of the windows over a pixel counts: the "nearest", by its centre, or their
    averaged logits, near ones more ("gaussian") or all the same ("flat")."""
    predict_batch: int = 256
    """Items predicted at once; fewer where their label maps are large."""
    crop_pass: bool = False
    """Whether embeddings are also predicted for the centre of each image, a share of
    0.1 to 0.75 of its side that its name decides; only the uncertainty is kept."""
    sinks: tuple[Sink, ...] = ()
    """Where epochs are logged in addition to log.jsonl."""

    def __post_init__(self) -> None:
        for name, (holds, wanted) in _CHECKS.items():
            value = getattr(self, name)
            if not holds(value):
                raise ValueError(
                    f"training option {name!r} must be {wanted}, got {value!r}"
                )

    @property
    def needs_val(self) -> bool:
        """Whether the schedule or the selection needs validation in every epoch."""
        return self.schedule == "plateau" or self.select_by != "last"


def training(given: Mapping[str, Any]) -> Training:
    """The options in `given`, the rest by default; JSON lists become tuples.

    >>> training({"epochs": 20}).batch
    32
    """
    known = [field.name for field in fields(Training)]
    for name in given:
        if name not in known:
            raise LookupError(
                f"no training option {name!r}.{suggest(name, known)}"
                f" Known: {', '.join(known)}."
            )
    tuples = {n: tuple(v) for n, v in given.items() if isinstance(v, list | tuple)}
    return Training(**{**given, **tuples})


_Check = tuple[Callable[[Any], bool], str]


def _whole(least: int) -> _Check:
    def holds(value: Any) -> bool:
        return isinstance(value, int) and not isinstance(value, bool) and value >= least

    return holds, f"a whole number from {least} on"


def _real(least: float, most: float = float("inf")) -> _Check:
    def holds(value: Any) -> bool:
        number = isinstance(value, int | float) and not isinstance(value, bool)
        return number and least <= value <= most

    told = f"{least:g} to {most:g}" if most < float("inf") else f"at least {least:g}"
    return holds, f"a number, {told}"


def _one_of(kind: Any) -> _Check:
    return lambda value: value in get_args(kind), f"one of {', '.join(get_args(kind))}"


def _some_of(kind: Any) -> _Check:
    def holds(value: Any) -> bool:
        return isinstance(value, tuple) and set(value) <= set(get_args(kind))

    return holds, f"a list of {', '.join(get_args(kind))}"


def _are_sides(value: Any) -> bool:
    """Whether a value is a side, or one for each axis."""
    sides = value if isinstance(value, tuple) else (value,)
    least = 0 if isinstance(value, int) else 1
    return bool(sides) and all(_whole(least)[0](side) for side in sides)


_YES_NO: _Check = (lambda value: isinstance(value, bool), "true or false")
_CHECKS: dict[str, _Check] = {
    "epochs": _whole(0),
    "epoch_passes": _whole(1),
    "batch": _whole(1),
    "accumulate": _whole(1),
    "partial": _YES_NO,
    "loss": _one_of(Loss),
    "scale_targets": _YES_NO,
    "class_weights": _one_of(ClassWeights),
    "optimiser": _one_of(Optimiser),
    "lr": _real(0),
    "weight_decay": _real(0),
    "momentum": _real(0, 1),
    "nesterov": _YES_NO,
    "clip": _real(0),
    "schedule": _one_of(Schedule),
    "warmup_epochs": _whole(0),
    "warmup_lr": _real(0),
    "final_factor": _real(0, 1),
    "patience": _whole(0),
    "precision": _one_of(Precision),
    "compile": _YES_NO,
    "channels_last": _YES_NO,
    "capture": (
        lambda value: isinstance(value, bool) or value == "auto",
        "true, false or 'auto'",
    ),
    "deterministic": _YES_NO,
    "normalise": _one_of(Normalise),
    "augment": _some_of(Augmentation),
    "features": _one_of(Features),
    "select_by": (lambda value: value in RULES, f"one of {', '.join(RULES)}"),
    "select_on": (
        lambda value: (
            isinstance(value, tuple) and all(isinstance(name, str) for name in value)
        ),
        "a list of names of splits",
    ),
    "select_uncertainty": (lambda value: isinstance(value, str), "a name"),
    "validate": _whole(0),
    "patch": (
        _are_sides,
        "a whole number from 0 on, or a list of one from 1 on for each axis",
    ),
    "patch_foreground": _real(0, 1),
    "overlap": _real(0, 0.9),
    "blend": _one_of(Blend),
    "predict_batch": _whole(1),
    "crop_pass": _YES_NO,
    "sinks": _some_of(Sink),
}
