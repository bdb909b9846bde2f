"""Judging the retina benchmark from predictions files alone."""

import json
import math
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy import special, stats
from sklearn import metrics

from evaluate.made_referrals import make_runs
from plans import line_of, part_of, run_of
from qualms import predictions, scores
from qualms.benchmarks.retina import retina
from qualms.effects import value_of
from qualms.evaluate import Curve, Judgement, ScoreOptions
from qualms.evaluate.benchmark import judge_plan
from qualms.evaluate.drawings import thinned_referral
from qualms.evaluate.estimates import mean_curves
from qualms.evaluate.protocol import Repeat, protocol_of
from qualms.evaluate.subsets import rebalanced
from qualms.evaluate.truth import ONE_DRAW, UNKNOWN
from qualms.inference import sampling_design
from qualms.predictions import pool, read
from qualms.report.judged import table_cell
from qualms.scores.as_published import retina as published
from qualms.study import Expectation

GOLDEN = json.loads(
    (Path(__file__).parents[1] / "golden" / "retina.json").read_text("utf-8")
)
BENCHMARK = retina()
DEMO = BENCHMARK.plan("demo")
TINY = part_of(DEMO, rows=("map", "mc_dropout", "map_pair", "mc_dropout_pair"))
ONE = part_of(TINY, rows=("map", "map_pair"), variants=("country",))
DROPOUT = part_of(TINY, rows=("mc_dropout",), variants=("country",))
BARE = ScoreOptions(resamples=0)
QUICK = ScoreOptions(resamples=200, workers=2)
CURVES = ("accuracy", "nll", "auroc", "auprc")
SETS = ("in_domain", "shifted", "joint", "balanced", "rebalanced")
OF_A_SET = (
    *((name, None) for name in (*CURVES, "ece")),
    *((name, tau) for name in ("accuracy", "auroc") for tau in (0.5, 0.7)),
    *((f"referral_{name}_area", None) for name in CURVES),
    *((f"referral_{name}_oracle_area", None) for name in CURVES),
)
OF_PARTS = (
    *(("joint", "ood_auroc"), ("joint", "ood_auprc")),
    *(("in_domain", "aleatoric_spearman"), ("in_domain", "aleatoric_mae")),
    *(("in_domain", "total_spearman"), ("in_domain", "total_mae")),
    ("in_domain", "epistemic_spearman"),
    *(("joint", "epistemic_shift_auroc"), ("joint", "total_shift_auroc")),
    *(("joint", "aleatoric_shift_auroc"), ("joint", "true_entropy_shift_auroc")),
    *(
        (part, "sensitivity_at_specificity")
        for part in ("in_domain", "shifted", "joint")
    ),
)


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


def folder(out, variant, method, seed):
    return out / "retina" / run_of(TINY, variant, method, seed).hash / "predictions"


def number(results, variant, row, subset, score, referred=None):
    at = {"variant": variant, "row": row, "subset": subset}
    return results.result(**at, score=score, referred=referred)


def curve_of(results, variant, row, subset, name):
    return results.curves.get(variant=variant, row=row, subset=subset, name=name)


def both(out, variant, method, seeds):
    """Mean P(y=1), targets and shift of the joint set, from the files themselves."""
    splits = [
        pool([read(folder(out, variant, method, seed) / name) for seed in seeds])
        for name in ("test.npz", "test~shifted.npz")
    ]
    prob = np.concatenate([s.arrays["probs"][:, :, 1].mean(0) for s in splits])
    target = np.concatenate([s.arrays["target"] for s in splits])
    shifted = np.concatenate([s.arrays["shifted"] for s in splits])
    return prob, target, shifted


def entropy(p):
    return -(p * np.log(p) + (1 - p) * np.log(1 - p))


def trapezoid(target, score):
    precision, recall, _ = metrics.precision_recall_curve(target, score)
    return metrics.auc(recall, precision)


def rows_of(where, shifted):
    return {
        "in_domain": np.flatnonzero(~shifted),
        "shifted": np.flatnonzero(shifted),
        "joint": np.arange(len(shifted)),
        "balanced": scores.balanced_joint(shifted),
    }[where]


def test_every_line_has_every_score(judged):
    wanted = {(subset, *score) for subset in SETS for score in OF_A_SET}
    wanted |= {(*score, None) for score in OF_PARTS}
    assert len(judged.plan.lines) == 8
    for line in judged.plan.lines:
        rows = judged.table.where(**line.labels)
        names = ("subset", "score", "referred")
        assert {tuple(map(row.labels.get, names)) for row in rows} == wanted
        assert len(rows) == len(wanted)
        assert all(row.values or row.why for row in rows)


def test_every_number_says_its_shift_selection_and_data(judged):
    for row in judged.table:
        labels = row.labels
        assert labels["benchmark"] == "retina"
        assert labels["preset"] == "demo"
        assert labels["variant"] == labels["shift"]
        assert labels["selection"] == "in_domain"
        assert labels["simulated"] is True
        assert labels["onset"] == "moderate"
        assert labels["pool"] == (2 if labels["row"].endswith("_pair") else 1)
        assert labels["row"].removesuffix("_pair") == labels["method"]


@pytest.mark.parametrize("where", ["in_domain", "shifted", "joint", "balanced"])
@pytest.mark.parametrize("row", ["map", "mc_dropout_pair"])
def test_scores_are_those_of_an_outside_reference(judged, made, where, row):
    pools = {"map": [(42,), (43,)], "mc_dropout_pair": [(42, 43)]}[row]
    method = row.removesuffix("_pair")
    for repeat, seeds in enumerate(pools):
        prob, target, shifted = both(made, "country", method, seeds)
        rows = rows_of(where, shifted)
        p, y = prob[rows], target[rows]

        def ours(score, referred=None, repeat=repeat):
            value = number(judged, "country", row, where, score, referred)
            return value.values[repeat]

        assert ours("accuracy") == pytest.approx(np.mean((p > 0.5) == y))
        assert ours("nll") == pytest.approx(metrics.log_loss(y, p))
        assert ours("auroc") == pytest.approx(metrics.roc_auc_score(y, p))
        assert ours("auprc") == pytest.approx(trapezoid(y, p))
        certain = np.argsort(entropy(p), kind="stable")[: len(p) - round(0.5 * len(p))]
        # Copies of an item in the balanced set are tied, which the sort above breaks.
        off = 0.01 if where == "balanced" else 1e-9
        hits = (p > 0.5) == y
        assert ours("accuracy", 0.5) == pytest.approx(hits[certain].mean(), abs=off)
        auroc = metrics.roc_auc_score(y[certain], p[certain])
        assert ours("auroc", 0.5) == pytest.approx(auroc, abs=off)


def test_detection_of_the_shift_is_by_the_total_entropy(judged, made):
    prob, _, shifted = both(made, "severity", "mc_dropout", (43,))
    value = number(judged, "severity", "mc_dropout", "joint", "ood_auroc")
    expected = metrics.roc_auc_score(shifted, entropy(prob))
    assert value.values[1] == pytest.approx(expected)
    value = number(judged, "severity", "mc_dropout", "joint", "ood_auprc")
    assert value.values[1] == pytest.approx(trapezoid(shifted, entropy(prob)))
    assert value.released_values == pytest.approx(value.values)


@pytest.mark.parametrize("name", CURVES)
@pytest.mark.parametrize("where", ["in_domain", "shifted", "joint", "balanced"])
def test_areas_are_those_of_the_curves_with_and_without_an_oracle(
    judged, made, where, name
):
    prob, target, shifted = both(made, "country", "mc_dropout", (42,))
    rows = rows_of(where, shifted)
    for oracle in (False, True):
        curve = scores.referral_curve(name, prob[rows], target[rows], oracle=oracle)
        score = f"referral_{name}_{'oracle_' if oracle else ''}area"
        value = number(judged, "country", "mc_dropout", where, score)
        assert value.values[0] == pytest.approx(curve.area, rel=1e-9)


@pytest.mark.parametrize("oracle", [False, True])
@pytest.mark.parametrize("name", CURVES)
@pytest.mark.parametrize("where", ["in_domain", "shifted", "joint", "balanced"])
@pytest.mark.parametrize("variant", ["country", "severity"])
def test_beside_the_paper_stand_the_curves_of_its_released_code(
    judged, made, variant, where, name, oracle
):
    prob, target, shifted = both(made, variant, "map", (42,))
    if where == "balanced":
        curve = published.balanced_referral_curve(
            name=name, probs=prob, target=target, shifted=shifted, oracle=oracle
        )
    else:
        rows = rows_of(where, shifted)
        curve = published.referral_curve(name, prob[rows], target[rows], oracle=oracle)
    score = f"referral_{name}_{'oracle_' if oracle else ''}area"
    value = number(judged, variant, "map", where, score)
    assert value.released_values[0] == pytest.approx(curve.area, rel=1e-12)


def test_published_balanced_ranking_is_that_of_the_joint_set_and_ours_is_not(judged):
    for score in ("auroc", "referral_auroc_area", "referral_auprc_oracle_area"):
        balanced = number(judged, "country", "map", "balanced", score)
        joint = number(judged, "country", "map", "joint", score)
        assert balanced.released_values == joint.released_values
        assert balanced.values != joint.values


def test_auprc_after_referral_is_close_on_large_sets():
    rng = np.random.default_rng(1)
    target = (rng.random(9_000) < 0.2).astype(int)
    p = 1 / (1 + np.exp(-(rng.normal(size=9_000) * 1.5 + 2 * target - 1.5)))
    probs = np.stack([1 - p, p], axis=1)
    split = predictions.build({"target": target, "probs": probs.round(4)})
    few = predictions.build({"target": target[:60], "probs": probs[:60]})
    found = {key: entry.value for key, entry in entries(split, few).items()}
    for name, close in (("auprc", 3e-4), ("accuracy", 1e-12), ("auroc", 1e-12)):
        exact = scores.referral_curve(name, probs.round(4), target)
        area = found["in_domain", f"referral_{name}_area", None]
        assert area == pytest.approx(exact.area, abs=close)


def test_a_golden_file_gives_the_golden_numbers(tmp_path):
    recipe = {}
    exec(GOLDEN["recipe_python"], recipe)
    case = recipe["case_mc"]()
    plan = replace(DROPOUT, alone=(42,))
    (spec,) = plan.runs
    path = tmp_path / "retina" / spec.hash / "predictions"
    path.mkdir(parents=True)
    for split in spec.splits:
        arrays = {"target": case["y"], "prob": case["samples"]}
        predictions.write(path / f"{split.replace('/', '~')}.npz", arrays)
    results = judge_plan(plan, tmp_path, options=BARE)

    def theirs(score, referred=None):
        at = ("country", "mc_dropout", "in_domain", score, referred)
        return number(results, *at).released_values[0]

    golden = GOLDEN["cases"]["A_mc_samples"]
    for name in ("accuracy", "auroc", "auprc"):
        assert theirs(name) == pytest.approx(golden["scalars"][name], rel=1e-9)
    assert theirs("ece") == pytest.approx(golden["scalars"]["ece_15bins"], rel=1e-9)
    expected = golden["scalars"]["nll_sklearn_log_loss"]
    assert theirs("nll") == pytest.approx(expected, rel=1e-9)
    for name in CURVES:
        for kind, infix in (("no_oracle", ""), ("oracle", "oracle_")):
            area = golden[kind]["area"][name]
            assert theirs(f"referral_{name}_{infix}area") == pytest.approx(area, 1e-9)
    for name in ("accuracy", "auroc"):
        curve = golden["no_oracle"]["curve"][name]
        points = dict(zip(GOLDEN["tau"], curve, strict=True))
        for tau in (0.5, 0.7):
            assert theirs(name, tau) == pytest.approx(points[tau], rel=1e-9)


def test_the_order_of_items_changes_nothing(judged, tmp_path):
    def shuffled(n):
        return np.random.default_rng(n).permutation(n)

    make_runs(DROPOUT, tmp_path, order=shuffled)
    results = judge_plan(DROPOUT, tmp_path, options=BARE)
    # The other sets draw rows by their number.
    compared = results.table.where(subset=("in_domain", "shifted", "joint"))
    assert len(compared) > 60
    joined = compared.join(judged.table)
    for i, row in enumerate(compared):
        assert row.values == pytest.approx(joined.number(i).values, rel=1e-9)


def test_what_is_undefined_has_no_value_and_says_why(judged):
    value = number(judged, "severity", "map", "shifted", "auroc")
    assert value.values == value.released_values == ()
    assert math.isnan(value.value)
    assert value.why == "only one class among these items"
    value = number(judged, "severity", "map", "rebalanced", "accuracy")
    assert value.values == ()
    assert value.why == "some grades of the in-domain items have no shifted item"


def test_a_missing_run_empties_its_pool_only(copied):
    shutil.rmtree(folder(copied, "country", "map", 43).parent)
    plan = replace(TINY, rows=ONE.rows)
    results = judge_plan(plan, copied, options=BARE)
    alone = number(results, "country", "map", "in_domain", "auroc")
    assert len(alone.values) == 1
    pair = number(results, "country", "map_pair", "in_domain", "auroc")
    assert pair.values == ()
    assert "1 of 2 runs of map are missing" in pair.why
    assert [(m.method, m.seed) for m in results.missing] == [("map", 43)]
    there = number(results, "severity", "map", "in_domain", "auroc")
    assert len(there.values) == 2


def test_a_split_without_predictions_counts_as_a_missing_run(copied):
    (folder(copied, "country", "map", 43) / "test~shifted.npz").unlink()
    results = judge_plan(ONE, copied, options=BARE)
    assert results.missing[0].reason == (
        "has no predictions of split 'test/shifted' yet"
    )


def test_three_classes_are_refused_with_a_reason(copied):
    for seed in (42, 43):
        for path in folder(copied, "country", "map", seed).iterdir():
            old = read(path)
            probs = np.full((1, old.n, 3), 1 / 3)
            arrays = {"target": old.arrays["target"], "probs": probs}
            path.unlink()
            predictions.write(path, arrays)
    results = judge_plan(ONE, copied, options=BARE)
    value = number(results, "country", "map", "in_domain", "auroc")
    assert "must have two classes" in value.why


def test_rebalanced_items_have_the_grades_of_the_in_domain_ones():
    counts = [31_403, 3_042, 6_282, 977, 966]
    group = np.repeat([*range(5), *range(5)], [*counts, 1418, 309, 814, 158, 230])
    shifted = np.arange(len(group)) >= sum(counts)
    rows = rebalanced(group, shifted)
    assert shifted[rows].all()
    drawn = np.bincount(group[rows])
    assert drawn.tolist() == [7_359, 712, 1_472, 228, 226]
    assert len(rows) == 9_997
    group[group == 3] = np.where(shifted[group == 3], 4, 3)
    assert rebalanced(group, shifted) is None


def test_estimates_are_compared_with_the_truth_of_the_simulator(judged, made):
    splits = [
        read(folder(made, "country", "mc_dropout", 42) / name)
        for name in ("test.npz", "test~shifted.npz")
    ]
    draws = [split.arrays["probs"] for split in splits]
    aleatoric = [-(p * np.log(p)).sum(-1).mean(0) for p in draws]
    total = [-(p.mean(0) * np.log(p.mean(0))).sum(-1) for p in draws]
    truth = splits[0].arrays["target_probs"]
    true = -(truth * np.log(truth)).sum(-1)

    def value(subset, score):
        return number(judged, "country", "mc_dropout", subset, score).values[0]

    for name, found in (("aleatoric", aleatoric), ("total", total)):
        rank = stats.spearmanr(found[0], true).statistic
        assert value("in_domain", f"{name}_spearman") == pytest.approx(rank)
        error = np.abs(found[0] - true).mean()
        assert value("in_domain", f"{name}_mae") == pytest.approx(error)
    shifted = np.repeat([0, 1], [split.n for split in splits])
    epistemic = np.concatenate(total) - np.concatenate(aleatoric)
    area = metrics.roc_auc_score(shifted, epistemic)
    assert value("joint", "epistemic_shift_auroc") == pytest.approx(area)
    # The runs were made to differ more under shift.
    assert area > 0.6
    whole = [special.entr(split.arrays["target_probs"]).sum(-1) for split in splits]
    told = metrics.roc_auc_score(shifted, np.concatenate(whole))
    assert value("joint", "true_entropy_shift_auroc") == pytest.approx(told)


def test_one_draw_has_no_epistemic_part(judged):
    value = number(judged, "country", "map", "joint", "epistemic_shift_auroc")
    assert value.values == ()
    assert value.why == ONE_DRAW
    pair = number(judged, "country", "map_pair", "joint", "epistemic_shift_auroc")
    assert len(pair.values) == 1


def test_without_a_truth_its_scores_are_left_out(tmp_path):
    make_runs(DROPOUT, tmp_path, truth=False)
    results = judge_plan(DROPOUT, tmp_path, options=BARE)
    value = number(results, "country", "mc_dropout", "in_domain", "aleatoric_mae")
    assert value.values == ()
    assert value.why == UNKNOWN
    known = number(results, "country", "mc_dropout", "joint", "epistemic_shift_auroc")
    assert len(known.values) == 2


def test_intervals_hold_the_value_and_narrow_with_the_level(made):
    one_run = replace(DROPOUT, seeds=(42,), alone=(42,))
    judged = judge_plan(one_run, made, options=QUICK)
    wide = {}
    for score in ("accuracy", "nll", "auroc", "referral_auroc_oracle_area"):
        for where in ("in_domain", "shifted", "joint", "balanced"):
            found = number(judged, "country", "mc_dropout", where, score)
            assert found.low < found.value < found.high
            assert found.covers == "items"
            wide[where, score] = found.high - found.low
    detection = number(judged, "country", "mc_dropout", "joint", "ood_auroc")
    assert detection.low < detection.value < detection.high
    low = judge_plan(one_run, made, options=replace(QUICK, level=0.5))
    for (where, score), width in wide.items():
        found = number(low, "country", "mc_dropout", where, score)
        assert found.high - found.low < width


def test_two_seeds_show_their_range_alone(judged):
    for score in ("accuracy", "ece", "referral_auroc_oracle_area"):
        found = number(judged, "country", "map", "in_domain", score)
        assert len(found.values) == 2
        assert found.covers == "these runs"
        assert math.isnan(found.low)
        assert "2 seeds do not show" in found.no_interval
        assert "do not show how far others may lie" in found.no_winner
        shown = table_cell(found).seeds
        assert shown == (min(found.values), max(found.values))
    assert any("rows of 2 runs have no interval" in note for note in judged.notes)
    assert not any("and other seeds" in note for note in judged.notes)


def test_influences_are_derivatives_of_the_scores(made):
    """Items that count a little more change a score by their influence."""
    path = folder(made, "country", "mc_dropout", 42)
    splits = [read(path / name) for name in ("test.npz", "test~shifted.npz")]
    found = entries(*splits)
    followed = {key: e.influence() for key, e in found.items() if e.influence}
    # Every score of every set, both of the shift, and those of the truth.
    sets = {key[0] for key, e in found.items() if len(e.index)}
    assert sets == {"in_domain", "shifted", "joint", "balanced", "rebalanced"}
    # The sensitivity at a specificity is of three sets.
    assert len(followed) == 5 * (5 + 4 + 8) + 3 + 2 + 4 + 2 + 3
    for key, influence in followed.items():
        if influence is not None and influence.values is not None:
            assert influence.value == pytest.approx(found[key].value, abs=1e-9), key
            assert len(influence.values) == len(found[key].index)


def entries(inside, outside):
    """What the protocol says about two splits, by set, score and share referred."""
    line = line_of(DEMO, "country", "mc_dropout")
    splits = {"test": inside, "test/shifted": outside}
    repeat = Repeat(line, splits.__getitem__, BARE)
    return {
        (entry.subset, entry.score_name, entry.settings.get("referred")): entry
        for entry in protocol_of(BENCHMARK).judge(repeat).entries
    }


def _repeated(split, counts):
    arrays = {
        name: np.repeat(array, counts, axis=1 if name == "probs" else 0)
        for name, array in split.arrays.items()
        if name != "item"
    }
    return predictions.build(arrays, header=split.header)


def test_an_interval_resamples_whole_patients(made, tmp_path):
    """Both eyes of every patient alike: half as many items say as much."""
    plan = part_of(TINY, rows=("map",), variants=("country",), alone=(42,))
    (spec,) = plan.runs
    widths = []
    for name, cluster in (("eyes", False), ("patients", True)):
        target = tmp_path / name / "retina" / spec.hash / "predictions"
        target.mkdir(parents=True)
        for path in folder(made, "country", "map", 42).iterdir():
            once = read(path)
            arrays = {
                "target": np.repeat(once.arrays["target"], 2),
                "probs": np.repeat(once.arrays["probs"], 2, axis=1),
            }
            if cluster:
                start = 0 if "shifted" in path.name else 10_000
                arrays["cluster"] = start + np.repeat(np.arange(once.n), 2)
            predictions.write(target / path.name, arrays)
        options = ScoreOptions(resamples=400)
        results = judge_plan(plan, tmp_path / name, options=options)
        value = number(results, "country", "map", "in_domain", "accuracy")
        widths.append(value.high - value.low)
    assert widths[1] / widths[0] == pytest.approx(math.sqrt(2), rel=0.15)


def test_workers_change_no_number(made, judged):
    alone = judge_plan(ONE, made, options=replace(QUICK, workers=1))
    assert len(alone.table) > 100
    joined = alone.table.join(judged.table)
    for i, row in enumerate(alone.table):
        same = joined.number(i)
        assert np.array_equal(row.values, same.values, equal_nan=True)
        ends = [row.low, row.high], [same.low, same.high]
        assert np.array_equal(*ends, equal_nan=True)


def test_the_best_rows_are_found_by_their_paired_replicates(judged):
    column = judged.table.where(variant="country", subset="in_domain", score="nll")
    means = {row.labels["row"]: row.value for row in column}
    assert {row.best for row in column} == {min(means, key=means.get)}
    undefined = judged.table.where(variant="severity", subset="shifted", score="auroc")
    assert {row.best for row in undefined.where(referred=None)} == {""}


def test_curves_are_means_over_repeats_with_their_standard_error(judged, made):
    band = curve_of(judged, "country", "map", "in_domain", "roc")
    assert band.x == pytest.approx(np.arange(51) / 50)
    low, high = np.zeros(51), np.zeros(51)
    for seed in (42, 43):
        prob, target, shifted = both(made, "country", "map", (seed,))
        fpr, tpr, _ = metrics.roc_curve(
            target[~shifted], prob[~shifted], drop_intermediate=False
        )
        for i, x in enumerate(band.x):
            after = fpr[fpr >= x - 1e-12].min()
            low[i] += tpr[fpr <= x + 1e-12].max() / 2
            high[i] += tpr[np.isclose(fpr, after)].max() / 2
    assert (band.y >= low - 1e-12).all()
    assert (band.y <= high + 1e-12).all()
    assert (np.diff(band.y) >= 0).all()
    curve = curve_of(judged, "country", "map", "shifted", "referral_accuracy")
    lines = []
    for seed in (42, 43):
        prob, target, shifted = both(made, "country", "map", (seed,))
        lines.append(
            scores.referral_curve("accuracy", prob[shifted], target[shifted]).value
        )
    assert curve.x == pytest.approx(np.arange(120) / 120)
    assert curve.y == pytest.approx(np.mean(lines, axis=0))
    assert curve.stderr == pytest.approx(stats.sem(lines))


def test_every_figure_has_its_curves(judged):
    names = {labels["name"] for labels, _ in judged.curves}
    assert names == {
        *(f"referral_{name}" for name in CURVES),
        *("roc", "ood_roc"),
    }
    assert curve_of(judged, "country", "map", "rebalanced", "roc") is not None
    assert curve_of(judged, "severity", "map", "joint", "ood_roc") is not None
    # One class has no ROC curve.
    assert curve_of(judged, "severity", "map", "shifted", "roc") is None
    pair = curve_of(judged, "country", "map_pair", "joint", "referral_nll")
    assert np.isnan(pair.stderr).all()


def test_a_band_leaves_out_repeats_that_are_undefined():
    def judgement(y):
        line = Curve(
            name="roc",
            label="",
            subset="all",
            x_label="",
            x=np.array([0.0, 0.5]),
            y=np.array(y),
        )
        return Judgement(entries=(), design=sampling_design(1), curves=(line,))

    (band,) = mean_curves([judgement([1.0, np.nan]), judgement([3.0, 4.0])])
    assert band.y.tolist() == [2.0, 4.0]
    assert band.stderr[0] == pytest.approx(1.0)
    assert np.isnan(band.stderr[1])


def test_a_long_curve_is_drawn_at_500_places_with_both_ends():
    rng = np.random.default_rng(0)
    prob = rng.random(4_000)
    curve = scores.referral_curve("accuracy", prob, rng.random(4_000) < prob)
    line = thinned_referral(curve, subset="all")
    assert len(line.x) == 500
    assert (line.x[0], line.x[-1]) == (0.0, 3_999 / 4_000)
    assert line.y[0] == curve.value[0]
    assert line.y[-1] == curve.value[-1]


def histogram(results, variant, subset, grade):
    at = {"variant": variant, "row": "map", "subset": subset}
    return results.histograms.get(**at, name=f"uncertainty/grade={grade}")


def test_histograms_split_each_grade_into_right_and_wrong(judged, made):
    _, target, shifted = both(made, "country", "map", (42,))
    group = np.concatenate(
        [
            read(folder(made, "country", "map", 42) / name).arrays["group"]
            for name in ("test.npz", "test~shifted.npz")
        ]
    )
    for where, grades in (("in_domain", "01234"), ("shifted", "01234")):
        for grade in grades:
            sides = histogram(judged, "country", where, grade)
            assert sides.edges[[0, -1]] == pytest.approx([0.0, math.log(2)])
            assert sum(part.sum() for part in sides.parts.values()) == pytest.approx(
                1.0
            )
    of_two = (group.astype(str) == "2") & ~shifted
    right = [
        np.mean(((p > 0.5) == target)[of_two])
        for p in (both(made, "country", "map", (seed,))[0] for seed in (42, 43))
    ]
    moderate = histogram(judged, "country", "in_domain", "2")
    assert moderate.parts["correct"].sum() == pytest.approx(np.mean(right))
    assert histogram(judged, "severity", "shifted", "0") is None


def test_effects_compare_rows_and_scores(made):
    labels = {"subset": "in_domain", "score": "accuracy"}
    expected = Expectation(
        text="",
        numbers=value_of(
            ("map_pair", "mc_dropout_pair"),
            {**labels, "variant": "country", "referred": 0.5},
            minus={"variant": "severity", "referred": None},
            minus_rows=("map", "mc_dropout"),
        ),
        low=0.0,
        high=1.0,
    )
    benchmark = replace(BENCHMARK, expectations={"demo": (expected,)})
    results = judge_plan(replace(TINY, benchmark=benchmark), made, options=BARE)
    (check,) = results.checks
    for pair, alone in (("map_pair", "map"), ("mc_dropout_pair", "mc_dropout")):
        own = number(results, "country", pair, "in_domain", "accuracy", 0.5).value
        other = number(results, "severity", alone, "in_domain", "accuracy").value
        assert check.values[pair] == pytest.approx(own - other)


def test_the_selection_and_what_differs_from_the_paper_are_noted(judged):
    notes = " ".join(judged.notes)
    assert "country: selection in_domain: chosen on in-domain validation" in notes
    assert "all items of a split count" in notes
    assert judged.hardware == ("an invented machine",)
    assert judged.seconds == 2.0 * 8
    assert judged.costs["country", "map"].seconds == 2.0 * 2


def test_pools_are_noted_where_there_are_some(tmp_path):
    def noted(**changed):
        results = judge_plan(part_of(DEMO, **changed), tmp_path, options=BARE)
        return [note for note in results.notes if "pool" in note]

    assert noted(rows=("map",)) == []
    assert noted(rows=("map",), seeds=(1, 2), pools=((1, 2), (2, 1))) == []
    assert noted(rows=("map", "map_pair"), seeds=(1, 2), pools=((1, 2),)) == []
    three = {"seeds": (1, 2, 3), "pools": ((1, 2, 3), (2, 3, 1))}
    (one,) = noted(rows=("map", "map_ensemble"), **three)
    assert one.startswith("the 3 runs form one pool: what other runs would change")
    (two,) = noted(rows=("map_pair",), seeds=(1, 2, 3), pools=((1, 2), (2, 3)))
    assert two.startswith("the 2 pools are drawn from 3 runs: they share some")
    apart = {"seeds": (1, 2, 3, 4), "pools": ((1, 2), (3, 4))}
    assert noted(rows=("map_pair",), **apart) == []


def test_an_epoch_that_the_declared_rule_did_not_choose_is_noted(tmp_path):
    words = "the last epoch of each run, chosen on no items"
    variant = DEMO.variant("country_joint")
    last = replace(variant, training={"select_by": "last"})
    for chosen, expected in ((variant, False), (last, True)):
        plan = replace(TINY, variants=(chosen,))
        notes = judge_plan(plan, tmp_path, options=BARE).notes
        assert any(words in note for note in notes) == expected
