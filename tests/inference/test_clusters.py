"""Intervals over few clusters, and those that hold over more."""

import math

import numpy as np
import pytest
from scipy.special import expit

import qualms
from qualms import scores
from qualms.evaluate import ScoreOptions
from qualms.inference import influence_of, interval_of, sampling_design


def hospitals(count, rng, *, alike=0.8, each=20):
    """Items of hospitals, whose targets and errors are alike by that correlation."""
    cluster = np.repeat(np.arange(count), each)

    def drawn():
        common = rng.standard_normal(count)[cluster]
        own = rng.standard_normal(count * each)
        return math.sqrt(alike) * common + math.sqrt(1.0 - alike) * own

    target = (drawn() > 0.0).astype(int)
    prob = expit((2 * target - 1) * (1.6 + 1.4 * drawn()))
    return {"prob": prob, "target": target, "cluster": cluster}


def intervals(score, count, repetitions):
    rng = np.random.default_rng(count)
    for _ in range(repetitions):
        items = hospitals(count, rng)
        design = sampling_design(len(items["prob"]), cluster=items["cluster"])
        found = influence_of(score, items["prob"], items["target"])
        yield interval_of(found, design=design)


@pytest.mark.parametrize("count", [1, 2, 3, 9])
@pytest.mark.parametrize(
    "score",
    [scores.accuracy, scores.balanced_accuracy, scores.nll, scores.ece, scores.mcc],
)
def test_few_clusters_have_no_interval_and_are_counted(score, count):
    (interval,) = intervals(score, count, 1)
    assert math.isnan(interval.low)
    word = "1 cluster" if count == 1 else f"{count} clusters"
    assert interval.reason.startswith(f"the items come from {word}:")


@pytest.mark.parametrize(
    ("score", "truth", "count"),
    [
        (scores.accuracy, 0.873, 10),
        (scores.balanced_accuracy, 0.873, 10),
        (scores.nll, 0.322, 10),
        (scores.calibration_slope, 1.64, 20),
        (scores.average_precision, 0.948, 20),
        (scores.ece, 0.068, 50),
    ],
)
def test_from_its_fewest_clusters_on_a_score_is_covered(score, truth, count):
    found = [i for i in intervals(score, count, 100) if not math.isnan(i.low)]
    assert len(found) > 90
    missed = sum(not i.low <= truth <= i.high for i in found)
    assert missed <= 0.13 * len(found)
    (none,) = intervals(score, count - 1, 1)
    assert none.reason.endswith(f"holds with fewer than {count}")


def test_no_number_of_three_clusters_has_a_range():
    items = hospitals(3, np.random.default_rng(0))
    results = qualms.score(items, options=ScoreOptions(resamples=100))
    assert all(math.isnan(row.low) for row in results.rows)
    (accuracy,) = (row for row in results.rows if row.score == "accuracy")
    assert "3 clusters" in accuracy.no_interval
    assert any("3 clusters: no interval holds" in note for note in results.notes)
