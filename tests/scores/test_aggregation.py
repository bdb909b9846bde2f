import numpy as np
import pytest
from scipy.ndimage import distance_transform_cdt

from qualms.scores import al_improvement, dice_drop
from qualms.scores.aggregation import (
    aggregate_boundary,
    aggregate_image,
    aggregate_object,
    aggregate_patch,
    aggregate_quantile,
    aggregate_threshold,
    background_share,
    boundary_band,
    patch_position,
    threshold_from_validation,
)
from qualms.scores.decomposition import decompose
from scores.segmentation_items import GOLDEN, ball

BALL = GOLDEN["A_3d_binary"]
MEASURES = ("PE", "EE", "MI")


def measures(seed):
    parts = decompose(ball(seed).probs, class_axis=1)
    return dict(zip(MEASURES, parts, strict=True))


def labels(seed):
    item = ball(seed)
    return np.concatenate([item.draws, item.prediction[None]])


@pytest.mark.parametrize("measure", MEASURES)
def test_sums_and_patches_of_the_ball_are_golden(measure):
    values = measures(100)[measure]
    golden = BALL["patch10"][measure]
    assert aggregate_patch(values) == pytest.approx(golden["max_score"], rel=1e-5)
    corner = tuple(low for low, _ in golden["bounding_box"])
    assert patch_position(values) == corner
    total = BALL["image_sum"][measure]
    assert aggregate_image(values) == pytest.approx(total, rel=1e-5)


@pytest.mark.parametrize("measure", MEASURES)
def test_the_threshold_of_the_balls_is_golden(measure):
    golden = BALL["threshold"]
    maps = (measures(seed)[measure] for seed in (101, 102))
    threshold = threshold_from_validation(maps, (labels(seed) for seed in (101, 102)))
    assert threshold == pytest.approx(golden[measure]["threshold"], rel=1e-5)
    actual = aggregate_threshold(measures(100)[measure], threshold=threshold)
    assert actual == pytest.approx(golden[measure]["test_score_mean_above"], rel=1e-5)


def test_the_background_share_of_the_balls_is_golden():
    actual = background_share([labels(101), labels(102)])
    golden = BALL["threshold"]["quantile_mean_over_2_images_x_(5_samples+mean)"]
    assert actual == pytest.approx(golden, abs=1e-10)


@pytest.mark.parametrize("shape", [(17,), (9, 13), (5, 8, 6), (4, 3, 5, 4)])
@pytest.mark.parametrize("size", [1, 3])
@pytest.mark.parametrize("kind", [np.float16, np.float32, np.float64])
def test_the_patch_is_the_largest_window_in_any_dimension(shape, size, kind):
    values = np.random.default_rng(0).random(shape).astype(kind)
    windows = np.lib.stride_tricks.sliding_window_view(
        values.astype(np.float64), (size,) * len(shape)
    )
    sums = windows.sum(axis=tuple(range(-len(shape), 0)))
    assert aggregate_patch(values, size=size) == pytest.approx(sums.max(), rel=1e-12)
    corner = np.unravel_index(sums.argmax(), sums.shape)
    assert patch_position(values, size=size) == corner


def test_a_patch_may_fill_the_map():
    values = np.random.default_rng(1).random((10, 10))
    assert aggregate_patch(values) == pytest.approx(values.sum())


def test_of_equal_patches_the_first_is_named():
    assert patch_position(np.full((12, 14), 0.1), size=10) == (0, 0)


@pytest.mark.parametrize("size", [0, 11])
def test_a_patch_larger_than_the_map_is_refused(size):
    with pytest.raises(ValueError, match=r"size must lie in 1\.\.10"):
        aggregate_patch(np.ones((10, 30)), size=size)


def test_a_mask_limits_the_sum():
    values = np.arange(6.0).reshape(2, 3)
    assert aggregate_image(values, mask=values > 3) == 9.0
    assert aggregate_image(values, mask=values > 9) == 0.0
    with pytest.raises(ValueError, match="mask must be booleans"):
        aggregate_image(values, mask=values)


def test_values_equal_to_the_threshold_count():
    values = np.array([0.25, 0.5, 0.75], dtype=np.float16)
    assert aggregate_threshold(values, threshold=0.5) == 0.625
    assert aggregate_threshold(values, threshold=0.8) == 0.0
    with pytest.raises(ValueError, match="threshold must be finite"):
        aggregate_threshold(values, threshold=np.nan)


@pytest.mark.parametrize("kind", [np.float16, np.float32, np.float64])
def test_the_threshold_is_numpys_quantile_of_all_maps(kind):
    rng = np.random.default_rng(2)
    maps = [rng.random((4, 5)).astype(kind) for _ in range(3)]
    stacks = [rng.integers(0, 3, (2, 4, 5)) for _ in range(3)]
    share = np.mean([(stack == 0).mean() for stack in stacks])
    expected = np.quantile(np.concatenate(maps).astype(float), share)
    actual = threshold_from_validation(iter(maps), iter(stacks))
    assert actual == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize(("label", "expected"), [(0, 0.9), (1, 0.1)])
def test_the_threshold_of_pure_background_or_foreground_is_an_end(label, expected):
    maps, stacks = [np.array([0.1, 0.9, 0.4])], [np.full((1, 3), label)]
    assert threshold_from_validation(maps, stacks) == expected


def test_items_weigh_alike_however_many_label_maps_they_have():
    stacks = [np.zeros((9, 4), dtype=int), np.ones((1, 4), dtype=int)]
    assert background_share(stacks) == 0.5


def test_a_threshold_needs_items():
    with pytest.raises(ValueError, match="label_maps must hold at least one item"):
        threshold_from_validation([np.zeros(3)], [])
    with pytest.raises(ValueError, match="maps must hold at least one item"):
        threshold_from_validation([], [np.zeros((1, 3), dtype=int)])


def test_active_learning_is_credited_with_what_random_queries_do_not_give():
    before, after, random = 0.5, 0.6, 0.53
    expected = (after / before - 1) - (random / before - 1)
    assert al_improvement(
        dice_before=before, dice_after=after, dice_random=random
    ) == pytest.approx(expected)
    assert np.isnan(al_improvement(dice_before=0.0, dice_after=0.5, dice_random=0.5))
    with pytest.raises(ValueError, match="dice_after must be finite and lie in"):
        al_improvement(dice_before=0.5, dice_after=60.0, dice_random=0.5)


@pytest.mark.parametrize("share", [0.01, 0.07, 0.5, 1.0])
def test_the_quantile_mean_is_that_of_the_sorted_values(share):
    values = np.random.default_rng(3).random((10, 10))
    count = {0.01: 1, 0.07: 7, 0.5: 50, 1.0: 100}[share]
    expected = np.sort(values.ravel())[-count:].mean()
    assert aggregate_quantile(values, share=share) == pytest.approx(expected)


def test_the_quantile_mean_takes_at_least_one_pixel():
    assert aggregate_quantile(np.array([0.1, 0.7, 0.2]), share=0.001) == 0.7
    with pytest.raises(ValueError, match="share must be above 0"):
        aggregate_quantile(np.ones(3), share=0.0)


@pytest.mark.parametrize("shape", [(40,), (17, 23), (9, 11, 10)])
@pytest.mark.parametrize("width", [1, 3])
def test_the_band_is_as_wide_as_the_distance_to_another_label(shape, width):
    rng = np.random.default_rng(4)
    blocks = rng.integers(0, 3, [-(-n // 5) for n in shape])
    labels = np.kron(blocks, np.ones([5] * len(shape), int))
    labels = labels[tuple(slice(n) for n in shape)]
    near = np.zeros(shape, bool)
    for label in np.unique(labels):
        own = labels == label
        if not own.all():
            away = distance_transform_cdt(own, metric="chessboard")
            near |= own & (away <= width)
    np.testing.assert_array_equal(boundary_band(labels, width=width), near)


def test_a_map_of_one_label_has_no_boundary():
    assert not boundary_band(np.ones((4, 5), int)).any()
    with pytest.raises(ValueError, match="width must be at least 1"):
        boundary_band(np.ones((4, 5), int), width=0)


def test_a_border_that_grows_does_not_change_the_mean_outside_it():
    y, x = np.mgrid[:40, :40] - 20
    for radius in (5, 10):
        labels = (np.hypot(y, x) <= radius).astype(int)
        band = boundary_band(labels)
        values = np.where(band, 0.6, 0.1)
        assert aggregate_boundary(values, band) == pytest.approx(0.1)
        assert aggregate_boundary(values, band, within=True) == pytest.approx(0.6)
    assert aggregate_boundary(values, np.ones_like(band)) == 0.0


def test_the_sum_is_taken_per_pixel_of_the_object():
    values = np.full((6, 6), 0.5)
    labels = np.zeros((6, 6), int)
    labels[:2, :3] = 2
    assert aggregate_object(values, labels) == pytest.approx(18 / 6)
    assert aggregate_object(values, 0 * labels) == 18.0
    with pytest.raises(ValueError, match="must cover the same pixels"):
        aggregate_object(values, labels[:3])


def test_what_a_shift_costs_is_relative_to_the_dice_before():
    # Table 2 of Kahl et al. (2024): calcification.
    assert 100 * dice_drop(dice_in_domain=0.804, dice_shifted=0.7669) == pytest.approx(
        4.6112, abs=0.01
    )
    assert np.isnan(dice_drop(dice_in_domain=0.0, dice_shifted=0.5))
    with pytest.raises(ValueError, match="dice_shifted must be finite"):
        dice_drop(dice_in_domain=0.5, dice_shifted=1.5)
