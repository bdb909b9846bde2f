"""The plain bootstrap: what it draws, its intervals, and paired differences."""

import numpy as np
import pytest
from scipy import stats

from qualms.scores import (
    auroc,
    bootstrap,
    bootstrap_interval,
    paired_difference,
    percentile_interval,
)
from qualms.scores.resampling import drawn_counts


def counts(items, replicates, **options):
    return np.stack(list(drawn_counts(items, replicates=replicates, **options)))


def test_a_replicate_depends_on_seed_and_number_alone():
    first, again = counts(50, 5, seed=3), counts(50, 9, seed=3)
    np.testing.assert_array_equal(first, again[:5])
    assert (first[4] != first[3]).any()
    assert (first[4] != counts(50, 5, seed=4)[4]).any()


def test_counts_have_the_moments_of_a_multinomial():
    n, draws = 20, 4000
    drawn = counts(n, draws)
    assert (drawn.sum(axis=1) == n).all()
    # Mean 1 and variance 1 - 1/n per item; five standard errors of each.
    np.testing.assert_allclose(drawn.mean(axis=0), 1, atol=5 / np.sqrt(draws))
    np.testing.assert_allclose(drawn.var(axis=0), 1 - 1 / n, atol=0.17)
    pairs = np.cov(drawn.T)[~np.eye(n, dtype=bool)]
    assert pairs.mean() == pytest.approx(-1 / n, abs=0.005)


def test_every_stratum_keeps_its_size():
    strata = np.repeat(["a", "b", "c"], [1, 30, 69])
    shuffled = np.random.default_rng(0).permutation(strata)
    for drawn in counts(100, 20, strata=shuffled):
        assert drawn[shuffled == "a"].sum() == 1
        assert drawn[shuffled == "b"].sum() == 30
        assert drawn[shuffled == "c"].sum() == 69


def test_clusters_move_together():
    cluster = np.random.default_rng(1).integers(0, 30, 100)
    names = np.array([f"patient {c}" for c in cluster])
    units = np.unique(cluster)
    for drawn in counts(100, 20, cluster=names):
        per_cluster = [set(drawn[cluster == unit].tolist()) for unit in units]
        assert all(len(values) == 1 for values in per_cluster)
        assert sum(values.pop() for values in per_cluster) == len(units)


def test_a_cluster_belongs_to_the_stratum_of_its_highest_class():
    # Two eyes each: patients 0..4 healthy, 5..7 with one bad eye, 8..9 with two.
    grade = np.array([[0, 0]] * 5 + [[1, 0]] * 3 + [[1, 1]] * 2).ravel()
    patient = np.arange(20) // 2
    for drawn in counts(20, 50, strata=grade, cluster=patient):
        assert drawn[::2][:5].sum() == 5
        assert drawn[::2][5:].sum() == 5


def test_wrong_arguments_are_refused():
    with pytest.raises(ValueError, match="items must be at least 1, got 0"):
        counts(0, 1)
    with pytest.raises(ValueError, match="replicates must be at least 1, got 0"):
        bootstrap(np.mean, [1.0, 2.0], replicates=0)
    with pytest.raises(ValueError, match=r"strata must have shape \(3,\), got \(2,\)"):
        counts(3, 1, strata=[0, 1])
    with pytest.raises(ValueError, match=r"cluster must be given .* row 1 is nan"):
        counts(2, 1, cluster=[0.0, np.nan])
    with pytest.raises(TypeError, match="must return one number, got list"):
        bootstrap(lambda values: list(values), [1.0, 2.0], replicates=1)
    with pytest.raises(TypeError, match="items on their first axis; bind"):
        bootstrap(np.mean, 1.0)
    with pytest.raises(ValueError, match=r"got lengths \[2, 3\]; pass draws"):
        bootstrap(auroc, [0.1, 0.2], [0, 1, 1])


def test_replicates_are_scores_of_repeated_items():
    rng = np.random.default_rng(9)
    score, positive = rng.integers(0, 9, 80), rng.random(80) < 0.4
    design = {"strata": positive, "cluster": np.arange(80) // 3, "seed": 4}
    samples = bootstrap(auroc, score, positive, replicates=5, **design)
    for sample, count in zip(samples, counts(80, 5, **design), strict=True):
        assert sample == auroc(
            score=score.repeat(count), positive=positive.repeat(count)
        )


def test_undefined_replicates_are_left_out_and_counted():
    interval = percentile_interval([1.0, np.nan, 3.0, np.nan], level=0.5)
    assert (interval.low, interval.high, interval.undefined) == (1.5, 2.5, 0.5)
    nothing = percentile_interval([np.nan, np.nan])
    assert np.isnan([nothing.low, nothing.high]).all()
    assert nothing.undefined == 1.0


def test_wrong_interval_arguments_are_refused():
    with pytest.raises(ValueError, match="level must lie between 0 and 1, got 95"):
        percentile_interval([1.0], level=95)
    with pytest.raises(ValueError, match="at least one"):
        percentile_interval([])


def test_one_class_only_has_an_undefined_interval():
    estimate = bootstrap_interval(auroc, [0.1, 0.2, 0.3], [1, 1, 1], replicates=5)
    assert np.isnan([estimate.value, estimate.low, estimate.high]).all()
    assert estimate.undefined == 1.0


def test_strata_keep_rare_classes_in_every_replicate():
    score, positive = np.arange(20.0), np.arange(20) == 18
    loose = bootstrap_interval(auroc, score, positive, replicates=200)
    tight = bootstrap_interval(auroc, score, positive, strata=positive, replicates=200)
    # Without strata the one positive is missed with probability (1 - 1/20)^20.
    assert loose.undefined == pytest.approx(0.95**20, abs=0.12)
    assert tight.undefined == 0.0


def test_the_interval_covers_a_known_mean_as_often_as_it_says():
    rng = np.random.default_rng(5)
    hits = []
    for seed in range(300):
        estimate = bootstrap_interval(
            np.mean, rng.normal(3.0, 2.0, 60), replicates=200, seed=seed
        )
        hits.append(estimate.low <= 3.0 <= estimate.high)
    # 95 % less the known shortfall of percentile intervals at n = 60 (about 1.5 %);
    # three standard errors of 300 trials are 4 %.
    assert 0.89 <= np.mean(hits) <= 0.98


def test_the_interval_is_that_of_scipy_up_to_chance():
    values = np.random.default_rng(6).exponential(size=200)
    ours = bootstrap_interval(np.mean, values, replicates=4000)
    theirs = stats.bootstrap(
        (values,),
        np.mean,
        n_resamples=4000,
        method="percentile",
        rng=np.random.default_rng(7),
    ).confidence_interval
    spread = theirs.high - theirs.low
    assert ours.low == pytest.approx(theirs.low, abs=0.04 * spread)
    assert ours.high == pytest.approx(theirs.high, abs=0.04 * spread)


def test_two_equal_eyes_are_one_patient():
    values = np.random.default_rng(8).normal(size=150).repeat(2)
    patient = np.arange(300) // 2
    eyes = bootstrap_interval(np.mean, values, replicates=1000)
    patients = bootstrap_interval(np.mean, values, cluster=patient, replicates=1000)
    widening = (patients.high - patients.low) / (eyes.high - eyes.low)
    assert widening == pytest.approx(np.sqrt(2), rel=0.12)


def samples_of(values_by_name, replicates=400, seed=0):
    return {
        name: bootstrap(np.mean, values, replicates=replicates, seed=seed)
        for name, values in values_by_name.items()
    }


def means(values_by_name):
    return {name: float(np.mean(values)) for name, values in values_by_name.items()}


def test_a_file_does_not_differ_from_itself():
    rng = np.random.default_rng(0)
    score, positive = rng.normal(size=200), rng.random(200) < 0.3
    one, two = (bootstrap(auroc, score, positive, replicates=50) for _ in range(2))
    difference = paired_difference(
        a_samples=one, b_samples=two, a_value=0.5, b_value=0.5
    )
    assert (difference.value, difference.low, difference.high, difference.p) == (
        0.0,
        0.0,
        0.0,
        1.0,
    )


def test_the_difference_is_of_the_values_and_its_interval_of_the_samples():
    difference = paired_difference(
        a_samples=[3.0, 4.0, 5.0],
        b_samples=[1.0, 1.0, 1.0],
        a_value=4.5,
        b_value=1.0,
        level=0.5,
    )
    assert (difference.value, difference.low, difference.high) == (3.5, 2.5, 3.5)


@pytest.mark.parametrize(
    ("differences", "p"),
    [
        ([1, 1, 1, 1], 2 / 5),
        ([-1, -1, -1, -1], 2 / 5),
        ([1, 1, 1, -1, 1, 1, 1, 1, 1], 4 / 10),
        ([1, 1, 0, 1, 1, 1, 1, 1, 1], 4 / 10),
        ([1, -1, 1, -1], 1.0),
        ([1, np.nan, 1, np.nan], 2 / 3),
    ],
)
def test_p_counts_the_replicates_across_zero_and_the_observed_one(differences, p):
    difference = paired_difference(
        a_samples=differences,
        b_samples=np.zeros(len(differences)),
        a_value=1.0,
        b_value=0.0,
    )
    assert difference.p == pytest.approx(p)


def test_a_difference_undefined_everywhere_is_nan():
    difference = paired_difference(
        a_samples=[np.nan], b_samples=[1.0], a_value=np.nan, b_value=1.0
    )
    assert np.isnan(
        [difference.value, difference.low, difference.high, difference.p]
    ).all()


def test_pairing_sees_what_unpaired_intervals_do_not():
    rng = np.random.default_rng(1)
    shared = rng.normal(size=200)
    table = {"a": shared + 0.05 + 0.1 * rng.normal(size=200), "b": shared}
    samples = samples_of(table)
    spread = np.quantile(samples["a"], [0.025, 0.975])
    assert spread[0] < np.mean(table["b"]) < spread[1]
    difference = paired_difference(
        a_samples=samples["a"],
        b_samples=samples["b"],
        **dict(zip(("a_value", "b_value"), means(table).values(), strict=True)),
    )
    assert difference.low > 0.0
    assert difference.p < 0.05


def test_equal_methods_are_told_apart_as_rarely_as_stated():
    rng = np.random.default_rng(2)
    told_apart = 0
    for seed in range(200):
        shared = rng.normal(size=60)
        table = {name: shared + rng.normal(size=60) for name in "ab"}
        samples = samples_of(table, replicates=120, seed=seed)
        p = paired_difference(
            a_samples=samples["a"],
            b_samples=samples["b"],
            **dict(zip(("a_value", "b_value"), means(table).values(), strict=True)),
        ).p
        told_apart += p <= 0.05
    # 5 % plus the percentile bootstrap's known excess at n = 60 (about 1.5 %), with
    # three standard errors of 200 trials (4.6 %).
    assert 0.005 <= told_apart / 200 <= 0.11


def test_wrong_samples_are_refused():
    with pytest.raises(ValueError, match="same length, got 2 and 1; bootstrap both"):
        paired_difference(
            a_samples=[1.0, 2.0], b_samples=[1.0], a_value=1.0, b_value=1.0
        )
    with pytest.raises(ValueError, match="b_samples must have shape"):
        paired_difference(a_samples=[1.0], b_samples=[], a_value=1.0, b_value=1.0)
