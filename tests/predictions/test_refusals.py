"""Every mistake in the arrays ends in one sentence: array, row, value, remedy."""

import re

import numpy as np
import pytest

from predictions import made
from qualms.predictions import PredictionsError, build

N = made.N


def changed(make, header=None, **changes):
    """Arrays of `make` with some replaced, removed (None) or altered (a function)."""

    def arrays():
        held = make()
        for key, change in changes.items():
            name = key.replace("__", "/")
            if callable(change):
                held[name] = change(np.array(held[name]))
            elif change is None:
                del held[name]
            else:
                held[name] = change
        return held, header

    return arrays


def put(index, value, dtype=None):
    def change(array):
        array = array if dtype is None else array.astype(dtype)
        array[index] = value
        return array

    return change


cls, reg, emb, ivl = (
    made.classification,
    made.regression,
    made.embedding,
    made.intervals,
)

REFUSED = [
    # What the arrays are called.
    (
        changed(cls, probs=None),
        "arrays ('target', 'uncertainty/entropy', 'target_probs', 'item', 'group', "
        "'cluster', 'shifted') fit no task",
    ),
    (
        changed(dict, probss=np.ones((2, 2)) / 2, target=[0, 1]),
        "For 'probss': Did you mean 'probs'?",
    ),
    (changed(dict, labels=[0], x=[1]), "'labels' is called 'target' here"),
    (changed(dict), "must hold arrays of predictions, got none; write them by name. "),
    (
        changed(cls, mean=np.zeros(N)),
        "the arrays 'mean', 'probs' fit more than one task (classification, "
        "regression); say which with --task (task=...)",
    ),
    (
        changed(cls, target=None, labels=np.zeros(N)),
        "array 'labels' is called 'target' here; rename it, or write it as "
        "'extra/labels' if it is something else",
    ),
    (
        changed(dict, target=[0, 1], variance=[1, 1], lower=[0, 0]),
        "array 'lower' needs 'upper' beside it",
    ),
    (changed(reg, std=np.ones(N)), "arrays 'var' and 'std' say the same thing twice"),
    (
        changed(reg, var=None, std=np.full(N, -1.0)),
        "array 'std' must be at least 0, row 0 is -1",
    ),
    (
        changed(reg, var=None, std=np.full(N, 1e200)),
        "array 'std' holds 1e+200, whose square is too large to be a variance",
    ),
    (
        changed(ivl, {"alpha": 0.1}, sigma=np.ones(N)),
        "array 'sigma' needs 'mean' beside it",
    ),
    (changed(cls, prob=np.zeros(N)), "'probs' and 'prob' say the same thing twice"),
    (changed(ivl, {"alpha": 0.1}, upper=None), "array 'lower' needs 'upper' beside it"),
    (
        changed(reg, mean=None),
        "regression predictions need 'mean' or 'lower', found only 'target', 'var'",
    ),
    (
        changed(ivl, {"alpha": 0.1}, var=np.ones(N)),
        "array 'var' needs 'mean' beside it",
    ),
    (
        changed(cls, targets=np.zeros(N)),
        "array 'targets' is not part of classification predictions. Did you mean "
        "'target'? Rename it, or leave it out",
    ),
    (
        changed(cls, uncertainty=np.zeros(N)),
        "array 'uncertainty' is not part of classification predictions. Write it as "
        "'uncertainty/<name>'",
    ),
    (
        changed(cls, uncertainty_mi=np.zeros(N)),
        "Write it as 'uncertainty/mi'",
    ),
    (
        changed(cls, uncertanty__mi=np.zeros(N)),
        "Did you mean 'uncertainty/mi'?",
    ),
    (changed(cls, select__mi=np.zeros(N)), "write it as 'uncertainty/mi'"),
    (
        changed(dict, mean_probs=[1.0], raters=[1]),
        "segmentation predictions are a folder with index.json",
    ),
    # Shapes.
    (
        changed(cls, target=lambda a: a[:-1]),
        "array 'probs' has 12 items (shape (3, 12, 4)), but array 'target' has 11; "
        "they must agree",
    ),
    (
        changed(cls, target=lambda a: a[:, None]),
        "array 'target' must have shape (N,), got (12, 1); drop the last axis, for "
        "example target[..., 0]",
    ),
    (
        changed(cls, target=np.eye(4)[[0] * N]),
        "array 'target' must have shape (N,), got (12, 4); if it is one-hot, take its "
        "argmax over the last axis",
    ),
    (
        changed(cls, target=np.int64(1)),
        "array 'target' must have shape (N,), got (); reshape it",
    ),
    (
        changed(cls, probs=np.full(N, 0.5)),
        "array 'probs' must have shape (M, N, C) or (N, C), got (12,); P(y=1) of two "
        "classes alone is called 'prob'",
    ),
    (
        changed(cls, probs=lambda a: a.transpose(1, 0, 2)),
        "array 'probs' has 3 items (shape (12, 3, 4)), but array 'target' has 12; they "
        "must agree. It would fit with its axes turned to (M, N, C): "
        "np.transpose(probs, (1, 0, 2))",
    ),
    (
        changed(reg, mean=lambda a: a.T),
        "array 'mean' has 3 items (shape (12, 3)), but array 'target' has 12; they "
        "must agree. It would fit with its axes turned to (M, N)",
    ),
    (
        changed(reg, var=lambda a: a[:2]),
        "array 'var' has 2 draws (shape (2, 12)), but array 'mean' has 3",
    ),
    (
        changed(reg, select__gmm=lambda a: a[:2]),
        "array 'select/gmm' has 2 draws (shape (2, 12)), but array 'mean' has 3",
    ),
    (
        changed(cls, target_probs=np.full((N, 2), 0.5)),
        "array 'target_probs' has 2 classes (shape (12, 2)), but array 'probs' has 4",
    ),
    (
        changed(cls, item=lambda a: a[:5]),
        "array 'item' has 5 items (shape (5,)), but array 'target' has 12",
    ),
    (
        changed(cls, probs=np.ones((3, N, 1))),
        "array 'probs' must have at least two classes on its last axis",
    ),
    (
        changed(dict, target=[], prob=[]),
        "array 'target' has no rows (shape (0,)); there must be at least one",
    ),
    (
        changed(cls, probs=np.zeros((0, N, 4))),
        "array 'probs' has no draws (shape (0, 12, 4))",
    ),
    (
        changed(cls, thumbnail=np.zeros((N, 2, 2, 4), np.uint8)),
        "array 'thumbnail' has 4 channels (shape (12, 2, 2, 4)), there must be 3",
    ),
    # Values.
    (
        changed(cls, probs=put((1, 7, 2), np.nan)),
        "array 'probs' must be finite, draw 1, row 7, class 2 is nan",
    ),
    (
        changed(reg, mean=put((1, 7), np.inf)),
        "array 'mean' must be finite, draw 1, row 7 is inf",
    ),
    (
        changed(emb, embedding=put((3, 1), 1e300, float)),
        "array 'embedding' must be finite, row 3, dimension 1 is inf",
    ),
    (
        changed(cls, probs=put((0, 3), [0.7, 0, 0, 0])),
        "array 'probs' must sum to 1 over its classes, draw 0, row 3 sums to 0.7; rows "
        "sum to 0.7 to 1: if each class has a sigmoid of its own",
    ),
    (
        changed(cls, probs=put((0, 3, 1), 2.5)),
        "array 'probs' must lie in [0, 1], draw 0, row 3, class 1 is 2.5; if these are "
        "logits, say so: --logits (logits=True)",
    ),
    (
        changed(dict, target=[0, 1], prob=[0.5, -0.1]),
        "array 'prob' must lie in [0, 1], row 1 is -0.1; if these are logits",
    ),
    (
        changed(cls, target_probs=put((2, 0), 0.9999)),
        "array 'target_probs' must sum to 1 over its classes, row 2 sums to",
    ),
    (
        changed(cls, target=put(5, 4)),
        "array 'target' must lie in 0..3 for 4 classes, row 5 is 4; number the classes "
        "from 0; -1 marks an item of no known class",
    ),
    (changed(cls, target=put(5, -2)), "row 5 is -2"),
    (
        changed(cls, target=put(5, -1), known=np.ones(N)),
        "arrays 'target' and 'known' disagree, row 5 is -1 (no known class), but "
        "'known' is true there",
    ),
    (
        changed(cls, target=put(5, 0.5, float)),
        "array 'target' must be whole numbers, row 5 is 0.5",
    ),
    (
        changed(dict, target=[0, 2], prob=[0.5, 0.5]),
        "array 'target' must lie in 0..1 for 2 classes, row 1 is 2",
    ),
    (
        changed(cls, target=np.array(["cat"] * N)),
        "array 'target' must be numbers, got text such as 'cat'; encode the "
        "classes as whole numbers 0..C-1",
    ),
    (
        changed(cls, target=np.zeros(N, complex)),
        "array 'target' must be numbers, got complex128",
    ),
    (
        changed(emb, target=put(0, -2)),
        "array 'target' must lie in 0 or more, row 0 is -2",
    ),
    (
        changed(emb, predicted=np.full(N, -1)),
        "array 'predicted' must lie in 0 or more, row 0 is -1",
    ),
    (
        changed(dict, target=np.arange(N) % 4, prob=np.full((N, 4), 0.25)),
        "array 'prob' has 4 items (shape (12, 4)), but array 'target' has 12; they "
        "must agree. If its columns are the classes, it is called 'probs'; if they are "
        "draws, turn it to (M, N): prob.T",
    ),
    (
        changed(dict, target=[0, 1], probs=[[[0.25, 0.5], [0.75, 0.5]]]),
        "axis 1 sums to 1 instead, so the classes seem to lie there: move them with "
        "np.moveaxis(probs, 1, 2)",
    ),
    (changed(emb, target=np.full(N, 2**63, np.uint64)), "row 0 is 9.22337e+18"),
    (
        changed(cls, item=put(9, "eye 2")),
        "array 'item' must hold a different name in every row, rows 2 and 9 are both "
        "'eye 2'; rename one",
    ),
    (
        changed(reg, var=put((0, 4), -0.5)),
        "array 'var' must be at least 0, draw 0, row 4 is -0.5; correct the value",
    ),
    (
        changed(reg, var=np.log),
        "if these are logarithms of the variance, store np.exp(var)",
    ),
    (
        changed(emb, votes=put((4, 1), -1)),
        "array 'votes' must be at least 0, row 4, column 1 is -1",
    ),
    (
        changed(cls, shifted=put(4, 2, float)),
        "array 'shifted' must be true or false (1 or 0), row 4 is 2",
    ),
    (
        changed(cls, shifted=np.array(["yes"] * N)),
        "array 'shifted' must be numbers, got text such as",
    ),
    (
        changed(cls, group=put(4, 0.5, float)),
        "array 'group' must be whole numbers, row 4 is 0.5",
    ),
    (
        changed(cls, group=np.full(N, 2.0**70)),
        "array 'group' must hold text or whole numbers below 2**63",
    ),
    (
        changed(cls, group=np.array([b"\xff"] * N)),
        "array 'group' must be text in UTF-8",
    ),
    (
        changed(cls, thumbnail=np.zeros((N, 2, 2, 3))),
        "array 'thumbnail' must be whole numbers in 0..255 (uint8), got float64",
    ),
    (
        changed(cls, thumbnail=np.full((N, 2, 2, 3), 256)),
        "array 'thumbnail' must lie in 0..255, row 0, line 0, column 0, "
        "channel 0 is 256",
    ),
    # The header.
    (
        changed(ivl),
        "arrays 'lower' and 'upper' need the header's 'alpha', 0.1 for 90 % intervals; "
        "state it in header=...",
    ),
    (
        changed(ivl, {"alpha": 1.0}),
        "header 'alpha' must be between 0 and 1 (0.1 for 90 % intervals), or null, got "
        "1.0; correct it or leave it out",
    ),
    (
        changed(reg, {"select": {"gmn": "mean"}}),
        "header 'select' has a rule for 'gmn', but there is no array 'select/gmn'. Did "
        "you mean 'gmm'?",
    ),
]


@pytest.mark.parametrize(
    ("make", "sentence"), REFUSED, ids=[sentence[:50] for _, sentence in REFUSED]
)
def test_a_mistake_ends_in_its_sentence(make, sentence):
    arrays, header = make()
    with pytest.raises(PredictionsError, match=re.escape(sentence)) as refused:
        build(arrays, header=header)
    message = str(refused.value)
    assert message.startswith("arrays: ")
    assert "\n" not in message


def test_the_task_can_be_said_where_it_is_open():
    arrays = made.classification() | {"mean": np.zeros(N)}
    predictions = build(arrays, task="classification")
    assert predictions.task == "classification"
    assert (
        "array 'mean' is not part of classification predictions" in predictions.notes[0]
    )
    assert build(arrays, header={"task": "classification"}).task == "classification"


def test_a_task_nobody_knows_is_answered_with_the_closest():
    with pytest.raises(
        PredictionsError, match=r"no task 'regresion'\. Did you mean 'reg"
    ):
        build(made.regression(), task="regresion")
    with pytest.raises(PredictionsError, match="'mean' or 'lower', found no array; a"):
        build({}, task="regression")


def test_arrays_of_unknown_names_are_left_alone_and_noted():
    predictions = build(made.classification() | {"latitude": object()})
    assert predictions.notes == (
        "array 'latitude' is not part of classification predictions and was ignored",
    )
    assert predictions.get("latitude") is None


@pytest.mark.parametrize(
    ("arrays", "sentence"),
    [
        ([1, 2], "must be a mapping of names to arrays, got list"),
        ({1: [0]}, "the name of an array must be text, got 1"),
        ({"maps": 3}, "'maps' must be a sequence of Maps, got int"),
        ({"maps": [3]}, "maps[0]: must be a Maps record, got int"),
        ({"maps": []}, "has no items"),
    ],
)
def test_what_is_no_mapping_of_arrays_is_refused(arrays, sentence):
    with pytest.raises(PredictionsError, match=re.escape(sentence)):
        build(arrays)


class TestLogits:
    def test_softmax_is_taken_where_asked_for(self):
        logits = np.array([[2.0, -1.0, 0.0], [1e4, 0.0, -1e4]])
        found = build({"target": [0, 1], "probs": logits}, logits=True)
        raised = np.exp(logits[0])
        np.testing.assert_allclose(
            found.arrays["probs"][0], [raised / raised.sum(), [1, 0, 0]], rtol=1e-14
        )

    def test_both_tails_of_a_sigmoid_are_kept(self):
        found = build({"target": [0, 1], "prob": [-50.0, 50.0]}, logits=True)
        small = 1 / (1 + np.exp(50.0))
        np.testing.assert_allclose(
            found.arrays["probs"][0], [[1, small], [small, 1]], rtol=1e-12
        )

    def test_probabilities_are_not_logits(self):
        with pytest.raises(PredictionsError, match="all its values are probabilities"):
            build(made.classification(), logits=True)
        with pytest.raises(PredictionsError, match="leave out --logits"):
            build({"target": [0, 1], "prob": [0.1, 0.2]}, logits=True)

    def test_true_label_distributions_stay_probabilities(self):
        arrays = made.classification()
        arrays["probs"] = np.log(arrays["probs"])
        found = build(arrays, logits=True)
        np.testing.assert_array_equal(
            found.arrays["target_probs"], arrays["target_probs"]
        )

    def test_other_tasks_have_none(self):
        with pytest.raises(
            PredictionsError, match="logits are for classification only"
        ):
            build(made.regression(), logits=True)
        with pytest.raises(
            PredictionsError, match="logits are for classification only"
        ):
            build(made.segmentation(), header={"ignore": 255}, logits=True)

    def test_a_logit_must_be_finite(self):
        with pytest.raises(PredictionsError, match="row 0 is -inf"):
            build({"target": [0, 1], "prob": [-np.inf, 3]}, logits=True)


def test_rounding_just_outside_the_unit_interval_is_cut_off():
    predictions = build({"target": [0, 1], "prob": np.array([1 + 1e-7, -1e-7])})
    assert predictions.arrays["probs"].tolist() == [[[0, 1], [1, 0]]]
