"""Two ways to render a street: like a game, and like a photograph of another place.

Both show the same kinds of things. The photograph has duller colours, less contrast,
haze, coarser textures, a softer lens, noise, and the bonnet of the car that took it.
"""

from collections.abc import Mapping
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from qualms.datasets._outlines import Points
from qualms.datasets._simulated import SAMPLES

Palette = tuple[tuple[float, ...], ...]
Range = tuple[float, float]
TEXTURE = np.full(256, 0.035, np.float32)
"""Strength of the texture of each label: leaves and grass have most, the sky none."""
TEXTURE[[8, 9, 10]] = (0.13, 0.11, 0.0)


class Style(NamedTuple):
    """Colours by material, and the camera of a world."""

    colours: Mapping[str, Palette]
    reach: Range
    """Distance in metres at which haze has swallowed most of a colour."""
    sun: float
    """How much darker the side in the shade is."""
    saturation: Range
    gain: Range
    noise: Range
    softness: Range
    """Width of the lens's blur in pixels of an image 256 pixels high."""
    texture: float
    bonnet: bool


_COLOURS: Mapping[str, Palette] = {
    "sky": ((62, 120, 200), (88, 130, 190), (120, 140, 165)),
    "haze": ((178, 208, 235), (235, 205, 170), (200, 208, 215)),
    "road": ((88, 88, 92), (98, 96, 94), (80, 82, 88), (106, 102, 98)),
    "sidewalk": ((158, 152, 142), (146, 144, 140), (170, 162, 148)),
    "building": (
        *((196, 168, 130), (178, 120, 96), (206, 196, 176), (150, 140, 132)),
        *((222, 206, 170), (132, 146, 160), (190, 150, 120), (110, 100, 96)),
    ),
    "wall": ((176, 160, 140), (150, 110, 90), (190, 184, 172)),
    "leaves": ((62, 110, 38), (84, 128, 46), (50, 92, 40), (104, 134, 58)),
    "grass": ((112, 146, 62), (136, 150, 76), (160, 148, 98)),
    "trunk": ((84, 66, 48), (70, 62, 54)),
    "car": (
        *((200, 30, 30), (235, 235, 235), (30, 34, 40), (36, 74, 160)),
        *((226, 186, 40), (150, 154, 160), (60, 110, 70), (240, 130, 40)),
    ),
    "clothes": (
        *((210, 60, 60), (50, 90, 180), (235, 235, 230), (40, 40, 46)),
        *((90, 150, 80), (220, 180, 70), (150, 80, 150)),
    ),
    "trousers": ((36, 62, 124), (28, 28, 32), (130, 110, 90), (80, 80, 84)),
    "skin": ((224, 182, 150), (190, 140, 106), (120, 84, 62), (86, 60, 46)),
    "hair": ((58, 46, 34), (24, 22, 22), (130, 104, 66)),
    "metal": ((120, 122, 124), (70, 74, 76), (150, 150, 148)),
    "glass": ((54, 74, 96), (80, 104, 128), (40, 50, 62)),
    "plate": (
        *((200, 40, 40), (40, 80, 180), (240, 240, 236), (240, 200, 40)),
        (40, 120, 70),
    ),
    "red": ((195, 30, 32),),
    "tyre": ((26, 26, 28),),
    "dark": ((60, 60, 40),),
    "paint": ((225, 223, 212),),
    "signal": ((240, 50, 40), (60, 220, 120), (245, 190, 50)),
    "headlamp": ((240, 235, 210),),
    "destination": ((235, 190, 60), (60, 62, 64)),
}


def _dull(colour: tuple[float, ...]) -> tuple[float, ...]:
    """Return a colour as it looks under a grey sky."""
    grey = sum(colour) / 3
    return tuple(0.78 * (0.45 * part + 0.55 * grey) + 8 for part in colour)


GAME = Style(
    colours=_COLOURS,
    reach=(220, 420),
    sun=0.25,
    saturation=(0.95, 1.15),
    gain=(0.9, 1.1),
    noise=(0.0, 1.5),
    softness=(0.25, 0.5),
    texture=0.8,
    bonnet=False,
)
PHOTO = Style(
    colours={name: tuple(map(_dull, palette)) for name, palette in _COLOURS.items()}
    | {"sky": ((206, 214, 216), (186, 200, 206)), "haze": ((225, 230, 228),)},
    reach=(90, 200),
    sun=0.1,
    saturation=(0.7, 0.95),
    gain=(0.8, 1.1),
    noise=(3.0, 7.0),
    softness=(0.6, 1.1),
    texture=1.2,
    bonnet=True,
)


def pick(rng: np.random.Generator, style: Style, material: str) -> Points:
    """Draw a colour of a material, a little brighter or darker."""
    colours = style.colours[material]
    colour = colours[int(rng.random() * len(colours))]
    return np.array(colour) * (0.88 + 0.24 * rng.random())


def develop(
    rng: np.random.Generator, pixels: NDArray[np.uint8], style: Style
) -> NDArray[np.uint8]:
    """Return the image (H, W, 3) of a canvas with four channels."""
    import cv2

    height, width = pixels.shape[0] // SAMPLES, pixels.shape[1] // SAMPLES
    small = cv2.resize(pixels[..., :3], (width, height), interpolation=cv2.INTER_AREA)
    grain = np.zeros((height, width), np.float32)
    for size, weight in ((1, 0.6), (3, 0.8), (9, 0.5), (24, 1.2)):
        cells = _noise(rng, max(2, height // size), max(2, width // size))
        grain = grain + weight * cv2.resize(cells, (width, height))
    strength = np.float32(style.texture) * TEXTURE[pixels[::SAMPLES, ::SAMPLES, 3]]
    bright = np.clip(1 + strength * grain, 0.4, 1.6)
    saturation = rng.uniform(*style.saturation)
    light = rng.uniform(*style.gain) * (1 + 0.04 * rng.standard_normal(3))
    matrix = light[:, None] * (saturation * np.eye(3) + (1 - saturation) / 3)
    image = np.asarray(cv2.transform(small * bright[..., None], matrix), np.float32)
    soft = rng.uniform(*style.softness) * height / 256
    if soft > 0.2:
        image = np.asarray(cv2.GaussianBlur(image, (5, 5), soft), np.float32)
    noise = np.float32(rng.uniform(*style.noise))
    for channel in range(3):
        image[..., channel] += noise * _noise(rng, height, width)
    return np.asarray(np.clip(image + 0.5, 0, 255), np.uint8)


def _noise(rng: np.random.Generator, height: int, width: int) -> NDArray[np.float32]:
    """Cut Gaussian noise from a larger tile, which is much faster than new noise."""
    row, column = rng.integers(64, size=2).tolist()
    return _tile(height + 64, width + 64)[row : row + height, column : column + width]


@lru_cache(maxsize=16)
def _tile(height: int, width: int) -> NDArray[np.float32]:
    return np.random.default_rng(1).standard_normal((height, width), np.float32)
