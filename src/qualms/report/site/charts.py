"""Figures on a page: the place of a chart, its read-out, its tools and its caption."""

from importlib.util import find_spec
from pathlib import Path
from typing import Any

from qualms.report.figures import Drawing
from qualms.report.site.drawn import figure_data
from qualms.report.site.markup import Child, Html, element, link
from qualms.report.site.page import DataFile, Download, Fragment


def chart(  # noqa: PLR0913 - the parts of a figure
    kind: str,
    name: str,
    spec: Any,
    *,
    title: str = "",
    caption: Child = None,
    downloads: tuple[Download, ...] = (),
    on_demand: bool = False,
    level: int = 3,
) -> Fragment:
    """Return a figure that `assets/<kind>.js` draws.

    Args:
        kind: The function of `qualms.charts` that draws it.
        name: Name of its data, unique in the site, such as "cells-coverage".
        spec: The data, which the function gets.
        title: Stands above it.
        caption: How it is read.
        downloads: Files that hold the same, such as a PDF.
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
        _tools(downloads),
        class_="chart",
        id=f"{name}-figure",
        data_chart=kind,
        data_spec=name,
    )
    data = DataFile(name=name, value=spec, on_demand=on_demand)
    return Fragment(html=figure, data=(data,), downloads=downloads)


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
    """Return a figure as PDF with its caption as text.

    Args:
        drawing: The figure.
        name: Name of its data, after which the files are named.
        folder: Where the PDF lies already; None to draw it, if matplotlib is installed.
    """
    caption = Download(name=f"{name}.txt", content=drawing.text.encode("utf-8"))
    if folder is not None:
        path = folder / f"{drawing.name}.pdf"
        exists = path.is_file()
        return (Download(name=f"{name}.pdf", content=path), caption) if exists else ()
    if find_spec("matplotlib") is None:
        return ()
    return Download(name=f"{name}.pdf", content=drawing), caption


def _tools(downloads: tuple[Download, ...]) -> Html:
    tools = [
        element("button", words, type="button", data_tool=tool)
        for tool, words in (("table", "Table"), ("csv", "CSV"), ("svg", "SVG"))
    ]
    links = [file_link(download) for download in downloads]
    return element("div", tools, links, class_="tools")


def file_link(download: Download) -> Html:
    """Return a link that saves a download; its words are the kind of the file."""
    kinds = {"pdf": "PDF", "tex": "LaTeX", "csv": "CSV", "txt": "Caption"}
    ending = download.name.rpartition(".")[2]
    words = kinds.get(ending, ending)
    return link(f"files/{download.name}", words, download=download.name)
