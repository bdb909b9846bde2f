"""The URL code's scores, against its golden numbers and torchmetrics."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from torchmetrics.functional.classification import binary_auroc

from evaluate.toy_url import toy, toy_votes
from qualms.scores import human, ood, retrieval
from qualms.scores.arguments import called_in_order
from qualms.scores.as_published import url

GOLDEN = json.loads(
    (Path(__file__).parents[2] / "golden" / "url.json").read_text(encoding="utf-8")
)
TOY = GOLDEN["H_end_to_end_validate"]
PLAIN = "r_auroc_exact_exclude_by_index[{}]"
THEIRS = "r_auroc_theirs[{}]"


def clustered_300():
    rng = np.random.default_rng(0)
    centre = rng.normal(size=(20, 32))
    target = rng.integers(0, 20, size=300)
    target[0] = 20
    centre = np.vstack([centre, rng.normal(size=(1, 32))])
    embedding = (centre[target] + 1.5 * rng.normal(size=(300, 32))).astype(np.float32)
    uncertainty = rng.random(300).astype(np.float32)
    return embedding, target, uncertainty


def clustered_2000():
    rng = np.random.default_rng(1)
    centre = rng.normal(size=(50, 128))
    target = rng.integers(0, 50, size=2000)
    noise = 3.0 * rng.normal(size=(2000, 128))
    embedding = (centre[target] + noise).astype(np.float32)
    distance = ((embedding - centre[target]) ** 2).sum(axis=1)
    return embedding, target, (distance / distance.max()).astype(np.float32)


VARIANTS = {
    "u_uniform01": lambda u: u,
    "u_quantised_10_levels": lambda u: np.floor(10 * u) / np.float32(10),
    "u_scaled_x100": lambda u: 100 * u,
    "u_logdet_like_1000u_minus_3000": lambda u: 1000 * u - 3000,
}


@pytest.mark.parametrize(
    ("name", "make"),
    [
        ("A1_clustered_N300_D32_singleton", clustered_300),
        ("A4_clustered_N2000_D128", clustered_2000),
    ],
)
def test_retrieval_matches_the_golden_numbers(name, make):
    golden = GOLDEN[name]
    embedding, target, _ = make()
    first = retrieval.nearest_neighbour(embedding)[:10]
    assert first.tolist() == golden["nn_index_first10_exclude_by_index"]
    hits = retrieval.retrieval_hits(embedding, target)
    assert hits.sum() == golden["correct_exclude_by_index_sum"]
    assert retrieval.recall_at_1(embedding, target) == pytest.approx(
        golden["r1_exclude_by_index_float64"], rel=1e-12
    )
    assert url.retrieval_hits(embedding, target).sum() == golden["correct_faiss_sum"]
    assert url.recall_at_1(embedding, target) == pytest.approx(
        golden["r1_faiss"], rel=1e-12
    )


@pytest.mark.parametrize("variant", VARIANTS)
def test_r_auroc_matches_the_golden_numbers_on_300_items(variant):
    golden = GOLDEN["A1_clustered_N300_D32_singleton"]
    embedding, target, raw = clustered_300()
    uncertainty = VARIANTS[variant](raw)
    plain = retrieval.r_auroc(
        embedding=embedding, target=target, uncertainty=uncertainty
    )
    assert plain == pytest.approx(golden[PLAIN.format(variant)], rel=1e-12)
    theirs = url.r_auroc(embedding=embedding, target=target, uncertainty=uncertainty)
    # torchmetrics integrates in float32
    assert theirs == pytest.approx(golden[THEIRS.format(variant)], rel=1e-6)


def test_r_auroc_matches_the_golden_numbers_on_2000_items():
    golden = GOLDEN["A4_clustered_N2000_D128"]
    arrays = clustered_2000()
    plain = called_in_order(retrieval.r_auroc, *arrays)
    assert plain == pytest.approx(golden[PLAIN.format("u_dist")], rel=1e-12)
    assert called_in_order(url.r_auroc, *arrays) == pytest.approx(
        golden[THEIRS.format("u_dist")], rel=1e-6
    )


def test_crop_rate_matches_the_golden_number():
    value = retrieval.crop_rate(
        uncertainty=[0.1, 0.2, 0.3, 0.4], cropped=[0.2, 0.2, 0.1, 0.9]
    )
    assert value == GOLDEN["A5_crop_metric"]["value"]


@pytest.mark.parametrize(
    ("name", "block", "prefix"),
    [
        ("upstream", "upstream", ""),
        ("hard", "downstream", "hard_"),
        ("soft", "soft", "soft_"),
    ],
)
def test_the_toy_run_gives_the_golden_table(name, block, prefix):
    golden = TOY[block]
    embedding, uncertainty, target, cropped = toy(name)
    table = {
        "r1": url.recall_at_1(embedding, target),
        "auroc_correct": url.r_auroc(
            embedding=embedding, target=target, uncertainty=uncertainty
        ),
        "croppedHasBiggerUnc": retrieval.crop_rate(
            uncertainty=uncertainty, cropped=cropped
        ),
    }
    assert {key: round(value, 4) for key, value in table.items()} == {
        key: golden[prefix + key] for key in table
    }
    # No item of these has a duplicate, so the plain scores agree.
    assert retrieval.recall_at_1(embedding, target) == table["r1"]
    plain = retrieval.r_auroc(
        embedding=embedding, target=target, uncertainty=uncertainty
    )
    assert plain == pytest.approx(table["auroc_correct"], abs=1e-12)


def test_the_toy_crops_are_those_of_the_golden_file():
    embedding, uncertainty, _, cropped = toy("hard")
    extra = TOY["extra_unrounded"]
    np.testing.assert_allclose(uncertainty[:5], extra["unc_first5"], rtol=1e-6)
    np.testing.assert_allclose(cropped[:5], extra["unc_crop_first5"], rtol=1e-6)
    np.testing.assert_allclose(embedding[0], extra["feat_row0"], rtol=1e-5)
    assert (
        retrieval.crop_rate(uncertainty=uncertainty, cropped=cropped)
        == extra["pct_cropped"]
    )


@pytest.mark.parametrize(
    ("name", "block", "seed"), [("hard", "downstream", 231), ("soft", "soft", 232)]
)
def test_mixed_and_ood_scores_of_the_toy_run_are_golden(name, block, seed):
    above, below = toy("upstream"), toy(name)
    embedding, uncertainty, target = (
        np.concatenate(pair) for pair in zip(above[:3], below[:3], strict=True)
    )
    upstream = np.arange(len(target)) < 40
    chosen = np.random.default_rng(seed).permutation(len(below[0]))[:40]
    sampled = np.append(np.random.default_rng(230).permutation(40), 40 + chosen)
    arrays = embedding, target, uncertainty, upstream
    mixed = called_in_order(url.mixed_r_auroc, *arrays, sampled=sampled)
    golden = TOY[block][f"{name}_auroc_correct_mixed"]
    assert mixed == pytest.approx(golden, rel=1e-6)
    part = [array[sampled] for array in arrays]
    assert called_in_order(retrieval.mixed_r_auroc, *part) == pytest.approx(
        golden, rel=1e-6
    )
    golden = TOY[block][f"{name}_auroc_ood"]
    assert url.ood_auroc(uncertainty=part[2], shifted=~part[3]) == pytest.approx(
        golden, rel=1e-6
    )
    assert ood.ood_auroc(uncertainty=part[2], shifted=~part[3]) == pytest.approx(
        golden, rel=1e-6
    )


def test_human_alignment_of_the_toy_run_is_golden_with_ties_broken_by_rounding():
    uncertainty = toy("soft")[1]
    votes = toy_votes()
    published = url.human_alignment(uncertainty=uncertainty, votes=votes)
    assert round(published.value, 4) == TOY["soft"]["soft_rcorr_entropy"]
    assert published.dropped == 1
    entropy = human.vote_entropy(votes)
    golden = np.array(TOY["soft_entropy_first8_nats"], dtype=float)
    np.testing.assert_allclose(entropy[:8], golden, rtol=1e-6)
    assert human.human_alignment(uncertainty=uncertainty, votes=votes) != published


@pytest.mark.parametrize("scale", [0.5, 3.0, 40.0, 2000.0])
@pytest.mark.parametrize("seed", range(4))
def test_ood_auroc_is_that_of_torchmetrics(scale, seed):
    rng = np.random.default_rng(seed)
    uncertainty = (scale * rng.random(200)).astype(np.float32)
    shifted = rng.random(200) < 0.4
    expected = binary_auroc(torch.tensor(uncertainty), torch.tensor(shifted).int())
    value = url.ood_auroc(uncertainty=uncertainty, shifted=shifted)
    # A last-bit difference between two float32 sigmoids may tie a pair or two.
    assert value == pytest.approx(float(expected), abs=1e-4)


@pytest.mark.filterwarnings("ignore:No (positive|negative) samples:UserWarning")
@pytest.mark.parametrize("shifted", [np.zeros(9, bool), np.ones(9, bool)])
def test_one_class_alone_scores_zero_as_in_torchmetrics(shifted):
    uncertainty = np.arange(9) / 9
    expected = binary_auroc(torch.tensor(uncertainty), torch.tensor(shifted).int())
    assert (
        url.ood_auroc(uncertainty=uncertainty, shifted=shifted)
        == float(expected)
        == 0.0
    )


def heap_of_two(similarity):
    """The two best columns as a search library with a bounded heap returns them."""
    held = [(-np.inf, -1), (-np.inf, -1)]
    for column, value in enumerate(similarity):
        if value > min(held)[0]:
            held.remove(min(held))
            held.append((value, column))
    return max(held)[1], min(held)[1]


def test_the_second_of_two_matches_follows_the_heap_rule_among_ties():
    rng = np.random.default_rng(0)
    embedding = rng.integers(-1, 2, size=(80, 3)).astype(np.float32)
    embedding[~embedding.any(axis=1)] = [1, 0, 0]
    length = np.linalg.norm(embedding, axis=1, keepdims=True).astype(np.float32)
    unit = (embedding / length).astype(np.float64)
    similarity = (unit @ unit.T).astype(np.float32)
    expected = [heap_of_two(row)[1] for row in similarity]
    for block in (1, 7, 512):
        assert url.nearest_neighbour(embedding, block=block).tolist() == expected


def test_an_item_may_be_its_own_neighbour_among_duplicates():
    embedding = np.array([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0], [0.3, 1.0]])
    assert url.nearest_neighbour(embedding).tolist() == [0, 0, 3, 2]
    assert retrieval.nearest_neighbour(embedding).tolist() == [1, 0, 3, 2]
    target = [0, 1, 2, 2]
    assert url.recall_at_1(embedding, target) == 0.75
    assert retrieval.recall_at_1(embedding, target) == 0.5


def test_mixed_targets_collide_where_the_first_rows_miss_the_largest_class():
    embedding = np.array([[1.0, 0.0], [0.0, 1.0], [0.0, 1.1], [1.0, 0.1], [1.0, 0.3]])
    upstream = np.array([True, False, False, False, False])
    target = np.array([0, 0, 0, 1, 2])
    sampled = np.array([0, 3, 4])
    hits_plain = retrieval.retrieval_hits(
        embedding[sampled],
        retrieval.mixed_target(target=target, upstream=upstream)[sampled],
    )
    assert hits_plain.tolist() == [0, 0, 0]
    # The first two downstream rows are of class 0, so the upstream class becomes 1.
    uncertainty = np.array([0.1, 0.0, 0.0, 0.2, 0.9])
    published = url.mixed_r_auroc(
        embedding=embedding,
        target=target,
        uncertainty=uncertainty,
        upstream=upstream,
        sampled=sampled,
    )
    assert published == 1.0
    plain = retrieval.mixed_r_auroc(
        embedding=embedding[sampled],
        target=target[sampled],
        uncertainty=uncertainty[sampled],
        upstream=upstream[sampled],
    )
    assert np.isnan(plain)


def test_nan_entries_count_as_zero_and_a_collapsed_embedding_is_refused():
    embedding = np.array([[1.0, np.nan], [1.0, 0.1], [0.0, 1.0]])
    filled = np.nan_to_num(embedding)
    np.testing.assert_array_equal(
        url.nearest_neighbour(embedding), url.nearest_neighbour(filled)
    )
    zeros = np.zeros((20, 2))
    zeros[0] = 1
    with pytest.raises(ValueError, match="zero for more than 90 %"):
        url.nearest_neighbour(zeros)


def test_malformed_embeddings_are_refused():
    with pytest.raises(ValueError, match=r"shape \(N, D\), N at least 2"):
        url.nearest_neighbour([[1.0, 2.0]])
    with pytest.raises(ValueError, match="finite"):
        url.nearest_neighbour([[1.0, np.inf], [1.0, 0.0]])
