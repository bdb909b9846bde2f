"""Networks that are surer than float32 can say, from files to numbers of items.

Files hold statistics in float32. In there, the largest probability of such pixels is 1,
but all others have their digits, and the threshold of an aggregation lies among them.
"""

import numpy as np
import pytest
import torch
from scipy.special import log_softmax, logsumexp, xlog1py

from qualms import predictions, scores
from qualms.evaluate import ScoreOptions, score
from qualms.evaluate.segmented import Reading, measure_items, validate
from qualms.methods._plain import summarise
from qualms.spec import Task
from qualms.training._item_rules import Candidates, most_uncertain

BARE = ScoreOptions(resamples=0, workers=1)
SIDE, ITEMS = 24, 12
AGGREGATIONS = ("image", "patch", "threshold", "quantile", "boundary", "object")


def logits_of(seed, draws, classes, sure=1.0):
    """Discs in logits (N, M, C, H, W): sure of the background by 20 and by 50."""
    rng = np.random.default_rng(seed)
    y, x = np.mgrid[0:SIDE, 0:SIDE] - SIDE / 2
    items = []
    for number in range(ITEMS):
        radius = 6.5 + number % 3
        distance = np.hypot(y, x) - radius
        trouble = rng.uniform(0.7, 1.3)
        noise = rng.normal(0, 0.5, (draws, classes, SIDE, SIDE))
        noise += rng.normal(0, 1.5, (classes, SIDE, SIDE))
        noise[:, 1] -= sure * trouble * np.clip(16 * distance, -50, 50)
        noise[:, 2:] -= sure * 60
        items.append(noise)
    return np.stack(items)


def exact_maps(logits):
    """PE, EE, MI and MSR of one item, from the logits of its draws in float64."""
    logs = log_softmax(logits, axis=1)
    mean_logs = logsumexp(logs, axis=0) - np.log(len(logs))

    def entropy(logs, axis):
        others = np.sort(logs, axis=axis)
        others = np.moveaxis(others, axis, 0)[:-1]
        rest = np.exp(logsumexp(others, axis=0))
        return -(np.exp(others) * others).sum(0) - xlog1py(1 - rest, -rest), rest

    total, response = entropy(mean_logs, 0)
    expected = entropy(logs, 1)[0].mean(0)
    return {"PE": total, "EE": expected, "MI": total - expected, "MSR": response}


def file_of(logits, method):
    items = []
    for draws in logits.astype(np.float32):
        arrays = summarise(
            iter(torch.from_numpy(draws)[:, None]),
            Task(name="segmentation", classes=draws.shape[1]),
        )
        items.append(
            predictions.Maps(
                mean_probs=arrays["mean_probs"][0].numpy(),
                expected_entropy=arrays["expected_entropy"][0].numpy(),
                draw_labels=arrays["draw_labels"][:, 0].numpy(),
                raters=arrays["draw_labels"][:1, 0].numpy(),
            )
        )
    names = [f"item {number:02d}" for number in range(len(items))]
    return predictions.build({"maps": items, "item": names}, header={"method": method})


def exact_values(logits, val_logits, measure):
    """Every aggregation of an item, computed from its logits in float64."""
    maps = [exact_maps(draws)[measure] for draws in logits]
    val_maps = [exact_maps(draws)[measure] for draws in val_logits]
    labels = [np.concatenate([d.argmax(1), [_segmented(d)]]) for d in val_logits]
    share = scores.background_share(labels)
    threshold = np.quantile(np.concatenate([m.ravel() for m in val_maps]), share)
    parts = [_segmented(draws) for draws in logits]
    return threshold, {
        "image": [scores.aggregate_image(m) for m in maps],
        "patch": [scores.aggregate_patch(m) for m in maps],
        "threshold": [m[m >= threshold].mean() for m in maps],
        "quantile": [scores.aggregate_quantile(m) for m in maps],
        "boundary": [
            scores.aggregate_boundary(m, scores.boundary_band(p))
            for m, p in zip(maps, parts, strict=True)
        ],
        "object": [
            scores.aggregate_object(m, p) for m, p in zip(maps, parts, strict=True)
        ],
    }


def _segmented(logits):
    logs = log_softmax(logits, axis=1)
    return logsumexp(logs, axis=0).argmax(0)


@pytest.mark.parametrize("classes", [2, 4])
@pytest.mark.parametrize("measure", ["PE", "EE", "MI", "MSR"])
def test_saturated_items_have_the_values_of_float64(measure, classes):
    draws = 1 if measure == "MSR" else 4
    logits, val_logits = (logits_of(seed, draws, classes) for seed in (0, 1))
    method = "map" if measure == "MSR" else "mc_dropout"
    fitted = validate([file_of(val_logits, method)], BARE)[0]
    measurements = measure_items(file_of(logits, method), Reading(fitted=fitted), BARE)
    threshold, expected = exact_values(logits, val_logits, measure)
    assert 0 < threshold < 1e-8
    assert fitted.threshold[measure] == pytest.approx(threshold, rel=1e-4)
    for aggregation in AGGREGATIONS:
        actual = measurements.of("uncertainty", measure, aggregation)
        np.testing.assert_allclose(actual, expected[aggregation], rtol=1e-4)


@pytest.mark.parametrize("measure", ["PE", "EE", "MI", "MSR"])
def test_queries_of_saturated_items_are_those_of_float64(measure):
    logits, val_logits = (logits_of(seed, 4, 2) for seed in (2, 3))
    files = {"pool": file_of(logits, "ttd"), "val": file_of(val_logits, "ttd")}
    candidates = Candidates(
        split="pool",
        item=files["pool"].get("item").astype(str),
        target=np.zeros((ITEMS, 1)),
        seed=0,
        predictions=lambda split: [files[split]],
    )
    options = {"measure": measure, "aggregation": "threshold"}
    rows = most_uncertain(candidates, count=ITEMS, **options)
    _, expected = exact_values(logits, val_logits, measure)
    assert rows.tolist() == np.argsort(-np.array(expected["threshold"])).tolist()


def test_a_threshold_of_zero_is_noted():
    test, val = (file_of(logits_of(seed, 1, 2, sure=20.0), "map") for seed in (0, 1))
    notes = score(test, val=val, options=BARE).notes
    assert any("threshold (predictive): it is not above 0" in note for note in notes)
    test, val = (file_of(logits_of(seed, 1, 2), "map") for seed in (0, 1))
    notes = score(test, val=val, options=BARE).notes
    assert not any("is not above 0" in note for note in notes)
