"""What looks like a mistake in predictions is said, or refused with its cause."""

import json

import numpy as np
import pytest

import qualms
from qualms.predictions import PredictionsError, build, pool, read, write

RNG = np.random.default_rng(0)
N = 60
TARGET = RNG.integers(0, 3, N)
LOGITS = RNG.normal(size=(N, 3)) + 2 * np.eye(3)[TARGET]
PROBS = np.exp(LOGITS) / np.exp(LOGITS).sum(axis=1, keepdims=True)
SIGMOIDS = 1 / (1 + np.exp(-LOGITS))


def refused(probs, **options):
    with pytest.raises(PredictionsError) as error:
        build({"probs": probs, "target": TARGET}, **options)
    return str(error.value)


@pytest.mark.parametrize("factor", [1.1, 2.0, 1.01, 0.5])
def test_probabilities_times_a_number_are_no_logits(factor):
    message = refused(factor * PROBS)
    assert f"all rows sum to about {factor:g}; --renormalise" in message
    assert "if these are logits" not in message
    # What it says leads to the right scores.
    found = build({"probs": factor * PROBS, "target": TARGET}, renormalise=True)
    np.testing.assert_allclose(found.arrays["probs"][0], PROBS, atol=1e-12)


def test_percentages_of_separate_sigmoids_are_no_logits():
    message = refused(100 * SIGMOIDS)
    assert "none is negative, as logits would be" in message
    assert "--logits" not in message


def test_too_much_rounding_is_named():
    many = RNG.dirichlet(np.full(400, 0.05), N).round(2)
    with pytest.raises(PredictionsError, match="rounded to 2 decimals, which is too"):
        build({"probs": many, "target": TARGET})


def test_what_is_no_logit_is_not_taken_for_one():
    """Whoever says --logits of probabilities in another form gets no scores."""
    assert "rows sum to 100: these are percentages" in refused(100 * PROBS, logits=True)
    assert "all rows sum to about 1.1" in refused(1.1 * PROBS, logits=True)
    assert "as a sigmoid for each class" in refused(SIGMOIDS, logits=True)
    with pytest.raises(PredictionsError, match="percentages, divide them by 100"):
        build({"prob": 100 * SIGMOIDS[:, 0], "target": TARGET > 0}, logits=True)
    # Logits are: also those of one item that happen to be positive.
    build({"probs": LOGITS, "target": TARGET}, logits=True)
    build({"probs": [[0.5, 3.0, 1.0]], "target": [1]}, logits=True)
    build({"prob": [3.0, 0.5], "target": [1, 0]}, logits=True)


def test_classes_called_minus_one_and_one_are_refused():
    signs = np.where(TARGET > 0, 1, -1)
    arrays = {"prob": SIGMOIDS[:, 0], "target": signs}
    with pytest.raises(PredictionsError, match="number two classes 0 and 1") as error:
        build(arrays)
    assert f"of these {int((signs < 0).sum())} of {N} items" in str(error.value)
    with pytest.raises(PredictionsError, match="holds -1 and 1 only"):
        build({"embedding": LOGITS, "target": signs, "uncertainty/x": SIGMOIDS[:, 0]})
    # Who means that no class is known says so.
    assert (
        build(arrays | {"known": signs > 0}).arrays["known"].sum() == (signs > 0).sum()
    )
    build({"probs": PROBS, "target": np.where(TARGET == 0, -1, 1)})
    build({"prob": [0.2, 0.9], "target": [-1, 1]})


def test_intervals_that_are_upside_down_are_not_scored(tmp_path):
    low, high = LOGITS.min(axis=1) - 1, LOGITS.max(axis=1)
    header = {"alpha": 0.1}
    exchanged = {"target": LOGITS[:, 0], "lower": high, "upper": low}
    path = write(tmp_path / "p.npz", exchanged, header=header)
    assert "'lower' is above 'upper' in 60 of 60 items" in str(read(path).notes)
    with pytest.raises(ValueError, match=r"p\.npz: 'lower' must not be above 'upper'"):
        qualms.score(path)
    few = exchanged | {"lower": low, "upper": np.where(np.arange(N) < 9, low - 1, high)}
    assert "coverage" in {row.score for row in qualms.score(few, header=header).rows}


def test_a_run_is_not_pooled_with_itself(tmp_path):
    path = write(tmp_path / "a.npz", {"probs": PROBS, "target": TARGET})
    (tmp_path / "sub").mkdir()
    again = tmp_path / "sub" / ".." / "a.npz"
    for same in ([path, again], [run := read(path), run]):
        with pytest.raises(PredictionsError, match="with itself: the mean of a run"):
            pool(same)
    copy = tmp_path / "b.npz"
    copy.write_bytes(path.read_bytes())
    (note,) = [n for n in pool([path, copy]).notes if "one run?" in n]
    assert "a.npz" in note
    assert "b.npz" in note


@pytest.fixture
def intervals(tmp_path):
    path = tmp_path / "i.csv"
    lines = [f"{t:.3f},{t - 1:.3f},{t + 0.5:.3f}" for t in LOGITS[:, 0]]
    path.write_text("target,lower,upper\n" + "\n".join(lines))
    return path


def test_an_option_stands_for_a_missing_alpha(intervals):
    from typer.testing import CliRunner

    from qualms.cli import app

    def aims(*options):
        result = CliRunner().invoke(app, ["score", str(intervals), "--json", *options])
        return json.loads(result.stdout)["files"][0]["notes"]

    assert "intervals aim at coverage 0.8" in aims("--alpha", "0.2")
    assert "intervals aim at coverage 0.7" in qualms.score(intervals, alpha=0.3).notes
    with pytest.raises(PredictionsError, match=r"or to score them by --alpha"):
        qualms.score(intervals)
    # What the header states is what the intervals were made for.
    intervals.with_name("i.csv.json").write_text('{"alpha": 0.1}')
    notes = aims("--alpha", "0.2")
    assert any("states alpha 0.1, which is used, and not 0.2" in n for n in notes)
    assert "intervals aim at coverage 0.9" in notes


def test_an_array_of_patients_is_offered_as_clusters():
    arrays = {"target": [0, 1, 0, 1], "prob": [0.2, 0.9, 0.4, 0.7]}
    patients = {"patient_id": np.array([1, 1, 2, 2])}
    offer = "call 'patient_id' 'cluster' if its items belong together"
    assert any(offer in note for note in build({**arrays, **patients}).notes)
    clustered = build({**arrays, **patients, "cluster": [0, 0, 1, 1]})
    assert not any(offer in note for note in clustered.notes)
    many = {f"column {k}": np.zeros(4) for k in range(9)}
    assert any(offer in note for note in build({**arrays, **many, **patients}).notes)
