"""What figures say about themselves: data, preset, regime, and file names."""

from textwrap import fill
from typing import TYPE_CHECKING

from qualms.benchmarks import Variant
from qualms.evaluate.benchmark import BenchmarkResults
from qualms.report.papers.retina._settings import about_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_PER_INCH = 16.5
"""Letters of a title that fit into an inch."""


def remark_of(results: BenchmarkResults, *variants: Variant, regime: str = "") -> str:
    """Data, preset, setting and regime, which stand in every figure."""
    return about_text(results.preset, variants, regime=regime)


def wrapped(text: str, inches: float) -> str:
    """A title or remark in lines that fit into a figure; words are kept whole."""
    return fill(text, int(inches * _PER_INCH), break_on_hyphens=False)


def file_of(name: str, variant: Variant) -> str:
    """Name of a figure's files; those of simulated data are kept apart."""
    return f"figure_{name}_{variant.name}{'_simulated' if variant.simulated else ''}"


def beside(axes: "Axes", text: str) -> None:
    """Write right of a row of panels what it shows."""
    axes.annotate(
        text,
        xy=(1.03, 0.5),
        xycoords="axes fraction",
        rotation=270,
        ha="left",
        va="center",
    )
