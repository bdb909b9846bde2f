"""Items of no known class count in OOD and joint scores, and in nothing else."""

import numpy as np
import pytest

import qualms
from qualms import scores
from qualms.evaluate import ScoreOptions

BARE = ScoreOptions(resamples=0)
TOLD = ("ood_auroc", "ood_auprc", "ood_fpr95", "scod_auroc", "scod_aurc")


def classified(n=200, unknown=40, seed=0):
    rng = np.random.default_rng(seed)
    target = rng.integers(0, 3, n)
    probs = rng.dirichlet(np.ones(3), n) + 2.0 * np.eye(3)[target]
    probs[:unknown] = rng.dirichlet(5 * np.ones(3), unknown)
    target[:unknown] = -1
    return {"target": target, "probs": probs / probs.sum(axis=1, keepdims=True)}


def without(arrays, keep):
    return {name: values[keep] for name, values in arrays.items()}


def assert_same(whole, part):
    """Every row of `part` is in `whole`, too, with the same numbers."""
    found = {row.key: row for row in whole.rows}
    for row in part.rows:
        same = found[row.key]
        mine, theirs = ((r.value, r.low, r.high, r.n) for r in (same, row))
        np.testing.assert_allclose(mine, theirs, rtol=1e-12, err_msg=str(row.key))


def test_scores_of_classes_leave_them_out():
    arrays = classified()
    full_results = qualms.score(arrays, options=BARE)
    known = qualms.score(without(arrays, arrays["target"] >= 0), options=BARE)
    assert_same(full_results, known)
    assert {row.score for row in full_results.rows} - {r.score for r in known.rows} == {
        *TOLD
    }
    assert any(
        note.startswith("40 items have no known class") for note in full_results.notes
    )


def test_ood_and_joint_scores_count_them_as_shifted():
    arrays = classified()
    results = qualms.score(arrays, options=BARE)
    u = scores.entropy(arrays["probs"])
    moved = arrays["target"] < 0
    assert results.row("ood_auroc").value == pytest.approx(
        scores.ood_auroc(uncertainty=u, shifted=moved)
    )
    assert results.row("ood_auroc").n == 200
    right = arrays["probs"].argmax(axis=1) == arrays["target"]
    expected = scores.scod_aurc(correct=right, shifted=moved, uncertainty=u)
    assert results.row("scod_aurc").value == pytest.approx(expected)


def test_known_false_says_the_same_as_a_target_of_minus_one():
    arrays = classified()
    known = arrays["target"] >= 0
    other = {**arrays, "target": np.where(known, arrays["target"], 0), "known": known}
    a, b = (qualms.score(each, options=BARE) for each in (arrays, other))
    assert_same(a, b)


def test_shifted_items_of_known_classes_stand_beside_them():
    arrays = classified() | {"shifted": np.arange(200) >= 150}
    results = qualms.score(arrays, options=BARE)
    n = {row.subset: row.n for row in results.rows if row.score == "accuracy"}
    assert n == {"all": 160, "in_domain": 110, "shifted": 50, "balanced": 220}
    moved = (arrays["target"] < 0) | arrays["shifted"]
    expected = scores.ood_auroc(
        uncertainty=scores.entropy(arrays["probs"]), shifted=moved
    )
    assert results.row("ood_auroc").value == pytest.approx(expected)


def test_validation_leaves_them_out_too():
    arrays, val = classified(), classified(seed=1)
    known = without(val, val["target"] >= 0)
    a, b = (qualms.score(arrays, val=v, options=BARE) for v in (val, known))
    assert_same(a, b)


def test_a_file_without_any_known_class_is_refused():
    arrays = classified(unknown=200)
    with pytest.raises(ValueError, match="no item has a known class"):
        qualms.score(arrays, options=BARE)


def test_regression_leaves_items_without_a_target_out():
    rng = np.random.default_rng(0)
    target = rng.normal(size=60)
    arrays = {"target": target, "mean": target + rng.normal(size=60)}
    arrays |= {"var": np.ones(60), "known": np.arange(60) >= 10}
    val = without(arrays, np.arange(60) >= 5)
    full_results = qualms.score(arrays, val=val, options=BARE)
    keep = arrays["known"]
    alone = qualms.score(
        without(arrays, keep), val=without(val, val["known"]), options=BARE
    )
    assert_same(full_results, alone)
    assert any("10 items have no known target" in note for note in full_results.notes)


def embedded(n=120):
    rng = np.random.default_rng(0)
    target = rng.integers(0, 6, n)
    near = rng.standard_normal((6, 8))[target] + 0.8 * rng.standard_normal((n, 8))
    return {
        "embedding": near.astype(np.float32),
        "target": target,
        "uncertainty/head": rng.random(n),
    }


def test_embeddings_leave_them_out_of_retrieval_alone():
    arrays = embedded()
    arrays["target"][:20] = -1
    results = qualms.score(arrays, options=BARE)
    alone = qualms.score(without(arrays, arrays["target"] >= 0), options=BARE)
    for row in alone.rows:
        same = results.row(row.score)
        assert (same.value, same.n) == (pytest.approx(row.value), 100)
    u, moved = arrays["uncertainty/head"], arrays["target"] < 0
    assert results.row("ood_auroc").value == pytest.approx(
        scores.ood_auroc(uncertainty=u, shifted=moved)
    )


def test_shifted_embeddings_are_told_apart_by_their_uncertainty():
    arrays = embedded() | {"shifted": np.arange(120) >= 70}
    results = qualms.score(arrays, options=BARE)
    u = arrays["uncertainty/head"]
    for score in (scores.ood_auroc, scores.ood_auprc, scores.ood_fpr95):
        expected = score(uncertainty=u, shifted=arrays["shifted"])
        assert results.row(score.__name__).value == pytest.approx(expected)


def test_upstream_and_shifted_embeddings_have_a_row_each():
    upstream = np.arange(120) % 3 == 0
    arrays = embedded() | {"shifted": np.arange(120) >= 70, "upstream": upstream}
    results = qualms.score(arrays, options=BARE)
    u = arrays["uncertainty/head"]
    found = results.row("ood_auroc", outside="shifted").value
    assert found == pytest.approx(
        scores.ood_auroc(uncertainty=u, shifted=arrays["shifted"])
    )
    expected = scores.ood_auroc(uncertainty=u, shifted=~upstream)
    assert results.row("ood_auroc", uncertainty="head").value == pytest.approx(expected)
