"""Classes of Cityscapes and their second labels, shared by the street datasets.

VALUES (Kahl et al., 2024) gives five of the 19 classes a second label. A rater uses the
second label of a class in a whole image or nowhere, with probability 1/3, and decides
for each class on its own.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

CLASSES = (
    *("road", "sidewalk", "building", "wall", "fence", "pole", "traffic light"),
    *("traffic sign", "vegetation", "terrain", "sky", "person", "rider", "car"),
    *("truck", "bus", "train", "motorcycle", "bicycle"),
)
"""Names of the train ids 0 to 18."""
COLOURS = (
    *((128, 64, 128), (244, 35, 232), (70, 70, 70), (102, 102, 156)),
    *((190, 153, 153), (153, 153, 153), (250, 170, 30), (220, 220, 0)),
    *((107, 142, 35), (152, 251, 152), (70, 130, 180), (220, 20, 60), (255, 0, 0)),
    *((0, 0, 142), (0, 0, 70), (0, 60, 100), (0, 80, 100), (0, 0, 230)),
    (119, 11, 32),
)
"""Colours of the train ids in label maps of GTA5 and Cityscapes."""
SWAPS = {
    CLASSES.index(name): len(CLASSES) + place
    for place, name in enumerate(("sidewalk", "person", "car", "vegetation", "road"))
}
"""The second labels, 19 to 23."""
SWAP_SHARE = 1 / 3
OUTPUTS = len(CLASSES) + len(SWAPS)
IGNORE = 255
REFERENCES = 5
"""Fixed draws of the labels of a test item."""


def reference_draws(labels: NDArray[Any], rng: np.random.Generator) -> NDArray[Any]:
    """Draw five labellings (5, H, W) of an item with the labels (H, W)."""
    tables = np.tile(np.arange(256, dtype=np.uint8), (REFERENCES, 1))
    for first, second in SWAPS.items():
        tables[rng.random(REFERENCES) < SWAP_SHARE, first] = second
    return tables[:, labels]
