"""Embeddings scored in a gallery of their own, and among the k nearest."""

import numpy as np
import pytest

from qualms import predictions, score, scores
from qualms.evaluate import ScoreOptions
from qualms.evaluate.main_scores import main_rows
from qualms.evaluate.scoring import score_files

BARE = ScoreOptions(resamples=0)


def arrays(seed, n):
    rng = np.random.default_rng(seed)
    target = np.arange(n) % 7
    centre = np.random.default_rng(0).normal(size=(7, 5))
    embedding = centre[target] + rng.normal(size=(n, 5))
    return {
        "embedding": embedding.astype(np.float32),
        "target": target,
        "uncertainty/head": rng.random(n),
    }


def test_neighbours_are_sought_in_the_gallery():
    asked, gallery = arrays(1, 60), arrays(2, 90)
    results = score(asked, gallery=gallery, options=BARE)
    ranks = scores.right_ranks(
        asked["embedding"],
        asked["target"],
        gallery=gallery["embedding"],
        gallery_target=gallery["target"],
    )
    hits = scores.hits_within(ranks, 1)
    assert results.row("recall_at_1").value == pytest.approx(hits.mean())
    u = asked["uncertainty/head"]
    wanted = scores.weighted_auroc(
        score=u, positive_weight=1 - hits, negative_weight=hits
    )
    assert results.row("r_auroc").value == pytest.approx(wanted)
    assert any("among the 90 items" in note for note in results.notes)


def test_recall_among_more_is_scored_where_it_is_asked_for():
    asked = arrays(1, 60)
    options = ScoreOptions(resamples=0, nearest=(1, 5))
    results = score(asked, options=options)
    both = asked["embedding"], asked["target"]
    for k in (1, 5):
        row = results.row("recall_at_k", k=str(k))
        assert row.value == pytest.approx(scores.recall_at_k(*both, k=k))
        assert row.low < row.value < row.high
    assert "recall_at_k" not in {row.score for row in score(asked, options=BARE).rows}


def test_files_are_scored_in_the_gallery_of_a_file(tmp_path):
    files = [tmp_path / f"{name}.safetensors" for name in ("asked", "gallery")]
    for file, (seed, n) in zip(files, ((1, 60), (2, 90)), strict=True):
        predictions.write(file, arrays(seed, n), header={"task": "embedding"})
    (found,) = score_files(files[:1], gallery=files[1], options=BARE).results
    in_memory = score(arrays(1, 60), gallery=arrays(2, 90), options=BARE)
    assert found.row("recall_at_1").value == in_memory.row("recall_at_1").value


def test_a_gallery_is_for_embeddings():
    classes = {"probs": np.eye(2)[[0, 1, 1]], "target": [0, 1, 0]}
    with pytest.raises(ValueError, match="are for embeddings"):
        score(classes, options=ScoreOptions(resamples=0, nearest=(5,)))


def test_a_gallery_of_classes_is_refused():
    classes = {"probs": np.eye(2)[[0, 1, 1]], "target": [0, 1, 0]}
    with pytest.raises(ValueError, match=r"must hold embeddings, .* classification"):
        score(arrays(1, 60), gallery=classes, options=BARE)


def test_a_gallery_that_holds_the_items_is_refused():
    asked, gallery = arrays(1, 60), arrays(2, 90)
    with pytest.raises(ValueError, match="holds all: each would be its own neighbour"):
        score(asked, gallery=asked, options=BARE)
    asked["item"] = np.array([f"i{n}" for n in range(60)])
    gallery["item"] = np.array([f"i{n}" for n in range(55, 145)])
    with pytest.raises(ValueError, match="holds 5 of them, such as 'i55': each would"):
        score(asked, gallery=gallery, options=BARE)


def test_notes_and_main_scores_are_those_of_what_was_asked_for():
    options = ScoreOptions(resamples=0, nearest=(1, 5))
    results = score(arrays(1, 60), gallery=arrays(2, 90), options=options)
    assert not any("each other's nearest" in note for note in results.notes)
    shown = [row.settings.get("k") for row in main_rows(results.task, results.rows)]
    assert [k for k in shown if k] == ["1", "5"]


def test_predicted_classes_have_an_accuracy():
    asked = arrays(1, 60)
    asked["predicted"] = np.where(np.arange(60) < 15, asked["target"], 9)
    results = score(asked, options=BARE)
    assert results.row("accuracy").value == pytest.approx(0.25)
    assert any("other classes than the network" in note for note in results.notes)
    asked["upstream"] = np.arange(60) < 20
    results = score(asked, options=BARE)
    assert results.row("accuracy", items="upstream").value == pytest.approx(0.75)


def test_a_cropped_uncertainty_without_its_own_is_named():
    asked = arrays(1, 60)
    asked["uncertainty_cropped/entropy"] = asked["uncertainty/head"]
    results = score(asked, options=BARE)
    assert any("no uncertainty/entropy beside it" in note for note in results.notes)


def test_map_at_r_and_the_curve_of_recall_are_scored(tmp_path):
    asked, gallery = arrays(1, 60), arrays(2, 90)
    options = ScoreOptions(resamples=0, map_at_r=True)
    results = score(asked, gallery=gallery, options=options)
    wanted = scores.map_at_r(
        asked["embedding"],
        asked["target"],
        gallery=gallery["embedding"],
        gallery_target=gallery["target"],
    )
    row = results.row("map_at_r")
    assert row.value == pytest.approx(wanted)
    assert row.low < row.value < row.high
    (curve,) = (c for c in results.curves if c.name == "referral_recall_at_1")
    hits = score_hits(asked, gallery)
    order = np.argsort(asked["uncertainty/head"])
    assert curve.x[0] == 0.0
    assert curve.y[0] == pytest.approx(results.row("recall_at_1").value)
    assert curve.y[-1] == pytest.approx(hits[order[0]])
    assert curve.y[30] == pytest.approx(hits[order[:30]].mean())
    with pytest.raises(ValueError, match="MAP@R are for embeddings"):
        score({"prob": [0.1, 0.9], "target": [0, 1]}, options=options)


def score_hits(asked, gallery):
    ranks = scores.right_ranks(
        asked["embedding"],
        asked["target"],
        gallery=gallery["embedding"],
        gallery_target=gallery["target"],
    )
    return scores.hits_within(ranks, 1)


def test_classes_of_a_gallery_are_compared_by_name():
    asked, gallery = arrays(1, 60), arrays(2, 90)
    plain = score(asked, gallery=gallery, options=BARE).row("recall_at_1").value
    words = np.array(["g", "a", "f", "b", "e", "c", "d", "z"])
    asked["target"] = words[asked["target"]]
    more = np.append(gallery["target"], 7)  # a class that no query has
    named = {name: np.append(v, v[:1], axis=0) for name, v in gallery.items()}
    named["target"] = words[more]
    found = score(asked, gallery=named, options=BARE).row("recall_at_1").value
    assert found == pytest.approx(plain, abs=0.05)
    with pytest.raises(ValueError, match="nobody knows which are the same; name them"):
        score(asked, gallery=gallery, options=BARE)


def test_the_verdict_says_that_the_length_is_taken():
    asked = arrays(1, 60)
    del asked["uncertainty/head"]
    results = score(asked, options=BARE)
    assert "by 1/norm, as the file has no uncertainty" in results.verdict[1].because
    rows = asked["embedding"]
    asked["embedding"] = rows / np.linalg.norm(rows, axis=1)[:, None]
    notes = " ".join(score(asked, options=BARE).notes)
    assert "is constant: it orders nothing" in notes
    assert "store them before they are normalised" in notes
