"""Figures on a page: the place of a chart, its read-out, its tools and its caption."""

from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from types import MappingProxyType
from typing import Any

from qualms.report._latex import latex_figure
from qualms.report.figures import Drawing
from qualms.report.site.drawn import figure_data
from qualms.report.site.markup import Child, Html, element, link
from qualms.report.site.page import DataFile, Download, Fragment

TOOLS = ("table", "csv", "svg")
"""Actions of a reader on a figure that is drawn from numbers."""
_KINDS = {"pdf": "PDF", "tex": "LaTeX", "csv": "CSV", "txt": "Caption", "toml": "TOML"}
_TOOL_WORDS = {"table": "Table", "csv": "CSV", "svg": "SVG"}


def chart(  # noqa: PLR0913 - the parts of a figure
    kind: str,
    name: str,
    spec: Any,
    *,
    title: str = "",
    caption: Child = None,
    downloads: tuple[Download, ...] = (),
    by_source: Mapping[str, tuple[Download, ...]] = MappingProxyType({}),
    on_demand: bool = False,
    level: int = 3,
) -> Fragment:
    """Return a figure that `assets/charts/<kind>.js` draws.

    Args:
        kind: The function of `qualms.charts` that draws it.
        name: Name of its data, unique in the site, such as "cells-coverage".
        spec: The data, which the function gets.
        title: Stands above it.
        caption: How it is read.
        downloads: Files that hold the same, such as a PDF.
        by_source: Such files of each source that a reader chooses, by the name of its
            data.
        on_demand: Whether its data are loaded when it comes into view.
        level: Level of the heading.
    """
    heading = element(f"h{level}", title) if title else None
    figure = element(
        "figure",
        element("figcaption", heading) if heading else None,
        element("div", class_="plot"),
        element("ul", class_="readout"),
        element("p", class_="unseen", aria_live="polite"),
        element("div", caption, class_="caption") if caption else None,
        _tools(TOOLS, downloads, by_source),
        class_="chart",
        id=f"{name}-figure",
        data_chart=kind,
        data_spec=name,
    )
    data = DataFile(name=name, value=spec, on_demand=on_demand)
    every = (*downloads, *(each for files in by_source.values() for each in files))
    return Fragment(html=figure, data=(data,), downloads=every)


def source_chart(
    kind: str,
    name: str,
    spec: DataFile,
    *,
    tools: Sequence[str] = (),
    downloads: Mapping[str, tuple[Download, ...]] = MappingProxyType({}),
    note: Child = None,
) -> Fragment:
    """Return a figure in which readers choose the predictions that are shown.

    Args:
        kind: The function of `qualms.charts` that draws it.
        name: Its id begins with it.
        spec: The data that all sources share.
        tools: What readers can do with what is shown, of `TOOLS`.
        downloads: Files about each source, by the name of its data.
        note: Stands below it.
    """
    figure = element(
        "figure",
        element("div", class_="plot"),
        element("p", class_="unseen", aria_live="polite"),
        _tools(tools, (), downloads),
        id=f"{name}-figure",
        data_chart=kind,
        data_spec=spec.name,
    )
    below = element("p", note, class_="note") if note else Html()
    every = tuple(each for files in downloads.values() for each in files)
    return Fragment(html=figure + below, data=(spec,), downloads=every)


def figure_of(
    drawing: Drawing,
    name: str,
    *,
    downloads: tuple[Download, ...] = (),
    title: str | None = None,
    caption: Child = None,
) -> Fragment:
    """Return a declared figure as an interactive one.

    Args:
        drawing: The figure.
        name: Name of its data, unique in the site.
        downloads: Files that hold the same.
        title: Stands above it instead of the figure's own title.
        caption: Stands below it instead of the figure's own caption.
    """
    return chart(
        "panels",
        name,
        figure_data(drawing),
        title=drawing.title if title is None else title,
        caption=drawing.caption if caption is None else caption,
        downloads=downloads,
        on_demand=True,
    )


def on_paper(drawing: Drawing, name: str, folder: Path | None) -> tuple[Download, ...]:
    """Return a figure as PDF with its caption, as text and as LaTeX.

    Args:
        drawing: The figure.
        name: Name of its data, after which the files are named.
        folder: Where the PDF lies already; None to draw it, if matplotlib is installed.
    """
    path = None if folder is None else folder / f"{drawing.name}.pdf"
    if path is None or not path.is_file():
        path = None
        if find_spec("matplotlib") is None:
            return ()
    texts = {"txt": drawing.text, "tex": latex_figure(drawing, f"{name}.pdf")}
    captions = (
        Download(name=f"{name}.{ending}", content=text.encode("utf-8", "replace"))
        for ending, text in texts.items()
    )
    return Download(name=f"{name}.pdf", content=path or drawing), *captions


def _tools(
    tools: Sequence[str],
    downloads: Sequence[Download],
    by_source: Mapping[str, Sequence[Download]] = MappingProxyType({}),
) -> Html:
    """Return buttons, and links to files; those of a source are shown with it."""
    buttons = [
        element("button", _TOOL_WORDS[tool], type="button", data_tool=tool)
        for tool in tools
    ]
    of_sources = [
        element("span", map(file_link, files), data_key=key, hidden=True)
        for key, files in by_source.items()
        if files
    ]
    return element(
        "div", buttons, map(file_link, downloads), of_sources, class_="tools"
    )


def file_link(download: Download) -> Html:
    """Return a link that saves a download; its words are the kind of the file."""
    ending = download.name.rpartition(".")[2]
    words = _KINDS.get(ending, ending)
    return link(f"files/{download.name}", words, download=download.name)
