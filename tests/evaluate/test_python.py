"""What somebody in a notebook or a loop sees: names, frames, tables, batches."""

import builtins
import csv
import json
import pydoc
import subprocess
import sys

import numpy as np
import pytest

import qualms
from qualms.evaluate import ScoreOptions
from qualms.predictions import PredictionsError

RNG = np.random.default_rng(0)
PROBS = RNG.dirichlet([0.5] * 3, 120)
TARGET = np.array([RNG.choice(3, p=row) for row in PROBS])
ARRAYS = {"probs": PROBS, "target": TARGET, "shifted": np.arange(120) > 70}
BARE = ScoreOptions(resamples=0)


class _Polars:
    """What a frame of polars offers: a list of columns, and Series by name."""

    def __init__(self, columns):
        self._held = columns
        self.columns = list(columns)

    def __getitem__(self, name):
        return self._held[name]


def columns():
    wide = {f"prob_{k}": PROBS[:, k] for k in range(3)}
    return wide | {"target": TARGET, "shifted": ARRAYS["shifted"]}


def values(results):
    return {row.key: (row.value, row.low, row.high) for row in results.rows}


def same(one, other):
    assert one.keys() == other.keys()
    for key, numbers in one.items():
        assert other[key] == pytest.approx(numbers, abs=1e-12, nan_ok=True), key


def test_public_names_are_shown_before_they_are_loaded():
    code = "import qualms; print(' '.join(dir(qualms)))"
    shown = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout.split()
    assert {"score", "refer", "scores", "predictions", "Accumulator"} <= set(shown)
    text = pydoc.plain(pydoc.render_doc(qualms))
    assert "score(" in text
    assert "class Accumulator" in text


def test_options_of_the_command_are_arguments():
    wide = qualms.score(ARRAYS, options=BARE)
    narrow = qualms.score(
        ARRAYS, resamples=0, level=0.5, seed=3, header={"method": "mine"}
    )
    assert (narrow.resamples, narrow.level, narrow.seed) == (0, 0.5, 3)
    assert narrow.name == "mine"
    assert narrow["accuracy"].low > wide["accuracy"].low
    with pytest.raises(ValueError, match="level must lie between 0 and 1"):
        qualms.score(ARRAYS, level=95)
    grouped = ARRAYS | {"group": np.repeat(["a", "b"], 60)}
    assert "in_domain/group=a" in {
        row.subset for row in qualms.score(grouped, by_group=True).rows
    }


def test_frames_are_files_in_memory():
    expected = values(qualms.score(ARRAYS, options=BARE))
    pandas = pytest.importorskip("pandas")
    names = {"item": [f"scan {i}" for i in range(120)], "reader": ["x"] * 120}
    frame = pandas.DataFrame(columns() | names)
    results = qualms.score(frame, options=BARE)
    same(expected, values(results))
    assert any("reader" in note for note in results.notes)
    shuffled = frame.sample(frac=1.0, random_state=0)
    # Rows are read by position, whatever the index says.
    results = qualms.score(shuffled, options=BARE)
    assert results["all/nll"].value == pytest.approx(expected["nll", "all", ()][0])
    same(expected, values(qualms.score(_Polars(columns()), options=BARE)))


def test_a_frame_may_have_the_names_of_scikit_learn():
    prob = np.stack([columns()[f"prob_{c}"] for c in range(3)], axis=1)
    theirs = {"y_true": columns()["target"]}
    theirs |= {f"y_prob_{c}": prob[:, c] for c in range(3)}
    plain = {name: v for name, v in columns().items() if name.startswith("prob_")}
    expected = qualms.score(_Polars(plain | {"target": theirs["y_true"]}), options=BARE)
    same(values(expected), values(qualms.score(_Polars(theirs), options=BARE)))
    two = {"y_true": theirs["y_true"] == 1, "y_prob": prob[:, 1]}
    found = qualms.score(_Polars(two), options=BARE)
    pair = qualms.score({"target": two["y_true"], "prob": two["y_prob"]}, options=BARE)
    same(values(pair), values(found))


def test_a_frame_with_a_gap_is_refused():
    gap = {name: v for name, v in columns().items() if name != "prob_1"}
    with pytest.raises(PredictionsError, match="column 'prob_1' is missing"):
        qualms.score(_Polars(gap))
    with pytest.raises(PredictionsError, match="must be text, got 0"):
        qualms.score(_Polars({0: TARGET}))


def test_results_are_used_as_a_mapping_and_written(tmp_path):
    results = qualms.score(ARRAYS, options=BARE, name="=mine")
    assert "ece" in results
    assert "shifted/ece" in results
    assert "eec" not in results
    assert 3 not in results
    assert tuple(results) == results.rows
    assert float(results["ece"]) == results["ece"].value
    told = json.loads(json.dumps(results.to_dict()))
    assert (told["name"], told["items"]) == ("=mine", 120)
    assert told["verdict"]["accurate"] in ("yes", "no", "cannot be told")
    assert len(told["rows"]) == len(results.rows)
    path = results.to_csv(tmp_path / "rows.csv")
    with path.open(encoding="utf-8", newline="") as file:
        lines = list(csv.DictReader(file))
    assert [line["score"] for line in lines] == [row.score for row in results]
    (line,) = (x for x in lines if (x["score"], x["subset"]) == ("ece", "shifted"))
    assert float(line["value"]) == pytest.approx(results["shifted/ece"].value)


def test_help_names_arrays_in_a_word():
    for function in (qualms.scores.ece, qualms.scores.ppv):
        text = pydoc.plain(pydoc.render_doc(function))
        assert "ArrayLike" in text
        assert "_NestedSequence" not in text


def test_rows_by_name_and_as_a_frame(monkeypatch):
    results = qualms.score(ARRAYS, options=BARE)
    assert results["ece"] is results.row("ece")
    assert results["shifted/ece"] is results.row("ece", subset="shifted")
    with pytest.raises(LookupError, match="no 'eec' on 'in_domain' items"):
        results["eec"]
    pytest.importorskip("pandas")
    frame = results.to_frame()
    assert len(frame) == len(results.rows)
    kept = frame[(frame.score == "aurc") & (frame.subset == "all")]
    assert kept.value.item() == results["all/aurc"].value
    assert kept.uncertainty.item() == "entropy"
    _without(monkeypatch, "pandas")
    with pytest.raises(ImportError, match="needs pandas, which is not installed"):
        results.to_frame()


def _without(monkeypatch, name):
    found = builtins.__import__

    def refusing(wanted, *rest, **more):
        if wanted == name:
            raise ModuleNotFoundError(wanted)
        return found(wanted, *rest, **more)

    monkeypatch.setattr(builtins, "__import__", refusing)


def test_results_are_shown_shortly():
    results = qualms.score(ARRAYS, options=BARE, name="<mine>")
    assert len(repr(results)) < 200
    assert "<mine>: classification, 120 items" in repr(results)
    page = results._repr_html_()
    assert "&lt;mine&gt;" in page
    assert "nan" not in page


@pytest.mark.parametrize("size", [1, 7, 120])
def test_batches_give_the_numbers_of_the_whole(size):
    collected = qualms.Accumulator("classification")
    buffer = {name: array[:size].copy() for name, array in ARRAYS.items()}
    for start in range(0, 120, size):
        part = slice(start, min(start + size, 120))
        length = part.stop - start
        for name, array in ARRAYS.items():  # loops reuse memory
            buffer[name][:length] = array[part]
        collected.update(**{name: array[:length] for name, array in buffer.items()})
    assert len(collected) == 120
    same(
        values(qualms.score(ARRAYS, options=BARE)),
        values(collected.compute(options=BARE)),
    )


def test_draws_and_unknown_items_are_collected():
    rng = np.random.default_rng(1)
    draws = rng.dirichlet([0.5] * 3, (4, 120))
    target = TARGET.copy()
    target[100:] = -1
    collected = qualms.Accumulator("classification")
    collected.update(probs=draws[:, :60], target=target[:60])
    collected.update(probs=draws[:, 60:], target=target[60:])
    full_results = qualms.score({"probs": draws, "target": target}, options=BARE)
    same(values(full_results), values(collected.compute(options=BARE)))
    mean, truth = rng.normal(size=(4, 40)), rng.normal(size=40)
    points = qualms.Accumulator("regression")
    points.update(mean=mean[:, :15], target=truth[:15])
    points.update(mean=mean[:, 15:], target=truth[15:])
    full_results = qualms.score({"mean": mean, "target": truth}, options=BARE)
    same(values(full_results), values(points.compute(options=BARE)))


def test_batches_that_do_not_fit_are_refused_at_once():
    collected = qualms.Accumulator("classification")
    with pytest.raises(ValueError, match="no predictions yet"):
        collected.compute()
    collected.update(probs=PROBS[:9], target=TARGET[:9])
    with pytest.raises(ValueError, match="every batch must have the arrays"):
        collected.update(probs=PROBS[:9], target=TARGET[:9], shifted=[True] * 9)
    with pytest.raises(ValueError, match="draws and classes of the first, 1 and 3"):
        collected.update(probs=[[0.5, 0.5]], target=[1])
    with pytest.raises(PredictionsError):
        collected.update(probs=PROBS[:9] * 9, target=TARGET[:9])
    with pytest.raises(ValueError, match="'extra/x' of a batch must have a row for"):
        collected.update(probs=PROBS[:9], target=TARGET[:9], **{"extra/x": [1.0, 2.0]})
    assert len(collected) == 9
    collected.reset()
    assert len(collected) == 0
    with pytest.raises(ValueError, match="SegmentationWriter"):
        qualms.Accumulator("segmentation")


def test_a_wrong_word_in_python_ends_in_a_sentence():
    with pytest.raises(ValueError, match="Did you mean 'classification'"):
        qualms.Accumulator("clasification")
    with pytest.raises(TypeError, match=r"a list of what qualms\.score gives, got"):
        qualms.evaluate.compare(["a.npz", "b.npz"])
    results = qualms.score({"target": [0, 1, 1], "prob": [0.2, 0.7, 0.4]}, resamples=0)
    with pytest.raises(LookupError, match=r"no 'ecee' .* Did you mean 'ece'\?"):
        results["ecee"]


def test_predictions_have_a_short_repr():
    made = qualms.predictions.build({"target": [0, 1], "prob": [0.2, 0.7]})
    assert repr(made) == (
        "<Predictions of arrays: classification, 2 items; .arrays has target, probs>"
    )
