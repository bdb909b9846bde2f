"""Uncertainties of a method's own are judged on every benchmark, beside the usual."""

from dataclasses import replace

import numpy as np
import pytest

from evaluate import made_maps, made_referrals, made_runs
from evaluate.made_embeddings import make_embedding_runs
from plans import part_of, run_of
from qualms import predictions, scores
from qualms.benchmarks.own import own
from qualms.benchmarks.regression import regression
from qualms.benchmarks.retina import retina
from qualms.benchmarks.url import url
from qualms.benchmarks.values import values
from qualms.evaluate import ScoreOptions
from qualms.evaluate.benchmark import judge_plan
from qualms.evaluate.benchmark_results import BenchmarkResults
from qualms.predictions import SegmentationWriter, read
from qualms.results import ResultsTable, result
from qualms.runs import stored
from qualms.spec import Part, Task
from qualms.study import GUEST, GivenData

BARE = ScoreOptions(resamples=0, workers=1)


def with_guest(plan, name="mine", method="map"):
    """A plan with a row beyond the benchmark, as a method from outside gets it."""
    guests = [row for row in plan.benchmark.guests if row.pool == 1] or [GUEST]
    row = replace(
        guests[0], name=name, label="Mine", method=Part(name=method), beyond=True
    )
    return replace(plan, rows=(*plan.rows, row), extra_rows=(row,))


def add_uncertainties(plan, out, variant, make, **at):
    """Add what `make` gives for the arrays of a file to all runs of the row `mine`."""
    for seed in plan.seeds:
        folder = (
            out / plan.benchmark.name / run_of(plan, variant, "mine", seed, **at).hash
        )
        for path in (folder / "predictions").iterdir():
            found = read(path)
            arrays = {**found.arrays, **make(found)}
            predictions.write(path, arrays, header=found.header)


def labels_of(results, row):
    table = results.table.where(row=row)
    return {number.labels.get("uncertainty") for number in table}


def tables_of(results):
    return {t.name: t for t in results.benchmark.presentation().tables(results)}


def lines_of(table):
    return [line.labels for line in table.lines]


class TestRetina:
    @pytest.fixture(scope="class")
    @classmethod
    def made(cls, tmp_path_factory):
        out = tmp_path_factory.mktemp("runs")
        plan = part_of(retina().plan("demo"), rows=("map",), variants=("country",))
        plan = with_guest(plan, method="evidential")
        made_referrals.make_runs(plan, out)

        def make(found):
            wrong = (found.arrays["probs"].mean(0)[:, 1] > 0.5) != found.arrays[
                "target"
            ]
            return {
                "uncertainty/oracle": wrong + 0.0,
                "uncertainty/noise": np.sin(np.arange(found.n)),
            }

        add_uncertainties(plan, out, "country", make)
        return plan, out

    @pytest.fixture(scope="class")
    @classmethod
    def judged(cls, made):
        return judge_plan(*made, options=BARE)

    def test_they_have_what_depends_on_the_order_of_items(self, judged, made):
        assert labels_of(judged, "mine") == {None, "oracle", "noise"}
        assert labels_of(judged, "map") == {None}
        at = {"row": "mine", "variant": "country", "subset": "in_domain"}
        half = judged.table.at(
            **at, score="accuracy", referred=0.5, uncertainty="oracle"
        )
        assert half.value == 1.0  # fewer than half are wrong
        noise = judged.table.at(
            **at, score="accuracy", referred=0.5, uncertainty="noise"
        )
        plain = judged.table.at(**at, score="accuracy", referred=None)
        assert noise.value == pytest.approx(plain.value, abs=0.1)
        plan, out = made
        run = run_of(plan, "country", "mine", plan.seeds[0]).hash
        splits = [
            read(stored(out / "retina" / run, split))
            for split in ("test", "test/shifted")
        ]
        values = np.concatenate([s.arrays["uncertainty/noise"] for s in splits])
        shifted = np.repeat([False, True], [s.n for s in splits])
        found = judged.table.at(
            row="mine", subset="joint", score="ood_auroc", uncertainty="noise"
        )
        assert found.values[0] == pytest.approx(
            scores.ood_auroc(uncertainty=values, shifted=shifted)
        )
        # What no uncertainty enters is given once.
        assert not len(judged.table.where(score=("nll", "ece"), uncertainty="noise"))

    def test_usual_numbers_and_tables_stay_what_they_were(self, judged, made):
        plan, out = made
        before = judge_plan(part_of(plan, rows=("map",)), out, options=BARE)
        usual = judged.table.where(row="map")
        assert [(n.labels, n.values) for n in before.table] == [
            (n.labels, n.values) for n in usual
        ]
        names = tables_of(before)
        for name, table in tables_of(judged).items():
            assert name in names or name.startswith("table_own_uncertainties")
            if name in names:
                assert len(table.lines) == 2 * len(names[name].lines)

    def test_a_table_sets_them_beside_the_entropy(self, judged):
        table = tables_of(judged)["table_own_uncertainties_country"]
        first, *others = lines_of(table)
        assert first[1] == "entropy of the mean"
        assert others == [
            ("Mine", "entropy of the mean"),
            ("Mine", "oracle"),
            ("Mine", "noise"),
        ]
        assert table.main

    def test_uncertainties_of_all_rows_are_ranked_together(self, made):
        judged = judge_plan(*made, options=replace(BARE, seed=1))
        at = {"subset": "in_domain", "score": "accuracy", "referred": 0.5}
        oracle = judged.table.at(row="mine", uncertainty="oracle", **at)
        ranking = judged.among_uncertainties(oracle)
        assert ranking.reason.startswith("2 seeds do not show how far others may lie")
        compared = {(each.row, each.uncertainty) for each in ranking.compared}
        mine = {("mine", name) for name in ("oracle", "noise", None)}
        assert compared == {("map", None), *mine}


class TestRegression:
    @pytest.fixture(scope="class")
    @classmethod
    def judged(cls, tmp_path_factory):
        out = tmp_path_factory.mktemp("runs")
        plan = regression().plan("demo")
        plan = part_of(plan, rows=("gaussian",), variants=("cells_tails",))
        plan = with_guest(plan, method="laplace")
        made_runs.make_runs(plan, out, {"val": 300, "test": 400})

        def make(found):
            error = np.abs(found.arrays["mean"][0] - found.arrays["target"])
            return {
                "uncertainty/oracle": error,
                "uncertainty/index": np.arange(found.n),
            }

        add_uncertainties(plan, out, "cells_tails", make, alpha=0.1)
        return judge_plan(plan, out, options=BARE)

    def test_they_select_the_items_that_are_predicted(self, judged):
        assert labels_of(judged, "mine") == {None, "oracle", "index"}
        at = {"row": "mine", "subset": "test", "alpha": 0.1}
        every = judged.table.at(**at, score="mae", uncertainty=None)
        kept = judged.table.at(**at, score="mae", uncertainty="oracle")
        assert kept.value < 0.8 * every.value
        rate = judged.table.at(**at, score="prediction_rate", uncertainty="oracle")
        assert 0.2 < rate.value < 0.9  # the shifted items are left out
        covered = judged.table.at(**at, score="coverage", uncertainty="oracle")
        assert covered.low <= covered.value <= covered.high

    def test_a_table_sets_them_beside_no_selection(self, judged):
        table = tables_of(judged)["table_own_uncertainties_cells_tails"]
        assert lines_of(table) == [
            ("Mine", "all items are predicted"),
            ("Mine", "oracle"),
            ("Mine", "index"),
        ]
        assert table.columns[0].label == "test coverage"


class TestUrl:
    def test_a_single_uncertainty_has_its_name_too(self, tmp_path):
        plan = part_of(
            url().plan("demo"), variants=("species",), rows=("ce",), seeds=(1,)
        )
        plan = with_guest(plan, method="losspred")
        make_embedding_runs(plan, tmp_path)
        folder = tmp_path / "url" / run_of(plan, "species", "mine", 1).hash
        for path in (folder / "predictions").iterdir():
            found = read(path)
            arrays = {
                name.replace("/head", "/mine"): values
                for name, values in found.arrays.items()
                if not name.endswith("/entropy")
            }
            predictions.write(path, arrays, header=found.header)
        judged = judge_plan(plan, tmp_path, options=BARE)
        assert labels_of(judged, "mine") == {None, "mine"}
        assert labels_of(judged, "ce") == {None}
        at = {"row": "mine", "subset": "all", "score": "r_auroc"}
        named, main = (judged.table.at(**at, uncertainty=u) for u in ("mine", None))
        assert named.values == main.values
        table = tables_of(judged)["table_uncertainties"]
        assert lines_of(table) == [("Mine", "mine")]
        # The row of a method from outside stands in the other tables too.
        assert ("Mine",) in lines_of(tables_of(judged)["table_results"])

    def test_of_several_the_named_one_or_the_first_is_taken(self, tmp_path):
        plan = part_of(
            url().plan("demo"), variants=("species",), rows=("ce",), seeds=(1,)
        )
        plan = with_guest(plan, method="losspred")
        make_embedding_runs(plan, tmp_path)
        folder = tmp_path / "url" / run_of(plan, "species", "mine", 1).hash
        paths = tuple((folder / "predictions").iterdir())
        for header, name in ((None, "z"), ("a", "a")):
            for path in paths:
                found = read(path)
                bare = {k: v for k, v in found.arrays.items() if "/" not in k}
                several = {
                    f"uncertainty/{u}": np.random.default_rng(i).random(found.n)
                    for i, u in enumerate(("z", "a"))
                }
                predictions.write(
                    path,
                    bare | several,
                    header=replace(found.header, uncertainty=header),
                )
            judged = judge_plan(plan, tmp_path, options=BARE)
            at = {"row": "mine", "subset": "all", "score": "r_auroc"}
            main = judged.table.at(**at, uncertainty=None)
            assert main.values == judged.table.at(**at, uncertainty=name).values
            assert labels_of(judged, "mine") == {None, "z", "a"}


class TestValues:
    @pytest.fixture(scope="class")
    @classmethod
    def judged(cls, tmp_path_factory):
        out = tmp_path_factory.mktemp("runs")
        shown = {n: getattr(values(), n) for n in ("presentation", "published")}
        plan = made_maps.made_benchmark(**shown).plan("demo")
        plan = part_of(plan, rows=("softmax",), variants=("lidc",))
        named = replace(plan.variants[0], label="LIDC TEX", labels={"family": "LIDC"})
        plan = replace(plan, variants=(named,))
        plan = replace(plan, seeds=(0, 1), alone=(0, 1))
        plan = with_guest(plan, method="mc_dropout")
        made_maps.make_map_runs(plan, out)
        for seed in plan.seeds:
            folder = out / "values" / run_of(plan, "lidc", "mine", seed).hash
            for path in (folder / "predictions").iterdir():
                rewrite(path)
        return judge_plan(plan, out, options=BARE)

    def test_maps_and_numbers_are_judged_in_every_task(self, judged):
        assert labels_of(judged, "mine") == {None, "shift", "rim"}
        detected = judged.table.at(
            row="mine", score="ood_auroc", uncertainty="shift", aggregation=None
        )
        assert detected.value == 1.0
        for score, subset in (("aurc", "in_domain"), ("ood_auroc", "all")):
            over = judged.table.where(
                row="mine", score=score, subset=subset, uncertainty="rim"
            )
            assert set(over.distinct("aggregation")) >= {"image", "patch", "threshold"}
        ncc = judged.table.at(
            row="mine", score="ncc", subset="in_domain", uncertainty="rim"
        )
        built_in = judged.table.at(
            row="mine", score="ncc", subset="in_domain", measure="PE"
        )
        assert ncc.value != built_in.value
        assert len(judged.table.where(score="ace", uncertainty="rim"))

    def test_a_table_has_their_tasks(self, judged):
        table = tables_of(judged)["table_own_uncertainties_lidc"]
        lines = lines_of(table)
        assert ("Mine", "shift", "") in lines
        assert ("Mine", "rim", "patch") in lines
        assert all(line[1] in ("shift", "rim") for line in lines)
        assert {column.group for column in table.columns} >= {"OoD detection"}


def rewrite(path):
    """Write segmented items again, with a map and a number of the method's own."""
    found = read(path)
    rim = [
        np.abs(m.mean_probs[1] - 0.5).max() - abs(m.mean_probs[1] - 0.5)
        for m in found.maps
    ]
    with SegmentationWriter(path, header=found.header) as writer:
        for row, maps in enumerate(found.maps):
            shifted = bool(found.arrays["shifted"][row])
            writer.add(
                str(found.arrays["item"][row]),
                replace(maps, uncertainty={"rim": rim[row]}),
                shifted=shifted,
                cluster=str(found.arrays["cluster"][row]),
                uncertainty={"shift": float(shifted)},
            )


def own_results(*names):
    """Results on a user's own classes, of one method with these uncertainties."""
    given = GivenData(
        name="pictures",
        dataset=Part(name="folder"),
        task=Task(name="classification", classes=2),
        shape=(32, 32, 3),
        sizes={"train": 40, "val": 20, "test": 20},
    )
    plan = part_of(own(given=given).plan("pictures"), rows=("map",))
    (line,) = plan.lines
    numbers = (
        result(
            {**line.labels, "subset": "all", "score": "aurc", "uncertainty": name},
            (0.1, 0.2, 0.3),
        )
        for name in names
    )
    return BenchmarkResults(plan=plan, table=ResultsTable.of(numbers))


class TestOwnData:
    def test_a_table_has_them_beside_the_usual_ones(self):
        table = tables_of(own_results("entropy", "epistemic", "margin"))[
            "table_own_uncertainties_pictures"
        ]
        assert lines_of(table) == [
            ("plain network", "entropy"),
            ("plain network", "epistemic"),
            ("plain network", "margin"),
        ]
        assert table.main

    def test_usual_ones_alone_have_no_table(self):
        tables = tables_of(own_results("entropy", "epistemic"))
        assert tables
        assert "table_own_uncertainties_pictures" not in tables
