"""Laws of the line of calibration, and of the agreement of grades."""

import numpy as np

from qualms.scores.calibration_line import calibration_intercept, calibration_slope
from qualms.scores.multiclass import quadratic_kappa
from scores.laws import Case
from scores.laws.classification import classes, draws

LAWS = frozenset({"permutation", "bounds", "empty", "layout", "repeat", "dtype", "nan"})


def probs(rng, n):
    prob = rng.beta(2, 2, n)
    positive = rng.random(n) < prob
    positive[np.argsort(prob)[[0, -1]]] = [True, False]  # no threshold separates them
    return {"prob": prob, "positive": positive}


def all_positive(rng, n):
    return probs(rng, n) | {"positive": np.ones(n, dtype=bool)}


CASES = [
    *(
        Case(
            score=score,
            make=probs,
            laws=LAWS | {"one_class"},
            one_class=all_positive,
            one_class_value=np.nan,
            rtol=1e-7,
        )
        for score in (calibration_slope, calibration_intercept)
    ),
    Case(score=quadratic_kappa, make=classes, laws=LAWS),
    Case(
        score=quadratic_kappa,
        make=draws,
        laws=frozenset({"permutation", "bounds", "members"}),
        axis={"probs": 1},
        members={"probs": 0},
        name="quadratic_kappa draws",
    ),
]
