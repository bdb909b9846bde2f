"""The header: typed, versioned, forgiving of what it does not know."""

import json
import re

import numpy as np
import pytest

from predictions import made
from qualms.predictions import FORMAT, Header, PredictionsError, build, read, write

REFUSED = [
    ("task", "clasification", "one of classification, embedding, regression"),
    ("dataset", 3, "text or null"),
    ("split", ["test"], "text or null"),
    ("seed", "three", "a whole number or null"),
    ("seed", True, "a whole number or null"),
    ("seed", 1.0, "a whole number or null"),
    ("options", [1], "a mapping of names to JSON values"),
    ("seconds", float("nan"), "a finite number from 0 on, or null"),
    ("seconds", -1, "a finite number from 0 on, or null"),
    ("alpha", 0, "between 0 and 1"),
    ("alpha", "0.1", "between 0 and 1"),
    ("ignore", 256, "a whole number in 0..255, or null"),
    ("select", {"a": "median"}, "a mapping of names to one of mean, logmeanexp"),
    ("select", {"a": ["mean"]}, "a mapping of names to one of mean, logmeanexp"),
    ("pooled", 0, "a whole number from 1 on, or null"),
]


@pytest.mark.parametrize(("name", "value", "wanted"), REFUSED)
def test_a_field_of_the_wrong_type_is_refused(name, value, wanted):
    sentence = re.escape(f"header '{name}' must be {wanted}")
    with pytest.raises(PredictionsError, match=sentence) as refused:
        Header(**{name: value})
    assert repr(value)[:80] in str(refused.value)
    with pytest.raises(PredictionsError, match=sentence):
        build(made.classification(), header={name: value})


def test_options_must_survive_json():
    with pytest.raises(PredictionsError, match="must hold JSON values only"):
        Header(options={"a": object()})
    with pytest.raises(PredictionsError, match="must hold JSON values only"):
        Header(options={"a": float("inf")})
    assert Header(options={"a": (1, np.float32(0.5))}).options == {"a": [1, 0.5]}


def test_numbers_of_numpy_are_taken():
    header = Header(seed=np.int64(3), alpha=np.float64(0.1), seconds=np.float32(2))
    assert (header.seed, header.alpha, header.seconds) == (3, 0.1, 2.0)


def test_unknown_fields_are_noted_and_kept():
    predictions = build(made.classification(), header={"seeds": 3, "mood": "good"})
    assert predictions.notes == (
        "header field 'seeds' is not known and is kept under 'about'. Did you mean "
        "'seed'?",
        "header field 'mood' is not known and is kept under 'about'.",
    )
    assert predictions.header.about == {"seeds": 3, "mood": "good"}


@pytest.mark.parametrize("ending", [".safetensors", ".npz", ".csv", ".parquet"])
def test_unknown_fields_survive_the_round_trip(tmp_path, ending):
    header = {"mood": {"today": ["good"]}, "about": {"older": 1}}
    path = write(tmp_path / f"p{ending}", made.classification(1), header=header)
    kept = {"older": 1, "mood": {"today": ["good"]}}
    assert read(path).header.about == kept
    assert read(write(path, read(path))).header.about == kept


def test_an_unknown_field_that_is_no_json_is_left_out():
    predictions = build(made.classification(), header={"model": object()})
    assert predictions.header.about == {}
    assert "does not hold JSON values: left out" in predictions.notes[0]


@pytest.mark.parametrize(
    ("header", "sentence"),
    [
        (
            {"seeds": 3},
            "header field 'seeds' is not known. Did you mean 'seed'? Rename",
        ),
        ({"model": object()}, "header 'model' must hold JSON values only"),
    ],
)
def test_a_field_that_would_be_lost_is_not_written(tmp_path, header, sentence):
    for given in (made.classification(), build(made.classification())):
        with pytest.raises(PredictionsError, match=re.escape(sentence)):
            write(tmp_path / "p.npz", given, header=header)
    assert not (tmp_path / "p.npz").exists()


def nested(levels):
    return json.loads("[" * levels + "]" * levels)


@pytest.mark.parametrize("levels", [60, 500, 5000])
def test_a_header_nested_deeply_is_refused(tmp_path, levels):
    text = '{"options": {"a": ' + "[" * levels + "]" * levels + "}}"
    np.savez(tmp_path / "p.npz", target=[0, 1], prob=[0.1, 0.9], header=text)
    with pytest.raises(PredictionsError, match="the array 'header' must"):
        read(tmp_path / "p.npz")
    if levels < 1000:
        with pytest.raises(PredictionsError, match="nested more than 40 levels deep"):
            Header(options={"a": nested(levels)})


@pytest.mark.parametrize("levels", [10, 40, 45])
def test_what_is_kept_of_a_header_can_be_read_again(tmp_path, levels):
    path = tmp_path / "p.npz"
    header = '{"mood": ' + "[" * levels + "]" * levels + "}"
    np.savez(path, target=[0, 1], prob=[0.1, 0.9], header=header)
    predictions = read(path)
    assert (
        read(write(tmp_path / "q.npz", predictions)).header.about
        == predictions.header.about
    )
    assert bool(predictions.header.about) == (levels <= 40)


def test_messages_and_notes_have_a_bounded_length(tmp_path):
    long = "x" * 90_000
    np.savez(tmp_path / "p.npz", target=[0, 1], prob=[0.1, 0.9], **{long[:200]: [1]})
    many = {f"{k}{long}": 1 for k in range(50)}
    predictions = build(made.classification(), header=many | {"dataset": "a"})
    assert len(predictions.notes) == 21
    assert max(map(len, predictions.notes)) <= 500
    for header in (
        {"shapes": {long: [1]}},
        {"select": {long: "mean"}},
        {"task": long},
        {"seed": long},
    ):
        with pytest.raises(PredictionsError) as refused:
            build(made.classification(), header=header)
        assert len(str(refused.value)) <= 1000
    for arrays in ({long: [0], "y": [1]}, {**made.classification(), f"{long}/": [0]}):
        with pytest.raises(PredictionsError) as refused:
            write(tmp_path / "q.npz", arrays)
        assert len(str(refused.value)) <= 1000


def test_null_is_the_same_as_nothing():
    nothing = dict.fromkeys(("format", "options", "select", "seed", "shapes"))
    assert build(made.classification(), header=nothing).header == Header(
        task="classification"
    )


@pytest.mark.parametrize(
    ("version", "sentence"),
    [
        (FORMAT + 1, f"was written in format {FORMAT + 1} by a newer qualms"),
        (0, "header 'format' must be a whole number from 1 on, got 0"),
        ("1", "header 'format' must be a whole number from 1 on, got '1'"),
        (True, "header 'format' must be a whole number from 1 on, got True"),
    ],
)
def test_a_format_that_cannot_be_read_is_said(version, sentence):
    for arrays in (made.classification(), made.segmentation()):
        with pytest.raises(PredictionsError, match=re.escape(sentence)):
            build(arrays, header={"format": version})


def test_a_header_must_be_a_header():
    with pytest.raises(PredictionsError, match="header must be a Header or a mapping"):
        build(made.classification(), header="eyepacs")


@pytest.mark.parametrize(
    ("header", "sentence"),
    [
        ("{", "the array 'header' must be a JSON object, got '{'"),
        ("[1]", "the array 'header' must be a JSON object, got '[1]'; write"),
        ("[" * 100_000, "the array 'header' must be a JSON object"),
        ([1.0, 2.0], "array 'header' must be one string of JSON, got shape (2,)"),
    ],
)
def test_a_header_that_is_no_json_is_refused(tmp_path, header, sentence):
    np.savez(tmp_path / "p.npz", target=[0, 1], prob=[0.1, 0.9], header=header)
    with pytest.raises(PredictionsError, match=re.escape(sentence)):
        read(tmp_path / "p.npz")


@pytest.mark.parametrize(
    ("shapes", "sentence"),
    [
        (
            {"prob": [3]},
            "the header states shape (3,) for array 'prob', which has (2,)",
        ),
        (
            {"mean": [2]},
            "the header states an array 'mean', found only 'target', 'prob'",
        ),
        ({"prob": "2"}, "header 'shapes' must map array names to lists of sizes"),
        ([2], "header 'shapes' must map array names to lists of sizes"),
    ],
)
def test_a_header_that_lies_about_shapes_is_refused(tmp_path, shapes, sentence):
    header = json.dumps({"shapes": shapes})
    np.savez(tmp_path / "p.npz", target=[0, 1], prob=[0.1, 0.9], header=header)
    with pytest.raises(PredictionsError, match=re.escape(sentence)):
        read(tmp_path / "p.npz")


def test_a_table_changed_by_hand_no_longer_fits_its_sidecar(tmp_path):
    path = write(tmp_path / "p.csv", {"target": [0, 1], "prob": [0.1, 0.9]})
    lines = path.read_text().splitlines()
    path.write_text("\n".join(lines[:-1]))
    with pytest.raises(PredictionsError, match="the header states shape"):
        read(path)


def test_a_header_changes_nothing_after_it_is_made():
    with pytest.raises(AttributeError):
        Header().seed = 1
