"""Calibration weighted for covariate shift, with weights learned from predictions.

Weighted conformal prediction (Tibshirani et al., 2019) needs the density ratio of test
to validation inputs. Predictions carry no features, but functions of them: the mean,
the variance and the selection scores. A logistic regression that tells test from
validation items by these gives the ratio. The intervals are then right as far as the
shift acts through what the predictions carry.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata

from qualms import scores
from qualms.evaluate._measured import RATE, Calibration, Measured
from qualms.predictions import Predictions

Array = NDArray[np.float64]


class Ratio(NamedTuple):
    """Density of test over that of validation inputs, at the items of both."""

    val: Array
    test: Array


def calibrate_weighted(measured: Measured, ratio: Ratio, alpha: float) -> Calibration:
    """One offset per item; infinite where validation has too little that is like it."""
    val = measured.val
    ends = val.lower, val.upper, val.target
    of_val, of_test = (
        scores.weighted_conformal_offset(*ends, ratio.val, own, alpha=alpha)
        for own in ratio
    )
    threshold = scores.selection_threshold(val.select, rate=RATE)
    return Calibration(of_val, of_test, threshold)


def density_ratio(val: Predictions, test: Predictions) -> Ratio:
    """Ratios (N,) of both splits from a classifier between them."""
    from sklearn.linear_model import LogisticRegression

    known, new = _covariates(val), _covariates(test)
    names = [name for name in known if name in new]
    columns = [_ranks(np.concatenate([known[n], new[n]])) for n in names]
    x = np.stack([*columns, *(c**2 for c in columns)], axis=1)
    is_test = np.arange(len(x)) >= val.n
    fitted = LogisticRegression(max_iter=1000).fit(x, is_test)
    odds = np.exp(fitted.decision_function(x)) * (val.n / test.n)
    return Ratio(odds[: val.n], odds[val.n :])


def _covariates(predictions: Predictions) -> dict[str, Array]:
    moments = scores.pool_gaussian(predictions.arrays["mean"], predictions.get("var"))
    selects = {name: a[0] for name, a in predictions.named("select").items()}
    return {"mean": moments.mean, "var": moments.var, **selects}


def _ranks(values: Array) -> Array:
    """Mid-ranks scaled to [-1, 1]: densities of far items span many orders."""
    ranks: Array = rankdata(values)
    return 2 * (ranks - 0.5) / len(ranks) - 1
