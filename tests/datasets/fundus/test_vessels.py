"""Vessels of the simulated eyes: connected, tapering, away from the fovea."""

import numpy as np
import pytest

from qualms.datasets.fundus._brush import ARTERY, VEIN
from qualms.datasets.fundus._vessels import SEED, _branch, arcades, tangle

DISC = (0.66, -0.05)


def eyes(beading=0.0, n=20):
    return [arcades(np.random.default_rng(i), DISC, beading) for i in range(n)]


def test_every_vessel_starts_at_the_disc_or_at_another_vessel():
    for strokes in eyes():
        starts, ends = strokes[:, :2], strokes[:, 2:4]
        known = {tuple(end) for end in ends}
        first = [s for s in starts if tuple(s) not in known]
        assert 13 <= len(first) <= 16
        assert np.linalg.norm(np.array(first) - DISC, axis=1).max() < 0.06


def test_vessels_reach_all_around_but_not_the_fovea():
    for strokes in eyes():
        ends = strokes[:, 2:4]
        assert np.linalg.norm(ends, axis=1).min() >= 0.10
        quadrant = 2 * (ends[:, 0] > DISC[0]) + (ends[:, 1] > DISC[1])
        assert np.bincount(quadrant, minlength=4).min() >= 20
        assert ends[:, 0].min() < -0.6


def test_vessels_taper_and_arteries_are_thinner_than_veins():
    for strokes in eyes():
        assert np.all(strokes[:, 5] < strokes[:, 4] + 1e-12)
    every = np.concatenate(eyes())
    widest = {
        layer: np.mean([s[s[:, 7] == layer, 4].max() for s in eyes()])
        for layer in (VEIN, ARTERY)
    }
    assert widest[ARTERY] / widest[VEIN] == pytest.approx(0.70, abs=0.06)
    assert set(every[:, 7]) == {VEIN, ARTERY}


def test_branches_keep_the_cube_of_the_width():
    rng = np.random.default_rng(3)
    for _ in range(100):
        vessel, child = rng.uniform(0.005, 0.03, (2, SEED))
        before = vessel[5]
        _branch(rng, vessel, child)
        assert vessel[5] ** 3 + child[5] ** 3 == pytest.approx(before**3)
        assert child[5] < vessel[5] < before
        assert 0.5 < abs(child[2] - vessel[2]) < 1.1


def test_beading_swells_veins_and_leaves_arteries_alone():
    for plain, beaded in zip(eyes(0.0, 5), eyes(1.0, 5), strict=True):
        for layer, changed in ((VEIN, True), (ARTERY, False)):
            before, after = (s[s[:, 7] == layer, 5] for s in (plain, beaded))
            assert (np.abs(after / before - 1).max() > 0.4) == changed


def test_new_vessels_wander_and_stay_near():
    strokes = tangle(np.random.default_rng(0), np.array([0.3, 0.4]), 0.15, 20)
    assert np.linalg.norm(strokes[:, 2:4] - [0.3, 0.4], axis=1).max() < 0.45
    assert strokes[:, 4].max() < 0.01
    step = strokes[:, 2:4] - strokes[:, :2]
    turn = np.abs(np.diff(np.unwrap(np.arctan2(step[:, 1], step[:, 0]))))
    assert np.median(turn) > 0.15
