"""Tables of scikit-learn users."""

import numpy as np
import pytest

import qualms
from qualms.predictions import PredictionsError, read
from qualms.shelf import names

CSV = """patient,item,y_true,y_prob_cat,y_prob_dog,y_pred,group
7,a,dog,0.3,0.7,dog,north
7,b,cat,0.3,0.7,cat,north
8,c,cat,0.9,0.1,cat,south
"""


def write(tmp_path, text, name="table.csv"):
    path = tmp_path / name
    path.write_text(text)
    return path


def test_a_table_of_scikit_learn_has_classes_by_name(tmp_path):
    found = read(write(tmp_path, CSV))
    assert found.header.classes == ("cat", "dog")
    assert found.arrays["target"].tolist() == [1, 0, 0]
    np.testing.assert_array_equal(
        found.arrays["probs"], [[[0.3, 0.7], [0.3, 0.7], [0.9, 0.1]]]
    )
    assert found.arrays["group"].tolist() == ["north", "north", "south"]
    assert found.notes == (
        "read as probabilities of scikit-learn: 3 items, classes cat, dog",
        "the predicted class is the one with the largest probability; y_pred has"
        " another one in 1 of 3 items",
        "column not read: patient",
    )


def test_p_of_class_one_needs_no_names(tmp_path):
    path = write(tmp_path, "y_true,y_prob\n1,0.8\n0,0.3\n1,0.4\n")
    found = read(path)
    assert found.header.classes == ()
    assert found.arrays["probs"][0, :, 1].tolist() == [0.8, 0.3, 0.4]
    flags = write(tmp_path, "y_true,y_prob\nTrue,0.8\nFalse,0.3\n", "flags.csv")
    assert read(flags).arrays["target"].tolist() == [1, 0]
    numbered = "y_true,y_prob_0,y_prob_1,y_prob_2\n1,0.1,0.8,0.1\n2,0.1,0.1,0.8\n"
    found = read(write(tmp_path, numbered, "numbers.csv"))
    assert (found.header.classes, found.classes) == ((), 3)


def test_one_class_named_by_its_column_is_one_of_two(tmp_path):
    found = read(write(tmp_path, "y_true,y_proba_ill\nill,0.8\nwell,0.3\n"))
    assert found.header.classes == ("well", "ill")
    assert found.arrays["target"].tolist() == [1, 0]


def test_arrays_of_an_npz_have_the_classes_of_the_model(tmp_path):
    probs = np.array([[0.2, 0.8], [0.6, 0.4]])
    stated = {"y_true": np.array([7, 3]), "y_prob": probs, "classes": np.array([3, 7])}
    np.savez(tmp_path / "a.npz", **stated)
    found = read(tmp_path / "a.npz")
    assert found.header.classes == ("3", "7")
    assert found.arrays["target"].tolist() == [1, 0]
    np.savez(tmp_path / "a.npz", **{**stated, "classes": np.array([3, 7, 9])})
    with pytest.raises(PredictionsError, match="'classes' must name 2 classes"):
        read(tmp_path / "a.npz")


def test_values_need_their_task_or_a_deviation(tmp_path):
    path = write(tmp_path, "y_true,y_pred\n1.5,1.4\n2.5,2.0\n")
    with pytest.raises(PredictionsError, match="alone may be classes or values; for"):
        read(path)
    assert read(path, task="regression").arrays["mean"].tolist() == [[1.4, 2.0]]
    path = write(tmp_path, "y_true,y_pred,y_std\n1.5,1.4,0.5\n2.5,2.0,2\n")
    np.testing.assert_allclose(read(path).arrays["var"], [[0.25, 4.0]])


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("y_true,y_prob\ncat,0.2\ndog,0.3\n", "call the column y_prob_<class> after"),
        (
            "y_true,y_prob_cat,y_prob_dog\nowl,0.2,0.8\n",
            "row 0 is 'owl', which is none",
        ),
        ("y_true,y_prob,y_prob_a\n1,0.2,0.2\n", "say the same thing twice; keep one"),
        ("y_true,y_prob_a\na,0.1\nb,0.2\nc,0.3\n", "and y_true also has b, c; add a"),
        ("y_true,y_prob\n1,high\n", "'y_prob' must be numbers, got 'high'"),
        ("y_true,y_prob\n1,0.2,3\n", "row 0 has 3 cells, the first line names 2"),
        ("y_true,y_prob\n", "has no rows below the names of the columns"),
        ("y_true,y_prob,y_prob\n1,0.2,0.2\n", "column 'y_prob' is there twice"),
        ("y_true,y_prob_a,y_prob_b\na,20,80\n", "these are percentages"),
    ],
)
def test_tables_that_say_too_little_are_refused(tmp_path, text, said):
    with pytest.raises(PredictionsError, match=said):
        read(write(tmp_path, text))


def test_tables_of_our_own_are_read_as_before(tmp_path):
    text = "target,prob,y_true\n1,0.8,1\n0,0.2,0\n"
    found = read(write(tmp_path, text))
    assert found.notes[0].startswith("array 'y_true' is not part of classification")


def test_every_reader_leaves_files_of_others_alone(tmp_path):
    qualms.predictions.write(tmp_path / "a.npz", {"target": [0, 1], "prob": [0.2, 0.9]})
    qualms.predictions.write(tmp_path / "a.csv", {"target": [0, 1], "prob": [0.2, 0.9]})
    alone = ("masks", "monai", "nnunet", "sklearn")
    assert names("readers") == (*alone, "table")
    for file in ("a.npz", "a.csv"):
        assert qualms.predictions.reader_of(tmp_path / file) is None
    assert qualms.predictions.reader_of(tmp_path) is None
