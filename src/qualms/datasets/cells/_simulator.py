"""Fluorescence microscopy of cells, simulated as in SIMCEP (Lehmussola et al., 2007).

Cells are small soft ellipses, some of them in clusters, under an uneven lamp, with
faint autofluorescence and sensor noise. As in SIMCEP, the lamp and the autofluorescence
are scaled to the energy of the cell image, so the background brightens with the square
root of the count. `illumination="fixed"` removes this cue.
"""

from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from qualms.datasets._simulated import SAMPLES, shrink
from qualms.jit import jit

Illumination = Literal["energy", "fixed"]
Floats = NDArray[np.float64]

SIZE = 64
CLUSTERS = 4
CLUSTERED = 0.25
CLUSTER_SPREAD = 0.12 * SIZE
RADIUS = 1.25
TRIES = 20
LAMP = 1.0
GLOW = 0.05
NOISE = 1e-2
FIXED_ENERGY = 0.0307
"""Mean square of the cell image at a count of 100, the middle of the range."""


class CellShapes(NamedTuple):
    """Shape and place of each cell, in pixels."""

    position: Floats
    radii: Floats
    angle: Floats
    softness: Floats
    amplitude: Floats


def cell_picture(
    count: int, *, index: int, seed: int, illumination: Illumination = "energy"
) -> NDArray[np.uint8]:
    """Draw a grey image (64, 64) of `count` cells; the arguments decide every bit."""
    rng = np.random.default_rng([seed, count, index])
    cells = _draw(rng, count)
    canvas = np.zeros((SIZE * SAMPLES, SIZE * SAMPLES))
    _paint(canvas, *cells)
    image = shrink(np.minimum(canvas, 1.0))
    energy = float(np.mean(image**2)) if illumination == "energy" else FIXED_ENERGY
    image += _scale(_lamp(rng), LAMP * energy)
    image += _scale(_glow(rng), GLOW * energy)
    image += rng.normal(0.0, NOISE, image.shape)
    grey: NDArray[np.uint8] = np.rint(image.clip(0.0, 1.0) * 255).astype(np.uint8)
    return grey


def _draw(rng: np.random.Generator, count: int) -> CellShapes:
    centre = rng.uniform(0, SIZE, (CLUSTERS, 2))[rng.integers(0, CLUSTERS, count)]
    near = centre[:, None] + rng.normal(0, CLUSTER_SPREAD, (count, TRIES, 2))
    anywhere = rng.uniform(0, SIZE, (count, TRIES, 2))
    clustered = rng.random(count) < CLUSTERED
    candidates = np.where(clustered[:, None, None], near, anywhere)
    return CellShapes(
        position=_place(candidates.clip(0.5, SIZE - 0.5), RADIUS),
        radii=RADIUS * rng.uniform(0.85, 1.15, (count, 2)),
        angle=rng.uniform(0, np.pi, count),
        # In samples rather than pixels: this gives the published grey levels.
        softness=(0.3 + np.abs(rng.normal(0, 0.25, count))).clip(0.3, 0.9) / SAMPLES,
        amplitude=rng.uniform(0.40, 0.75, count),
    )


@jit
def _place(candidates: Floats, distance: float) -> Floats:
    """Choose each cell's first candidate far enough from others, or its last."""
    count, tries, _ = candidates.shape
    position = np.empty((count, 2))
    for cell in range(count):
        for attempt in range(tries):
            x, y = candidates[cell, attempt]
            position[cell] = x, y
            free = True
            for other in range(cell):
                dx, dy = position[other, 0] - x, position[other, 1] - y
                if dx * dx + dy * dy < distance * distance:
                    free = False
                    break
            if free:
                break
    return position


@jit
def _paint(
    canvas: Floats,
    position: Floats,
    radii: Floats,
    angle: Floats,
    softness: Floats,
    amplitude: Floats,
) -> None:
    """Add soft ellipses to `canvas`, which has two samples per pixel and axis."""
    side = canvas.shape[0]
    for cell in range(len(angle)):
        x, y = position[cell]
        cosine, sine = np.cos(angle[cell]), np.sin(angle[cell])
        across, along = radii[cell]
        edge = 0.5 * (across + along) / softness[cell]
        # Beyond seven softnesses the profile is below a quarter of a grey level.
        reach = max(across, along) + 7.0 * softness[cell]
        for row in range(max(0, int(2 * (y - reach))), min(side, int(2 * (y + reach)))):
            for column in range(
                max(0, int(2 * (x - reach))), min(side, int(2 * (x + reach)))
            ):
                dx, dy = 0.5 * column + 0.25 - x, 0.5 * row + 0.25 - y
                u = (cosine * dx + sine * dy) / across
                v = (cosine * dy - sine * dx) / along
                outside = np.sqrt(u * u + v * v) - 1.0
                canvas[row, column] += amplitude[cell] / (1.0 + np.exp(edge * outside))


def _lamp(rng: np.random.Generator) -> Floats:
    """Draw the light of the lamp: a paraboloid around a random centre, from 0 to 1."""
    axis = np.linspace(-1, 1, SIZE)
    x, y = rng.uniform(-0.3, 0.3, 2)
    return _stretch(-((axis[None, :] - x) ** 2) - (axis[:, None] - y) ** 2)


def _glow(rng: np.random.Generator) -> Floats:
    """Draw autofluorescence: value noise of two octaves, from 0 to 1."""
    coarse = _interpolate(rng.random((4, 4)))
    fine = _interpolate(rng.random((8, 8)))
    return _stretch(coarse + 0.5 * fine)


def _interpolate(knots: Floats) -> Floats:
    """Interpolate a square grid of knots smoothly to the size of the image."""
    position = np.linspace(0, len(knots) - 1, SIZE)
    low = np.minimum(position.astype(int), len(knots) - 2)
    share = position - low
    share = share * share * (3 - 2 * share)
    weight = np.zeros((SIZE, len(knots)))
    weight[np.arange(SIZE), low] = 1 - share
    weight[np.arange(SIZE), low + 1] = share
    return weight @ knots @ weight.T


def _stretch(field: Floats) -> Floats:
    """Shift and scale `field` to run from 0 to 1."""
    stretched: Floats = (field - field.min()) / (field.max() - field.min())
    return stretched


def _scale(field: Floats, energy: float) -> Floats:
    """Scale `field` to a mean square of `energy`."""
    scaled: Floats = field * np.sqrt(energy / np.mean(field**2))
    return scaled
