"""Judging the regression benchmark from predictions files alone."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from evaluate.made_runs import make_runs
from plans import part_of, run_of
from qualms import inference, predictions, scores
from qualms.benchmarks.regression import regression
from qualms.benchmarks.regression._protocol import SCORES
from qualms.effects import value_of
from qualms.evaluate import ScoreOptions
from qualms.evaluate.benchmark import judge_plan
from qualms.evaluate.entry import Curve, Histogram, Judgement
from qualms.evaluate.estimates import mean_curves, mean_histograms
from qualms.evaluate.protocol import Repeat, protocol_of
from qualms.predictions import build
from qualms.runs import mark_done
from qualms.scores import mean_neighbour_distance
from qualms.spec import Part
from qualms.study import Expectation, Line, TableRow

GOLDEN = json.loads(
    (Path(__file__).parents[1] / "golden" / "regression.json").read_text("utf-8")
)
BARE = ScoreOptions(resamples=0)
QUICK = ScoreOptions(resamples=50)
BENCHMARK = regression()
PROTOCOL = protocol_of(BENCHMARK)
DEMO, SMALL, PAPER = (BENCHMARK.plan(name) for name in ("demo", "small", "paper"))
TINY = replace(
    DEMO, variants=tuple(SMALL.variant(name) for name in ("cells", "cells_tails"))
)
GAUSSIAN, MAP = Part(name="gaussian"), Part(name="map")


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    out = tmp_path_factory.mktemp("runs")
    make_runs(TINY, out)
    return out


@pytest.fixture(scope="module")
def judged(made):
    return judge_plan(TINY, made, options=QUICK)


@pytest.fixture
def copied(made, tmp_path):
    return Path(shutil.copytree(made, tmp_path / "copy"))


def folder(out, variant, row, seed, alpha=0.1):
    return out / "regression" / run_of(TINY, variant, row, seed, alpha=alpha).hash


def number(results, variant, row, subset, score, alpha=0.1):
    at = {"variant": variant, "row": row, "alpha": alpha}
    return results.result(**at, subset=subset, score=score)


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
                pool=size,
                labels={"interval": "gaussian"},
                settings={"select": select},
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
        select[name] = mean_neighbour_distance(
            query=features, reference=train, metric=metric, k=k
        )
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
    rows = golden_rows()
    plan = replace(
        TINY,
        benchmark=replace(BENCHMARK, rows=rows),
        preset=replace(TINY.preset, trained={}),
        variants=(SMALL.variant("cells"),),
        rows=rows,
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
    for spec in plan.runs:
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
    return request.param, judge_plan(plan, out, options=BARE)


IN_TABLE = {
    "val_mae": ("val", "mae"),
    "val_mean_length": ("val", "interval_length"),
    "test_coverage": ("test", "coverage"),
    "test_mean_length": ("test", "interval_length"),
    "test_mae": ("test", "mae"),
    "test_prediction_rate": ("test", "prediction_rate"),
    "test_coverage_on_predicted": ("test", "coverage"),
    "test_mean_length_on_predicted": ("test", "interval_length"),
}


@pytest.mark.parametrize("alpha", [0.1, 0.2, 0.05])
def test_every_golden_row_comes_out_of_files(golden_judged, alpha):
    ending, results = golden_judged
    # float32 moves numbers in the seventh digit, and may move one item over an edge.
    near = {"rel": 1e-9} if ending == ".npz" else {"rel": 1e-6, "abs": 1.1 / 1500}
    golden = GOLDEN["cases"]["n2000"][f"alpha_{alpha}"]
    rows = {name: golden[name] for name in FIVE} | golden["selective"]
    judged = {row.name for row in results.plan.rows}
    compared = 0
    for name in judged:
        for key, expected in rows[name].items():
            if key in IN_TABLE:
                value = number(results, "cells", name, *IN_TABLE[key], alpha)
                assert value.released == pytest.approx(expected, **near), key
                compared += 1
    assert len(judged) == 15
    assert compared == 5 * 5 + 10 * 3


def invented(n=60, seed=0):
    """Predictions of intervals with a selection score, ends and targets at random."""
    rng = np.random.default_rng(seed)
    target = rng.normal(0, 10, n)
    mean = (target + rng.normal(0, 3, n))[None]
    chosen = rng.random((1, n)).round(3)
    arrays = {"target": target, "mean": mean, "var": rng.gamma(2, 2, (1, n))}
    return build(arrays | {"select/far": chosen}, header={"select": {"far": "mean"}})


def entries(val, test, alpha=0.1, **settings):
    """What the protocol says about two splits, by split and score."""
    row = TableRow(
        name="r",
        label="R",
        method=Part(name="gaussian"),
        settings={"interval": "gaussian", **settings},
    )
    line = Line(TINY.variants[0], row, {"alpha": alpha}, {}, ())
    splits = {"val": val, "test": test}
    judgement = PROTOCOL.judge(Repeat(line, splits.__getitem__, BARE))
    return {(entry.subset, entry.score_name): entry for entry in judgement.entries}


@pytest.mark.parametrize("alpha", [0.1, 0.2, 0.05])
def test_ours_takes_the_finite_sample_rank(alpha):
    val, test = invented(57), invented(80, seed=1)
    moments = [split.arrays["mean"][0] for split in (val, test)]
    ends = [
        scores.gaussian_interval(mean=m, var=split.arrays["var"][0], alpha=alpha)
        for m, split in zip(moments, (val, test), strict=True)
    ]
    target = val.arrays["target"]
    outside = np.sort(np.maximum(ends[0].lower - target, target - ends[0].upper))
    offset = outside[int(np.ceil((1 - alpha) * 58)) - 1]
    covered = scores.coverage(
        lower=ends[1].lower - offset,
        upper=ends[1].upper + offset,
        target=test.arrays["target"],
    )
    assert entries(val, test, alpha)["test", "coverage"].value == covered


def test_selection_keeps_at_least_its_share_of_validation_items():
    val = invented(57)
    rate = entries(val, val, select="far")["test", "prediction_rate"].value
    assert 0.95 <= rate < 0.95 + 2 / 57


@pytest.mark.parametrize("alpha", [0.1, 0.05])
def test_intervals_cover_what_other_validation_items_change(alpha):
    """Against scores of validation and test items drawn anew from the population."""
    scored_entries = entries(invented(400), invented(400, seed=1), alpha, select="far")
    for name in (
        *(("test", "coverage"), ("test", "prediction_rate")),
        ("val", "interval_length"),
    ):
        drawn = [
            entries(
                invented(400, seed=10 + 2 * i),
                invented(400, seed=11 + 2 * i),
                alpha,
                select="far",
            )[name].value
            for i in range(150)
        ]
        influence = scored_entries[name].influence().values
        error = np.sqrt(np.square(influence).sum())
        assert error == pytest.approx(np.std(drawn), rel=0.3), name


def shifted_predictions(n, share, seed):
    """Items of two kinds; `share` of them are hard, which the variance betrays."""
    rng = np.random.default_rng(seed)
    hard = rng.random(n) < share
    target = rng.normal(0, 5, n)
    mean = target + rng.normal(0, np.where(hard, 6.0, 1.0))
    var = np.where(hard, 4.0, 1.0) + rng.random(n) * 0.1
    return build({"target": target, "mean": mean, "var": var})


def test_weighted_calibration_restores_coverage_under_covariate_shift():
    val, test = shifted_predictions(4000, 0.2, 0), shifted_predictions(4000, 0.6, 1)
    plain = entries(val, test, interval="point")["test", "coverage"]
    mended = entries(val, test, interval="point", weighted=True)["test", "coverage"]
    assert plain.value < 0.82
    assert mended.value == pytest.approx(0.9, abs=0.03)


def test_weighted_calibration_is_held_fixed():
    val, test = shifted_predictions(400, 0.2, 0), shifted_predictions(400, 0.6, 1)
    scored_entries = entries(val, test, interval="point", weighted=True)
    for name in (("val", "mae"), ("test", "coverage"), ("test", "mae")):
        influence = scored_entries[name].influence()
        assert influence.value == pytest.approx(scored_entries[name].value, rel=1e-12)
        of_val, of_test = np.split(influence.values, 2)
        other = of_test if name[0] == "val" else of_val
        assert not other.any()


def test_an_unbounded_interval_makes_the_length_infinite_and_nothing_else():
    val, test = shifted_predictions(30, 0.0, 0), shifted_predictions(300, 0.97, 1)
    scored_entries = entries(val, test, alpha=0.02, interval="point", weighted=True)
    assert scored_entries["test", "interval_length"].value == np.inf
    assert 0 < scored_entries["test", "unbounded_fraction"].value <= 1
    assert scored_entries["test", "interval_length"].influence is None
    assert np.isfinite(scored_entries["test", "coverage"].value)


def test_every_line_has_every_score_or_says_why(judged):
    assert judged.missing == ()
    empty = [row for row in judged.table if not row.values]
    assert {(row.labels["row"], row.labels["alpha"]) for row in empty} == {
        ("quantile", 0.2),
        ("quantile", 0.05),
    }
    assert {row.why for row in empty} == {
        "preset demo trains quantile for alpha 0.1 only"
    }
    for line in judged.plan.lines:
        rows = judged.table.where(**line.labels)
        scores_of_line = [(r.labels.get("subset"), r.labels.get("score")) for r in rows]
        assert scores_of_line == (list(SCORES) if line.pools else [(None, None)])


def test_no_two_numbers_have_the_same_labels(judged):
    labels = [tuple(sorted(row.labels.items())) for row in judged.table]
    assert len(set(labels)) == len(labels) > 100


def test_the_expected_effects_show_in_invented_runs(judged):
    assert len(judged.checks) == 4
    assert all(check.known and check.held for check in judged.checks)
    restored = judged.checks[3].values["gaussian_gmm"]
    selective, plain = (
        number(judged, "cells_tails", row, "test", "coverage").value
        for row in ("gaussian_gmm", "gaussian")
    )
    assert restored == pytest.approx(selective - plain)


def test_a_number_is_the_mean_over_repeats(judged, made):
    value = number(judged, "cells", "gaussian", "val", "mae")
    errors = []
    for seed in range(5):
        at = folder(made, "cells", "gaussian", seed) / "predictions" / "val.safetensors"
        arrays = predictions.read(at).arrays
        errors.append(np.abs(arrays["mean"][0] - arrays["target"]).mean())
    assert value.values == pytest.approx(errors)
    assert value.value == pytest.approx(np.mean(errors))
    assert value.spread == pytest.approx(np.std(errors))


def test_an_ensemble_of_all_runs_has_one_repeat_and_no_spread(judged):
    value = number(judged, "cells", "ensemble", "test", "coverage")
    assert len(value.values) == 1
    assert np.isnan(value.spread)
    assert any("one pool" in note for note in judged.notes)


def test_intervals_surround_their_values(judged):
    for found in judged.table.where(subset="test", score="coverage"):
        assert found.low <= found.value <= found.high
        assert found.interval_method


def test_selection_leaves_validation_scores_alone(judged):
    for score in ("mae", "interval_length"):
        base = number(judged, "cells_tails", "gaussian", "val", score)
        selected = number(judged, "cells_tails", "gaussian_gmm", "val", score)
        assert base.values == selected.values
    rate = number(judged, "cells_tails", "gaussian_gmm", "test", "prediction_rate")
    assert 0.4 < rate.value < 0.65


def test_judging_twice_gives_the_same_numbers(made, judged):
    again = judge_plan(TINY, made, options=QUICK)
    assert repr(list(again.table)) == repr(list(judged.table))


def test_rows_not_in_the_paper_have_no_number_by_its_rule(judged):
    value = number(judged, "cells", "gaussian_weighted", "test", "coverage")
    assert value.values
    assert value.released_values == ()


def test_graded_variants_are_the_test_items_in_their_range(made):
    graded = DEMO.variant("cells_tails_v1")
    plan = replace(TINY, variants=(replace(graded, dataset=TINY.variants[1].dataset),))
    results = judge_plan(plan, made, options=QUICK)
    at = folder(made, "cells_tails", "conformal", 0) / "predictions"
    val, test = (
        predictions.read(at / f"{split}.safetensors").arrays
        for split in ("val", "test")
    )
    outside = np.sort(np.abs(val["mean"][0] - val["target"]))
    offset = outside[int(np.ceil(0.9 * (len(outside) + 1))) - 1]
    keep = (test["target"] >= 37.5) & (test["target"] <= 163.5)
    inside = np.abs(test["mean"][0] - test["target"])[keep] <= offset
    value = number(results, "cells_tails_v1", "conformal", "test", "coverage")
    assert value.values[0] == pytest.approx(inside.mean(), abs=1.1 / keep.sum())
    assert set(results.table.distinct("row")) == set(graded.rows)


def test_variants_of_the_same_runs_are_judged_on_their_own_test_splits(tmp_path):
    cities = tuple(v for v in PAPER.variants if v.name.startswith("aerial"))
    plan = replace(part_of(TINY, rows=("conformal",)), variants=cities)
    sizes = {"val": 200, "test": 60, "test/kitsap": 50, "test/vienna": 40}
    make_runs(plan, tmp_path, sizes=sizes)
    results = judge_plan(plan, tmp_path, options=QUICK)
    for city in cities:
        spec = run_of(plan, city.name, "conformal", 0, alpha=0.1)
        run = tmp_path / "regression" / spec.hash
        file = f"{city.test.replace('/', '~')}.safetensors"
        test = predictions.read(run / "predictions" / file).arrays
        error = np.abs(test["mean"][0] - test["target"]).mean()
        value = number(results, city.name, "conformal", "test", "mae")
        assert len(test["target"]) == sizes[city.test]
        assert value.values[0] == pytest.approx(error)


def test_too_few_validation_items_leave_ours_unbounded(tmp_path):
    plan = part_of(TINY, variants=("cells",), rows=("conformal",))
    make_runs(plan, tmp_path, sizes={"val": 8, "test": 20})
    results = judge_plan(plan, tmp_path, options=QUICK)
    length = number(results, "cells", "conformal", "val", "interval_length")
    assert length.value == np.inf
    assert np.isfinite(length.released)
    assert number(results, "cells", "conformal", "test", "coverage").value == 1.0


def test_tie_groups_hold_the_row_nearest_to_the_level(made):
    plan = part_of(TINY, variants=("cells_tails",), rows=(*FIVE, "gaussian_gmm"))
    results = judge_plan(plan, made, options=ScoreOptions(resamples=500))
    column = results.table.where(subset="test", score="coverage", alpha=0.1)
    tied = [row.labels["row"] for row in column if row.tied]
    assert tied == ["gaussian_gmm"]
    for row in results.table.where(row="gaussian_gmm", subset="test"):
        if row.labels["score"] != "coverage":
            assert not row.tied
            assert np.isnan(row.difference)


def test_scores_that_selection_cannot_change_have_one_mark(made):
    plan = part_of(TINY, variants=("cells_tails",), rows=(*FIVE, "gaussian_gmm"))
    results = judge_plan(plan, made, options=ScoreOptions(resamples=500))
    marks = []
    for score in ("mae", "interval_length"):
        for row in results.table.where(row="gaussian_gmm", subset="val", score=score):
            labels = {n: row.labels[n] for n in ("variant", "subset", "score", "alpha")}
            base = results.table.at(**labels, row="gaussian")
            assert row.value == base.value
            assert row.tied == base.tied
            assert row.no_winner == base.no_winner
            marks.append((row.tied, row.no_winner))
    assert marks


def test_every_ranked_column_has_a_best_row_and_differences_from_it(judged):
    ranked = [row for row in judged.table if row.best]
    assert {(row.labels["subset"], row.labels["score"]) for row in ranked} == {
        ("val", "mae"),
        ("val", "interval_length"),
        ("test", "coverage"),
    }
    names = ("variant", "alpha", "subset", "score")
    for row in ranked:
        column = {name: row.labels[name] for name in names}
        best = judged.table.at(**column, row=row.best)
        assert best.tied
        assert best.difference == 0.0


def test_lent_weights_are_paid_for_once(tmp_path):
    row = DEMO.rows[0]
    lent = replace(row, name="lent", weights_of=row.name)
    benchmark = replace(BENCHMARK, rows=(row, lent), expectations={})
    plan = replace(
        TINY, benchmark=benchmark, rows=(row, lent), variants=TINY.variants[:1]
    )
    make_runs(plan, tmp_path)
    results = judge_plan(plan, tmp_path, options=BARE)
    runs = plan.runs
    assert len({spec.start for spec in runs}) == len(runs) // 2 + 1
    assert results.seconds == 2.0 * len(runs) / 2
    name = plan.variants[0].name
    theirs = results.costs[name, "lent"]._replace(per_epoch=None)
    assert theirs == results.costs[name, row.name]._replace(per_epoch=None)


def test_shifted_items_are_joined_along_the_axis_of_items(monkeypatch):
    def items(n, draws):
        shape = (draws, n)
        arrays = {
            "mean": np.ones(shape),
            "select/a": np.ones((1, n)),
            "target": [2] * n,
        }
        extra = {"extra/row": np.zeros((n, 3)), "extra/all": np.zeros(7)}
        return build(arrays | extra)

    splits = {"test": items(2, 5), "test/shifted": items(5, 5)}
    judged = []
    monkeypatch.setattr(
        "qualms.evaluate.protocol.judge_file", lambda *a: judged.append(a[0])
    )
    variant = replace(TINY.variants[0], test="test", splits=tuple(splits))
    line = Line(variant, BENCHMARK.rows[0], {}, {}, ())
    mine = replace(BENCHMARK, name="mine", protocol=None)
    protocol_of(mine).judge(Repeat(line, splits.get, BARE))
    shapes = {name: array.shape for name, array in judged[0].arrays.items()}
    assert shapes == {
        "mean": (5, 7),
        "select/a": (1, 7),
        "target": (7,),
        "extra/row": (7, 3),
        "shifted": (7,),
    }


def test_costs_stand_in_the_folder_of_a_run_or_in_headers_of_former_versions(copied):
    former = judge_plan(TINY, copied, options=BARE)
    for spec in TINY.runs:
        path = copied / BENCHMARK.name / spec.hash
        mark_done(path, spec, {"seconds": 3.0, "pace": {}})
    results = judge_plan(TINY, copied, options=BARE)
    assert results.seconds == former.seconds * 3 / 2
    for line, cost in former.costs.items():
        expected = None if cost.seconds is None else cost.seconds * 3 / 2
        assert results.costs[line].seconds == expected


def test_a_missing_run_is_listed_and_costs_its_repeats_only(copied):
    shutil.rmtree(folder(copied, "cells", "gaussian", 3))
    results = judge_plan(TINY, copied, options=BARE)
    (missing,) = results.missing
    assert (missing.method, missing.seed) == ("gaussian", 3)
    assert missing.reason == "was not run"
    alone = number(results, "cells", "gaussian", "test", "coverage")
    assert len(alone.values) == 4
    pooled = number(results, "cells", "gaussian_ensemble", "test", "coverage")
    assert pooled.values == ()
    assert "1 of 5 runs of gaussian are missing" in pooled.why
    assert number(results, "cells", "ensemble", "test", "coverage").values


def test_a_run_without_test_predictions_or_unreadable_ones_is_missing(copied):
    at = folder(copied, "cells", "conformal", 0) / "predictions"
    (at / "test.safetensors").unlink()
    at = folder(copied, "cells", "conformal", 1) / "predictions"
    (at / "val.safetensors").write_bytes(b"cut short")
    results = judge_plan(TINY, copied, options=BARE)
    reasons = [missing.reason for missing in results.missing]
    assert "has no predictions of split 'test' yet" in reasons[0]
    assert "val.safetensors: is not a readable" in reasons[1]


def test_a_folder_without_runs_leaves_every_line_empty(tmp_path):
    results = judge_plan(TINY, tmp_path, options=QUICK)
    assert len(results.missing) == 30
    assert len(results.table) == len(TINY.lines)
    assert all(row.values == () and row.why for row in results.table)
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
    results = judge_plan(TINY, copied, options=BARE)
    value = number(results, "cells", "gaussian_knn", "test", "coverage")
    assert value.why == "the predictions have no 'select/knn10'"
    assert number(results, "cells", "gaussian_gmm", "test", "coverage").values


def test_quantiles_of_another_alpha_are_not_taken(copied):
    for seed in range(5):
        at = folder(copied, "cells", "quantile", seed) / "predictions"
        for path in at.iterdir():
            held = predictions.read(path)
            predictions.write(path, held, header=replace(held.header, alpha=0.3))
    results = judge_plan(TINY, copied, options=BARE)
    value = number(results, "cells", "quantile", "test", "coverage")
    assert value.why == "the predictions are for alpha 0.3, not 0.1"


def test_numbers_of_other_presets_say_so(judged):
    value = number(judged, "cells", "laplace", "test", "coverage")
    assert value.why == "not part of preset demo"
    assert value.labels["row"] == "laplace"


@pytest.mark.parametrize(("low", "held"), [(0.3, True), (0.5, False)])
def test_an_expectation_holds_only_for_all_of_its_rows(made, low, held):
    coverage = {"variant": "cells", "subset": "test", "score": "coverage", "alpha": 0.1}
    expected = Expectation(
        text="drop",
        numbers=value_of(
            ("conformal", "gaussian"), coverage, minus={"variant": "cells_tails"}
        ),
        low=low,
        high=1.0,
    )
    benchmark = replace(BENCHMARK, expectations={"demo": (expected,)})
    plan = replace(TINY, benchmark=benchmark)
    (check,) = judge_plan(plan, made, options=BARE).checks
    assert check.known
    assert check.held is held


def test_the_protocol_gives_the_scores_that_it_declares():
    scored_entries = entries(invented(), invented(seed=1))
    assert tuple(scored_entries) == tuple(SCORES)


def test_a_benchmark_without_a_protocol_is_judged_by_its_task(made, judged):
    own = replace(BENCHMARK, name="own", protocol=None, expectations={})
    plan = replace(TINY, benchmark=own)
    out = made.parent / "own_runs"
    make_runs(plan, out)
    results = judge_plan(plan, out, options=QUICK)
    assert not results.missing
    value = number(results, "cells", "gaussian", "all", "mae")
    ours = number(judged, "cells", "gaussian", "test", "mae")
    assert len(value.values) == len(ours.values) == 5
    assert value.low < value.value < value.high
    coverage = results.table.where(
        variant="cells", row="gaussian", alpha=0.1, interval="conformal"
    )
    assert coverage.at(
        subset="all", score="coverage", select=None, predicted=None
    ).values


def drawn(points, highest):
    """A judgement that draws a curve of so many points, and counts up to `highest`."""
    named = {"name": "drawn", "label": "drawn", "subset": "all"}
    curve = Curve(**named, x_label="x", x=np.arange(points), y=np.ones(points))
    edges = np.linspace(0, highest, 3)
    bars = Histogram(**named, edges=edges, parts={"all": np.ones(2)})
    design = inference.Design(items=1)
    return Judgement(entries=(), design=design, curves=(curve,), histograms=(bars,))


def test_drawings_that_differ_between_repeats_have_no_mean():
    same = [drawn(3, 1.0), drawn(3, 1.0)]
    assert len(mean_curves(same)) == len(mean_histograms(same)) == 1
    assert mean_curves([drawn(3, 1.0), drawn(2, 1.0)]) == []
    assert mean_histograms([drawn(3, 1.0), drawn(3, 2.0)]) == []


def test_repeats_of_a_reliability_diagram_count_where_they_have_items():
    def diagram(x, y):
        curve = Curve(
            name="reliability",
            label="accuracy",
            subset="all",
            x_label="confidence",
            x=np.array(x),
            y=np.array(y),
        )
        design = inference.Design(items=1)
        return Judgement(entries=(), design=design, curves=(curve,))

    (mean,) = mean_curves([diagram([0.5, 0.99], [0.2, 1.0]), diagram([0.97], [0.8])])
    np.testing.assert_allclose(mean.x, [0.5, 0.98])
    np.testing.assert_allclose(mean.y, [0.2, 0.9])
