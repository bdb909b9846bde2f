"""Items that tell most: the most certain mistakes, the most uncertain successes."""

from collections.abc import Iterator

from qualms.predictions import read
from qualms.report.showing import showing_of
from qualms.report.site.contents import SiteContents
from qualms.report.site.item_files import item_files
from qualms.report.site.item_pictures import ItemPictures, ItemRows
from qualms.report.site.item_sources import (
    ItemSource,
    PageItems,
    item_sources,
    source_figure,
    source_key,
)
from qualms.report.site.page import Page
from qualms.report.site.telling_items import SHOWN, telling_items
from qualms.shelf import names

MOST = 24
"""Predictions whose items are shown."""
LEAD = "Where the model was sure and wrong, and where it was right and did not know."
RULES = (
    f"At most {SHOWN} items of each kind. A certain mistake is what no referral by this"
    " uncertainty finds; many of one kind, such as one group, are worth a look at the"
    " data. Pictures come from the thumbnails of a file, or from the prepared dataset"
    " that the predictions name."
)


def items(contents: SiteContents) -> Iterator[Page]:
    """Yield the page of telling items, if there are predictions to show."""
    tasks = tuple(task for task in names("tasks") if showing_of(task).tells_items)
    sources = list(item_sources(contents, tasks))
    if not sources:
        return
    pictures = ItemPictures(contents.data)
    shown = [
        _items(source, pictures, source_key("items", number))
        for number, source in enumerate(sources[:MOST])
    ]
    yield Page(
        path="items.html",
        title="Certain mistakes, uncertain successes",
        nav="Items",
        order=51,
        lead=LEAD,
        simulated=contents.simulated,
        body=tuple(source_figure("items", "items", sources, shown, rules=RULES)),
    )


def _items(source: ItemSource, pictures: ItemPictures, key: str) -> PageItems | str:
    """Return the items of a source, or why there are none."""
    try:
        predictions = read(source.path)
        value = telling_items(
            predictions,
            lambda rows: pictures.thumbnails([ItemRows(predictions, rows)]),
        )
    except (ValueError, LookupError, OSError) as error:
        return str(error)
    return PageItems(
        value=value,
        richness=int(any(value["pictures"])),
        downloads=item_files(value, key, f"{source.group}, {source.label}"),
    )
