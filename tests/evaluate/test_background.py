"""Segmentations of several classes are judged by their foreground."""

import numpy as np
import pytest
from typer.testing import CliRunner

import qualms
from qualms import predictions, scores
from qualms.cli import app
from qualms.evaluate import ScoreOptions

BARE = ScoreOptions(resamples=0, workers=2)
LIVER = ("background", "liver", "tumour")


def cli(*args):
    answer = CliRunner().invoke(app, [str(arg) for arg in args])
    assert answer.exit_code == 0, answer.output
    return answer.output


def organ(number, rng):
    """A case of 24 x 24 pixels: a liver, in some cases a tumour, both often missed."""
    truth = np.zeros((24, 24), np.uint8)
    truth[2:8, 2:8] = 1
    if number % 3:
        truth[4:6, 4:6] = 2
    predicted = truth.copy()
    missed = number % 4 > 0
    predicted[2:8, 4 if missed else 8 : 8] = 0
    probs = np.full((3, 24, 24), 0.02, np.float32)
    np.put_along_axis(probs, predicted[None].astype(int), 0.96, axis=0)
    # Cases with much missed have less certain maps.
    blur = 0.2 * missed + 0.05 * rng.random()
    probs = (1 - blur) * probs + blur / 3
    return truth, predicted, (probs / probs.sum(axis=0)).astype(np.float32)


def written(folder, order=(0, 1, 2), cases=40, **header):
    """Write cases whose classes are numbered in another order."""
    rng = np.random.default_rng(0)
    place = np.argsort(order).astype(np.uint8)
    with predictions.SegmentationWriter(folder, header=header) as writer:
        for number in range(cases):
            truth, _, probs = organ(number, rng)
            kept = scores.sufficient_statistics(probs[None, list(order)])
            maps = predictions.Maps(**kept._asdict(), raters=place[truth][None])
            writer.add(f"case {number}", maps)
    return folder


def as_nnunet(cases=40):
    """The foreground mean of each case: classes that occur nowhere are left out."""
    means = []
    rng = np.random.default_rng(0)
    for number in range(cases):
        truth, predicted, _ = organ(number, rng)
        dices = []
        for label in (1, 2):
            a, b = truth == label, predicted == label
            if a.any() or b.any():
                dices.append(2 * (a & b).sum() / (a.sum() + b.sum()))
        means.append(np.mean(dices))
    return np.array(means)


@pytest.fixture(scope="module")
def named(tmp_path_factory):
    return written(tmp_path_factory.mktemp("maps") / "named", classes=LIVER)


@pytest.fixture(scope="module")
def results(named):
    return qualms.score(named, options=BARE)


def test_risk_and_verdict_are_about_the_foreground_of_each_case(results):
    dice = as_nnunet()
    assert results["dice"].value > 0.95  # the share of pixels that agree
    assert results["dice"].detail == "pooled"
    assert results["macro_dice"].value == pytest.approx(dice.mean())
    assert results["macro_dice"].detail == "foreground"
    for row in results.rows:
        if row.score == "aurc":
            expected = scores.aurc(risk=1 - dice, uncertainty=row.entry.uncertainty)
            assert row.value == pytest.approx(expected)
    accurate, _, finds, _ = results.verdict
    assert accurate.because.startswith("Macro Dice of foreground classes 0.51 (")
    assert f"random order {1 - dice.mean():.2f}" in finds.because
    (curve,) = {c.label for c in results.curves if c.name == "risk_coverage"}
    assert curve == "1 - Macro Dice of the kept items"
    assert any("background is class 0, as its name is" in n for n in results.notes)


@pytest.mark.parametrize(
    ("order", "header", "said"),
    [
        ((1, 2, 0), {"classes": ["liver", "tumour", "_Background_"]}, None),
        ((1, 2, 0), {"background": 2}, None),
        ((1, 2, 0), {"classes": ["liver", "tumour", "other"]}, "other"),
        ((1, 0, 2), {}, "1"),
        ((0, 1, 2), {}, None),
    ],
)
def test_the_background_may_be_any_class(tmp_path, results, order, header, said):
    folder = written(tmp_path / "p", order, **header)
    other = qualms.score(folder, options=BARE, background=said)
    for row, same in zip(other.rows, results.rows, strict=True):
        assert row.key == same.key
        assert row.value == pytest.approx(same.value, rel=1e-5, nan_ok=True), row.key


def test_it_is_said_which_class_was_taken_and_why(tmp_path):
    def note(name, **options):
        found = qualms.score(tmp_path / name, options=BARE, **options)
        (said,) = (n for n in found.notes if n.startswith("macro Dice and risk are"))
        return said, found["macro_dice"].detail

    written(tmp_path / "bare", cases=12)
    written(tmp_path / "streets", cases=12, classes=["road", "person", "car"])
    said, over = note("bare")
    assert "background is class 0, as classes have no names" in said
    assert over == "foreground"
    said, over = note("streets")
    assert "no class is called background ('road', 'person', 'car')" in said
    assert over == "all"
    said, over = note("streets", background="road")
    assert "background is class 0 (--background" in said
    assert over == "foreground"
    said, over = note("bare", background="none")
    assert "no class is taken as background (" in said
    assert over == "all"
    printed = cli("score", tmp_path / "streets", "--background", "road")
    assert "Macro Dice" in printed
    assert "foreground" in printed


@pytest.mark.parametrize(
    ("background", "sentence"),
    [
        ("livr", r"must be one of 'background', .*, a number .*mean 'liver'"),
        (3, r"a number from 0 to 2 or 'none', got '3'"),
    ],
)
def test_a_background_that_is_no_class_is_refused(named, background, sentence):
    source = predictions.read(named)
    open_ = predictions.build(
        {"maps": list(source.maps)}, header={"classes": list(LIVER)}
    )
    with pytest.raises(predictions.PredictionsError, match=sentence):
        qualms.score(open_, background=background)


def test_only_classes_of_segmentations_have_a_background():
    arrays = {"target": [0, 1], "prob": [0.2, 0.9]}
    with pytest.raises(predictions.PredictionsError, match="holds classification"):
        qualms.score(arrays, background=0)


def test_of_two_classes_the_first_is_the_background(tmp_path):
    maps = predictions.Maps(
        mean_probs=np.full((2, 4, 4), 0.5, np.float32),
        expected_entropy=np.zeros((4, 4), np.float32),
        draw_labels=np.zeros((1, 4, 4), np.uint8),
        raters=np.zeros((1, 4, 4), np.uint8),
    )
    header = {"classes": ["vessel", "background"]}
    with pytest.raises(predictions.PredictionsError, match="in the other order"):
        predictions.build({"maps": [maps]}, header=header)


def test_aurc_says_which_aggregation_to_take_or_that_none_is_best(results, tmp_path):
    (sentence,) = results.aggregations
    assert sentence.startswith("AURC, 5 uncertainties: ")
    assert "cannot be told apart" in sentence or "take predictive" in sentence
    few = qualms.score(written(tmp_path / "few", cases=3), options=BARE)
    assert "which is best is not said: 3 items are too few" in few.aggregations[0]
    printed = cli("score", tmp_path / "few", "--all")
    assert "which is best is not said" in " ".join(printed.split())
