"""The URL benchmark's tables and figures, ours beside the published numbers."""

import math
from dataclasses import replace

import numpy as np
import pytest

from evaluate.made_embeddings import make_embedding_runs
from plans import part_of
from qualms.benchmarks.url._correlations import CORRELATIONS, correlated
from qualms.benchmarks.url._rows import FIRST_NAMES
from qualms.benchmarks.url._scatters import choice
from qualms.benchmarks.url._settings import (
    R_AUROC,
    RECALL,
    VAL_R_AUROC,
    VAL_RECALL,
    UrlStudy,
)
from qualms.evaluate import ScoreOptions
from qualms.evaluate.benchmark import judge_plan
from qualms.report._latex import latex_table
from qualms.report.benchmark import write_all
from qualms.report.figures import BarMark, PointMark
from qualms.report.presented import presentation_of
from qualms.results import ResultsTable, result
from qualms.spec import Part
from qualms.study import TableRow
from report.made_url import DEMO, SMALL, around, url_results_as_published


@pytest.fixture(scope="module")
def results():
    return url_results_as_published()


@pytest.fixture(scope="module")
def tables(results):
    return {table.name: table for table in presentation_of(results).tables(results)}


@pytest.fixture(scope="module")
def figures(results):
    return {one.name: one for one in presentation_of(results).figures(results, None)}


def line(table, variant, row):
    (found,) = [
        one
        for one in table.lines
        if (one.keys["variant"], one.keys["row"]) == (variant, row)
    ]
    return found


def test_our_numbers_stand_beside_the_published_ones(tables):
    table = tables["table_results"]
    lines = [one for one in table.lines if one.keys["row"] in FIRST_NAMES]
    assert len(lines) == 22
    cells = line(table, "resnet50", "mcinfonce").cells
    assert cells[0].mean == pytest.approx(0.5694)
    for one in lines:
        for cell in one.cells:
            assert cell.published.mean == pytest.approx(cell.mean)
            assert cell.gap == pytest.approx(0.0)


def test_numbers_of_simulated_data_are_not_compared():
    results = url_results_as_published(SMALL)
    found = {table.name: table for table in presentation_of(results).tables(results)}
    table = found["table_results"]
    assert table.simulated
    assert any("not for their size" in note for note in table.every_note)
    for one in table.lines:
        assert all(math.isnan(cell.gap) for cell in one.cells)


def test_a_method_beyond_the_paper_shows_every_uncertainty_it_is_judged_by(results):
    guest = TableRow(name="tta", label="tta", method=Part(name="tta"), beyond=True)
    us = ("entropy", "mutual_information")
    plan = replace(
        results.plan,
        rows=(*results.plan.rows, guest),
        variants=tuple(
            replace(one, rows=(*one.rows, "tta")) for one in results.plan.variants
        ),
    )
    hosting = replace(results, plan=plan)
    (line,) = hosting.lines(variant="resnet50", row="tta")
    added = (
        result({**line.labels, **R_AUROC.labels, "uncertainty": u}, (0.6,)) for u in us
    )
    hosting = replace(hosting, table=results.table + ResultsTable.of(added))
    found = {table.name: table for table in presentation_of(hosting).tables(hosting)}
    keys = [line.keys for line in found["table_uncertainties"].lines]
    assert [k["uncertainty"] for k in keys if k["row"] == "tta"] == list(us)


def test_configurations_alone_are_listed():
    names = ("tradeoff_species_0", "tradeoff_species_1")
    results = url_results_as_published(part_of(SMALL, variants=names))
    found = {table.name: table for table in presentation_of(results).tables(results)}
    sections = dict.fromkeys(one.section for one in found["table_results"].lines)
    titles = [f"Species, ResNet-18, configuration {number}" for number in (0, 1)]
    assert [*sections] == titles
    # What is published is of the configuration that the paper chose.
    for one in found["table_results"].lines:
        assert all(cell.published is None for cell in one.cells)
    assert "figure 6 needs" in " ".join(presentation_of(results).notes(results))


def test_rows_of_other_variants_leave_no_empty_lines():
    results = url_results_as_published(DEMO)
    assert "losspred_ranking" in {row.name for row in DEMO.rows}
    for table in presentation_of(results).tables(results):
        assert "losspred_ranking" not in {one.keys.get("row") for one in table.lines}


def test_table_1_has_the_papers_costs(tables):
    cells = line(tables["table_1"], "resnet50", "mcdropout").cells
    assert cells[0].mean == pytest.approx(cells[0].published.mean)
    assert cells[2].mean == pytest.approx(7105 / 5971)
    assert cells[4].mean == pytest.approx(13.1)
    assert cells[3].mean == pytest.approx(13.1 / 2)


def test_few_shot_numbers_are_means_over_sets(tables):
    cells = line(tables["table_few_shot"], "resnet50", "ce").cells
    assert [cell.mean for cell in cells[:5]] == pytest.approx(
        [0.558, 0.607, 0.646, 0.692, 0.684]
    )


@pytest.mark.parametrize(
    ("few", "words"),
    [
        (("ce_few2_birds",), "Means over birds,"),
        (("ce_few1_birds", "ce_few1_cars"), "Means over birds and cars,"),
        (("ce_few2_birds", "elk_few2_cars"), None),
    ],
)
def test_few_shot_means_are_over_the_sets_that_were_asked_for(few, words):
    plan = part_of(SMALL, variants=("species",), rows=("ce", "elk", *few))
    values = dict(zip(("ce", *few), (0.5, 0.6, 0.7), strict=False))
    made = (
        result({**line.labels, **R_AUROC.labels}, (values[line.row.name],))
        for line in plan.lines
        if line.row.name in values
    )
    results = replace(url_results_as_published(plan), table=ResultsTable.of(made))
    paper = presentation_of(results)
    found = {table.name: table for table in paper.tables(results)}
    drawn = [one.name for one in paper.figures(results, None)]
    assert ("figure_13" in drawn) == ("table_few_shot" in found) == (words is not None)
    if words:
        assert words in found["table_few_shot"].notes[0]
        shown = line(found["table_few_shot"], "species", "ce").cells
        means = [cell.mean for cell in shown if not math.isnan(cell.mean)]
        assert means == pytest.approx([0.6 if len(few) == 1 else 0.65])
    else:
        assert any("trained on all of those" in note for note in paper.notes(results))


def test_every_table_is_latex(tables):
    for table in tables.values():
        assert "\\begin{tabular}" in latex_table(table)


def test_bars_stand_in_order_and_show_the_extreme_seeds(figures):
    for name in ("figure_1", "figure_6", "figure_10", "figure_12"):
        for panel in figures[name].panels:
            bars = [mark for mark in panel.marks if isinstance(mark, BarMark)]
            heights = [bar.height for bar in bars]
            assert len(bars) == 11
            assert heights == sorted(heights, reverse=True)
            for bar in bars:
                assert bar.high - bar.low == pytest.approx(0.02)


def test_published_points_lie_on_ours(figures):
    panel = figures["figure_1"].panels[0]
    bars = {mark.x: mark.height for mark in panel.marks if isinstance(mark, BarMark)}
    hollow = [mark for mark in panel.marks if isinstance(mark, PointMark)]
    assert len(hollow) == 11
    assert all(bars[mark.x] == pytest.approx(mark.y) for mark in hollow)


def test_correlations_of_the_text_are_found(results):
    study = UrlStudy(results)
    assert study.printed_in_text("rank_corr_human_alignment_vs_r_auroc") == 0.8
    assert study.printed_in_text("r_auroc_many_shot") == 0.68
    named = [study.printed_in_text(p.published) for p in CORRELATIONS if p.published]
    assert len(named) == 4
    assert all(map(math.isfinite, named))
    assert math.isnan(correlated([(1.0, 2.0), (2.0, 1.0)]).value)
    assert correlated([(1.0, 3.0), (2.0, 2.0), (3.0, 1.0)]).value == -1.0


def test_correlations_have_intervals_over_methods(results, tables):
    for one in tables["table_correlations"].lines:
        cell = one.cells[0]
        if math.isfinite(cell.mean) and abs(cell.mean) < 1:
            assert -1 < cell.low < cell.mean < cell.high < 1, one.labels
    rng = np.random.default_rng(0)
    common = rng.normal(size=11)
    points = [(x, x + e) for x, e in zip(common, rng.normal(size=11), strict=True)]
    names = [f"m{number}" for number in range(11)]
    alone = correlated(points, names)
    thrice = correlated([p for p in points for _ in range(3)], [*np.repeat(names, 3)])
    assert alone.low < alone.value < alone.high
    # Three equal runs of each method say no more than one.
    assert (thrice.low, thrice.high) == pytest.approx((alone.low, alone.high), abs=0.1)
    assert "8 methods" in correlated(points[:7], names[:7]).no_interval


def test_the_true_ambiguity_has_its_table(tmp_path):
    plan = part_of(
        SMALL,
        variants=("species",),
        rows=("ce", "elk", "hetxl", "hetxl_log_determinant"),
        seeds=(1,),
        pools=((1,),),
    )
    make_embedding_runs(plan, tmp_path)
    results = judge_plan(plan, tmp_path, options=ScoreOptions(resamples=0, workers=1))
    found = {table.name: table for table in presentation_of(results).tables(results)}
    table = found["table_truth"]
    assert len(table.lines) == 4
    labels = [column.label for column in table.columns]
    assert labels[0] == "all downstream sets ↑"
    assert labels[-1] == "upstream ↑"
    for cell in table.cells:
        assert cell.low < cell.mean < cell.high


def test_numbers_that_are_there_have_no_reason_to_be_missing(tables):
    cells = [cell for table in tables.values() for cell in table.cells]
    assert any(math.isfinite(cell.mean) for cell in tables["table_correlations"].cells)
    for cell in cells:
        assert bool(cell.why) <= math.isnan(cell.mean)


def test_a_configuration_is_chosen_on_validation_items_that_retrieve():
    """That with the best R-AUROC retrieves too little, and may not be chosen."""
    plan = replace(SMALL, variants=SMALL.preset.further[:3])
    plan = part_of(plan, rows=("ce",))
    rated = ((0.9, 0.05), (0.6, 0.3), (0.5, 0.7))
    made = [
        around(line, score, value)
        for line, values in zip(plan.lines, rated, strict=True)
        for score, value in zip((VAL_R_AUROC, VAL_RECALL), values, strict=True)
    ]
    results = replace(url_results_as_published(plan), table=ResultsTable.of(made))
    study = UrlStudy(results)
    chosen = [choice(study, plan.variants, "ce", by) for by in (R_AUROC, RECALL)]
    assert chosen == [plan.variants[1], plan.variants[2]]


def test_everything_is_written_from_predictions(tmp_path, monkeypatch):
    monkeypatch.setattr("qualms.report._draw.KINDS", ("png",))  # half the time
    names = ("species", "species_recall", "tradeoff_species_0")
    few = tuple(f"ce_few2_{name}" for name in ("birds", "cars", "products"))
    plan = part_of(
        SMALL,
        variants=names,
        rows=("ce", "infonce", "elk", *few),
        seeds=(1, 2),
        pools=((1,), (2,)),
    )
    make_embedding_runs(plan, tmp_path)
    options = ScoreOptions(resamples=0, workers=2)
    results = judge_plan(plan, tmp_path, options=options)
    written = write_all(results, tmp_path / "shown")
    there = {path.stem for path in written.figures}
    assert there == {f"figure_{number}" for number in range(1, 14)} - {"figure_8"}
    tables = {path.stem for path in written.tables}
    assert {"table_1", "table_results", "table_by_set", "table_few_shot"} <= tables
