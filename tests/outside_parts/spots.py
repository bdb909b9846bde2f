"""Parts that live outside the package, all in one file, as a user would write them."""

import numpy as np
from _scale import BRIGHT
from torch import nn

from qualms.corruptions import Corruption
from qualms.datasets import Card, LoadedItems, Recipe, Unit
from qualms.methods import Method
from qualms.scores import as_score
from qualms.spec import Part, Task
from qualms.study import Benchmark, Preset, TableRow, Variant

CARD = Card(
    title="Spots",
    licence="none",
    citation="none",
    url="",
    obtain="made from a seed",
    simulated=True,
)


def spots(*, items: int = 24, seed: int = 0) -> Recipe:
    """Dark and bright pictures, two classes."""
    return Recipe(
        name="spots",
        options={"items": items, "seed": seed},
        card=CARD,
        task=Task(name="classification", classes=2),
        units=tuple(
            Unit(key=split, split=split, args=(items, seed + i))
            for i, split in enumerate(("train", "val", "test"))
        ),
        load=_load,
    )


def _load(unit: Unit) -> LoadedItems:
    items, seed = unit.args
    rng = np.random.default_rng(seed)
    target = np.arange(items) % 2
    level = 60 + BRIGHT * target[:, None, None, None]
    image = (level + rng.integers(0, 60, (items, 8, 8, 1))).astype(np.uint8)
    return LoadedItems(
        image=image,
        target=target,
        item=tuple(f"{unit.split}-{i}" for i in range(items)),
    )


class Tiny(nn.Module):
    """One convolution."""

    def __init__(self, channels: int, width: int) -> None:
        super().__init__()
        self.features = width
        self.convolution = nn.Conv2d(channels, width, 3)

    def forward(self, x):
        return self.convolution(x).relu().mean((2, 3))


def tiny(*, channels: int, width: int = 4) -> Tiny:
    """A network of one convolution."""
    return Tiny(channels, width)


def plainest() -> Method:
    """The plain network under another name."""
    return Method(needs=("items probabilities",))


def my_study() -> Benchmark:
    """Two methods on spots."""
    rows = (
        TableRow(name="plainest", label="Plainest", method=Part(name="plainest")),
        TableRow(name="map", label="MAP", method=Part(name="map")),
    )
    variant = Variant(name="spots", label="Spots", dataset=Part(name="spots"))
    preset = Preset(
        name="demo",
        variants=(variant,),
        rows=("plainest", "map"),
        network=Part(name="tiny"),
        training={"epochs": 2, "batch": 8, "lr": 0.01},
        seeds=(0, 1),
        pools=((0,), (1,)),
    )
    return Benchmark(
        name="my_study",
        version=1,
        title="My study",
        paper="",
        task="classification",
        rows=rows,
        presets={"demo": preset},
    )


@as_score(label="Share above one half", better="higher")
def share_above_half(probs: np.ndarray, target: np.ndarray) -> float:
    """Share of items whose class has more than half of the probability."""
    return float(np.mean(probs[np.arange(len(target)), target] > 0.5))


def dimmed() -> Corruption:
    """Dim a picture."""
    return Corruption(families=("mine",), change=_dimmed, least=1)


def _dimmed(image, severity, _rng):
    return image * (1 - 0.1 * severity)
