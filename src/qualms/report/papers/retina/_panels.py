"""Curves with their bands in one panel: ROC, shifted items found, referral."""

from collections.abc import Mapping
from textwrap import fill
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from qualms.benchmarks import TableRow, Variant
from qualms.evaluate.benchmark import Band, BenchmarkResults, DrawnKey
from qualms.report._style import OTHER
from qualms.report.papers.retina._printed import printed
from qualms.report.papers.retina._scores import STANDARD

if TYPE_CHECKING:
    from matplotlib.axes import Axes

NHS = (0.2, 0.85)
"""False and true positive rate of the NHS's recommendation: 80 % specificity and 85 %
sensitivity."""
LAST = 0.95
"""Share referred where curves end: beyond it few items are left, and curves jump."""
_TAUS = (0.0, 0.5, 0.7)
_TOP = 1.01
"""Where axes of scores end that are 1 at most."""
_NARROW = 16
"""Letters that fit into a panel."""
LABELS: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        "roc": ("1 - specificity", "sensitivity"),
        "ood_roc": ("in-domain items flagged", "shifted items flagged"),
        "referral_accuracy": ("share referred", "accuracy"),
        "referral_auroc": ("share referred", "AUROC"),
        "referral_nll": ("share referred", "NLL"),
        "referral_auprc": ("share referred", "AUPRC"),
    }
)


class Curve(NamedTuple):
    """One line of a panel, and its look."""

    variant: Variant
    row: TableRow
    colour: str
    marker: str
    label: str


class Panel(NamedTuple):
    """What one panel shows."""

    title: str
    subset: str
    name: str
    """What is drawn: a key of LABELS."""
    curves: tuple[Curve, ...]


def band_of(results: BenchmarkResults, panel: Panel, curve: Curve) -> Band | None:
    """The curve's points, if they were judged and any is defined."""
    key = DrawnKey(curve.variant.name, curve.row.name, panel.subset, panel.name)
    band = results.bands.get(key)
    return band if band is not None and np.isfinite(band.mean).any() else None


def is_drawn(results: BenchmarkResults, panel: Panel) -> bool:
    """Whether the panel has anything in it."""
    return any(band_of(results, panel, curve) is not None for curve in panel.curves)


def points_of(
    results: BenchmarkResults, panel: Panel, curve: Curve
) -> list[tuple[float, float]]:
    """The paper's points of a referral curve, only for curves of its own data."""
    kind, _, name = panel.name.partition("_")
    if kind != "referral":
        return []
    found = []
    for tau in _TAUS:
        score = STANDARD[name]._replace(referral=tau)
        number = printed(results, curve.variant, curve.row, panel.subset, score)
        if number is not None:
            found.append((tau, number.mean / score.unit.scale))
    return found


def draw_panel(axes: "Axes", results: BenchmarkResults, panel: Panel) -> None:
    """Draw curves, bands, published points, and what belongs to the kind of panel."""
    for number, curve in enumerate(panel.curves):
        band = band_of(results, panel, curve)
        if band is not None:
            _line(axes, panel, curve, band, number)
            _published(axes, results, panel, curve)
    if not is_drawn(results, panel):
        words = fill(_absent(results, panel), _NARROW)
        axes.text(0.5, 0.5, words, ha="center", va="center", color=OTHER)
        axes.set_xticks([])
        axes.set_yticks([])
        return
    if panel.name == "roc":
        axes.plot(*NHS, "o", color="black", ms=4.5, zorder=6)
        # As in the released plots: what lies outside no clinic would use.
        axes.set_xlim(-0.03, 0.93)
        axes.set_ylim(0.45, 1.05)
        axes.set_xticks([0.0, 0.2, 0.4, 0.6, 0.8])
        axes.set_yticks([0.5, 0.6, 0.7, 0.8, 0.9, 1.0])
    elif panel.name == "ood_roc":
        axes.plot([0, 1], [0, 1], color=OTHER, lw=0.6, ls=":")
        axes.set_xlim(-0.03, 1.03)
        axes.set_ylim(-0.03, 1.03)
        axes.set_xticks([0.0, 0.25, 0.5, 0.75, 1.0])
        axes.set_yticks([0.0, 0.25, 0.5, 0.75, 1.0])
    else:
        axes.set_xlim(-0.03, 1.0)
        axes.set_xticks([0.0, 0.2, 0.4, 0.6, 0.8, 1.0])
        if panel.name != "referral_nll":
            # A curve that is 1 all along has no height to make room above it.
            axes.set_ylim(top=min(axes.get_ylim()[1], _TOP))


def _absent(results: BenchmarkResults, panel: Panel) -> str:
    """Why nothing is drawn: what the score of the curves says, if they agree."""
    score = panel.name.removeprefix("referral_")
    score = score if score in STANDARD else score.replace("roc", "auroc")
    cells = (
        results.cell(
            curve.variant.name, None, curve.row.name, f"{panel.subset}/{score}"
        )
        for curve in panel.curves
    )
    said = {cell.why for cell in cells} - {""}
    return said.pop() if len(said) == 1 else "no numbers"


def _line(axes: "Axes", panel: Panel, curve: Curve, band: Band, number: int) -> None:
    kept = band.x <= (LAST if panel.name.startswith("referral") else 1.0)
    x, mean, error = band.x[kept], band.mean[kept], band.stderr[kept]
    # Markers of different curves stand at different places.
    step = max(1, len(x) // 5)
    every = (step * (number + 1) // (len(panel.curves) + 1), step)
    look: dict[str, Any] = {"color": curve.colour, "marker": curve.marker}
    axes.plot(x, mean, lw=1.1, ms=2.8, mew=0, markevery=every, **look)
    axes.fill_between(
        x, mean - error, mean + error, color=curve.colour, alpha=0.2, lw=0
    )


def _published(
    axes: "Axes", results: BenchmarkResults, panel: Panel, curve: Curve
) -> None:
    for tau, value in points_of(results, panel, curve):
        axes.plot(
            tau,
            value,
            marker=curve.marker,
            color=curve.colour,
            mfc="white",
            ms=3.6,
            mew=0.8,
            ls="",
            zorder=5,
        )
