"""A table: parts with columns, lines, and what stands where they meet."""

from collections.abc import Mapping
from typing import NamedTuple

from qualms.benchmarks import Preset, TableRow, Variant
from qualms.evaluate.benchmark import BenchmarkResults, Key
from qualms.published import Number
from qualms.report._compared import NOT_PRINTED, Compared
from qualms.report.papers.retina._layouts import Column
from qualms.report.papers.retina._settings import (
    about_text,
    as_in_the_paper,
    data_text,
)


class Line(NamedTuple):
    """One row of a table."""

    label: str
    row: TableRow
    variants: Mapping[str, Variant]
    """By task."""
    compared: tuple[Compared, ...]
    """By column."""


class Part(NamedTuple):
    """Columns and the lines below them."""

    title: str
    columns: tuple[Column, ...]
    lines: tuple[Line, ...]


class Table(NamedTuple):
    """A table, one of the paper's or ours."""

    name: str
    """As printed: 1 to 13; a word for ours."""
    title: str
    preset: Preset
    variants: tuple[Variant, ...]
    parts: tuple[Part, ...]
    note: str = ""
    own: bool = False
    """True for tables the paper does not have."""

    @property
    def simulated(self) -> bool:
        """Whether the data are simulated."""
        return self.variants[0].simulated

    @property
    def heading(self) -> str:
        """What it is called: by the paper's number, if it has one."""
        number = "" if self.own else f"Table {self.name.partition('_')[0]}: "
        return f"{number}{self.title}"

    @property
    def about(self) -> str:
        """Data, preset and regime: what must stand beside every number."""
        return about_text(self.preset, self.variants)

    @property
    def compares(self) -> bool:
        """Whether any published number stands in it."""
        return any(
            compared.number is not None
            for part in self.parts
            for line in part.lines
            for compared in line.compared
        )

    @property
    def marks(self) -> bool:
        """Whether the best of any column, and its equals, are marked."""
        return any(
            compared.tied and not column.theirs
            for part in self.parts
            for line in part.lines
            for column, compared in zip(part.columns, line.compared, strict=True)
        )

    @property
    def file(self) -> str:
        """Name of its files, without ending."""
        end = "_simulated" if self.simulated else ""
        return f"table_{self.name}{end}"


def compared(
    results: BenchmarkResults,
    variant: Variant,
    row: TableRow,
    column: Column,
    number: Number | None = None,
) -> Compared:
    """Our cell in a column, in its unit, beside a published number."""
    name = f"{column.subset}/{column.score.name}"
    ties = results.ties.get(Key(variant.name, None, "", name))
    return Compared(
        cell=results.cell(variant.name, None, row.name, name),
        number=number,
        tied=ties is not None and row.name in ties.members,
        scale=column.score.unit.scale,
        absent=NOT_PRINTED if as_in_the_paper(variant) else data_text(variant),
    )
