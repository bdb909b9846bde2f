"""Lines and cells that the tables of the study share."""

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from qualms.benchmarks import Variant
from qualms.evaluate.results import BenchmarkResults
from qualms.report.judged import NOT_PRINTED, SAMPLE, table_cell
from qualms.report.papers.values.settings import (
    Component,
    ScoreColumn,
    Study,
    as_in_values,
    printed_number,
    values_data_text,
)
from qualms.report.table import TableCell

_ELSEWHERE = (
    "Published numbers in brackets are of the paper's data, ours are not: read them "
    "for the order of methods, not for their size."
)
TYPES = (
    "PU, AU, EU: a measure that stands for predictive, aleatoric or epistemic "
    "uncertainty. MSR: one minus the largest probability; PE: entropy of the mean "
    "prediction; EE: mean entropy of draws; MI: PE - EE."
)


class ValuesPlace(NamedTuple):
    """Where a cell of a table stands."""

    dataset: str
    variant: Variant
    one: Component
    score: ScoreColumn


def line_labels(study: Study, one: Component) -> tuple[str, str]:
    """A model, and a measure with what it stands for."""
    label = study.results.benchmark.row(one.row).label
    return label, f"{one.measure} ({study.kind(one)})"


def line_keys(study: Study, one: Component) -> dict[str, str]:
    """What a line is, for the CSV file."""
    return {
        "row": one.row,
        "method": study.results.benchmark.row(one.row).label,
        "measure": one.measure,
        "type": study.kind(one),
    }


def values_cell(
    study: Study, place: ValuesPlace, tables: tuple[str, ...], *, scale: float = 1.0
) -> TableCell:
    """Our cell beside the published one.

    The best is sought among the models of one measure, but a column holds several: so
    it is not marked.
    """
    number = printed_number(place.dataset, place.one, place.score, tables)
    beyond = study.beyond(place.one) or number is None
    cell = table_cell(
        study.results,
        study.cell(place.variant, place.one, place.score),
        spread=SAMPLE,
        scale=scale,
        number=None if beyond else number,
        absent=NOT_PRINTED,
    )
    cell = replace(cell, best=False, tied=False)
    return cell if as_in_values(place.variant) else replace(cell, by_their_rule=None)


def study_about(results: BenchmarkResults, variants: Sequence[Variant]) -> str:
    """Data and preset: what must stand beside every number."""
    return f"{values_data_text(variants)}; preset {results.preset.told}"


def study_source(results: BenchmarkResults, variants: Sequence[Variant]) -> str:
    """The same as a sentence, for captions."""
    about = study_about(results, variants)
    return f"{about[0].upper()}{about[1:]}."


def warned(variants: Sequence[Variant]) -> tuple[str, ...]:
    """A note where published numbers are of other data than ours."""
    return () if all(map(as_in_values, variants)) else (_ELSEWHERE,)
