"""The simulated cells: the paper's counts and ranges, and the recipe's grey levels."""

import numpy as np
import pytest

from qualms.datasets import prepare
from qualms.datasets.cells import cells
from qualms.datasets.cells._simulator import cell_picture

FULL = {"train": 10_000, "val": 2_000, "test": 10_000}
FEW = {"train": 40, "val": 10, "test": 60}
PERCENTILES = (5, 25, 50, 75, 90, 95, 99)


def planned(recipe, split):
    """(count, number) of every picture of a split, in order."""
    units = [unit for unit in recipe.units if unit.split == split]
    return [pair for unit in units for pair in zip(*unit.args, strict=True)]


def counts(recipe, split):
    return np.array([count for count, _ in planned(recipe, split)])


@pytest.mark.parametrize("variant", ["plain", "tails", "gap"])
def test_sizes_are_the_papers_and_no_picture_occurs_twice(variant):
    recipe = cells(variant=variant)
    every = [pair for split in FULL for pair in planned(recipe, split)]
    assert {split: len(planned(recipe, split)) for split in FULL} == FULL
    assert recipe.counts == FULL
    assert len(set(every)) == 22_000


def test_plain_cells_cover_all_counts_in_every_split():
    recipe = cells()
    for split in FULL:
        assert set(counts(recipe, split)) == set(range(1, 201))
    assert recipe.shifts == {}
    assert recipe.subsets == {}


def test_tails_train_on_the_middle_and_test_half_beyond_it():
    recipe = cells(variant="tails")
    for split in ("train", "val"):
        assert set(counts(recipe, split)) == set(range(51, 151))
    test = counts(recipe, "test")
    assert np.sum((test > 50) & (test <= 150)) == 5_000
    assert set(test) == set(range(1, 201))
    assert recipe.shifts["test"] == "count range"


def test_the_gap_is_closed_as_in_the_papers_text():
    recipe = cells(variant="gap")
    trained = {*range(1, 50), *range(151, 201)}
    for split in ("train", "val"):
        assert set(counts(recipe, split)) == trained
    test = counts(recipe, "test")
    assert np.isin(test, list(trained)).sum() == 5_000
    assert set(test) == set(range(1, 201))


def test_graded_subsets_have_the_papers_ranges():
    recipe = cells(variant="tails")
    test = counts(recipe, "test")
    result = {}
    for name, subset in recipe.subsets.items():
        kept = test[subset.keep(test)]
        result[name] = (kept.min(), kept.max(), len(np.unique(kept)))
        assert abs(len(kept) - 50 * len(np.unique(kept))) < 150
    assert result == {
        "test/v1": (38, 163, 126),
        "test/v2": (25, 176, 152),
        "test/v3": (13, 188, 176),
    }


@pytest.mark.parametrize("variant", ["plain", "tails", "gap"])
def test_a_smaller_set_is_the_beginning_of_the_full_one(variant):
    small, full = cells(variant=variant, sizes=FEW), cells(variant=variant)
    for split, size in FEW.items():
        assert planned(small, split) == planned(full, split)[:size]
    assert cells(variant=variant, sizes={"val": 5}).counts == FULL | {"val": 5}


def test_the_prepared_set_marks_shifted_items(tmp_path):
    dataset = prepare(cells(variant="tails", sizes=FEW), tmp_path, workers=1).dataset
    test = dataset.splits["test"]
    assert test.image.shape == (60, 64, 64, 1)
    assert test.image.dtype == np.uint8
    assert test.target.dtype == np.float32
    outside = (test.target < 51) | (test.target > 150)
    np.testing.assert_array_equal(test.extra["shifted"], outside)
    assert test.extra["shifted"].sum() == 30
    assert "shifted" not in dataset.splits["train"].extra
    assert [int(item[:3]) for item in test.item] == test.target.tolist()


def test_a_picture_depends_on_seed_count_and_number_alone(tmp_path):
    dataset = prepare(cells(sizes=FEW, seed=4), tmp_path / "few", workers=1).dataset
    train = dataset.splits["train"]
    for row in (0, 39):
        count, number = map(int, train.item[row].split("-"))
        again = cell_picture(count, index=number, seed=4)
        np.testing.assert_array_equal(train.image[row, :, :, 0], again)
        assert (again != cell_picture(count, index=number, seed=5)).any()
        assert (again != cell_picture(count, index=number + 1, seed=4)).any()


@pytest.mark.parametrize(
    ("count", "expected"),
    [(100, (32, 49, 60, 74, 134, 169, 221)), (198, (52, 79, 98, 145, 202, 230, 255))],
)
def test_grey_levels_are_those_of_the_recipe(count, expected):
    pictures = [cell_picture(count, index=i, seed=1) for i in range(60)]
    result = np.percentile(pictures, PERCENTILES)
    np.testing.assert_allclose(result, expected, atol=8)


def test_pictures_brighten_with_the_count():
    grey = {
        count: np.mean([cell_picture(count, index=i, seed=2) for i in range(25)])
        for count in (1, 5, 20, 40, 60, 80, 100, 120, 140, 160, 180, 196)
    }
    assert np.all(np.diff(list(grey.values())) > 0)
    assert grey[1] == pytest.approx(5, abs=2)
    assert grey[196] == pytest.approx(114, abs=5)


def test_the_background_gives_the_count_away_only_with_energy_illumination():
    def background(count, illumination):
        pictures = [
            cell_picture(count, index=i, seed=3, illumination=illumination)
            for i in range(25)
        ]
        return np.median(np.percentile(pictures, 30, axis=(1, 2)))

    assert background(100, "energy") / background(25, "energy") == pytest.approx(
        2, abs=0.3
    )
    assert background(100, "fixed") / background(25, "fixed") == pytest.approx(
        1, abs=0.1
    )
    assert background(100, "fixed") == pytest.approx(background(100, "energy"), rel=0.1)


def test_every_cell_adds_the_same_light_to_a_fixed_background():
    def light(count):
        return np.mean(
            [
                cell_picture(count, index=i, seed=6, illumination="fixed")
                for i in range(80)
            ]
        )

    first, second, third = light(1), light(11), light(21)
    assert second - first == pytest.approx(third - second, rel=0.15)
    # Area of a soft disc: pi (r^2 + pi^2 s^2 / 3), with r = 1.25 and s about 0.25.
    expected = 255 * 10 * 0.575 * np.pi * (1.25**2 + np.pi**2 / 3 * 0.25**2) / 64**2
    assert (third - first) / 2 == pytest.approx(expected, rel=0.15)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"variant": "middle"}, "variant must be one of plain, tails, gap"),
        ({"illumination": "none"}, "illumination must be one of energy, fixed"),
        ({"sizes": {"train": 10_001}}, r"size of 'train' must lie in 1..10000"),
        ({"sizes": {"trial": 5}}, "sizes must name train, val, test, got 'trial'"),
        ({"seed": -1}, "seed must be at least 0"),
    ],
)
def test_wrong_options_are_refused_with_a_sentence(options, message):
    with pytest.raises(ValueError, match=message):
        cells(**options)
