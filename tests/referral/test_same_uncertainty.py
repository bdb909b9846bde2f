"""The verdict and a plan go by the same uncertainty of a file."""

import numpy as np
import pytest

import qualms
from qualms import predictions
from qualms.referral import ReferralOptions

N = 300
HEADER = {"select": {"s": "mean"}}


def classes():
    """Two classes; `b` and `a` know every mistake, in that order."""
    rng = np.random.default_rng(0)
    target = np.arange(N) % 2
    wrong = rng.random(N) < 0.3
    sure = rng.uniform(0.6, 0.9, N)
    return {
        "target": target,
        "prob": np.where(wrong ^ (target == 1), sure, 1 - sure),
        "uncertainty/b": wrong + rng.random(N),
        "uncertainty/a": wrong + 2 * rng.random(N),
    }


def values():
    """Values with a selection score, and an uncertainty that knows the errors."""
    rng = np.random.default_rng(1)
    error = rng.normal(size=N)
    target = rng.normal(size=N)
    return {
        "target": target,
        "mean": target + error,
        "var": np.ones(N),
        "select/s": rng.random(N),
        "uncertainty/mine": np.abs(error),
    }


def judged_and_referred(arrays, header=None, uncertainty=None):
    """Return the names by which a file is judged and referred."""
    built = predictions.build(arrays, header=header)
    results = qualms.score(built, resamples=0, uncertainty=uncertainty)
    options = ReferralOptions(uncertainty=uncertainty)
    plan = qualms.refer(built, budget=0.2, options=options)
    assert results["aurc"].settings == {"uncertainty": results.uncertainty}
    return results.uncertainty, plan.uncertainty.name


@pytest.mark.parametrize(
    ("header", "uncertainty", "name"),
    [
        (None, None, "b"),
        ({"uncertainty": "a"}, None, "a"),
        ({"uncertainty": "a"}, "b", "b"),
        ({"uncertainty": "entropy"}, None, "entropy"),
        (None, "entropy", "entropy"),
    ],
)
def test_classes_are_judged_and_referred_by_one(header, uncertainty, name):
    assert judged_and_referred(classes(), header, uncertainty) == (name, name)


@pytest.mark.parametrize(
    ("header", "uncertainty", "name"),
    [
        ({}, None, "mine"),
        ({"uncertainty": "s"}, None, "s"),
        ({"uncertainty": "s"}, "mine", "mine"),
        ({}, "s", "s"),
    ],
)
def test_values_with_a_selection_score_are_judged_and_referred_by_one(
    header, uncertainty, name, tmp_path
):
    header = HEADER | header
    assert judged_and_referred(values(), header, uncertainty) == (name, name)
    draws = values()
    draws |= {key: np.stack([draws[key]] * 2) for key in ("mean", "var", "select/s")}
    assert judged_and_referred(draws, header, uncertainty) == (name, name)
    if uncertainty is None:
        path = predictions.write(tmp_path / "p.npz", values(), header=header)
        assert qualms.refer(path, budget=0.2).uncertainty.name == name
        assert qualms.score(path, resamples=0).uncertainty == name


def test_the_length_of_intervals_is_one_uncertainty_under_both_names():
    bare = {k: v for k, v in values().items() if "/" not in k}
    named = predictions.build(bare, header={"uncertainty": "interval length"})
    assert qualms.refer(named, budget=0.2).uncertainty.name == "std"
    assert qualms.score(named, resamples=0).uncertainty == "interval length"
    rng = np.random.default_rng(2)
    ends = {"lower": -1 - rng.random(N), "upper": 1 + rng.random(N)}
    both = {"target": bare["target"], "mean": bare["mean"], **ends}
    with_ends = predictions.build(both, header={"alpha": 0.1})
    assert qualms.refer(with_ends, budget=0.2).uncertainty.name == "width"


def test_the_same_items_are_kept_that_the_curve_keeps():
    arrays = values()
    plan = qualms.refer(predictions.build(arrays, header=HEADER), budget=0.2)
    worst = np.argsort(arrays["uncertainty/mine"])[-N // 5 :]
    assert set(plan.items.row) == set(worst)


def test_a_note_lists_the_others_with_their_aurc():
    built = predictions.build(classes())
    results = qualms.score(built, resamples=0)
    plan = qualms.refer(built, budget=0.2)
    area = {
        name: results.row("aurc", uncertainty=name).value
        for name in ("b", "a", "entropy")
    }
    (note,) = (note for note in plan.notes if "AURC" in note)
    assert note.startswith(f"AURC is {area['b']:.3g} by b, which is taken; ")
    assert f"{area['a']:.3g} by a, {area['entropy']:.3g} by entropy (" in note
    bare = {k: v for k, v in classes().items() if "/" not in k}
    assert not any("AURC" in note for note in qualms.refer(bare, budget=0.2).notes)


def test_other_files_must_have_the_uncertainty_of_the_plan():
    bare = {k: v for k, v in values().items() if "/" not in k}
    built = predictions.build(values(), header=HEADER)
    with pytest.raises(ValueError, match=r"and this file has none; add it, or make"):
        qualms.refer(built, budget=0.2, on=[bare])


def test_a_header_that_names_what_is_missing_is_refused():
    built = predictions.build(classes(), header={"uncertainty": "c"})
    for act in (qualms.score, lambda file: qualms.refer(file, budget=0.2)):
        with pytest.raises(LookupError, match="header 'uncertainty' must be one of"):
            act(built)
