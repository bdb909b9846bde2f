"""Every golden row of the regression benchmark, from predictions to table."""

import json
from pathlib import Path

import numpy as np
import pytest
from scipy.special import logsumexp
from scipy.stats import multivariate_normal

from qualms.scores import conformal
from qualms.scores.arguments import called_in_order
from qualms.scores.as_published import regression as published
from qualms.scores.conformal import accept, prediction_rate
from qualms.scores.distance import mean_neighbour_distance
from qualms.scores.intervals import coverage, interval_length
from qualms.scores.regression import gaussian_interval, mae, pool_gaussian

GOLDEN = json.loads(
    (Path(__file__).parents[2] / "golden" / "regression.json").read_text("utf-8")
)["cases"]
LARGE = GOLDEN["n2000"]
ALPHAS = (0.05, 0.1, 0.2)
METHODS = ("conformal", "gaussian", "gaussian_ensemble", "ensemble", "quantile")
# These two depend on the version of an outside library; the golden file says so.
INFORMATIVE = ("gmm_sklearn_fit", "annoy")
SELECTIVE = tuple(
    name for name in LARGE["alpha_0.1"]["selective"] if not name.startswith(INFORMATIVE)
)


def close(value):
    return pytest.approx(value, rel=1e-9)


@pytest.fixture(scope="module")
def case():
    """The golden file's input recipe; the order of the draws matters."""
    n_train, n_val, n_test, M, d = 600, 2000, 1500, 5, 6
    rng = np.random.default_rng(20230207)
    c = {}
    c["y_val"] = rng.uniform(1.0, 200.0, n_val)
    c["y_test"] = rng.uniform(1.0, 200.0, n_test)
    bias = rng.normal(0.0, 1.0, M)[:, None]
    c["mu_val"] = c["y_val"] + bias + rng.normal(0.0, 5.0, (M, n_val))
    c["mu_test"] = c["y_test"] + bias + rng.normal(0.0, 7.0, (M, n_test))
    c["logvar_val"] = 2 * np.log(4.0) + rng.normal(0.0, 0.5, (M, n_val))
    c["logvar_test"] = 2 * np.log(4.0) + rng.normal(0.2, 0.5, (M, n_test))
    c["q_low_val"] = c["mu_val"][0] - rng.gamma(4.0, 1.5, n_val)
    c["q_high_val"] = c["mu_val"][0] + rng.gamma(4.0, 1.5, n_val)
    c["q_low_test"] = c["mu_test"][0] - rng.gamma(4.0, 1.5, n_test)
    c["q_high_test"] = c["mu_test"][0] + rng.gamma(4.0, 1.5, n_test)
    centre = rng.normal(0.0, 4.0, (4, d))
    for split, count, spread in (
        ("train", n_train, 1.0),
        ("val", n_val, 1.0),
        ("test", n_test, 1.6),
    ):
        chosen = centre[rng.integers(0, 4, count)]
        c[f"f_{split}"] = chosen + rng.normal(0.0, spread, (count, d))
    root = rng.normal(0.0, 0.3, (4, d, d))
    c["gmm_weights"] = np.array([0.1, 0.2, 0.3, 0.4])
    c["gmm_means"] = centre
    c["gmm_covs"] = root @ np.transpose(root, (0, 2, 1)) + np.eye(d)
    c["ens_logp_val"] = rng.normal(-12.0, 2.0, (M, n_val))
    c["ens_logp_test"] = rng.normal(-13.0, 2.5, (M, n_test))
    return c


def test_the_inputs_are_those_of_the_golden_file(case):
    for name, check in LARGE["input_checksums"].items():
        array = case[name]
        assert list(array.shape) == check["shape"]
        assert array.sum() == close(check["sum"])
        assert array.flat[0] == close(check["first"])
        assert array.flat[-1] == close(check["last"])


def prediction(case, method, split, alpha):
    """Point prediction and uncalibrated interval of one method on one split."""
    mean, var = case[f"mu_{split}"], np.exp(case[f"logvar_{split}"])
    if method == "conformal":
        return mean[0], (mean[0], mean[0])
    if method == "quantile":
        ends = case[f"q_low_{split}"], case[f"q_high_{split}"]
        return sum(ends) / 2, ends
    moments = {
        "gaussian": lambda: pool_gaussian(mean=mean[:1], var=var[:1]),
        "gaussian_ensemble": lambda: pool_gaussian(mean=mean, var=var),
        "ensemble": lambda: pool_gaussian(mean=mean),
    }[method]()
    return moments.mean, called_in_order(gaussian_interval, *moments, alpha=alpha)


def calibrated(case, method, alpha):
    val, test = (prediction(case, method, s, alpha)[1] for s in ("val", "test"))
    offset = called_in_order(
        published.conformal_offset, *val, case["y_val"], alpha=alpha
    )
    return offset, *((low - offset, high + offset) for low, high in (val, test))


@pytest.mark.parametrize("alpha", ALPHAS)
@pytest.mark.parametrize("method", METHODS)
def test_every_method_row_is_golden(case, method, alpha):
    offset, val, test = calibrated(case, method, alpha)
    raw = prediction(case, method, "val", alpha)[1]
    table = {
        "Q": offset,
        "val_coverage_uncalibrated": called_in_order(coverage, *raw, case["y_val"]),
        "val_mean_length_uncalibrated": called_in_order(interval_length, *raw),
        "val_coverage": called_in_order(coverage, *val, case["y_val"]),
        "val_mean_length": called_in_order(interval_length, *val),
        "val_mae": mae(prediction(case, method, "val", alpha)[0], case["y_val"]),
        "test_coverage": called_in_order(coverage, *test, case["y_test"]),
        "test_mean_length": called_in_order(interval_length, *test),
        "test_mae": mae(prediction(case, method, "test", alpha)[0], case["y_test"]),
    }
    golden = LARGE[f"alpha_{alpha}"][method]
    assert {key: table[key] for key in golden} == {
        key: close(value) for key, value in golden.items()
    }


def selections(case, name):
    """The selection score (larger = less certain) on both splits."""
    return tuple(_select(case, name, split) for split in ("val", "test"))


def _select(case, name, split):
    if name.startswith("knn"):
        _, metric, k = name.split("_")
        features = case[f"f_{split}"], case["f_train"]
        return called_in_order(
            mean_neighbour_distance, *features, metric=metric, k=int(k[1:])
        )
    if name == "variance":
        return np.exp(case[f"logvar_{split}"][0] / 2)
    if name == "ensemble_variance":
        return np.sqrt(pool_gaussian(mean=case[f"mu_{split}"]).var)
    if name == "ensemble_gmm":
        return np.log(5) - logsumexp(case[f"ens_logp_{split}"], axis=0)
    assert name == "gmm_fixed_params"
    return -mixture_log_density(case, case[f"f_{split}"])


def mixture_log_density(case, features):
    parts = [
        np.log(weight) + multivariate_normal(mean, cov).logpdf(features)
        for weight, mean, cov in zip(
            case["gmm_weights"], case["gmm_means"], case["gmm_covs"], strict=True
        )
    ]
    return logsumexp(parts, axis=0)


@pytest.mark.parametrize("alpha", ALPHAS)
@pytest.mark.parametrize("name", SELECTIVE)
def test_every_selective_row_is_golden(case, name, alpha):
    val, test = selections(case, name)
    threshold = published.selection_threshold(val)
    keep = accept(test, threshold)
    base = "gaussian_ensemble" if name.startswith("ensemble") else "gaussian"
    lower, upper = calibrated(case, base, alpha)[2]
    table = {
        "tau": threshold,
        "tau_variance": threshold**2,
        "test_prediction_rate": prediction_rate(test, threshold),
        "test_coverage_on_predicted": coverage(
            lower=lower[keep], upper=upper[keep], target=case["y_test"][keep]
        ),
        "test_mean_length_on_predicted": interval_length(
            lower=lower[keep], upper=upper[keep]
        ),
    }
    golden = dict(LARGE[f"alpha_{alpha}"]["selective"][name])
    golden.pop("tau_is", None)
    assert {key: table[key] for key in golden} == {
        key: close(value) for key, value in golden.items()
    }


def test_the_golden_file_has_ten_selective_rows_that_no_library_version_moves():
    assert len(SELECTIVE) == 10


def test_neighbour_distances_and_densities_are_golden(case):
    for metric in ("angular", "l2"):
        distance = mean_neighbour_distance(
            query=case["f_val"], reference=case["f_train"], k=10, metric=metric
        )
        golden = LARGE[f"knn_{metric}_k10_first5_val"]
        np.testing.assert_allclose(distance[:5], golden, rtol=1e-9)
    for split in ("val", "test"):
        density = mixture_log_density(case, case[f"f_{split}"])
        golden = LARGE[f"gmm_fixed_logpdf_first5_{split}"]
        np.testing.assert_allclose(density[:5], golden, rtol=1e-9)


@pytest.mark.parametrize("alpha", ALPHAS)
def test_the_tiny_case_is_golden(alpha):
    tiny = GOLDEN["tiny_conformal"]
    y_val, pred_val, y_test, pred_test = (
        np.array(tiny[key]) for key in ("y_val", "pred_val", "y_test", "pred_test")
    )
    offset = published.conformal_offset(
        lower=pred_val, upper=pred_val, target=y_val, alpha=alpha
    )
    ends = pred_test - offset, pred_test + offset
    table = {
        "Q": offset,
        "val_coverage": coverage(
            lower=pred_val - offset, upper=pred_val + offset, target=y_val
        ),
        "val_mean_length": interval_length(
            lower=pred_val - offset, upper=pred_val + offset
        ),
        "val_mae": mae(pred_val, y_val),
        "test_coverage": called_in_order(coverage, *ends, y_test),
        "test_mean_length": called_in_order(interval_length, *ends),
        "test_mae": mae(pred_test, y_test),
    }
    golden = tiny[f"alpha_{alpha}"]
    assert table == {key: close(golden[key]) for key in table}
    assert golden.keys() == table.keys()


@pytest.mark.parametrize("dataset", GOLDEN["quantile_index_table"])
def test_ranks_are_those_of_the_golden_table(dataset):
    row = GOLDEN["quantile_index_table"][dataset]
    # Targets 1..n against a point prediction of 0: the offset is its own rank.
    count = row["n_val"]
    target, zero = np.arange(1.0, count + 1), np.zeros(count)
    assert published.selection_threshold(target) == row["tau_index0"] + 1
    for alpha in ALPHAS:
        golden = row[f"alpha_{alpha}"]
        theirs = published.conformal_offset(
            lower=zero, upper=zero, target=target, alpha=alpha
        )
        assert theirs == golden["rank_used"] == golden["index0"] + 1
        plain = conformal.conformal_offset(
            lower=zero, upper=zero, target=target, alpha=alpha
        )
        assert plain == golden["rank_cqr_finite_sample"]


def test_the_published_offset_is_finite_however_few_items_there_are():
    assert (
        published.conformal_offset(lower=[0.0], upper=[0.0], target=[3.0], alpha=0.05)
        == 3.0
    )
    assert (
        conformal.conformal_offset(lower=[0.0], upper=[0.0], target=[3.0], alpha=0.05)
        == np.inf
    )


def test_a_share_that_rounds_to_one_still_points_into_the_list():
    assert (
        published.conformal_offset(lower=[0.0], upper=[0.0], target=[3.0], alpha=1e-17)
        == 3.0
    )


def test_the_published_threshold_accepts_one_item_more():
    select = np.arange(100.0)
    assert prediction_rate(select, published.selection_threshold(select)) == 0.96
    assert prediction_rate(select, conformal.selection_threshold(select)) == 0.95
