import numpy as np
import pytest
from scipy.stats import pearsonr
from threadpoolctl import threadpool_limits

from qualms.scores.decomposition import decompose
from qualms.scores.raters import mean_defined, ncc, rater_agreement, rater_variance
from scores.segmentation_items import GOLDEN, ball, tiles

BALL = GOLDEN["A_3d_binary"]


def test_ncc_of_the_ball_is_golden():
    item = ball(100)
    reference = rater_variance(item.raters)
    measures = dict(
        zip(("PE", "EE", "MI"), decompose(item.probs, class_axis=1), strict=True)
    )
    for name, golden in BALL["ncc_pearson_population_float64_maps"].items():
        assert ncc(measures[name], reference) == pytest.approx(golden, abs=1e-9)


def test_ncc_is_the_same_on_any_number_of_threads():
    rng = np.random.default_rng(1)
    found = set()
    maps = rng.random((8, 2, 48, 48, 48))
    for threads in (1, 2):
        with threadpool_limits(threads):
            found.add(tuple(ncc(*both) for both in maps))
    assert len(found) == 1


@pytest.mark.parametrize("kind", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("scale", [1.0, 1e-3])
def test_ncc_is_scipys_correlation(kind, scale):
    rng = np.random.default_rng(0)
    a, b = (scale * rng.random((2, 6, 7))).astype(kind)
    expected = pearsonr(a.ravel().astype(float), b.ravel().astype(float)).statistic
    assert ncc(a, b) == pytest.approx(expected, abs=1e-12)


def test_ncc_survives_numbers_whose_squares_do_not():
    a, b = np.random.default_rng(1).random((2, 20))
    assert ncc(1e-200 * a, 1e200 * b) == pytest.approx(ncc(a, b), abs=1e-12)


def test_ncc_counts_only_pixels_of_the_mask():
    a, b = np.random.default_rng(2).random((2, 6, 7))
    mask = a > 0.3
    expected = ncc(a[mask], b[mask])
    b[~mask] = np.nan
    assert ncc(a, b, mask=mask) == expected


@pytest.mark.parametrize("constant", [0.0, 0.1, 7.3])
def test_ncc_of_a_map_that_does_not_vary_is_nan(constant):
    flat, other = np.full((5, 5), constant), np.arange(25.0).reshape(5, 5)
    assert np.isnan(ncc(flat, other))
    assert np.isnan(ncc(other, flat))
    assert np.isnan(ncc(other, other, mask=np.zeros((5, 5), dtype=bool)))


def test_a_mask_must_be_booleans_over_the_same_pixels():
    a = np.arange(6.0).reshape(2, 3)
    for mask in (np.ones((2, 3)), np.ones((3, 2), dtype=bool)):
        with pytest.raises(ValueError, match="mask must be booleans of shape"):
            ncc(a, a, mask=mask)
    with pytest.raises(ValueError, match="must cover the same pixels"):
        ncc(a, a.T)


def test_the_variance_of_two_classes_is_numpys():
    raters = np.random.default_rng(3).integers(0, 2, (5, 6, 7))
    np.testing.assert_allclose(rater_variance(raters), raters.var(axis=0))
    golden = BALL["gt_variance_map"]
    actual = rater_variance(ball(100).raters)
    assert (actual.sum(), actual.max()) == (golden["sum"], golden["max"])


def test_the_variance_of_more_classes_is_half_the_summed_variance_of_one_hot_labels():
    raters = np.random.default_rng(4).integers(0, 5, (6, 40))
    one_hot = raters[..., None] == np.arange(5)
    expected = one_hot.astype(float).var(axis=0).sum(axis=-1) / 2
    np.testing.assert_allclose(rater_variance(raters), expected)


def test_a_flip_of_one_third_has_the_variance_of_the_paper():
    assert rater_variance([[4], [0], [0]]) == pytest.approx([2 / 9])


def test_ignored_pixels_have_no_variance():
    raters = tiles(7).raters
    actual = rater_variance(raters, ignore=255)
    np.testing.assert_array_equal(np.isnan(actual), (raters == 255).any(axis=0))


def test_agreement_counts_raters_that_look_and_raters_that_agree():
    item = tiles(7)
    item.raters[0, 10:20] = 255
    actual = rater_agreement(item.prediction, item.raters, ignore=255)
    looked = item.raters != 255
    same = (item.raters == item.prediction) & looked
    np.testing.assert_array_equal(actual.total, looked.sum(axis=0))
    np.testing.assert_array_equal(actual.correct, same.sum(axis=0))


def test_a_prediction_without_class_where_a_rater_has_one_is_refused():
    with pytest.raises(ValueError, match="must name a class"):
        rater_agreement([0, 255], [[0, 1]], ignore=255)


def test_undefined_values_are_left_out_of_a_mean_and_counted():
    assert mean_defined([0.25, np.nan, 0.75, np.nan]) == (0.5, 2)
    nothing = mean_defined([np.nan, np.nan])
    assert np.isnan(nothing.mean)
    assert nothing.left_out == 2


def test_a_mean_of_nothing_or_of_infinity_is_refused():
    with pytest.raises(ValueError, match="at least one"):
        mean_defined([])
    with pytest.raises(ValueError, match="row 1 is inf"):
        mean_defined([0.0, np.inf])
