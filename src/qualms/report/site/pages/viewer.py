"""The viewer: image, raters, prediction and uncertainty maps side by side."""

from collections.abc import Iterator

import numpy as np

from qualms.predictions import read, with_stated
from qualms.report.pictures import label_picture
from qualms.report.site._png import shades
from qualms.report.site.contents import SiteContents
from qualms.report.site.item_pictures import ItemPictures
from qualms.report.site.item_sources import (
    ItemSource,
    PageItems,
    item_sources,
    source_figure,
)
from qualms.report.site.page import Page
from qualms.report.site.segmented_cases import STEPS, segmented_cases
from qualms.shelf import tasks_with

MOST = 16
"""Segmentations whose cases are shown."""
LEAD = "What was segmented, what raters say, and where the model is uncertain."
RULES = (
    "The maps of entropies have one scale, from 0 to the largest value of the case:"
    " predictive uncertainty (PU) is the sum of aleatoric (AU) and epistemic"
    " uncertainty (EU). Arrow keys move the slider. Images come from the prepared"
    " dataset that the predictions name; without it, outlines stand on a dark ground."
)


def viewer(contents: SiteContents) -> Iterator[Page]:
    """Yield the viewer, if there are segmentations to show."""
    sources = list(item_sources(contents, tasks_with("pixels")))
    if not sources:
        return
    pictures = ItemPictures(contents.data)
    shown = [
        _cases(source, pictures, f"viewer-case-{number}", paper=contents.on_paper)
        for number, source in enumerate(sources[:MOST])
    ]
    numbers = np.arange(256)
    heat = shades(numbers[None] / STEPS, (0.0, 1.0), heat=True)[0]
    palettes = {"heat": heat, "labels": label_picture(numbers)}
    figure = source_figure(
        "viewer", "viewer", sources, shown, rules=RULES, tools=("svg",), more=palettes
    )
    yield Page(
        path="viewer.html",
        title="Segmentations",
        nav="Viewer",
        order=53,
        lead=LEAD,
        simulated=contents.simulated,
        body=tuple(figure),
    )


def _cases(
    source: ItemSource, pictures: ItemPictures, key: str, *, paper: bool
) -> PageItems | str:
    """Return the cases of a source, or why there are none."""
    try:
        return segmented_cases(
            with_stated(
                read(source.path), draws=source.draws, background=source.background
            ),
            pictures,
            key,
            title=f"{source.group}, {source.label}",
            simulated=source.simulated,
            paper=paper,
        )
    except (ValueError, OSError) as error:
        return str(error)
