"""Plans for queries of a retrieval: which of them should a person check?"""

import numpy as np
import pytest

import qualms
from qualms import predictions, scores
from qualms.referral import ReferralOptions, plan_choices
from qualms.report import plan_to_json, print_plan


def embedded(seed, n=400, **more):
    """Embeddings that are short where they are noisy."""
    rng = np.random.default_rng(seed)
    target = np.arange(n) % 7
    noise = 0.2 + 1.5 * rng.random(n)
    centre = 2 * np.random.default_rng(0).normal(size=(7, 6))
    embedding = centre[target] + noise[:, None] * rng.normal(size=(n, 6))
    length = np.linalg.norm(embedding, axis=1) * noise
    embedding = (embedding / length[:, None]).astype(np.float32)
    return {"embedding": embedding, "target": target, **more}


ASKED, GALLERY = embedded(1), embedded(2, 300)
IN_GALLERY = ReferralOptions(gallery=GALLERY)


def hits_of(asked, gallery):
    ranks = scores.right_ranks(
        asked["embedding"],
        asked["target"],
        gallery=gallery["embedding"],
        gallery_target=gallery["target"],
    )
    return scores.hits_within(ranks, 1)


def test_the_promise_is_that_of_right_and_wrong_queries():
    plan = qualms.refer(ASKED, accuracy=0.8, options=IN_GALLERY)
    hits = hits_of(ASKED, GALLERY)
    u = predictions.inverse_norm(ASKED["embedding"])
    as_classes = {"target": np.zeros(400, int), "uncertainty/own": u}
    as_classes["prob"] = np.where(hits > 0.5, 0.1, 0.9)
    options = ReferralOptions(uncertainty="own")
    other = qualms.refer(as_classes, accuracy=0.8, options=options)
    assert plan.threshold == pytest.approx(other.threshold)
    assert plan.promise == other.promise
    kept = u < plan.threshold
    (measure,) = plan.outcomes[0].measures
    assert (measure.score, measure.label) == ("accuracy", "R@1")
    assert measure.before.value == pytest.approx(hits.mean())
    assert measure.kept.value == pytest.approx(hits[kept].mean())
    assert "at least 80% of the kept queries have a nearest item" in plan.promise_words
    assert plan.outcomes[0].curve.name == "referral_recall_at_1"
    assert any("new queries of it" in note for note in plan.notes)


def test_queries_that_are_each_others_nearest_are_one_cluster_without_a_gallery():
    plan = qualms.refer(ASKED, budget=0.3)
    units = scores.retrieval.retrieved(ASKED["embedding"], ASKED["target"]).unit
    assert plan.outcomes[0].clusters == len(np.unique(units)) < 400
    before = plan.outcomes[0].measure("accuracy").before.value
    assert before == pytest.approx(
        scores.recall_at_1(ASKED["embedding"], ASKED["target"])
    )
    assert any("each other's nearest are one cluster" in note for note in plan.notes)


def test_a_tie_of_several_classes_counts_as_wrong():
    gallery = {"embedding": [[1.0, 0], [1.0, 0], [0, 1.0]], "target": [0, 1, 2]}
    asked = {"embedding": [[2.0, 0], [0, 3.0]], "target": [0, 2]}
    plan = qualms.refer(asked, budget=0.5, options=ReferralOptions(gallery=gallery))
    assert plan.outcomes[0].measure("accuracy").before.value == 0.5


def test_a_plan_is_kept_and_applied_to_queries_of_unknown_class(tmp_path, capsys):
    plan = qualms.refer(ASKED, accuracy=0.8, options=IN_GALLERY)
    read = qualms.read_plan(plan.save(tmp_path / "plan.json"))
    assert read.promise_words == plan.promise_words
    new = {"embedding": embedded(3)["embedding"]}
    applied = read.apply(new)
    assert applied.check.verdict == "alike"
    u = predictions.inverse_norm(new["embedding"])
    assert applied.refer.tolist() == (u >= plan.threshold).tolist()
    assert list(applied.items.columns) == ["item", "row", "uncertainty", "length"]
    shrunk = {"embedding": new["embedding"] / 3}
    assert "lengths" in read.apply(shrunk).check.sentence
    print_plan(plan)
    shown = capsys.readouterr().out
    assert "R@1 80%" in shown
    assert "accuracy" not in shown
    (measure,) = plan_to_json(plan)["outcomes"][0]["scores"]
    assert (measure["score"], measure["label"]) == ("accuracy", "R@1")


def test_shifted_upstream_and_unknown_queries_are_set_apart():
    more = {"shifted": np.arange(400) < 100, "upstream": np.arange(400) >= 300}
    asked = embedded(1, **more)
    asked["target"] = np.where(np.arange(400) % 50 == 0, -1, asked["target"])
    plan = qualms.refer(asked, budget=0.2, options=IN_GALLERY)
    assert [(o.subset, o.n) for o in plan.outcomes] == [
        ("in_domain", 196),
        ("shifted", 98),
    ]


def test_every_answer_of_the_planner_is_that_of_a_plan():
    choices = plan_choices(ASKED, options=IN_GALLERY)
    assert list(choices.scores) == ["accuracy"]
    for target in (0.6, 0.8):
        plan = qualms.refer(ASKED, accuracy=target, options=IN_GALLERY)
        assert choices.threshold("accuracy", target) == plan.threshold
    assert choices.sets[0].measure("accuracy").label == "R@1"


def test_what_a_plan_for_queries_cannot_do_is_said():
    with pytest.raises(ValueError, match="which is R@1 of the kept queries"):
        qualms.refer(ASKED, options=ReferralOptions(specificity=0.9))
    classes = {"prob": [0.1, 0.9], "target": [0, 1]}
    with pytest.raises(ValueError, match="a gallery is for embeddings, leave it out"):
        qualms.refer(classes, budget=0.5, options=IN_GALLERY)
    plan = qualms.refer(ASKED, budget=0.3)
    with pytest.raises(ValueError, match="holds classification, and the plan is for"):
        plan.apply(classes)
