"""The shifts that deceive: what they change in a photograph, and what they keep."""

import cv2
import numpy as np
import pytest

from qualms.datasets.fundus import Patient, fundus, fundus_photograph
from qualms.datasets.fundus._camera import HOSPITAL, INDIA, TREATED, UNITED_STATES
from qualms.datasets.fundus._clinic import Clinic, eye_readings, eyes, target_probs
from qualms.datasets.fundus._disease import USUAL, Disease, Population, disease
from qualms.datasets.fundus._lesions import findings, lesion_blobs
from qualms.scores import auroc

FEW = {"train": 6, "val": 4, "val/shifted": 4, "test": 6, "test/shifted": 8}
RED = ("microaneurysms", "haemorrhages")


def loaded(recipe, split):
    return recipe.load(next(unit for unit in recipe.units if unit.split == split))


def signs(severity, population, n=400):
    """What n eyes of this severity show."""
    return [
        disease(np.random.default_rng([3, i]), severity, population) for i in range(n)
    ]


def red_lesions(shown):
    lesions = shown.findings(np.random.default_rng(1))
    return sum(getattr(lesions, name) for name in RED)


def taken(number, profile, severity=0.0):
    return fundus_photograph(
        Patient(1, 0, number),
        left=False,
        severity=severity,
        quality=0.97,
        profile=profile,
        size=128,
    )


def spots(image):
    """Count small dark spots in the middle; vessels leave some too."""
    middle = image[24:-24, 24:-24, 1]
    dark = cv2.morphologyEx(middle, cv2.MORPH_BLACKHAT, np.ones((7, 7), np.uint8))
    found = cv2.connectedComponentsWithStats((dark > 25).astype(np.uint8))[2][1:]
    width, height, pixels = found[:, 2], found[:, 3], found[:, 4]
    return int(np.sum((width <= 6) & (height <= 6) & (pixels >= 3)))


@pytest.mark.parametrize("shift", ["country", "severity"])
def test_it_changes_shifted_photographs_alone(shift):
    mild = fundus(shift=shift, size=48, sizes=FEW)
    deceptive = fundus(shift=shift, size=48, sizes=FEW, deceptive=True)
    for split in FEW:
        one, other = loaded(mild, split), loaded(deceptive, split)
        same = np.array_equal(one.image, other.image)
        assert same == (not split.endswith("/shifted")), split


def test_sets_that_do_not_deceive_are_described_as_before():
    options = fundus(sizes=FEW).options
    assert "deceptive" not in options
    assert fundus(sizes=FEW, deceptive=False).options == options
    assert fundus(sizes=FEW, deceptive=True).options == options | {"deceptive": True}


@pytest.mark.parametrize("deceptive", ["yes", 1, None])
def test_deceptive_is_true_or_false(deceptive):
    with pytest.raises(ValueError, match="deceptive must be true or false, got"):
        fundus(deceptive=deceptive)


def test_usual_eyes_show_their_severity():
    for severity in (0.0, 1.5, 2.5, 5.0):
        assert set(signs(severity, USUAL)) == {Disease(severity)}
    rng = np.random.default_rng
    for profile in (UNITED_STATES, INDIA):
        assert profile.disease == USUAL
    shown = Disease(3.2).findings(rng(2))
    assert shown == findings(rng(2), 3.2)
    assert shown.scars == 0


def test_some_healthy_eyes_abroad_show_the_lesions_of_another_disease():
    shown = signs(0.0, HOSPITAL.disease, 2_000)
    ill = np.array([signs.severity > 0 for signs in shown])
    share = HOSPITAL.disease.mimicked
    assert abs(ill.mean() - share) < 4 * np.sqrt(share * (1 - share) / len(ill))
    usual = np.mean([red_lesions(Disease(2.5)) for _ in range(20)])
    assert all(red_lesions(signs) > usual for signs in shown if signs.severity)


def test_another_disease_never_hides_diabetes_and_does_not_count_for_the_grade():
    mimicked = Population(mimicked=1.0)
    for severity in (0.0, 2.0, 4.9):
        assert all(s.severity >= severity for s in signs(severity, mimicked))
    mild, deceptive = Clinic("country", 2, 8), Clinic("country", 2, 8, True)
    numbers, grades = eyes(deceptive, "test/shifted", 20_000)
    read = eye_readings(deceptive, "test/shifted", numbers)
    prob = target_probs(deceptive, "test/shifted", read)[:, 1]
    target = np.array(grades) >= 2
    for low in np.arange(0, 1, 0.1):
        chosen = (low <= prob) & (prob < low + 0.1)
        if chosen.sum() > 100:
            error = np.sqrt((prob * (1 - prob))[chosen].sum()) / chosen.sum()
            gap = abs(target[chosen].mean() - prob[chosen].mean())
            assert gap < 4 * error + 1e-4
    _, usual = eyes(mild, "test/shifted", 20_000)
    shares = [np.bincount(g, minlength=5) / len(g) for g in (grades, usual)]
    np.testing.assert_allclose(*shares, atol=0.02)


def test_graders_agree_more_about_the_good_photographs_of_the_hospital():
    found = {}
    for deceptive in (False, True):
        for split in ("test", "test/shifted"):
            clinic = Clinic("country", 2, 4, deceptive)
            numbers, grades = eyes(clinic, split, 8_000)
            read = eye_readings(clinic, split, numbers)
            prob = target_probs(clinic, split, read)[:, 1]
            found[deceptive, split] = auroc(score=prob, positive=np.array(grades) >= 2)
    assert found[True, "test/shifted"] > found[True, "test"]
    assert found[False, "test/shifted"] < found[False, "test"]


def test_lesions_of_referred_eyes_abroad_are_ahead_of_their_grade():
    plain = HOSPITAL.disease._replace(mimicked=0.0, treated=0.0)
    for severity in (0.0, 1.0, 1.99):
        assert set(signs(severity, plain)) == {Disease(severity)}
    for severity in (2.0, 2.9, 4.9):
        ahead = signs(severity, plain, 5)
        assert all(severity < s.severity <= 5.0 for s in ahead)


def test_dust_abroad_puts_small_dark_spots_on_healthy_eyes():
    clean = HOSPITAL._replace(dust=(0, 0), disease=USUAL)
    dusty = HOSPITAL._replace(disease=USUAL)
    home, away, clear, mild = (
        sum(spots(taken(n, profile, severity)) for n in range(20))
        for profile, severity in (
            (UNITED_STATES, 0.0),
            (dusty, 0.0),
            (clean, 0.0),
            (UNITED_STATES, 1.7),
        )
    )
    assert away > 1.3 * max(home, clear)
    assert mild > 1.3 * home


def test_treated_eyes_show_scars_and_few_of_the_lesions():
    treated = Population(treated=1.0, left=(0.0, 0.2))
    for severity in (2.5, 3.5, 4.5):
        before = np.mean([red_lesions(Disease(severity)) for _ in range(20)])
        shown = signs(severity, treated, 50)
        assert np.mean([red_lesions(s) for s in shown]) < 0.25 * before
        assert all(s.findings(np.random.default_rng(0)).scars > 0 for s in shown)
    untouched = signs(3.5, TREATED.disease, 2_000)
    share = np.mean([s.left is not None for s in untouched])
    assert abs(share - TREATED.disease.treated) < 0.05
    healthy = signs(1.5, treated, 20)
    assert all(s.left is None for s in healthy)


def test_new_vessels_stay_after_treatment():
    before = findings(np.random.default_rng(5), 4.8)
    after = Disease(4.8, 0.0).findings(np.random.default_rng(5))
    assert after.new_vessels == before.new_vessels > 0
    assert sum(getattr(after, name) for name in RED) == after.beading == 0


def test_scars_lie_outside_the_arcades_in_all_quadrants():
    lesions = Disease(3.0, 0.0).findings(np.random.default_rng(5))
    shapes = lesion_blobs(np.random.default_rng(1), lesions, (0.66, -0.05))
    assert len(shapes) == lesions.scars
    away = np.hypot(shapes[:, 0], shapes[:, 1])
    assert away.min() > 0.45
    quadrants = {(x > 0, y > 0) for x, y in shapes[:, :2]}
    assert len(quadrants) == 4


def test_treated_eyes_look_more_like_healthy_ones():
    treated = TREATED._replace(disease=Population(treated=1.0))
    healthy = np.stack([taken(n, UNITED_STATES) for n in range(12)]).astype(int)

    def change(profile):
        ill = [taken(n, profile, 3.5).astype(int) for n in range(12)]
        return np.abs(np.stack(ill) - healthy).mean()

    assert change(treated) < 0.6 * change(UNITED_STATES)
