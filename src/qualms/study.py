"""The records of a benchmark: what is trained, what is judged, and what is expected.

A `Benchmark` is declared in `qualms.benchmarks`; a `RunPlan` is the part of it that a
user asks for. A plan gives the `Line`s of its results: a row of a table on one variant
at some settings, with the labels that all its numbers carry and the runs behind it.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from qualms.labels import Label, Labels
from qualms.shelf import source_of
from qualms.spec import (
    CORRUPTIONS,
    ItemRule,
    Part,
    RunSpec,
    Task,
    TaskName,
    parse_corrupted,
)
from qualms.wording import suggest

if TYPE_CHECKING:
    from qualms.effects import Numbers
    from qualms.evaluate.protocol import Protocol
    from qualms.report.presentation import Presentation

Settings = Mapping[str, Any]
"""A small mapping that only the benchmark's protocol reads."""

Named = TypeVar("Named", "Variant", "TableRow")


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
    """Those items in words, e.g. "in-domain validation items"."""


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
class Config:
    """A named set of options, such as the one a paper chose for a method."""

    options: Mapping[str, Any] = field(default_factory=dict)
    """Written as for `-o`: `lr` is an option of training, `method.rate` of a part."""
    method: str = ""
    """Whose runs take it; '' for all runs."""
    selection: str = ""
    """The selection by which it was chosen, where no variant that takes it says so."""
    note: str = ""

    def of(self, part: str) -> dict[str, Any]:
        """Return the options of a part without its prefix; those of training for ''.

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
    """True if values are spread evenly in their logarithm."""
    choices: tuple[Any, ...] = ()
    """The values themselves, where they are not an interval."""
    complement: bool = False
    """True if the option is one minus a value between `low` and `high`: a momentum is
    searched by its distance from 1."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """A second training, on items that a rule chooses by the first one's predictions.

    Active learning and few-shot studies are rows with a stage.
    """

    row: str = ""
    """The row whose runs the rule reads; a pool is read as one. '' if the rule reads no
    predictions."""
    rule: str
    """Name of the rule that chooses items, e.g. "most_uncertain"."""
    split: str = "pool"
    """The split whose items are chosen, and whose predictions the rule reads."""
    options: Mapping[str, Any] = field(default_factory=dict)
    seeded: bool = False
    """True to pass the first seed of a pool as the rule's option `seed`, so that all
    runs of the pool train on the same items."""
    splits: tuple[str, ...] = ()
    """The splits that the second runs predict; () for those of the variant."""
    chosen_by: tuple[str, ...] = ()
    """Names of settings of a line that are options of the rule too."""
    continues: bool = False
    """True to train on from the first run's weights."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TableRow:
    """One row of a table: a trained method and how many of its runs are pooled."""

    name: str
    label: str
    """The paper's name for it."""
    method: Part
    network: Mapping[str, Any] = field(default_factory=dict)
    """Options of the network besides those of the preset."""
    pool: int = 1
    """Runs pooled per repeat."""
    labels: Labels = field(default_factory=dict)
    """Further labels of its results, e.g. {"interval": "gaussian"}."""
    settings: Settings = field(default_factory=dict)
    """Facts of this row for the protocol, besides its labels."""
    at: tuple[Labels, ...] = ()
    """Settings at which it is judged, where these are not the variant's."""
    trained_by: tuple[str, ...] = ()
    """Names of settings that are options of the method: each of their values has its
    own runs."""
    stage: Stage | None = None
    """Choice of its training items, where it is a second training."""
    weights_of: str = ""
    """Row whose trained weights this row reuses, seed by seed. Such runs are not
    trained: `start` names the run with the weights, and `epochs` is 0."""
    trains: bool = True
    """False for a row whose runs predict with the weights that their network starts
    from: they have no epochs."""
    beyond: bool = False
    """True for rows the paper does not have."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Preset:
    """Size of a run of the benchmark: its variants, rows, network and training."""

    name: str
    """demo, small or paper; of data that a user brings, its name."""
    variants: tuple[Variant, ...]
    further: tuple[Variant, ...] = ()
    """Variants that are run only where they are asked for by name."""
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
    """Seeds of each repeat's pool; a row takes as many of the first as it pools."""
    alone: tuple[int, ...] = ()
    """The seed of each repeat of rows that pool nothing; () for the first of each
    pool."""
    trained: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)
    """For each setting that enters training, the values that have runs; a setting that
    is not named has runs for all of its values."""
    note: str = ""

    @property
    def every_variant(self) -> tuple[Variant, ...]:
        """All variants, including those that are run only where asked for."""
        return (*self.variants, *self.further)

    def variant(self, name: str) -> Variant:
        """Return the variant `name`, or raise with the closest name."""
        return _named(self.every_variant, name, f"variants of preset {self.name}")


_UNTRAINED: Mapping[str, Any] = {
    **{"epochs": 0, "select_by": "last", "features": "learned", "augment": []},
    **{"schedule": "constant", "partial": True},
}
"""Options of training of runs that train nothing."""
USUAL_SEEDS = (0, 1, 2)
"""Seeds of data that a user brings, where none are named."""


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Expectation:
    """An effect that a preset promises, or a finding that a paper states.

    It is checked and printed after every run: an effect by the values, a finding by
    values with intervals, so that it may be that nothing can be told.
    """

    text: str
    where: str = ""
    """Where a paper states it, e.g. "Section 3.2, Table 1"."""
    numbers: "Numbers"
    """Function from results to the numbers that decide it, by what they are of (usually
    a row); nan where one is missing, {} where the results are of other variants or
    rows. `qualms.effects` makes such functions."""
    low: float = -math.inf
    high: float = math.inf
    any_row: bool = False
    """True if one number between `low` and `high` is enough."""
    most: bool = False
    """True if it is enough that more than half of the numbers lie there."""
    meaning: str = ""
    """Meaning for the model if it holds, for a reader new to the field."""


GUEST = TableRow(name="{method}", label="{method}", method=Part(name=""))
"""The plain row of a method that a benchmark does not have."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Benchmark:
    """A protocol with a version; numbers of different versions never mix."""

    name: str
    version: int
    title: str
    paper: str
    task: TaskName
    rows: tuple[TableRow, ...]
    presets: Mapping[str, Preset]
    published: Path | None = None
    """The file of the paper's numbers; None where there are none."""
    expectations: Mapping[str, tuple[Expectation, ...]] = field(default_factory=dict)
    """By preset."""
    findings: tuple[Expectation, ...] = ()
    """Findings of the paper, in its words shortened; asked of every run."""
    configs: Mapping[str, Config] = field(default_factory=dict)
    """By name, for variants and `--config`."""
    search: Mapping[str, Mapping[str, tuple[Range, ...]]] = field(default_factory=dict)
    """By variant and method, what `qualms tune` searches."""
    selections: tuple[Selection, ...] = ()
    """Rules by which epochs and configurations may be chosen."""
    guests: tuple[TableRow, ...] = (GUEST,)
    """Rows of a method that the benchmark does not have; in their names and labels
    {method} stands for the method. Those that pool as many runs as rows of the preset
    do are used."""
    labelled_options: Mapping[str, Mapping[str, Label | None]] = field(
        default_factory=dict
    )
    """By dataset, options that are labels of results, with the value that they have
    where they are not stated; None for no label."""
    # Judging takes seconds to import, and declarations are read by every command: both
    # are functions that import what they return.
    protocol: "Callable[[], Protocol] | None" = None
    """Protocol of its repeats; None for the ordinary scores of its task."""
    presentation: "Callable[[], Presentation] | None" = None
    """Its tables and figures; None for ordinary tables."""

    def row(self, name: str) -> TableRow:
        """Return the row `name`, or raise with the closest name."""
        return _named(self.rows, name, f"rows of {self.name}")

    def selection(self, name: str) -> Selection | None:
        """Return the selection `name`; None for '', or where it does not exist."""
        return next((s for s in self.selections if s.name == name), None)

    def plan(self, preset: str) -> "RunPlan":
        """Return the plan of a whole preset."""
        declared = self.presets[preset]
        return RunPlan(
            benchmark=self,
            preset=declared,
            variants=declared.variants,
            rows=tuple(self.row(name) for name in declared.rows),
            seeds=declared.seeds,
            pools=declared.pools,
            alone=declared.alone,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Overrides:
    """Options that a user sets for runs; they take the place of declared ones."""

    training: Mapping[str, Any] = field(default_factory=dict)
    methods: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """By the name of the method."""
    networks: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """By the name of the network."""
    config: str = ""
    """Name of the config that the runs of its method take on every variant."""


class Line(NamedTuple):
    """A row judged on one variant at some settings: what a line of a table shows."""

    variant: Variant
    row: TableRow
    at: Labels
    """Settings such as alpha, measure or aggregation."""
    labels: Labels
    """Labels of all of its numbers."""
    pools: tuple[tuple[RunSpec, ...], ...]
    """The runs of each repeat; () where the preset trains none."""

    @property
    def settings(self) -> dict[str, Any]:
        """All that the protocol may read: labels and settings of variant and row."""
        variant, row = self.variant, self.row
        return {
            **{**variant.labels, **variant.settings},
            **{**row.labels, **row.settings},
            **self.at,
        }

    @property
    def runs(self) -> tuple[RunSpec, ...]:
        """The runs of all repeats, each once."""
        return tuple({run.hash: run for pool in self.pools for run in pool}.values())


class _Place(NamedTuple):
    """Where runs stand: a variant, a row and settings."""

    variant: Variant
    row: TableRow
    at: Labels


@dataclass(frozen=True, kw_only=True)
class RunPlan:
    """The part of a benchmark that is run and judged."""

    benchmark: Benchmark
    preset: Preset
    variants: tuple[Variant, ...]
    """With the options of datasets that a user set."""
    rows: tuple[TableRow, ...]
    """In the order of tables."""
    extra_rows: tuple[TableRow, ...] = ()
    """Rows that the benchmark does not declare, whether they are shown or only lend
    their weights. They are judged on every variant."""
    seeds: tuple[int, ...]
    pools: tuple[tuple[int, ...], ...]
    alone: tuple[int, ...] = ()
    overrides: Overrides = Overrides()
    changes: tuple[str, ...] = ()
    """Options and configs that a user changed, in words; they stand in every table."""
    left_out: tuple[str, ...] = ()
    """Rows that pool more runs than there are seeds."""
    part: str = ""
    """Difference from the whole preset, in words; '' for none."""

    @property
    def preset_text(self) -> str:
        """The name of the preset, and what was changed."""
        return " with ".join(filter(None, (self.preset.name, ", ".join(self.changes))))

    @property
    def every_row(self) -> tuple[TableRow, ...]:
        """The rows of the benchmark, and those of the plan that it does not declare."""
        rows = (*self.benchmark.rows, *self.extra_rows, *self.rows)
        return tuple({row.name: row for row in rows}.values())

    def row(self, name: str) -> TableRow:
        """Return the row `name` of the plan or the benchmark."""
        return _named(self.every_row, name, f"rows of {self.benchmark.name}")

    def variant(self, name: str) -> Variant:
        """Return the variant `name` of the preset."""
        known = {v.name: v for v in (*self.preset.every_variant, *self.variants)}
        return _named(known.values(), name, f"variants of preset {self.preset.name}")

    def rows_on(self, variant: Variant) -> tuple[TableRow, ...]:
        """Return the rows that are judged on a variant, in the order of tables."""
        return tuple(
            {line.row.name: line.row for line in self.lines_of(variant)}.values()
        )

    def lines_of(self, variant: Variant) -> tuple[Line, ...]:
        """Return the lines of one variant."""
        return tuple(line for line in self.lines if line.variant is variant)

    def labels_of(self, variant: Variant) -> Labels:
        """Return the labels that all results of a variant share."""
        dataset = variant.dataset
        labelled = self.benchmark.labelled_options.get(dataset.name, {})
        options = {n: dataset.options.get(n, usual) for n, usual in labelled.items()}
        labels: dict[str, Any] = {
            "benchmark": self.benchmark.name,
            "preset": self.preset_text,
            "variant": variant.name,
            "dataset": variant.label,
            "simulated": variant.simulated,
            **({"selection": variant.selection} if variant.selection else {}),
            **options,
            **variant.labels,
        }
        return {name: value for name, value in labels.items() if value is not None}

    @cached_property
    def lines(self) -> tuple[Line, ...]:
        """Every row on every variant at every setting, with its runs."""
        return tuple(
            Line(*place, self._labels(place), self._pools(place))
            for variant in self.variants
            for place in self._places(variant)
        )

    @cached_property
    def line_labels(self) -> frozenset[str]:
        """Names of the labels that lines have; others are of single numbers."""
        return frozenset(name for line in self.lines for name in line.labels)

    @cached_property
    def runs(self) -> tuple[RunSpec, ...]:
        """Every training that the plan needs, each once, parents first.

        Runs that no pool asks for are left out: the regression paper trains 20 networks
        of each kind, of which its index lists use 16 for ensembles and 5 alone.
        """
        specs: dict[str, RunSpec] = {}
        for variant in self.variants:
            for place in self._places(variant):
                for seed in self._seeds(place):
                    for spec in self._with_parents(place, seed):
                        specs[spec.hash] = _predicting_more(
                            specs.get(spec.hash, spec), spec
                        )
        return tuple(specs.values())

    @cached_property
    def ensembles(self) -> tuple[tuple[int, ...], ...]:
        """The seeds of each repeat of the largest pools; () where no row pools runs."""
        largest = max(self.rows, key=lambda row: row.pool)
        return self.pools_of(largest) if largest.pool > 1 else ()

    def pools_of(self, row: TableRow) -> tuple[tuple[int, ...], ...]:
        """Return the seeds of each repeat of `row`; pools of the same seeds count once.

        Raises:
            ValueError: If a pool of the plan has fewer seeds than the row pools.
        """
        if row.pool == 1 and self.alone:
            return tuple((seed,) for seed in self.alone)
        for pool in self.pools:
            if len(pool) < row.pool:
                raise ValueError(
                    f"row {row.name!r} pools {row.pool} runs, but preset "
                    f"{self.preset.name!r} has a pool of {len(pool)}; list more seeds"
                )
        chosen = (tuple(sorted(pool[: row.pool])) for pool in self.pools)
        return tuple(dict.fromkeys(chosen))

    def selection_text(self, variant: Variant) -> str:
        """Say on which items epochs and configurations of a variant were chosen.

        A user may have asked for another rule than the one that the benchmark declares.
        """
        declared = self.benchmark.selection(variant.selection)
        rule = self.training_on(variant).get("select_by", "last")
        if declared is None:
            return ""
        text = f"selection {variant.selection}: chosen on {declared.items}"
        if rule == declared.rule:
            return text
        if rule == "last":
            return f"{text}; the last epoch of each run, chosen on no items"
        return f"{text}; epochs chosen by {rule}"

    def training_on(self, variant: Variant) -> dict[str, Any]:
        """Return the options of training on a variant, without those of configs."""
        preset = self.preset.training
        return {**preset, **variant.training, **self.overrides.training}

    def rows_allowed(self, variant: Variant) -> tuple[TableRow, ...]:
        """Return the rows of the plan that may be judged on a variant."""
        if not variant.rows:
            return self.rows
        names = {*variant.rows, *(row.name for row in self.extra_rows)}
        return tuple(row for row in self.rows if row.name in names)

    def is_trained(self, row: TableRow, at: Labels) -> bool:
        """Return whether the preset has runs for this row at these settings."""
        trained = self.preset.trained
        return all(
            at[name] in trained.get(name, (at[name],)) for name in row.trained_by
        )

    def _places(self, variant: Variant) -> Iterator[_Place]:
        rows = self.rows_allowed(variant)
        for at in variant.at:
            for row in rows:
                if not row.at:
                    yield _Place(variant, row, at)
        for row in rows:
            for at in row.at:
                if all(v in variant.only.get(name, (v,)) for name, v in at.items()):
                    yield _Place(variant, row, at)

    def _labels(self, place: _Place) -> Labels:
        row = place.row
        names: dict[str, Label] = {"row": row.name, "method": row.method.name}
        names["pool"] = row.pool
        return {**self.labels_of(place.variant), **names, **row.labels, **place.at}

    def _repeats(self, place: _Place) -> tuple[tuple[int, ...], ...]:
        """Return the seeds of each repeat: those of the row, or the first ones."""
        pools = self.pools_of(place.row)
        return pools[: place.variant.repeats or len(pools)]

    def _pools(self, place: _Place) -> tuple[tuple[RunSpec, ...], ...]:
        if not self.is_trained(place.row, place.at):
            return ()
        pools = self._repeats(place)
        specs = {seed: self._spec(place, seed) for pool in pools for seed in pool}
        return tuple(tuple(specs[seed] for seed in pool) for pool in pools)

    def _seeds(self, place: _Place) -> tuple[int, ...]:
        """Return the seeds of the runs that a place needs."""
        if not self.is_trained(place.row, place.at):
            return ()
        used = {seed for pool in self._repeats(place) for seed in pool}
        return tuple(seed for seed in self.seeds if seed in used)

    def _with_parents(self, place: _Place, seed: int) -> Iterator[RunSpec]:
        for parent, member in self._parents(place, seed):
            yield from self._with_parents(parent, member)
        yield self._spec(place, seed)

    def _parents(self, place: _Place, seed: int) -> Iterator[tuple[_Place, int]]:
        """Yield where the runs stand that this one needs, with their seeds."""
        row = place.row
        if row.weights_of:
            yield place._replace(row=self.row(row.weights_of)), seed
        if row.stage is not None and row.stage.row:
            first = place._replace(row=self.row(row.stage.row))
            for member in self._pool_with(first.row, seed):
                yield first, member

    def _pool_with(self, row: TableRow, seed: int) -> tuple[int, ...]:
        """Return the seeds that are pooled with `seed` in a repeat of `row`."""
        pools = (pool for pool in self.pools_of(row) if seed in pool)
        return next(pools, (seed,))

    def _spec(self, place: _Place, seed: int) -> RunSpec:
        """Return the training that a number at `place` comes from."""
        key = place.variant.name, place.row.name, tuple(place.at.items()), seed
        specs = self._specs
        if key not in specs:
            make = self._lent if place.row.weights_of else self._trained
            spec = make(place, seed)
            specs[key] = replace(spec, sources=_sources(spec))
        return specs[key]

    @cached_property
    def _specs(self) -> dict[tuple[Any, ...], RunSpec]:
        """Specs made so far: one run serves many lines."""
        return {}

    def _trained(self, place: _Place, seed: int) -> RunSpec:
        """Return a run that is trained."""
        variant, row, _ = place
        preset, config = self.preset, self._config(place)
        network = variant.network or preset.network
        own = preset.networks.get(row.method.name, {})
        changed = self.overrides.networks.get(network.name, {})
        return RunSpec(
            benchmark=self.benchmark.name,
            dataset=variant.dataset,
            datasets=variant.datasets,
            network=Part(
                name=network.name,
                options={**network.options, **own, **changed, **row.network},
            ),
            method=self._method(place),
            seed=seed,
            training={
                **{**preset.training, **variant.training, **config.of("")},
                **self.overrides.training,
                **({} if row.trains else _UNTRAINED),
            },
            version=self.benchmark.version,
            **self._staged(place, seed),
        )

    def _lent(self, place: _Place, seed: int) -> RunSpec:
        """Return a run that predicts with the weights of another one."""
        lender = self._spec(place._replace(row=self.row(place.row.weights_of)), seed)
        return replace(
            lender,
            method=self._method(place),
            training={**lender.training, "epochs": 0},
            start=lender.hash,
        )

    def _config(self, place: _Place) -> Config:
        configs, method = self.benchmark.configs, place.row.method.name
        chosen = self.overrides.config
        if chosen and configs[chosen].method == method:
            return configs[chosen]
        name = place.variant.configs.get(method)
        return Config() if name is None else configs[name]

    def _method(self, place: _Place) -> Part:
        row = place.row
        options = {
            **self.preset.methods.get(row.method.name, {}),
            **self._config(place).of("method"),
            **row.method.options,
            **self.overrides.methods.get(row.method.name, {}),
            **{name: place.at[name] for name in row.trained_by},
        }
        return Part(name=row.method.name, options=options)

    def _staged(self, place: _Place, seed: int) -> dict[str, Any]:
        """Return the fields of a spec that say what it predicts and trains on."""
        stage = place.row.stage
        if stage is None:
            return {"splits": place.variant.splits}
        parents = [self._spec(*parent) for parent in self._parents(place, seed)]
        chosen = {name: place.at[name] for name in stage.chosen_by}
        drawn = {"seed": self._pool_with(place.row, seed)[0]} if stage.seeded else {}
        rule = ItemRule(
            name=stage.rule,
            runs=tuple(spec.hash for spec in parents),
            split=stage.split,
            options={**stage.options, **chosen, **drawn},
        )
        return {
            "splits": stage.splits or place.variant.splits,
            "items": rule,
            "start": parents[0].hash if stage.continues else None,
        }


def _predicting_more(spec: RunSpec, other: RunSpec) -> RunSpec:
    """Return a run that predicts the splits of both, which have one hash."""
    if spec.splits == other.splits:
        return spec
    splits = tuple(dict.fromkeys((*spec.splits, *other.splits)))
    return replace(spec, splits=splits, sources={**spec.sources, **other.sources})


def _sources(spec: RunSpec) -> dict[str, str]:
    """Return a digest of the code of each part of `spec` from outside the package."""
    parts = [("methods", spec.method.name), ("networks", spec.network.name)]
    parts += [("datasets", part.name) for part in spec.parts.values()]
    corrupted = filter(None, map(parse_corrupted, spec.splits))
    parts += [(CORRUPTIONS, split.corruption) for split in corrupted]
    digests = {f"{shelf}/{name}": source_of(shelf, name) for shelf, name in parts}
    return {name: digest for name, digest in digests.items() if digest}


def _named(parts: Iterable[Named], name: str, what: str) -> Named:
    by_name = {part.name: part for part in parts}
    if name not in by_name:
        raise LookupError(
            f"no {name!r} in the {what}.{suggest(name, by_name)} Known: "
            f"{', '.join(by_name)}."
        )
    return by_name[name]
