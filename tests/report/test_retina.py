"""RETINA's tables and figures, ours beside the published numbers."""

import csv
import math
from dataclasses import replace

import numpy as np
import pytest
from rich.console import Console
from scipy import stats

from plans import part_of
from qualms.benchmarks.retina._histograms import wrong_text
from qualms.datasets import cache_folder, prepare
from qualms.evaluate import Histogram
from qualms.evaluate.benchmark import checks_of
from qualms.labels import Labelled, fits
from qualms.report._csv_files import write_results, write_table_csv
from qualms.report._latex import latex_table
from qualms.report.benchmark import print_benchmark
from qualms.report.figures import (
    RIGHT,
    WRONG,
    BarMark,
    CurveMark,
    HistogramMark,
    PictureMark,
    PointMark,
    WordMark,
)
from qualms.report.judged import ERROR, over_repeats
from qualms.report.presented import presentation_of
from qualms.results import Result, ResultsTable, result
from qualms.scores.as_published import retina as released
from qualms.shelf import find
from report.made_retina import (
    BENCHMARK,
    DEMO,
    NUMBERS,
    PAPER,
    results_as_published,
    with_results,
)

PRINTED = sorted(NUMBERS.pivot(("source", "table"), ()).rows)


@pytest.fixture(scope="module")
def results():
    return results_as_published()


@pytest.fixture(scope="module")
def simulated():
    return results_as_published(plan=DEMO, simulated=True)


@pytest.fixture(scope="module")
def drawn():
    return results_as_published(drawn=True)


@pytest.fixture(scope="module")
def drawn_simulated():
    return results_as_published(plan=DEMO, simulated=True, drawn=True)


@pytest.fixture(scope="module")
def drawings(drawn):
    return figures(drawn)


@pytest.fixture(scope="module")
def simulated_drawings(drawn_simulated):
    return figures(drawn_simulated)


def with_tied(results, *members, **labels):
    """The results with the first of these rows as the best of a column."""
    rows = (
        replace(row, best=members[0], tied=row.labels["row"] in members)
        if fits(row.labels, {"referred": None, **labels})
        else row
        for row in results.table
    )
    return replace(results, table=ResultsTable.of(rows))


def labels_of(results, variant, row, subset, score):
    """The labels of a number of all items of a subset."""
    (line,) = results.lines(variant=variant, row=row)
    return {**line.labels, "subset": subset, "score": score}


def tables(results):
    made = by_results(results, lambda shown: shown.tables(results))
    return {table.name: table for table in made}


def figures(results):
    made = by_results(results, lambda shown: shown.figures(results, None), "figures")
    return {drawing.name: drawing for drawing in made}


def by_results(results, make, kind="tables"):
    """What is made of the same results by several tests is made once."""
    key = kind, id(results)
    if key not in MADE:
        MADE[key] = results, tuple(make(presentation_of(results)))
    return MADE[key][1]


MADE = {}


def paper_tables(results):
    return [table for table in tables(results).values() if "number" in table.keys]


def shown(results, width=120, **options):
    console = Console(width=width)
    with console.capture() as capture:
        print_benchmark(results, console=console, **options)
    return capture.get()


def lines_of(path):
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def cell_of(table, row, score, subset="in_domain"):
    for line in table.lines:
        for column, cell in zip(table.columns, line.cells, strict=True):
            keys = {**line.keys, **column.keys}
            if (keys["row"], keys["score"], keys["subset"]) == (row, score, subset):
                return cell
    raise LookupError


def test_all_13_tables_are_there_for_the_papers_data(results):
    numbers = {table.keys["number"] for table in paper_tables(results)}
    assert {n for n in numbers if n.isdecimal()} == set(map(str, range(1, 14)))
    assert not any(table.simulated for table in tables(results).values())


@pytest.mark.parametrize(("source", "number"), PRINTED)
def test_published_numbers_compared_with_themselves_differ_by_nothing(source, number):
    results = results_as_published(only=(source, number))
    name = number if source == "000_retina" else f"{number}_full_paper"
    table = tables(results)[f"table_{name}"]
    found = [
        (cell, 100.0 if column.unit in ("%", "x100") else 1.0)
        for line in table.lines
        for column, cell in zip(table.columns, line.cells, strict=True)
        if cell.published
    ]
    printed = [row.value for row in NUMBERS.where(source=source, table=number)]
    ours = [cell.published.mean / scale for cell, scale in found]
    assert sorted(ours) == pytest.approx(sorted(printed), rel=1e-12)
    for cell, _ in found:
        assert cell.gap == pytest.approx(0.0, abs=1e-9)
        assert math.isnan(cell.difference) == (not cell.published.std > 0)


def test_a_difference_is_in_units_of_the_published_standard_error(results):
    labels = labels_of(results, "country", "map", "in_domain", "auroc")
    number = result(labels, (0.8,), released_values=(0.894,))
    changed = replace(results, table=with_results(results, number))
    found = cell_of(tables(changed)["table_1"], "map", "auroc")
    assert tuple(found.published) == pytest.approx((87.4, 1.0), rel=1e-12)
    assert found.difference == pytest.approx(found.gap) == pytest.approx(2.0)


def test_the_study_of_blur_has_four_lines_per_row_and_marks_no_best_one(results):
    """The best is sought among the rows of one constant, and the lines are of four."""
    at = {"subset": "in_domain", "score": "auroc"}
    variants = ("country", "country_blur5")
    made = with_tied(results, "map", "mc_dropout", **at, variant=variants)
    table = tables(made)["table_13"]
    inside = [line for line in table.lines if line.section == "in-domain"]
    assert len(inside) == 16
    assert inside[3].labels == ("MAP (Deterministic), blur 30",)
    assert not table.marks
    assert tables(made)["table_1"].marks
    assert "blur" not in table.about


def test_the_study_of_blur_has_its_tables_and_figures_in_preset_small():
    small = BENCHMARK.plan("small")
    blurred = [v for v in small.preset.further if v.dataset.options.get("blur")]
    plan = replace(small, variants=tuple(blurred))
    made = results_as_published(plan=plan, simulated=True, drawn=True)
    for name in ("table_12_simulated", "table_13_simulated"):
        table = tables(made)[name]
        assert {line.labels[0].split("blur ")[1] for line in table.lines} == {
            *("5", "10", "20", "30")
        }
        assert not table.compares
    names = {d.name for d in presentation_of(made).figures(made, None)}
    for figure in ("figure_19_severity", "figure_20_country"):
        assert f"{figure}_blur30_simulated" in names


def test_every_table_says_its_selection_preset_and_data(results, simulated):
    for made in (results, simulated):
        changed = replace(made.plan, changes=("epochs=1",))
        for table in tables(replace(made, plan=changed)).values():
            selection = table.keys["selection"]
            assert f"selection {selection}: chosen on" in table.about
            preset = f"preset {made.preset.name} with epochs=1, onset moderate"
            assert preset in table.about
            assert ("simulated data" in table.about) == (made is simulated)
            assert table.about.replace("_", r"\_") in latex_table(table)
    joint = [t for t in paper_tables(results) if t.keys["selection"] == "joint"]
    assert {table.keys["number"] for table in joint} == {"8", "9", "10", "11"}


def test_tables_that_nothing_was_judged_for_are_named(simulated):
    (note,) = presentation_of(simulated).notes(simulated)
    assert note == "nothing was judged for the paper's tables 8, 9, 10, 11, 12, 13"
    assert all(table.simulated for table in tables(simulated).values())


def test_pools_of_other_sizes_are_not_compared_with_the_papers():
    """Not even where their numbers are those of the paper's pools."""
    plan = replace(PAPER, rows=(*PAPER.rows, PAPER.row("map_pair")))
    pairs = [
        cell
        for table in paper_tables(results_as_published(plan=plan))
        for line in table.lines
        if line.keys["row"] == "map_pair"
        for cell in line.cells
    ]
    assert pairs
    assert any(cell.repeats for cell in pairs)
    assert all(cell.published is None for cell in pairs)
    assert {cell.remark for cell in pairs} == {"not in the paper"}


def other(results, **options):
    """`results` as if options of all datasets had been changed."""
    variants = tuple(
        replace(v, dataset=replace(v.dataset, options={**v.dataset.options, **options}))
        for v in results.plan.variants
    )
    plan = replace(results.plan, variants=variants)
    both = zip(results.plan.lines, plan.lines, strict=True)
    lines = {(o.labels["variant"], o.labels["row"]): (o, n) for o, n in both}

    def relabelled(labels):
        old, new = lines[labels["variant"], labels["row"]]
        own = {n: v for n, v in labels.items() if n not in old.labels}
        return {**new.labels, **own}

    rows = (replace(row, labels=relabelled(row.labels)) for row in results.table)
    drawn = (
        Labelled.of((relabelled(labels), thing) for labels, thing in things)
        for things in (results.curves, results.histograms)
    )
    return replace(
        results,
        plan=plan,
        table=ResultsTable.of(rows),
        **dict(zip(("curves", "histograms"), drawn, strict=True)),
    )


@pytest.mark.parametrize("options", [{"onset": "mild"}, {"size": 256}])
def test_numbers_of_another_setting_are_not_compared_with_the_papers(
    drawn, options, tmp_path
):
    made = other(drawn, **options)
    for table in tables(made).values():
        assert not table.compares
        assert "the paper's photographs in another setting" in table.about
    (line, *_) = lines_of(write_table_csv(tables(made)["table_1"], tmp_path / "t.csv"))
    assert line["onset"] == options.get("onset", "moderate")
    assert line["ours_mean"]
    assert not line["published_mean"]
    assert "another setting" in line["remark"]
    real = [d for d in figures(made).values() if not d.simulated]
    assert real
    assert not any("published" in drawing.labels for drawing in real)


def test_a_blur_that_is_not_the_tables_has_no_number_of_it():
    made = results_as_published(plan=part_of(PAPER, variants=("country",)))
    found = paper_tables(other(made, blur=10))
    assert {table.keys["number"] for table in found} == {"1", "3", "4", "6"}
    for table in found:
        assert not table.compares
        assert "onset moderate, blur 10;" in table.about


def test_numbers_of_simulated_data_are_not_compared_with_the_papers(simulated):
    for table in tables(simulated).values():
        assert not table.compares
        assert {cell.remark for cell in table.cells} == {
            "simulated data, not the paper's"
        }
    assert "published" not in shown(simulated, full=True).lower()


def test_tables_are_written_in_the_papers_units(results, tmp_path):
    path = write_table_csv(tables(results)["table_6"], tmp_path / "t.csv")
    wanted = {"subset": "in_domain", "score": "referral_nll_oracle_area", "row": "map"}
    (line,) = (line for line in lines_of(path) if wanted.items() <= line.items())
    assert (line["selection"], line["unit"]) == ("in_domain", "x100")
    assert (line["published_mean"], line["published_spread"]) == ("60.5", "3.6")
    assert float(line["released_mean"]) == pytest.approx(60.5)
    assert float(line["ours_low"]) == pytest.approx(0.99 * 60.5)


def test_selections_and_costs_stand_in_the_file_of_all_numbers(results, tmp_path):
    lines = lines_of(write_results(results, tmp_path / "r.csv"))
    assert len(lines) == len(results.table)
    assert {line["selection"] for line in lines} == {"in_domain", "joint"}
    assert {line["referred"] for line in lines} == {"", "0.5", "0.7"}
    assert not {"alpha", "settings"} & set(lines[0])


def test_standard_errors_divide_by_one_less_and_the_released_ones_do_not():
    values = (0.81, 0.84, 0.86, 0.9)
    assert over_repeats(values, ERROR).std == pytest.approx(stats.sem(values))
    theirs = over_repeats(values, ERROR, released=True).std
    assert theirs == pytest.approx(released.stderr(values))
    with_gap = over_repeats((*values, math.nan), ERROR, scale=100)
    assert with_gap.mean == pytest.approx(100 * np.mean(values))
    assert with_gap.std == pytest.approx(100 * stats.sem(values))
    assert math.isnan(over_repeats((), ERROR).mean)


def test_repeats_that_are_undefined_are_counted(results):
    labels = labels_of(results, "country", "map", "in_domain", "auroc")
    number = result(labels, (0.8, math.nan, 0.9), why="only one class")
    changed = replace(results, table=with_results(results, number))
    found = cell_of(tables(changed)["table_1"], "map", "auroc")
    assert found.mean == pytest.approx(85.0)
    assert found.why == "only one class; 1 of 3 repeats are undefined"


def test_our_own_table_sets_the_released_rules_beside_the_right_ones(results):
    at = "balanced", "referral_auroc_oracle_area"
    labels = labels_of(results, "country", "map", *at)
    number = result(labels, (0.93, 0.95), released_values=(0.951,))
    changed = replace(results, table=with_results(results, number))
    table = tables(changed)["table_referral_areas_country"]
    text = latex_table(table)
    ranges = r"$95.1$ & $94.0 \pm 1.0$ & $70.0$ {\scriptsize 69.3--70.7}"
    assert ranges in text
    assert "balanced AUROC" in text
    assert not table.compares


def test_the_truth_stands_beside_estimates_on_simulated_data_alone(results, simulated):
    assert not any("truth" in name for name in tables(results))
    found = [table for name, table in tables(simulated).items() if "truth" in name]
    assert len(found) == 2
    columns = {(column.group, column.label) for column in found[0].columns}
    assert ("entropy: rank correlation", "aleatoric ↑") in columns
    assert ("shift: AUROC", "epistemic ↑") in columns
    # What no simulator judged has no column.
    assert ("entropy: distance", "epistemic") not in columns
    notes = {table.name: table.notes[0] for table in found}
    severity = notes["table_truth_severity_simulated"]
    assert "shifted items is 0 by construction" in severity
    assert all("columns without an arrow" in note for note in notes.values())


@pytest.mark.parametrize("width", [80, 120])
@pytest.mark.parametrize("full", [False, True])
def test_a_terminal_is_not_overrun(results, simulated, width, full):
    for made in (results, simulated):
        lines = shown(made, width=width, full=full).splitlines()
        assert max(map(len, lines)) <= width
        assert not any("…" in line for line in lines)


def test_a_terminal_shows_a_summary_of_each_variant(simulated):
    text = shown(simulated)
    message = " ".join(text.split())
    assert message.count("simulated data, not the paper's; preset demo") == 4
    line = next(t for t in text.splitlines() if t.startswith("MAP"))
    # Accuracy and AUROC of table 1; two repeats, one percent to either side.
    assert {"88.6", "87.4"} <= set(line.split())
    at = {"variant": "country", "subset": "in_domain", "score": "accuracy"}
    marked = shown(with_tied(simulated, "fsvi", "mc_dropout", **at))
    marked = marked.split("Severity Shift")[0]
    found = [line.split()[0] for line in marked.splitlines() if "●" in line]
    assert found == ["MC", "FSVI"]


def test_columns_without_numbers_are_left_out_with_the_reason(simulated):
    labels = labels_of(simulated, "severity", "map", "shifted", "auroc")
    number = Result(labels=labels, why="only one class among these items")
    text = shown(replace(simulated, table=with_results(simulated, number)))
    severity = " ".join(text.split("Severity Shift")[1].split())
    assert "shifted, AUROC of MAP (Deterministic): only one class" in severity


def test_every_figure_of_the_paper_is_there_for_its_data(drawings):
    numbers = {name.split("_")[1] for name in drawings}
    wanted = {"2", "3", *map(str, range(8, 18)), "19", "20"}
    assert numbers == wanted | {"referral", "ood"}
    assert "figure_2_severity" in drawings
    assert "figure_3_country" in drawings


def test_every_figure_says_its_selection_and_data(drawings, simulated_drawings):
    for name, drawing in drawings.items():
        selection = "joint" if "_joint" in name else "in_domain"
        if name.startswith("figure_15"):
            assert "selections in_domain and joint" in drawing.caption
        else:
            assert f"selection {selection}: chosen on" in drawing.caption
        assert "the paper's data" in drawing.caption
        assert not drawing.simulated
    for name, drawing in simulated_drawings.items():
        assert name.endswith("_simulated")
        assert "imulated" in drawing.caption
        assert "preset demo" in drawing.caption
        assert drawing.simulated


def test_legends_name_methods_the_nhs_and_what_is_published(
    drawings, simulated_drawings
):
    methods = [row.label for row in BENCHMARK.rows if row.pool == 1]
    found = drawings["figure_2_severity"].labels
    assert set(found) == {*methods, "NHS recommendation", "published"}
    assert list(drawings["figure_ood_country"].labels) == methods
    blurs = [
        label for label in drawings["figure_19_severity"].labels if "blur" in label
    ]
    assert blurs == [f"blur {b}" for b in (5, 10, 20, 30)]
    assert not any("published" in d.labels for d in simulated_drawings.values())


def test_a_roc_has_the_nhs_point_and_whole_axes(drawings):
    panel = drawings["figure_3_country"].rows[0][0]
    assert any((m.x, m.y) == (0.2, 0.85) for m in panel.marks if hasattr(m, "hollow"))
    assert panel.x_range == panel.y_range
    assert panel.x_range[0] <= 0 < 1 <= panel.x_range[1]


def test_curves_are_means_with_bands_and_the_papers_points(drawn, drawings):
    panel = drawings["figure_3_country"].rows[0][3]
    curve = next(m for m in panel.marks if isinstance(m, CurveMark))
    at = {"variant": "country", "row": "map", "subset": "shifted"}
    made = drawn.curves.at(**at, name="referral_auroc")
    # Beyond 95 % referred there is too little left to draw.
    kept = made.x <= 0.95
    assert np.array_equal(curve.y, made.y[kept])
    assert np.array_equal(curve.high - curve.y, (made.y + made.stderr)[kept] - curve.y)
    at = {"table": "1", "source": "000_retina", "subset": "shifted"}
    at |= {"method": "map", "pool": 1, "score": "auroc"}
    printed = [NUMBERS.at(**at, referred=share) for share in (None, 0.5, 0.7)]
    points = [(m.x, m.y) for m in panel.marks if isinstance(m, PointMark)]
    assert points[:3] == [(n.labels.get("referred", 0.0), n.value) for n in printed]


@pytest.mark.parametrize(
    ("why", "words"),
    [("only one class", "only one class"), ("", "no numbers")],
)
def test_an_empty_panel_says_why(drawn_simulated, why, words):
    at = "shifted", "auroc"
    labels = [labels_of(drawn_simulated, "severity", r.name, *at) for r in DEMO.rows]
    numbers = [Result(labels=each, why=why) for each in labels]
    table = with_results(drawn_simulated, *numbers)
    made = figures(replace(drawn_simulated, table=table))
    panel = made["figure_referral_runs_severity_simulated"].rows[1][1]
    assert panel.empty == words


def test_a_single_repeat_has_no_band(drawn_simulated):
    curves = Labelled.of(
        (labels, replace(curve, stderr=np.full(len(curve.x), np.nan)))
        for labels, curve in drawn_simulated.curves
    )
    made = figures(replace(drawn_simulated, curves=curves))[
        "figure_ood_country_simulated"
    ]
    assert "There is one repeat, so there are no bands." in made.caption


def test_histograms_of_a_row_share_their_scale_and_say_so(drawings):
    drawing = drawings["figure_8_severity"]
    assert "All histograms of a row share their scale" in drawing.caption
    marks = [m for m in drawing.panels[0].marks if isinstance(m, HistogramMark)]
    assert {mark.base for mark in marks} == {0, -1, -2, -3, -4}
    assert {mark.colour for mark in marks} == {RIGHT, WRONG}
    for base in (0, -1, -2, -3, -4):
        row = [mark for mark in marks if mark.base == base]
        # Each is a density: all cover the same area, and the tallest fills the row.
        assert np.ptp([mark.heights.sum() for mark in row]) == pytest.approx(
            0, abs=1e-9
        )
        assert max(mark.heights.max() for mark in row) == pytest.approx(0.76)
    words = [m.text for m in drawing.panels[0].marks if isinstance(m, WordMark)]
    assert "3% wrong" in words
    assert "4: proliferative" in words


@pytest.mark.parametrize(
    ("wrong", "words"),
    [(0.0, "0%"), (0.004, "0.4%"), (0.0094, "0.9%"), (0.0096, "1%"), (0.02, "2%")],
)
def test_a_share_of_wrong_decisions_has_a_decimal_below_one_percent(wrong, words):
    parts = {"correct": np.array([1 - wrong]), "incorrect": np.array([wrong])}
    made = Histogram(
        name="", label="", subset="", edges=np.array([0.0, 0.7]), parts=parts
    )
    assert wrong_text(made) == f"{words} wrong"


def test_figure_18_shows_the_same_photographs_with_each_blur(simulated_drawings):
    drawing = simulated_drawings["figure_18_country_simulated"]
    assert drawing.sides == ("unprocessed", *(f"blur {b}" for b in (5, 10, 20, 30)))
    assert all(isinstance(panel.marks[0], PictureMark) for panel in drawing.panels)
    first = [row[0].marks[0].pixels for row in drawing.rows]
    assert not any(np.array_equal(first[0], other) for other in first[1:])


def test_the_paper_has_the_effects_of_the_simulated_shifts(simulated):
    checks = {check.expectation.text: check for check in checks_of(simulated)}
    rises = checks["AUROC abroad is at least that at home on country"]
    assert rises.held
    assert rises.values["map"] == pytest.approx(0.922 - 0.874)
    falls = checks["AUROC abroad falls when half is referred on country"]
    assert falls.held
    assert falls.values["map"] == pytest.approx(0.801 - 0.922)
    worse = checks["accuracy is 0.1 below in-domain on shifted items of severity"]
    assert worse.values["map"] == pytest.approx(0.744 - 0.879)


@pytest.mark.parametrize("names", [("country", "country_mild"), ("country_mild",)])
def test_a_mild_shift_has_tables_and_figures_of_its_own(names):
    plan = part_of(DEMO, variants=names, rows=("map", "map_pair"))
    made = results_as_published(plan=plan, simulated=True, drawn=True)
    ours, drawings = tables(made), figures(made)
    for name in names:
        of_mild = "mild shift" in ours[f"table_summary_{name}_simulated"].about
        assert of_mild == (name == "country_mild")
        assert f"table_truth_{name}_simulated" in ours
        assert f"figure_referral_runs_{name}_simulated" in drawings
    # The paper has one table of a shift: that of the first variant.
    assert ours["table_1_simulated"].keys["variant"] == names[0]


def test_without_curves_no_results_are_drawn(drawn_simulated):
    left = figures(replace(drawn_simulated, curves=Labelled(), histograms=Labelled()))
    assert set(left) == {"figure_18_country_simulated"}


@pytest.fixture(scope="module")
def prepared(tmp_path_factory):
    """A tiny prepared dataset in place of the demo's, and results that name it."""
    data = tmp_path_factory.mktemp("data")
    sizes = dict.fromkeys(("train", "val", "val/shifted", "test", "test/shifted"), 4)
    made = other(results_as_published(plan=DEMO, simulated=True), sizes=sizes)
    part = made.plan.variants[0].dataset
    recipe = find("datasets", "fundus")(**{**part.options, "size": 48})
    prepare(recipe, cache_folder(data, recipe), workers=1)
    return other(made, size=48), data


def test_figure_5_counts_the_grades_of_a_prepared_dataset(prepared):
    made, data = prepared
    drawings = {d.name: d for d in presentation_of(made).figures(made, data)}
    home, abroad = drawings["figure_5_country_simulated"].rows[0]
    bars = [
        [mark.height for mark in panel.marks if isinstance(mark, BarMark)]
        for panel in (home, abroad)
    ]
    assert [sum(heights) for heights in bars] == [12, 8]
    assert all(len(heights) == 5 for heights in bars)
    # Another dataset is not there, and a figure of it is left out.
    assert "figure_5_country_simulated" not in {
        d.name for d in presentation_of(made).figures(other(made, size=64), data)
    }
