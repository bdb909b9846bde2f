"""The verdict is right about invented files, and says where it cannot tell."""

import numpy as np
import pytest
from rich.console import Console

import qualms
from qualms import predictions, scores
from qualms.evaluate import Scored, ScoreOptions
from qualms.evaluate._verdict import DASH, _beside_cut
from qualms.inference import Bounded
from qualms.report import print_results

BARE = ScoreOptions(resamples=0)


def answers(arrays, val=None):
    results = qualms.score(arrays, val=val, options=BARE)
    return {answer.question: answer.answer for answer in results.verdict}


def classified(n, seed=0, *, sharper=1.0, shift=None):
    """Draw targets from the probabilities, then sharpen these."""
    rng = np.random.default_rng(seed)
    probs = rng.dirichlet([0.4] * 4, n)
    target = (rng.random(n)[:, None] > probs.cumsum(axis=1)).sum(axis=1).clip(0, 3)
    if shift is not None:
        shifted = np.arange(n) >= n // 2
        wrong = shifted & (rng.random(n) < shift)
        target = np.where(wrong, rng.integers(0, 4, n), target)
    probs = probs**sharper
    arrays = {"probs": probs / probs.sum(axis=1, keepdims=True), "target": target}
    return arrays if shift is None else arrays | {"shifted": shifted}


def test_what_is_so_by_construction_is_found():
    verdict = answers(classified(4000))
    assert verdict == {
        "accurate": "yes",
        "calibrated": "yes",
        "finds_errors": "yes",
        "survives_shift": "not asked",
    }
    assert answers(classified(4000, sharper=3.0))["calibrated"] == "no"
    assert answers(classified(8000, shift=0.0))["survives_shift"] == "yes"
    assert answers(classified(8000, shift=0.5))["survives_shift"] == "no"


def test_few_items_do_not_decide():
    assert {"yes", "no"}.isdisjoint(answers(classified(5)).values())
    verdict = answers(classified(40, shift=0.0))
    assert verdict["calibrated"] == "cannot be told"
    assert verdict["survives_shift"] == "cannot be told"


def test_guesses_are_no_better_than_guessing():
    rng = np.random.default_rng(0)
    guesses = {"prob": rng.random(4000), "target": rng.integers(0, 2, 4000)}
    assert answers(guesses)["accurate"] == "no"
    # Equally certain items: nothing tells which of them are wrong.
    flat = np.where(rng.random(4000) < 0.5, 0.2, 0.8)
    target = (rng.random(4000) < flat).astype(int)
    assert answers({"prob": flat, "target": target})["finds_errors"] == "no"
    always = {"prob": np.full(50, 0.9), "target": rng.integers(0, 2, 50)}
    assert answers(always)["accurate"] == "cannot be told"


def test_no_errors_leave_nothing_to_find():
    target = np.arange(60) % 2
    verdict = answers({"prob": np.where(target, 0.9, 0.1), "target": target})
    assert verdict["finds_errors"] == "cannot be told"


def numbers(n, *, honest=True, shift=1.0):
    rng = np.random.default_rng(1)
    target, scale = rng.normal(0, 5, n), rng.uniform(0.2, 2.0, n)
    shifted = np.arange(n) >= n // 2
    error = rng.normal(0, scale) * np.where(shifted, shift, 1.0)
    var = scale**2 if honest else np.full(n, 0.04)
    return {"mean": target + error, "var": var, "target": target, "shifted": shifted}


def test_numbers_and_their_intervals():
    verdict = answers(numbers(8000))
    assert set(verdict.values()) == {"yes"}
    worse = answers(numbers(3000, honest=False, shift=3.0))
    assert worse == {
        "accurate": "yes",
        "calibrated": "no",
        "finds_errors": "no",
        "survives_shift": "no",
    }
    # Points alone have neither intervals nor an uncertainty.
    points = {k: v for k, v in numbers(400).items() if k in ("mean", "target")}
    assert answers(points)["calibrated"] == "not asked"
    assert answers(points)["finds_errors"] == "not asked"
    lengths = qualms.score(numbers(500), options=BARE)["all/aurc"]
    arrays = numbers(500)
    by_hand = scores.aurc(np.abs(arrays["mean"] - arrays["target"]), arrays["var"])
    assert lengths.value == pytest.approx(by_hand)


def embedded(n, *, noise, seed=0):
    rng = np.random.default_rng(seed)
    target = rng.integers(0, 6, n)
    spread = noise * np.exp(rng.normal(size=n))
    centre = rng.normal(size=(6, 8))
    embedding = centre[target] + spread[:, None] * rng.normal(size=(n, 8))
    return {"embedding": embedding, "target": target, "uncertainty/spread": spread}


def test_embeddings_are_not_asked_for_probabilities():
    assert answers(embedded(600, noise=0.6)) == {
        "accurate": "yes",
        "finds_errors": "yes",
        "survives_shift": "not asked",
    }
    assert answers(embedded(600, noise=1e3))["accurate"] != "yes"


def test_a_true_yes_is_seldom_called_no():
    verdicts = [answers(classified(250, seed, shift=0.0)) for seed in range(4)]
    assert sum("no" in verdict.values() for verdict in verdicts) == 0


@pytest.fixture(scope="module")
def maps(tmp_path_factory):
    folder = tmp_path_factory.mktemp("maps") / "seg"
    rng = np.random.default_rng(0)
    with predictions.SegmentationWriter(folder) as writer:
        for number in range(4):
            truth = np.hypot(*np.mgrid[-6:6, -6:6]) < 3 + rng.random()
            prob = np.where(truth, 0.9, 0.1) + rng.uniform(-0.1, 0.1, (3, 12, 12))
            statistics = scores.sufficient_statistics(np.stack([1 - prob, prob], 1))
            maps = predictions.Maps(
                mean_probs=statistics.mean_probs,
                expected_entropy=statistics.expected_entropy,
                draw_labels=statistics.draw_labels,
                raters=truth[None].astype(np.uint8),
            )
            writer.add(f"case {number}", maps, shifted=number > 6)
    return folder


def street(folder, label):
    """Write maps on which two classes other than 0 cover little; `label` predicts."""
    with predictions.SegmentationWriter(folder) as writer:
        for number in range(24):
            truth = np.zeros((10, 20), np.uint8)
            truth[0, : 2 + number // 2], truth[1, :5] = 1, 2
            labels = label(truth)
            maps = predictions.Maps(
                mean_probs=np.eye(3, dtype=np.float32)[labels].transpose(2, 0, 1),
                expected_entropy=np.zeros(truth.shape, np.float32),
                draw_labels=labels[None],
                raters=truth[None],
            )
            writer.add(f"street {number}", maps, shifted=number % 2 == 1)
    return folder


def without_a_pixel(truth):
    return np.where(np.arange(truth.shape[1]) < 1, 0, truth).astype(np.uint8)


def test_a_background_of_many_pixels_is_not_called_accurate(tmp_path):
    nothing = qualms.score(street(tmp_path / "none", np.zeros_like), options=BARE)
    assert nothing["dice"].value > 0.9
    # Neither of the two classes beside the background is found.
    assert nothing["macro_dice"].value == 0.0
    accurate, *_, survives = nothing.verdict
    assert accurate.answer != "yes"
    assert accurate.because.startswith("Macro Dice of foreground classes 0.0")
    assert survives.because.startswith("Macro Dice of foreground classes 0.00 → 0.00")
    most = qualms.score(street(tmp_path / "most", without_a_pixel), options=BARE)
    assert most.verdict[0].answer == "yes"


@pytest.mark.parametrize(
    "source",
    [
        pytest.param(classified(300), id="classes"),
        pytest.param(classified(300, shift=0.4), id="shifted classes"),
        pytest.param(numbers(300), id="numbers"),
        pytest.param(embedded(90, noise=0.5), id="embeddings"),
        pytest.param("maps", id="maps"),
    ],
)
def test_what_is_printed_fits_a_screen(source, request):
    file = request.getfixturevalue("maps") if source == "maps" else source
    results = qualms.score(file, options=BARE, name="mine")
    console = Console(width=80)
    with console.capture() as capture:
        print_results(Scored(results=(results,)), brief=True, console=console)
    text = capture.get()
    assert len(text.splitlines()) <= 24, text
    assert max(map(len, text.splitlines())) <= 80
    assert text.startswith("mine: ")
    assert "Accurate?" in text
    assert sum(line[0] in "↑↓" for line in text.splitlines() if line) <= 10


def test_ten_right_items_do_not_show_calibration():
    arrays = {"prob": np.full(10, 0.98), "target": np.ones(10, int)}
    assert answers(arrays)["calibrated"] == "cannot be told"


def test_the_cut_is_said_where_it_decides():
    """Whoever reads an answer can compare the interval with the cut."""
    shifted = qualms.score(classified(300, shift=0.4), options=BARE)
    said = {answer.question: answer.because for answer in shifted.verdict}
    assert said["accurate"].endswith("; cut 0.1")
    assert said["calibrated"].endswith("; cut 0.05")
    error = 1 - shifted["accuracy"].value
    assert f"; cut {0.9 * error:.2f}"[:9] in said["finds_errors"]
    assert said["survives_shift"].endswith("; cut 0.05")
    # Both changes have the interval that is compared.
    assert said["survives_shift"].count(" to ") == 2
    regression = qualms.score(numbers(300), options=BARE)
    said = {answer.question: answer.because for answer in regression.verdict}
    assert "; cut " in said["accurate"]
    assert said["calibrated"].endswith("; aim 90±5%")
    assert "cut 85%; error" in said["survives_shift"]
    assert said["survives_shift"].endswith("times as large, cut 1.1")
    embeddings = qualms.score(embedded(90, noise=0.5), options=BARE)
    said = {answer.question: answer.because for answer in embeddings.verdict}
    assert "; cut 0.55, coin 0.5" in said["finds_errors"]
    assert ", the largest class" in said["accurate"]


def test_an_interval_that_nearly_touches_the_cut_is_written_with_more_digits():
    # 0.0503 would else be written as 0.050, which is the cut.
    text = _beside_cut(Bounded(0.061, 0.0503, 0.07), 0.05)
    assert text == f"0.0610 (0.0503{DASH}0.0700); cut 0.05"
    text = _beside_cut(Bounded(-0.3, -0.4, 0.2), 0.1)
    assert text == "-0.30 (-0.40 to 0.20); cut 0.1"


def test_worse_than_guessing_is_called_that():
    rng = np.random.default_rng(0)
    target = rng.integers(0, 2, 300)
    prob = np.where((rng.random(300) < 0.65) ^ (target == 1), 0.8, 0.2)
    results = qualms.score({"prob": prob, "target": target}, options=BARE)
    assert results["mcc"].high < 0
    assert results.verdict[0].words == "worse than guessing"
    assert results.verdict[0].answer == "no"
    chance = {"prob": rng.random(4000), "target": rng.integers(0, 2, 4000)}
    assert qualms.score(chance).verdict[0].words == "hardly better than guessing"
    value = rng.normal(size=300)
    far = {"mean": -value, "target": value}
    assert qualms.score(far).verdict[0].words == "worse than a constant"
    console = Console(width=80)
    with console.capture() as capture:
        scored = Scored(results=(results, results))
        print_results(scored, brief=True, console=console)
    assert "no, worse" in capture.get()
