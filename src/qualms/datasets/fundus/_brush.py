"""Painting of soft strokes and blobs.

Shapes are given in the plane of a right retina: the fovea is the origin, x points to
the nose, y down, and one unit is half the width of a 45 degree photograph. A
`RetinaView` maps this plane to a picture of any size. Nothing is painted narrower than
a pixel: thinner shapes are painted a pixel wide and paler. Blobs are made less pale
than their area requires, because small lesions would vanish from small pictures.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from qualms.jit import jit

Floats = NDArray[np.float64]
Rng = np.random.Generator
Range = tuple[float, float]
Layers = NDArray[np.float32]

VEIN, ARTERY, BLOOD, EXUDATE, COTTON, VEIL = range(6)
LAYERS = 6

STROKE = 8
"""Columns of a stroke: x, y from and to, width at both ends, density, layer."""
BLOB = 10
X, Y, ACROSS, ALONG, ANGLE, SOFT, WOBBLE, PHASE, DENSITY, LAYER = range(BLOB)
PLACE, RADII = slice(0, 2), slice(2, 4)
"""Columns of a blob; the softness of the edge is relative to the radii."""
THINNEST, SMALLEST = 1.1, 0.95
"""Smallest painted width of a stroke and radius of a blob, in pixels."""
THIN_FADES, SMALL_FADES = 1.0, 0.25
"""Exponents by which smaller shapes become paler: 1 keeps width x density."""


class RetinaView(NamedTuple):
    """Map from the retina to a picture: pixel = matrix @ point + offset."""

    matrix: Floats
    offset: Floats
    size: int

    @property
    def scale(self) -> float:
        """Pixels per unit."""
        return float(np.sqrt(abs(np.linalg.det(self.matrix))))

    @property
    def inverse(self) -> Floats:
        """(2, 3) map from (column, row, 1) to the retina."""
        back = np.linalg.inv(self.matrix)
        return np.column_stack([back, -back @ self.offset])


class Kind(NamedTuple):
    """One kind of blob; pairs are ranges, from which each blob has a value."""

    layer: int
    soft: float
    density: Range | float
    across: Range = (0.0, 0.0)
    """First radius, if it is not drawn elsewhere."""
    along: Range | float = 1.0
    """Second radius, relative to the first."""
    wobble: Range | float = 0.0
    """Of the edge; blobs whose wobble varies are turned."""
    level: bool = False
    """Whether they are hardly turned."""


def scatter(rng: Rng, kind: Kind, place: Floats, radii: Floats | None = None) -> Floats:
    """Draw blobs (n, 10) of a kind at places (n, 2); `radii` (n, 1) or (n, 2)."""
    count = len(place)
    blobs = np.zeros((count, BLOB))
    blobs[:, PLACE], blobs[:, LAYER], blobs[:, SOFT] = place, kind.layer, kind.soft
    blobs[:, RADII] = rng.uniform(*kind.across, (count, 1)) if radii is None else radii
    blobs[:, ALONG] *= _drawn(rng, kind.along, count)
    if kind.level:
        blobs[:, ANGLE] = rng.normal(0, 0.2, count)
    elif isinstance(kind.wobble, tuple):
        blobs[:, ANGLE] = rng.uniform(0, np.pi, count)
    blobs[:, WOBBLE] = _drawn(rng, kind.wobble, count)
    if isinstance(kind.wobble, tuple):
        blobs[:, PHASE] = rng.uniform(0, 2 * np.pi, count)
    blobs[:, DENSITY] = _drawn(rng, kind.density, count)
    return blobs


def _drawn(rng: Rng, value: Range | float, count: int) -> Floats | float:
    return rng.uniform(*value, count) if isinstance(value, tuple) else value


def paint(view: RetinaView, strokes: Floats, blobs: Floats) -> Layers:
    """Paint densities (layers, size, size) of the shapes seen through `view`.

    Args:
        view: map from the retina to the picture.
        strokes: (n, 8), columns as `STROKE` says.
        blobs: (m, 10), columns as `BLOB` says.
    """
    layers = np.zeros((LAYERS, view.size, view.size), np.float32)
    placed = strokes.copy()
    placed[:, 0:2] = strokes[:, 0:2] @ view.matrix.T + view.offset
    placed[:, 2:4] = strokes[:, 2:4] @ view.matrix.T + view.offset
    placed[:, 4:6] *= view.scale
    _paint_strokes(layers, placed)
    centres = blobs[:, PLACE] @ view.matrix.T + view.offset
    _paint_blobs(layers, blobs, centres, view.inverse, view.scale)
    return layers


@jit
def _paint_strokes(layers: Layers, strokes: Floats) -> None:
    side = layers.shape[1]
    for n in range(len(strokes)):
        x, y, to_x, to_y, wide, to_wide, density, layer = strokes[n]
        width, to_width = max(wide, THINNEST), max(to_wide, THINNEST)
        density *= ((wide + to_wide) / (width + to_width)) ** THIN_FADES
        reach = 0.5 * max(width, to_width) + 1.0
        left, right = _span(min(x, to_x) - reach, max(x, to_x) + reach, side)
        top, bottom = _span(min(y, to_y) - reach, max(y, to_y) + reach, side)
        along_x, along_y = to_x - x, to_y - y
        square = along_x * along_x + along_y * along_y + 1e-12
        canvas = layers[int(layer)]
        for row in range(top, bottom):
            for column in range(left, right):
                dx, dy = column + 0.5 - x, row + 0.5 - y
                share = min(1.0, max(0.0, (dx * along_x + dy * along_y) / square))
                dx, dy = dx - share * along_x, dy - share * along_y
                half = 0.5 * (width + share * (to_width - width)) + 0.5
                away = dx * dx + dy * dy
                if away < half * half:
                    # A vessel is round, and its middle reflects light.
                    edge = min(1.0, half - np.sqrt(away))
                    crest = max(0.0, 1.0 - 9.0 * away / (half * half))
                    round_off = 1.0 - 0.25 * away / (half * half) - 0.3 * crest
                    value = density * edge * (round_off if half > 2.0 else 0.9)
                    canvas[row, column] = max(canvas[row, column], value)


@jit
def _paint_blobs(
    layers: Layers, blobs: Floats, centres: Floats, inverse: Floats, scale: float
) -> None:
    side = layers.shape[1]
    least = SMALLEST / scale
    for n in range(len(blobs)):
        a, b = max(blobs[n, ACROSS], least), max(blobs[n, ALONG], least)
        paler = (blobs[n, ACROSS] * blobs[n, ALONG] / (a * b)) ** SMALL_FADES
        density, layer = paler * blobs[n, DENSITY], int(blobs[n, LAYER])
        soft = max(blobs[n, SOFT], 0.7 / (scale * min(a, b)))
        reach = scale * max(a, b) * (1.0 + soft + 1.25 * blobs[n, WOBBLE])
        cosine, sine = np.cos(blobs[n, ANGLE]), np.sin(blobs[n, ANGLE])
        column_0, row_0 = centres[n]
        left, right = _span(column_0 - reach, column_0 + reach, side)
        top, bottom = _span(row_0 - reach, row_0 + reach, side)
        canvas = layers[layer]
        for row in range(top, bottom):
            for column in range(left, right):
                dx, dy = column + 0.5 - column_0, row + 0.5 - row_0
                x = inverse[0, 0] * dx + inverse[0, 1] * dy
                y = inverse[1, 0] * dx + inverse[1, 1] * dy
                u = (cosine * x + sine * y) / a
                v = (cosine * y - sine * x) / b
                value = density * _within(u, v, soft, blobs[n, WOBBLE], blobs[n, PHASE])
                if value > canvas[row, column]:
                    canvas[row, column] = value


@jit
def _within(u: float, v: float, soft: float, wobble: float, phase: float) -> float:
    """Return 1 inside a wobbly circle, 0 outside, smooth over `soft` on either side."""
    distance = np.sqrt(u * u + v * v)
    if wobble != 0.0 and distance > 0.0:
        angle = np.arctan2(v, u)
        waves = 0.8 * np.sin(2.0 * angle + 1.7 * phase) + np.sin(3.0 * angle + phase)
        distance -= 0.5 * wobble * (waves + 0.7 * np.sin(5.0 * angle - 2.3 * phase))
    share = min(1.0, max(0.0, 0.5 + 0.5 * (1.0 - distance) / soft))
    value: float = share * share * (3.0 - 2.0 * share)
    return value


@jit
def _span(low: float, high: float, side: int) -> tuple[int, int]:
    """Return the range of pixels that a shape can reach along one axis."""
    return max(0, int(low)), min(side, int(high) + 1)
