"""What figures show of segmented items."""

import numpy as np

from qualms.evaluate.slices import disputed_slices, size_scatters
from qualms.predictions import Header, Maps, Predictions


def item(raters):
    raters = np.asarray(raters, np.uint8)
    probs = np.full((2, *raters.shape[1:]), 0.5, np.float32)
    probs[1] += 0.1
    return Maps(
        mean_probs=probs,
        expected_entropy=np.zeros(raters.shape[1:], np.float32),
        draw_labels=raters[:1],
        raters=raters,
    )


def made(*items, names=None):
    return Predictions(
        task="segmentation",
        header=Header(method="map", ignore=255),
        arrays={} if names is None else {"item": np.array(names)},
        maps=items,
        n=len(items),
    )


def agreed_and_disputed():
    agreed, disputed = np.zeros((2, 2, 4, 5, 6), np.uint8)
    agreed[:, 1, :2] = 1
    disputed[0, 2, 1:3, 1:3] = 1
    return agreed, disputed


def measures(maps):
    depth = np.arange(4.0)[:, None, None]
    return {"PE": np.broadcast_to(depth, maps.expected_entropy.shape)}


def test_the_item_whose_raters_disagree_most_is_shown_where_they_do():
    agreed, disputed = agreed_and_disputed()
    predictions = made(item(agreed), item(disputed), names=["a", "b"])
    (shown,) = disputed_slices(
        predictions, np.array([0.0, 1.0]), {"all": np.arange(2)}, measures
    )
    assert (shown.item, shown.at) == ("b", 2)
    assert np.array_equal(shown.raters, disputed[:, 2])
    assert np.all(shown.uncertainty["PE"] == 2.0)
    assert shown.disagreement.max() == 0.25
    assert np.all(shown.predicted == 1)


def test_where_raters_agree_the_first_item_is_shown_where_it_is_largest():
    agreed, _ = agreed_and_disputed()
    predictions = made(item(agreed), item(agreed))
    subsets = {"in_domain": np.array([1]), "shifted": np.array([], np.int64)}
    (shown,) = disputed_slices(predictions, np.zeros(2), subsets, measures)
    assert (shown.subset, shown.item, shown.at) == ("in_domain", "1", 1)


def test_an_image_is_shown_whole():
    raters = np.array([[[0, 1], [1, 1]], [[0, 0], [1, 255]]])
    predictions = made(item(raters))
    flat = {"MSR": np.ones((2, 2))}
    (shown,) = disputed_slices(
        predictions, np.ones(1), {"all": np.arange(1)}, lambda _: flat
    )
    assert shown.at is None
    assert shown.raters.shape == (2, 2, 2)


def test_sizes_stand_beside_summed_uncertainty():
    predicted, reference = np.array([10.0, 20.0]), np.array([11.0, 19.0])
    size, summed = size_scatters(
        predicted, reference, {"PE": 2 * predicted}, subset="in_domain"
    )
    assert size.name == "size"
    assert (summed.name, summed.settings) == ("summed", {"measure": "PE"})
    assert np.array_equal(summed.y / summed.x, [2.0, 2.0])
