"""Simulated streets: classes where a street has them, two renderings, and swaps."""

import numpy as np
import pytest

from qualms.datasets import prepare
from qualms.datasets._street import CLASSES, COLOURS, SWAPS, reference_draws
from qualms.datasets.street_sim import street_sim
from qualms.datasets.street_sim._canvas import Canvas, Perspective, lying, rectangle
from qualms.datasets.street_sim._scene import street_scene
from qualms.datasets.street_sim._styles import GAME, PHOTO

FEW = {"train": 6, "val": 2, "pool": 4, "test": 6}
SIZE = {"height": 32, "width": 64}


@pytest.fixture(scope="module")
def scenes():
    """Labels and images of both renderings: (style, image, labels)."""
    prepared = []
    for number in range(90):
        style = (GAME, PHOTO)[number % 2]
        rng = np.random.default_rng([number, 1])
        prepared.append((style, *street_scene(rng, style, height=48, width=90)))
    return prepared


@pytest.fixture(scope="module")
def dataset(tmp_path_factory):
    folder = tmp_path_factory.mktemp("streets")
    return prepare(street_sim(sizes=FEW, **SIZE), folder, workers=1).dataset


def test_all_classes_occur_about_as_often_as_in_cities(scenes):
    labels = np.stack([labels for _, _, labels in scenes])
    share = np.bincount(labels.ravel(), minlength=256) / labels.size
    assert (share[: len(CLASSES)] > 2e-4).all()
    assert share[len(CLASSES) : 255].sum() == 0
    ranges = {"road": (0.25, 0.42), "building": (0.17, 0.35), "sky": (0.03, 0.16)}
    ranges |= {"vegetation": (0.06, 0.2), "car": (0.03, 0.1), "sidewalk": (0.03, 0.1)}
    for name, (low, high) in ranges.items():
        assert low < share[CLASSES.index(name)] < high, name
    assert 0.001 < share[255] < 0.08


def test_things_are_where_they_are_in_a_street(scenes):
    labels = np.stack([labels for _, _, labels in scenes])
    rows = np.arange(labels.shape[1])[None, :, None] / labels.shape[1]
    mean = {
        name: np.broadcast_to(rows, labels.shape)[labels == number].mean()
        for number, name in enumerate(CLASSES)
    }
    assert mean["sky"] < mean["traffic light"] < mean["car"] < mean["road"]
    assert mean["building"] < mean["person"] < mean["sidewalk"]
    assert (labels[:, 0] != CLASSES.index("road")).all()


def test_far_things_are_smaller_by_the_rule_of_perspective():
    view = Perspective(height=200, width=300, focal=100, horizon=80, eye=1.5, bend=0)
    canvas = Canvas(view, (0, 0, 0), 1e9)
    for z in (20.0, 10.0, 5.0):
        canvas.pixels[:] = 0
        canvas.upright((0, z), rectangle(-1, 0, 1, 2), (255, 0, 0), 7)
        canvas.draw()
        rows, columns = np.nonzero(canvas.pixels[..., 3] == 7)
        assert np.ptp(columns) == pytest.approx(200 / z, abs=1.5)
        assert np.ptp(rows) == pytest.approx(200 / z, abs=1.5)
        assert rows.max() == pytest.approx(80 + 150 / z, abs=1)


def test_the_last_polygon_lies_on_top_and_far_colours_fade_into_haze():
    view = Perspective(height=100, width=100, focal=100, horizon=40, eye=1.5, bend=0)
    canvas = Canvas(view, (200, 200, 200), 50)
    canvas.area(lying(0, 0, rectangle(-50, 2, 50, 100)), (0, 0, 0), 3)
    canvas.upright((0, 50.0), rectangle(-3, 0, 3, 3), (0, 100, 0), 4)
    canvas.draw()
    faded = 200 + np.exp(-1) * (np.array([0, 100, 0]) - 200)
    red, green, blue, label = canvas.pixels[40, 50]
    np.testing.assert_allclose([red, green, blue], faded, atol=1)
    assert label == 4
    assert canvas.pixels[99, 50, 3] == 3


def test_photographs_are_duller_noisier_and_show_the_bonnet(scenes):
    def saturation(image):
        return np.mean(np.ptp(image.astype(float), axis=2))

    def bottom(labels):
        return np.mean(labels[-1] == 255)

    games = [scene[1:] for scene in scenes if scene[0] is GAME]
    photos = [scene[1:] for scene in scenes if scene[0] is PHOTO]
    for number, (measure, more) in enumerate(((saturation, games), (bottom, photos))):
        less = photos if more is games else games
        high = np.mean([measure(scene[number]) for scene in more])
        low = np.mean([measure(scene[number]) for scene in less])
        assert high > 1.5 * low


def test_train_and_val_store_plain_labels_and_only_games(dataset):
    for split in ("train", "val"):
        one = dataset.splits[split]
        assert one.target.shape == (FEW[split], 1, 32, 64)
        assert set(np.unique(one.target)) <= {*range(19), 255}
        assert not one.extra["shifted"].any()
        assert set(one.extra["group"]) == {"game"}


@pytest.mark.parametrize("split", ["pool", "test"])
def test_pool_and_test_are_half_shifted_and_have_five_fixed_draws(split, dataset):
    one = dataset.splits[split]
    assert one.image.shape == (FEW[split], 32, 64, 3)
    assert one.image.dtype == one.target.dtype == np.uint8
    assert one.target.shape == (FEW[split], 5, 32, 64)
    assert one.extra["shifted"].tolist() == [False, True] * (FEW[split] // 2)
    assert one.extra["group"][:2].tolist() == ["game", "photo"]
    back = np.arange(256, dtype=np.uint8)
    back[list(SWAPS.values())] = list(SWAPS)
    plain = back[one.target]
    assert (plain == plain[:, :1]).all()
    assert (one.target != plain).any()


def test_the_dataset_says_how_labels_are_swapped(dataset):
    assert dataset.task.classes == 24
    assert dataset.task.ignore == 255
    named = {CLASSES[first]: second for first, second in dataset.swaps.items()}
    assert named == {
        **{"sidewalk": 19, "person": 20, "car": 21, "vegetation": 22, "road": 23}
    }
    assert dataset.swap_share == pytest.approx(1 / 3)


def test_a_draw_swaps_each_class_in_a_third_of_images_and_wholly():
    labels = np.arange(19, dtype=np.uint8).repeat(2)[None]
    labels = np.concatenate([labels, np.full((1, 38), 255, np.uint8)])
    rng = np.random.default_rng(5)
    drawn = np.stack([reference_draws(labels, rng) for _ in range(600)])
    assert drawn.shape == (600, 5, 2, 38)
    assert (drawn[:, :, 1] == 255).all()
    pairs = drawn[:, :, 0].reshape(-1, 19, 2)
    assert (pairs[..., 0] == pairs[..., 1]).all()
    swapped = pairs[..., 0] != np.arange(19)
    for first, second in SWAPS.items():
        assert swapped[:, first].mean() == pytest.approx(1 / 3, abs=0.03)
        assert set(pairs[swapped[:, first], first, 0]) == {second}
    assert not swapped[:, [k for k in range(19) if k not in SWAPS]].any()
    both = np.corrcoef(swapped[:, list(SWAPS)].T)
    assert np.abs(both - np.eye(5)).max() < 0.08


def test_items_depend_on_seed_split_and_number_alone(dataset, tmp_path):
    more = street_sim(sizes=FEW | {"test": 8}, **SIZE)
    again = prepare(more, tmp_path / "more", workers=1).dataset.splits["test"]
    few = dataset.splits["test"]
    for name in ("image", "target", "item"):
        np.testing.assert_array_equal(getattr(again, name)[:6], getattr(few, name))
    other = prepare(
        street_sim(sizes=FEW, seed=1, **SIZE), tmp_path / "other", workers=1
    )
    assert (other.dataset.splits["test"].image != few.image).any(axis=(1, 2, 3)).all()


def test_colours_of_label_maps_are_different():
    assert len(set(COLOURS)) == len(CLASSES) == 19


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"height": 16}, "height must be at least 32, got 16"),
        ({"width": 33.5}, "width must be a whole number, got 33.5"),
        (
            {"sizes": {"trial": 5}},
            "sizes must name train, val, pool, test, got 'trial'",
        ),
    ],
)
def test_wrong_options_are_refused_with_a_sentence(options, message):
    with pytest.raises(ValueError, match=message):
        street_sim(**options)
