"""URL from images to the benchmark's table, as the released code validates a model.

Crops are those of `qualms.training`, predictions lie in files, and the benchmark judges
them; the released code's numbers are in the golden file.
"""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

import qualms
from evaluate.toy_url import RECIPES, drawn, images, kept_shares, toy_network, toy_votes
from plans import part_of
from qualms import predictions
from qualms.benchmarks.url import url
from qualms.evaluate import ScoreOptions
from qualms.evaluate.benchmark import judge_plan
from qualms.runs import split_stem
from qualms.spec import Part
from qualms.training.predict import centre_crops

GOLDEN = json.loads(
    (Path(__file__).parents[1] / "golden" / "url.json").read_text(encoding="utf-8")
)["H_end_to_end_validate"]
BENCHMARK = url()
DEMO = BENCHMARK.plan("demo")
NAMES = {"r1": "recall_at_1", "auroc_correct": "r_auroc"}
NAMES |= {"croppedHasBiggerUnc": "crop_rate", "rcorr_entropy": "human_alignment"}


def golden_plan():
    """A row with an uncertainty head, judged on the sets of the golden file.

    Two of them are the items that the released code drew, so that all are compared.
    """
    retrieval, votes = ("hard", "drawn_hard", "drawn_soft"), ("voted",)
    sets = {"retrieval": retrieval, "votes": votes, "chosen": {}}
    made = Part(name="species")
    variant = replace(
        DEMO.variants[0],
        datasets=dict.fromkeys((*retrieval, *votes), made),
        splits=("test", *(f"{name}:test" for name in (*retrieval, *votes))),
        settings=sets,
    )
    return replace(part_of(DEMO, rows=("hib",)), variants=(variant,))


PLAN = golden_plan()


def arrays_of(name):
    """What a run predicts for a set, by the crops of the package."""
    x, target = images(*RECIPES[name])
    embedding, uncertainty, predicted = toy_network(x)
    share = torch.tensor(kept_shares(name))
    arrays = {
        "item": np.array([f"{name} {i}" for i in range(len(x))]),
        "target": target,
        "embedding": embedding,
        "predicted": predicted,
        "uncertainty/head": uncertainty,
        "uncertainty_cropped/head": toy_network(
            centre_crops(torch.tensor(x), share).numpy()
        )[1],
    }
    if name == "soft":
        arrays |= {"target": toy_votes().argmax(axis=1), "votes": toy_votes()}
    return arrays


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """The folder of all runs, and the file of each set."""
    out = tmp_path_factory.mktemp("runs")
    (spec,) = PLAN.runs
    found = {"": out}
    for split in spec.splits:
        name = split.partition(":")[0] if ":" in split else "upstream"
        of = name.removeprefix("drawn_").replace("voted", "soft")
        arrays = arrays_of(of)
        if name.startswith("drawn_"):
            rows = drawn(of)
            arrays = {key: value[rows] for key, value in arrays.items()}
        path = split_stem(out / "url" / spec.hash, split).with_suffix(".safetensors")
        path.parent.mkdir(parents=True, exist_ok=True)
        header = {"task": "embedding", "dataset": "species", "split": "test"}
        header |= {"method": "hib", "seed": spec.seed}
        predictions.write(path, arrays, header=header)
        found[name] = path
    return found


@pytest.fixture(scope="module")
def judged(files):
    options = ScoreOptions(resamples=0, workers=1)
    return judge_plan(PLAN, files[""], options=options)


def number(judged, subset, score):
    at = {"variant": "species", "row": "hib", "uncertainty": None}
    return judged.result(**at, subset=subset, score=score)


@pytest.mark.parametrize(
    ("name", "block", "prefix"),
    [
        ("upstream", "upstream", ""),
        ("hard", "downstream", "hard_"),
        ("voted", "soft", "soft_"),
    ],
)
def test_the_benchmark_gives_the_golden_table_by_their_rule(
    judged, name, block, prefix
):
    golden = GOLDEN[block]
    for theirs, ours in NAMES.items():
        if prefix + theirs in golden:
            value = number(judged, name, ours)
            assert round(value.released, 4) == golden[prefix + theirs], theirs
            # No two items are alike, so only ties of entropies make a difference.
            if theirs != "rcorr_entropy":
                assert value.value == pytest.approx(value.released, abs=1e-9)


def test_top_one_is_golden(judged):
    value = number(judged, "upstream", "accuracy")
    assert 100 * value.value == pytest.approx(GOLDEN["upstream"]["top1"])


def test_a_mean_over_one_set_with_votes_is_rounded_as_in_the_golden_file(judged):
    for theirs, ours in NAMES.items():
        value = number(judged, "soft", ours)
        assert value.released_values[0] == GOLDEN["soft"][f"avg_downstream_{theirs}"]


@pytest.mark.parametrize(("name", "block"), [("hard", "downstream"), ("soft", "soft")])
def test_upstream_items_against_others_are_golden(judged, name, block):
    for theirs, ours in (("correct_mixed", "mixed_r_auroc"), ("ood", "ood_auroc")):
        value = number(judged, f"drawn_{name}", ours)
        golden = pytest.approx(GOLDEN[block][f"{name}_auroc_{theirs}"], rel=1e-6)
        assert value.released == golden
        assert value.value == golden


def test_a_file_alone_gives_the_same(files):
    results = qualms.score(files["hard"])
    for theirs in ("r1", "auroc_correct", "croppedHasBiggerUnc"):
        found = results[NAMES[theirs]]
        assert round(found.value, 4) == GOLDEN["downstream"][f"hard_{theirs}"]
