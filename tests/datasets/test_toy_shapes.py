"""The toy set: the paper's laws, and the statistics of its own generator."""

from itertools import islice

import numpy as np
import pytest
from scipy.ndimage import gaussian_filter, label
from sklearn.model_selection import KFold

from qualms.datasets import prepare
from qualms.datasets.toy_shapes import SERIES, toy_shapes
from qualms.datasets.toy_shapes._objects import (
    add_noise,
    bodies,
    draw_body,
    rater_masks,
)

KNOWN = {series.name: series for series in SERIES}
REFERENCE = {
    "1-train": (200, 10_084.5, 4.1144),
    "2-train": (200, 4_758.5, 2.4014),
    "3-train-blurred": (100, 19_042, 8.0379),
    "3-train-plain": (100, 6_273.5, None),
    "blurred": (21, 13_608, None),
}
"""Items, median of foreground voxels and mean foreground in percent, from running the
released generator with its own configurations."""
EXTREMES = {"grey": (761, 8_549), "cube": (3_602, 22_738), "border": (78, 7_985)}
"""Fewest and most foreground voxels of its seven items of each kind."""
FEW = {"train": 8, "val": 2, "test": 12}


def images(name, count, *, side=64, dims=3, seed=0):
    """The clean images of the beginning of a series."""
    drawing = bodies(KNOWN[name], side=side, dims=dims, seed=seed)
    return [draw_body(body, KNOWN[name], side=side) for body in islice(drawing, count)]


def items(recipe, split):
    """(series, number) of every item of a split, in order."""
    units = [unit for unit in recipe.units if unit.split == split]
    return [pair for unit in units for pair in zip(*unit.args, strict=True)]


@pytest.mark.parametrize("name", REFERENCE)
def test_foregrounds_are_as_large_as_those_of_the_released_generator(name):
    count, median, percent = REFERENCE[name]
    # Raters mark a voxel even where blur left nothing.
    result = [max(1, np.count_nonzero(x >= 0.1)) for x in images(name, count)]
    assert np.median(result) == pytest.approx(median, rel=0.02)
    if percent is not None:
        assert np.mean(result) / 64**3 * 100 == pytest.approx(percent, rel=0.02)
    if name == "3-train-blurred":
        assert sum(n <= 100 for n in result) == 5


@pytest.mark.parametrize("name", EXTREMES)
def test_shifted_objects_are_those_of_the_released_generator(name):
    result = [np.count_nonzero(image >= 0.1) for image in images(name, 7)]
    smallest, largest = EXTREMES[name]
    assert min(result) == pytest.approx(smallest, abs=25)
    assert max(result) == pytest.approx(largest, rel=0.06)


def test_spheres_have_the_volumes_of_the_mesh():
    result = {int(x.sum()) for x in images("2-train", 200)}
    assert min(result) == pytest.approx(761, rel=0.01)
    assert max(result) == pytest.approx(16_029, rel=0.01)


@pytest.mark.parametrize("dims", [2, 3])
def test_the_blur_is_a_gaussian_filter_with_mirrored_borders(dims):
    (body,) = islice(bodies(KNOWN["blurred"], side=32, dims=dims, seed=3), 1)
    sharp = draw_body(body, KNOWN["plain"], side=32)
    blurred = draw_body(body, KNOWN["blurred"], side=32)
    # Half the side, so half the paper's sigma of 8.
    np.testing.assert_allclose(blurred, gaussian_filter(sharp, 4), atol=1e-12)


@pytest.mark.parametrize("name", ["1-train", "blurred"])
def test_raters_are_nested_and_mark_fixed_shares(name):
    for image in images(name, 4):
        masks = rater_masks(image, 3)
        assert (np.diff(masks.astype(int), axis=0) >= 0).all()
        volume = masks.sum(axis=(1, 2, 3), dtype=int)
        if volume[-1] > 500:
            shares = volume / volume[-1]
            np.testing.assert_allclose(shares, [0.1, 0.55, 1], atol=0.01)
            assert volume[-1] == np.count_nonzero(image >= 0.1)


@pytest.mark.parametrize("name", ["2-train", "grey", "cube", "border"])
def test_raters_of_sharp_objects_agree(name):
    for image in images(name, 3, side=32):
        masks = rater_masks(image, 3)
        assert (masks == rater_masks(image, 1)).all()


def test_what_blur_has_swallowed_keeps_its_brightest_place():
    faint = np.full((16, 16), 0.01)
    faint[5, 6] = 0.09
    assert rater_masks(faint, 1).sum() == 0
    assert [tuple(np.argwhere(mask)[0]) for mask in rater_masks(faint, 3)] == [
        (5, 6)
    ] * 3
    assert rater_masks(faint, 3).sum() == 3


def test_objects_lie_inside_unless_the_border_cuts_them():
    def touches(image):
        edges = [image.take((0, -1), axis) for axis in range(image.ndim)]
        return any(edge.any() for edge in edges)

    for dims in (2, 3):
        full = bodies(KNOWN["plain"], side=64, dims=dims, seed=1)
        for body in islice(full, 50):
            assert 12 <= body.size <= 32
            assert all(0 <= at <= 64 - body.size for at in body.offset)
        cut = [touches(image) for image in images("border", 60, dims=dims)]
        assert np.mean(cut) > 0.9


def test_the_border_cuts_every_side_of_the_first_two_axes_and_one_of_the_third():
    sides = set()
    for image in images("border", 80, side=32):
        for axis in range(3):
            for end in (0, -1):
                if image.take(end, axis).sum() > 20:
                    sides.add((axis, end))
    assert sides >= {(0, 0), (0, -1), (1, 0), (1, -1), (2, 0)}
    assert (2, -1) not in sides


def test_grey_objects_have_one_value_each_below_the_usual_one():
    levels = [image.max() for image in images("grey", 40, side=16, dims=2)]
    assert 0.5 <= min(levels) < 0.6 < 0.8 < max(levels) <= 0.9
    for image in images("grey", 3, side=16, dims=2):
        assert len(np.unique(image)) == 2


def test_noise_is_uniform_in_half_of_the_background_and_nowhere_else():
    (image,) = images("2-train", 1)
    shown = add_noise(image, np.random.default_rng(1))
    inside = image >= 0.1
    np.testing.assert_array_equal(shown[inside], image[inside])
    assert np.mean(shown[~inside] == 0) == pytest.approx(0.5, abs=0.005)
    assert np.mean(shown[~inside]) == pytest.approx(0.25, abs=0.005)
    assert shown.max() <= 1


@pytest.mark.parametrize("scenario", ["1", "2", "3"])
def test_train_and_val_are_the_first_of_five_folds(scenario):
    recipe = toy_shapes(scenario=scenario)
    folds = KFold(5, shuffle=True, random_state=123).split(np.arange(200))
    train, val = next(iter(folds))
    names = ["3-train-blurred"] * 100 + ["3-train-plain"] * 100
    every = [
        (names[row], row % 100) if scenario == "3" else (f"{scenario}-train", row)
        for row in range(200)
    ]
    assert items(recipe, "train") == [every[row] for row in train]
    assert items(recipe, "val") == [every[row] for row in val]


def test_test_sets_have_the_papers_kinds():
    def kinds(scenario, split, **sizes):
        recipe = toy_shapes(scenario=scenario, sizes=sizes or None)
        series = [name for name, _ in items(recipe, split)]
        return {name: series.count(name) for name in dict.fromkeys(series)}

    shifted = {"grey": 7, "cube": 7, "border": 7}
    assert kinds("1", "test") == {"1-test": 20}
    assert kinds("2", "test") == shifted | {"plain": 21}
    assert kinds("3", "test/3a") == shifted | {"plain": 21}
    assert kinds("3", "test/3b") == shifted | {"plain": 21, "blurred": 21}
    larger = {"grey": 100, "cube": 100, "border": 100}
    assert kinds("2", "test", test=600) == larger | {"plain": 300}


@pytest.mark.parametrize("dims", [2, 3])
def test_the_prepared_set_has_raters_groups_and_marks(dims, tmp_path):
    recipe = toy_shapes(scenario="2", dims=dims, side=16, sizes=FEW)
    dataset = prepare(recipe, tmp_path, workers=1).dataset
    test, space = dataset.splits["test"], (16,) * dims
    assert test.image.shape == (12, *space, 1)
    assert test.image.dtype == np.float32
    assert test.target.shape == (12, 1, *space)
    assert test.target.dtype == np.uint8
    assert dataset.task.space == dims
    assert test.extra["group"].tolist() == [
        *("grey", "grey", "cube", "cube", "border", "border"),
        *["plain"] * 6,
    ]
    assert test.extra["shifted"].tolist() == [True] * 6 + [False] * 6
    assert not dataset.splits["train"].extra["shifted"].any()
    # The noise lies where no object is.
    levels = test.image[test.target[:, 0] == 1]
    assert levels.min() >= 0.5


def test_scenario_3_stores_common_items_twice_under_one_name(tmp_path):
    sizes = {"train": 8, "val": 2, "test/3a": 6, "test/3b": 9}
    recipe = toy_shapes(scenario="3", dims=2, side=16, sizes=sizes)
    splits = prepare(recipe, tmp_path, workers=1).dataset.splits
    first, second = splits["test/3a"], splits["test/3b"]
    assert first.target.shape == (6, 3, 16, 16)
    assert set(first.item) < set(second.item)
    common = np.isin(second.item, first.item)
    np.testing.assert_array_equal(first.image, second.image[common])
    assert second.extra["group"][~common].tolist() == ["blurred"] * 3
    assert not second.extra["shifted"][~common].any()
    groups = np.concatenate([splits[s].extra["group"] for s in ("train", "val")])
    assert sorted(groups) == ["blurred"] * 5 + ["plain"] * 5


def test_items_depend_on_the_seed_and_not_on_the_sizes(tmp_path):
    def split(folder, **options):
        recipe = toy_shapes(scenario="2", dims=2, side=16, **options)
        return prepare(recipe, tmp_path / folder, workers=1).dataset.splits["test"]

    few, more = split("few", sizes=FEW), split("more", sizes=FEW | {"test": 30})
    places = [more.item.tolist().index(item) for item in few.item]
    np.testing.assert_array_equal(more.image[places], few.image)
    other = split("other", sizes=FEW, seed=1)
    assert (other.image != few.image).any(axis=(1, 2, 3)).all()


def test_each_image_shows_one_object():
    for name in ("plain", "cube", "border", "1-train"):
        for image in images(name, 4, dims=2):
            assert label(image >= 0.1)[1] == 1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"scenario": "4"}, "scenario must be one of 1, 2, 3, got '4'"),
        ({"dims": 4}, "dims must be 2 or 3, got 4"),
        ({"side": 8}, "side must be at least 16, got 8"),
        ({"sizes": {"test/3a": 5}}, "sizes must name train, val, test, got 'test/3a'"),
        ({"sizes": {"test": 0}}, r"size of 'test' must lie in 1..10000, got 0"),
    ],
)
def test_wrong_options_are_refused_with_a_sentence(options, message):
    with pytest.raises(ValueError, match=message):
        toy_shapes(**options)
