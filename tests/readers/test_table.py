"""Tables whose columns have names of their own."""

import json

import numpy as np
import pytest
from typer.testing import CliRunner

from qualms.cli import app
from qualms.predictions import PredictionsError, read
from qualms.readers.table import table

EYES = """picture,patient,truth,p sick,place,age
007,A,sick,0.9,here,old
008,A,well,0.2,there,young
009,B,well,0.4,here,old
"""
GERMAN = "Bild;Wahrheit;P krank\n1;krank;0,9\n2;gesund;0,25\n"
THREE = "y,a,b,c\nb,0.1,0.7,0.2\nc,0.1,0.1,0.8\n"
VALUES = "age\tguess\terror\n60\t58.5\t2\n40\t47\t3\n"


def write(tmp_path, text, name="list.csv"):
    path = tmp_path / name
    path.write_text(text)
    return path


def test_every_column_is_where_it_was_said_to_be(tmp_path):
    reader = table(
        target="truth",
        prob="p sick",
        positive="sick",
        item="picture",
        cluster="patient",
        groups=["age", "place"],
        shifted="place=there",
    )
    predictions = read(write(tmp_path, EYES), reader=reader)
    arrays = predictions.arrays
    assert predictions.header.classes == ("well", "sick")
    assert arrays["target"].tolist() == [1, 0, 0]
    np.testing.assert_array_equal(arrays["probs"][0, :, 1], [0.9, 0.2, 0.4])
    assert arrays["item"].tolist() == ["007", "008", "009"]
    assert arrays["cluster"].tolist() == ["A", "A", "B"]
    assert arrays["group/age"].tolist() == ["old", "young", "old"]
    assert arrays["group/place"].tolist() == ["here", "there", "here"]
    assert arrays["shifted"].tolist() == [False, True, False]


def test_semicolons_tabs_and_decimal_commas_are_read(tmp_path):
    reader = table(target="Wahrheit", prob="P krank", positive="krank", decimal=",")
    predictions = read(write(tmp_path, GERMAN), reader=reader)
    assert predictions.arrays["probs"][0, :, 1].tolist() == [0.9, 0.25]
    assert predictions.header.classes == ("gesund", "krank")
    reader = table(target="age", mean="guess", std="error")
    predictions = read(write(tmp_path, VALUES), reader=reader)
    assert predictions.task == "regression"
    assert predictions.arrays["mean"].ravel().tolist() == [58.5, 47]


def test_several_classes_have_a_column_each(tmp_path):
    reader = table(target="y", probs={"a": "a", "b": "b", "c": "c"})
    predictions = read(write(tmp_path, THREE), reader=reader)
    assert predictions.header.classes == ("a", "b", "c")
    assert predictions.arrays["target"].tolist() == [1, 2]


def test_truth_values_need_no_names(tmp_path):
    path = write(tmp_path, "sick,p\ntrue,0.8\nfalse,0.1\n")
    predictions = read(path, reader=table(target="sick", prob="p"))
    assert predictions.arrays["target"].tolist() == [1, 0]
    reverse = read(path, reader=table(target="sick", prob="p", positive="false"))
    assert reverse.arrays["target"].tolist() == [0, 1]
    unlabelled = read(path, reader=table(prob="p"))
    assert "target" not in unlabelled.arrays


@pytest.mark.parametrize(
    ("text", "columns", "message"),
    [
        (EYES, {}, "say which columns hold predictions.* got none of them"),
        (EYES, {"prob": "p sick", "mean": "age"}, "got prob and mean"),
        (EYES, {"prob": "p_sick"}, "no column 'p_sick'; there are picture, patient"),
        (
            EYES,
            {"prob": "p sick", "target": "truth"},
            "holds sick, well; say which of them 'p sick' is .*positive=NAME",
        ),
        (
            EYES,
            {"prob": "p sick", "target": "picture", "positive": "7"},
            "holds 007, 008, 009, which are more than two classes",
        ),
        (EYES, {"prob": "place"}, "row 0 must be a number, it is 'here'; correct it"),
        (GERMAN, {"prob": "P krank"}, "it is '0,9'; say -o decimal=, if that"),
        (GERMAN, {"prob": "P krank", "decimal": "x"}, r"decimal must be \. or ,"),
        (
            EYES,
            {"prob": "p sick", "shifted": "place"},
            "no truth value; .* -o shifted=place=here",
        ),
        (
            EYES,
            {"prob": "p sick", "shifted": "place=nowhere"},
            "no row of column 'place' is 'nowhere'; it holds here, there",
        ),
        (EYES, {"mean": "age", "positive": "sick"}, "say prob, too"),
        (
            "y;p\n1;0,9\n0;1.000\n",
            {"prob": "p", "decimal": ","},
            r"row 1 must be a number, it is '1\.000'; say -o decimal=\. if that",
        ),
        ("p\n90%\n", {"prob": "p"}, "it is '90%'; write a share, such as 0.25"),
        ("p\n0.5\n90\n", {"prob": "p"}, "row 1 must be a probability .* it is 90; div"),
        (
            "y,p\n,0.3\n0,0.2\n",
            {"prob": "p", "target": "y"},
            "column 'y', row 0 is empty, so its class is not known; fill it",
        ),
        (
            EYES,
            {"prob": "p sick", "target": "truth", "positive": "sik"},
            "holds sick, well, and positive is 'sik'; say one of them",
        ),
        ("", {"prob": "p"}, "no rows below the names"),
        ("p,q\n", {"prob": "p"}, "no rows below the names"),
    ],
)
def test_what_cannot_be_read_is_answered(tmp_path, text, columns, message):
    with pytest.raises(PredictionsError, match=message):
        read(write(tmp_path, text), reader=table(**columns))


def test_text_with_another_ending_is_refused(tmp_path):
    path = write(tmp_path, VALUES, "list.tsv")
    with pytest.raises(
        PredictionsError, match=r"must end in \.csv, .* ends in '\.tsv'; give text"
    ):
        read(path, reader=table(mean="guess"))


def test_a_list_of_a_clinic_is_converted_by_one_command(tmp_path):
    path, out = write(tmp_path, EYES), tmp_path / "eyes.csv"
    with pytest.raises(PredictionsError, match="read by `qualms convert table`"):
        read(path)
    options = ["prob=p sick", "target=truth", "positive=sick", "groups=age"]
    words = [word for option in options for word in ("-o", option)]
    result = CliRunner().invoke(
        app, ["convert", "table", str(path), *words, "--out", str(out)]
    )
    assert result.exit_code == 0, result.output
    assert "truth from truth, P(sick) from p sick, group from age" in result.output
    assert "columns not read: picture, patient, place" in result.output
    header = json.loads((tmp_path / "eyes.csv.json").read_text())
    assert header["classes"] == ["well", "sick"]
    assert read(out).arrays["target"].tolist() == [1, 0, 0]


def convert(tmp_path, text, *options):
    words = [word for option in options for word in ("-o", option)]
    out = tmp_path / "p.npz"
    file = write(tmp_path, text)
    told = CliRunner().invoke(
        app, ["convert", "table", str(file), "--out", str(out), *words]
    )
    if told.exception is not None:
        raise told.exception
    return read(out)


def test_a_class_that_is_a_number_is_named_on_the_command_line(tmp_path):
    text = "y,p\n1,0.9\n0,0.2\n"
    found = convert(tmp_path, text, "target=y", "prob=p", "positive=1")
    np.testing.assert_array_equal(found.arrays["probs"][0, :, 1], [0.9, 0.2])
    turned = convert(tmp_path, text, "target=y", "prob=p", "positive=0")
    assert turned.header.classes == ("1", "0")
    assert turned.arrays["target"].tolist() == [0, 1]


def test_intervals_of_a_table_state_what_they_aim_at(tmp_path):
    text = "y,low,high\n3,1,4\n5,4,9\n"
    columns = ("target=y", "lower=low", "upper=high")
    found = convert(tmp_path, text, *columns, "alpha=0.2")
    assert found.header.alpha == 0.2
    assert found.arrays["upper"].tolist() == [4, 9]
    for options in (columns, ("target=y", "mean=low", "alpha=0.2")):
        with pytest.raises(PredictionsError, match="alpha says what share"):
            convert(tmp_path, text, *options)


def test_a_column_of_patients_is_offered_as_clusters(tmp_path):
    file = write(tmp_path, EYES)
    found = read(file, reader=table(target="truth", prob="p sick", positive="sick"))
    assert "call 'patient' 'cluster' if its items belong together" in found.notes[1]
