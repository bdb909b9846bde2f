"""Judging VALUES from predictions files alone."""

import math
import shutil
import tracemalloc
from dataclasses import replace

import numpy as np
import pytest

from evaluate.made_maps import MODELS, QUERIES, made_benchmark, make_map_runs, street
from plans import part_of
from qualms import predictions, scores
from qualms.benchmarks.values import values
from qualms.benchmarks.values._entries import (
    JudgedItems,
    drop_entry,
    gain_entry,
)
from qualms.benchmarks.values._rows import GUESTS, TYPES, type_of
from qualms.evaluate import ScoreOptions
from qualms.evaluate.benchmark import judge_plan
from qualms.evaluate.segmented import (
    ItemColumn,
    MapScores,
    Reading,
    measure_items,
    validate,
)
from qualms.runs import mark_done
from qualms.scores.arguments import called_in_order
from qualms.scores.as_published import values as released
from qualms.shelf import find

BARE = ScoreOptions(resamples=0, workers=2)
PLAN = made_benchmark().plan("demo")
EXTRAS = ("quantile", "boundary", "object")
SECOND = ("ttd_queried", "ttd_random")


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    out = tmp_path_factory.mktemp("runs")
    make_map_runs(PLAN, out)
    return out


@pytest.fixture(scope="module")
def judged(made):
    return judge_plan(PLAN, made, options=BARE)


def spec(variant, row, seed=0, **at):
    """The run of a row with this seed."""
    (line,) = (
        line
        for line in PLAN.lines
        if (line.variant.name, line.row.name, line.at) == (variant, row, at)
    )
    return next(run for run in line.runs if run.seed == seed)


def files(out, variant, row, split, seeds=(0,), **at):
    """The predictions of a row's runs with these seeds, pooled."""
    folders = [
        out / "values" / spec(variant, row, seed, **at).hash / "predictions"
        for seed in seeds
    ]
    return predictions.pool([f / split.replace("/", "~") for f in folders])


def part(**changes):
    """The plan with other variants or rows."""
    if "rows" in changes:
        changes["rows"] = tuple(PLAN.row(name) for name in changes["rows"])
    return replace(PLAN, **changes)


def cell(judged, variant, row, score, subset="all", **settings):
    labels = {"measure": None, "aggregation": None, **settings}
    return judged.result(variant=variant, row=row, score=score, subset=subset, **labels)


def dice_of(maps, rule=scores):
    predicted = maps.mean_probs.argmax(0)
    return np.mean(
        [rule.dice(prediction=predicted, reference=rater) for rater in maps.raters]
    )


def maps_of(read, roles=("PE", "EE", "MI")):
    found = []
    for maps in read.maps:
        parts = scores.uncertainty_maps(maps.mean_probs, maps.expected_entropy)
        found.append(dict(zip(roles, parts[:3], strict=True)))
    return found


def test_every_run_is_read_and_every_row_has_numbers(judged):
    assert judged.missing == ()
    assert all(number.values for number in judged.table)


def test_quality_is_the_mean_over_items_of_each_subset(made, judged):
    read = files(made, "lidc", "ttd", "test")
    moved = read.arrays["shifted"]
    dice = np.array([dice_of(maps) for maps in read.maps])
    ged = np.array(
        [scores.ged(draws=m.draw_labels, raters=m.raters) for m in read.maps]
    )
    ncc = np.array(
        [
            scores.ncc(maps["MI"], scores.rater_variance(item.raters))
            for maps, item in zip(maps_of(read), read.maps, strict=True)
        ]
    )
    for subset, chosen in (("in_domain", ~moved), ("shifted", moved)):
        actual = cell(judged, "lidc", "ttd", "dice", subset).values[0]
        assert actual == pytest.approx(dice[chosen].mean())
        actual = cell(judged, "lidc", "ttd", "ged", subset).values[0]
        assert actual == pytest.approx(ged[chosen].mean())
        actual = cell(judged, "lidc", "ttd", "ncc", subset, measure="MI").values[0]
        assert actual == pytest.approx(ncc[chosen].mean())


def test_scores_have_the_settings_that_they_depend_on(judged):
    table = judged.table.where(row=tuple(MODELS))
    settings = {"measure", "aggregation"}
    for score, expected in (
        ("dice", set()),
        ("ged", set()),
        ("ncc", {"measure"}),
        ("ace", {"measure"}),
        ("aurc", settings),
        ("ood_auroc", settings),
    ):
        numbers = table.where(score=score)
        assert len(numbers)
        assert all(number.labels.keys() & settings == expected for number in numbers)


def test_a_number_says_which_type_its_measure_stands_for():
    ttd, ssn = (values().row(name) for name in ("ttd", "ssn"))
    for row, draws in ((ttd, "labels"), (ssn, "labels"), (ssn, None)):
        found = [type_of(row, measure, draws) for measure in ("PE", "MI", "EE")]
        assert found == [*TYPES]
    assert type_of(ssn, "MI", "models") == type_of(ttd, "MI", None) == "EU"
    assert type_of(GUESTS[0], "MI", None) == "unstated"
    assert type_of(GUESTS[0], "uncertainty/mine", None) == "PU"


def test_types_follow_what_the_draws_vary_and_not_the_name_of_the_method(tmp_path):
    plan = part(variants=(PLAN.variant("toy_a"),), rows=("ttd",))
    make_map_runs(plan, tmp_path, draws="labels")
    table = judge_plan(plan, tmp_path, options=BARE).table
    for measure, kind in (("MI", "AU"), ("EE", "EU"), ("PE", "PU")):
        assert table.where(measure=measure).distinct("type") == (kind,)


def test_rows_compete_by_measure_whatever_its_type(judged):
    columns = judged.table.where(variant="lidc", subset="in_domain", score="ncc")
    table = columns.where(measure="MI")
    assert set(table.distinct("type")) == {"EU", "AU"}
    assert set(table.distinct("row")) == {"ttd", "ensemble", "ssn"}
    assert len({number.best for number in table}) == 1


def test_shifts_are_told_on_the_pool_or_else_on_the_test_items(made, judged):
    for variant, split in (("lidc", "pool"), ("toy_a", "test/a"), ("toy_b", "test/b")):
        read = files(made, variant, "ensemble", split, seeds=(0, 1, 2))
        values = [scores.aggregate_patch(maps["EE"]) for maps in maps_of(read)]
        settings = {"measure": "EE", "aggregation": "patch"}
        actual = cell(judged, variant, "ensemble", "ood_auroc", **settings)
        expected = scores.ood_auroc(uncertainty=values, shifted=read.arrays["shifted"])
        assert actual.values[0] == pytest.approx(expected)
        assert actual.released == pytest.approx(actual.value)


def test_failures_are_ranked_by_the_risk_of_either_rule(made, judged):
    read = files(made, "lidc", "ttd", "test")
    chosen = np.flatnonzero(read.arrays["shifted"])
    maps = [read.maps[int(i)] for i in chosen]
    rank = np.array([maps_of(read)[int(i)]["PE"].sum(dtype=float) for i in chosen])
    settings = {"measure": "PE", "aggregation": "image"}
    risk = 1 - np.array([dice_of(m) for m in maps])
    for name in ("aurc", "eaurc", "augrc", "threshold_aurc", "threshold_eaurc"):
        actual = cell(judged, "lidc", "ttd", name, "shifted", **settings)
        assert actual.values[0] == pytest.approx(
            getattr(scores, name)(risk=risk, uncertainty=rank)
        )
    their_risk = 1 - np.array([dice_of(m, released) for m in maps])
    for name in ("aurc", "eaurc"):
        actual = cell(judged, "lidc", "ttd", name, "shifted", **settings)
        expected = getattr(released, name)(risk=their_risk, uncertainty=rank)
        assert actual.released_values[0] == pytest.approx(expected)


def validation(made, row, seed):
    read = files(made, "lidc", row, "val", seeds=(seed,))
    labels = [
        np.concatenate([m.draw_labels, m.mean_probs.argmax(0)[None]]) for m in read.maps
    ]
    agreed = [
        scores.rater_agreement(m.mean_probs.argmax(0), m.raters) for m in read.maps
    ]
    return [m["EE"] for m in maps_of(read)], labels, agreed


def test_a_threshold_is_that_of_all_repeats_of_a_row(made, judged):
    parts = [validation(made, "ttd", seed) for seed in (0, 1)]
    maps = [m for part in parts for m in part[0]]
    labels = [m for part in parts for m in part[1]]
    threshold = scores.threshold_from_validation(maps, labels)
    read = files(made, "lidc", "ttd", "pool")
    values = [
        scores.aggregate_threshold(m["EE"], threshold=threshold) for m in maps_of(read)
    ]
    settings = {"measure": "EE", "aggregation": "threshold"}
    actual = cell(judged, "lidc", "ttd", "ood_auroc", **settings).values[0]
    assert actual == pytest.approx(
        scores.ood_auroc(uncertainty=values, shifted=read.arrays["shifted"])
    )


def test_calibration_is_fitted_on_each_run(made, judged):
    read = files(made, "lidc", "ttd", "test", seeds=(1,))
    maps, _, agreed = validation(made, "ttd", 1)
    ours = scores.fit_platt(
        uncertainty=np.maximum(maps, 0),
        correct=np.stack([a.correct for a in agreed]),
        total=np.stack([a.total for a in agreed]),
    )
    theirs = released.fit_platt(
        uncertainty=[np.maximum(m, 0) for m in maps],
        correct=[a.correct for a in agreed],
        total=[a.total for a in agreed],
    )
    errors = []
    for item, own in zip(read.maps, maps_of(read), strict=True):
        known = scores.rater_agreement(item.mean_probs.argmax(0), item.raters)
        errors.append(
            [
                rule.ace(
                    confidence=fit.confidence(own["EE"]),
                    correct=known.correct,
                    total=known.total,
                )
                for rule, fit in ((scores, ours), (released, theirs))
            ]
        )
    expected = np.array(errors)[~read.arrays["shifted"]].mean(axis=0)
    actual = cell(judged, "lidc", "ttd", "ace", "in_domain", measure="EE")
    # Pixels are counted in 16,384 bins before the fit.
    assert actual.values[1] == pytest.approx(expected[0], abs=1e-4)
    assert actual.released_values[1] == pytest.approx(expected[1], abs=1e-4)


def test_a_plain_network_has_one_measure_and_its_ensemble_three(judged):
    def measures(row):
        return set(judged.table.where(row=row, score="ncc").distinct("measure"))

    assert measures("softmax") == {"MSR"}
    assert measures("ensemble") == {"PE", "EE", "MI"}


@pytest.mark.parametrize("settings", QUERIES)
def test_what_a_query_gained_stands_in_the_row_that_asked(made, judged, settings):
    moved = files(made, "lidc", "ttd", "test").arrays["shifted"]
    before, after, random = (
        np.mean([dice_of(m) for m, s in zip(read.maps, moved, strict=True) if s])
        for read in (
            files(made, "lidc", "ttd", "test"),
            files(made, "lidc", "ttd_queried", "test", **settings),
            files(made, "lidc", "ttd_random", "test"),
        )
    )
    actual = cell(judged, "lidc", "ttd", "gain", "shifted", **settings)
    expected = (after / before - 1) - (random / before - 1)
    assert actual.values[0] == pytest.approx(expected)
    assert actual.covers == "these runs"  # two do not show how far others may lie
    assert judged.table.where(score="gain").distinct("row") == ("ttd",)


def test_a_second_training_that_is_missing_leaves_the_gain_empty(made, tmp_path):
    plan = part(variants=(PLAN.variant("lidc"),), rows=(*SECOND, "ttd"))
    missing = [spec("lidc", "ttd_random", seed).hash for seed in (0, 1)]
    make_map_runs(plan, tmp_path, skip=missing)
    judged = judge_plan(plan, tmp_path, options=BARE)
    found = cell(judged, "lidc", "ttd", "gain", "shifted", **QUERIES[0])
    assert found.values == ()
    assert missing[0] in found.why
    assert {run.hash for run in judged.missing} == set(missing)


def test_a_damaged_item_is_named_and_other_rows_keep_their_numbers(made, tmp_path):
    out = tmp_path / "runs"
    shutil.copytree(made, out)
    for row, settings in (("ssn", {}), ("ttd_queried", QUERIES[0])):
        run = out / "values" / spec("lidc", row, **settings).hash
        item = run / "predictions" / "test" / "000002.safetensors"
        item.write_bytes(item.read_bytes()[:200])
    results = judge_plan(PLAN, out, options=BARE)
    lost = cell(results, "lidc", "ssn", "dice", "in_domain")
    assert not lost.values
    assert "000002.safetensors" in lost.why
    # The absence of a whole row says why its numbers with further settings lack.
    assert (
        cell(results, "lidc", "ssn", "ncc", "in_domain", measure="PE").why == lost.why
    )
    assert f"ssn has no number on lidc: {lost.why}" in results.notes
    gain = cell(results, "lidc", "ttd", "gain", "shifted", **QUERIES[0])
    assert "000002.safetensors" in gain.why
    assert cell(results, "lidc", "ttd", "gain", "shifted", **QUERIES[1]).values
    assert cell(results, "lidc", "ttd", "dice", "in_domain").values


def test_a_run_with_a_damaged_item_is_listed_with_what_to_do(made, tmp_path):
    out = tmp_path / "runs"
    shutil.copytree(made, out)
    damaged = {}
    for row, settings in (("ssn", {}), ("ttd_queried", QUERIES[0])):
        run_spec = spec("lidc", row, **settings)
        run = out / "values" / run_spec.hash
        (run / "predictions" / "test" / "000002.safetensors").write_bytes(b"nothing")
        mark_done(run, run_spec, {})
        damaged[run_spec.hash] = run / "predictions" / "test"
    results = judge_plan(PLAN, out, options=BARE)
    assert {run.hash: run.remedy for run in results.missing} == {
        run: f"delete {path} and run the same command: it is made again from the"
        " checkpoint"
        for run, path in damaged.items()
    }


def test_a_screening_says_what_the_shift_costs(judged):
    table = judged.table.where(variant="screened")
    assert set(table.pivot(("score", "subset"), ()).rows) == {
        *(("dice", "in_domain"), ("dice", "shifted"), ("dice_drop", "all")),
    }
    inside, outside = (
        cell(judged, "screened", "softmax", "dice", subset).values
        for subset in ("in_domain", "shifted")
    )
    drop = cell(judged, "screened", "softmax", "dice_drop")
    expected = 1 - np.array(outside) / np.array(inside)
    assert drop.values == pytest.approx(expected)
    assert drop.covers == "these runs"


def test_pools_of_three_are_judged_without_each_of_their_runs(judged):
    dice = cell(judged, "lidc", "ensemble", "dice", "in_domain")
    assert len(dice.values) == 2
    assert dice.value == pytest.approx(np.mean(dice.values))
    assert dice.no_interval.startswith("the items come from 5 clusters")
    assert math.isnan(dice.low)


def test_workers_change_no_number_of_a_benchmark(made, judged):
    alone = judge_plan(PLAN, made, options=replace(BARE, workers=1))
    for number, other in zip(judged.table, alone.table, strict=True):
        assert (number.labels, number.values) == (other.labels, other.values)


def test_a_variant_says_which_aggregations_are_judged(judged):
    def aggregations(variant):
        return set(judged.table.where(variant=variant).distinct("aggregation"))

    assert aggregations("toy_a") == {"patch", "object"}
    assert aggregations("lidc") == {"image", "patch", "threshold", *EXTRAS}


def test_what_the_paper_has_not_is_not_compared_with_its_code(judged):
    for number in judged.table:
        if "aggregation" in number.labels:
            extra = number.labels["aggregation"] in EXTRAS
            plain = number.labels["score"].endswith(
                ("dice", "aurc", "ood_auroc", "gain"),
            )
            assert bool(number.released_values) == (plain and not extra)


def test_a_threshold_may_be_that_of_each_run(made, judged):
    variant = replace(PLAN.variant("lidc"), settings={"threshold_from": "run"})
    plan = part(variants=(variant,), rows=("ttd",))
    alone = judge_plan(plan, made, options=BARE)
    maps, labels, _ = validation(made, "ttd", 0)
    threshold = scores.threshold_from_validation(maps, labels)
    read = files(made, "lidc", "ttd", "test")
    values = [
        scores.aggregate_threshold(m["EE"], threshold=threshold) for m in maps_of(read)
    ]
    moved = read.arrays["shifted"]
    risk = 1 - np.array([dice_of(m) for m in read.maps])
    settings = {"measure": "EE", "aggregation": "threshold"}
    actual = cell(alone, "lidc", "ttd", "aurc", "shifted", **settings).values[0]
    expected = scores.aurc(risk=risk[moved], uncertainty=np.array(values)[moved])
    assert actual == pytest.approx(expected)


def test_every_file_is_read_once_however_many_rows_ask_for_it(made, monkeypatch):
    from qualms.predictions import _folder

    loads = []
    load = _folder.load_maps
    monkeypatch.setattr(
        _folder, "load_maps", lambda *args: (loads.append(1), load(*args))[1]
    )
    variants = tuple(PLAN.variant(name) for name in ("toy_a", "toy_b"))
    plan = part(variants=variants, rows=("ttd", "ssn"))
    judge_plan(plan, made, options=BARE)
    # Four runs with 4 + 6 + 10 items, of which the validation items are read twice; the
    # first of each file is read when it is opened, and one of each subset is drawn in
    # figures of each variant.
    assert len(loads) <= 4 * (2 * 4 + 6 + 10 + 3 + 4)


def street_file(draws=4, items=3):
    rng = np.random.default_rng(0)
    maps = [street(rng, draws) for _ in range(items)]
    header = {"method": "mc_dropout", "ignore": 255}
    return predictions.build({"maps": maps}, header=header)


def test_ignored_pixels_and_second_labels_are_read_by_both_rules():
    read = street_file()
    reading = Reading(published=True, swaps=(1, 3), swap_share=1 / 3)
    measurements = measure_items(read, reading, BARE)
    item = read.maps[0]
    options = {"classes": 4, "ignore": 255}
    predicted = item.mean_probs.argmax(0)
    for rule, theirs in ((scores, False), (released, True)):
        dice = np.mean(
            [
                rule.dice(prediction=predicted, reference=r, **options)
                for r in item.raters
            ]
        )
        assert measurements.of("dice", published=theirs)[0] == pytest.approx(dice)
        ged = rule.ged(draws=item.draw_labels, raters=item.raters, **options)
        assert measurements.of("ged", published=theirs)[0] == pytest.approx(ged)
    own = scores.entropy(item.mean_probs, class_axis=0)
    spread = scores.rater_variance(item.raters, ignore=255)
    rated = np.isfinite(spread)
    expected = np.corrcoef(own[rated], spread[rated])[0, 1]
    assert measurements.of("ncc", "PE")[0] == pytest.approx(expected, abs=1e-6)
    # The released code knows the chance of a swap, and keeps ignored pixels as certain.
    chance = 2 / 9 * np.isin(item.raters[0], (1, 3))
    expected = np.corrcoef(own.ravel(), chance.ravel())[0, 1] * 255 / 256
    assert measurements.of("ncc", "PE", published=True)[0] == pytest.approx(
        expected, abs=1e-6
    )


def test_the_declared_street_scenes_have_the_second_labels_of_their_data():
    for preset in values().presets.values():
        for variant in preset.variants:
            if "swaps" in variant.settings and variant.simulated:
                recipe = find("datasets", variant.dataset.name)()
                assert dict(recipe.swaps) == variant.settings["swaps"]


def jackknife(value, n):
    """The variance of a statistic, by leaving out one item at a time."""
    each = np.array([value(np.delete(np.arange(n), i)) for i in range(n)])
    return (n - 1) * each.var()


def numbers(dice):
    return MapScores(columns={ItemColumn("dice"): dice}, drawn=np.zeros(len(dice)))


def test_the_influence_on_a_gain_is_that_of_leaving_items_out():
    rng = np.random.default_rng(0)
    before, after, random = rng.uniform(0.3, 0.9, (3, 200))
    judged = JudgedItems(numbers(before), {"shifted": np.arange(200)}, False)
    both = [numbers(after), numbers(random)]
    entry = gain_entry(judged, both, settings=QUERIES[0], why="")

    def gain(rows):
        means = (dice[rows].mean() for dice in (before, after, random))
        return called_in_order(scores.al_improvement, *means)

    influence = entry.influence()
    assert influence.value == pytest.approx(gain(np.arange(200)))
    assert influence.values.sum() == pytest.approx(0, abs=1e-12)
    found = np.sum(influence.values**2)
    assert found == pytest.approx(jackknife(gain, 200), rel=0.03)


def test_the_influence_on_a_drop_is_that_of_leaving_items_out():
    dice = np.random.default_rng(1).uniform(0.3, 0.9, 200)
    moved = np.arange(200) % 3 == 0
    subsets = {"in_domain": np.flatnonzero(~moved), "shifted": np.flatnonzero(moved)}
    (entry,) = drop_entry(JudgedItems(numbers(dice), subsets, False))

    def drop(rows):
        kept = dice[rows], moved[rows]
        return 1 - kept[0][kept[1]].mean() / kept[0][~kept[1]].mean()

    influence = entry.influence()
    assert influence.value == pytest.approx(drop(np.arange(200)))
    found = np.sum(influence.values**2)
    assert found == pytest.approx(jackknife(drop, 200), rel=0.03)


class Growing:
    """As many items as asked for, each made when it is read."""

    def __init__(self, items, maps):
        self.items, self.maps = items, maps

    def __len__(self):
        return self.items

    def __getitem__(self, index):
        names = ("mean_probs", "expected_entropy", "draw_labels", "raters")
        arrays = {name: getattr(self.maps, name).copy() for name in names}
        return predictions.Maps(**arrays)


def peak_of(work):
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_memory_does_not_grow_with_the_number_of_items():
    read = street_file()
    small = read.maps[0]
    large = predictions.Maps(
        mean_probs=np.tile(small.mean_probs, (1, 6, 6)),
        expected_entropy=np.tile(small.expected_entropy, (6, 6)),
        draw_labels=np.tile(small.draw_labels, (1, 6, 6)),
        raters=np.tile(small.raters, (1, 6, 6)),
    )
    few, many = (replace(read, maps=Growing(n, large), n=n) for n in (6, 60))
    # Two threads may or may not hold their largest arrays at the same time.
    alone = replace(BARE, workers=1)
    reading = Reading(fitted=validate([few], alone)[0], published=True)
    peaks = [peak_of(lambda f=f: measure_items(f, reading, alone)) for f in (few, many)]
    # A few dozen numbers of each item stay, and none of its maps.
    assert peaks[1] - peaks[0] < 54 * large.expected_entropy.nbytes / 2


def test_a_pool_without_labels_has_the_same_scores(tmp_path):
    plan = part_of(made_benchmark().plan("demo"), rows=("ttd",), variants=("lidc",))
    plan = replace(plan, seeds=(0,), alone=(0,), pools=((0,),))
    make_map_runs(plan, tmp_path)
    options = ScoreOptions(resamples=0, workers=1)
    before = judge_plan(plan, tmp_path, options=options)
    (pool,) = tmp_path.rglob("predictions/pool")
    labelled = predictions.read(pool)
    bare = [replace(maps, raters=np.empty(0, np.uint8)) for maps in labelled.maps]
    predictions.write(pool, replace(labelled, maps=bare))
    after = judge_plan(plan, tmp_path, options=options)
    assert [len(maps.raters) for maps in predictions.read(pool).maps] == [0] * 12
    assert [(n.labels, n.values) for n in after.table] == [
        (n.labels, n.values) for n in before.table
    ]
    assert len(after.table.where(score="ood_auroc").computed()) > 10
