import itertools

import numpy as np
import pytest

from qualms.scores.as_published import values
from qualms.scores.decomposition import decompose
from qualms.scores.platt import fit_platt
from qualms.scores.raters import rater_agreement, rater_variance
from scores.segmentation_items import GOLDEN, ball, tiles

BALL = GOLDEN["A_3d_binary"]
RANKING = GOLDEN["C_image_level"]
RISK = np.array(RANKING["inputs"]["risk"])
UNCERTAINTY = -np.array(RANKING["inputs"]["conf"])
MEASURES = ("PE", "EE", "MI")


def maps_of(item):
    return dict(zip(MEASURES, decompose(item.probs, class_axis=1), strict=True))


def pooled_dice(pairs, classes, *, drop):
    """Counts over one-hot columns, column `drop` removed from both afterwards."""
    tp = fp = fn = 0
    for predicted, target in pairs:
        for k in range(classes):
            if k != drop:
                tp += np.sum((predicted == k) & (target == k))
                fp += np.sum((predicted == k) & (target != k))
                fn += np.sum((predicted != k) & (target == k))
    return 2 * tp / (2 * tp + fp + fn) if tp + fp + fn else 0.0


def slow_ged(draws, raters, classes, *, drop):
    draw_drop = drop if drop == 0 else None
    gp = pooled_dice(itertools.product(draws, raters), classes, drop=drop)
    pp = pooled_dice(itertools.product(draws, draws), classes, drop=draw_drop)
    gg = pooled_dice(itertools.product(raters, raters), classes, drop=drop)
    return 2 * (1 - gp) - (1 - pp) - (1 - gg)


def slow_aurc(risk, uncertainty):
    """One item removed at a time, a point where it differs from the one before it."""
    order = np.argsort(-uncertainty, kind="stable")
    curve, since = [np.mean(risk)], 0
    area = 0.0
    for i in range(len(risk) - 1):
        since += 1
        if i == 0 or uncertainty[order[i]] != uncertainty[order[i - 1]]:
            curve.append(np.mean(risk[order[i + 1 :]]))
            area += since / len(risk) * (curve[-1] + curve[-2]) / 2
            since = 0
    return area + since / len(risk) * curve[-1]


def test_dice_of_the_ball_is_golden():
    item = ball(100)
    actual = [
        values.dice(prediction=item.prediction, reference=rater)
        for rater in item.raters
    ]
    assert actual == pytest.approx(BALL["dice_per_rater"], abs=1e-6)


def test_two_empty_masks_have_dice_zero():
    nothing = np.zeros((4, 4), dtype=int)
    assert values.dice(prediction=nothing, reference=nothing) == 0.0


def test_an_ignored_pixel_stays_a_false_positive_in_dice():
    item = tiles(7)
    rater, predicted = item.raters[0], item.prediction
    correct, valid = np.sum(rater == predicted), np.sum(rater != 255)
    actual = values.dice(prediction=predicted, reference=rater, classes=6, ignore=255)
    assert actual == 2 * correct / (rater.size + valid)
    column = np.where(rater == 255, 6, rater)
    assert actual == pytest.approx(pooled_dice([(predicted, column)], 7, drop=6))


def test_dice_of_only_ignored_pixels_is_zero():
    assert (
        values.dice(prediction=[0, 1], reference=[255, 255], classes=3, ignore=255)
        == 0.0
    )


def test_ged_of_the_ball_is_golden():
    item = ball(100)
    golden = BALL["ged_pooled_float64"]["ged"]
    assert values.ged(draws=item.draws, raters=item.raters) == pytest.approx(
        golden, abs=1e-10
    )
    reference = BALL["ged_reference_pooled"]
    best = values.max_dice(draws=item.draws, raters=item.raters)
    expected = [reference[f"max dice rater {rater}"] for rater in range(4)]
    assert best.of_raters == pytest.approx(expected, abs=1e-6)
    assert best.of_draws == pytest.approx(reference["max dice pred"], abs=1e-6)


def test_ged_of_one_draw_of_the_ball_is_golden():
    item = ball(100)
    golden = BALL["ged_single_prediction_softmax"]
    one = item.draws[:1]
    assert values.ged(draws=one, raters=item.raters) == pytest.approx(
        golden["ged"], abs=1e-6
    )
    best = values.max_dice(draws=one, raters=item.raters)
    assert best.of_draws == pytest.approx(golden["max dice pred"], abs=1e-6)


def test_ged_of_the_tiles_is_that_of_the_specification():
    item = tiles(7)
    actual = values.ged(draws=item.draws, raters=item.raters, classes=6, ignore=255)
    assert actual == pytest.approx(0.10007, abs=5e-6)
    columns = np.where(item.raters == 255, 6, item.raters)
    assert actual == pytest.approx(slow_ged(item.draws, columns, 7, drop=6), abs=1e-12)


def test_ged_pools_pairs_also_where_raters_ignore_different_pixels():
    rng = np.random.default_rng(0)
    draws, raters = rng.integers(0, 4, (3, 30)), rng.integers(0, 4, (4, 30))
    raters[rng.random((4, 30)) < 0.2] = 255
    columns = np.where(raters == 255, 4, raters)
    actual = values.ged(draws=draws, raters=raters, classes=4, ignore=255)
    assert actual == pytest.approx(slow_ged(draws, columns, 5, drop=4), abs=1e-12)


def test_ged_of_two_classes_pools_the_foreground():
    rng = np.random.default_rng(1)
    draws, raters = rng.integers(0, 2, (3, 5, 6)), rng.integers(0, 2, (2, 5, 6))
    raters[0] = 0
    actual = values.ged(draws=draws, raters=raters)
    assert actual == pytest.approx(slow_ged(draws, raters, 2, drop=0), abs=1e-12)


def test_ged_is_zero_where_nobody_segments_anything():
    nothing = np.zeros((3, 4, 4), dtype=int)
    assert values.ged(draws=nothing, raters=nothing) == 0.0


def test_ncc_of_the_ball_is_golden():
    item = ball(100)
    reference = rater_variance(item.raters)
    for name, golden in BALL["ncc_float64_maps"].items():
        assert values.ncc(maps_of(item)[name], reference) == pytest.approx(
            golden, abs=1e-9
        )
    itself = values.ncc(reference, reference)
    assert itself == pytest.approx(BALL["ncc_self"], abs=1e-10)
    assert np.isnan(values.ncc(reference * 0, reference))


def test_platt_and_ace_of_the_balls_are_golden():
    items = {seed: ball(seed) for seed in (100, 101, 102)}
    votes = {k: rater_agreement(i.prediction, i.raters) for k, i in items.items()}
    for name in MEASURES:
        fit = values.fit_platt(
            uncertainty=(maps_of(items[seed])[name] for seed in (101, 102)),
            correct=(votes[seed].correct for seed in (101, 102)),
            total=(votes[seed].total for seed in (101, 102)),
        )
        golden = BALL["platt_params_mean_over_val_images"][name]
        assert (fit.a, fit.b) == pytest.approx((golden["a"], golden["b"]), rel=1e-6)
        confidence = fit.confidence(maps_of(items[100])[name])
        actual = values.ace(
            confidence=confidence, correct=votes[100].correct, total=votes[100].total
        )
        assert actual == pytest.approx(BALL["ace_platt"][name], rel=1e-6)


def test_platt_is_the_mean_of_one_fit_per_item():
    rng = np.random.default_rng(2)
    uncertainty = rng.random((3, 100))
    correct = rng.random((3, 100)) > uncertainty
    fits = [
        fit_platt(uncertainty=u, correct=c)
        for u, c in zip(uncertainty, correct, strict=True)
    ]
    actual = values.fit_platt(uncertainty=uncertainty, correct=correct)
    assert actual.a == pytest.approx(np.mean([fit.a for fit in fits]))
    assert actual.b == pytest.approx(np.mean([fit.b for fit in fits]))
    with pytest.raises(ValueError, match="at least one item"):
        values.fit_platt(uncertainty=[], correct=[])


def test_an_item_that_is_all_right_is_scored_as_all_wrong():
    confidence = np.full((4, 4), 0.97)
    for right in (np.ones((4, 4)), np.zeros((4, 4))):
        assert values.ace(confidence=confidence, correct=right) == pytest.approx(
            BALL["ace_all_correct_conf_0.97"]
        )
    three = np.full((4, 4), 3)
    assert values.ace(
        confidence=confidence, correct=three, total=three
    ) == pytest.approx(0.97)
    mostly = np.where(np.arange(16).reshape(4, 4) > 0, 1, 0)
    assert values.ace(confidence=confidence, correct=mostly) == pytest.approx(
        0.97 - 15 / 16
    )


def test_the_threshold_weighs_every_label_map_alike():
    maps = [np.linspace(0, 1, 101)]
    stacks = [np.zeros((3, 4), dtype=int), np.ones((1, 4), dtype=int)]
    assert values.threshold_from_validation(maps, stacks) == pytest.approx(0.75)
    with pytest.raises(ValueError, match="at least one item"):
        values.threshold_from_validation(maps, [])


@pytest.mark.parametrize(
    ("name", "uncertainty"),
    [
        ("no_ties", UNCERTAINTY),
        ("perfect_ranking", RISK),
        ("worst_ranking", -RISK),
    ],
)
def test_risk_coverage_areas_are_golden(name, uncertainty):
    golden = RANKING[name]
    assert values.aurc(risk=RISK, uncertainty=uncertainty) == pytest.approx(
        golden["aurc"], abs=1e-10
    )
    assert values.eaurc(risk=RISK, uncertainty=uncertainty) == pytest.approx(
        golden["eaurc"], abs=1e-10
    )


def test_a_perfect_ranking_has_the_negative_excess_of_the_specification():
    expected = -(RISK.min() + RISK.mean()) / (2 * len(RISK))
    assert values.eaurc(risk=RISK, uncertainty=RISK) == pytest.approx(
        expected, abs=1e-12
    )
    assert values.eaurc(risk=[0.3], uncertainty=[1.0]) == -0.3


def test_tied_items_give_the_value_the_specification_quotes_for_the_pinned_numpy():
    tied = np.round(2 * UNCERTAINTY) / 2
    assert values.aurc(risk=RISK, uncertainty=tied) == pytest.approx(0.48323, abs=5e-6)


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("levels", [1, 2, 4, 50])
def test_ties_are_cut_after_their_first_item(seed, levels):
    rng = np.random.default_rng(seed)
    risk, uncertainty = rng.random(20), rng.integers(0, levels, 20).astype(float)
    expected = slow_aurc(risk, uncertainty)
    assert values.aurc(risk=risk, uncertainty=uncertainty) == pytest.approx(
        expected, abs=1e-12
    )


def test_an_unstable_sort_changes_nothing_without_ties():
    assert values.aurc(
        risk=RISK, uncertainty=UNCERTAINTY, sort="unstable"
    ) == pytest.approx(RANKING["no_ties"]["aurc"], abs=1e-10)
    with pytest.raises(ValueError, match="'stable' or 'unstable'"):
        values.aurc(risk=RISK, uncertainty=UNCERTAINTY, sort="random")
