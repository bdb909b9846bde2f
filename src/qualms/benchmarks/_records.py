"""What a benchmark is declared with: variants, rows, presets, configs, expectations."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from qualms.spec import Part, Task

Settings = Mapping[str, Any]
"""A small mapping that only the benchmark's protocol reads, e.g. {"alpha": 0.1}."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """How epochs and configurations are chosen on validation items."""

    name: str
    rule: str
    """The value of the training option `select_by`."""
    splits: tuple[str, ...]
    """The validation splits that it looks at."""
    label: str
    """What a trial of `qualms tune` is judged by, in words."""
    items: str
    """Those items in words, e.g. "in-domain validation items"."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Variant:
    """One dataset of a benchmark, as tables name it."""

    name: str
    """Short name on the command line: `qualms run regression/cells_tails`."""
    label: str
    """The paper's name for it; published numbers are found by it."""
    dataset: Part
    datasets: Mapping[str, Part] = field(default_factory=dict)
    """Further datasets that its runs predict, by the name before the colon of a split:
    `cub:test` is the split `test` of the dataset called `cub` here."""
    splits: tuple[str, ...] = ("val", "test")
    """The splits that runs predict. Variants with the same data and splits share their
    runs."""
    test: str = "test"
    """The split whose scores a table shows."""
    shift: str = ""
    """What is shifted in words; '' for none."""
    simulated: bool = False
    places: tuple[Settings, ...] = ({},)
    """Settings at which every row is judged, each by itself: one per alpha."""
    settings: Settings = field(default_factory=dict)
    """What the protocol must know of this variant, the same at all places."""
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
    repeats: int = 0
    """How many repeats of the preset it has, the first ones; 0 for all."""
    judged: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)
    """For each setting that is named, the values that are judged on it. Places of rows
    that have other values are left out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """A named set of options, such as the one a paper chose for a method."""

    options: Mapping[str, Any] = field(default_factory=dict)
    """Written as for `-o`: `lr` is an option of training, `method.rate` of a part."""
    method: str = ""
    """Whose runs take it; '' for all runs."""
    note: str = ""

    def of(self, part: str) -> dict[str, Any]:
        """The options of a part, without its prefix; those of training for ''.

        >>> Config(options={"lr": 0.1, "method.rate": 0.2}).of("method")
        {'rate': 0.2}
        """
        split = ((*name.rpartition("."), value) for name, value in self.options.items())
        return {name: value for owner, _, name, value in split if owner == part}


@dataclass(frozen=True, slots=True, kw_only=True)
class Range:
    """Values of one option that a search tries."""

    option: str
    """As for `-o`: an option of training, or of a part with its prefix."""
    low: float = 0.0
    high: float = 0.0
    log: bool = True
    """Whether values are even in their logarithm."""
    choices: tuple[Any, ...] = ()
    """The values themselves, where they are not an interval."""
    complement: bool = False
    """Whether the option is one minus a value between `low` and `high`: a momentum is
    searched by how far it is from 1."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """A second training, on items that a rule chooses by the first one's predictions.

    Active learning and few-shot studies are rows with a stage.
    """

    row: str = ""
    """The row whose runs are asked; a pool is asked as one. '' if the rule reads no
    predictions."""
    rule: str
    """How items are chosen, e.g. "most_uncertain"."""
    split: str = "pool"
    """The split whose items are chosen, and whose predictions the rule reads."""
    options: Mapping[str, Any] = field(default_factory=dict)
    seeded: bool = False
    """Whether the rule draws with the first seed of a pool, as its option `seed`, so
    that all runs of the pool train on the same items."""
    splits: tuple[str, ...] = ()
    """The splits that the second runs predict; () for those of the variant."""
    chosen_by: tuple[str, ...] = ()
    """Names of settings of a place that are options of the rule too."""
    continues: bool = False
    """Whether training goes on from the first run's weights."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TableRow:
    """One row of a table: a trained method and how many of its runs are pooled."""

    name: str
    label: str
    """The paper's name for it; published numbers are found by it."""
    method: Part
    network: Mapping[str, Any] = field(default_factory=dict)
    """Options of the network besides those of the preset."""
    pool: int = 1
    """Runs pooled per repeat."""
    settings: Settings = field(default_factory=dict)
    """What the protocol must know of this row, e.g. {"interval": "gaussian"}."""
    places: tuple[Settings, ...] = ()
    """Settings at which it is judged, where these are not the variant's."""
    trained_by: tuple[str, ...] = ()
    """Names of settings of a place that are options of the method: every value of
    theirs has its own runs."""
    stage: Stage | None = None
    """How its training items are chosen, where it is a second training."""
    weights_of: str = ""
    """The row with whose weights its runs predict, each with those of the run that has
    its seed. Such runs are not trained: `start` names the run with the weights, and the
    training option `epochs` is 0."""
    beyond: bool = False
    """True for rows the paper does not have."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Preset:
    """How large a run of the benchmark is."""

    name: str
    """demo, small or paper; of data that a user brings, its name."""
    variants: tuple[Variant, ...]
    rows: tuple[str, ...]
    """Names of the rows it has, in the order of tables."""
    network: Part
    training: Mapping[str, Any]
    methods: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """Options by method that depend on the size of the run, e.g. epochs of warm-up."""
    networks: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """Options by method of this preset's network."""
    seeds: tuple[int, ...]
    pools: tuple[tuple[int, ...], ...]
    """Which seeds form each repeat's pool; a row takes as many of the first as it
    pools."""
    alone: tuple[int, ...] = ()
    """The seed of each repeat of rows that pool nothing; () for the first of each
    pool."""
    further: tuple[Variant, ...] = ()
    """Variants that are run only where they are asked for by name."""
    trained: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)
    """For each setting that enters training, the values that have runs; a setting that
    is not named has runs for all of its values."""
    changed: tuple[str, ...] = ()
    """What a user changed of it, in words; it stands in every table and figure."""
    note: str = ""

    @property
    def told(self) -> str:
        """Its name, and what was changed.

        >>> from dataclasses import replace
        >>> from qualms.benchmarks.retina import retina
        >>> replace(retina().presets["demo"], changed=("epochs=3",)).told
        'demo with epochs=3'
        """
        return " with ".join(filter(None, (self.name, ", ".join(self.changed))))


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
    """Whether all items have that shape."""
    patch: tuple[int, ...] = ()
    """Sides of the patches that the user wants to train on; () for what suits."""
    deep: bool = False
    """Whether images have more than 8 bits."""
    sizes: Mapping[str, int]
    """Items of each split."""
    shift: str = ""
    """What is shifted, in words; '' where no split is."""
    network: Part | None = None
    """What the user wants to train; None for what suits the data."""
    seeds: tuple[int, ...] = (0, 1, 2)
    gpu: bool = False
    """Whether runs are made on a GPU."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Expectation:
    """An effect the benchmark promises, checked and printed after every run."""

    text: str
    variant: str
    """'' for all variants, where `contest` is given."""
    rows: tuple[str, ...]
    """It holds if it holds for all of these rows; for one of them where `some` is so.
    """
    score: str
    low: float
    high: float
    settings: Settings = field(default_factory=dict)
    meaning: str = ""
    """What it says about the model that it holds, for a reader new to the field."""
    minus: str = ""
    """Another variant whose value is subtracted."""
    minus_rows: tuple[str, ...] = ()
    """Other rows whose values are subtracted, one for each of `rows`."""
    minus_score: str = ""
    """Another score whose value is subtracted."""
    minus_settings: Settings | None = None
    """Other settings whose value is subtracted. What of variant, rows, score and
    settings is not named here is the same on both sides; nothing is subtracted if none
    is named."""
    some: bool = False
    """Whether one row for which it holds is enough."""
    contest: str = ""
    """Name of a setting, such as "aggregation". The numbers are then of its values
    instead of rows: how far each falls behind the best of them where it does worst,
    among all rows and other settings. No value wins everywhere if all of these are
    above 0. For scores of which more is better."""

    @property
    def pairs(self) -> dict[str, str]:
        """Each row, and the one whose value is subtracted from its own."""
        return dict(zip(self.rows, self.minus_rows or self.rows, strict=True))


class Place(NamedTuple):
    """Where a number stands: on which variant, in which row, at which settings."""

    variant: Variant
    row: TableRow
    settings: Settings

    @property
    def known(self) -> dict[str, Any]:
        """All that the protocol may read: settings of variant, row and place."""
        return {**self.variant.settings, **self.row.settings, **self.settings}
