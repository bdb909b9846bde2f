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
from qualms import predictions
from qualms.benchmarks import Place
from qualms.benchmarks.url import url
from qualms.evaluate import ScoreOptions
from qualms.evaluate.benchmark import judge
from qualms.runs import split_stem
from qualms.spec import Part
from qualms.training.predict import centre_crops

GOLDEN = json.loads(
    (Path(__file__).parents[1] / "golden" / "url.json").read_text(encoding="utf-8")
)["H_end_to_end_validate"]
BENCHMARK = url()
DEMO = BENCHMARK.presets["demo"]
NAMES = {"r1": "recall_at_1", "auroc_correct": "r_auroc"}
NAMES |= {"croppedHasBiggerUnc": "crop_rate", "rcorr_entropy": "human_alignment"}


def preset():
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
    return replace(DEMO, variants=(variant,), rows=("hib",))


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
    out, chosen = tmp_path_factory.mktemp("runs"), preset()
    place = Place(chosen.variants[0], BENCHMARK.row("hib"), {})
    spec = BENCHMARK.spec(chosen, place, chosen.seeds[0])
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
    return judge(BENCHMARK, preset(), files[""], options=options)


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
            cell = judged.cell("species", "hib", f"{name}/{ours}")
            assert round(cell.as_published[0], 4) == golden[prefix + theirs], theirs
            # No two items are alike, so only ties of entropies make a difference.
            if theirs != "rcorr_entropy":
                assert cell.values[0] == pytest.approx(cell.as_published[0], abs=1e-9)


def test_top_one_is_golden(judged):
    found = judged.cell("species", "hib", "upstream/accuracy").values[0]
    assert 100 * found == pytest.approx(GOLDEN["upstream"]["top1"])


def test_a_mean_over_one_set_with_votes_is_rounded_as_in_the_golden_file(judged):
    for theirs, ours in NAMES.items():
        cell = judged.cell("species", "hib", f"soft/{ours}")
        assert cell.as_published[0] == GOLDEN["soft"][f"avg_downstream_{theirs}"]


@pytest.mark.parametrize(("name", "block"), [("hard", "downstream"), ("soft", "soft")])
def test_upstream_items_against_others_are_golden(judged, name, block):
    for theirs, ours in (("correct_mixed", "mixed_r_auroc"), ("ood", "ood_auroc")):
        cell = judged.cell("species", "hib", f"drawn_{name}/{ours}")
        golden = pytest.approx(GOLDEN[block][f"{name}_auroc_{theirs}"], rel=1e-6)
        assert cell.as_published[0] == golden
        assert cell.values[0] == golden


def test_a_file_alone_gives_the_same(files):
    results = qualms.score(files["hard"])
    for theirs in ("r1", "auroc_correct", "croppedHasBiggerUnc"):
        found = results[NAMES[theirs]]
        assert round(found.value, 4) == GOLDEN["downstream"][f"hard_{theirs}"]
