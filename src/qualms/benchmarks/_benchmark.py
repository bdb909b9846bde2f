"""What a benchmark is: a declared object that names everything and computes nothing."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, TypeVar

from qualms.shelf import suggest
from qualms.spec import Part, RunSpec, TaskName

PresetName = Literal["demo", "small", "paper"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Variant:
    """One dataset of a benchmark, as tables name it."""

    name: str
    """Short name on the command line: `qualms run regression/cells_tails`."""
    label: str
    """The paper's name for it; published numbers are found by it."""
    dataset: Part
    test: str = "test"
    """The stored split whose scores a table shows."""
    tests: tuple[str, ...] = ()
    """All test splits that its runs predict; () for `test` alone. Variants that state
    the same ones here, and differ in `test` alone, share their runs."""
    within: tuple[tuple[float, float], ...] = ()
    """Ranges of the target, ends included, that a test item must lie in; () for all.
    Variants that differ in nothing else share their runs."""
    shift: str = ""
    """What is shifted in words; '' for none."""
    shifted: bool = False
    """Whether shifted items are splits of their own, val/shifted and <test>/shifted."""
    regime: str = ""
    """Which validation items configurations and epochs are chosen on: "in-domain", or
    "joint" with shifted ones among them; '' where nothing is chosen."""
    simulated: bool = False
    alphas: tuple[float | None, ...] = (0.1,)
    """Miscoverage rates that are judged; (None,) where there are no intervals."""
    training: Mapping[str, Any] = field(default_factory=dict)
    """Options of the loop that this dataset needs besides those of the preset."""
    configs: Mapping[str, str] = field(default_factory=dict)
    """By method, the name of the config that its runs take."""
    rows: tuple[str, ...] = ()
    """Rows that are judged on it; () for all rows of the preset."""

    @property
    def splits(self) -> tuple[str, ...]:
        """The splits that runs predict."""
        if not self.shifted:
            return ("val", *(self.tests or (self.test,)))
        return ("val", "val/shifted", self.test, f"{self.test}/shifted")


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """A named set of options, such as the one a paper chose for a method."""

    options: Mapping[str, Any] = field(default_factory=dict)
    """Written as for `-o`: `lr` is an option of the loop, `method.rate` of a part."""
    method: str = ""
    """Whose runs take it; '' for all runs."""
    note: str = ""

    def of(self, part: str) -> dict[str, Any]:
        """The options of a part, without its prefix; of the loop for ''.

        >>> Config(options={"lr": 0.1, "method.rate": 0.2}).of("method")
        {'rate': 0.2}
        """
        split = ((*name.rpartition("."), value) for name, value in self.options.items())
        return {name: value for owner, _, name, value in split if owner == part}


@dataclass(frozen=True, slots=True, kw_only=True)
class Range:
    """Values of one option that a search tries."""

    option: str
    """As for `-o`: an option of the loop, or of a part with its prefix."""
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
class TableRow:
    """One row of a table: a trained method, how many runs are pooled, and the rules."""

    name: str
    label: str
    """The paper's name for it; published numbers are found by it."""
    method: Part
    network: Mapping[str, Any] = field(default_factory=dict)
    """Options of the network besides those of the preset."""
    pool: int = 1
    """Runs pooled per repeat."""
    rule: str = ""
    """How predictions become what is scored, e.g. point, gaussian, quantile."""
    select: str = ""
    """Selection score that decides which items are predicted at all."""
    per_alpha: bool = False
    """Whether alpha enters training, so that every alpha has its own runs."""
    weighted: bool = False
    """Whether calibration weighs validation items by how like the test items they
    are."""
    beyond: bool = False
    """True for rows the paper does not have."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Preset:
    """How large a run of the benchmark is."""

    name: PresetName
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
    trained_alphas: tuple[float, ...] = (0.1,)
    """Alphas for which rows are run whose training alpha enters."""
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
class Expectation:
    """An effect the benchmark promises, checked and printed after every run."""

    text: str
    variant: str
    rows: tuple[str, ...]
    """It holds if it holds for all of these rows."""
    score: str
    low: float
    high: float
    minus: str = ""
    """Another variant whose value is subtracted."""
    minus_rows: tuple[str, ...] = ()
    """Other rows whose values are subtracted, one for each of `rows`."""
    minus_score: str = ""
    """Another score whose value is subtracted. Of variant, row and score, whatever is
    not named here is the same on both sides; nothing is subtracted if none is."""
    alpha: float | None = 0.1

    @property
    def pairs(self) -> dict[str, str]:
        """Each row, and the one whose value is subtracted from its own."""
        return dict(zip(self.rows, self.minus_rows or self.rows, strict=True))


class Place(NamedTuple):
    """Where a number stands: on which dataset, for which alpha, in which row."""

    variant: Variant
    alpha: float | None
    row: TableRow


Named = TypeVar("Named", Variant, TableRow)


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
    scores: tuple[str, ...]
    """Scores of a table cell, in order; named as in the published numbers."""
    published: str
    """Name of the numbers in `qualms.published`."""
    expectations: Mapping[str, tuple[Expectation, ...]] = field(default_factory=dict)
    """By preset."""
    configs: Mapping[str, Config] = field(default_factory=dict)
    """By name, for variants and `--config`."""
    search: Mapping[str, Mapping[str, tuple[Range, ...]]] = field(default_factory=dict)
    """By variant and method, what `qualms tune` searches."""

    def row(self, name: str) -> TableRow:
        """The row `name`."""
        return _named(self.rows, name, f"rows of {self.name}")

    def places(self, preset: Preset, variant: Variant) -> Iterator[Place]:
        """Every alpha and row that the preset judges on `variant`."""
        rows = [n for n in preset.rows if not variant.rows or n in variant.rows]
        for alpha in variant.alphas:
            for name in rows:
                yield Place(variant, alpha, self.row(name))

    def spec(self, preset: Preset, place: Place, seed: int) -> RunSpec:
        """The training that a number at `place` comes from."""
        variant, alpha, row = place
        name = variant.configs.get(row.method.name)
        config = Config() if name is None else self.configs[name]
        options = {
            **preset.methods.get(row.method.name, {}),
            **config.of("method"),
            **row.method.options,
        }
        if row.per_alpha:
            options["alpha"] = alpha
        own = preset.networks.get(row.method.name, {})
        network = {**preset.network.options, **own, **row.network}
        return RunSpec(
            benchmark=self.name,
            dataset=variant.dataset,
            network=Part(name=preset.network.name, options=network),
            method=Part(name=row.method.name, options=options),
            seed=seed,
            training={**preset.training, **variant.training, **config.of("")},
            splits=variant.splits,
            version=self.version,
        )

    def runs(self, preset: Preset) -> tuple[RunSpec, ...]:
        """Every training the preset needs, each once.

        Runs that no pool asks for are left out: the paper trains 20 networks of each
        kind, of which its index lists use 16 for ensembles and 5 alone.
        """
        specs = (
            self.spec(preset, place, seed)
            for variant in preset.variants
            for place in self.places(preset, variant)
            if trained(preset, place)
            for seed in preset.seeds
            if any(seed in pool for pool in pools_of(preset, place.row))
        )
        return tuple({spec.hash: spec for spec in specs}.values())


def trained(preset: Preset, place: Place) -> bool:
    """Whether the preset has runs for this row at this alpha."""
    return not place.row.per_alpha or place.alpha in preset.trained_alphas


def pools_of(preset: Preset, row: TableRow) -> tuple[tuple[int, ...], ...]:
    """The seeds of each repeat of `row`; pools of the same seeds count once.

    Raises:
        ValueError: If a pool of the preset has fewer seeds than the row pools.
    """
    if row.pool == 1 and preset.alone:
        return tuple((seed,) for seed in preset.alone)
    for pool in preset.pools:
        if len(pool) < row.pool:
            raise ValueError(
                f"row {row.name!r} pools {row.pool} runs, but preset {preset.name!r} "
                f"has a pool of {len(pool)}; list more seeds"
            )
    chosen = (tuple(sorted(pool[: row.pool])) for pool in preset.pools)
    return tuple(dict.fromkeys(chosen))


def ensembles(benchmark: Benchmark, preset: Preset) -> tuple[tuple[int, ...], ...]:
    """The seeds of each repeat of the largest pools; () where no row pools runs."""
    rows = (benchmark.row(name) for name in preset.rows)
    largest = max(rows, key=lambda row: row.pool)
    return pools_of(preset, largest) if largest.pool > 1 else ()


def regimes(preset: Preset) -> list[str]:
    """For each regime of the preset, in words what was chosen on which items."""
    seen = {"in-domain": "in-domain", "joint": "in-domain and shifted"}
    names: dict[str, list[str]] = {}
    for variant in preset.variants:
        names.setdefault(variant.regime, []).append(variant.name)
    return [
        f"regime {regime} ({', '.join(names[regime])}): configurations and epochs "
        f"chosen on {items} validation items"
        for regime, items in seen.items()
        if regime in names
    ]


def variant_of(preset: Preset, name: str) -> Variant:
    """The variant `name` of a preset, those only run when asked for among them."""
    known = (*preset.variants, *preset.further)
    return _named(known, name, f"variants of preset {preset.name}")


def _named(parts: Iterable[Named], name: str, what: str) -> Named:
    found = {part.name: part for part in parts}
    if name not in found:
        raise LookupError(
            f"no {name!r} in the {what}.{suggest(name, found)} Known: "
            f"{', '.join(found)}."
        )
    return found[name]
