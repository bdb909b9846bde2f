"""A plan that is kept in a file and applied to new items without targets."""

import csv
import hashlib
import json
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console
from scipy import stats

import qualms
from qualms import predictions
from qualms.referral import PlanError, ReferralOptions, read_plan
from qualms.referral._likeness import check_likeness, reference_sample
from qualms.referral._plan_file import checksum
from qualms.report import plan_to_json, print_plan
from qualms.scores import Estimate

OWN = ReferralOptions(uncertainty="own")
UNMOVED = Estimate(value=0.0, low=-0.01, high=0.01, undefined=0.0)


def clinic(items, seed, *, blur=0.0, rate=0.3, eyes=1):
    """Return predictions with targets; both eyes of a patient are alike."""
    rng = np.random.default_rng(seed)
    patient = np.repeat(np.arange(items), eyes)
    target = (rng.random(items) < rate).astype(int)[patient]
    noise = rng.standard_normal(items)[patient] + 0.3 * rng.standard_normal(len(target))
    evidence = 1.5 * (2 * target - 1) + noise * (1 + blur)
    arrays = {"target": target, "prob": 1 / (1 + np.exp(-2 * evidence))}
    return arrays | ({"cluster": patient} if eyes > 1 else {})


def unlabelled(arrays):
    return {name: array for name, array in arrays.items() if name != "target"}


@pytest.fixture(scope="module")
def plan():
    return qualms.refer(clinic(1500, 0), accuracy=0.95)


def test_the_rule_on_new_items_is_that_of_the_plan(plan):
    new = unlabelled(clinic(300, 1)) | {"item": [f"eye {i}" for i in range(300)]}
    applied = plan.apply(new)
    entropy = qualms.scores.entropy(new["prob"], class_axis=None)
    rows = np.flatnonzero(entropy >= plan.threshold)
    assert np.flatnonzero(applied.refer).tolist() == rows.tolist()
    assert sorted(applied.items.row) == rows.tolist()
    assert set(applied.items.item) == {f"eye {i}" for i in rows}
    assert (np.diff(applied.items.uncertainty) <= 0).all()
    assert set(applied.items.predicted) <= {0, 1}


def test_tied_items_are_referred_together_on_new_items_too():
    uncertainty = np.repeat([0.0, 1.0, 2.0, 3.0], 25)
    items = {"target": np.zeros(100, int), "prob": np.full(100, 0.1)}
    plan = qualms.refer(
        items | {"uncertainty/own": uncertainty}, budget=0.3, options=OWN
    )
    assert plan.threshold == 3.0
    new = {"prob": [0.1] * 4, "uncertainty/own": [3.0, 2.999, 3.0, 7.0]}
    applied = plan.apply(new)
    assert applied.refer.tolist() == [True, False, True, True]
    assert any("2 items lie at the threshold" in note for note in applied.notes)


def test_items_between_the_printed_and_the_exact_threshold_are_mentioned():
    plan = qualms.refer(
        clinic(200, 5) | {"uncertainty/own": np.linspace(0.1, 0.9, 200)},
        budget=0.2,
        options=OWN,
    )
    assert plan.shown.rounded < plan.threshold
    new = {"prob": [0.1, 0.2], "uncertainty/own": [plan.shown.rounded, plan.threshold]}
    applied = plan.apply(new)
    assert applied.refer.tolist() == [False, True]
    assert any("1 item lies between the rounded" in note for note in applied.notes)


def test_the_workload_is_a_share_with_an_exact_interval_and_counts(plan):
    applied = plan.apply(unlabelled(clinic(300, 1)))
    work = applied.workload
    exact = stats.binomtest(work.referred, 300).proportion_ci(method="exact")
    assert work.referred == applied.refer.sum() == len(applied.items)
    assert (work.share.low, work.share.high) == pytest.approx((exact.low, exact.high))
    assert work.planned == plan.outcomes[0].referred
    number, low, high = work.expected
    assert number == round(300 * work.planned.value)
    assert low < number < high
    assert work.change.value == pytest.approx(work.share.value - work.planned.value)
    assert work.change.low < work.change.value < work.change.high


def test_clusters_widen_the_workload():
    plan = qualms.refer(clinic(800, 0, eyes=2), budget=0.2)
    new = unlabelled(clinic(150, 1, eyes=2))
    separate = plan.apply(new | {"cluster": np.arange(300)})
    together = plan.apply(new)
    assert (separate.workload.clusters, together.workload.clusters) == (None, 150)
    width = [
        each.workload.share.high - each.workload.share.low
        for each in (separate, together)
    ]
    assert width[1] > 1.2 * width[0]
    assert together.check.items == 150
    without_clusters = plan.apply({"prob": new["prob"]})
    assert any(
        "this file has no 'cluster'" in warning for warning in without_clusters.warnings
    )


# How likely each verdict is, by simulation.


def verdicts(reference, draw_items, times):
    """Return verdicts on `times` sets of new items; the share referred stays."""
    results = []
    for seed in range(times):
        new = reference_sample(*draw_items(np.random.default_rng(seed)), 3, seed)
        options = {"permutations": 99, "seed": seed}
        check = check_likeness(reference, new, change=UNMOVED, **options)
        results.append(check.verdict)
    return results


def population(rng, n, *, shift=0.0, classes=(0.6, 0.3, 0.1)):
    """Return uncertainties with ties, and predicted classes."""
    uncertainty = np.round(rng.beta(1.0 + shift, 3.0, n), 1)
    return uncertainty, rng.choice(3, n, p=classes)


def test_items_like_those_of_the_plan_are_found_alike():
    rng = np.random.default_rng(0)
    times, unlike = 150, 0
    for seed in range(times):
        reference, new = (
            reference_sample(*population(rng, n), 3, seed) for n in (200, 60)
        )
        options = {"permutations": 99, "seed": seed}
        check = check_likeness(reference, new, change=UNMOVED, **options)
        unlike += check.verdict != "alike"
    assert unlike <= stats.binom.ppf(0.999, times, 0.05)


@pytest.mark.parametrize(
    "moved", [{"shift": 1.0}, {"classes": (0.3, 0.3, 0.4)}], ids=["harder", "others"]
)
def test_items_unlike_those_of_the_plan_are_found(moved):
    reference = reference_sample(*population(np.random.default_rng(0), 1000), 3, 0)
    results = verdicts(reference, lambda rng: population(rng, 200, **moved), 20)
    assert results.count("unlike") >= 19


def test_clusters_of_another_size_make_no_difference():
    """Apply a plan of four photographs per patient where there is one each."""

    def patients(rng, n, size):
        uncertainty = rng.normal(size=n).repeat(size) + rng.normal(size=n * size)
        return uncertainty, np.arange(n).repeat(size)

    alarms = 0
    for seed in range(40):
        rng = np.random.default_rng(seed)
        sets = patients(rng, 150, 4), patients(rng, 80, 1)
        arrays = [
            {"prob": np.full(len(u), 0.2), "uncertainty/own": u, "cluster": c}
            for u, c in sets
        ]
        plan = qualms.refer(
            arrays[0] | {"target": np.zeros(600, int)}, budget=0.2, options=OWN
        )
        alarms += plan.apply(arrays[1], seed=seed).check.departures[0].differs
    assert alarms <= stats.binom.ppf(0.999, 40, 0.05)


def test_a_difference_that_many_items_show_is_called_small_if_it_is():
    uncertainty, _ = population(np.random.default_rng(0), 5000)
    before, after = (
        reference_sample(uncertainty, np.repeat([0, 1, 2], counts), 3, 0)
        for counts in ([3000, 1500, 500], [2840, 1660, 500])
    )
    check = check_likeness(before, after, change=UNMOVED)
    assert check.verdict == "slightly unlike"
    assert "by little" in check.sentence
    assert [each.differs for each in check.departures] == [False, True]
    assert check.departures[1].p < 0.01
    assert 0.02 < check.departures[1].size < 0.05
    change = Estimate(value=0.08, low=0.06, high=0.1, undefined=0.0)
    with_change = check_likeness(before, after, change=change)
    assert with_change.verdict == "unlike"


def test_few_items_are_not_called_alike(plan):
    check = plan.apply(unlabelled(clinic(12, 1))).check
    assert check.verdict == "too few items"
    assert "12 independent items tell little" in check.sentence


def test_a_sketch_of_many_items_is_a_random_part_of_them():
    uncertainty = np.arange(20_000.0)
    sample = reference_sample(uncertainty, np.zeros(20_000, int), 2, 0)
    assert sample.n == sample.predicted.sum() == 5000
    assert stats.kstest(sample.uncertainty / 20_000, "uniform").pvalue > 1e-4
    shuffled = np.random.default_rng(1).permutation(uncertainty)
    same = reference_sample(shuffled, np.zeros(20_000, int), 2, 0)
    assert same.uncertainty.tolist() == sample.uncertainty.tolist()


# The file.


def test_a_plan_survives_its_file(plan, tmp_path):
    path = plan.save(tmp_path / "plan.json")
    copy = read_plan(path)
    assert copy.to_json() == plan.to_json() == path.read_text()
    new = unlabelled(clinic(300, 1))
    applied, by_copy = plan.apply(new), qualms.read_plan(path).apply(new)
    assert by_copy.refer.tolist() == applied.refer.tolist()
    assert (by_copy.check, by_copy.workload) == (applied.check, applied.workload)
    assert [each.name for each in tmp_path.iterdir()] == ["plan.json"]


def test_the_file_says_what_was_done_and_names_no_item(tmp_path):
    arrays = clinic(400, 0, eyes=2)
    arrays["cluster"] = [f"patient-{i}" for i in arrays["cluster"]]
    arrays["item"] = [f"scan-{i}" for i in range(800)]
    file = predictions.write(tmp_path / "val.npz", arrays, header={"method": "map"})
    plan = qualms.refer(file, accuracy=0.9)
    text = plan.to_json()
    assert "patient-" not in text
    assert "scan-" not in text
    data = json.loads(text)
    assert data["rule"]["threshold"] == plan.threshold
    assert data["rule"]["refer_where"] == "uncertainty >= threshold"
    assert "together or not at all" in data["rule"]["ties"]
    assert "entropy of the mean" in data["rule"]["uncertainty"]["how"]
    assert data["promise"]["at_least"] == {"accuracy": 0.9}
    assert data["promise"]["about"] == "one random item per cluster"
    assert data["made_on"]["items"] == 800
    assert data["made_on"]["clusters"] == 400
    assert len(data["reference"]["uncertainty"]) == 400
    assert sum(data["reference"]["predicted"]) == 400
    digest = hashlib.sha256(file.read_bytes()).hexdigest()
    assert data["made_on"]["sha256"] == digest
    assert data["qualms"] == qualms.__version__
    assert max(map(len, text.splitlines()[:40])) < 200


def test_the_list_of_items_is_a_table_that_others_read(plan, tmp_path):
    names = [f'eye "{i}", left' for i in range(300)]
    new = unlabelled(clinic(300, 1)) | {"item": names, "group": ["a"] * 300}
    applied = plan.apply(new)
    path = applied.items.save(tmp_path / "refer.csv")
    with path.open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert [row["item"] for row in rows] == applied.items.item.tolist()
    assert [
        float(row["uncertainty"]) for row in rows
    ] == applied.items.uncertainty.tolist()
    assert list(rows[0]) == ["item", "row", "uncertainty", "predicted", "group"]
    frame = pytest.importorskip("pandas").read_csv(path)
    assert frame.equals(applied.items.to_frame())


def test_a_plan_of_no_referral_applies_to_no_item(tmp_path):
    plan = qualms.refer(clinic(300, 0), budget=0.0)
    copy = read_plan(plan.save(tmp_path / "plan.json"))
    applied = copy.apply(unlabelled(clinic(50, 1)))
    assert copy.rule == "Refer no item."
    assert not applied.refer.any()
    assert len(applied.items) == 0
    assert "0 of 50 items" in repr(applied)


def test_where_nothing_can_be_promised_there_is_no_plan_to_keep(tmp_path):
    none = qualms.refer(clinic(30, 0), accuracy=0.99)
    assert not none.found
    assert none.items is None
    assert "can promise what was asked" in repr(none)
    for use in (
        none.to_json,
        lambda: none.save(tmp_path / "p"),
        lambda: none.apply({}),
    ):
        with pytest.raises(ValueError, match="there is no plan to save or to apply"):
            use()


def test_a_plan_of_format_1_is_read():
    """The file was written by qualms 0.1.0 before plans had one record."""
    file = Path(__file__).with_name("plan_format_1.json")
    plan = read_plan(file)
    assert plan.to_json() == file.read_text()
    assert plan.found
    assert (plan.threshold, plan.shown.rounded) == (0.99, 0.9899)
    assert plan.request.at_least == {"accuracy": 0.8, "sensitivity": 0.7}
    assert plan.promise.at_least == plan.request.at_least
    assert (plan.promise.confidence, plan.promise.tested) == (0.9, 50)
    assert (plan.made_on.items, plan.made_on.clusters) == (300, 150)
    assert plan.made_on.method == "mc_dropout"
    assert plan.shown.accuracy == pytest.approx(0.8983, abs=1e-4)
    assert plan.reference.predicted.tolist() == [91, 59]
    assert plan.outcomes == plan.offers == ()
    spread = np.linspace(0.0, 1.0, 201)
    applied = plan.apply({"prob": np.full(201, 0.1), "uncertainty/spread": spread})
    assert applied.workload.referred == 3
    assert applied.check.verdict == "unlike"
    assert "one random item per cluster: at least 80% of" in applied.promise


def test_a_plan_of_a_file_is_printed_without_outcomes(plan, tmp_path):
    copy = read_plan(plan.save(tmp_path / "plan.json"))
    console = Console(width=100)
    with console.capture() as capture:
        print_plan(copy, console=console)
    assert "Refer an item when its entropy is" in capture.get()
    assert "at least 95% of the kept items" in capture.get()
    assert plan_to_json(copy)["threshold"] == plan.threshold
    assert plan_to_json(copy)["outcomes"] == []


def test_names_of_uncertainties_cannot_break_the_file(tmp_path):
    arrays = clinic(60, 0) | {"uncertainty/@predicted": np.arange(60.0)}
    options = ReferralOptions(uncertainty="@predicted")
    plan = qualms.refer(arrays, budget=0.2, options=options)
    copy = read_plan(plan.save(tmp_path / "plan.json"))
    assert copy.uncertainty.name == "@predicted"


def shares(text, **ends):
    """Return the file of a plan that refers another share of its items."""
    made_on = json.loads(text)["made_on"]
    return changed(text, made_on=made_on | {"referred": made_on["referred"] | ends})


def changed(text, **fields):
    """Return the file of a plan with other fields and the right checksum."""
    data = json.loads(text) | fields
    return json.dumps(data | {"checksum": checksum(data)})


@pytest.mark.parametrize(
    ("damage", "sentence"),
    [
        (lambda text: text[:400], "is not the JSON of a plan; it may be cut short"),
        (lambda _: "", "is not the JSON of a plan"),
        (lambda _: "[1, 2]", "is JSON, but not of a plan"),
        (lambda _: '{"a": 1}', "not the file of a plan; write one with --plan"),
        (lambda _: '{"request": 1, "outcomes": 2}', "is what --json prints"),
        (lambda text: text.replace('"accuracy": 0.95', '"accuracy": 0.99'), "changed"),
        (lambda text: changed(text, format=2), "by a newer qualms"),
        (lambda text: changed(text, rule={}), "does not hold a plan"),
        (lambda text: changed(text, task="poetry"), "does not hold a plan.*poetry"),
        (lambda text: changed(text, classes=3), "counts 2 of 3 classes"),
        (lambda text: changed(text, reference=[]), "does not hold a plan"),
        (
            lambda text: changed(text, reference={"predicted": [], "uncertainty": []}),
            "does not hold a plan",
        ),
        (lambda text: changed(text, classes=10**400), "does not hold a plan"),
        (lambda text: changed(text, request={"cost": 1.0}), "unknown 'cost'"),
        (lambda text: shares(text, value=math.inf), "'value' is inf"),
        (lambda text: shares(text, high=1e300), "'high' is 1e.300, which is no share"),
        (lambda text: shares(text, low=-0.5), "'low' is -0.5, which is no share"),
        (lambda text: shares(text, low=math.nan), "'low' is nan"),
        (
            lambda text: changed(
                text, reference={"predicted": [1, 2], "uncertainty": [0.1, math.inf]}
            ),
            "must be lists of finite numbers",
        ),
        (lambda _: "{" * 100_000, "is not the JSON of a plan"),
        (lambda _: " " * 9_000_000, "too large for a plan"),
    ],
)
def test_damaged_and_foreign_files_are_refused(plan, tmp_path, damage, sentence):
    path = tmp_path / "plan.json"
    path.write_text(damage(plan.to_json()))
    with pytest.raises(PlanError, match=sentence):
        read_plan(path)
    with pytest.raises(PlanError, match="cannot be read"):
        read_plan(tmp_path / "none.json")


THREE = {"probs": np.full((5, 3), 1 / 3)}
VALUES = {"mean": np.arange(5.0), "std": np.ones(5)}


@pytest.mark.parametrize(
    ("new", "sentence"),
    [
        (VALUES, "holds regression, and the plan is for classification"),
        (THREE, "has 3 classes, and the plan is for 2"),
        ({"embedding": np.eye(3), "uncertainty/a": [1, 2, 3]}, "holds embedding"),
    ],
)
def test_predictions_of_something_else_are_refused(plan, new, sentence):
    with pytest.raises(ValueError, match=sentence):
        plan.apply(new)


def test_an_uncertainty_that_the_new_file_lacks_is_asked_for():
    arrays = clinic(200, 0) | {"uncertainty/own": np.linspace(0, 1, 200)}
    plan = qualms.refer(arrays, budget=0.2, options=OWN)
    with pytest.raises(
        ValueError, match=r"refers by the array 'uncertainty/own'.*none"
    ):
        plan.apply(unlabelled(clinic(20, 1)))
    draws = np.random.default_rng(0).dirichlet([1, 1], (4, 200))
    several = qualms.refer(
        {"probs": draws, "target": clinic(200, 0)["target"]},
        budget=0.2,
        options=ReferralOptions(uncertainty="epistemic", draws="models"),
    )
    with pytest.raises(ValueError, match="needs several draws"):
        several.apply(unlabelled(clinic(20, 1)))
    fewer = several.apply({"probs": draws[:2]})
    assert any("4 draws, these have 2" in warning for warning in fewer.warnings)


def test_an_array_that_only_shares_the_name_is_not_taken(plan):
    new = unlabelled(clinic(50, 1))
    same_name = new | {"uncertainty/entropy": np.full(50, 99.0)}
    applied = plan.apply(same_name)
    assert applied.refer.tolist() == plan.apply(new).refer.tolist()
    assert any("is not used" in note for note in applied.notes)


def test_classes_that_the_plan_never_saw_are_refused():
    probs = np.eye(4)[np.arange(400) % 2] * 0.9 + 0.025
    plan = qualms.refer({"probs": probs, "target": np.arange(400) % 2}, budget=0.2)
    with pytest.raises(ValueError, match=r"predicts classes 2, 3 only.*classes 0, 1"):
        plan.apply({"probs": probs[:, ::-1]})
    # A single item of a rare class is no reason.
    assert plan.apply({"probs": probs[:1, ::-1]}).workload.items == 1


def test_what_makes_the_promise_void_is_warned_about(tmp_path):
    arrays = clinic(300, 0)
    file = predictions.write(tmp_path / "val.npz", arrays, header={"method": "map"})
    plan = qualms.refer(file, budget=0.2)
    applied = plan.apply(file)
    assert any("the file that the plan was made from" in s for s in applied.warnings)
    assert any("targets are not used here" in note for note in applied.notes)
    other = predictions.build(
        unlabelled(clinic(50, 1)), header={"method": "mfvi", "split": "train"}
    )
    warnings = " ".join(plan.apply(other).warnings)
    assert "made for predictions of 'map', these are of 'mfvi'" in warnings
    assert "training items" in warnings
    assert plan.apply(unlabelled(clinic(50, 1))).notes == ()


# Regression.


def values(n, seed, *, spread=1.0):
    rng = np.random.default_rng(seed)
    target = rng.normal(size=n)
    std = 0.2 + 0.3 * rng.random(n)
    return {
        "target": target,
        "mean": target + spread * std * rng.normal(size=n),
        "std": std,
    }


def test_values_are_referred_within_a_budget(tmp_path):
    arrays = values(600, 0)
    plan = qualms.refer(arrays, budget=0.2, confidence=0.9)
    assert plan.uncertainty.name == "std"
    assert plan.shown.referred < 0.2
    kept = arrays["std"] < plan.threshold
    error = np.abs(arrays["mean"] - arrays["target"])
    measure = plan.outcomes[0].measure("mae")
    assert measure.before.value == pytest.approx(error.mean())
    assert measure.kept.value == pytest.approx(error[kept].mean())
    assert measure.with_expert == pytest.approx(np.where(kept, error, 0).mean())
    copy = read_plan(plan.save(tmp_path / "plan.json"))
    applied = copy.apply(unlabelled(values(400, 1)))
    assert applied.check.verdict == "alike"
    far = values(400, 2)
    far["mean"] = far["mean"] + 2.0
    check = copy.apply(unlabelled(far)).check
    assert check.verdict == "unlike"
    assert check.departures[1].what == "predicted values"
    assert check.departures[1].differs
    assert not check.departures[0].differs


def test_intervals_and_selection_scores_order_values_too():
    target = np.arange(50.0)
    ends = {"lower": target - 1, "upper": target + 1 + target % 7}
    interval = predictions.build({"target": target, **ends}, header={"alpha": 0.1})
    plan = qualms.refer(interval, budget=0.2)
    assert plan.uncertainty.name == "width"
    by_array = qualms.refer(
        {"target": target, "mean": target, "select/own": target},
        budget=0.2,
        options=OWN,
    )
    assert by_array.threshold == 40.0
    assert by_array.items.row.tolist() == list(range(49, 39, -1))


# A notebook.


def test_plans_and_what_they_do_are_shown_shortly(plan, tmp_path):
    new = replace(predictions.build(clinic(300, 1)), source="<new>.csv")
    applied = plan.apply(new)
    saved = read_plan(plan.save(tmp_path / "plan.json"))
    for record in (plan, saved, applied, applied.items):
        assert len(repr(record)) < 400
    assert "Refer an item when its entropy" in repr(plan)
    page = applied._repr_html_()
    assert "&lt;new&gt;.csv" in page
    assert applied.check.sentence in page
    assert f"and {len(applied.items) - 10:,} more" in page
    assert "kept by the plan" in plan._repr_html_()
    assert "1,500 items" in saved._repr_html_()


def test_no_name_of_an_item_is_a_formula_in_a_spreadsheet(tmp_path):
    names = ["=1+1", "@SUM(A1)", "+cmd", "-2", "plain", "\t=x", "-1e5"]
    arrays = clinic(len(names), 0) | {"item": names, "group": ["=2"] * len(names)}
    plan = qualms.refer(clinic(400, 1), budget=0.9)
    applied = plan.apply(unlabelled(arrays) | {"prob": np.full(len(names), 0.5)})
    with applied.items.save(tmp_path / "items.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    cells = {row["item"] for row in rows}
    assert cells == {"'=1+1", "'@SUM(A1)", "'+cmd", "-2", "plain", "\t'=x", "-1e5"}
    assert {row["group"] for row in rows} == {"'=2"}
