"""Laws of selective prediction: risks, areas and referral curves."""

import numpy as np

from qualms.scores.as_published import retina
from qualms.scores.referral import referral_curve
from qualms.scores.selective import (
    augrc,
    aurc,
    coverage_at_risk,
    eaurc,
    risk_at_coverage,
    threshold_aurc,
    threshold_eaurc,
)
from scores.laws import Case

RANKING = frozenset(
    {"permutation", "ties", "monotone", "bounds", "empty", "dtype", "layout", "nan"}
    | {"rounding"}
)
CURVE = RANKING - {"bounds"}


def losses(rng, n):
    risk = rng.random(n)
    return {"risk": risk, "uncertainty": risk + rng.normal(size=n)}


def errors(rng, n):
    wrong = rng.random(n) < 0.3
    return {"risk": wrong, "uncertainty": wrong + rng.normal(size=n)}


def no_errors(rng, n):
    return {"risk": np.zeros(n), "uncertainty": rng.normal(size=n)}


def binary(rng, n):
    target = rng.integers(0, 2, n)
    probs = 1 / (1 + np.exp(1 - 2 * target - rng.normal(size=n)))
    return {"probs": probs, "target": target, "uncertainty": rng.normal(size=n)}


def classes(rng, n):
    return {
        "probs": rng.dirichlet([0.5] * 4, n),
        "target": rng.integers(0, 4, n),
        "uncertainty": rng.normal(size=n),
    }


def negatives_only(rng, n):
    return binary(rng, n) | {"target": np.zeros(n, dtype=int)}


def positives_only(rng, n):
    return binary(rng, n) | {"target": np.ones(n, dtype=int)}


def predictions(rng, n):
    return {"probs": rng.beta(0.7, 0.9, n), "target": rng.integers(0, 2, n)}


def area(curve):
    return curve.area


def risk_case(score, make, **options):
    return Case(
        score,
        make,
        RANKING | {"one_class"},
        options=options,
        rank="uncertainty",
        one_class=no_errors,
        one_class_value=1.0 if score is coverage_at_risk else 0.0,
        name=f"{score.__name__}-{make.__name__}",
    )


def curve_case(name, make, one_class, value, oracle=False):
    return Case(
        referral_curve,
        make,
        CURVE | {"one_class"},
        options={"name": name, "oracle": oracle},
        rank="uncertainty",
        value=area,
        one_class=one_class,
        one_class_value=value,
        name=f"referral_curve-{name}-{make.__name__}{'-oracle' * oracle}",
    )


CASES = [
    risk_case(aurc, losses),
    risk_case(aurc, errors),
    risk_case(eaurc, losses),
    risk_case(eaurc, errors),
    risk_case(augrc, losses),
    risk_case(augrc, errors),
    risk_case(risk_at_coverage, losses, coverage=0.7),
    risk_case(risk_at_coverage, errors),
    risk_case(coverage_at_risk, losses, risk_level=0.45),
    risk_case(coverage_at_risk, errors, risk_level=0.25),
    risk_case(threshold_aurc, losses),
    risk_case(threshold_aurc, errors),
    risk_case(threshold_eaurc, losses),
    risk_case(threshold_eaurc, errors),
    curve_case("accuracy", binary, negatives_only, None),
    curve_case("accuracy", classes, negatives_only, None, oracle=True),
    curve_case("nll", binary, negatives_only, None),
    curve_case("nll", classes, positives_only, None, oracle=True),
    curve_case("auroc", binary, negatives_only, np.nan),
    curve_case("auroc", binary, positives_only, np.nan, oracle=True),
    curve_case("auprc", binary, negatives_only, np.nan),
    curve_case("auprc", binary, positives_only, 1.0, oracle=True),
    curve_case("balanced_accuracy", binary, positives_only, None),
    curve_case("balanced_accuracy", classes, negatives_only, None, oracle=True),
    *(
        Case(
            score,
            predictions,
            frozenset(
                {"permutation", "bounds", "empty", "dtype", "layout", "repeat", "nan"}
            ),
            name=f"retina.{score.__name__}",
        )
        for score in (retina.nll, retina.log_loss)
    ),
]
