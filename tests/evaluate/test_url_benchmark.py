"""Judging URL from predictions files alone."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import spearmanr

from evaluate.made_embeddings import make_embedding_runs
from plans import part_of, run_of
from qualms import predictions, scores
from qualms.benchmarks.url import url
from qualms.benchmarks.url._judge import FEWEST_CLASSES
from qualms.evaluate import ScoreOptions
from qualms.evaluate.benchmark import judge_plan
from qualms.inference import (
    influence_of,
    interval_of,
    mean_influence,
    sampling_design,
)
from qualms.runs import stored
from qualms.scores.arguments import called_in_order
from qualms.scores.as_published import url as released
from qualms.scores.retrieval import retrieved

BARE = ScoreOptions(resamples=0, workers=2)
BENCHMARK = url()
ROWS = (
    *("ce", "elk", "mcdropout", "hetxl", "hetxl_log_determinant"),
    "ce_few2_birds",
)
SEEDS = (1, 2, 3)
SETS = ("birds", "cars", "products")
PLAN = part_of(
    BENCHMARK.plan("small"),
    variants=("species",),
    rows=ROWS,
    seeds=SEEDS,
    pools=tuple((seed,) for seed in SEEDS),
)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    out = tmp_path_factory.mktemp("runs")
    make_embedding_runs(PLAN, out)
    return out


@pytest.fixture(scope="module")
def judged(made):
    return judge_plan(PLAN, made, options=BARE)


def arrays(made, row, split, seed=1):
    folder = made / "url" / run_of(PLAN, "species", row, seed).hash
    return predictions.read(stored(folder, split)).arrays


def ours(judged, row, score, subset="all", uncertainty=None):
    at = {"variant": "species", "row": row, "uncertainty": uncertainty}
    return judged.result(**at, subset=subset, score=score)


def test_every_row_has_the_scores_of_every_set(judged):
    for row in ROWS[:-1]:
        for name in SETS:
            for score in (
                *("recall_at_1", "r_auroc", "crop_rate"),
                *("ood_auroc", "mixed_r_auroc"),
            ):
                assert len(ours(judged, row, score, name).values) == len(SEEDS)
        for score in ("accuracy", "recall_at_1", "r_auroc", "crop_rate"):
            assert ours(judged, row, score, "upstream").values, score
        assert ours(judged, row, "human_alignment", "votes").values
    assert not judged.missing


def test_no_two_numbers_have_the_same_labels(judged):
    labels = [tuple(sorted(row.labels.items())) for row in judged.table]
    assert len(set(labels)) == len(labels) > 100


def test_scores_of_a_set_are_those_of_its_file(made, judged):
    stored_arrays = arrays(made, "ce", "birds:test")
    embedding, target = stored_arrays["embedding"], stored_arrays["target"]
    u = stored_arrays["uncertainty/entropy"]
    names = "recall_at_1", "r_auroc", "crop_rate"
    recall, auroc, crop = (ours(judged, "ce", n, "birds").values[0] for n in names)
    assert recall == scores.recall_at_1(embedding, target)
    assert auroc == pytest.approx(
        scores.r_auroc(embedding=embedding, target=target, uncertainty=u), abs=1e-12
    )
    assert crop == scores.crop_rate(
        uncertainty=u, cropped=stored_arrays["uncertainty_cropped/entropy"]
    )


@pytest.mark.parametrize(
    "score", ["recall_at_1", "r_auroc", "crop_rate", "ood_auroc", "mixed_r_auroc"]
)
def test_means_over_sets_are_unweighted(judged, score):
    each = [ours(judged, "elk", score, name).values for name in SETS]
    mean = ours(judged, "elk", score)
    assert mean.values == pytest.approx(np.mean(each, axis=0), abs=1e-12)
    assert mean.low < np.mean(mean.values) < mean.high


@pytest.mark.parametrize("score", ["recall_at_1", "r_auroc"])
def test_intervals_of_retrieval_sets_cover_other_classes(made, judged, score):
    influences = []
    for seed in SEEDS:
        found = arrays(made, "elk", "birds:test", seed)
        hits = scores.retrieval_hits(found["embedding"], found["target"])
        if score == "recall_at_1":
            about = scores.about(scores.recall_at_1)
            influences.append(mean_influence(hits, about=about))
        else:
            ranked = found["uncertainty/head"], 1 - hits, hits
            influences.append(influence_of(scores.weighted_auroc, *ranked))
    design = sampling_design(len(hits), cluster=found["target"])
    wanted = interval_of(influences, design=design)
    result = ours(judged, "elk", score, "birds")
    assert (result.low, result.high) == pytest.approx((wanted.low, wanted.high))


def test_intervals_of_known_classes_cover_other_items(made, judged):
    found = [arrays(made, "ce", "test", seed) for seed in SEEDS]
    searches = [retrieved(one["embedding"], one["target"]) for one in found]
    about = scores.about(scores.recall_at_1)
    influences = [mean_influence(one.hits, about=about) for one in searches]
    design = sampling_design(len(searches[0].hits), cluster=searches[0].unit)
    wanted = interval_of(influences, design=design)
    result = ours(judged, "ce", "recall_at_1", "upstream")
    assert (result.low, result.high) == pytest.approx((wanted.low, wanted.high))


def test_intervals_of_few_classes_say_that_they_cover_their_items_alone(tmp_path):
    plan = part_of(PLAN, variants=("species",), rows=("ce",), seeds=(1,), pools=((1,),))
    make_embedding_runs(plan, tmp_path, classes=FEWEST_CLASSES - 1)
    told = " ".join(judge_plan(plan, tmp_path, options=BARE).notes)
    assert "birds has 9 classes: intervals speak of other items" in told


def test_uncertainties_are_compared_with_the_true_ambiguity(made, judged):
    each = []
    for name in SETS:
        found = arrays(made, "elk", f"{name}:test")
        exact = spearmanr(found["uncertainty/head"], found["extra/ambiguity"])[0]
        number = ours(judged, "elk", "ambiguity_spearman", name)
        assert number.values[0] == pytest.approx(exact, abs=1e-12)
        assert number.low < np.mean(number.values) < number.high
        each.append(number.values)
    mean = ours(judged, "elk", "ambiguity_spearman")
    assert mean.values == pytest.approx(np.mean(each, axis=0), abs=1e-12)
    assert mean.low < np.mean(mean.values) < mean.high
    # The votes have a human alignment beside it, which is another number.
    alignment, ambiguity = (
        ours(judged, "elk", score, "votes").values
        for score in ("human_alignment", "ambiguity_spearman")
    )
    assert alignment != ambiguity
    assert ours(judged, "elk", "human_alignment", "soft").values == alignment


def test_a_row_that_shows_another_uncertainty_has_the_numbers_of_that(judged):
    shown = ours(judged, "hetxl_log_determinant", "r_auroc")
    same = ours(judged, "hetxl", "r_auroc", uncertainty="log_determinant")
    assert shown.values == same.values


def test_a_mean_over_sets_is_surer_than_one_set(judged):
    widths = [
        ours(judged, "elk", "r_auroc", name).high
        - ours(judged, "elk", "r_auroc", name).low
        for name in SETS
    ]
    mean = ours(judged, "elk", "r_auroc")
    assert mean.high - mean.low < np.mean(widths)


def test_released_means_are_of_rounded_numbers(made, judged):
    each = []
    for name in SETS:
        stored_arrays = arrays(made, "ce", f"{name}:test")
        values = (
            stored_arrays["embedding"],
            stored_arrays["target"],
            stored_arrays["uncertainty/entropy"],
        )
        each.append(round(called_in_order(released.r_auroc, *values), 4))
    theirs = ours(judged, "ce", "r_auroc").released_values[0]
    assert theirs == pytest.approx(np.mean(each), abs=1e-12)


def test_upstream_and_downstream_items_are_compared_in_equal_numbers(made, judged):
    inside = arrays(made, "ce", "test")["uncertainty/entropy"]
    outside = arrays(made, "ce", "cars:test")["uncertainty/entropy"]
    assert len(inside) == len(outside)
    apart = np.repeat([False, True], [len(inside), len(outside)])
    wanted = scores.ood_auroc(
        uncertainty=np.concatenate([inside, outside]), shifted=apart
    )
    found = ours(judged, "ce", "ood_auroc", "cars")
    assert found.values[0] == pytest.approx(wanted)


def test_a_row_is_judged_by_the_uncertainty_that_the_paper_takes(judged):
    for row, u in (("elk", "head"), ("hetxl", "entropy")):
        chosen = ours(judged, row, "r_auroc").values
        assert chosen == ours(judged, row, "r_auroc", uncertainty=u).values
    chosen = ours(judged, "mcdropout", "r_auroc")
    same = ours(judged, "mcdropout", "r_auroc", uncertainty="mutual_information")
    assert chosen.values == same.values


def test_a_few_shot_row_is_judged_on_the_other_half_of_the_classes(made, judged):
    stored_arrays = arrays(made, "ce_few2_birds", "birds:test/odd")
    recall = scores.recall_at_1(stored_arrays["embedding"], stored_arrays["target"])
    few = ours(judged, "ce_few2_birds", "recall_at_1")
    assert few.values[0] == recall
    labels = {"first": "ce", "shots": "2", "taught": "birds", "method": "map"}
    assert labels.items() <= few.labels.items()


def test_top_one_is_the_share_of_right_classes_upstream(made, judged):
    stored_arrays = arrays(made, "ce", "test")
    share = np.mean(stored_arrays["predicted"] == stored_arrays["target"])
    assert ours(judged, "ce", "accuracy", "upstream").values[0] == pytest.approx(share)


def test_lengths_of_embeddings_are_drawn(judged):
    drawn = judged.histograms.where(name="norm").values
    assert len(drawn) == len(ROWS) - 1
    for histogram in drawn:
        assert list(histogram.parts) == ["upstream", *SETS]
        for part in histogram.parts.values():
            assert part.sum() == pytest.approx(1.0)


def test_a_copy_under_another_name_is_judged_alike(judged, tmp_path):
    """The protocol is named by a field, and never found by the benchmark's name."""
    copy = replace(PLAN, benchmark=replace(BENCHMARK, name="mine"))
    make_embedding_runs(copy, tmp_path)
    mine = judge_plan(copy, tmp_path, options=BARE)
    assert [r.value for r in mine.table] == pytest.approx(
        [r.value for r in judged.table], nan_ok=True
    )
    # Without it, only the items of the variant are judged, and that is said.
    bare = replace(PLAN, benchmark=replace(BENCHMARK, name="mine", protocol=None))
    few = judge_plan(bare, tmp_path, options=BARE)
    assert len(few.table) < len(judged.table)
    (note,) = [note for note in few.notes if note.startswith("not judged: splits")]
    assert "birds:test" in note
    assert "Benchmark mine names no protocol" in note
