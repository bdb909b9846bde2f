"""Laws of the scores at a threshold: of items that are called positive or not."""

import numpy as np

from qualms.scores.operating_points import (
    called_share,
    lr_negative,
    lr_positive,
    npv,
    ppv,
    sensitivity,
    sensitivity_at_specificity,
    specificity,
)
from scores.laws import Case
from scores.laws.classification import positives_only, ranks

LAWS = frozenset({"permutation", "bounds", "empty", "layout", "repeat"})


def calls(rng, n):
    positive = rng.random(n) < 0.4
    return {"called": rng.random(n) < 0.3 + 0.4 * positive, "positive": positive}


def called_alone(rng, n):
    return {"called": calls(rng, n)["called"]}


def all_positive(rng, n):
    return calls(rng, n) | {"positive": np.ones(n, dtype=bool)}


def of_calls(score, one_class_value, **options):
    return Case(
        score=score,
        make=calls,
        laws=LAWS | {"one_class"},
        options=options,
        one_class=all_positive,
        one_class_value=one_class_value,
        name=f"{score.__name__} {options}" if options else "",
    )


CASES = [
    Case(score=called_share, make=called_alone, laws=LAWS),
    of_calls(sensitivity, None),
    of_calls(specificity, np.nan),
    of_calls(ppv, 1.0),
    of_calls(npv, 0.0),
    of_calls(ppv, np.nan, prevalence=0.05),
    of_calls(npv, np.nan, prevalence=0.05),
    of_calls(lr_positive, np.nan),
    of_calls(lr_negative, np.nan),
    Case(
        score=sensitivity_at_specificity,
        make=ranks,
        laws=LAWS | {"ties", "monotone", "dtype", "nan", "one_class", "rounding"},
        rank="score",
        one_class=positives_only,
        one_class_value=np.nan,
    ),
]
