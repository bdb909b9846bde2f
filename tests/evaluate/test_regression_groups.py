"""Intervals of regression: by group, by predicted size, and at several alphas."""

import numpy as np
import pytest

import qualms
from qualms import scores
from qualms.scores.arguments import called_in_order


def made(n=600, *, seed=0):
    """Return items whose noise grows with what is predicted, and is wide at site b."""
    rng = np.random.default_rng(seed)
    mean = rng.random(n)
    site = rng.choice(["a", "b"], n)
    noise = rng.normal(size=n) * (0.5 + mean) * np.where(site == "b", 3.0, 1.0)
    return {
        "target": mean + noise,
        "mean": mean,
        "var": np.ones(n),
        "group/site": site,
    }


VAL, TEST = made(seed=1), made()


@pytest.fixture(scope="module")
def results():
    return qualms.score(TEST, val=VAL, by_group=True, alpha=(0.1, 0.3))


def test_offsets_by_group_cover_every_group(results):
    by_site = {
        site: results.row(
            "coverage", subset=f"group/site={site}", interval="conformal by site"
        )
        for site in "ab"
    }
    at = results.row("coverage", subset="group/site=b", interval="conformal")
    assert at.value < 0.85
    assert all(abs(row.value - 0.9) < 0.04 for row in by_site.values())
    offset = called_in_order(
        scores.mondrian_offset,
        *scores.gaussian_interval(mean=VAL["mean"], var=VAL["var"], alpha=0.1),
        VAL["target"],
        VAL["group/site"],
        TEST["group/site"],
        alpha=0.1,
    )
    lower, upper = scores.gaussian_interval(
        mean=TEST["mean"], var=TEST["var"], alpha=0.1
    )
    everyone = results.row("coverage", interval="conformal by site")
    assert everyone.value == scores.coverage(
        lower=lower - offset, upper=upper + offset, target=TEST["target"]
    )
    assert everyone.low < everyone.value < everyone.high


def test_coverage_is_given_by_predicted_size(results):
    rows = [
        results.row("coverage", interval="gaussian", predicted=quarter)
        for quarter in (
            *("lowest quarter", "second quarter"),
            *("third quarter", "highest quarter"),
        )
    ]
    assert [row.n for row in rows] == [150] * 4
    assert rows[0].value > rows[3].value
    order = np.argsort(TEST["mean"])[:150]
    lower, upper = scores.gaussian_interval(
        mean=TEST["mean"], var=TEST["var"], alpha=0.1
    )
    inside = (lower <= TEST["target"]) & (TEST["target"] <= upper)
    assert rows[0].value == inside[order].mean()


def test_a_further_alpha_is_a_setting_of_its_rows(results):
    first = results.row("coverage", interval="gaussian")
    further = results.row("coverage", interval="gaussian", alpha=0.3)
    assert "alpha" not in first.settings
    assert further.value < first.value
    lone = qualms.score(TEST, val=VAL, alpha=0.3)
    for rule in ("gaussian", "conformal"):
        at = results.row("coverage", interval=rule, alpha=0.3)
        own = lone.row("coverage", interval=rule)
        assert (at.value, at.low, at.high) == (own.value, own.low, own.high)


def test_intervals_that_were_predicted_have_one_alpha():
    arrays = {"target": np.arange(30.0), "lower": np.zeros(30), "upper": np.ones(30)}
    results = qualms.score(arrays, alpha=(0.1, 0.2))
    assert not any("alpha" in row.settings for row in results.rows)
    assert any("at alpha 0.1 alone" in note for note in results.notes)


def test_a_group_without_validation_items_is_left_out_by_name():
    test = {**TEST, "group/site": np.where(np.arange(600) < 50, "new", "a")}
    results = qualms.score(test, val=VAL)
    assert results.row("coverage", interval="conformal by site").n == 550
    assert any("leaves out new" in note for note in results.notes)


def test_the_transform_has_a_curve_and_two_scores(results):
    assert results["pit_mean"].value == pytest.approx(0.5, abs=0.05)
    assert results["pit_spread"].low > 1.0
    (curve,) = (c for c in results.curves if c.name == "pit")
    assert curve.y.mean() == pytest.approx(1.0)
    assert (curve.low <= curve.y).all()
    assert (curve.y <= curve.high).all()


def test_an_empty_list_of_alphas_is_refused():
    with pytest.raises(ValueError, match="at least one number"):
        qualms.score(TEST, alpha=[])


@pytest.mark.parametrize("n", [1, 3, 10])
def test_few_items_are_judged(n):
    test = {name: values[:n] for name, values in TEST.items()}
    results = qualms.score(test, val=VAL, alpha=(0.1, 0.2), by_group=True)
    assert len(results.rows) > 10
