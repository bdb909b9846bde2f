import itertools

import numpy as np
import pytest
from sklearn.metrics import f1_score

from qualms.scores.overlap import dice, ged, macro_dice
from scores.segmentation_items import GOLDEN, ball, tiles

BALL = GOLDEN["A_3d_binary"]


def random_maps(seed, *, maps, shape, classes):
    return np.random.default_rng(seed).integers(0, classes, (maps, *shape))


def slow_dice(a, b, classes):
    """scikit-learn's F1 is Dice; its micro average is taken over one-hot classes."""
    if classes == 2:
        return f1_score(a.ravel(), b.ravel(), zero_division=1.0)
    return f1_score(a.ravel(), b.ravel(), average="micro")


def slow_ged(draws, raters, classes):
    def distance(first, second):
        pairs = itertools.product(first, second)
        return np.mean([1 - slow_dice(a, b, classes) for a, b in pairs])

    return (
        2 * distance(raters, draws) - distance(draws, draws) - distance(raters, raters)
    )


@pytest.mark.parametrize("classes", [2, 3, 7])
@pytest.mark.parametrize("shape", [(40,), (6, 7), (3, 4, 5)])
def test_dice_is_the_f1_score_of_scikit_learn(classes, shape):
    a, b = random_maps(0, maps=2, shape=shape, classes=classes)
    assert dice(prediction=a, reference=b, classes=classes) == pytest.approx(
        slow_dice(a, b, classes)
    )


def test_macro_dice_is_the_macro_f1_score_over_classes_that_occur():
    a, b = random_maps(1, maps=2, shape=(50,), classes=4)
    actual = macro_dice(prediction=a, reference=b, classes=9, background=None)
    assert actual == pytest.approx(f1_score(a, b, average="macro"))
    for background in (0, 2):
        others = [n for n in range(4) if n != background]
        actual = macro_dice(prediction=a, reference=b, classes=9, background=background)
        expected = f1_score(a, b, average="macro", labels=others)
        assert actual == pytest.approx(expected)
    with pytest.raises(ValueError, match=r"background must be a class in 0\.\.8 or"):
        macro_dice(prediction=a, reference=b, classes=9, background=9)


def test_dice_of_the_ball_is_golden():
    item = ball(100)
    actual = [
        dice(prediction=item.prediction, reference=rater) for rater in item.raters
    ]
    assert actual == pytest.approx(BALL["dice_per_rater_float64"], abs=1e-10)
    assert np.mean(actual) == pytest.approx(BALL["dice_mean_over_raters"], abs=1e-6)


def test_ignored_pixels_are_dropped_from_dice():
    item = tiles(7)
    kept = item.raters[0] != 255
    for score in (dice, macro_dice):
        full_results = score(
            prediction=item.prediction, reference=item.raters[0], ignore=255, classes=6
        )
        assert full_results == score(
            prediction=item.prediction[kept], reference=item.raters[0][kept], classes=6
        )
    assert dice(prediction=[0, 1, 1], reference=[0, 1, -1], ignore=-1) == 1.0
    assert dice(prediction=[0, 1, 255], reference=[0, 1, 255], ignore=255) == 1.0


@pytest.mark.parametrize("empty", [0.0, 0.5, 1.0])
def test_two_empty_masks_have_the_dice_the_caller_states(empty):
    nothing = np.zeros((4, 4), dtype=np.uint8)
    assert dice(prediction=nothing, reference=nothing, empty=empty) == empty
    ignored = np.full((4, 4), 255)
    for score in (dice, macro_dice):
        options = {"classes": 3, "ignore": 255, "empty": empty}
        assert score(prediction=nothing, reference=ignored, **options) == pytest.approx(
            empty
        )


def test_an_empty_and_a_full_mask_share_nothing():
    assert dice(prediction=np.zeros(4, int), reference=np.ones(4, int)) == 0.0


def test_ged_of_the_ball_is_golden():
    item = ball(100)
    golden = BALL["ged_paper_mean_over_pairs_own"]["ged"]
    assert ged(draws=item.draws, raters=item.raters) == pytest.approx(golden, abs=1e-10)


def test_ged_of_the_tiles_is_that_of_the_specification():
    item = tiles(7)
    actual = ged(draws=item.draws, raters=item.raters, classes=6, ignore=255)
    assert actual == pytest.approx(0.05469, abs=5e-6)


@pytest.mark.parametrize("classes", [2, 5])
@pytest.mark.parametrize("shape", [(30,), (5, 6), (3, 4, 5)])
def test_ged_is_the_mean_over_all_ordered_pairs(classes, shape):
    draws = random_maps(2, maps=4, shape=shape, classes=classes)
    raters = random_maps(3, maps=3, shape=shape, classes=classes)
    draws[0], raters[:2] = 0, 0
    expected = slow_ged(draws, raters, classes)
    actual = ged(
        draws=draws.astype(np.uint8), raters=raters.astype(np.int16), classes=classes
    )
    assert actual == pytest.approx(expected, abs=1e-12)


def test_a_pixel_that_one_rater_ignores_counts_nowhere_in_ged():
    draws = random_maps(4, maps=3, shape=(60,), classes=4)
    raters = random_maps(5, maps=3, shape=(60,), classes=4)
    raters[0, :5], raters[2, 3:9] = -1, -1
    expected = slow_ged(draws[:, 9:], raters[:, 9:], 4)
    actual = ged(draws=draws, raters=raters, classes=4, ignore=-1)
    assert actual == pytest.approx(expected, abs=1e-12)


def test_ged_of_a_set_with_itself_is_zero():
    draws = random_maps(6, maps=5, shape=(8, 8), classes=2)
    assert ged(draws=draws, raters=draws[::-1]) == pytest.approx(0.0, abs=1e-12)


@pytest.mark.parametrize("empty", [0.0, 1.0])
def test_ged_is_zero_where_nobody_segments_anything(empty):
    nothing = np.zeros((3, 4, 4), dtype=np.uint8)
    assert ged(draws=nothing, raters=nothing[:2], empty=empty) == 0.0
    ignored = np.full((2, 4, 4), 255)
    assert ged(draws=nothing, raters=ignored, ignore=255, empty=empty) == 0.0


def test_ged_does_not_depend_on_how_pixels_are_cut_into_blocks(monkeypatch):
    draws = random_maps(7, maps=3, shape=(50,), classes=3)
    raters = random_maps(8, maps=2, shape=(50,), classes=3)
    whole = ged(draws=draws, raters=raters, classes=3)
    monkeypatch.setattr("qualms.scores._pixels.BLOCK", 7)
    assert ged(draws=draws, raters=raters, classes=3) == whole


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda m: dice(prediction=m[0], reference=m[0, :2]),
            "must cover the same pixels",
        ),
        (
            lambda m: dice(prediction=m[0] + 1, reference=m[0]),
            r"lie in 0\.\.1 for 2 classes, position",
        ),
        (lambda m: dice(prediction=m[0], reference=m[0] - 2), "pass ignore="),
        (
            lambda m: dice(prediction=m[0], reference=m[0], classes=1),
            "classes must lie in 2",
        ),
        (
            lambda m: dice(prediction=m[0], reference=m[0], classes=256),
            "classes must lie in 2",
        ),
        (
            lambda m: macro_dice(prediction=m[0] + 2, reference=m[0], classes=3),
            r"lie in 0\.\.2",
        ),
        (
            lambda m: macro_dice(prediction=m[0], reference=m[0], classes=3, empty=2.0),
            "empty must lie in",
        ),
        (
            lambda m: dice(prediction=m[0], reference=m[0], empty=2.0),
            "empty must lie in",
        ),
        (lambda m: dice(prediction=m[0], reference=m[0, :, :0]), "at least one pixel"),
        (lambda m: ged(draws=m[:0], raters=m), "draws must have at least one pixel"),
        (lambda m: ged(draws=m, raters=m[0, 0]), "add an axis in front"),
        (lambda m: ged(draws=m, raters=m, empty=-0.1), "empty must lie in"),
        (lambda m: ged(draws=m * 255, raters=m, ignore=255), "draws must lie in"),
    ],
)
def test_what_is_no_label_map_is_refused(call, message):
    maps = np.ones((3, 4, 4), dtype=np.int64)
    with pytest.raises(ValueError, match=message):
        call(maps)


def test_probabilities_are_refused_as_label_maps():
    with pytest.raises(TypeError, match="take the argmax"):
        dice(prediction=np.full((4, 4), 0.5), reference=np.ones((4, 4), dtype=int))
