"""What a benchmark is: a declared object that names everything and computes nothing."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from qualms.benchmarks._records import (
    Config,
    Expectation,
    Place,
    Preset,
    Range,
    Selection,
    Settings,
    TableRow,
    Variant,
)
from qualms.shelf import source_of
from qualms.spec import ItemRule, Part, RunSpec, TaskName
from qualms.wording import suggest

Named = TypeVar("Named", Variant, TableRow)


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
    scores: tuple[str, ...] = ()
    """Scores of a table cell, in order; () for all that judging gives."""
    published: str = ""
    """Name of the numbers in `qualms.published`; '' where there are none."""
    expectations: Mapping[str, tuple[Expectation, ...]] = field(default_factory=dict)
    """By preset."""
    configs: Mapping[str, Config] = field(default_factory=dict)
    """By name, for variants and `--config`."""
    search: Mapping[str, Mapping[str, tuple[Range, ...]]] = field(default_factory=dict)
    """By variant and method, what `qualms tune` searches."""
    selections: tuple[Selection, ...] = ()
    """How epochs and configurations may be chosen."""
    guests: tuple[TableRow, ...] = (GUEST,)
    """Rows of a method that the benchmark does not have; in their names and labels
    {method} stands for the method. Those that pool as many runs as rows of the preset
    do are used."""

    def row(self, name: str) -> TableRow:
        """The row `name`."""
        return _named(self.rows, name, f"rows of {self.name}")

    def selection(self, name: str) -> Selection | None:
        """The selection `name`; None for '', or where the benchmark has none such."""
        return next((s for s in self.selections if s.name == name), None)

    def places(self, preset: Preset, variant: Variant) -> Iterator[Place]:
        """Every setting and row that the preset judges on `variant`."""
        names = [n for n in preset.rows if not variant.rows or n in variant.rows]
        rows = [self.row(name) for name in names]
        for settings in variant.places:
            for row in rows:
                if not row.places:
                    yield Place(variant, row, settings)
        for row in rows:
            for settings in row.places:
                if _fits(settings, variant):
                    yield Place(variant, row, settings)

    def spec(self, preset: Preset, place: Place, seed: int) -> RunSpec:
        """The training that a number at `place` comes from."""
        made = self._lent if place.row.weights_of else self._trained
        spec = made(preset, place, seed)
        return replace(spec, sources=_sources(spec))

    def _trained(self, preset: Preset, place: Place, seed: int) -> RunSpec:
        """A run that is trained."""
        variant, row, _ = place
        config = self._config(place)
        network = variant.network or preset.network
        own = preset.networks.get(row.method.name, {})
        return RunSpec(
            benchmark=self.name,
            dataset=variant.dataset,
            datasets=variant.datasets,
            network=Part(
                name=network.name, options={**network.options, **own, **row.network}
            ),
            method=self._method(preset, place),
            seed=seed,
            training={**preset.training, **variant.training, **config.of("")},
            version=self.version,
            **self._staged(preset, place, seed),
        )

    def runs(self, preset: Preset) -> tuple[RunSpec, ...]:
        """Every training the preset needs, each once, those that others need first.

        Runs that no pool asks for are left out: the regression paper trains 20 networks
        of each kind, of which its index lists use 16 for ensembles and 5 alone.
        """
        found: dict[str, RunSpec] = {}
        for variant in preset.variants:
            for place in self.places(preset, variant):
                for seed in seeds_of(preset, place):
                    for spec in self._with_parents(preset, place, seed):
                        found.setdefault(spec.hash, spec)
        return tuple(found.values())

    def _with_parents(
        self, preset: Preset, place: Place, seed: int
    ) -> Iterator[RunSpec]:
        """The runs that this one needs, and those that they need, then itself."""
        for needed, member in self._parents(preset, place, seed):
            yield from self._with_parents(preset, needed, member)
        yield self.spec(preset, place, seed)

    def _parents(
        self, preset: Preset, place: Place, seed: int
    ) -> Iterator[tuple[Place, int]]:
        """Where the runs stand that this one needs, with their seeds."""
        if place.row.weights_of:
            yield place._replace(row=self.row(place.row.weights_of)), seed
        if place.row.stage is not None and place.row.stage.row:
            first = place._replace(row=self.row(place.row.stage.row))
            for member in _pool_with(preset, first.row, seed):
                yield first, member

    def _config(self, place: Place) -> Config:
        name = place.variant.configs.get(place.row.method.name)
        return Config() if name is None else self.configs[name]

    def _method(self, preset: Preset, place: Place) -> Part:
        row = place.row
        options = {
            **preset.methods.get(row.method.name, {}),
            **self._config(place).of("method"),
            **row.method.options,
            **{name: place.settings[name] for name in row.trained_by},
        }
        return Part(name=row.method.name, options=options)

    def _lent(self, preset: Preset, place: Place, seed: int) -> RunSpec:
        """A run that predicts with the weights of another one."""
        lender = place._replace(row=self.row(place.row.weights_of))
        lent = self.spec(preset, lender, seed)
        return replace(
            lent,
            method=self._method(preset, place),
            training={**lent.training, "epochs": 0},
            start=lent.hash,
        )

    def _staged(self, preset: Preset, place: Place, seed: int) -> dict[str, Any]:
        """The fields of a spec that say what it predicts and what it trains on."""
        stage = place.row.stage
        if stage is None:
            return {"splits": place.variant.splits}
        asked = [self.spec(preset, *one) for one in self._parents(preset, place, seed)]
        chosen = {name: place.settings[name] for name in stage.chosen_by}
        drawn = {"seed": _pool_with(preset, place.row, seed)[0]} if stage.seeded else {}
        rule = ItemRule(
            name=stage.rule,
            runs=tuple(spec.hash for spec in asked),
            split=stage.split,
            options={**stage.options, **chosen, **drawn},
        )
        return {
            "splits": stage.splits or place.variant.splits,
            "items": rule,
            "start": asked[0].hash if stage.continues else None,
        }


def _sources(spec: RunSpec) -> dict[str, str]:
    """A digest of the code of each part of `spec` that is not the package's own."""
    parts = [("methods", spec.method), ("networks", spec.network)]
    parts += [("datasets", part) for part in spec.parts.values()]
    found = {
        f"{shelf}/{part.name}": source_of(shelf, part.name) for shelf, part in parts
    }
    return {name: digest for name, digest in found.items() if digest}


def _fits(settings: Settings, variant: Variant) -> bool:
    """Whether a row is judged at `settings` on `variant`."""
    return all(
        value in variant.judged.get(name, (value,)) for name, value in settings.items()
    )


def _pool_with(preset: Preset, row: TableRow, seed: int) -> tuple[int, ...]:
    """The seeds that are pooled with `seed` in a repeat of `row`."""
    found = (pool for pool in pools_of(preset, row) if seed in pool)
    return next(found, (seed,))


def seeds_of(preset: Preset, place: Place) -> tuple[int, ...]:
    """The seeds of the runs that a place needs; () where the preset trains none."""
    if not trained(preset, place):
        return ()
    used = {seed for pool in repeats_of(preset, place) for seed in pool}
    return tuple(seed for seed in preset.seeds if seed in used)


def repeats_of(preset: Preset, place: Place) -> tuple[tuple[int, ...], ...]:
    """The seeds of each repeat at `place`, which has those of its row or fewer."""
    pools = pools_of(preset, place.row)
    return pools[: place.variant.repeats or len(pools)]


def trained(preset: Preset, place: Place) -> bool:
    """Whether the preset has runs for this row at these settings."""
    return all(
        place.settings[name] in preset.trained.get(name, (place.settings[name],))
        for name in place.row.trained_by
    )


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


def selection_text(benchmark: Benchmark, preset: Preset, variant: Variant) -> str:
    """On which items epochs and configurations of a variant were chosen, in words.

    A user may have asked for another rule than the one that the benchmark declares.
    """
    declared = benchmark.selection(variant.selection)
    training = {**preset.training, **variant.training}
    asked = training.get("select_by", "last")
    if declared is None or asked == declared.rule:
        chosen = f"chosen on {declared.items}" if declared else ""
        return f"selection {variant.selection}: {chosen}" if declared else ""
    if asked == "last":
        epochs = "the last epoch of each run, chosen on no items"
    else:
        epochs = f"epochs chosen by {asked}"
    return f"selection {variant.selection}: chosen on {declared.items}; {epochs}"


def settings_text(settings: Settings) -> str:
    """Settings as tables and files write them.

    >>> settings_text({"alpha": 0.1, "u": "entropy"})
    'alpha=0.1, u=entropy'
    """
    return ", ".join(f"{name}={value}" for name, value in settings.items())


def settings_values(settings: Settings) -> str:
    """Settings where their names go without saying.

    >>> settings_values({"alpha": 0.1, "u": "entropy"})
    '0.1, entropy'
    """
    return ", ".join(map(str, settings.values()))


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
