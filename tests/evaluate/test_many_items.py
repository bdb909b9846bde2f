"""Many items: what is left out of memory changes no number and no page."""

import json
import re
from dataclasses import replace

import numpy as np
import pytest

from qualms.evaluate import ScoreOptions, score
from qualms.evaluate.drawings import CURVE_POINTS, thin
from qualms.evaluate.scoring import Scored
from qualms.report import to_json
from qualms.report.site import write_page
from qualms.tasks.classification import judging as classification


@pytest.fixture(scope="module")
def arrays():
    rng = np.random.default_rng(0)
    target = rng.integers(0, 2, 2_000)
    logits = 2 * target - 1 + 2 * rng.standard_normal((3, 2_000))
    return {
        "target": target,
        "prob": 1 / (1 + np.exp(-logits)),
        "shifted": rng.random(2_000) < 0.4,
        "group": rng.choice(["a", "b"], 2_000),
    }


def numbers(results):
    return [(r.key, r.value, r.low, r.high, r.n, r.method) for r in results.rows]


@pytest.mark.parametrize("workers", [1, 3])
def test_items_that_are_copied_anew_give_the_same_numbers(arrays, monkeypatch, workers):
    options = ScoreOptions(workers=workers, by_group=True)
    val = {name: values[..., :500] for name, values in arrays.items()}
    before = score(arrays, val=val, options=options)
    monkeypatch.setattr(classification._Parts, "NUMBERS", 0)
    after = score(arrays, val=val, options=options)
    assert str(numbers(after)) == str(numbers(before))
    assert after.notes == before.notes


def test_shorter_curves_have_points_of_the_whole_ones(arrays):
    whole = score(arrays)
    short = score(arrays, options=ScoreOptions(curve_points=80))
    pairs = list(zip(whole.curves, short.curves, strict=True))
    referral = [pair for pair in pairs if pair[0].name.startswith("referral")]
    assert len(referral) == 4 * 2 * 3  # subsets, uncertainties, scores
    for curve, thinned in referral:
        places = thin(curve.y, limit=80)
        assert thinned.x.tobytes() == curve.x[places].tobytes()
        assert thinned.y.tobytes() == curve.y[places].tobytes()
        assert thinned.points == len(curve.x) > len(thinned.x)
        assert np.nanmin(thinned.y) == np.nanmin(curve.y)
        assert np.nanmax(thinned.y) == np.nanmax(curve.y)
    assert str(numbers(short)) == str(numbers(whole))


def test_json_and_pages_are_the_same_with_shorter_curves(arrays, tmp_path):
    texts = []
    for most in (None, CURVE_POINTS):
        results = score(arrays, options=ScoreOptions(curve_points=most))
        scored = Scored(results=(replace(results, name="file"),))
        page = tmp_path / f"{most}.html"
        write_page(scored, page, command="")
        blocks = re.findall(r'data-name="[^"]+">(.*?)</script>', page.read_text())
        texts.append((json.dumps(to_json(scored)), blocks))
    assert texts[0] == texts[1]
    drawn = [
        mark
        for block in texts[0][1]
        for panel in json.loads(block).get("panels", ())
        for mark in panel["marks"]
        if mark["kind"] == "curve"
    ]
    assert max(len(mark["x"]) for mark in drawn) <= CURVE_POINTS


@pytest.mark.parametrize("items", [1, 3, 10])
def test_short_curves_stay_whole(items):
    arrays = {"target": np.arange(items) % 2, "prob": np.linspace(0.2, 0.9, items)}
    results = score(arrays, options=ScoreOptions(curve_points=400))
    assert {(len(c.x), c.points) for c in results.curves if c.x_label[0] == "s"} == {
        (items, 0)
    }


def test_too_few_points_are_refused():
    with pytest.raises(ValueError, match="at least 8, or None for all, got 3"):
        ScoreOptions(curve_points=3)
