"""Several group arrays: rows of each group, the worst one, and their differences."""

import numpy as np
import pytest

import qualms
from qualms import predictions
from qualms.evaluate import PointOptions, Scored
from qualms.evaluate.subsets import group_array
from qualms.inference import wilson_ends
from qualms.report import to_json


def made(n=600, *, better=0.0, seed=0):
    """Return items of three sites and two sexes; site c is right less often."""
    rng = np.random.default_rng(seed)
    site = rng.choice(["a", "b", "c"], n)
    target = rng.integers(2, size=n)
    right = rng.random(n) < 0.9 - better * (site == "c")
    prob = np.where(right == (target == 1), 0.8, 0.2)
    sex = rng.choice(["f", "m"], n)
    return {"target": target, "prob": prob, "group/site": site, "group/sex": sex}


def spread_of(results, score="accuracy", array="group/site"):
    return next(g for g in results.groups if (g.score, g.array) == (score, array))


def test_every_array_has_rows_of_its_groups():
    arrays = made()
    results = qualms.score(arrays, by_group=True)
    subsets = {row.subset for row in results.rows if group_array(row.subset)}
    assert subsets == {
        *("group/site=a", "group/site=b", "group/site=c"),
        *("group/sex=f", "group/sex=m"),
    }
    inside = arrays["group/site"] == "b"
    right = (arrays["prob"] > 0.5) == (arrays["target"] == 1)
    row = results.row("accuracy", subset="group/site=b")
    assert row.value == right[inside].mean()
    assert results["group/site=b/accuracy"] is row


def test_the_worst_group_has_an_interval_for_all_groups_at_once():
    arrays = made(better=0.3)
    right = (arrays["prob"] > 0.5) == (arrays["target"] == 1)
    spread = spread_of(qualms.score(arrays, by_group=True))
    assert (spread.worst, spread.left_out) == ("c", ())
    shares, sizes = [], []
    for site in "abc":
        inside = arrays["group/site"] == site
        shares.append(right[inside].mean())
        sizes.append(inside.sum())
    assert spread.least.value == min(shares)
    z = 2.3939797998185104  # of the level 1 - .05 / 3
    low, high = wilson_ends(np.array(shares), np.array(sizes, float), z)
    assert spread.least.low == pytest.approx(low.min())
    assert spread.least.high == pytest.approx(high.min())
    assert spread.gap.value == pytest.approx(max(shares) - min(shares))
    assert spread.gap.low > 0.1
    assert set(spread.differences) == {"a", "b", "c"} - {spread.best}
    assert spread.differences["c"].high < 0.0


def test_groups_that_are_alike_may_not_differ():
    spread = spread_of(qualms.score(made(), by_group=True))
    assert spread.gap.low == 0.0
    assert spread.gap.low < spread.gap.value < spread.gap.high


def test_for_a_loss_the_largest_is_the_worst():
    spread = spread_of(qualms.score(made(better=0.3), by_group=True), "nll")
    assert spread.worst == "c"
    assert spread.least.low <= spread.least.value <= spread.least.high


def test_a_group_of_few_items_is_left_out_by_name():
    arrays = made()
    arrays["group/site"][:1] = "t"
    spread = spread_of(qualms.score(arrays, by_group=True))
    assert spread.left_out == ("t",)


def test_thresholds_are_judged_for_each_group():
    results = qualms.score(
        made(better=0.3), by_group=True, points=PointOptions(thresholds=(0.5,))
    )
    spread = spread_of(results, "sensitivity")
    assert spread.worst == "c"
    assert spread.settings == {"threshold": "0.5"}
    subsets = {point.subset for point in results.points}
    assert {"all", "group/site=c", "group/sex=f"} <= subsets


def test_in_domain_and_shifted_groups_are_compared_apart():
    arrays = made()
    arrays["shifted"] = np.arange(600) % 2 == 0
    results = qualms.score(arrays, by_group=True)
    assert {g.subset for g in results.groups} == {"all", "in_domain", "shifted"}
    assert {g.subset for g in results.shown().groups} == {"in_domain", "shifted"}
    assert results["shifted/group/site=a/accuracy"].n < 200


@pytest.mark.parametrize("ending", ["npz", "safetensors", "csv", "parquet"])
def test_files_of_every_format_keep_their_groups(ending, tmp_path):
    arrays = made(40)
    path = tmp_path / f"p.{ending}"
    if ending in ("csv", "parquet"):
        pandas = pytest.importorskip("pandas")
        frame = pandas.DataFrame(arrays)
        frame.to_csv(path, index=False) if ending == "csv" else frame.to_parquet(path)
    else:
        predictions.write(path, arrays)
    read = predictions.read(path)
    assert read.named("group").keys() == {"site", "sex"}
    assert read.arrays["group/site"].tolist() == arrays["group/site"].tolist()
    assert any("groups by sex" in line for line in predictions.facts(read))


def test_json_has_the_groups():
    results = qualms.score(made(), by_group=True)
    (file,) = to_json(Scored(results=(results,)))["files"]
    found = {(g["score"], g["array"]) for g in file["groups"]}
    assert ("accuracy", "group/site") in found
    assert set(file["groups"][0]["gap"]) == {"value", "low", "high"}


def test_without_groups_there_are_no_differences():
    arrays = made()
    results = qualms.score({k: arrays[k] for k in ("target", "prob")}, by_group=True)
    assert results.groups == ()
