"""The simulated chairs: the paper's counts and ranges, and exact pictures."""

from collections import Counter

import numpy as np
import pytest

from qualms.datasets import prepare
from qualms.datasets.chairs import chairs
from qualms.datasets.chairs._renderer import render
from qualms.datasets.chairs._shapes import chair

FEW = {"train": 40, "val": 10, "test": 60}


def planned(recipe, split):
    """(n, 2) chair and tenth of a degree of every item of a split, in order."""
    units = [unit for unit in recipe.units if unit.split == split]
    return np.concatenate([np.array(unit.args).T for unit in units])


@pytest.mark.parametrize(
    ("variant", "sizes"),
    [
        ("plain", {"train": 17_640, "val": 4_410, "test": 11_225}),
        ("tails", {"train": 11_760, "val": 2_940, "test": 11_225}),
        ("gap", {"train": 11_760, "val": 2_940, "test": 11_225}),
    ],
)
def test_sizes_are_the_papers_and_no_picture_occurs_twice(variant, sizes):
    recipe = chairs(variant=variant)
    rows = {split: planned(recipe, split) for split in sizes}
    assert {split: len(of) for split, of in rows.items()} == sizes
    assert recipe.counts == sizes
    every = np.concatenate(list(rows.values()))
    assert len(np.unique(every, axis=0)) == sum(sizes.values())
    assert set(every[:, 0]) == set(range(49))


def test_odd_tenths_train_and_even_tenths_test_with_25_chairs_each():
    recipe = chairs()
    trained = np.concatenate([planned(recipe, "train"), planned(recipe, "val")])[:, 1]
    assert Counter(trained.tolist()) == dict.fromkeys(range(1, 900, 2), 49)
    tested = planned(recipe, "test")[:, 1]
    assert Counter(tested.tolist()) == dict.fromkeys(range(2, 899, 2), 25)


def test_variants_leave_out_their_ranges_strictly():
    for variant, kept in (
        ("tails", {*range(151, 750, 2)}),
        ("gap", {*range(1, 300, 2), *range(601, 900, 2)}),
    ):
        recipe = chairs(variant=variant)
        for split in ("train", "val"):
            assert set(planned(recipe, split)[:, 1]) == kept
        plain = planned(chairs(), "test")
        np.testing.assert_array_equal(planned(recipe, "test"), plain)


def test_graded_subsets_have_the_papers_sizes():
    recipe = chairs(variant="gap")
    for dtype in (np.float32, np.float64):
        yaw = (planned(recipe, "test")[:, 1] / 10).astype(np.float32).astype(dtype)
        kept = {name: len(x.keep(yaw)) for name, x in recipe.subsets.items()}
        assert kept == {"test/v1": 8_400, "test/v2": 9_350, "test/v3": 10_300}
    assert chairs().subsets == chairs(variant="tails").subsets == {}


@pytest.mark.parametrize("variant", ["plain", "tails", "gap"])
def test_a_smaller_set_is_the_beginning_of_the_full_one(variant):
    small, full = chairs(variant=variant, sizes=FEW), chairs(variant=variant)
    for split, size in FEW.items():
        np.testing.assert_array_equal(
            planned(small, split), planned(full, split)[:size]
        )


def test_the_prepared_set_holds_the_pictures_and_marks_shifted_items(tmp_path):
    recipe = chairs(variant="gap", sizes=FEW, seed=2)
    dataset = prepare(recipe, tmp_path, workers=1).dataset
    test = dataset.splits["test"]
    assert test.image.shape == (60, 64, 64, 3)
    assert test.target.dtype == np.float32
    inside = (test.target < 30) | (test.target > 60)
    np.testing.assert_array_equal(test.extra["shifted"], ~inside)
    assert 0 < test.extra["shifted"].sum() < 60
    for row in (0, 59):
        number, tenth = map(int, test.item[row].split("-"))
        again = render(*chair(number, seed=2), yaw=tenth / 10)
        np.testing.assert_array_equal(test.image[row], again)
        assert test.target[row] == np.float32(tenth / 10)


def traced(low, high, colour, yaw):
    """The same picture by following every ray through every box (slab method)."""
    angle, tilt = np.deg2rad([yaw, 20.0])
    eye = 2.6 * np.array(
        [
            np.sin(angle) * np.cos(tilt),
            -np.cos(angle) * np.cos(tilt),
            np.sin(tilt),
        ]
    )
    forward = -eye / 2.6
    right = np.cross(forward, [0.0, 0.0, 1.0])
    right /= np.linalg.norm(right)
    up = np.cross(right, forward)
    place = ((np.arange(128) + 0.5) / 64 - 1) * np.tan(np.deg2rad(12.0))
    ray = forward + place[None, :, None] * right - place[:, None, None] * up
    light = np.array([0.45, -0.55, 0.70])
    light /= np.linalg.norm(light)
    nearest, seen = np.full((128, 128), np.inf), np.ones((128, 128, 3))
    for box in range(len(low)):
        ends = np.stack([(low[box] - eye) / ray, (high[box] - eye) / ray])
        entry, leave = ends.min(axis=0), ends.max(axis=0)
        axis = entry.argmax(axis=-1)
        near = entry.max(axis=-1)
        hit = (near <= leave.min(axis=-1)) & (near < nearest)
        side = -np.sign(np.take_along_axis(ray, axis[..., None], -1)[..., 0])
        shade = 0.45 + 0.55 * np.maximum(0.0, side * light[axis])
        seen[hit] = shade[hit][:, None] * colour[box]
        nearest[hit] = near[hit]
    return np.rint(seen.reshape(64, 2, 64, 2, 3).mean(axis=(1, 3)) * 255)


@pytest.mark.parametrize("number", range(0, 49, 4))
def test_pictures_equal_those_of_an_exact_ray_tracer(number):
    parts = chair(number, seed=0)
    for yaw in (0.1, 17.3, 45.0, 66.6, 89.9):
        np.testing.assert_array_equal(render(*parts, yaw), traced(*parts, yaw))


def test_a_tenth_of_a_degree_shows_and_a_degree_shows_more():
    change = {0.1: [], 1.0: []}
    for number in range(0, 49, 6):
        parts = chair(number, seed=0)
        for yaw in (5.0, 33.3, 61.7, 85.0):
            here = render(*parts, yaw).astype(float)
            for step, changes in change.items():
                changes.append(np.abs(render(*parts, yaw + step) - here).mean())
    assert min(change[0.1]) > 0
    assert 0.02 < np.mean(change[0.1]) < 0.4
    assert 0.5 < np.mean(change[1.0]) < 3
    assert np.mean(change[1.0]) > 5 * np.mean(change[0.1])


def test_chairs_differ_and_stay_within_the_recipes_measures():
    collection = [chair(number, seed=0) for number in range(49)]
    seats = np.array([parts.high[0] - parts.low[0] for parts in collection])
    assert np.all((seats >= [0.38, 0.38, 0.03]) & (seats <= [0.55, 0.52, 0.09]))
    heights = [x.high[:, 2].max() - x.low[:, 2].min() for x in collection]
    assert 0.75 <= min(heights) < max(heights) <= 1.12
    assert all(np.isclose(x.high[:, 2].max(), -x.low[:, 2].min()) for x in collection)
    views = {render(*parts, 40.0).tobytes() for parts in collection}
    assert len(views) == 49
    assert len({len(parts.low) for parts in collection}) >= 6


def test_boxes_of_a_chair_never_overlap():
    for number in range(49):
        low, high, _ = chair(number, seed=0)
        shared = np.minimum(high[:, None], high) - np.maximum(low[:, None], low)
        overlap = np.all(shared > 1e-12, axis=-1)
        assert overlap.sum() == len(low)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"variant": "middle"}, "variant must be one of plain, tails, gap"),
        ({"sizes": {"test": 0}}, r"size of 'test' must lie in 1..11225, got 0"),
        ({"variant": "gap", "sizes": {"train": 12_000}}, r"must lie in 1..11760"),
        ({"seed": -1}, "seed must be at least 0"),
    ],
)
def test_wrong_options_are_refused_with_a_sentence(options, message):
    with pytest.raises(ValueError, match=message):
        chairs(**options)
