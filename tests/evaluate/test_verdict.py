"""The verdict is right about invented files, and says where it cannot tell."""

import numpy as np
import pytest
from rich.console import Console

import qualms
from qualms import predictions, scores
from qualms.evaluate import Scored, ScoreOptions
from qualms.evaluate.main_scores import main_rows
from qualms.evaluate.verdict import DASH, beside_cut
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
    by_hand = scores.aurc(
        risk=np.abs(arrays["mean"] - arrays["target"]), uncertainty=arrays["var"]
    )
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
    assert "; cut 0.05; class-wise ECE" in said["calibrated"]
    assert said["calibrated"].endswith("; cut 0.025")
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
    text = beside_cut(Bounded(0.061, 0.0503, 0.07), 0.05)
    assert text == f"0.0610 (0.0503{DASH}0.0700); cut 0.05"
    text = beside_cut(Bounded(-0.3, -0.4, 0.2), 0.1)
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


STATED, TRUE = np.array([0.2, 0.3, 0.7, 0.8]), np.array([0.02, 0.1, 0.5, 0.62])


def of_two_classes(n, seed=0, *, true=TRUE):
    """Draw items of two classes, whose errors cancel in the predicted class."""
    rng = np.random.default_rng(seed)
    kind = rng.integers(0, 4, n)
    return {"prob": STATED[kind], "target": (rng.random(n) < true[kind]).astype(int)}


def calibrated_answer(arrays):
    (found,) = (
        answer
        for answer in qualms.score(arrays, options=BARE).verdict
        if answer.question == "calibrated"
    )
    return found


def test_errors_of_two_classes_do_not_cancel():
    results = qualms.score(of_two_classes(2000), options=BARE)
    assert results["ece"].high < 0.05  # of the predicted class: both errors cancel
    found = calibrated_answer(of_two_classes(2000))
    assert found.answer == "no"
    for part in ("ECE of P(y=1) 0.1", "cut 0.05", "ideal 0", "ideal 1"):
        assert part in found.because
    assert "mean P(y=1) 0.51, prevalence 0.3" in found.because
    found = [calibrated_answer(of_two_classes(60, seed)).answer for seed in range(20)]
    assert "yes" not in found
    assert calibrated_answer(of_two_classes(4000, true=STATED)).answer == "yes"


def test_shift_and_main_scores_are_about_the_probability_of_class_1():
    moved = of_two_classes(3000, 1)
    arrays = {
        name: np.concatenate([of_two_classes(3000, true=STATED)[name], moved[name]])
        for name in moved
    }
    arrays["shifted"] = np.arange(6000) >= 3000
    results = qualms.score(arrays, options=BARE)
    answer = results.verdict[-1]
    assert answer.answer == "no"
    assert "ECE of P(y=1) 0.0" in answer.because
    shown = [row.score for row in main_rows(results.task, results.rows)]
    line = {"classwise_ece", "calibration_intercept", "calibration_slope"}
    assert line <= set(shown)
    assert "ece" not in shown
    labels = {row.label for row in results.rows if row.score in line}
    assert labels == {
        "ECE of P(y=1)",
        "Intercept (ideal 0)",
        "Slope (ideal 1)",
    }


def test_a_rare_class_is_not_calibrated_because_it_is_rare():
    rng = np.random.default_rng(0)
    rare = (rng.random(2000) < 0.04).astype(int)
    # Always naming 0.001 has an error of 0.04.
    never = {"prob": np.full(2000, 0.001), "target": rare}
    assert calibrated_answer(never).answer == "no"
    few = {"prob": np.full(150, 0.04), "target": (np.arange(150) < 6).astype(int)}
    assert calibrated_answer(few).answer == "cannot be told"
    assert calibrated_answer({**never, "prob": np.full(2000, 0.04)}).answer == "yes"


def of_three_classes(n, seed=0):
    """Draw items whose most probable class is calibrated, and the others exchanged."""
    rng = np.random.default_rng(seed)
    stated = rng.dirichlet([0.5] * 3, n)
    order = np.argsort(stated, axis=1)
    true = stated.copy()
    rows = np.arange(n)
    true[rows, order[:, 0]] = stated[rows, order[:, 1]]
    true[rows, order[:, 1]] = stated[rows, order[:, 0]]
    target = (rng.random(n)[:, None] > true.cumsum(axis=1)).sum(axis=1).clip(0, 2)
    return {"probs": stated, "target": target}


def test_of_more_classes_every_class_must_be_calibrated():
    arrays = of_three_classes(4000)
    assert qualms.score(arrays, options=BARE)["ece"].high < 0.05
    found = calibrated_answer(arrays)
    assert found.answer == "no"
    assert "class-wise ECE" in found.because
    assert "cut 0.033" in found.because  # half of the sum over classes is below 0.05


def test_of_many_classes_only_the_predicted_one_is_judged():
    rng = np.random.default_rng(0)
    probs = rng.dirichlet([0.05] * 30, 3000)
    target = (rng.random(3000)[:, None] > probs.cumsum(axis=1)).sum(axis=1).clip(0, 29)
    found = calibrated_answer({"probs": probs, "target": target})
    assert found.answer == "yes"
    assert found.words == "its predicted class is"
    assert "more than 20 classes" in found.because


def test_calibrated_models_are_not_called_miscalibrated():
    called = []
    for seed in range(40):
        rng = np.random.default_rng(seed)
        prob = 1 / (1 + np.exp(-rng.normal(-1, 1.5, 250)))
        arrays = {"prob": prob, "target": (rng.random(250) < prob).astype(int)}
        called.append(calibrated_answer(arrays).answer)
    assert called.count("no") <= 2
