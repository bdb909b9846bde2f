"""One simulated fundus photograph, from a patient's number to pixels."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from qualms.datasets._eye import eye, person, retina
from qualms.datasets._fundus_camera import Profile, exposed, framed


class Patient(NamedTuple):
    """Who is photographed: the numbers seed everything that is drawn."""

    seed: int
    series: int
    """Which list of patients."""
    number: int
    """Which of them."""


def photograph(
    patient: Patient,
    *,
    left: bool,
    severity: float,
    quality: float,
    profile: Profile,
    size: int,
) -> NDArray[np.uint8]:
    """RGB picture (size, size, 3); it depends on nothing but the arguments.

    Args:
        patient: whose eye.
        left: which eye.
        severity: of the disease, 0 to 5; its whole part is the true grade.
        quality: how well the photograph succeeds, 0 to 1.
        profile: the country's people and cameras.
        size: in pixels.
    """
    # A last word other than 0: it would seed the same as no word at all.
    both = np.random.default_rng([*patient, 1])
    whose, site = person(both, profile.pigment), int(both.integers(profile.sites))
    rng = np.random.default_rng([*patient, 3 if left else 2])
    frame = framed(rng, profile, left=left, size=size)
    light = retina(rng, eye(rng, whose), severity, frame.view)
    return exposed(rng, light, frame, profile, site=site, quality=quality)
