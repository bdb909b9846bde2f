"""Laws of the regression, interval and conformal scores."""

from qualms.scores.conformal import (
    conformal_offset,
    prediction_rate,
    selection_threshold,
    weighted_conformal_offset,
)
from qualms.scores.intervals import (
    coverage,
    interval_length,
    interval_score,
    inverted_fraction,
)
from qualms.scores.regression import (
    crps_ensemble,
    crps_gaussian,
    gaussian_nll,
    mae,
    pinball,
    pit_mean,
    pit_spread,
    regression_ece,
    rmse,
)
from scores.laws import Case

ALWAYS = frozenset({"permutation", "bounds", "empty", "dtype", "layout", "nan"})
MEAN = ALWAYS | {"repeat"}
ORDER = ALWAYS - {"bounds"}


def points(rng, n):
    return {"mean": rng.normal(size=n), "target": rng.normal(size=n)}


def gaussians(rng, n):
    return points(rng, n) | {"var": rng.gamma(2.0, size=n)}


def some_without_variance(rng, n):
    return gaussians(rng, n) | {"var": rng.gamma(2.0, size=n) * (rng.random(n) < 0.7)}


def quantiles(rng, n):
    return {"prediction": rng.normal(size=n), "target": rng.normal(size=n)}


def draws(rng, n):
    return {"draws": rng.normal(size=(6, n)), "target": rng.normal(size=n)}


def ends(rng, n):
    lower = rng.normal(size=n)
    return {"lower": lower, "upper": lower + rng.normal(0.8, 0.5, size=n)}


def intervals(rng, n):
    return ends(rng, n) | {"target": rng.normal(size=n)}


def selects(rng, n):
    return {"select": rng.normal(size=n)}


def weighted(rng, n):
    # Test items are not among the n validation items: their weights stay in place.
    return intervals(rng, n) | {
        "weight": rng.exponential(size=n),
        "test_weight": rng.exponential(size=9),
    }


CASES = [
    Case(mae, points, MEAN),
    Case(rmse, points, MEAN),
    Case(gaussian_nll, gaussians, MEAN),
    Case(pit_mean, gaussians, MEAN),
    Case(pit_spread, gaussians, MEAN),
    Case(pinball, quantiles, MEAN, {"level": 0.9}),
    Case(crps_gaussian, gaussians, MEAN),
    Case(crps_gaussian, some_without_variance, MEAN, name="crps_gaussian var 0"),
    Case(
        crps_ensemble,
        draws,
        MEAN | {"members"},
        axis={"draws": 1},
        members={"draws": 0},
    ),
    Case(regression_ece, gaussians, MEAN),
    Case(regression_ece, some_without_variance, MEAN, name="regression_ece var 0"),
    Case(coverage, intervals, MEAN),
    Case(interval_length, ends, MEAN),
    Case(interval_score, intervals, MEAN, {"alpha": 0.1}),
    Case(inverted_fraction, ends, MEAN),
    Case(prediction_rate, selects, MEAN, {"threshold": 0.3}),
    Case(selection_threshold, selects, ORDER | {"repeat"}, {"rate": 0.8}),
    Case(conformal_offset, intervals, ORDER, {"alpha": 0.1}),
    Case(
        weighted_conformal_offset,
        weighted,
        ORDER,
        {"alpha": 0.1},
        axis={"test_weight": None},
        value=lambda offset: float(offset[0]),
    ),
]
