"""Conformal sets against brute force, and the guarantee as an exact count."""

import math

import numpy as np
import pytest
from scipy.stats import norm

from qualms import scores

RULES = ("lac", "aps", "raps", "saps")


def items(seed, n=60, classes=8):
    rng = np.random.default_rng(seed)
    probs = rng.dirichlet([0.5] * classes, n)
    return probs, np.array([rng.choice(classes, p=row) for row in probs])


def by_hand(row, label, rule):
    """The definitions of the papers, a class at a time."""
    if rule == "lac":
        return 1 - row[label]
    first = [p for p in row if p >= row[label]]
    if rule == "saps":
        return max(row) + 0.2 * (len(first) - 1)
    extra = 0.01 * max(len(first) - 5, 0) if rule == "raps" else 0.0
    return sum(first) + extra


@pytest.mark.parametrize("rule", RULES)
def test_nonconformity_is_that_of_the_papers(rule):
    probs, _ = items(0)
    expected = [[by_hand(row, c, rule) for c in range(8)] for row in probs]
    assert scores.nonconformity(probs, rule=rule) == pytest.approx(np.array(expected))


@pytest.mark.parametrize("rule", RULES)
def test_tied_classes_are_in_the_set_together(rule):
    found = scores.nonconformity([[0.1 + 0.2, 0.3, 0.4], [1 / 3] * 3], rule=rule)
    assert found[0, 0] == pytest.approx(found[0, 1], abs=1e-15)
    assert np.ptp(found[1]) == 0.0


def held_out(probs, target, **options):
    """How many items are in their set when it is fitted on all others."""
    held = 0
    for item in range(len(target)):
        rest = np.arange(len(target)) != item
        sets = scores.fit_conformal_sets(probs[rest], target[rest], **options)
        held += sets.apply(probs[item : item + 1])[0, target[item]]
    return held


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("alpha", [0.05, 0.1, 0.25])
def test_held_out_items_are_covered_by_exactly_the_rank(rule, alpha):
    probs, target = items(2, n=60)
    # Without ties exactly ceil(60 (1 - alpha)) of the 60 items are at most the rank.
    expected = math.ceil(60 * (1 - alpha) - 1e-9)
    assert held_out(probs, target, alpha=alpha, rule=rule) == expected


def test_tied_items_are_covered_at_least_so_often():
    rng = np.random.default_rng(0)
    counts = rng.multinomial(4, [0.5, 0.3, 0.2], 40)
    target = np.array([rng.choice(3, p=row / 4) for row in counts])
    for rule in RULES:
        assert held_out(counts / 4, target, alpha=0.2, rule=rule) >= 32


def test_every_class_is_covered_where_it_has_its_own_threshold():
    probs, target = items(4, n=150, classes=3)
    target = np.sort(target)  # the classes differ in how well they are predicted
    sets = scores.fit_conformal_sets(probs, target, alpha=0.2, by_class=True)
    inside = sets.apply(probs)[np.arange(150), target]
    for label in range(3):
        size = (target == label).sum()
        rank = math.ceil((size + 1) * 0.8 - 1e-9)
        assert inside[target == label].sum() == rank


def test_too_few_items_give_whole_sets():
    probs, target = items(1, n=5)
    sets = scores.fit_conformal_sets(probs, target, alpha=0.1)
    assert np.isinf(sets.threshold).all()
    assert sets.apply(probs).all()


def test_random_numbers_make_coverage_exact_and_sets_smaller():
    probs, target = items(6, n=4000)
    rng = np.random.default_rng(1)
    uniform = rng.random(4000)
    val, test = slice(0, 2000), slice(2000, 4000)
    sizes = {}
    for name, u in (("plain", None), ("random", uniform)):
        own, new = (None, None) if u is None else (u[val], u[test])
        sets = scores.fit_conformal_sets(
            probs[val], target[val], alpha=0.1, rule="aps", uniform=own
        ).apply(probs[test], uniform=new)
        assert scores.set_coverage(sets, target[test]) == pytest.approx(0.9, abs=0.03)
        sizes[name] = scores.set_size(sets)
    assert sizes["random"] < sizes["plain"]
    ones = scores.nonconformity(probs, rule="aps", uniform=np.ones(4000))
    assert ones == pytest.approx(scores.nonconformity(probs, rule="aps"))


def test_scores_of_sets_by_hand():
    sets = np.array([[1, 0, 0, 0], [1, 1, 0, 0], [0, 0, 0, 0], [0, 1, 1, 1]])
    target = [0, 2, 1, 3]
    assert scores.set_coverage(sets, target) == 0.5
    assert scores.set_size(sets) == 1.5
    assert scores.singleton_share(sets) == 0.25
    # Sizes 0 and 1: one of two is covered; sizes 2 and 3: one of two.
    assert scores.size_stratified_coverage(sets, target) == 0.5
    assert scores.size_stratified_coverage(sets, [0, 0, 1, 3]) == 0.5
    assert scores.size_stratified_coverage(sets, [1, 0, 1, 3]) == 0.0


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: scores.nonconformity([0.5], rule="abc"), "rule must be one of lac"),
        (lambda: scores.nonconformity([0.5], uniform=[0.5]), "uniform is for"),
        (
            lambda: scores.nonconformity([0.5], rule="aps", uniform=[2.0]),
            "numbers between 0 and 1",
        ),
        (
            lambda: scores.fit_conformal_sets([0.5], [1], alpha=1.0),
            "alpha must lie strictly between 0 and 1",
        ),
        (
            lambda: scores.fit_conformal_sets([0.5], [1], alpha=0.1).apply([[1, 0, 0]]),
            "probs must have the 2 classes",
        ),
        (lambda: scores.set_size([1, 0]), r"sets must have shape \(N, C\)"),
        (lambda: scores.set_size([[0.5, 1]]), "true or false"),
    ],
)
def test_refusals_are_sentences(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def _shifted_items(share, n, seed):
    """Two classes, their images fixed, of which a share is of class 1, the hard one."""
    rng = np.random.default_rng(seed)
    target = (rng.random(n) < share).astype(int)
    x = np.where(target == 1, rng.normal(1.0, 2.0, n), rng.normal(0.0, 0.5, n))
    chance = [norm.pdf(x, 0.0, 0.5), norm.pdf(x, 1.0, 2.0)]  # in equal parts
    return np.stack(chance, axis=1) / np.sum(chance, axis=0)[:, None], target


@pytest.mark.parametrize("known", [True, False])
def test_label_shift_sets_cover_where_plain_ones_do_not(known):
    plain, weighted, weights = [], [], []
    for seed in range(60):
        val = _shifted_items(0.5, 400, seed)
        new, target = _shifted_items(0.9, 2000, 1000 + seed)
        weight = [0.2, 1.8] if known else scores.label_shift_weights(*val, new)
        weights.append(weight)
        for found, fitted in (
            (plain, scores.fit_conformal_sets(*val, alpha=0.1)),
            (weighted, scores.fit_label_shift_sets(*val, weight, alpha=0.1)),
        ):
            found.append(scores.set_coverage(fitted.apply(new), target))
    assert np.mean(weights, axis=0) == pytest.approx([0.2, 1.8], abs=0.05)
    assert np.mean(weighted) == pytest.approx(0.9, abs=0.015)
    assert np.mean(plain) < 0.87


def test_equal_weights_change_nothing():
    probs, target = items(0)
    fitted = scores.fit_label_shift_sets(probs, target, np.ones(8), alpha=0.2)
    wanted = scores.fit_conformal_sets(probs, target, alpha=0.2)
    assert fitted.threshold.tolist() == wanted.threshold.tolist()


def test_a_class_that_was_never_seen_keeps_its_weight():
    weight = scores.label_shift_weights([[0.8, 0.1, 0.1]], [0], [[0.2, 0.3, 0.5]])
    assert weight.tolist() == [1, 1, 1]


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (
            lambda: scores.label_shift_weights([[0.5, 0.5]], [0], [[0.2, 0.3, 0.5]]),
            "must have the 2 classes of val_probs",
        ),
        (
            lambda: scores.fit_label_shift_sets([0.5], [0], [1.0, -1.0], alpha=0.1),
            "weight must not be negative",
        ),
    ],
)
def test_mistakes_about_label_shift_are_sentences(call, words):
    with pytest.raises(ValueError, match=words):
        call()
