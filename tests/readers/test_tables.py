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
        "column not read: patient; call 'patient' 'cluster' if its items belong"
        " together: intervals allow for it",
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


def test_several_findings_are_not_scored_yet(tmp_path):
    rng = np.random.default_rng(0)
    truth, sigmoids = rng.integers(0, 2, (30, 4)), rng.uniform(size=(30, 4))
    said = r"'target' holds 4 findings, of which an item may have several or none"
    np.savez(tmp_path / "a.npz", y_true=truth, y_prob=sigmoids)
    with pytest.raises(PredictionsError, match=said):
        read(tmp_path / "a.npz")
    with pytest.raises(PredictionsError, match=f"{said} .multi-label., and these are "):
        qualms.predictions.build({"target": truth, "probs": sigmoids})
    one_hot = np.eye(4)[truth[:, 0]]
    with pytest.raises(PredictionsError, match="if it is one-hot, take its argmax"):
        qualms.predictions.build({"target": one_hot, "probs": sigmoids})
    names = [*(f"target_{k}" for k in range(4)), *(f"prob_{k}" for k in range(4))]
    rows = np.hstack([truth, sigmoids])
    lines = "\n".join(",".join(map(str, row)) for row in rows.tolist())
    path = write(tmp_path, f"{','.join(names)}\n{lines}\n")
    with pytest.raises(PredictionsError, match="target_0 to target_3 holds 4 findings"):
        read(path)


def of_predicted(n=60):
    """Truth, predicted classes, P(y=1) and the probability of the predicted class."""
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 2, n)
    prob = np.clip(0.3 + 0.4 * truth + rng.uniform(-0.25, 0.25, n), 0.01, 0.99)
    return truth, (prob > 0.5).astype(int), prob, np.maximum(prob, 1 - prob)


def test_the_probability_of_the_predicted_class_is_not_that_of_class_one(tmp_path):
    truth, predicted, prob, highest = of_predicted()
    found = qualms.predictions.build({"target": truth, "prob": highest})
    assert any("not the probability of the predicted class" in n for n in found.notes)
    assert not qualms.predictions.build({"target": truth, "prob": prob}).notes
    np.savez(tmp_path / "a.npz", y_true=truth, y_prob=highest, y_pred=predicted)
    with pytest.raises(
        PredictionsError, match="it seems to be the probability of the "
    ):
        read(tmp_path / "a.npz")
    np.savez(tmp_path / "a.npz", y_true=truth, y_prob=prob, y_pred=predicted)
    assert read(tmp_path / "a.npz").n == 60
    with pytest.raises(PredictionsError, match=r"and 'target' goes up to 4; store the"):
        qualms.predictions.build({"target": np.arange(60) % 5, "prob": highest})
    np.savez(tmp_path / "a.npz", y_true=np.arange(60) % 5, y_prob=highest)
    with pytest.raises(PredictionsError, match="of all classes as y_prob_<class>"):
        read(tmp_path / "a.npz")
