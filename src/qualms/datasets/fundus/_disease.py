"""Signs of disease in the eyes of a population, besides its severity.

Usually an eye shows the lesions of its severity. There are two populations that
deceive. In a hospital abroad, lesions of referred eyes are ahead of their grade, and
some eyes have another disease whose lesions look like those of diabetes. After laser
treatment, severe disease shows little of what milder disease shows.
"""

from typing import NamedTuple

import numpy as np

from qualms.datasets.fundus._lesions import Findings, after_treatment, findings

Rng = np.random.Generator
Range = tuple[float, float]


class Population(NamedTuple):
    """Appearance of disease in the eyes of some people."""

    mimicked: float = 0.0
    """Share of eyes with another disease, whose lesions look like severe retinopathy
    and do not count for the grade."""
    ahead: float = 0.0
    """Steps of severity by which lesions are ahead of the grade, from grade 2 on."""
    treated: float = 0.0
    """Share of eyes that were treated."""
    left: Range = (0.0, 0.0)
    """Share of their lesions that treated eyes still show."""


USUAL = Population()
MIMICKED = (3.4, 4.0)
"""Severity of diabetic retinopathy that another disease looks like."""
ILL, WORST = 2.0, 5.0


class Disease(NamedTuple):
    """Lesions that an eye shows."""

    severity: float
    """From 0 to 5; the lesions are those of this severity."""
    left: float | None = None
    """Share of the lesions that treatment left; None if there was none."""

    def findings(self, rng: Rng) -> Findings:
        """Draw the number of lesions of each kind."""
        lesions = findings(rng, self.severity)
        if self.left is None:
            return lesions
        return after_treatment(rng, lesions, self.left)


def disease(rng: Rng, severity: float, population: Population) -> Disease:
    """Draw what an eye of this severity shows in a population."""
    mimicked, looks_like = rng.random(), rng.uniform(*MIMICKED)
    treated, left = rng.random(), rng.uniform(*population.left)
    ill = severity >= ILL
    if ill:
        severity = min(severity + population.ahead, WORST)
    if mimicked < population.mimicked:
        severity = max(severity, looks_like)
    return Disease(severity, left if ill and treated < population.treated else None)
