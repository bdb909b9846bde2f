"""The paper's figures of results and of data: 2 to 14, and ours."""

from collections.abc import Iterator
from pathlib import Path

from qualms.evaluate.results import BenchmarkResults
from qualms.report.figures import Drawing
from qualms.report.papers.values.components import component_drawings, toy_drawing
from qualms.report.papers.values.counts import split_drawings
from qualms.report.papers.values.examples import example_items
from qualms.report.papers.values.maps import map_drawings
from qualms.report.papers.values.settings import Study
from qualms.report.papers.values.sizes import size_drawings


def values_figures(results: BenchmarkResults, data: Path | None) -> Iterator[Drawing]:
    """Every figure that there are numbers, maps or items for."""
    study = Study(results)
    yield from toy_drawing(study)
    yield from component_drawings(study)
    yield from example_items(study, data)
    yield from split_drawings(study, data)
    yield from size_drawings(study)
    yield from map_drawings(study, data)
