"""Conformal sets of a scored file, as a user gets them with validation items."""

import numpy as np
import pytest

import qualms
from qualms import scores
from qualms.evaluate import ScoreOptions


def items(seed, n, classes=7, noise=0.0):
    rng = np.random.default_rng(seed)
    logits = 1.5 * rng.normal(size=(n, classes))
    probs = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    target = np.array([rng.choice(classes, p=row) for row in probs])
    logits += noise * rng.normal(size=logits.shape)
    probs = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    return {"probs": probs, "target": target}


VAL = items(0, 400)
PLAIN, MOVED = items(1, 500), items(2, 500, noise=2.0)
TEST = {name: np.concatenate([PLAIN[name], MOVED[name]]) for name in PLAIN}
TEST["shifted"] = np.arange(1000) >= 500


@pytest.fixture(scope="module")
def results():
    return qualms.score(TEST, val=VAL, options=ScoreOptions(alpha=0.2))


@pytest.mark.parametrize("name", ["lac", "aps", "raps", "lac by class"])
@pytest.mark.parametrize("subset", ["all", "in_domain", "shifted"])
def test_rows_are_the_public_scores_of_the_public_sets(results, name, subset):
    rule, by_class = name.split()[0], "class" in name
    fitted = scores.fit_conformal_sets(**VAL, alpha=0.2, rule=rule, by_class=by_class)
    chosen = {"in_domain": ~TEST["shifted"], "shifted": TEST["shifted"]}
    mask = chosen.get(subset, np.ones(1000, bool))
    sets, target = fitted.apply(TEST["probs"][mask]), TEST["target"][mask]
    for score, arrays in (
        (scores.set_coverage, (sets, target)),
        (scores.set_size, (sets,)),
        (scores.singleton_share, (sets,)),
        (scores.size_stratified_coverage, (sets, target)),
    ):
        row = results.row(score.__name__, subset=subset, sets=name)
        assert row.value == pytest.approx(score(*arrays), abs=1e-12)
        assert row.low <= row.value <= row.high
        assert row.n == mask.sum()


def test_a_shift_takes_the_promise_away(results):
    inside = results.row("set_coverage", subset="in_domain", sets="lac")
    assert inside.low <= 0.8 <= inside.high
    assert results.row("set_coverage", subset="shifted", sets="lac").high < 0.8
    assert "conformal sets aim at coverage 0.8" in results.notes


def test_sets_need_validation_items():
    assert not [row for row in qualms.score(PLAIN).rows if "set" in row.score]


def test_few_classes_have_no_raps_and_no_top_five():
    results = qualms.score(items(1, 200, 3), val=items(0, 200, 3))
    names = {row.settings.get("sets") for row in results.rows}
    assert {"lac", "aps"} <= names
    assert "raps" not in names
    assert not [row for row in results.rows if row.score == "top_k_accuracy"]
    assert results.row("macro_auroc").value > 0.5


def test_too_few_validation_items_are_told():
    few = {name: array[:6] for name, array in VAL.items()}
    results = qualms.score(PLAIN, val=few)
    row = results.row("set_coverage", sets="lac")
    assert row.value == 1.0
    assert "too few" in row.no_interval
    assert any("too few validation items" in note for note in results.notes)


def test_items_of_no_known_class_change_nothing():
    extra = {
        "probs": np.concatenate([PLAIN["probs"], VAL["probs"][:20]]),
        "target": np.concatenate([PLAIN["target"], np.full(20, -1)]),
    }
    one, other = (qualms.score(test, val=VAL) for test in (PLAIN, extra))
    for name in ("set_coverage", "set_size", "size_stratified_coverage"):
        first, second = one.row(name), other.row(name)
        assert second.value == first.value
        assert second.low == pytest.approx(first.low)


def test_intervals_of_coverage_hold_over_new_validation_and_test_items():
    # The mean over many fits of what sets of 60 validation items cover.
    each = []
    for seed in range(60):
        val, test = items(1000 + seed, 60, 3), items(3000 + seed, 120, 3)
        row = qualms.score(test, val=val).row("set_coverage", sets="lac")
        each.append((row.value, row.low, row.high))
    value, low, high = np.array(each).T
    assert ((low <= value.mean()) & (value.mean() <= high)).mean() >= 0.9


@pytest.fixture(scope="module")
def grouped():
    """Sets of items of two sites, of which one is noisy in test and validation."""
    noisy = items(3, 400, noise=2.0)
    val = {name: np.concatenate([VAL[name], noisy[name]]) for name in VAL}
    val["group/site"] = np.repeat(["a", "b"], 400)
    test = {**TEST, "group/site": np.where(TEST["shifted"], "b", "a")}
    return qualms.score(test, val=val, options=ScoreOptions(alpha=0.2, by_group=True))


def test_thresholds_by_group_cover_every_group(grouped):
    for site in "ab":
        at = grouped.row(
            "set_coverage", subset=f"all/group/site={site}", sets="lac by site"
        )
        assert at.value == pytest.approx(0.8, abs=0.05)
    plain = [
        grouped.row("set_coverage", subset=f"all/group/site={site}", sets="lac").value
        for site in "ab"
    ]
    assert plain[0] - plain[1] > 0.1


def test_label_shift_sets_are_those_of_the_public_functions(grouped, results):
    mask = ~TEST["shifted"]
    weight = scores.label_shift_weights(
        **{f"val_{k}": v for k, v in VAL.items()}, probs=TEST["probs"][mask]
    )
    fitted = scores.fit_label_shift_sets(**VAL, weight=weight, alpha=0.2)
    wanted = scores.set_coverage(
        fitted.apply(TEST["probs"][mask]), TEST["target"][mask]
    )
    row = results.row("set_coverage", subset="in_domain", sets="lac, label shift")
    assert row.value == wanted
    assert row.low < row.value < row.high


def test_further_alphas_have_their_own_sets():
    found = qualms.score(TEST, val=VAL, alpha=(0.2, 0.05))
    at = found.row("set_coverage", sets="lac", alpha=0.05)
    assert at.value > found.row("set_coverage", sets="lac").value
