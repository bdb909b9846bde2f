"""Tests of two samples: outside references, and a level that holds."""

import numpy as np
import pytest
from scipy import stats

from qualms.inference import (
    Bounded,
    compare_classes,
    compare_values,
    difference_of_samples,
    holm,
    wilson_ends,
)

RNG = np.random.default_rng(3)
TIED = RNG.integers(0, 6, 12).astype(float), RNG.integers(1, 8, 9).astype(float)
PLAIN = RNG.normal(size=25), RNG.normal(0.4, 1.5, size=15)


@pytest.mark.parametrize("samples", [TIED, PLAIN], ids=["ties", "no ties"])
def test_values_are_compared_as_scipy_does(samples):
    found = compare_values(*samples, permutations=4000)
    method = stats.PermutationMethod(n_resamples=4000, rng=np.random.default_rng(0))
    known = stats.anderson_ksamp(samples, variant="midrank", method=method).pvalue
    assert found.p == pytest.approx(known, abs=4 * np.sqrt(known / 4000 * 2))
    assert found.distance == pytest.approx(stats.ks_2samp(*samples).statistic)


def test_classes_are_compared_as_scipy_does():
    # Where all classes are equally frequent, the statistic is Pearson's.
    table = np.array([[10, 5, 6, 0], [4, 9, 8, 0]])
    found = compare_classes(*table, permutations=4000)
    known = stats.chi2_contingency(
        table[:, :3],
        correction=False,
        method=stats.PermutationMethod(n_resamples=4000, rng=np.random.default_rng(0)),
    ).pvalue
    assert found.p == pytest.approx(known, abs=0.03)
    shares = table / table.sum(axis=1, keepdims=True)
    assert found.distance == pytest.approx(np.abs(shares[0] - shares[1]).sum() / 2)


def test_two_classes_are_compared_as_by_pearson():
    table = np.array([[12, 5], [7, 11]])
    found = compare_classes(*table, permutations=4000)
    # Of two classes the chi-square of a split grows with how far it is from expected.
    drawn = stats.hypergeom(35, 19, 17)
    apart = np.abs(np.arange(18) - drawn.mean())
    known = drawn.pmf(np.arange(18))[apart >= abs(12 - drawn.mean()) - 1e-9].sum()
    assert found.p == pytest.approx(known, abs=0.03)


def test_a_rare_class_does_not_hide_what_large_ones_say():
    rare = np.ones(60, int)
    before = np.concatenate([[500, 300, 140], rare])
    now = np.concatenate([[65, 90, 42], 0 * rare])
    assert compare_classes(before, now).p < 0.01
    assert stats.chi2_contingency(np.stack([before, now])).pvalue > 0.05


def test_order_side_and_direction_do_not_matter():
    one, other = TIED
    moved = np.random.default_rng(0).permutation(one)
    found = compare_values(one, other, permutations=4000)
    for again in (
        compare_values(moved, other, permutations=4000),
        compare_values(other, one, permutations=4000),
        compare_values(-one, -other, permutations=4000),
        compare_values(one**3, other**3, permutations=4000),
    ):
        assert again.p == pytest.approx(found.p, abs=0.02)
        assert again.distance == pytest.approx(found.distance)


def test_samples_without_any_difference_have_p_1():
    same = compare_values([2.0, 2.0], [2.0])
    assert (same.p, same.distance, same.beyond_chance) == (1.0, 0.0, 0.0)
    assert compare_classes([0, 3], [0, 9]).p == 1.0


def test_many_classes_are_far_apart_by_chance_alone():
    drawn = np.random.default_rng(0).multinomial(400, np.full(300, 1 / 300), size=2)
    found = compare_classes(*drawn)
    assert found.distance > 0.2
    assert found.beyond_chance < 0.1


@pytest.mark.parametrize("sizes", [(60, 8), (25, 40)])
def test_the_level_holds_with_ties_and_unequal_sizes(sizes):
    rng = np.random.default_rng(0)
    rejected = np.zeros(2)
    times = 400
    for seed in range(times):
        # Few values, most of them at one end.
        drawn = rng.geometric(0.4, sum(sizes)).clip(max=5) - 1
        one, other = np.split(drawn, [sizes[0]])
        counts = (np.bincount(each, minlength=5) for each in (one, other))
        kept = {"permutations": 99, "seed": seed}
        rejected += [
            compare_values(one, other, **kept).p <= 0.05,
            compare_classes(*counts, **kept).p <= 0.05,
        ]
    assert rejected.max() <= stats.binom.ppf(0.999, times, 0.05)
    assert rejected.min() >= stats.binom.ppf(0.001, times, 0.03)


def test_holm_is_that_of_the_textbook():
    p = np.array([0.01, 0.04, 0.03, 0.005])
    assert holm(p).tolist() == pytest.approx([0.03, 0.06, 0.06, 0.02])


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: compare_classes([1, 2], [1]), "same classes, got 2 and 1"),
        (lambda: compare_classes([1.5], [1]), "must be counts"),
        (lambda: compare_classes([0], [1]), "of at least one item"),
        (lambda: compare_classes([2, -1], [1, 1]), "must not be negative, got -1"),
        (lambda: compare_values([np.nan], [1.0]), "first"),
    ],
)
def test_what_cannot_be_compared_is_refused(call, sentence):
    with pytest.raises(ValueError, match=sentence):
        call()


def test_two_samples_differ_as_newcombe_says():
    """His example (1998, table II, method 10): 56 of 70 against 48 of 80."""
    shares = []
    for hits, n in ((56, 70), (48, 80)):
        ends = wilson_ends(np.array([hits / n]), np.array([float(n)]), 1.959964)
        shares.append(Bounded(hits / n, *(float(end[0]) for end in ends)))
    found = difference_of_samples(*shares)
    assert found == pytest.approx((0.2, 0.0524, 0.3339), abs=1e-4)
