"""Resize exactly as the papers' code did: with OpenCV, without antialiasing.

Bilinear samples at half-pixel centres and reads only the two nearest pixels per axis,
however much it shrinks. On float32 images it equals PyTorch's
`interpolate(mode="bilinear", align_corners=False, antialias=False)`, as torchvision's
`Resize` did on tensors before 0.17. Nearest reads the source index
`floor(target index * scale)`; Pillow and "nearest-exact" have other rules. On 8-bit
images OpenCV's bilinear works in fixed point and may differ by one grey level from
exact arithmetic, so OpenCV itself is called.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray


def bilinear(image: NDArray[Any], side: int) -> NDArray[Any]:
    """Resize an image (H, W, channels) to (side, side, channels), of the same dtype."""
    import cv2

    channels = image.shape[2]
    small = cv2.resize(
        np.ascontiguousarray(image), (side, side), interpolation=cv2.INTER_LINEAR
    )
    return np.asarray(small).reshape(side, side, channels)


def nearest(mask: NDArray[np.bool_], side: int) -> NDArray[np.bool_]:
    """Resize a mask (H, W) to (side, side)."""
    import cv2

    small = cv2.resize(
        mask.astype(np.uint8), (side, side), interpolation=cv2.INTER_NEAREST
    )
    return np.asarray(small) > 0
