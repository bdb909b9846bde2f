"""The retina before it is photographed: how much light every point reflects.

It has a disc with a cup, a macula with a fovea, pigment, a mottled choroid, vessels,
lesions, and harmless things that look like lesions: drusen and spots of pigment.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from qualms.datasets.fundus._brush import (
    ARTERY,
    BLOOD,
    COTTON,
    EXUDATE,
    VEIL,
    VEIN,
    Kind,
    Layers,
    RetinaView,
    paint,
    scatter,
)
from qualms.datasets.fundus._disease import Disease
from qualms.datasets.fundus._lesions import lesion_blobs, lesion_strokes
from qualms.datasets.fundus._vessels import arcades
from qualms.jit import jit

Floats = NDArray[np.float64]
Floats32 = NDArray[np.float32]
Rng = np.random.Generator

FAIR = np.array([0.90, 0.45, 0.24])
DARK = np.array([0.56, 0.25, 0.11])
RIM = np.array([0.96, 0.66, 0.38])
CUP = np.array([1.02, 0.88, 0.62])
YELLOW = np.array([1.00, 0.86, 0.45])
WHITE = np.array([0.98, 0.88, 0.72])
MURKY = np.array([0.30, 0.08, 0.04])
IN_MACULA = np.array([0.20, 0.42, 0.45])
IN_ARTERY = np.array([0.14, 0.52, 0.45])
IN_VEIN = np.array([0.34, 0.80, 0.60])
IN_BLOOD = np.array([0.62, 1.35, 1.05])
IN_CHOROID = np.array([0.20, 0.30, 0.32])
"""Optical densities for red, green and blue."""
DRUSEN = Kind(EXUDATE, 0.8, (0.2, 0.5), (0.006, 0.016))
SPOTS = Kind(BLOOD, 0.6, (0.2, 0.45), (0.02, 0.06), wobble=0.2)
OCTAVES = ((4, 0.9), (9, 0.6), (22, 0.45), (60, 0.35), (150, 0.25))
"""Scales of the mottle: knots along a side, and strength."""


class Person(NamedTuple):
    """Properties that both eyes of a patient share."""

    pigment: float
    """0 fair, 1 dark."""
    macula: float
    """Strength of the macular pigment."""
    drusen: int
    spots: int


class Eye(NamedTuple):
    """The anatomy of one eye."""

    disc: tuple[float, float]
    radii: tuple[float, float]
    """Radii of the disc: horizontal and vertical."""
    cup: float
    """Size of the cup, relative to the disc."""
    halo: float
    """Strength of the pale ring around the disc."""
    mottle: float
    person: Person


def person(rng: Rng, pigment: tuple[float, float]) -> Person:
    """Draw a patient; `pigment` is the mean and spread in the population."""
    return Person(
        pigment=float(np.clip(rng.normal(*pigment), 0.0, 1.0)),
        macula=float(rng.uniform(0.5, 1.2)),
        drusen=int(rng.integers(4, 18)) if rng.random() < 0.15 else 0,
        spots=int(rng.integers(1, 3)) if rng.random() < 0.12 else 0,
    )


def eye(rng: Rng, patient: Person) -> Eye:
    """Draw an eye of a patient."""
    radius = rng.uniform(0.112, 0.138)
    return Eye(
        disc=(float(rng.normal(0.66, 0.025)), float(rng.normal(-0.055, 0.02))),
        radii=(radius, radius * rng.uniform(1.0, 1.15)),
        cup=float(rng.uniform(0.3, 0.62)),
        halo=float(rng.uniform(0.0, 0.55)),
        mottle=float(rng.uniform(0.6, 1.4) * (1.2 - 0.6 * patient.pigment)),
        person=patient,
    )


def reflectance(rng: Rng, subject: Eye, disease: Disease, view: RetinaView) -> Floats32:
    """Draw the reflectance (size, size, 3) of an eye with this disease, about 0 to 1.

    Disease adds lesions to an eye and changes nothing else in it.
    """
    lesion_rng, mottle_rng = (
        np.random.default_rng(word) for word in rng.integers(2**62, size=2)
    )
    lesions = disease.findings(lesion_rng)
    strokes = [arcades(rng, subject.disc, lesions.beading)]
    strokes += lesion_strokes(lesion_rng, lesions, subject.disc)
    blobs = [
        lesion_blobs(lesion_rng, lesions, subject.disc),
        *_harmless(rng, subject.person),
    ]
    layers = paint(view, np.concatenate(strokes), np.concatenate(blobs))
    image = np.empty((view.size, view.size, 3), np.float32)
    base = FAIR + subject.person.pigment * (DARK - FAIR)
    pale = (subject.cup, subject.halo, subject.person.macula)
    anatomy = np.array([*subject.disc, *subject.radii, *pale])
    mottle = _mottle(mottle_rng, subject, view.size)
    _compose(image, layers, mottle, view.inverse, base, anatomy)
    return image


def _harmless(rng: Rng, patient: Person) -> list[Floats]:
    """Draw drusen near the macula and spots of pigment anywhere."""
    return [
        scatter(rng, DRUSEN, rng.normal(0, 0.2, (patient.drusen, 2))),
        scatter(rng, SPOTS, rng.uniform(-0.8, 0.8, (patient.spots, 2))),
    ]


def _mottle(rng: Rng, subject: Eye, size: int) -> Floats32:
    """Draw the unevenness (size, size) of the choroid, around 0.

    Small pictures leave out the finest scales, so the number of draws depends on size.
    """
    import cv2

    total = np.zeros((size, size), np.float32)
    for knots, strength in OCTAVES:
        if knots <= size // 2:
            grid = rng.standard_normal((knots, knots), np.float32)
            grown = cv2.resize(grid, (size, size), interpolation=cv2.INTER_CUBIC)
            total += np.float32(strength * subject.mottle) * grown
    return total


@jit
def _compose(
    image: Floats32,
    layers: Layers,
    mottle: Floats32,
    inverse: Floats,
    base: Floats,
    anatomy: Floats,
) -> None:
    """Follow the light from the choroid outwards; each layer absorbs some of it."""
    size = image.shape[0]
    back = np.empty(3)
    for row in range(size):
        for column in range(size):
            x = inverse[0, 0] * (column + 0.5) + inverse[0, 1] * (row + 0.5)
            y = inverse[1, 0] * (column + 0.5) + inverse[1, 1] * (row + 0.5)
            x, y = x + inverse[0, 2], y + inverse[1, 2]
            back[:] = base
            _light_disc(back, x, y, anatomy)
            macula = 0.0
            square = x * x + y * y
            if square < 0.15:
                broad, narrow = np.exp(-square / 0.025), np.exp(-square / 0.0022)
                macula = anatomy[6] * (broad + 0.5 * narrow)
            choroid = 0.24 * mottle[row, column]
            density = layers[:, row, column]
            for c in range(3):
                depth = macula * IN_MACULA[c] + choroid * IN_CHOROID[c]
                depth += density[VEIN] * IN_VEIN[c] + density[ARTERY] * IN_ARTERY[c]
                light = back[c] * np.exp(-depth - density[BLOOD] * IN_BLOOD[c])
                light += density[EXUDATE] * (YELLOW[c] - light)
                light += density[COTTON] * (WHITE[c] - light)
                light += density[VEIL] * (MURKY[c] - light)
                image[row, column, c] = light


@jit
def _light_disc(back: Floats, x: float, y: float, anatomy: Floats) -> None:
    """Replace the colour of the choroid by that of the disc."""
    dx, dy = (x - anatomy[0]) / anatomy[2], (y - anatomy[1]) / anatomy[3]
    away = np.sqrt(dx * dx + dy * dy)
    if away > 2.2:
        return
    ring = anatomy[5] * np.exp(-((away - 1.12) ** 2) / 0.03) * (0.5 - 0.5 * dx / away)
    disc = _smooth((1.08 - away) / 0.2)
    inner = np.sqrt((dx + 0.12) ** 2 + dy * dy)
    cup = _smooth((anatomy[4] + 0.15 - inner) / 0.35)
    for c in range(3):
        back[c] += 0.7 * ring * (RIM[c] - back[c])
        back[c] += 0.92 * disc * (RIM[c] - back[c])
        back[c] += 0.85 * cup * (CUP[c] - back[c])


@jit
def _smooth(share: float) -> float:
    share = min(1.0, max(0.0, share))
    return share * share * (3.0 - 2.0 * share)
