"""The golden cases of VALUES through all that judging does, from files to numbers.

Files hold maps in float32, so numbers agree as far as the golden file says for that.
"""

import numpy as np
import pytest

from qualms import predictions, scores
from qualms.evaluate import ScoreOptions
from qualms.evaluate.segmented import (
    Reading,
    map_kind,
    measure_items,
    measured_maps,
    validate,
)
from qualms.scores.as_published import values as released
from scores.segmentation_items import GOLDEN, ball

BALL = GOLDEN["A_3d_binary"]
MEASURES = ("PE", "EE", "MI")
BARE = ScoreOptions(resamples=0, workers=2)


def file_of(seeds, method="mc_dropout", draws=5):
    items = [ball(seed) for seed in seeds]
    maps = []
    for item in items:
        statistics = scores.sufficient_statistics(item.probs[:draws])
        maps.append(predictions.Maps(**statistics._asdict(), raters=item.raters))
    return predictions.build({"maps": maps}, header={"method": method})


@pytest.fixture(scope="module")
def fitted():
    return validate([file_of((101, 102))], BARE, published=True)[0]


@pytest.fixture(scope="module")
def measured(fitted):
    reading = Reading(fitted=fitted, published=True)
    return measure_items(file_of((100,)), reading, BARE)


def test_the_balls_are_those_of_the_golden_file():
    item, golden = ball(100), BALL["input_checks"]
    assert item.probs[:, 1].sum() == pytest.approx(golden["probs_sum_fg"], rel=1e-9)
    actual = item.probs[4, 1, 0, 7, 15]
    assert actual == pytest.approx(golden["probs[4,1,0,7,15]"], rel=1e-9)
    counts = item.raters.reshape(4, -1).sum(axis=1).tolist()
    assert counts == golden["gt_voxels_per_rater"]


def test_overlap_is_golden_by_both_rules(measured):
    for theirs in (False, True):
        dice = measured.of("dice", published=theirs)
        assert dice == pytest.approx(BALL["dice_mean_over_raters"], abs=1e-6)
    ours = BALL["ged_paper_mean_over_pairs_own"]["ged"]
    assert measured.of("ged") == pytest.approx(ours, abs=1e-9)
    theirs = BALL["ged_pooled_float64"]["ged"]
    assert measured.of("ged", published=True) == pytest.approx(theirs, abs=1e-9)


def test_overlap_of_one_draw_is_golden():
    measurements = measure_items(
        file_of((100,), "map", 1), Reading(published=True), BARE
    )
    golden = BALL["ged_single_prediction_softmax"]["ged"]
    assert measurements.of("ged", published=True) == pytest.approx(golden, abs=1e-6)
    assert measurements.measures == ("MSR",)
    summed = BALL["one_minus_MSR_sample0"]["sum"]
    assert measurements.of("uncertainty", "MSR", "image") == pytest.approx(
        summed, rel=1e-5
    )


@pytest.mark.parametrize("measure", MEASURES)
def test_ambiguity_is_golden_by_both_rules(measured, measure):
    ours = BALL["ncc_pearson_population_float64_maps"][measure]
    assert measured.of("ncc", measure) == pytest.approx(ours, abs=1e-6)
    theirs = BALL["ncc_reference"][measure]
    actual = measured.of("ncc", measure, published=True)
    assert actual == pytest.approx(theirs, abs=1e-6)


@pytest.mark.parametrize("measure", MEASURES)
def test_thresholds_and_aggregations_are_golden(measured, fitted, measure):
    golden = BALL["threshold"][measure]
    assert fitted.threshold[measure] == pytest.approx(golden["threshold"], rel=1e-5)
    expected = {
        "image": BALL["image_sum"][measure],
        "patch": BALL["patch10"][measure]["max_score"],
        "threshold": golden["test_score_mean_above"],
    }
    for aggregation, value in expected.items():
        actual = measured.of("uncertainty", measure, aggregation)
        assert actual == pytest.approx(value, rel=1e-5)
    mean = measured.of("uncertainty", measure, "patch") / 1000
    assert mean == pytest.approx(BALL["patch10_mean"][measure], rel=1e-5)


@pytest.mark.parametrize("measure", MEASURES)
def test_calibration_is_golden_by_the_released_rule(measured, fitted, measure):
    golden = BALL["platt_params_mean_over_val_images"][measure]
    fit = fitted.mean_platt[measure]
    assert (fit.a, fit.b) == pytest.approx((golden["a"], golden["b"]), rel=1e-3)
    actual = measured.of("ace", measure, published=True)
    assert actual == pytest.approx(BALL["ace_platt"][measure], rel=1e-2)


def test_roles_of_ssn_are_swapped_as_in_the_golden_file():
    assert all(BALL["ssn_swaps_roles"].values())
    read = file_of((100,), "ssn")
    maps = measured_maps(map_kind(read), read.maps[0])
    for kind, measure in (("aleatoric", "MI"), ("epistemic", "EE")):
        assert scores.uncertainty_type(measure, "labels") == kind
        total = BALL["uncertainty_float64_recomputed"][measure]["sum"]
        assert maps[measure].sum(dtype=float) == pytest.approx(total, rel=1e-5)


def test_the_accuracy_and_share_of_calibration_bins_are_golden():
    item, golden = ball(100), BALL["ace_no_platt_bins"]
    confidence = item.probs.mean(axis=0).max(axis=0)
    agreed = scores.rater_agreement(item.prediction, item.raters)
    which = np.digitize(confidence, np.linspace(0, 1 + 1e-8, 21)) - 1
    gaps, shares = [], []
    for chosen in (which == k for k in np.unique(which)):
        right = agreed.correct[chosen].sum() / agreed.total[chosen].sum()
        gaps.append(abs(right - confidence[chosen].mean()))
        shares.append(chosen.mean())
    assert len(gaps) == golden["n_nonempty"]
    assert gaps == pytest.approx(golden["abs_gap"], abs=1e-9)
    assert shares == pytest.approx(golden["bin_fraction"], abs=1e-9)
    wrong = scores.ace(confidence=np.full(4, 0.97), correct=np.zeros(4))
    assert wrong == pytest.approx(BALL["ace_all_wrong_conf_0.97"])
    actual = scores.ace(
        confidence=confidence, correct=agreed.correct, total=agreed.total
    )
    assert actual == pytest.approx(np.mean(gaps), abs=1e-12)


def test_the_risk_coverage_curve_is_golden():
    golden = GOLDEN["C_image_level"]
    risk, conf = (np.array(golden["inputs"][name]) for name in ("risk", "conf"))
    curve = scores.risk_coverage_curve(risk=risk, uncertainty=-conf)
    drawn = golden["curve_no_ties"]
    assert curve.coverage[::-1] == pytest.approx(drawn["coverages"], abs=1e-10)
    assert curve.risk[::-1] == pytest.approx(drawn["selective_risks"], abs=1e-10)
    best = golden["aurc_opt_used_by_reference_mean_of_selective_risks"]
    assert scores.aurc(risk=risk, uncertainty=risk) == pytest.approx(best, abs=1e-10)
    trapezoid = golden["no_ties"]["aurc"]
    assert scores.threshold_aurc(risk=risk, uncertainty=-conf) == pytest.approx(
        trapezoid, abs=1e-10
    )
    assert released.aurc(risk=risk, uncertainty=-conf) == pytest.approx(
        trapezoid, abs=1e-10
    )
