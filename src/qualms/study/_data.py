"""Data: the variants of a benchmark, what is chosen on them, and what a user brings."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from qualms.labels import Label, Labels
from qualms.spec import Part, Task

Settings = Mapping[str, Any]
"""A small mapping that only the benchmark's protocol reads."""
USUAL_SEEDS = (0, 1, 2)
"""Seeds of data that a user brings, where none are named."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """Rule by which epochs and configurations are chosen on validation items."""

    name: str
    rule: str
    """The value of the training option `select_by`."""
    splits: tuple[str, ...]
    """The validation splits that it looks at."""
    label: str
    """The score of a trial of `qualms tune`, in words."""
    items: str
    """Validation items in words, e.g. "in-domain validation items"."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Variant:
    """One dataset of a benchmark with its shift, as tables name it."""

    name: str
    """Short name on the command line: `qualms run regression/cells_tails`."""
    label: str
    """The paper's name for it, and the label `dataset` of its results."""
    dataset: Part
    datasets: Mapping[str, Part] = field(default_factory=dict)
    """Further datasets that its runs predict, by the name before the colon of a split:
    `cub:test` is the split `test` of the dataset called `cub` here."""
    splits: tuple[str, ...] = ("val", "test")
    """The splits that runs predict. Variants with the same data and splits share their
    runs."""
    test: str = "test"
    """The split whose scores a table shows."""
    shifted: str = ""
    """The split whose items are judged beside those of `test`, as shifted ones; '' for
    `test/shifted`, where runs predict it."""
    shift: str = ""
    """The shift in words; '' for none."""
    simulated: bool = False
    labels: Labels = field(default_factory=dict)
    """Further labels of its results, e.g. {"shift": "country"}."""
    at: tuple[Labels, ...] = ({},)
    """Settings at which every row is judged, each by itself: one per alpha. They are
    labels of the results."""
    settings: Settings = field(default_factory=dict)
    """Facts of this variant for the protocol, besides its labels."""
    selection: str = ""
    """Name of the benchmark's `Selection` for its runs; '' where nothing is chosen."""
    network: Part | None = None
    """The network of its runs, where it is not the preset's."""
    training: Mapping[str, Any] = field(default_factory=dict)
    """Options of training that this dataset needs besides those of the preset."""
    configs: Mapping[str, str] = field(default_factory=dict)
    """By method, the name of the config that its runs take."""
    rows: tuple[str, ...] = ()
    """Rows that are judged on it; () for all rows of the preset."""
    listed: bool = True
    """True if pages list its numbers one by one. Of others, such as dozens of shifts of
    one dataset, they show the tables and figures of the presentation alone."""
    repeats: int = 0
    """Number of the preset's repeats that it has, the first ones; 0 for all."""
    only: Mapping[str, tuple[Label, ...]] = field(default_factory=dict)
    """For each setting that is named, the values that are judged on it."""

    @property
    def parts(self) -> list[Part]:
        """Every dataset that its runs read."""
        return [self.dataset, *self.datasets.values()]


@dataclass(frozen=True, slots=True, kw_only=True)
class GivenData:
    """Data that a user brings, for a benchmark whose function takes it as `given`."""

    name: str
    """A word, for tables and folders."""
    dataset: Part
    """It is prepared already."""
    task: Task
    shape: tuple[int, ...]
    """(*space, channels) of an item; the median where items differ."""
    alike: bool = True
    """True if all items have that shape."""
    patch: tuple[int, ...] = ()
    """Sides of the patches that the user wants to train on; () for what suits."""
    deep: bool = False
    """True if images have more than 8 bits."""
    sizes: Mapping[str, int]
    """Items of each split."""
    shift: str = ""
    """The shift in words; '' where no split is shifted."""
    corruptions: tuple[tuple[str, int], ...] = ()
    """Corruptions of the test items by name, each with a severity."""
    network: Part | None = None
    """The network that the user wants to train; None for one that suits the data."""
    seeds: tuple[int, ...] = USUAL_SEEDS
    gpu: bool = False
    """True if runs are made on a GPU."""
    notes: tuple[str, ...] = ()
    """Notes on the data for readers of the results, in sentences."""
