"""Two ways to render a street: like a game, and like a photograph of another place.

Both show the same kinds of things. The photograph has other colours, less contrast,
haze, coarser textures, a softer lens, noise, and the bonnet of the car that took it.
"""

from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from qualms.datasets.street_sim._canvas import SAMPLES, Points

Palette = tuple[tuple[int, int, int], ...]
GRAIN = np.full(256, 0.03, np.float32)
"""Strength of the texture of each label."""
GRAIN[[0, 1, 8, 9, 10, 2]] = (0.04, 0.05, 0.15, 0.12, 0.0, 0.04)
PATCHES = np.full(256, 0.04, np.float32)
"""Strength of slow changes of brightness, for each label."""
PATCHES[[0, 1, 8, 9, 10, 2]] = (0.06, 0.06, 0.1, 0.1, 0.0, 0.05)


class Style(NamedTuple):
    """Colours and the camera of a world."""

    sky: tuple[Palette, ...]
    """(zenith, horizon, clouds) of each weather."""
    road: Palette
    sidewalk: Palette
    buildings: Palette
    walls: Palette
    leaves: Palette
    grass: Palette
    cars: Palette
    clothes: Palette
    metal: Palette
    windows: Palette
    reach: tuple[float, float]
    """Distance in metres at which haze has swallowed most of a colour."""
    sun: tuple[float, float]
    """Strength of cast shadows and of lit sides."""
    saturation: tuple[float, float]
    gain: tuple[float, float]
    tint: float
    """Variation of the colour of light."""
    noise: tuple[float, float]
    softness: tuple[float, float]
    """Width of the lens's blur in pixels of an image 256 pixels high."""
    texture: float
    vignette: float
    bonnet: bool


GAME = Style(
    sky=(
        ((62, 120, 200), (178, 208, 235), (240, 242, 245)),
        ((88, 130, 190), (235, 205, 170), (250, 225, 200)),
        ((120, 140, 165), (200, 208, 215), (225, 228, 232)),
    ),
    road=((88, 88, 92), (98, 96, 94), (80, 82, 88), (106, 102, 98)),
    sidewalk=((158, 152, 142), (146, 144, 140), (170, 162, 148)),
    buildings=(
        *((196, 168, 130), (178, 120, 96), (206, 196, 176), (150, 140, 132)),
        *((222, 206, 170), (132, 146, 160), (190, 150, 120), (110, 100, 96)),
        (226, 220, 210),
    ),
    walls=((176, 160, 140), (150, 110, 90), (190, 184, 172)),
    leaves=((62, 110, 38), (84, 128, 46), (50, 92, 40), (104, 134, 58)),
    grass=((112, 146, 62), (136, 150, 76), (160, 148, 98)),
    cars=(
        *((200, 30, 30), (235, 235, 235), (30, 34, 40), (36, 74, 160)),
        *((226, 186, 40), (150, 154, 160), (60, 110, 70), (240, 130, 40)),
    ),
    clothes=(
        *((210, 60, 60), (50, 90, 180), (235, 235, 230), (40, 40, 46)),
        *((90, 150, 80), (220, 180, 70), (150, 80, 150)),
    ),
    metal=((120, 122, 124), (70, 74, 76), (150, 150, 148)),
    windows=((54, 74, 96), (80, 104, 128), (40, 50, 62)),
    reach=(220, 420),
    sun=(0.5, 0.25),
    saturation=(0.95, 1.15),
    gain=(0.9, 1.1),
    tint=0.03,
    noise=(0.0, 1.5),
    softness=(0.25, 0.5),
    texture=0.8,
    vignette=0.05,
    bonnet=False,
)
PHOTO = Style(
    sky=(
        ((206, 214, 216), (228, 232, 230), (240, 242, 240)),
        ((186, 200, 206), (222, 228, 226), (235, 238, 236)),
    ),
    road=((92, 96, 92), (78, 82, 80), (104, 106, 100)),
    sidewalk=((122, 124, 118), (132, 126, 120), (110, 108, 104)),
    buildings=(
        *((142, 132, 112), (120, 100, 88), (156, 150, 132), (104, 104, 98)),
        *((168, 158, 128), (130, 128, 120), (116, 84, 70)),
    ),
    walls=((112, 108, 98), (96, 84, 74), (130, 128, 120)),
    leaves=((58, 72, 44), (72, 84, 52), (46, 60, 40), (88, 94, 60)),
    grass=((92, 104, 62), (104, 108, 74), (84, 92, 60)),
    cars=(
        *((34, 36, 38), (58, 60, 62), (122, 126, 126), (176, 178, 176)),
        *((30, 40, 62), (90, 30, 30), (206, 206, 202)),
    ),
    clothes=(
        *((44, 46, 52), (60, 66, 84), (90, 78, 70), (120, 120, 118)),
        *((110, 50, 48), (40, 60, 56)),
    ),
    metal=((86, 90, 88), (60, 62, 62), (112, 114, 110)),
    windows=((62, 68, 68), (88, 94, 92), (44, 48, 48)),
    reach=(90, 200),
    sun=(0.22, 0.1),
    saturation=(0.7, 0.95),
    gain=(0.8, 1.1),
    tint=0.05,
    noise=(3.0, 7.0),
    softness=(0.6, 1.1),
    texture=1.2,
    vignette=0.3,
    bonnet=True,
)


def pick(rng: np.random.Generator, colours: Palette) -> Points:
    """Draw one of some colours, a little brighter or darker."""
    colour = colours[int(rng.random() * len(colours))]
    return np.array(colour) * (0.88 + 0.24 * rng.random())


def develop(
    rng: np.random.Generator, pixels: NDArray[np.uint8], style: Style
) -> NDArray[np.uint8]:
    """Return the image (H, W, 3) of a canvas with four channels."""
    import cv2

    height, width = pixels.shape[0] // SAMPLES, pixels.shape[1] // SAMPLES
    small = cv2.resize(pixels[..., :3], (width, height), interpolation=cv2.INTER_AREA)
    image = small.astype(np.float32)
    bright = _texture(rng, pixels[::SAMPLES, ::SAMPLES, 3], style)
    bright *= _vignette(height, width, style.vignette)
    image *= bright[..., None]
    image = np.asarray(cv2.transform(image, _colour_matrix(rng, style)), np.float32)
    soft = rng.uniform(*style.softness) * height / 256
    if soft > 0.2:
        image = np.asarray(cv2.GaussianBlur(image, (5, 5), soft), np.float32)
    strength = np.float32(rng.uniform(*style.noise))
    for channel in range(3):
        image[..., channel] += strength * _noise(rng, height, width)
    return np.asarray(np.clip(image + 0.5, 0, 255), np.uint8)


def _colour_matrix(rng: np.random.Generator, style: Style) -> NDArray[np.float32]:
    """Draw the matrix that changes saturation, brightness and the colour of light."""
    saturation = rng.uniform(*style.saturation)
    light = rng.uniform(*style.gain) * (1 + style.tint * rng.standard_normal(3))
    matrix = light[:, None] * (saturation * np.eye(3) + (1 - saturation) / 3)
    return np.asarray(matrix, np.float32)


def _texture(
    rng: np.random.Generator, label: NDArray[np.uint8], style: Style
) -> NDArray[np.float32]:
    """Draw the brightness of each pixel: fine grain and large patches, by its label."""
    import cv2

    height, width = label.shape
    grain = 0.6 * _noise(rng, height, width)
    for size, weight in ((3, 0.8), (9, 0.5)):
        cells = _noise(rng, max(2, height // size), max(2, width // size))
        grain += weight * cv2.resize(cells, (width, height))
    slow = cv2.resize(_noise(rng, max(2, height // 24), 10), (width, height))
    grain *= cv2.LUT(label, GRAIN)
    grain += cv2.LUT(label, PATCHES) * slow
    bright = np.clip(1 + np.float32(style.texture) * grain, 0.4, 1.6)
    return np.asarray(bright, np.float32)


def _noise(rng: np.random.Generator, height: int, width: int) -> NDArray[np.float32]:
    """Cut Gaussian noise from a larger tile, which is much faster than new noise."""
    rows, columns = rng.integers(64, size=2).tolist()
    tile = _tile(height + 64, width + 64)
    piece = tile[rows : rows + height, columns : columns + width]
    return piece[:: rng.choice((-1, 1)), :: rng.choice((-1, 1))]


@lru_cache(maxsize=16)
def _tile(height: int, width: int) -> NDArray[np.float32]:
    return np.random.default_rng(1).standard_normal((height, width), np.float32)


@lru_cache(maxsize=4)
def _vignette(height: int, width: int, strength: float) -> NDArray[np.float32]:
    row = np.linspace(-1, 1, height, dtype=np.float32)[:, None] ** 2
    column = np.linspace(-1, 1, width, dtype=np.float32) ** 2
    return np.asarray(1 - np.float32(strength / 2) * (row + column), np.float32)
