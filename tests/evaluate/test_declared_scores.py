"""A score that names its task is in `qualms score` without another line anywhere."""

import numpy as np
import pytest

import qualms
from qualms import scores
from qualms.inference import influence_of
from qualms.scores import as_score


def _surprises(probs, target):
    return probs[np.arange(len(target)), target] < 0.5


@as_score(
    label="surprises", better="lower", items=_surprises, tasks=("classification",)
)
def surprises(probs, target):
    """Share of targets that got less than one half."""
    return float(_surprises(probs, target).mean())


@pytest.fixture
def declared(monkeypatch):
    monkeypatch.setattr(scores, "surprises", surprises, raising=False)
    monkeypatch.setattr(scores, "__all__", [*scores.__all__, "surprises"])


def test_a_score_that_names_its_task_gets_a_row_with_an_interval(declared):
    rng = np.random.default_rng(0)
    prob = rng.random(300)
    target = (rng.random(300) < prob).astype(int)
    results = qualms.score({"prob": prob, "target": target})
    row = results.row("surprises")
    assert row.value == surprises(np.stack([1 - prob, prob], axis=1), target)
    assert row.method == "Wilson's interval"
    assert row.low < row.value < row.high


def test_a_score_of_another_task_gets_none(declared):
    rng = np.random.default_rng(1)
    mean = rng.normal(size=50)
    results = qualms.score({"mean": mean, "var": np.ones(50), "target": mean + 0.1})
    assert "surprises" not in {row.score for row in results.rows}
    assert not any("surprises" in note for note in results.notes)


def test_items_and_influence_together_are_refused():
    with pytest.raises(ValueError, match="twice: say items or influence, not both"):
        as_score(label="twice", better="lower", items=np.abs, influence=np.abs)


def test_a_score_made_of_parts_has_no_complement():
    found = influence_of(scores.ece, np.full(20, 0.7), np.arange(20) % 2)
    with pytest.raises(ValueError, match="made of BinGaps has no complement"):
        found.complement()


def test_a_score_without_any_event_has_no_interval(monkeypatch):
    @as_score(label="Events", better="lower", tasks=("classification",))
    def events(target):
        return float(np.max(target) > 5)

    monkeypatch.setattr(
        "qualms.evaluate._declared_scores._of_task", lambda _: {"events": events}
    )
    arrays = {"probs": np.tile([0.2, 0.8], (40, 1)), "target": np.arange(40) % 2}
    row = qualms.score(arrays).row("events")
    assert np.isnan([row.low, row.high]).all()
    assert "all items are alike" in row.no_interval
