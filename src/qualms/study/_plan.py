"""Plans: the part of a benchmark that is run and judged, and the lines it gives."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

from qualms.labels import Label, Labels
from qualms.spec import RunSpec
from qualms.study._data import Variant
from qualms.study._rows import TableRow, named
from qualms.study._specs import Place, RunSpecs

if TYPE_CHECKING:
    from qualms.study._benchmark import Benchmark, Preset


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


@dataclass(frozen=True, kw_only=True)
class RunPlan:
    """The part of a benchmark that is run and judged."""

    benchmark: "Benchmark"
    preset: "Preset"
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
        return named(self.every_row, name, f"rows of {self.benchmark.name}")

    def variant(self, name: str) -> Variant:
        """Return the variant `name` of the preset."""
        known = {v.name: v for v in (*self.preset.every_variant, *self.variants)}
        return named(known.values(), name, f"variants of preset {self.preset.name}")

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
                    for spec in self._specs.with_parents(place, seed):
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

    def _places(self, variant: Variant) -> Iterator[Place]:
        rows = self.rows_allowed(variant)
        for at in variant.at:
            for row in rows:
                if not row.at:
                    yield Place(variant, row, at)
        for row in rows:
            for at in row.at:
                if all(v in variant.only.get(name, (v,)) for name, v in at.items()):
                    yield Place(variant, row, at)

    def _labels(self, place: Place) -> Labels:
        row = place.row
        names: dict[str, Label] = {"row": row.name, "method": row.method.name}
        names["pool"] = row.pool
        return {**self.labels_of(place.variant), **names, **row.labels, **place.at}

    def _repeats(self, place: Place) -> tuple[tuple[int, ...], ...]:
        """Return the seeds of each repeat: those of the row, or the first ones."""
        pools = self.pools_of(place.row)
        return pools[: place.variant.repeats or len(pools)]

    def _pools(self, place: Place) -> tuple[tuple[RunSpec, ...], ...]:
        if not self.is_trained(place.row, place.at):
            return ()
        pools = self._repeats(place)
        specs = {seed: self._specs.of(place, seed) for pool in pools for seed in pool}
        return tuple(tuple(specs[seed] for seed in pool) for pool in pools)

    def _seeds(self, place: Place) -> tuple[int, ...]:
        """Return the seeds of the runs that a place needs."""
        if not self.is_trained(place.row, place.at):
            return ()
        used = {seed for pool in self._repeats(place) for seed in pool}
        return tuple(seed for seed in self.seeds if seed in used)

    @cached_property
    def _specs(self) -> RunSpecs:
        return RunSpecs(self)


def _predicting_more(spec: RunSpec, other: RunSpec) -> RunSpec:
    """Return a run that predicts the splits of both, which have one hash."""
    if spec.splits == other.splits:
        return spec
    splits = tuple(dict.fromkeys((*spec.splits, *other.splits)))
    return replace(spec, splits=splits, sources={**spec.sources, **other.sources})
