"""Benchmarks: what a declaration names, its presets, and what it expects."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from qualms.labels import Label
from qualms.spec import Part
from qualms.study._data import Selection, Variant
from qualms.study._plan import RunPlan
from qualms.study._rows import GUEST, Config, Range, TableRow, named

if TYPE_CHECKING:
    from qualms.effects import Numbers
    from qualms.evaluate.protocol import Protocol
    from qualms.report.presentation import Presentation


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
        return named(self.every_variant, name, f"variants of preset {self.name}")


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
    of_paper: bool = False
    """True if a limit is a number of the paper's data, which says nothing of others."""
    meaning: str = ""
    """Meaning for the model if it holds, for a reader new to the field."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Benchmark:
    """A protocol with a version; numbers of different versions never mix."""

    name: str
    version: int
    title: str
    paper: str
    task: str
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
        return named(self.rows, name, f"rows of {self.name}")

    def selection(self, name: str) -> Selection | None:
        """Return the selection `name`; None for '', or where it does not exist."""
        return next((s for s in self.selections if s.name == name), None)

    def plan(self, preset: str) -> RunPlan:
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
