"""Validation predictions must be of the run that is scored."""

import numpy as np
import pytest

import qualms
from qualms import predictions
from qualms.evaluate import ScoreOptions, score_files

BARE = ScoreOptions(resamples=0)


def binary(seed=0, n=80):
    rng = np.random.default_rng(seed)
    target = rng.integers(0, 2, n)
    prob = np.clip(0.3 + 0.4 * target + rng.normal(0, 0.2, n), 0.01, 0.99)
    return {"target": target, "prob": prob}


def built(number=0, /, **header):
    return predictions.build(binary(number), header=header)


def options(run, dropout=0.1):
    return {"run": run, "network": {"name": "mlp"}, "method": {"rate": dropout}}


DIFFERENT = [
    ({"method": "map"}, {"method": "mc_dropout"}, "its method is 'map'"),
    ({"seed": 0}, {"seed": 1}, "its seed is 0"),
    ({"dataset": "eyepacs"}, {"dataset": "aptos"}, "its dataset is 'eyepacs'"),
    ({"benchmark": "retina"}, {"benchmark": "own"}, "its benchmark"),
    ({"options": options("a1")}, {"options": options("b2")}, "its run is 'a1'"),
    ({"seed": 0}, {"pooled": 5}, "number of pooled runs is 1"),
    (
        {"options": {"method": {"rate": 0.1}}},
        {"options": {"method": {"rate": 0.2}}},
        "its method option 'rate' is 0.1",
    ),
    ({"options": {"lr": 1}}, {"options": {"lr": 2}}, "its option 'lr' is 1"),
]


@pytest.mark.parametrize(("mine", "theirs", "said"), DIFFERENT)
def test_validation_of_another_run_is_refused_unless_insisted_on(mine, theirs, said):
    test, val = built(0, **mine), built(1, **theirs)
    with pytest.raises(ValueError, match=said) as refused:
        qualms.score(test, val=val, options=BARE)
    assert "--force-val (force_val=True)" in str(refused.value)
    forced = qualms.score(test, val=val, options=BARE, force_val=True)
    assert any("val is of another run" in note for note in forced.notes)
    assert forced.row("nll", recalibration="temperature").value > 0


def test_only_what_both_headers_state_is_compared():
    stated = {"method": "map", "seed": 3, "dataset": "a", "options": options("a1")}
    results = qualms.score(built(0, **stated), val=binary(1), options=BARE)
    assert not any("another run" in note for note in results.notes)


def test_a_run_may_predict_validation_items_of_another_dataset():
    test = built(0, dataset="aptos", split="test", options=options("a1"))
    val = built(1, dataset="eyepacs", split="val", options=options("a1"))
    assert qualms.score(test, val=val, options=BARE).rows


def test_arrays_in_memory_take_a_header():
    results = qualms.score(binary(), header={"method": "mine"}, options=BARE)
    assert results.name == "mine"
    with pytest.raises(ValueError, match="header= is for a mapping of arrays"):
        qualms.score(built(), header={"method": "mine"}, options=BARE)
    with pytest.raises(ValueError, match="its method is 'mine'"):
        qualms.score(
            binary(),
            header={"method": "mine"},
            val=built(1, method="theirs"),
            options=BARE,
        )


def test_the_scored_items_themselves_are_no_validation_set():
    results = qualms.score(binary(), val=binary(), options=BARE)
    assert any("the very items that are scored" in note for note in results.notes)


def files(tmp_path, *headers):
    return [
        predictions.write(tmp_path / f"{i}.npz", binary(i), header=header)
        for i, header in enumerate(headers)
    ]


def test_several_files_take_one_validation_file_each(tmp_path):
    a, b, val_a, val_b = files(
        tmp_path, {"seed": 0}, {"seed": 1}, {"seed": 0}, {"seed": 1}
    )
    assert score_files([a, b], val=[val_a, val_b], options=BARE).results
    with pytest.raises(ValueError, match="its seed is 0"):
        score_files([a, b], val=[val_b, val_a], options=BARE)


def test_one_validation_file_for_several_files_is_refused(tmp_path):
    a, b, val = files(tmp_path, {}, {}, {})
    with pytest.raises(ValueError, match="several files take one --val each"):
        score_files([a, b], val=[val], options=BARE)
    forced = score_files([a, b], val=[val], options=BARE, force_val=True)
    for results in forced.results:
        assert any("serves several files" in note for note in results.notes)


def test_files_of_one_run_share_its_validation_file(tmp_path):
    same = {"options": options("a1")}
    a, b, val = files(tmp_path, same, same, same)
    assert score_files([a, b], val=[val], options=BARE).results


def test_files_without_targets_are_not_scored():
    with pytest.raises(predictions.PredictionsError, match="add the true classes"):
        qualms.score({"prob": binary()["prob"]}, options=BARE)


@pytest.mark.parametrize("split", ["train", "train/shifted"])
def test_validation_on_training_items_is_refused_unless_insisted_on(split):
    test, val = built(0, split="test"), built(1, split=split)
    with pytest.raises(ValueError, match=f"says that its split is '{split}'.*--force-"):
        qualms.score(test, val=val, options=BARE)
    forced = qualms.score(test, val=val, options=BARE, force_val=True)
    assert any("holds training items, as was insisted" in n for n in forced.notes)
