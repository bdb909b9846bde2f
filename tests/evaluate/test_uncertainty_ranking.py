"""Uncertainties of one row and of several, ranked together."""

import numpy as np
import pytest

from plans import part_of
from qualms import predictions
from qualms.benchmarks.own import own
from qualms.evaluate import ScoreOptions
from qualms.evaluate.benchmark import judge_plan
from qualms.inference import RowSeeds, seed_spread
from qualms.inference._seeds import draw_seeds
from qualms.report.benchmark import presentation_of
from qualms.spec import Part, Task
from qualms.study import GivenData

ITEMS = 150
GIVEN = GivenData(
    name="pets",
    dataset=Part(name="folder", options={"contents": "f" * 16}),
    task=Task(name="classification", classes=3),
    shape=(28, 28, 1),
    sizes={"train": 1_000, "val": 100, "test": 100},
    corruptions=(("fog", 1), ("fog", 5)),
)
STRONG = {"good": 2.0, "alike": 2.0, "weak": 0.4, "chance": 0.0}


def arrays_of(run, split, part):
    """Uncertainties that notice severity 5 well, better or not at all."""
    rng = np.random.default_rng([run.seed, len(run.method.name), *split.encode()])
    items = np.random.default_rng(7).standard_normal(ITEMS)
    level = {"test+fog-5": 1.0, "test+fog-1": 0.1}.get(split, 0.0)
    prob = rng.dirichlet(np.ones(3), ITEMS)
    target = np.where(rng.random(ITEMS) < 0.8, prob.argmax(1), 0)
    own_ones = {
        f"uncertainty/{name}": strength * level
        + 0.3 * items
        + rng.standard_normal(ITEMS)
        for name, strength in (STRONG if part else {}).items()
    }
    names = [f"item {number}" for number in range(ITEMS)]
    return {"target": target, "probs": prob, "item": names, **own_ones}


@pytest.fixture(scope="module")
def judged(tmp_path_factory):
    out = tmp_path_factory.mktemp("runs")
    plan = part_of(own(given=GIVEN).plan("pets"), rows=("map", "mc_dropout"))
    for run in plan.runs:
        folder = out / "own" / run.hash / "predictions"
        folder.mkdir(parents=True)
        for split in run.splits:
            header = {
                "task": "classification",
                "dataset": "folder",
                "split": split,
                "method": run.method.name,
                "seed": run.seed,
            }
            arrays = arrays_of(run, split, run.method.name == "mc_dropout")
            path = folder / f"{split}.safetensors"
            predictions.write(path, arrays, header=header)
    return judge_plan(plan, out, options=ScoreOptions(resamples=0, workers=1))


def detection(judged, severity, row, uncertainty):
    return judged.table.at(
        score="ood_auroc",
        severity=severity,
        row=row,
        uncertainty=uncertainty,
        subset="all",
    )


def test_the_best_and_its_equals_are_told_from_the_others(judged):
    best = detection(judged, 5, "mc_dropout", "good")
    ranking = judged.among_uncertainties(best)
    members = {(each.row, each.uncertainty) for each in ranking.members}
    assert ranking.reason == ""
    assert members == {("mc_dropout", "good"), ("mc_dropout", "alike")}
    compared = {(each.row, each.uncertainty) for each in ranking.compared}
    assert {("map", "entropy"), ("mc_dropout", "entropy")} < compared
    same = judged.among_uncertainties(detection(judged, 5, "map", "entropy"))
    assert same is ranking
    assert not ranking.may_be_best("map", "entropy")
    # Among rows with an uncertainty of that name there is no other.
    assert best.best == ""


def test_where_nothing_is_noticed_any_may_be_best(judged):
    number = detection(judged, 1, "mc_dropout", "chance")
    ranking = judged.among_uncertainties(number)
    assert set(ranking.members) >= {
        each for each in ranking.compared if each.uncertainty != "good"
    }


def test_a_number_without_several_uncertainties_is_not_ranked_so(judged):
    number = judged.table.where(score="accuracy", row="map").row(0)
    assert judged.among_uncertainties(number) is None


def test_the_table_of_detection_is_marked_across_uncertainties(judged):
    tables = {t.name: t for t in presentation_of(judged).tables(judged)}
    table = tables["table_corruptions_detection"]
    assert table.left == ("corruption", "method", "uncertainty")
    marks = {line.labels[2]: line.cells[1] for line in table.lines}
    assert marks["good"].tied
    assert marks["alike"].tied
    assert not marks["weak"].tied
    assert sum(line.cells[1].best for line in table.lines) == 1
    assert all(np.isfinite([c.low, c.high]).all() for c in table.cells)
    severities = [column.label for column in table.columns]
    assert severities == ["1", "5"]


def test_items_that_are_stored_and_corrupted_are_one_draw(judged):
    """Corrupted copies of the same items lie closer than other items would."""
    number = detection(judged, 5, "mc_dropout", "good")
    assert number.high - number.low < 0.2
    assert number.covers == "items and seeds"


def test_noise_of_shared_seeds_goes_together_as_the_runs_do():
    values = np.array([[0.1, 0.5, 0.9], [0.2, 0.6, 1.0], [0.9, 0.5, 0.1]])
    spread = seed_spread(values[0])
    rows = [RowSeeds(spread, "method", each) for each in values]
    shared = draw_seeds(rows, 4_000, np.random.default_rng(0)).noise
    np.testing.assert_allclose(shared[:, 0], shared[:, 1])
    np.testing.assert_allclose(shared[:, 0], -shared[:, 2])
    alone = draw_seeds([RowSeeds(spread)] * 3, 4_000, np.random.default_rng(1)).noise
    assert abs(np.corrcoef(alone.T)[0, 1]) < 0.1
    for quantile in (0.5, 0.9):
        ours, theirs = (np.quantile(abs(n[:, 0]), quantile) for n in (shared, alone))
        assert ours == pytest.approx(theirs, rel=0.1)
