"""Laws of the classification scores: probabilities in each accepted form, and ranks."""

import numpy as np

from qualms.scores.calibration import adaptive_ece, classwise_ece, ece, smooth_ece
from qualms.scores.conformal_sets import (
    fit_conformal_sets,
    set_coverage,
    set_size,
    singleton_share,
    size_stratified_coverage,
)
from qualms.scores.decomposition import decompose, entropy
from qualms.scores.multiclass import macro_auroc, macro_f1, top_k_accuracy
from qualms.scores.proper import (
    accuracy,
    balanced_accuracy,
    brier,
    correct,
    expected_brier,
    expected_nll,
    mcc,
    nll,
)
from qualms.scores.ranking import (
    auprc,
    auroc,
    average_precision,
    fpr_at_tpr,
    weighted_auroc,
)
from qualms.scores.selective import aurc
from scores.laws import Case


def binary(rng, n):
    return {"probs": rng.beta(0.7, 0.9, n), "target": rng.integers(0, 2, n)}


def classes(rng, n):
    return {"probs": rng.dirichlet([0.5] * 4, n), "target": rng.integers(0, 4, n)}


def draws(rng, n):
    return {"probs": rng.dirichlet([0.5] * 3, (5, n)), "target": rng.integers(0, 3, n)}


def tenths(rng, n):
    """Draws in tenths, which no float64 holds: means tie, but only up to rounding."""
    counts = rng.multinomial(10, [0.5, 0.3, 0.2], (5, 3 * n))
    first, second = np.sort(counts.sum(axis=0), axis=1)[:, :-3:-1].T
    chosen = np.flatnonzero(first > second)[:n]  # of tied classes the lowest is first
    return {"probs": counts[:, chosen] / 10, "target": rng.integers(0, 3, n)}


def tied(rng, n):
    return {"probs": rng.integers(0, 9, n) / 8, "target": rng.integers(0, 2, n)}


def first_class_only(rng, n):
    return classes(rng, n) | {"target": np.zeros(n, dtype=int)}


def ranks(rng, n):
    positive = rng.random(n) < 0.4
    positive[:2] = [False, True]
    return {"score": rng.normal(size=n) + positive, "positive": positive}


def positives_only(rng, n):
    return {"score": rng.normal(size=n), "positive": np.ones(n, dtype=bool)}


def negatives_only(rng, n):
    return {"score": rng.normal(size=n), "positive": np.zeros(n, dtype=bool)}


def weights(rng, n):
    return {
        "score": rng.normal(size=n),
        "positive_weight": rng.random(n),
        "negative_weight": rng.random(n),
    }


def no_positive_weight(rng, n):
    return weights(rng, n) | {"positive_weight": np.zeros(n)}


MEAN = frozenset(
    {"permutation", "bounds", "empty", "dtype", "layout", "repeat", "nan", "one_class"}
)
RANK = MEAN | {"ties", "monotone", "rounding"}
MAP = frozenset({"permutation", "empty", "layout", "repeat", "nan"})

FORMS = {"P(y=1)": (binary, 0), "(N, C)": (classes, 0), "draws": (draws, 1)}
# Only what a single class leaves undefined is nan.
ONE_CLASS = {
    accuracy: None,
    nll: None,
    brier: None,
    balanced_accuracy: None,
    mcc: np.nan,
    macro_f1: None,
    macro_auroc: np.nan,
    top_k_accuracy: None,
    ece: None,
    adaptive_ece: None,
    classwise_ece: None,
    smooth_ece: None,
}


def sets(rng, n):
    return {"sets": rng.random((n, 6)) < 0.4, "target": rng.integers(0, 6, n)}


def sets_alone(rng, n):
    return {"sets": sets(rng, n)["sets"]}


def of_sets(score, make):
    return Case(
        score=score,
        make=make,
        laws=frozenset({"permutation", "bounds", "empty", "layout", "repeat"})
        | {"renaming"},
        classes={"sets": 1} | ({"target": None} if make is sets else {}),
    )


def fitted_size(rule):
    """Mean size of the sets that are fitted on the very items."""

    def value(probs, target):
        fitted = fit_conformal_sets(probs, target, alpha=0.3, rule=rule)
        return set_size(fitted.apply(probs))

    return value


def of_fitted(rule):
    return Case(
        score=fitted_size(rule),
        make=tenths,
        laws=frozenset({"permutation", "members", "renaming"}),
        axis={"probs": 1},
        members={"probs": 0},
        classes={"probs": 2, "target": None},
        name=f"size of {rule} sets of tenths",
    )


def of_probabilities(score, form, make, axis):
    return Case(
        score=score,
        make=make,
        laws=MEAN,
        axis={"probs": axis},
        one_class=first_class_only,
        one_class_value=ONE_CLASS[score],
        name=f"{score.__name__} of {form}",
    )


def of_tenths(score):
    return Case(
        score=score,
        make=tenths,
        laws=frozenset({"permutation", "members", "renaming"}),
        axis={"probs": 1},
        members={"probs": 0},
        classes={"probs": 2, "target": None},
        name=f"{score.__name__} of tenths",
    )


def ranked_by(part):
    """AURC of draws by their total, aleatoric or epistemic uncertainty."""

    def value(probs, target):
        wrong = ~correct(probs, target)
        return aurc(risk=wrong, uncertainty=getattr(decompose(probs), part))

    return value


def of_decomposed(part):
    return Case(
        score=ranked_by(part),
        make=tenths,
        laws=frozenset({"permutation", "members", "renaming"}),
        axis={"probs": 1},
        members={"probs": 0},
        classes={"probs": 2, "target": None},
        name=f"aurc by {part} uncertainty",
    )


def of_ties(score):
    return Case(
        score=score,
        make=tied,
        laws=frozenset({"permutation", "bounds", "repeat", "layout"}),
        name=f"{score.__name__} of tied confidences",
    )


def of_ranks(score, one_class, value):
    return Case(
        score=score,
        make=ranks,
        laws=RANK,
        rank="score",
        one_class=one_class,
        one_class_value=value,
        name=f"{score.__name__}, {one_class.__name__}",
    )


def distributions(rng, n):
    return {
        "probs": rng.dirichlet([0.5] * 4, n),
        "target_probs": rng.dirichlet([0.5] * 4, n),
    }


def drawn_distributions(rng, n):
    return distributions(rng, n) | {"probs": rng.dirichlet([0.5] * 4, (3, n))}


CASES = [
    *(
        Case(
            score=score,
            make=drawn_distributions,
            laws=frozenset({"permutation", "members", "renaming"}),
            axis={"probs": 1},
            members={"probs": 0},
            classes={"probs": 2, "target_probs": 1},
            name=f"{score.__name__} of draws",
        )
        for score in (expected_nll, expected_brier)
    ),
    *(
        Case(
            score=score,
            make=distributions,
            laws=frozenset({"permutation", "bounds", "empty", "layout", "repeat"})
            | {"dtype", "nan", "renaming"},
            classes={"probs": 1, "target_probs": 1},
        )
        for score in (expected_nll, expected_brier)
    ),
    *(
        of_probabilities(score, form, make, axis)
        for score in ONE_CLASS
        for form, (make, axis) in FORMS.items()
    ),
    *(of_tenths(score) for score in ONE_CLASS),
    *(of_sets(score, sets) for score in (set_coverage, size_stratified_coverage)),
    *(of_sets(score, sets_alone) for score in (set_size, singleton_share)),
    *(of_fitted(rule) for rule in ("lac", "aps", "raps")),
    *(of_decomposed(part) for part in ("total", "aleatoric", "epistemic")),
    *(of_ties(score) for score in (ece, adaptive_ece, classwise_ece, smooth_ece)),
    *(
        of_ranks(score, negatives_only, np.nan)
        for score in (auroc, auprc, average_precision, fpr_at_tpr)
    ),
    of_ranks(auroc, positives_only, np.nan),
    of_ranks(fpr_at_tpr, positives_only, np.nan),
    of_ranks(auprc, positives_only, 1.0),
    of_ranks(average_precision, positives_only, 1.0),
    Case(
        score=weighted_auroc,
        make=weights,
        laws=RANK,
        rank="score",
        one_class=no_positive_weight,
        one_class_value=np.nan,
    ),
    Case(
        score=decompose,
        make=lambda rng, n: {"probs": draws(rng, n)["probs"]},
        laws=MAP,
        axis={"probs": 1},
        value=lambda parts: float(parts.epistemic.mean()),
    ),
    Case(
        score=entropy,
        make=lambda rng, n: {"probs": classes(rng, n)["probs"]},
        laws=MAP | {"dtype"},
        value=lambda values: float(values.mean()),
    ),
]
