"""Your own images: common methods on them, in-domain and shifted.

The data are named on the command line, `qualms run own --from DIR`, read by the dataset
`folder`, and judged by the ordinary scores of their task. The deep ensemble is that of
Lakshminarayanan et al. (2017). Networks and training are what suits the size of the
images and the machine; each of them can be stated.
"""

import math
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from qualms.spec import CorruptedSplit, Part, Task
from qualms.study import Benchmark, GivenData, Preset, TableRow, Variant

if TYPE_CHECKING:
    from qualms.evaluate.protocol import Protocol
    from qualms.report.presentation import Presentation

ENSEMBLE = "deep_ensemble"
METHODS = {
    "classification": ("map", "mc_dropout", "laplace", "temperature"),
    "regression": ("gaussian", "quantile", "laplace", "evidential"),
    "segmentation": ("map", "mc_dropout", "tta", "temperature"),
}
"""The first of them is pooled by the deep ensemble."""
LENT = {"laplace": "map", "temperature": "map", "tta": "map"}
"""Methods that use the weights of another one's runs."""
LABELS = {
    "map": "plain network",
    "mc_dropout": "MC dropout",
    "laplace": "Laplace",
    "temperature": "temperature scaling",
    "tta": "test-time augmentation",
    "gaussian": "Gaussian",
    "quantile": "quantiles",
    "evidential": "evidential",
}
STEPS, GPU_STEPS = 1_500, 6_000
"""Approximate steps of a training, on a CPU and on a GPU."""
SMALL, LEAST_STEPS = 128 * 128, 300
"""Pixels above which a CPU takes fewer steps, in proportion, and its fewest steps."""
MANY, SOME = 180, 20
"""Most classes for which `laplace` is usual, with 64 features and with 512: it keeps
the curvature of 12,000 weights."""
LEAST_EPOCHS, MOST_EPOCHS = 3, 200
WHOLE = {2: 256, 3: 64}
"""Longest side, by the number of sides, of items that are segmented as a whole."""
PATCH = {2: (128, 256), 3: (32, 96)}
"""Longest side of patches of others; on a CPU and on a GPU."""
PATCHES = {2: 8, 3: 2}
"""Patches in a batch."""
PATCH_STEPS = 25
"""Steps of an epoch of patches, at least."""
_NONE = GivenData(
    name="yours",
    dataset=Part(name="folder"),
    task=Task(name="classification", classes=2),
    shape=(64, 64, 3),
    sizes={"train": 1_000, "val": 200, "test": 200, "test/shifted": 200},
)


def own(*, given: GivenData | None = None) -> Benchmark:
    """Return the benchmark; version 1 has the usual methods, and any other by name.

    Args:
        given: the data; without them the benchmark can be listed, and cannot be run.
    """
    data = given or _NONE
    preset = Preset(
        name=data.name,
        variants=tuple(_variants(data)),
        rows=_usual(data),
        network=data.network or _network(data),
        training=_training(data),
        seeds=data.seeds,
        pools=(data.seeds,),
        alone=data.seeds,
    )
    return Benchmark(
        name="own",
        version=1,
        title="Your own images",
        paper="",
        task=data.task.name,
        rows=_rows(data),
        presets={data.name: preset},
        protocol=partial(_load_protocol, data.notes),
        presentation=_load_presentation,
    )


def _load_protocol(notes: tuple[str, ...]) -> "Protocol":
    from qualms.benchmarks.own._protocol import own_protocol

    return own_protocol(notes)


def _load_presentation() -> "Presentation":
    from qualms.benchmarks.own._presentation import PRESENTATION

    return PRESENTATION


def _usual(data: GivenData) -> tuple[str, ...]:
    """Return the rows that are run where none are asked for."""
    names = list(METHODS[data.task.name])
    small = data.network is None and not data.gpu
    if (data.task.classes or 0) > (MANY if small else SOME) and "laplace" in names:
        names.remove("laplace")
    return (*names, *([ENSEMBLE] if len(data.seeds) > 1 else ()))


def _variants(data: GivenData) -> Iterator[Variant]:
    """Yield the data as they are, and then each corruption at each severity."""
    predicted = ("val", "test", "test/shifted")
    stored = Variant(
        name=data.name,
        label=data.name,
        dataset=data.dataset,
        splits=tuple(split for split in predicted if split in data.sizes),
        shift=data.shift,
    )
    yield stored
    for corruption, severity in data.corruptions:
        split = CorruptedSplit(stored.test, corruption, severity).name
        yield replace(
            stored,
            name=f"{data.name}_{corruption}_{severity}",
            splits=(*stored.splits, split),
            shifted=split,
            shift=f"{corruption}, severity {severity}",
            labels={"corruption": corruption, "severity": severity},
            listed=False,
        )


def _rows(data: GivenData) -> tuple[TableRow, ...]:
    methods = METHODS[data.task.name]
    return (
        *(
            TableRow(
                name=name,
                label=LABELS[name],
                method=Part(name=name),
                weights_of=LENT.get(name, ""),
            )
            for name in dict.fromkeys((*methods, "map"))
        ),
        TableRow(
            name=ENSEMBLE,
            label=f"deep ensemble of {max(2, len(data.seeds))}",
            method=Part(name=methods[0]),
            pool=max(2, len(data.seeds)),
        ),
    )


def _network(data: GivenData) -> Part:
    """Return a small network on a CPU, a larger one on a GPU."""
    sides = _patch(data) or data.shape[:-1]
    if data.task.name == "segmentation":
        levels = max(1, min(4, min(sides).bit_length() - 3))
        width = 16 if data.gpu else 8
        options = {"space": len(sides), "width": width, "levels": levels}
        return Part(name="unet", options=options)
    if data.gpu and min(sides) >= 64:
        return Part(name="timm:resnet18")
    fold = 2 if all(side % 2 == 0 for side in sides) else 1
    options = {"fold": fold, "width": 32} if data.gpu else {"fold": fold}
    return Part(name="resnet_small", options=options)


def _training(data: GivenData) -> dict[str, Any]:
    """Return options of training: about as many steps for any number of items."""
    items = data.sizes["train"]
    maps, patch = data.task.name == "segmentation", _patch(data)
    batch = min(8 if maps else 64, max(2, items // 4))
    if patch:
        batch = PATCHES[len(patch)]
    passes = -(-batch * PATCH_STEPS // items) if patch else 1
    epochs = -(-_steps(data) * batch // (items * passes))
    # Batch normalisation has nothing to normalise by in a batch of one item.
    lone = not patch and items % batch == 1
    colours = not data.deep and data.shape[-1] in (1, 3) and len(data.shape) == 3
    return {
        "epochs": max(LEAST_EPOCHS, min(MOST_EPOCHS, epochs)),
        "batch": batch,
        **({"partial": False} if lone else {}),
        "lr": 1e-3 if data.network is not None or maps else 3e-3,
        "schedule": "cosine",
        "normalise": "network" if colours else "item",
        **({"loss": "dice_likelihood"} if maps else {}),
        **({"scale_targets": True} if data.task.name == "regression" else {}),
        **({"patch": list(patch), "epoch_passes": passes} if patch else {}),
    }


def _steps(data: GivenData) -> int:
    """Return how many steps fit into minutes; masks cost more than other targets."""
    share = 2 if data.task.name == "segmentation" else 1
    if data.gpu:
        return GPU_STEPS // share
    pixels = math.prod(_patch(data) or data.shape[:-1])
    return max(LEAST_STEPS, STEPS * SMALL // max(SMALL, pixels) // share)


def _patch(data: GivenData) -> tuple[int, ...]:
    """Return the sides of the patches that are trained on; () for whole items."""
    sides = data.shape[:-1]
    if data.task.name != "segmentation":
        return ()
    if data.patch:
        return data.patch if len(data.patch) > 1 else data.patch * len(sides)
    if data.alike and max(sides) <= WHOLE[len(sides)]:
        return ()
    most = PATCH[len(sides)][data.gpu]
    return tuple(min(most, side) for side in sides)
