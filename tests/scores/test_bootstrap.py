"""Resampled weights, bootstrap replicates and their intervals."""

from functools import partial

import numpy as np
import pytest
from scipy import stats

from qualms.scores import (
    Resampling,
    aurc_plan,
    auroc_plan,
    calibration,
    intervals,
    mean_plan,
    ood,
    proper,
    ranking,
    regression,
    replay_plan,
    retrieval,
    selective,
)
from qualms.scores.resampling import (
    bootstrap,
    bootstrap_interval,
    percentile_interval,
    plan_of,
)


def all_weights(resampling, draws):
    return np.stack([resampling.weights(b) for b in range(draws)])


def splitmix(state):
    mask = 2**64 - 1
    while True:
        state = (state + 0x9E3779B97F4A7C15) & mask
        z = ((state ^ (state >> 30)) * 0xBF58476D1CE4E5B9) & mask
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & mask
        yield z ^ (z >> 31)


def plain_weights(n, seed, replicate):
    """The documented generator in plain Python: splitmix64, Lemire's bounded draw."""
    stream = splitmix(next(splitmix(next(splitmix(seed)) + replicate)))
    counts = [0] * n
    drawn = 0
    while drawn < n:
        product = (next(stream) >> 32) * n
        if product % 2**32 >= 2**32 % n:
            counts[product >> 32] += 1
            drawn += 1
    return counts


@pytest.mark.parametrize(
    ("n", "seed", "replicate"), [(1, 0, 0), (10, 0, 3), (97, 8, 1), (50_000, 1, 2)]
)
def test_weights_are_those_of_the_documented_generator(n, seed, replicate):
    weights = Resampling(n, seed=seed).weights(replicate)
    assert weights.tolist() == plain_weights(n, seed, replicate)


def test_a_replicate_depends_on_seed_and_number_alone():
    first, again = Resampling(50, seed=3), Resampling(50, seed=3)
    later = [first.weights(b) for b in range(5)][4]
    np.testing.assert_array_equal(later, again.weights(4))
    assert (later != again.weights(3)).any()
    assert (later != Resampling(50, seed=4).weights(4)).any()


@pytest.mark.parametrize("cluster", [None, np.arange(3000) // 2])
def test_a_block_has_the_weights_of_its_replicates(cluster):
    strata = np.random.default_rng(0).integers(0, 3, 3000)
    resampling = Resampling(3000, strata=strata, cluster=cluster, seed=5)
    rows = [resampling.weights(b) for b in range(2, 9)]
    np.testing.assert_array_equal(resampling.block(range(2, 9)), rows)


def test_weights_have_the_moments_of_a_multinomial():
    n, draws = 20, 4000
    weights = all_weights(Resampling(n), draws)
    assert (weights.sum(axis=1) == n).all()
    # Mean 1 and variance 1 - 1/n per item; five standard errors of each.
    np.testing.assert_allclose(weights.mean(axis=0), 1, atol=5 / np.sqrt(draws))
    np.testing.assert_allclose(weights.var(axis=0), 1 - 1 / n, atol=0.17)
    pairs = np.cov(weights.T)[~np.eye(n, dtype=bool)]
    assert pairs.mean() == pytest.approx(-1 / n, abs=0.005)


def test_counts_of_one_item_are_binomial():
    counts = all_weights(Resampling(3, seed=1), 3000)[:, 0]
    expected = 3000 * stats.binom.pmf(range(4), 3, 1 / 3)
    observed = np.bincount(counts, minlength=4)
    assert stats.chisquare(observed, expected).pvalue > 1e-3


def test_every_stratum_keeps_its_size():
    strata = np.repeat(["a", "b", "c"], [1, 30, 69])
    shuffled = np.random.default_rng(0).permutation(strata)
    for weights in all_weights(Resampling(100, strata=shuffled), 20):
        assert weights[shuffled == "a"].sum() == 1
        assert weights[shuffled == "b"].sum() == 30
        assert weights[shuffled == "c"].sum() == 69


def test_clusters_move_together():
    cluster = np.random.default_rng(1).integers(0, 30, 100)
    names = np.array([f"patient {c}" for c in cluster])
    units = np.unique(cluster)
    for weights in all_weights(Resampling(100, cluster=names), 20):
        per_cluster = [set(weights[cluster == unit].tolist()) for unit in units]
        assert all(len(values) == 1 for values in per_cluster)
        assert sum(values.pop() for values in per_cluster) == len(units)


def test_a_cluster_belongs_to_the_stratum_of_its_highest_class():
    # Two eyes each: patients 0..4 healthy, 5..7 with one bad eye, 8..9 with two.
    grade = np.array([[0, 0]] * 5 + [[1, 0]] * 3 + [[1, 1]] * 2).ravel()
    patient = np.arange(20) // 2
    for weights in all_weights(Resampling(20, strata=grade, cluster=patient), 50):
        assert weights[::2][:5].sum() == 5
        assert weights[::2][5:].sum() == 5


def test_wrong_resampling_arguments_are_refused():
    with pytest.raises(ValueError, match="at least one item, got 0"):
        Resampling(0)
    with pytest.raises(ValueError, match=r"strata must have shape \(3,\), got \(2,\)"):
        Resampling(3, strata=[0, 1])
    with pytest.raises(ValueError, match=r"cluster must be given .* row 1 is nan"):
        Resampling(2, cluster=[0.0, np.nan])
    with pytest.raises(ValueError, match="replicate must be 0 or more, got -1"):
        Resampling(2).weights(-1)


def test_all_plans_see_the_same_replicates():
    values = np.random.default_rng(2).normal(size=40)
    both = {"mean": mean_plan(values), "shifted": mean_plan(values + 1)}
    samples = bootstrap(both, Resampling(40), replicates=30)
    np.testing.assert_allclose(samples["shifted"], samples["mean"] + 1, rtol=1e-12)
    alone = bootstrap({"mean": both["mean"]}, Resampling(40), replicates=30)
    np.testing.assert_array_equal(alone["mean"], samples["mean"])


def test_progress_counts_every_replicate():
    seen = []
    bootstrap(
        {"mean": mean_plan([1.0, 2.0])},
        Resampling(2),
        replicates=3,
        progress=lambda done, total: seen.append((done, total)),
    )
    assert seen == [(1, 3), (2, 3), (3, 3)]


def test_wrong_bootstrap_arguments_are_refused():
    plan = mean_plan([1.0, 2.0])
    with pytest.raises(ValueError, match=r"plan 'mean' is for 2 items.* for 3"):
        bootstrap({"mean": plan}, Resampling(3))
    with pytest.raises(ValueError, match="replicates must be at least 1, got 0"):
        bootstrap({"mean": plan}, Resampling(2), replicates=0)


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
    estimate = bootstrap_interval(
        ranking.auroc, [0.1, 0.2, 0.3], [1, 1, 1], replicates=5
    )
    assert np.isnan([estimate.value, estimate.low, estimate.high]).all()
    assert estimate.undefined == 1.0


def test_strata_keep_rare_classes_in_every_replicate():
    score, positive = np.arange(20.0), np.arange(20) == 18
    loose = bootstrap_interval(ranking.auroc, score, positive, replicates=200)
    tight = bootstrap_interval(
        ranking.auroc, score, positive, strata=positive, replicates=200
    )
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


def test_the_generic_path_gives_the_replicates_of_the_plan():
    rng = np.random.default_rng(9)
    score, positive = rng.integers(0, 9, 80), rng.random(80) < 0.4
    doubt = rng.random(80)
    wrong = positive.astype(float)
    samples = bootstrap(
        {
            "auroc": auroc_plan(score, positive),
            "auroc replayed": replay_plan(ranking.auroc, score, positive),
            "aurc": aurc_plan(wrong, doubt),
            "aurc replayed": replay_plan(selective.aurc, wrong, doubt),
        },
        Resampling(80, strata=positive, cluster=np.arange(80) // 3, seed=4),
        replicates=25,
    )
    for name in ("auroc", "aurc"):
        np.testing.assert_allclose(
            samples[name], samples[f"{name} replayed"], rtol=1e-12
        )


def probs_and_target(rng, n):
    probs = rng.dirichlet(np.ones(3), n)
    return probs, rng.integers(0, 3, n)


def score_and_positive(rng, n):
    return rng.normal(size=n).round(1), rng.random(n) < 0.4


def risk_and_doubt(rng, n):
    return rng.random(n).round(1), rng.random(n).round(1)


def shares(rng, n):
    return rng.random(n).round(1), rng.random(n), rng.random(n)


def correct_shifted_doubt(rng, n):
    return rng.random(n) < 0.7, rng.random(n) < 0.3, np.round(rng.random(n), 1)


def mean_and_target(rng, n):
    return np.round(rng.normal(size=n), 1), np.round(rng.normal(size=n), 1)


def mean_var_target(rng, n):
    return rng.normal(size=n), rng.uniform(0.1, 2, n), rng.normal(size=n)


def bounds(rng, n):
    lower = rng.normal(size=n)
    return lower, lower + rng.uniform(-0.2, 2, n)


def bounds_and_target(rng, n):
    return (*bounds(rng, n), rng.normal(size=n))


PLANNED = [
    (proper.accuracy, probs_and_target),
    (proper.nll, probs_and_target),
    (proper.brier, probs_and_target),
    (proper.balanced_accuracy, probs_and_target),
    (proper.mcc, probs_and_target),
    (calibration.ece, probs_and_target),
    (partial(calibration.ece, bins=4), probs_and_target),
    (calibration.adaptive_ece, probs_and_target),
    (calibration.classwise_ece, probs_and_target),
    (calibration.smooth_ece, probs_and_target),
    (ranking.auroc, score_and_positive),
    (ranking.weighted_auroc, shares),
    (ranking.auprc, score_and_positive),
    (ranking.average_precision, score_and_positive),
    (ranking.fpr_at_tpr, score_and_positive),
    (partial(ranking.fpr_at_tpr, tpr=0.5), score_and_positive),
    (ood.ood_auroc, score_and_positive),
    (ood.ood_auprc, score_and_positive),
    (ood.ood_fpr95, score_and_positive),
    (ood.ood_found, score_and_positive),
    (partial(ood.ood_found, share=0.3), score_and_positive),
    (selective.aurc, risk_and_doubt),
    (selective.eaurc, risk_and_doubt),
    (selective.augrc, risk_and_doubt),
    (selective.risk_at_coverage, risk_and_doubt),
    (ood.scod_auroc, correct_shifted_doubt),
    (partial(ood.scod_aurc, cost=0.4), correct_shifted_doubt),
    (regression.mae, mean_and_target),
    (regression.rmse, mean_and_target),
    (regression.gaussian_nll, mean_var_target),
    (regression.crps_gaussian, mean_var_target),
    (regression.regression_ece, mean_var_target),
    (intervals.coverage, bounds_and_target),
    (intervals.interval_length, bounds),
    (partial(intervals.interval_score, alpha=0.2), bounds_and_target),
    (intervals.inverted_fraction, bounds),
    (retrieval.crop_rate, mean_and_target),
]


def test_crps_of_draws_has_a_plan_although_its_items_are_not_first():
    rng = np.random.default_rng(11)
    draws, target = rng.normal(size=(7, 40)), rng.normal(size=40)
    weights = Resampling(40, seed=3).weights(0)
    copies = np.repeat(np.arange(40), weights)
    expected = regression.crps_ensemble(draws[:, copies], target[copies])
    plan = plan_of(regression.crps_ensemble, draws, target)
    assert plan(weights) == pytest.approx(expected, rel=1e-12)


def test_unbounded_intervals_keep_an_infinite_length():
    ends = (np.array([-np.inf, 0.0, 1.0]), np.array([np.inf, 1.0, 3.0]))
    plan = plan_of(intervals.interval_length, *ends)
    assert plan(np.array([1, 1, 1])) == np.inf
    assert plan(np.array([0, 1, 1])) == 1.5


@pytest.mark.parametrize("workers", [2, 5])
def test_threads_change_no_replicate(workers):
    plan = {"mean": mean_plan(np.random.default_rng(0).random(60))}
    resampling = Resampling(60, seed=4)
    one = bootstrap(plan, resampling, replicates=23)
    several = bootstrap(plan, resampling, replicates=23, workers=workers)
    assert (one["mean"] == several["mean"]).all()


def name_of(value):
    return getattr(value, "func", value).__name__


@pytest.mark.parametrize(("score", "make"), PLANNED, ids=name_of)
def test_the_plan_found_for_a_score_is_its_own(score, make):
    rng = np.random.default_rng(10)
    arrays = make(rng, 50)
    plan = plan_of(score, *arrays)
    weights = Resampling(50, seed=2).weights(0)
    replayed = replay_plan(score, *arrays)(weights)
    # Smooth ECE is replayed on a coarser grid.
    coarse = {"abs": 1e-4} if score is calibration.smooth_ece else {"rel": 1e-10}
    assert plan(weights) == pytest.approx(replayed, **coarse)
    estimate = bootstrap_interval(score, *arrays, replicates=2)
    assert estimate.value == score(*arrays)


def test_draws_of_probabilities_are_averaged_before_items_are_drawn():
    rng = np.random.default_rng(11)
    draws = rng.dirichlet(np.ones(3), (4, 30))
    target = rng.integers(0, 3, 30)
    ours = bootstrap_interval(proper.nll, draws, target, replicates=20)
    mean = bootstrap_interval(proper.nll, draws.mean(axis=0), target, replicates=20)
    assert ours.low == pytest.approx(mean.low, rel=1e-12)
    assert ours.high == pytest.approx(mean.high, rel=1e-12)


def test_a_copy_of_an_item_is_not_its_neighbour():
    rng = np.random.default_rng(12)
    embedding, target = rng.normal(size=(60, 8)), rng.integers(0, 6, 60)
    doubt, upstream = rng.random(60), rng.random(60) < 0.5
    hits = retrieval.retrieval_hits(embedding, target)
    weights = Resampling(60).weights(0)
    copied = hits.repeat(weights)
    recall = plan_of(retrieval.recall_at_1, embedding, target)
    assert recall(weights) == pytest.approx(copied.mean())
    expected = ranking.auroc(doubt.repeat(weights), copied == 0)
    for score in (retrieval.r_auroc, partial(retrieval.r_auroc, hits=hits)):
        plan = plan_of(score, embedding, target, doubt)
        assert plan(weights) == pytest.approx(expected)
    mixed = plan_of(retrieval.mixed_r_auroc, embedding, target, doubt, upstream)
    assert mixed(np.ones(60, int)) == pytest.approx(
        retrieval.mixed_r_auroc(embedding, target, doubt, upstream)
    )


def test_every_patient_may_have_an_eye_of_each_class():
    resampling = Resampling(4, strata=[0, 1, 0, 1], cluster=[0, 0, 1, 1], seed=0)
    for replicate in range(20):
        weights = resampling.weights(replicate)
        assert weights.sum() == 4
        assert (weights[::2] == weights[1::2]).all()
