"""Probabilities as other programs store them: rounded, in percent, not normalised."""

import numpy as np
import pytest

import qualms
from qualms.predictions import PredictionsError, build, read, write

RNG = np.random.default_rng(0)
TARGET = RNG.integers(0, 5, 200)
PROBS = RNG.dirichlet(np.ones(5), 200)


def built(probs, **options):
    return build({"target": TARGET, "probs": probs}, **options)


def as_bfloat16(values):
    """Cut float32 to the bits of bfloat16, rounded to the nearest."""
    bits = values.astype(np.float32).view(np.uint32)
    return ((bits + 0x8000) & 0xFFFF0000).view(np.float32)


@pytest.mark.parametrize(
    "stored",
    [PROBS.round(2), PROBS.round(3), PROBS.round(2).astype(np.float32)],
)
def test_rounded_probabilities_are_renormalised_with_a_note(stored):
    predictions = built(stored)
    found = predictions.arrays["probs"][0]
    np.testing.assert_allclose(found.sum(-1), 1, atol=1e-6)
    np.testing.assert_allclose(found, PROBS, atol=0.03)
    assert any("was renormalised" in note for note in predictions.notes)


def test_bfloat16_is_accepted():
    stored = as_bfloat16(PROBS)
    assert np.abs(stored.sum(-1, dtype=np.float64) - 1).max() > 1e-3
    found = built(stored).arrays["probs"][0]
    np.testing.assert_allclose(found, PROBS, atol=0.005)


def test_bfloat16_tensors_are_accepted(tmp_path):
    torch = pytest.importorskip("torch")
    probs = torch.tensor(PROBS).bfloat16()
    path = write(tmp_path / "p.npz", {"target": TARGET, "probs": probs})
    assert read(path).n == 200


@pytest.mark.parametrize(
    ("stored", "said"),
    [
        (100 * PROBS, "these are percentages; --renormalise"),
        ((100 * PROBS).round(1), "these are percentages; --renormalise"),
        (1.1 * PROBS / 1.1 * 0.9, "all rows sum to about 0.9; --renormalise"),
        (RNG.uniform(size=(200, 5)), "a sigmoid of its own"),
        (4 * RNG.normal(size=(200, 5)), "if these are logits, say so: --logits"),
    ],
)
def test_other_numbers_are_called_by_what_they_are(stored, said):
    with pytest.raises(PredictionsError) as refused:
        built(stored)
    assert said in str(refused.value)
    assert ("logits" in str(refused.value)) == ("logits" in said)


def test_percentages_of_one_class_are_named():
    prob = np.round(100 * RNG.uniform(size=50), 1)
    with pytest.raises(PredictionsError, match="if these are percentages, divide"):
        build({"target": RNG.integers(0, 2, 50), "prob": prob})


def test_sums_are_divided_out_where_the_user_says_so(tmp_path):
    expected = built(PROBS).arrays["probs"]
    for stored in (100 * PROBS, 1.1 * PROBS, PROBS):
        predictions = built(stored, renormalise=True)
        np.testing.assert_allclose(predictions.arrays["probs"], expected, atol=1e-12)
        assert any("was divided by its sums" in note for note in predictions.notes)
    results = qualms.score({"target": TARGET, "probs": 100 * PROBS}, renormalise=True)
    wanted = qualms.score({"target": TARGET, "probs": PROBS})
    assert results.row("nll").value == pytest.approx(wanted.row("nll").value)
    with pytest.raises(PredictionsError, match="no negative number and a positive sum"):
        built(PROBS - 0.1, renormalise=True)
    with pytest.raises(PredictionsError, match="need no other rule"):
        built(PROBS, renormalise=True, logits=True)
    with pytest.raises(PredictionsError, match="these are regression predictions"):
        build({"target": [1.0, 2.0], "mean": [1.0, 2.0]}, renormalise=True)


def test_ties_stay_ties_in_any_order_of_classes():
    row = np.array([0.1, 0.2, 0.7]) * 1.1
    stored = np.stack([row[list(order)] for order in ((0, 1, 2), (2, 0, 1), (1, 2, 0))])
    found = build({"target": [0, 1, 2], "probs": stored}, renormalise=True)
    assert len(np.unique(np.sort(found.arrays["probs"][0], -1), axis=0)) == 1
