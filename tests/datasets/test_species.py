"""The simulated species: classes, splits, known ambiguity, and votes that follow it."""

import numpy as np
import pytest
from scipy.stats import entropy, spearmanr

from qualms.datasets import Subset, prepare
from qualms.datasets._outlines import ellipse, smooth
from qualms.datasets.species import FAMILIES, annotator_votes, class_distances, species
from qualms.datasets.species._canvas import Coat, ObjectCanvas, Pose
from qualms.datasets.species._photograph import (
    HIDDEN,
    Trouble,
    hide,
    photograph,
    portrait,
    random_trouble,
)
from qualms.datasets.species._plans import UPSTREAM
from qualms.datasets.species._traits import Traits, tint

DOWNSTREAM = {"birds": 30, "cars": 40, "products": 5}
RED = tint((1.0, 0.0, 0.0))


def few(family, count=12):
    return dict.fromkeys(FAMILIES[family].sizes, count)


def prepared(folder, **options):
    return prepare(species(side=16, **options), folder, workers=1).dataset


def labels(recipe, split):
    units = [unit for unit in recipe.units if unit.split == split]
    return np.concatenate([unit.args[2] for unit in units])


def canvas(side=32, size=0.4):
    pose = Pose(np.eye(2) * size, np.array([0.5, 0.5]))
    return ObjectCanvas(side, pose, np.zeros(2))


@pytest.mark.parametrize("family", FAMILIES)
def test_every_family_can_be_prepared(family, tmp_path):
    dataset = prepared(tmp_path, family=family, sizes=few(family))
    assert dataset.task.name == "embedding"
    for split in dataset.splits.values():
        assert split.image.shape == (12, 16, 16, 3)
        assert split.image.dtype == np.uint8
        assert split.target.max() < dataset.task.classes
        clear = split.extra["group"] == "clear"
        np.testing.assert_array_equal(split.extra["ambiguity"] == 0, clear)
        assert ("votes" in split.extra) is (family == "votes")
    pictures = np.concatenate([s.image for s in dataset.splits.values()])
    assert len(np.unique(pictures.reshape(len(pictures), -1), axis=0)) == len(pictures)


def test_upstream_classes_take_turns_in_both_splits():
    recipe = species(classes=7, sizes={"train": 30, "test": 15})
    assert recipe.task.classes == 7
    for split, size in (("train", 30), ("test", 15)):
        np.testing.assert_array_equal(labels(recipe, split), np.arange(size) % 7)
    assert recipe.subsets == {}


@pytest.mark.parametrize(("family", "each"), DOWNSTREAM.items())
def test_downstream_splits_have_classes_of_their_own(family, each):
    recipe = species(family=family)
    result = {split: labels(recipe, split) for split in ("train", "val", "test")}
    for target in result.values():
        assert set(np.bincount(target - target.min())) == {each}
    seen = [set(target.tolist()) for target in result.values()]
    assert sum(map(len, seen)) == len(set.union(*seen)) == recipe.task.classes


def test_products_have_thousands_of_classes():
    assert len(set(labels(species(family="products"), "test"))) == 2_000


def test_halves_of_the_test_split_share_its_classes(tmp_path):
    sizes = {"train": 1, "val": 1, "test": 60}
    dataset = prepared(tmp_path, family="birds", sizes=sizes)
    assert dataset.subsets["test/even"] == Subset(of="test", half="even")
    even, odd = dataset.split("test/even"), dataset.split("test/odd")
    np.testing.assert_array_equal(np.bincount(even.target)[-2:], [15, 15])
    np.testing.assert_array_equal(even.target, odd.target)
    assert not set(even.item) & set(odd.item)


@pytest.mark.parametrize("family", ["upstream", "products"])
def test_a_smaller_split_is_the_beginning_of_a_larger_one(family, tmp_path):
    small = prepared(tmp_path / "s", family=family, sizes=few(family, 5))
    large = prepared(tmp_path / "l", family=family, sizes=few(family, 12))
    for name, split in small.splits.items():
        np.testing.assert_array_equal(split.image, large.splits[name].image[:5])
        assert split.item.tolist() == large.splits[name].item[:5].tolist()


def test_pictures_follow_the_seed_and_are_drawn_alike_again(tmp_path):
    first, again, other = (
        prepared(tmp_path / str(number), seed=seed, sizes=few("upstream", 4))
        for number, seed in enumerate((3, 3, 4))
    )
    assert first.fingerprint == again.fingerprint
    one, two = (d.splits["train"].image for d in (first, other))
    assert (one != two).any(axis=(1, 2, 3)).all()


def test_objects_of_a_class_look_alike_and_those_of_others_do_not():
    def looks(kind, own):
        generator = None if own is None else np.random.default_rng([own, 1])
        traits = Traits(np.random.default_rng([kind, 1]), generator)
        return portrait(UPSTREAM["fish"], traits, side=16).astype(float).ravel()

    classes = [looks(kind, None) for kind in range(12)]
    within = [np.linalg.norm(looks(k, 5) - classes[k]) for k in range(12)]
    distance = np.linalg.norm(np.array(classes)[:, None] - classes, axis=2)
    between = distance[~np.eye(12, dtype=bool)]
    assert np.mean(within) < 0.5 * np.mean(between)


def test_an_ellipse_covers_its_area():
    drawn = canvas(side=64)
    drawn.fill(ellipse(0.1, -0.2, 0.8, 0.4, 0.3), RED)
    share = float(drawn.cover.mean())
    # OpenCV widens an outline by about half a sample.
    assert share == pytest.approx(np.pi * 0.8 * 0.4 * 0.4**2, rel=0.06)
    inside = drawn.over(np.zeros((128, 128, 3), np.float32))[..., 0]
    assert inside.mean() == pytest.approx(share, rel=0.01)


def test_a_hole_shows_the_background():
    drawn = canvas()
    drawn.fill(ellipse(0, 0, 0.9, 0.9), RED)
    drawn.cut(ellipse(0, 0, 0.5, 0.5))
    seen = drawn.over(np.full((64, 64, 3), 0.25, np.float32))
    np.testing.assert_allclose(seen[32, 32], 0.25)
    np.testing.assert_allclose(seen[32, 32 + 18], (1, 0, 0), atol=1e-6)


def test_what_lies_outside_the_canvas_is_not_drawn():
    drawn = canvas()
    drawn.fill(ellipse(9, 9, 0.5, 0.5), RED)
    assert not drawn.cover.any()


def test_a_smooth_outline_passes_its_points():
    points = np.array([(0, 0), (1, 0.2), (1.2, 1), (-0.3, 0.8)])
    np.testing.assert_allclose(smooth(points)[::5], points)


def test_patterns_mix_two_colours():
    for pattern in ("stripes", "spots", "checks", "fade", "mottled", "waves"):
        drawn = canvas()
        colours = np.array([0.9, 0.1, 0.1]), np.array([0.1, 0.1, 0.9])
        drawn.fill(ellipse(0, 0, 1, 1), Coat(*colours, pattern, 2.0, 0.4), shade=0)
        red = drawn.colour[drawn.cover == 1][:, 0]
        assert 0.1 - 1e-6 <= red.min() < 0.3
        assert 0.7 < red.max() <= 0.9 + 1e-6


def picture(kind, ambiguity, seed=0):
    traits = Traits(np.random.default_rng([6, 1]), None)
    rng = np.random.default_rng([seed, 1])
    return photograph(UPSTREAM["fish"], traits, Trouble(kind, ambiguity), rng, side=64)


def sharpness(image):
    return np.abs(np.diff(image.astype(float), axis=1)).mean()


def test_the_more_ambiguous_the_more_blurred():
    result = [
        np.mean([sharpness(picture("blurred", a, seed)) for seed in range(5)])
        for a in (0.1, 0.4, 1.0)
    ]
    assert result[0] > result[1] > result[2]


@pytest.mark.parametrize("ambiguity", [0.2, 0.6, 1.0])
def test_occlusion_hides_the_share_it_says(ambiguity):
    drawn = canvas(side=64)
    drawn.fill(ellipse(0.1, 0.1, 0.9, 0.5), RED)
    for seed in range(5):
        image = np.full((128, 128, 3), -1, np.float32)
        hide(image, drawn.cover, ambiguity, np.random.default_rng(seed))
        hidden = (image[drawn.cover > 0.5] > -0.5).all(axis=1)
        assert hidden.mean() == pytest.approx(HIDDEN * ambiguity, abs=0.02)


def test_a_nearer_object_is_larger_and_cut_off():
    full, near = (picture("cropped", a, 3).astype(float) for a in (0.0, 0.8))
    coloured = [(np.ptp(image, axis=2) > 60).mean() for image in (full, near)]
    assert coloured[1] > 2 * coloured[0]


def test_troubles_are_as_frequent_as_stated():
    rng = np.random.default_rng(0)
    drawn = [random_trouble(rng) for _ in range(4_000)]
    kinds, counts = np.unique([trouble.kind for trouble in drawn], return_counts=True)
    assert dict(zip(kinds, counts / 4_000, strict=True)) == pytest.approx(
        {"clear": 0.4, "occluded": 0.2, "blurred": 0.2, "cropped": 0.2}, abs=0.03
    )
    strengths = [trouble.ambiguity for trouble in drawn if trouble.kind != "clear"]
    assert min(strengths) >= 0.2
    assert 0.98 < max(strengths) <= 1


def test_distances_between_classes_have_the_mean_one():
    portraits = np.random.default_rng(0).random((5, 4, 4, 3), np.float32)
    distance = class_distances(portraits)
    np.testing.assert_allclose(distance, distance.T)
    assert distance[~np.eye(5, dtype=bool)].mean() == pytest.approx(1)
    assert not distance.diagonal().any()


def test_votes_go_to_classes_that_look_alike_and_spread_with_ambiguity():
    rng = np.random.default_rng(1)
    distance = np.array([0.0, 0.5, 1.0, 1.5])
    mean = {
        a: np.mean([_shares(distance, a, rng) for _ in range(300)], axis=0)
        for a in (0.0, 0.5, 1.0)
    }
    assert mean[0.0][0] > 0.97
    assert mean[0.0][0] > mean[0.5][0] > mean[1.0][0] > 0.25
    for share in mean.values():
        assert np.all(np.diff(share) <= 0)
    totals = [annotator_votes(distance, 0.5, rng).sum() for _ in range(200)]
    assert 20 <= min(totals) < 25
    assert 45 < max(totals) <= 50


def _shares(distance, ambiguity, rng):
    votes = annotator_votes(distance, ambiguity, rng)
    return votes / votes.sum()


def test_the_entropy_of_votes_follows_the_ambiguity(tmp_path):
    sizes = {"val": 1, "test": 150}
    test = prepared(tmp_path, family="votes", sizes=sizes).splits["test"]
    votes = test.extra["votes"]
    assert votes.shape == (150, 10)
    assert spearmanr(entropy(votes, axis=1), test.extra["ambiguity"])[0] > 0.8
    clear = test.extra["ambiguity"] == 0
    assert (votes.argmax(axis=1) == test.target)[clear].mean() > 0.9


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"family": "trees"}, "family must be one of upstream, birds, cars"),
        ({"side": 8}, "side must be at least 16, got 8"),
        ({"classes": 1}, "classes must be at least 2, got 1"),
        ({"family": "cars", "classes": 5}, "classes must be left out for 'cars'"),
        ({"sizes": {"val": 5}}, "sizes must name train, test, got 'val'"),
    ],
)
def test_wrong_options_are_refused_with_a_sentence(options, message):
    with pytest.raises(ValueError, match=message):
        species(**options)
