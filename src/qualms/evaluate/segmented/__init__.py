"""From the maps of segmented items to a few numbers per item, in one pass."""

from qualms.evaluate.segmented._axes import reversed_note
from qualms.evaluate.segmented._fit import Validation, undivided_note, validate
from qualms.evaluate.segmented._items import (
    EXTRAS,
    ItemColumn,
    MapScores,
    Reading,
    measure_items,
    quality_entries,
)
from qualms.evaluate.segmented._layers import Layer, label_layers
from qualms.evaluate.segmented._stream import (
    OWN,
    MapKind,
    is_single,
    map_kind,
    measure_settings,
    measured_maps,
    measuring,
)

__all__ = [
    "EXTRAS",
    "OWN",
    "ItemColumn",
    "Layer",
    "MapKind",
    "MapScores",
    "Reading",
    "Validation",
    "is_single",
    "label_layers",
    "map_kind",
    "measure_items",
    "measure_settings",
    "measured_maps",
    "measuring",
    "quality_entries",
    "reversed_note",
    "undivided_note",
    "validate",
]
