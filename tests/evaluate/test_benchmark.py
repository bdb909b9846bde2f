"""Judging the regression benchmark from predictions files alone."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from evaluate.made_runs import make_runs
from qualms import predictions
from qualms.benchmarks import Expectation, TableRow
from qualms.benchmarks._benchmark import Place
from qualms.benchmarks._regression_data import cells
from qualms.benchmarks.regression import regression
from qualms.evaluate import Settings
from qualms.evaluate._measured import (
    SCORES,
    Calibration,
    Items,
    Measured,
    calibrate,
    scores_of,
)
from qualms.evaluate._replicates import (
    REPLAYED,
    Weights,
    held_replicates,
    mean_of_repeats,
    replicates,
)
from qualms.evaluate._weighted import calibrate_weighted, density_ratio
from qualms.evaluate.benchmark import judge
from qualms.predictions import build
from qualms.scores import mean_neighbour_distance
from qualms.spec import Part

GOLDEN = json.loads(
    (Path(__file__).parents[1] / "golden" / "regression.json").read_text("utf-8")
)
BARE = Settings(resamples=0)
QUICK = Settings(resamples=50)
BENCHMARK = regression()
DEMO = BENCHMARK.presets["demo"]
TINY = replace(DEMO, variants=tuple(cells("plain", "tails")))
GAUSSIAN, MAP = Part(name="gaussian"), Part(name="map")


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    out = tmp_path_factory.mktemp("runs")
    make_runs(BENCHMARK, TINY, out)
    return out


@pytest.fixture(scope="module")
def judged(made):
    return judge(BENCHMARK, TINY, made, settings=QUICK)


@pytest.fixture
def copied(made, tmp_path):
    return Path(shutil.copytree(made, tmp_path / "copy"))


def folder(out, variant, row, seed, alpha=0.1):
    found = next(v for v in TINY.variants if v.name == variant)
    spec = BENCHMARK.spec(TINY, Place(found, alpha, BENCHMARK.row(row)), seed)
    return out / "regression" / spec.hash


SELECTS = {
    "knn_angular_k5": ("angular", 5),
    "knn_angular_k10": ("angular", 10),
    "knn_angular_k20": ("angular", 20),
    "knn_l2_k5": ("l2", 5),
    "knn_l2_k10": ("l2", 10),
    "knn_l2_k20": ("l2", 20),
}
FIVE = ("conformal", "ensemble", "gaussian", "gaussian_ensemble", "quantile")


def golden_rows():
    """The five methods, and a row for every golden selection score."""
    single = {"variance": "variance", "gmm_fixed_params": "gmm_fixed_params"}
    single |= {name: name for name in SELECTS}
    pooled = {"ensemble_variance": "ensemble_variance", "ensemble_gmm": "ensemble_gmm"}
    return (
        *(row for row in BENCHMARK.rows if row.name in FIVE),
        *(
            TableRow(
                name=name,
                label=name,
                method=GAUSSIAN,
                rule="gaussian",
                pool=size,
                select=select,
            )
            for names, size in ((single, 1), (pooled, 5))
            for name, select in names.items()
        ),
    )


def golden_arrays(case, seed, split):
    """What run `seed` of each method says about `split` in the golden case."""
    features, train = case[f"f_{split}"], case["f_train"]
    parts = [
        np.log(weight) + multivariate_normal(mean, cov).logpdf(features)
        for weight, mean, cov in zip(
            case["gmm_weights"], case["gmm_means"], case["gmm_covs"], strict=True
        )
    ]
    mean = case[f"mu_{split}"][seed]
    select = {
        "gmm_fixed_params": -np.logaddexp.reduce(parts),
        "ensemble_gmm": -case[f"ens_logp_{split}"][seed],
    }
    for name, (metric, k) in SELECTS.items():
        select[name] = mean_neighbour_distance(features, train, metric=metric, k=k)
    target = {"target": case[f"y_{split}"]}
    return {
        "map": target | {"mean": mean},
        "gaussian": target
        | {"mean": mean, "var": np.exp(case[f"logvar_{split}"][seed])}
        | {f"select/{name}": values for name, values in select.items()},
        "quantile": target
        | {"lower": case[f"q_low_{split}"], "upper": case[f"q_high_{split}"]},
    }


@pytest.fixture(scope="module", params=[".npz", ".safetensors"])
def golden_judged(request, tmp_path_factory):
    names = {}
    exec(GOLDEN["input_recipe"], names)
    case = names["make_case"](**GOLDEN["cases"]["n2000"]["params"])
    benchmark = replace(BENCHMARK, rows=golden_rows())
    preset = replace(
        TINY,
        variants=tuple(cells("plain")),
        rows=tuple(row.name for row in benchmark.rows),
        trained_alphas=(0.1, 0.2, 0.05),
        pools=((0, 1, 2, 3, 4),),
    )
    out = tmp_path_factory.mktemp("golden")
    held = {
        (s, split): golden_arrays(case, s, split)
        for s in range(5)
        for split in ("val", "test")
    }
    rules = dict.fromkeys(SELECTS, "mean")
    rules |= {"gmm_fixed_params": "logmeanexp", "ensemble_gmm": "logmeanexp"}
    for spec in benchmark.runs(preset):
        at = out / "regression" / spec.hash / "predictions"
        at.mkdir(parents=True)
        header = {
            "select": rules if spec.method.name == "gaussian" else {},
            "alpha": spec.method.options.get("alpha"),
        }
        for split in spec.splits:
            arrays = held[spec.seed, split][spec.method.name]
            path = at / f"{split}{request.param}"
            predictions.write(path, arrays, header=header)
    return request.param, judge(benchmark, preset, out, settings=BARE)


IN_TABLE = {
    "val_mae": "val_mae",
    "val_mean_length": "val_interval_length",
    "test_coverage": "test_coverage",
    "test_mean_length": "test_interval_length",
    "test_mae": "test_mae",
    "test_prediction_rate": "test_prediction_rate",
    "test_coverage_on_predicted": "test_coverage",
    "test_mean_length_on_predicted": "test_interval_length",
}


@pytest.mark.parametrize("alpha", [0.1, 0.2, 0.05])
def test_every_golden_row_comes_out_of_files(golden_judged, alpha):
    ending, results = golden_judged
    # float32 moves numbers in the seventh digit, and may move one item over an edge.
    near = {"rel": 1e-9} if ending == ".npz" else {"rel": 1e-6, "abs": 1.1 / 1500}
    golden = GOLDEN["cases"]["n2000"][f"alpha_{alpha}"]
    rows = {name: golden[name] for name in FIVE} | golden["selective"]
    judged = {row.name for row in results.benchmark.rows}
    compared = 0
    for name in judged:
        for key, expected in rows[name].items():
            if key in IN_TABLE:
                cell = results.cell("cells", alpha, name, IN_TABLE[key])
                assert cell.by_their_rule.mean == pytest.approx(expected, **near), key
                compared += 1
    assert len(judged) == 15
    assert compared == 5 * 5 + 10 * 3


def invented(n_val=60, n_test=80, seed=0):
    rng = np.random.default_rng(seed)

    def items(n):
        target = rng.normal(0, 10, n)
        low, high = rng.gamma(2, 2, (2, n)) - 1.5
        point = target + rng.normal(0, 3, n)
        return Items(point, point - low, point + high, target, rng.random(n).round(2))

    return Measured(items(n_val), items(n_test))


def repeated(items, weight):
    return Items(*(np.repeat(array, weight) for array in items))


@pytest.mark.parametrize("alpha", [0.1, 0.2, 0.05])
def test_ours_takes_the_finite_sample_rank(alpha):
    measured = invented(n_val=57)
    val = measured.val
    outside = np.sort(np.maximum(val.lower - val.target, val.target - val.upper))
    rank = int(np.ceil((1 - alpha) * 58))
    found = calibrate(measured, alpha)
    assert found.test_offset == outside[rank - 1]
    accepted = (val.select <= found.threshold).mean()
    assert 0.95 <= accepted < 0.95 + 2 / 57


@pytest.mark.parametrize("alpha", [0.1, 0.05])
def test_replicates_are_the_scores_of_repeated_items(alpha):
    measured = invented()
    rng = np.random.default_rng(1)
    weights = Weights(
        rng.multinomial(60, [1 / 60] * 60, size=12).astype(np.int32),
        rng.multinomial(80, [1 / 80] * 80, size=12).astype(np.int32),
    )
    found = replicates(measured, alpha, weights)
    for draw in range(12):
        again = Measured(
            repeated(measured.val, weights.val[draw]),
            repeated(measured.test, weights.test[draw]),
        )
        expected = scores_of(again, calibrate(again, alpha))[:REPLAYED]
        np.testing.assert_allclose(found[draw], expected, rtol=1e-12)


def test_held_replicates_keep_the_offsets_of_items():
    measured = invented()
    rng = np.random.default_rng(2)
    held = Calibration(rng.random(60), rng.random(80), float(measured.val.select.max()))
    ones = Weights(np.ones((1, 60), np.int32), np.ones((1, 80), np.int32))
    found = held_replicates(measured, held, ones)[0]
    expected = list(scores_of(measured, held)[:REPLAYED])
    # The threshold is found anew; all else is the score itself.
    keep = measured.test.select <= np.sort(measured.val.select)[56]
    assert found[3] == keep.mean()
    np.testing.assert_allclose(found[:2], expected[:2])


def test_an_unbounded_interval_makes_the_length_infinite_and_nothing_else():
    measured = invented()
    measured = Measured(
        measured.val._replace(select=np.zeros(60)),
        measured.test._replace(select=np.zeros(80)),
    )
    offset = np.ones(80)
    offset[3] = np.inf
    held = Calibration(np.ones(60), offset, 0.0)
    ones = Weights(np.ones((1, 60), np.int32), np.ones((1, 80), np.int32))
    found = held_replicates(measured, held, ones)[0]
    scores = dict(zip(SCORES, scores_of(measured, held), strict=True))
    assert found[5] == scores["test_interval_length"] == np.inf
    assert found[2] == scores["test_coverage"]
    assert scores["test_unbounded_fraction"] == 1 / 80


def test_repeats_are_drawn_with_their_items():
    samples = np.arange(3.0)[:, None, None] + np.zeros((3, 4000, 2))
    mean = mean_of_repeats(samples, seed=0)
    # The mean of three draws from 0, 1, 2 has variance (2/3) / 3.
    assert mean.mean() == pytest.approx(1.0, abs=0.03)
    assert mean[:, 0].var() == pytest.approx(2 / 9, rel=0.1)
    np.testing.assert_array_equal(mean[:, 0], mean[:, 1])


def shifted_predictions(n, share, seed):
    """Items of two kinds; `share` of them are hard, which the variance betrays."""
    rng = np.random.default_rng(seed)
    hard = rng.random(n) < share
    target = rng.normal(0, 5, n)
    mean = target + rng.normal(0, np.where(hard, 6.0, 1.0))
    var = np.where(hard, 4.0, 1.0) + rng.random(n) * 0.1
    return build({"target": target, "mean": mean, "var": var}), hard


def test_the_density_ratio_is_learned_from_predictions():
    val, hard = shifted_predictions(4000, 0.2, 0)
    test, _ = shifted_predictions(4000, 0.6, 1)
    ratio = density_ratio(val, test)
    assert np.median(ratio.val[hard]) == pytest.approx(0.6 / 0.2, rel=0.25)
    assert np.median(ratio.val[~hard]) == pytest.approx(0.4 / 0.8, rel=0.25)


def test_weighted_calibration_restores_coverage_under_covariate_shift():
    val, _ = shifted_predictions(4000, 0.2, 0)
    test, _ = shifted_predictions(4000, 0.6, 1)
    measured = Measured(
        *(
            Items(
                *[split.arrays["mean"][0]] * 3, split.arrays["target"], np.zeros(4000)
            )
            for split in (val, test)
        )
    )
    weighted = calibrate_weighted(measured, density_ratio(val, test), 0.1)
    plain = dict(
        zip(SCORES, scores_of(measured, calibrate(measured, 0.1)), strict=True)
    )
    mended = dict(zip(SCORES, scores_of(measured, weighted), strict=True))
    assert plain["test_coverage"] < 0.82
    assert mended["test_coverage"] == pytest.approx(0.9, abs=0.03)


def test_every_cell_is_filled_or_says_why(judged):
    assert judged.missing == ()
    empty = [cell for cell in judged.cells.values() if not cell.values]
    assert {(cell.key.row, cell.key.alpha) for cell in empty} == {
        ("quantile", 0.2),
        ("quantile", 0.05),
    }
    assert {cell.why for cell in empty} == {
        "preset demo trains quantile for alpha 0.1 only"
    }


def test_the_expected_effects_show_in_invented_runs(judged):
    assert len(judged.checks) == 4
    assert all(check.known and check.held for check in judged.checks)
    restored = judged.checks[3].values["gaussian_gmm"]
    cell = judged.cell("cells_tails", 0.1, "gaussian_gmm", "test_coverage")
    assert restored == pytest.approx(cell.ours.mean)


def test_a_cell_is_the_mean_over_repeats(judged, made):
    cell = judged.cell("cells", 0.1, "gaussian", "val_mae")
    errors = []
    for seed in range(5):
        at = folder(made, "cells", "gaussian", seed) / "predictions" / "val.safetensors"
        arrays = predictions.read(at).arrays
        errors.append(np.abs(arrays["mean"][0] - arrays["target"]).mean())
    assert cell.values == pytest.approx(errors)
    assert cell.ours.mean == pytest.approx(np.mean(errors))
    assert cell.ours.std == pytest.approx(np.std(errors))


def test_an_ensemble_of_all_runs_has_one_repeat_and_no_spread(judged):
    cell = judged.cell("cells", 0.1, "ensemble", "test_coverage")
    assert len(cell.values) == 1
    assert np.isnan(cell.ours.std)
    assert any("one pool" in note for note in judged.notes)


def test_intervals_surround_their_values(judged):
    for key, cell in judged.cells.items():
        if cell.values and key.score == "test_coverage":
            assert cell.low <= cell.ours.mean <= cell.high
            assert cell.samples.shape == (50,)


def test_selection_leaves_validation_scores_alone(judged):
    for score in ("val_mae", "val_interval_length"):
        base = judged.cell("cells_tails", 0.1, "gaussian", score)
        selected = judged.cell("cells_tails", 0.1, "gaussian_gmm", score)
        assert base.values == selected.values
    rate = judged.cell("cells_tails", 0.1, "gaussian_gmm", "test_prediction_rate")
    assert 0.4 < rate.ours.mean < 0.65


def test_judging_twice_gives_the_same_numbers(made, judged):
    again = judge(BENCHMARK, TINY, made, settings=QUICK)
    assert again.cells == judged.cells
    key = next(iter(judged.cells))
    np.testing.assert_array_equal(again.cells[key].samples, judged.cells[key].samples)


def test_rows_not_in_the_paper_have_no_number_by_its_rule(judged):
    cell = judged.cell("cells", 0.1, "gaussian_weighted", "test_coverage")
    assert cell.values
    assert cell.as_published == ()


def test_graded_variants_are_the_test_items_in_their_range(made):
    graded = next(v for v in DEMO.variants if v.name == "cells_tails_v1")
    preset = replace(
        TINY, variants=(replace(graded, dataset=TINY.variants[1].dataset),)
    )
    results = judge(BENCHMARK, preset, made, settings=QUICK)
    at = folder(made, "cells_tails", "conformal", 0) / "predictions"
    val, test = (
        predictions.read(at / f"{split}.safetensors").arrays
        for split in ("val", "test")
    )
    outside = np.sort(np.abs(val["mean"][0] - val["target"]))
    offset = outside[int(np.ceil(0.9 * (len(outside) + 1))) - 1]
    keep = (test["target"] >= 37.5) & (test["target"] <= 163.5)
    inside = np.abs(test["mean"][0] - test["target"])[keep] <= offset
    cell = results.cell("cells_tails_v1", 0.1, "conformal", "test_coverage")
    assert cell.values[0] == pytest.approx(inside.mean(), abs=1.1 / keep.sum())
    assert results.cells.keys() == {
        key for key in results.cells if key.row in graded.rows
    }


def test_variants_of_the_same_runs_are_judged_on_their_own_test_splits(tmp_path):
    paper = BENCHMARK.presets["paper"].variants
    cities = tuple(v for v in paper if v.name.startswith("aerial"))
    preset = replace(TINY, variants=cities, rows=("conformal",))
    sizes = {"val": 200, "test": 60, "test/kitsap": 50, "test/vienna": 40}
    make_runs(BENCHMARK, preset, tmp_path, sizes=sizes)
    results = judge(BENCHMARK, preset, tmp_path, settings=QUICK)
    for city in cities:
        place = Place(city, 0.1, BENCHMARK.row("conformal"))
        run = tmp_path / "regression" / BENCHMARK.spec(preset, place, 0).hash
        file = f"{city.test.replace('/', '~')}.safetensors"
        test = predictions.read(run / "predictions" / file).arrays
        error = np.abs(test["mean"][0] - test["target"]).mean()
        cell = results.cell(city.name, 0.1, "conformal", "test_mae")
        assert len(test["target"]) == sizes[city.test]
        assert cell.values[0] == pytest.approx(error)


def test_too_few_validation_items_leave_ours_unbounded(tmp_path):
    preset = replace(TINY, variants=TINY.variants[:1], rows=("conformal",))
    make_runs(BENCHMARK, preset, tmp_path, sizes={"val": 8, "test": 20})
    results = judge(BENCHMARK, preset, tmp_path, settings=QUICK)
    length = results.cell("cells", 0.1, "conformal", "val_interval_length")
    assert length.ours.mean == np.inf
    assert np.isfinite(length.by_their_rule.mean)
    assert results.cell("cells", 0.1, "conformal", "test_coverage").ours.mean == 1.0


def test_tie_groups_hold_the_row_nearest_to_the_level(made):
    settings = Settings(resamples=500)
    preset = replace(TINY, variants=TINY.variants[1:], rows=(*FIVE, "gaussian_gmm"))
    results = judge(BENCHMARK, preset, made, settings=settings)
    (group,) = (
        group
        for key, group in results.ties.items()
        if key.score == "test_coverage" and key.alpha == 0.1
    )
    assert group.members == ("gaussian_gmm",)
    assert all(
        "gaussian_gmm" not in g.p
        for k, g in results.ties.items()
        if k.score != "test_coverage"
    )


def test_without_draws_enough_there_are_no_tie_groups(judged):
    assert judged.ties == {}


def test_a_missing_run_is_listed_and_costs_its_repeats_only(copied):
    shutil.rmtree(folder(copied, "cells", "gaussian", 3))
    results = judge(BENCHMARK, TINY, copied, settings=BARE)
    (missing,) = results.missing
    assert (missing.method, missing.seed) == ("gaussian", 3)
    assert missing.reason == "was not run"
    assert len(results.cell("cells", 0.1, "gaussian", "test_coverage").values) == 4
    pooled = results.cell("cells", 0.1, "gaussian_ensemble", "test_coverage")
    assert pooled.values == ()
    assert "1 of 5 runs of gaussian are missing" in pooled.why
    assert results.cell("cells", 0.1, "ensemble", "test_coverage").values


def test_a_run_without_test_predictions_or_unreadable_ones_is_missing(copied):
    at = folder(copied, "cells", "conformal", 0) / "predictions"
    (at / "test.safetensors").unlink()
    at = folder(copied, "cells", "conformal", 1) / "predictions"
    (at / "val.safetensors").write_bytes(b"cut short")
    results = judge(BENCHMARK, TINY, copied, settings=BARE)
    reasons = [missing.reason for missing in results.missing]
    assert "has no predictions of split 'test' yet" in reasons[0]
    assert "val.safetensors: is not a readable" in reasons[1]


def test_a_folder_without_runs_leaves_every_cell_empty(tmp_path):
    results = judge(BENCHMARK, TINY, tmp_path, settings=QUICK)
    assert len(results.missing) == 30
    assert all(cell.values == () and cell.why for cell in results.cells.values())
    assert not any(check.known or check.held for check in results.checks)


def test_predictions_without_the_selection_score_say_so(copied):
    for seed in range(5):
        at = folder(copied, "cells", "gaussian", seed) / "predictions"
        for path in at.iterdir():
            held = predictions.read(path)
            arrays = {k: a for k, a in held.arrays.items() if k != "select/knn10"}
            predictions.write(
                path, arrays, header=replace(held.header, select={"gmm4": "logmeanexp"})
            )
    results = judge(BENCHMARK, TINY, copied, settings=BARE)
    cell = results.cell("cells", 0.1, "gaussian_knn", "test_coverage")
    assert cell.why == "the predictions have no 'select/knn10'"
    assert results.cell("cells", 0.1, "gaussian_gmm", "test_coverage").values


def test_quantiles_of_another_alpha_are_not_taken(copied):
    for seed in range(5):
        at = folder(copied, "cells", "quantile", seed) / "predictions"
        for path in at.iterdir():
            held = predictions.read(path)
            predictions.write(path, held, header=replace(held.header, alpha=0.3))
    results = judge(BENCHMARK, TINY, copied, settings=BARE)
    cell = results.cell("cells", 0.1, "quantile", "test_coverage")
    assert cell.why == "the predictions are for alpha 0.3, not 0.1"


def test_cells_of_other_presets_say_so(judged):
    cell = judged.cell("cells", 0.1, "laplace", "test_coverage")
    assert cell.why == "not part of preset demo"


@pytest.mark.parametrize(("low", "held"), [(0.3, True), (0.5, False)])
def test_an_expectation_holds_only_for_all_of_its_rows(made, low, held):
    expected = Expectation(
        text="drop",
        variant="cells",
        minus="cells_tails",
        rows=("conformal", "gaussian"),
        score="test_coverage",
        low=low,
        high=1.0,
    )
    benchmark = replace(BENCHMARK, expectations={"demo": (expected,)})
    (check,) = judge(benchmark, TINY, made, settings=BARE).checks
    assert check.known
    assert check.held is held


def test_the_benchmark_names_the_scores_that_are_taken():
    assert BENCHMARK.scores == SCORES


def test_a_benchmark_of_another_task_is_refused(tmp_path):
    with pytest.raises(ValueError, match="is one of segmentation"):
        judge(replace(BENCHMARK, task="segmentation"), TINY, tmp_path)
