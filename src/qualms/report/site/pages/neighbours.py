"""A gallery of certain and uncertain queries with their nearest neighbours."""

from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

from qualms.predictions import Predictions, read
from qualms.report.site.contents import SiteContents
from qualms.report.site.item_files import item_files
from qualms.report.site.item_pictures import ItemPictures
from qualms.report.site.item_sources import (
    ItemSource,
    PageItems,
    item_sources,
    source_figure,
    source_key,
)
from qualms.report.site.page import Page
from qualms.report.site.query_gallery import NEIGHBOURS, SHOWN, query_gallery
from qualms.shelf import tasks_with

MOST = 12
"""Embeddings whose queries are shown."""
LEAD = "What embeddings that are sure of an item find next to it, and unsure ones."
RULES = (
    f"At most {SHOWN} queries of each kind, each with its {NEIGHBOURS} nearest"
    " neighbours by cosine, the nearest first; a neighbour is right if it has the class"
    " of the query. Pictures come from the thumbnails of a file, or from the prepared"
    " dataset that the predictions name."
)


def neighbours(contents: SiteContents) -> Iterator[Page]:
    """Yield the gallery, if there are embeddings to show."""
    sources = list(item_sources(contents, tasks_with("vectors")))
    if not sources:
        return
    pictures = ItemPictures(contents.data)
    read_gallery = cache(read)  # it may be that of every source
    shown = [
        _queries(source, pictures, read_gallery, source_key("neighbours", number))
        for number, source in enumerate(sources[:MOST])
    ]
    yield Page(
        path="neighbours.html",
        title="Nearest neighbours",
        nav="Neighbours",
        order=52,
        lead=LEAD,
        simulated=contents.simulated,
        body=tuple(source_figure("items", "neighbours", sources, shown, rules=RULES)),
    )


def _queries(
    source: ItemSource,
    pictures: ItemPictures,
    read_gallery: Callable[[Path], Predictions],
    key: str,
) -> PageItems | str:
    """Return the queries of a source, or why there are none."""
    try:
        value = query_gallery(
            read(source.path),
            pictures.thumbnails,
            gallery=None if source.gallery is None else read_gallery(source.gallery),
        )
    except (ValueError, LookupError, OSError) as error:
        return str(error)
    return PageItems(
        value=value,
        richness=int(any(value["pictures"])),
        downloads=item_files(value, key, f"{source.group}, {source.label}"),
    )
