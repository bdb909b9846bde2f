"""Coverage while the shift grows: figure 4."""

from pathlib import Path
from typing import TYPE_CHECKING

from qualms.report._style import (
    OTHER,
    canvas,
    grid,
    save,
    say,
)
from qualms.report.papers.regression._looks import COLOURS, MARKERS
from qualms.report.papers.regression._points import COMMON, Source

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_LADDERS = (
    ("Cells", *(f"Cells-Tails v{step}" for step in (1, 2, 3)), "Cells-Tails"),
    ("ChairAngle", *(f"ChairAngle-Gap v{s}" for s in (1, 2, 3)), "ChairAngle-Gap"),
)


def graded_figure(source: Source, folder: Path) -> list[Path]:
    """Draw figure 4; the paper prints no numbers for it, so ours stand alone."""
    ladders = [labels for labels in _LADDERS if len(source.judged(labels, COMMON)) > 2]
    if not ladders:
        return []
    with canvas(4.8, 1.9 * len(ladders) + 0.9) as figure:
        axes = grid(figure, len(ladders), 1)
        for (panel,), labels in zip(axes, ladders, strict=True):
            handles = _ladder(panel, source, labels)
        remark = (
            f"{source.remark}; lines up and down: {source.results.level:.0%} interval"
        )
        say(figure, "Figure 4: growing shift", remark, handles, columns=3)
        return save(figure, folder, f"figure_4{source.suffix}")


def _ladder(panel: "Axes", source: Source, labels: tuple[str, ...]) -> list[object]:
    handles: list[object] = []
    for number, row in enumerate(COMMON):
        steps, means, below, above = [], [], [], []
        for step, label in enumerate(labels):
            variant = source.variant(label)
            if variant is None or not source.has(variant, row, "test_coverage"):
                continue
            cell = source.cell(variant, row, "test_coverage")
            steps.append(step + 0.05 * (number - 2))
            means.append(cell.ours.mean)
            below.append(max(0.0, cell.ours.mean - cell.low))
            above.append(max(0.0, cell.high - cell.ours.mean))
        drawn = panel.errorbar(
            steps,
            means,
            yerr=[below, above],
            marker=MARKERS[row],
            ms=4,
            lw=1,
            color=COLOURS[row],
            label=source.label(row),
        )
        handles.append(drawn)
    panel.axhline(0.9, color=OTHER, lw=0.8)
    names = ["none", "step 1", "step 2", "step 3", "full"]
    panel.set_xticks(range(len(labels)), names)
    panel.set_ylabel("test coverage")
    panel.set_title(f"{labels[0]} to {labels[-1]}")
    return handles
