"""How all figures look: fonts and lines, titles and legends, and saving."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from qualms.atomic import replacing

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

MISSING = (
    "figures need matplotlib, which is not installed: pip install 'qualms[report]'"
)
OTHER = "#333333"
KINDS = ("pdf", "png")
_RC: dict[Any, Any] = {
    "font.size": 8,
    "axes.titlesize": 8,
    "axes.labelsize": 8,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.linewidth": 0.6,
    "legend.frameon": False,
    "legend.fontsize": 8,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "pdf.fonttype": 42,
    "savefig.dpi": 200,
}


@contextmanager
def canvas(width: float, height: float) -> Iterator["Figure"]:
    """An empty figure in our style, in inches; global settings stay as they are."""
    try:
        from matplotlib import rc_context
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ValueError(MISSING) from error
    with rc_context(_RC):
        yield Figure(figsize=(width, height), layout="constrained")


def save(figure: "Figure", folder: Path, name: str) -> list[Path]:
    """Write `name` as every kind of file; gives the paths."""
    folder.mkdir(parents=True, exist_ok=True)
    # Laid out once; working it out for each kind takes as long as drawing.
    figure.draw_without_rendering()
    figure.set_layout_engine(None)
    paths = []
    for kind in KINDS:
        path = folder / f"{name}.{kind}"
        # Without a date the same numbers give the same bytes.
        metadata: dict[str, Any] = {"CreationDate": None} if kind == "pdf" else {}
        with replacing(path) as temporary:
            figure.savefig(temporary, format=kind, metadata=metadata)
        paths.append(path)
    return paths


def grid(figure: "Figure", rows: int, columns: int) -> list[list["Axes"]]:
    """Axes by row and column."""
    made = figure.subplots(rows, columns, squeeze=False)
    return [list(line) for line in made]


def legend_key(
    label: str, *, colour: str, marker: str = "", line: str = ""
) -> "Line2D":
    """An entry of a legend; colour OTHER gives a hollow marker, the paper's."""
    from matplotlib.lines import Line2D

    face = "white" if colour == OTHER else colour
    style: Any = line or "none"
    return Line2D(
        [],
        [],
        label=label,
        color=colour,
        markerfacecolor=face,
        marker=marker or "none",
        markersize=5,
        linestyle=style,
        linewidth=1,
    )


def say(
    figure: "Figure",
    title: str,
    remark: str,
    handles: Sequence[Any],
    *,
    columns: int,
) -> None:
    """Title and remark above, one legend below all panels."""
    figure.suptitle(f"{title}\n{remark}", fontsize=8, x=0.01, ha="left")
    figure.legend(handles=handles, loc="outside lower center", ncols=columns)
