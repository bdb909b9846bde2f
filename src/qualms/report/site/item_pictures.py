"""Pictures of items: thumbnails of a predictions file, or images of prepared data.

A dataset is found by the fingerprint that predictions state of it, and an item by its
name, so that a picture is never that of another item.
"""

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from qualms.datasets import Dataset, DatasetError, Split, open_dataset
from qualms.predictions import Predictions
from qualms.report.pictures import slice_picture
from qualms.report.site._png import png_address, reduced, shades
from qualms.spec import parse_split

SIDES = (96, 64, 48, 32, 24, 16)
"""Pixels that thumbnails are wide at most, until all of a source fit `BUDGET`."""
BUDGET = 350_000
"""Letters of the thumbnails of a source, so that the page that shows it stays light."""
CHANNELS = (1, 3)
"""Channels of images that can be shown as they are; of others it is the first."""


class ItemRows(NamedTuple):
    """Some items of a file."""

    predictions: Predictions
    rows: Sequence[int]


class ItemPictures:
    """Finds pictures of items in a folder of prepared datasets."""

    def __init__(self, data: Path | None) -> None:
        self._folders = {} if data is None else _folders(data)
        self._datasets: dict[str, Dataset | None] = {}

    def thumbnails(self, shown: Sequence[ItemRows]) -> list[str]:
        """Return an address of a small picture of each item; "" where there is none.

        Args:
            shown: Items of one file, or of a file and its gallery, which then share
                the room for thumbnails.
        """
        pictures = [picture for items in shown for picture in self._pictures(items)]
        addresses: list[str] = []
        for side in SIDES:
            addresses = ["" if p is None else _address(p, side) for p in pictures]
            if sum(map(len, addresses)) <= BUDGET:
                break
        return addresses

    def _pictures(self, items: ItemRows) -> list[NDArray[Any] | None]:
        """Return a picture of each item; None where there is none."""
        own = items.predictions.get("thumbnail")
        if own is not None:
            return [own[row] for row in items.rows]
        images = self.images(items.predictions, items.rows)
        return [_flat(images[row]) if row in images else None for row in items.rows]

    def images(
        self, predictions: Predictions, rows: Sequence[int]
    ) -> Mapping[int, NDArray[Any]]:
        """Return the images (*space, channels) of items, of those that have one."""
        split, names = self._split(predictions), predictions.get("item")
        if split is None or names is None:
            return {}
        places = {str(item): place for place, item in enumerate(split.item)}
        return {
            row: np.asarray(split.image[places[str(names[row])]])
            for row in rows
            if str(names[row]) in places
        }

    def _split(self, predictions: Predictions) -> Split | None:
        header = predictions.header
        dataset = self._dataset(header.fingerprint or "")
        if dataset is None or header.split is None:
            return None
        with suppress(LookupError):
            return dataset.split(parse_split(header.split)[1])
        return None

    def _dataset(self, fingerprint: str) -> Dataset | None:
        if fingerprint not in self._datasets:
            folder = self._folders.get(fingerprint)
            self._datasets[fingerprint] = None if folder is None else _opened(folder)
        return self._datasets[fingerprint]


def _folders(data: Path) -> dict[str, Path]:
    """Return the folders of prepared datasets by their fingerprints."""
    folders = {}
    for file in sorted(data.glob("*/meta.json")):
        with suppress(OSError, ValueError, KeyError, TypeError):
            folders[str(json.loads(file.read_text("utf-8"))["fingerprint"])] = (
                file.parent
            )
    return folders


def _opened(folder: Path) -> Dataset | None:
    with suppress(DatasetError, OSError, ValueError):
        return open_dataset(folder)
    return None


def _flat(image: NDArray[Any]) -> NDArray[Any]:
    """Return an image as a picture: of a volume the middle slice."""
    return slice_picture(image, image.shape[0] // 2 if image.ndim == 4 else None)


def _address(picture: NDArray[Any], side: int) -> str:
    return png_address(reduced(shades(picture, None, heat=False), side))
