"""The lesions of diabetic retinopathy at a given severity.

The severity is a real number from 0 to 5. Its integer part is the clinical grade of the
international scale (Wilkinson et al., 2003): 1 microaneurysms alone; 2 more of them,
with dot and blot haemorrhages, hard exudates and cotton-wool spots; 3 haemorrhages in
all quadrants, venous beading and abnormal small vessels; 4 new vessels and preretinal
or vitreous haemorrhage. Everything grows steadily with the severity, so eyes on the two
sides of a threshold look alike, and graders disagree about them. Just below 1 there are
a few doubtful dots.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from qualms.datasets.fundus._brush import (
    ANGLE,
    BLOB,
    BLOOD,
    COTTON,
    EXUDATE,
    SOFT,
    VEIL,
    Kind,
    Range,
    scatter,
)
from qualms.datasets.fundus._vessels import tangle

Floats = NDArray[np.float64]
Rng = np.random.Generator

SEVERITY = (0.0, 0.6, 1.0, 1.5, 1.85, 2.0, 2.5, 3.0, 3.5, 4.0, 4.5, 5.0)
EXPECTED = {
    "microaneurysms": (0, 0, 1, 5, 8, 9, 14, 22, 26, 28, 28, 28),
    "haemorrhages": (0, 0, 0, 0, 1.5, 7, 14, 22, 32, 32, 32, 32),
    "exudates": (0, 0, 0, 0, 0.5, 2.2, 3.4, 4.2, 4.4, 4.4, 4.4, 4.4),
    "cotton_wool": (0, 0, 0, 0, 0, 1.0, 2.4, 3.6, 4.5, 4.0, 3.5, 3.5),
    "abnormal_vessels": (0, 0, 0, 0, 0, 0, 0, 1.0, 2.5, 3.0, 3.0, 3.0),
    "new_vessels": (0, 0, 0, 0, 0, 0, 0, 0, 0.1, 1.0, 2.5, 3.5),
    "preretinal": (0, 0, 0, 0, 0, 0, 0, 0, 0, 0.25, 1.0, 1.6),
}
"""Mean number of each finding at the values of `SEVERITY`, linear in between."""
# fmt: off
KINDS: dict[str, tuple[Range, Kind]] = {
    "microaneurysms": ((0.12, 0.8), Kind(BLOOD, 0.4, (0.55, 0.9), (0.009, 0.014))),
    "haemorrhages": ((0.18, 0.95), Kind(BLOOD, 0.3, (0.6, 1.1), wobble=(0.05, 0.3))),
    "exudates": (
        (0.12, 0.6), Kind(EXUDATE, 0.3, (0.7, 1), along=(0.6, 1), wobble=(0, 0.35)),
    ),
    "cotton_wool": (
        (0.35, 0.75),
        Kind(COTTON, 0.8, (0.6, 0.9), (0.035, 0.06), (0.6, 0.9), (0.05, 0.15)),
    ),
    "preretinal": (
        (0.3, 0.7), Kind(VEIL, 0.12, 0.93, (0.10, 0.24), (0.4, 0.7), (0.1, 0.25), True),
    ),
    "scars": ((0.6, 1.0), Kind(COTTON, 0.5, (0.1, 0.25), (0.02, 0.035))),
}
# fmt: on
"""Lesions that are blobs, and their distances from the fovea."""
CLOUDS = Kind(VEIL, 0.9, (0.3, 0.75), wobble=(0.2, 0.5))
SCARS = (25, 60)
"""Range of the number of scars."""
_ABSORBED = (
    *("microaneurysms", "haemorrhages", "exudates", "cotton_wool"),
    *("abnormal_vessels", "preretinal"),
)


class Findings(NamedTuple):
    """The number of lesions of each kind in one eye."""

    microaneurysms: int
    haemorrhages: int
    exudates: int
    """Groups of hard exudates."""
    cotton_wool: int
    abnormal_vessels: int
    new_vessels: int
    preretinal: int
    """Preretinal and vitreous haemorrhages."""
    beading: float
    """Beading of the veins, from 0 to 1."""
    spread: float
    """0: most lesions lie in one quadrant; 1: they are spread over all quadrants."""
    scars: int = 0
    """Scars of laser treatment."""


def after_treatment(rng: Rng, lesions: Findings, left: float) -> Findings:
    """Return what is seen after laser treatment: scars, and few of the lesions.

    Args:
        rng: draws the scars.
        lesions: those before.
        left: share of blood, exudates and cotton wool that is not absorbed.
    """
    absorbed = {name: round(left * getattr(lesions, name)) for name in _ABSORBED}
    # Abnormal vessels close, and veins are no longer beaded.
    healed = lesions._replace(beading=left * lesions.beading, **absorbed)
    return healed._replace(scars=int(rng.integers(*SCARS)))


def findings(rng: Rng, severity: float) -> Findings:
    """Draw the number of lesions of each kind at this severity.

    An eye has more of one kind of lesion and fewer of another. Apart from this the
    numbers vary only by random rounding, so the picture shows the severity well.
    """
    expected = {
        name: float(np.interp(severity, SEVERITY, values))
        for name, values in EXPECTED.items()
    }
    lean = rng.uniform(0.7, 1.3)
    for name in ("haemorrhages", "microaneurysms"):
        expected[name] *= lean
    for name in ("exudates", "cotton_wool"):
        expected[name] *= 2.0 - lean
    luck = rng.random(len(expected))
    names = zip(expected.items(), luck, strict=True)
    counts = {name: int(mean + share) for (name, mean), share in names}
    return Findings(
        **counts,
        beading=float(np.interp(severity, (2.75, 3.25), (0.0, 1.0))),
        spread=float(np.interp(severity, (1.5, 3.0), (0.15, 1.0))),
    )


def lesion_blobs(rng: Rng, lesions: Findings, disc: tuple[float, float]) -> Floats:
    """Draw shapes (n, 10) of all lesions that are not vessels."""
    home = float(rng.uniform(0, 2 * np.pi))
    sites = _LesionSites(np.array(disc), home, lesions.spread)
    special = {
        "haemorrhages": _haemorrhages,
        "exudates": _exudates,
        "preretinal": _preretinal,
    }
    shapes = [np.empty((0, BLOB))]
    for name, (ring, kind) in KINDS.items():
        count = getattr(lesions, name)
        if count and name in special:
            shapes.append(special[name](rng, count, sites))
        elif count:
            # The laser leaves scars in all quadrants.
            where = sites._replace(spread=1.0) if name == "scars" else sites
            shapes.append(scatter(rng, kind, _positions(rng, count, where, ring)))
    return np.concatenate(shapes)


def lesion_strokes(
    rng: Rng, lesions: Findings, disc: tuple[float, float]
) -> list[Floats]:
    """Draw strokes of abnormal and new vessels."""
    if not lesions.abnormal_vessels + lesions.new_vessels:
        return []
    sites = _LesionSites(np.array(disc), 0.0, 1.0)
    abnormal = [
        tangle(rng, centre, 0.045, 5)
        for centre in _positions(rng, lesions.abnormal_vessels, sites, (0.35, 0.8))
    ]
    elsewhere = _positions(rng, lesions.new_vessels, sites, (0.45, 0.85))
    if lesions.new_vessels and rng.random() < 0.7:
        elsewhere[0] = sites.disc + rng.normal(0, 0.03, 2)
    new = [
        tangle(rng, centre, rng.uniform(0.12, 0.2), int(rng.integers(16, 28)))
        for centre in elsewhere
    ]
    return abnormal + new


class _LesionSites(NamedTuple):
    """Sites of an eye where lesions appear."""

    disc: Floats
    """(2,) centre of the optic disc, which has none."""
    home: float
    """Direction from the fovea in which they begin, in radians."""
    spread: float
    """As in `Findings`."""


def _positions(
    rng: Rng, count: int, sites: _LesionSites, ring: tuple[float, float]
) -> Floats:
    """Draw points (count, 2) around the fovea, pushed off the disc."""
    anywhere = rng.random(count) < sites.spread
    angle = np.where(
        anywhere, rng.uniform(0, 2 * np.pi, count), rng.normal(sites.home, 0.5, count)
    )
    radius = np.sqrt(rng.uniform(ring[0] ** 2, ring[1] ** 2, count))
    points = radius[:, None] * np.column_stack([np.cos(angle), np.sin(angle)])
    away = points - sites.disc
    near = np.linalg.norm(away, axis=1, keepdims=True) + 1e-9
    pushed: Floats = np.where(near < 0.17, sites.disc + away / near * 0.19, points)
    return pushed


def _haemorrhages(rng: Rng, count: int, sites: _LesionSites) -> Floats:
    """Draw dots and blots, and flames near the disc that follow the nerve fibres."""
    ring, kind = KINDS["haemorrhages"]
    centre = _positions(rng, count, sites, ring)
    radius = np.exp(rng.normal(np.log(0.024), 0.38, count)).clip(0.013, 0.06)
    from_disc = centre - sites.disc
    flame = (np.hypot(*from_disc.T) < 0.45) & (rng.random(count) < 0.5)
    stretch = np.where(flame, rng.uniform(1.8, 2.6, count), rng.uniform(1, 1.4, count))
    radii = np.column_stack([radius * stretch, radius / np.sqrt(stretch)])
    blobs = scatter(rng, kind, centre, radii)
    blobs[flame, ANGLE] = np.arctan2(from_disc[:, 1], from_disc[:, 0])[flame]
    blobs[flame, SOFT] = 0.5
    return blobs


def _exudates(rng: Rng, count: int, sites: _LesionSites) -> Floats:
    """Draw groups of yellow specks, some of them rings."""
    of = np.repeat(np.arange(count), rng.integers(7, 20, count))
    ring, kind = KINDS["exudates"]
    centre, specks = _positions(rng, count, sites, ring)[of], len(of)
    wide, hollow = rng.uniform(0.05, 0.11, count)[of], rng.random(count)[of] < 0.3
    filled = np.abs(rng.normal(0, 0.7, specks))
    away = wide * np.where(hollow, 1 + rng.normal(0, 0.12, specks), filled)
    around = rng.uniform(0, 2 * np.pi, specks)
    radius = np.exp(rng.normal(np.log(0.013), 0.4, specks)).clip(0.006, 0.03)
    place = centre + away[:, None] * np.column_stack([np.cos(around), np.sin(around)])
    return scatter(rng, kind, place, radius[:, None])


def _preretinal(rng: Rng, count: int, sites: _LesionSites) -> Floats:
    """Draw pools of blood in front of the retina, and clouds of it in the vitreous."""
    ring, kind = KINDS["preretinal"]
    pools = scatter(rng, kind, _positions(rng, count, sites, ring))
    place = rng.uniform(-0.6, 0.8, (3 * count, 2))
    radii = rng.uniform(0.2, 0.5, (3 * count, 2))
    return np.concatenate([pools, scatter(rng, CLOUDS, place, radii)])
