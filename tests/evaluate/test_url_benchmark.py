"""Judging URL from predictions files alone."""

from dataclasses import replace

import numpy as np
import pytest

from evaluate.made_embeddings import make_embedding_runs
from qualms import predictions, scores
from qualms.benchmarks import Place, variant_of
from qualms.benchmarks.url import url
from qualms.evaluate import ScoreOptions
from qualms.evaluate.benchmark import judge
from qualms.runs import stored
from qualms.scores.as_published import url as released

BARE = ScoreOptions(resamples=0, workers=2)
BENCHMARK = url()
SMALL = BENCHMARK.presets["small"]
ROWS = ("ce", "elk", "mcdropout", "hetxl", "ce_few2_birds")
SETS = ("birds", "cars", "products")
PRESET = replace(
    SMALL,
    variants=(variant_of(SMALL, "species"),),
    rows=ROWS,
    seeds=(1, 2),
    pools=((1,), (2,)),
)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    out = tmp_path_factory.mktemp("runs")
    make_embedding_runs(BENCHMARK, PRESET, out)
    return out


@pytest.fixture(scope="module")
def judged(made):
    return judge(BENCHMARK, PRESET, made, options=BARE)


def arrays(made, row, split, seed=1):
    place = Place(PRESET.variants[0], BENCHMARK.row(row), {})
    folder = made / "url" / BENCHMARK.spec(PRESET, place, seed).hash
    return predictions.read(stored(folder, split)).arrays


def ours(judged, row, score, **settings):
    return judged.cell("species", row, score, settings)


def test_every_row_has_the_scores_of_every_set(judged):
    for row in ROWS[:-1]:
        for name in SETS:
            for score in (
                *("recall_at_1", "r_auroc", "crop_rate"),
                *("ood_auroc", "mixed_r_auroc"),
            ):
                assert len(ours(judged, row, f"{name}/{score}").values) == 2
        for score in ("accuracy", "recall_at_1", "r_auroc", "crop_rate"):
            assert ours(judged, row, f"upstream/{score}").values, score
        assert ours(judged, row, "votes/human_alignment").values
    assert not judged.missing


def test_scores_of_a_set_are_those_of_its_file(made, judged):
    found = arrays(made, "ce", "birds:test")
    embedding, target = found["embedding"], found["target"]
    u = found["uncertainty/entropy"]
    at = "birds/recall_at_1", "birds/r_auroc", "birds/crop_rate"
    recall, auroc, crop = (ours(judged, "ce", score).values[0] for score in at)
    assert recall == scores.recall_at_1(embedding, target)
    assert auroc == pytest.approx(scores.r_auroc(embedding, target, u), abs=1e-12)
    assert crop == scores.crop_rate(u, found["uncertainty_cropped/entropy"])


@pytest.mark.parametrize(
    "score", ["recall_at_1", "r_auroc", "crop_rate", "ood_auroc", "mixed_r_auroc"]
)
def test_means_over_sets_are_unweighted(judged, score):
    each = [ours(judged, "elk", f"{name}/{score}").values for name in SETS]
    mean = ours(judged, "elk", score)
    assert mean.values == pytest.approx(np.mean(each, axis=0), abs=1e-12)
    assert mean.low < np.mean(mean.values) < mean.high


def test_a_mean_over_sets_is_surer_than_one_set(judged):
    widths = [
        ours(judged, "elk", f"{name}/r_auroc").high
        - ours(judged, "elk", f"{name}/r_auroc").low
        for name in SETS
    ]
    mean = ours(judged, "elk", "r_auroc")
    assert mean.high - mean.low < np.mean(widths)


def test_released_means_are_of_rounded_numbers(made, judged):
    each = []
    for name in SETS:
        found = arrays(made, "ce", f"{name}:test")
        values = found["embedding"], found["target"], found["uncertainty/entropy"]
        each.append(round(released.r_auroc(*values), 4))
    theirs = ours(judged, "ce", "r_auroc").as_published[0]
    assert theirs == pytest.approx(np.mean(each), abs=1e-12)


def test_upstream_and_downstream_items_are_compared_in_equal_numbers(made, judged):
    inside = arrays(made, "ce", "test")["uncertainty/entropy"]
    outside = arrays(made, "ce", "cars:test")["uncertainty/entropy"]
    assert len(inside) == len(outside)
    apart = np.repeat([False, True], [len(inside), len(outside)])
    wanted = scores.ood_auroc(np.concatenate([inside, outside]), apart)
    assert ours(judged, "ce", "cars/ood_auroc").values[0] == pytest.approx(wanted)


def test_a_row_is_judged_by_the_uncertainty_that_the_paper_takes(judged):
    for row, u in (("elk", "head"), ("hetxl", "entropy")):
        chosen = ours(judged, row, "r_auroc").values
        assert chosen == ours(judged, row, "r_auroc", u=u).values
    chosen = ours(judged, "mcdropout", "r_auroc").values
    assert chosen == ours(judged, "mcdropout", "r_auroc", u="mutual_information").values


def test_a_few_shot_row_is_judged_on_the_other_half_of_the_classes(made, judged):
    found = arrays(made, "ce_few2_birds", "birds:test/odd")
    recall = scores.recall_at_1(found["embedding"], found["target"])
    assert ours(judged, "ce_few2_birds", "recall_at_1").values[0] == recall


def test_top_one_is_the_share_of_right_classes_upstream(made, judged):
    found = arrays(made, "ce", "test")
    share = np.mean(found["predicted"] == found["target"])
    assert ours(judged, "ce", "upstream/accuracy").values[0] == pytest.approx(share)


def test_lengths_of_embeddings_are_drawn(judged):
    drawn = [h for key, h in judged.histograms.items() if key.name == "norm"]
    assert len(drawn) == len(ROWS) - 1
    for histogram in drawn:
        assert list(histogram.parts) == ["upstream", *SETS]
        for part in histogram.parts.values():
            assert part.sum() == pytest.approx(1.0)
