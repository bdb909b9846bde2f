"""Laws of shift detection and of selective classification under shift."""

import numpy as np

from qualms.scores.as_published import retina
from qualms.scores.ood import (
    ood_auprc,
    ood_auroc,
    ood_found,
    ood_fpr95,
    scod_aurc,
    scod_auroc,
)
from scores.laws import Case

RANKING = frozenset(
    {"permutation", "ties", "monotone", "bounds", "empty", "dtype", "layout", "nan"}
    | {"rounding"}
)


def joint(rng, n):
    shifted = rng.random(n) < 0.4
    shifted[:2] = [False, True]
    return {"uncertainty": rng.normal(size=n) + shifted, "shifted": shifted}


def answered(rng, n):
    return joint(rng, n) | {"correct": rng.random(n) < 0.7}


def in_domain(rng, n):
    return joint(rng, n) | {"shifted": np.zeros(n, dtype=bool)}


def all_shifted(rng, n):
    return joint(rng, n) | {"shifted": np.ones(n, dtype=bool)}


def no_failures(rng, n):
    return in_domain(rng, n) | {"correct": np.ones(n, dtype=bool)}


def detection(score, one_class, value):
    return Case(
        score,
        joint,
        RANKING | {"repeat", "one_class"},
        rank="uncertainty",
        one_class=one_class,
        one_class_value=value,
        name=f"{score.__name__}-{one_class.__name__}",
    )


def ranks(rng, n):
    arrays = joint(rng, n)
    return {"score": arrays["uncertainty"], "positive": arrays["shifted"]}


def no_positives(rng, n):
    return ranks(rng, n) | {"positive": np.zeros(n, dtype=bool)}


CASES = [
    detection(ood_auroc, in_domain, np.nan),
    detection(ood_auroc, all_shifted, np.nan),
    detection(ood_found, in_domain, np.nan),
    detection(ood_found, all_shifted, None),
    detection(ood_auprc, in_domain, np.nan),
    detection(ood_auprc, all_shifted, 1.0),
    detection(ood_fpr95, in_domain, np.nan),
    detection(ood_fpr95, all_shifted, np.nan),
    Case(
        scod_auroc,
        answered,
        RANKING | {"repeat", "one_class"},
        rank="uncertainty",
        one_class=no_failures,
        one_class_value=np.nan,
    ),
    Case(
        scod_aurc,
        answered,
        RANKING | {"one_class"},
        options={"cost": 0.5},
        rank="uncertainty",
        one_class=no_failures,
        one_class_value=0.0,
    ),
    Case(
        retina.auprc,
        ranks,
        RANKING - {"rounding"} | {"repeat", "one_class"},
        rank="score",
        one_class=no_positives,
        one_class_value=0.5,
        name="retina.auprc",
    ),
]
