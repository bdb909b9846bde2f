"""Influence on referral curves and on thresholds from validation items."""

import numpy as np
import pytest

from qualms import scores
from qualms.inference import (
    OrderStatistic,
    influence_of,
    interval_of,
    mean_influence,
    quantile_influence,
    referral_influence,
    sampling_design,
)

ITEMS = 500
RNG = np.random.default_rng(8)
PROB = RNG.random(ITEMS)
TARGET = (RNG.random(ITEMS) < PROB).astype(int)
UNSURE = (0.1 * RNG.random(ITEMS) - np.abs(PROB - 0.5)).round(3)
CURVES = ["accuracy", "nll", "auroc", "auprc", "balanced_accuracy"]


def _read(curve, tau):
    return curve.area if tau is None else curve.at(tau)


@pytest.mark.parametrize("tau", [None, 0.5])
@pytest.mark.parametrize("oracle", [False, True])
@pytest.mark.parametrize("name", CURVES)
def test_the_standard_error_is_that_of_replicates(name, oracle, tau):
    curve = scores.referral_curve(name, PROB, TARGET, UNSURE, oracle)
    influence = referral_influence(curve, PROB, TARGET, UNSURE, tau=tau)
    assert influence.value == _read(curve, tau)
    rng = np.random.default_rng(0)
    drawn = []
    for _ in range(120):
        i = rng.integers(ITEMS, size=ITEMS)
        copy = scores.referral_curve(name, PROB[i], TARGET[i], UNSURE[i], oracle)
        drawn.append(_read(copy, tau))
    error = np.sqrt(sampling_design(ITEMS).spread(influence.values).variance)
    assert error == pytest.approx(np.std(drawn), rel=0.25)
    assert interval_of(influence).low < influence.value < interval_of(influence).high


def test_the_area_of_accuracy_is_one_minus_that_of_risk():
    curve = scores.referral_curve("accuracy", PROB, TARGET, UNSURE)
    influence = referral_influence(curve, PROB, TARGET, UNSURE)
    risk = 1.0 - scores.correct(PROB, TARGET)
    wanted = influence_of(scores.aurc, risk=risk, uncertainty=UNSURE)
    np.testing.assert_allclose(influence.values, -wanted.values)


def test_few_kept_items_of_a_class_give_no_interval():
    rare = (np.arange(ITEMS) % 50 == 0).astype(int)
    curve = scores.referral_curve("auroc", PROB, rare, UNSURE)
    influence = referral_influence(curve, PROB, rare, UNSURE, tau=0.5)
    assert "no interval holds below 10" in interval_of(influence).reason


def test_a_curve_of_other_items_is_refused():
    curve = scores.referral_curve("auroc", PROB, TARGET, UNSURE)
    with pytest.raises(ValueError, match="curve is of 500 items"):
        referral_influence(curve, PROB[:9], TARGET[:9], UNSURE[:9])


def test_thresholds_carry_the_error_of_validation_items():
    rng = np.random.default_rng(1)
    val, test = rng.normal(size=300), rng.normal(size=4000)
    influence = quantile_influence(
        lambda cut: mean_influence(test <= cut), [OrderStatistic(val, 271)]
    )
    design = sampling_design(4000).joined(sampling_design(300))
    error = np.sqrt(design.spread(influence.values).variance)
    copies = [np.mean(test <= np.sort(rng.choice(val, 300))[270]) for _ in range(400)]
    own = np.mean(test <= np.sort(val)[270])
    wanted = np.sqrt(np.var(copies) + own * (1 - own) / 4000)
    assert error == pytest.approx(wanted, rel=0.25)
    assert interval_of(influence, design=design).high < 1.0


def test_two_thresholds_of_the_same_items_add_up():
    rng = np.random.default_rng(2)
    first, second, test = rng.normal(size=(3, 200))

    def kept(one, other):
        return mean_influence((test <= one) & (test <= other))

    influence = quantile_influence(
        kept, [OrderStatistic(first, 150), OrderStatistic(second, 100)]
    )
    assert len(influence.values) == 400
    assert influence.value == np.mean(
        test <= min(np.sort(first)[149], np.sort(second)[99])
    )


def test_too_few_validation_items_leave_no_interval():
    influence = quantile_influence(
        lambda cut: mean_influence([cut]), [OrderStatistic([1.0, 2.0], 3)]
    )
    assert "too few" in interval_of(influence).reason
