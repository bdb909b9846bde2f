"""The predictions file: one artifact for every task, written by us or by anyone.

`read` checks a file in full and returns it in one normal form; `build` does the same
for arrays in memory. `write` and `SegmentationWriter` write files, and `pool` makes an
ensemble from files alone. `same_items` says whether two files can be compared item by
item. Invalid predictions raise a `PredictionsError` that says what is wrong.
"""

from qualms.predictions._array_file import (
    ARRAY_FILES,
    array_names,
    read_array,
    read_json,
    stored_columns,
)
from qualms.predictions._errors import PredictionsError
from qualms.predictions._facts import class_facts, facts
from qualms.predictions._files import (
    Paths,
    build,
    check_destination,
    read,
    write,
)
from qualms.predictions._folder_writer import SegmentationWriter
from qualms.predictions._header import FORMAT, Header
from qualms.predictions._hugging_face import HuggingFaceDataset
from qualms.predictions._lengths import (
    INVERSE_NORM,
    LENGTH_TAKEN,
    inverse_norm,
    length_notes,
)
from qualms.predictions._names import NO_TARGET
from qualms.predictions._order import in_order_of
from qualms.predictions._pairing import Pairing, pairing, same_items
from qualms.predictions._pool import pool
from qualms.predictions._reader import (
    ForeignCases,
    ForeignContents,
    ForeignRequest,
    Reader,
    reader_of,
)
from qualms.predictions._record import (
    Grid,
    Maps,
    Predictions,
    are_on_disk,
    join_maps,
)
from qualms.predictions._segmentation import check_entropies, entropy_excess
from qualms.predictions._stated import STATED, Background, background_of, with_stated
from qualms.predictions._tables import Frame
from qualms.predictions._text_table import as_floats
from qualms.predictions.schema import array_field

__all__ = [
    "ARRAY_FILES",
    "FORMAT",
    "INVERSE_NORM",
    "LENGTH_TAKEN",
    "NO_TARGET",
    "STATED",
    "Background",
    "ForeignCases",
    "ForeignContents",
    "ForeignRequest",
    "Frame",
    "Grid",
    "Header",
    "HuggingFaceDataset",
    "Maps",
    "Pairing",
    "Paths",
    "Predictions",
    "PredictionsError",
    "Reader",
    "SegmentationWriter",
    "are_on_disk",
    "array_field",
    "array_names",
    "as_floats",
    "background_of",
    "build",
    "check_destination",
    "check_entropies",
    "class_facts",
    "entropy_excess",
    "facts",
    "in_order_of",
    "inverse_norm",
    "join_maps",
    "length_notes",
    "pairing",
    "pool",
    "read",
    "read_array",
    "read_json",
    "reader_of",
    "same_items",
    "stored_columns",
    "with_stated",
    "write",
]
