"""The VALUES benchmark's tables and figures, ours beside the published numbers."""

import csv
import math
from dataclasses import replace

import numpy as np
import pytest
from rich.console import Console

from qualms.benchmarks.values._components import effects, method_values
from qualms.benchmarks.values._rows import type_of
from qualms.benchmarks.values._settings import (
    ACE,
    AUROC,
    NCC,
    paper_numbers,
    study_of,
    values_data_text,
)
from qualms.benchmarks.values._verdicts import FIGURE_2A, Verdict, verdict
from qualms.datasets import prepare
from qualms.report._csv_files import write_table_csv
from qualms.report._draw import draw
from qualms.report._html import html_table
from qualms.report._latex import latex_table
from qualms.report.benchmark import print_benchmark
from qualms.report.layout import published_of
from qualms.report.pictures import label_picture
from qualms.report.presented import presentation_of
from qualms.results import ResultsTable, result
from qualms.shelf import find
from qualms.spec import Part
from report.made_values import BENCHMARK, DEMO, SMALL, around, results_as_published

REAL = ("LIDC TEX", "LIDC MAL", "GTA5/CS")


@pytest.fixture(scope="module")
def results():
    return results_as_published()


@pytest.fixture(scope="module")
def small():
    return results_as_published(plan=SMALL)


@pytest.fixture(scope="module")
def tables(results):
    return {table.name: table for table in presentation_of(results).tables(results)}


def tables_of(results):
    return {table.name: table for table in presentation_of(results).tables(results)}


def printed(results, width=80, **options):
    console = Console(width=width)
    with console.capture() as capture:
        print_benchmark(results, console=console, **options)
    return capture.get()


def lines_of(path):
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_the_published_methods_are_those_of_the_paper(results):
    # 13 models and measures, each with two aggregations.
    for dataset in ("Toy 2", "Toy 3a", "Toy 3b", *REAL):
        numbers = paper_numbers(results).where(dataset=dataset, score="ood_auroc")
        methods = numbers.pivot(("row", "type", "measure", "aggregation"), ()).rows
        assert len(methods) == 26


def test_published_numbers_have_the_labels_of_ours(results):
    book = published_of(results).table
    methods = book.where(table=("4a", "4b", "5", "6"))
    for number in methods:
        row = BENCHMARK.row(number.labels["row"])
        if "measure" in number.labels:
            kind = type_of(row, number.labels["measure"], None)
            assert number.labels["type"] == kind


def test_every_number_of_tables_4_to_6_stands_beside_ours(tables):
    cells = [
        cell
        for name, table in tables.items()
        if name in ("table_4a", "table_4b") or name.startswith(("table_5", "table_6"))
        for cell in table.cells
        if cell.published is not None
    ]
    assert len(cells) == 91 + 156 + 3 * 26 * 14 - 3 * 8
    for cell in cells:
        assert cell.gap == pytest.approx(0.0, abs=0.0051)
        assert cell.repeats == 3


def test_tables_5_and_6_have_26_lines_and_14_columns(tables):
    for name in ("table_5_lidc_texture", "table_5_lidc_malignancy", "table_6_gta"):
        table = tables[name]
        assert (len(table.lines), len(table.columns)) == (26, 14)
        assert not table.main
    heads = [column.head for column in tables["table_5_lidc_texture"].columns]
    assert heads[:4] == ["Dice i.i.d. ↑", "Dice OoD ↑", "AUROC ↑", "AURC i.i.d. ↓"]


def test_a_spread_is_the_sample_deviation_as_in_the_paper(tables):
    cell = tables["table_5_lidc_texture"].lines[0].cells[0]
    assert cell.mean == pytest.approx(81.42)
    assert cell.spread == pytest.approx(1.0)


def test_active_learning_is_not_asked_of_aleatoric_measures(tables):
    table = tables["table_5_lidc_texture"]
    (place,) = [i for i, c in enumerate(table.columns) if c.keys["score"] == "gain"]
    empty = {line.keys["type"] for line in table.lines if not line.cells[place].repeats}
    assert empty == {"AU"}


def test_lines_go_from_predictive_to_aleatoric_to_epistemic(tables):
    ssn = [line for line in tables["table_4b"].lines if line.keys["row"] == "ssn"]
    assert [line.labels for line in ssn] == [
        (measure, over)
        for measure in ("PE (PU)", "MI (AU)", "EE (EU)")
        for over in ("patch", "threshold", "image")
    ]


def test_stand_ins_are_marked_and_not_compared(small):
    table = tables_of(small)["table_5_lidc_texture"]
    assert table.simulated
    assert "simulated data, not the paper's (lidc_contours)" in table.about
    cell = table.lines[0].cells[0]
    assert cell.published is not None
    assert math.isnan(cell.difference)
    assert any("Published numbers in brackets" in note for note in table.every_note)


def test_toy_volumes_are_compared_and_toy_images_are_not(small):
    columns = tables_of(small)["table_4_cells"].columns
    assert {column.label for column in columns} == {
        *("Toy 1", "Toy 2", "Toy 3a", "Toy 3b"),
    }
    demo = results_as_published(plan=DEMO)
    assert "table_4_differences" not in tables_of(demo)
    assert "toy images of two dimensions" in tables_of(demo)["table_4b"].about
    low = Part(name="toy_shapes", options={"scenario": "1", "side": 16})
    about = values_data_text([replace(SMALL.variants[0], dataset=low)])
    assert about == "toy shapes of another size, not the paper's volumes"


def with_numbers(results, change):
    """Results in which `change` made each number."""
    return replace(results, table=ResultsTable.of(map(change, results.table)))


def test_differences_from_table_4_are_counted(small):
    moved = {"toy_2": 0.06, "toy_3a": -0.2}
    method = {"row": "ensemble", "measure": "MI", "aggregation": "patch"}

    def change(number):
        by = moved.get(number.labels["variant"], 0.0)
        own = by and method.items() <= number.labels.items()
        return around(number.labels, number.value + by) if own else number

    table = tables_of(with_numbers(small, change))["table_4_differences"]
    found = {line.labels[0]: [cell.mean for cell in line.cells] for line in table.lines}
    assert found["Toy 2, AUROC"][:3] == [26, 25, 26]
    assert found["Toy 3a, AUROC"][:3] == [26, 25, 25]
    assert found["all"][:3] == [91, 89, 90]
    assert found["all"][5] == pytest.approx(0.2)


def test_every_cell_of_table_4_is_a_line_of_the_file(small, tmp_path):
    path = write_table_csv(tables_of(small)["table_4_cells"], tmp_path / "t.csv")
    lines = [line for line in lines_of(path) if line["published_mean"]]
    assert len(lines) == 91
    line = next(
        line
        for line in lines
        if (line["dataset"], line["row"], line["measure"], line["aggregation"])
        == ("Toy 2", "tta", "MI", "patch")
    )
    assert float(line["published_mean"]) == 0.95
    assert float(line["difference"]) == pytest.approx(0.0)
    assert line["text"] == "+0.00"


@pytest.mark.parametrize("width", [80, 120])
def test_a_terminal_shows_all_tables_within_its_width(results, width):
    text = printed(results, width=width, full=True)
    assert max(map(len, text.splitlines())) <= width
    assert "Table 6: GTA5/CS" in text


def test_other_renderers_show_the_tables(tables):
    for table in tables.values():
        assert table.title.partition(":")[0] in html_table(table)
        assert r"\end{table}" in latex_table(table)


def test_the_rule_gives_the_verdicts_of_figure_2a_for_the_published_numbers(tables):
    table = tables["table_questions"]
    words = {"often yes": "yes", "mostly not": "no", "depends on AU in data": "depends"}
    for line in table.lines:
        ours, published_numbers, said = (cell.text for cell in line.cells)
        assert ours == published_numbers
        if said and ours:
            assert ours.partition(" ")[0] == words.get(said, said)
    named = [line for line in table.lines if line.cells[2].text]
    judged = [line.labels[0] for line in named if line.cells[0].text]
    assert judged == 4 * list(FIGURE_2A)
    # What is seen in maps is shown as printed, and not computed.
    assert [line.labels[0] for line in named if not line.cells[0].text] == 2 * [
        f"{group}, by eye" for group in FIGURE_2A
    ]


def test_a_part_of_the_data_is_compared_with_published_numbers_of_the_same_part():
    toy_2 = tuple(each for each in SMALL.variants if each.name == "toy_2")
    few = replace(SMALL, variants=toy_2)
    table = tables_of(results_as_published(plan=few))["table_questions"]
    lines = {(line.keys["question"], line.labels[0]): line for line in table.lines}
    for data in ("Toy", "Toy 2"):
        ours, published_numbers, _ = lines["Q4", data].cells
        assert ours.text == published_numbers.text == "yes (7/8)"


def test_a_verdict_counts_models_once_where_maps_are_compared(results):
    def of_published(question, dataset):
        return verdict(question, paper_numbers(results).where(dataset=dataset))

    assert of_published("Q1", "Toy 1") == Verdict(4, 4)
    assert of_published("Q2", "Toy 1") == Verdict(0, 4)
    assert of_published("Q4", "Toy 3b") == Verdict(0, 8)


def test_verdicts_follow_the_numbers():
    def asked(question, aleatoric, epistemic):
        ambiguity = question in ("Q1", "Q2")
        score = NCC[0] if ambiguity else AUROC
        over = {} if ambiguity else {"aggregation": "patch"}
        numbers = ResultsTable.of(
            result(
                {
                    **{"row": "ttd", "type": kind, **over},
                    **{"subset": score.subset, "score": score.name},
                },
                (value,),
            )
            for kind, value in (("AU", aleatoric), ("EU", epistemic))
        )
        return verdict(question, numbers).captured

    assert (asked("Q1", 0.5, 0.0), asked("Q1", 0.49, 0.0)) == (1, 0)
    assert (asked("Q2", 0.8, 0.65), asked("Q2", 0.8, 0.64)) == (1, 0)
    assert asked("Q2", -0.3, -0.2) == 0
    assert (asked("Q3", 0.9, 0.51), asked("Q3", 0.9, 0.5)) == (1, 0)
    assert (asked("Q4", 0.66, 0.8), asked("Q4", 0.64, 0.8)) == (1, 0)
    assert asked("Q4", 0.5, 0.5) == 0
    assert asked("Q4", 0.5, math.nan) == 0


@pytest.mark.parametrize(
    ("held", "cases", "word"),
    [(3, 4, "yes"), (2, 4, "partially"), (1, 4, "partially"), (1, 8, "no"), (0, 0, "")],
)
def test_a_word_stands_for_a_share_of_cases(held, cases, word):
    assert Verdict(held, cases).word == word


def test_without_numbers_there_are_no_tables(results):
    empty = replace(results, table=ResultsTable.of(()))
    assert presentation_of(empty).tables(empty) == ()


@pytest.fixture(scope="module")
def drawn():
    return results_as_published(plan=SMALL, drawn=True)


@pytest.fixture(scope="module")
def figures(drawn):
    return {
        drawing.name: drawing for drawing in presentation_of(drawn).figures(drawn, None)
    }


def test_every_figure_of_results_is_there(figures):
    numbers = {name.removeprefix("figure_") for name in figures}
    assert numbers >= {
        *("2b", "3_measure", "3_model", "3_aggregation", "8"),
        *map(str, range(9, 15)),
    }
    for drawing in figures.values():
        assert "preset small" in drawing.caption
        caption = drawing.caption.lower()
        stands_in = "simulated data, not the paper's" in caption
        assert drawing.simulated == stands_in


def test_figures_of_data_that_were_not_judged_are_left_out():
    demo = results_as_published(plan=DEMO, drawn=True)
    names = {drawing.name for drawing in presentation_of(demo).figures(demo, None)}
    assert "figure_9" in names
    assert not names & {"figure_3_model", "figure_8", "figure_10", "figure_14"}
    (note,) = presentation_of(demo).notes(demo)
    assert "nothing was judged on LIDC TEX, LIDC MAL, GTA5/CS" in note


def test_effects_of_published_numbers_are_what_the_paper_says(results):
    def effect(task, part, dataset):
        numbers = paper_numbers(results).where(dataset=dataset)
        return {k: v.mean for k, v in effects(numbers, task, part).items()}

    for dataset in REAL:
        models = effect("OoD detection", "model", dataset)
        assert models["ensemble"] > 0
        assert effect("OoD detection", "measure", dataset)["EU"] > 0
        kinds = effect("Calibration, i.i.d.", "measure", dataset)
        assert max(kinds, key=kinds.__getitem__) == "PU"
    # "TTD performs at least nearly on average": so the mean is of what is compared.
    assert min(effect("Calibration, i.i.d.", "model", d)["ttd"] for d in REAL) > -0.002
    # "threshold aggregation is more effective" on i.i.d. items, patches on shifted.
    tex = effect("Failure detection, i.i.d.", "aggregation", "LIDC TEX")
    assert tex["threshold"] > 0 > tex["patch"]
    tex = effect("Failure detection, OoD", "aggregation", "LIDC TEX")
    assert tex["threshold"] < 0 < tex["patch"]


def test_only_the_papers_data_are_compared_by_the_rule_of_its_code(results, small):
    for given, own in ((results, False), (small, True)):
        study = study_of(with_numbers(given, lambda n: replace(n, released=99.0)))
        numbers = study.ours.where(dataset="LIDC TEX", **NCC[0].labels)
        assert all((number.value < 1) is own for number in numbers)


def test_published_effects_are_of_the_models_that_ours_has(results):
    few = results.table.where(row=("softmax", "ttd"))
    study = study_of(replace(results, table=few))
    ours = study.ours.where(dataset="LIDC TEX")
    for numbers in (study.printed_for("LIDC TEX"), ours):
        effect_values = effects(numbers, "OoD detection", "model")
        assert {*effect_values} == {"softmax", "ttd"}
        assert min(e.mean for e in effect_values.values()) < 0


def test_an_effect_is_the_mean_of_a_group_minus_that_of_all(results):
    numbers = paper_numbers(results).where(dataset="LIDC TEX")
    effect_values = effects(numbers, "Calibration, i.i.d.", "model")
    values = {
        method["row"]: value
        for method, value in method_values(numbers, ACE[0])
        if method["type"] == "PU"
    }
    middle = sum(values.values()) / 5
    for row, value in values.items():
        assert effect_values[row].mean == pytest.approx(middle - value)
        assert effect_values[row].methods == 2
        assert effect_values[row].spread == pytest.approx(0.0, abs=1e-12)


def test_measures_are_compared_without_the_softmax(results):
    ours = study_of(results).ours.where(dataset="LIDC TEX")
    effect_values = effects(ours, "OoD detection", "measure")
    assert {kind: effect.methods for kind, effect in effect_values.items()} == {
        **{"PU": 8, "AU": 8, "EU": 8},
    }
    models = effects(ours, "OoD detection", "model")
    assert {row: effect.methods for row, effect in models.items()} == {
        **{"softmax": 2, "ttd": 4, "ensemble": 4, "tta": 4, "ssn": 4},
    }


def test_maps_have_the_papers_scales(figures):
    for panel in figures["figure_9"].panels:
        for mark in panel.marks:
            if panel.title in ("MSR", "PE", "EE", "MI"):
                assert mark.scale == (0.0, 0.5 if panel.title == "MSR" else 0.7)
    drawing = figures["figure_9"]
    assert drawing.sides == ("item", "segmented", "PU", "AU", "EU")
    assert [panel.title for panel in drawing.rows[1]] == [
        *("Softmax", "TTD", "Ensemble", "TTA", "SSN", "Last-layer Laplace"),
    ]
    assert [panel.title for panel in drawing.rows[3]] == [
        *("", "EE", "EE", "EE", "MI", "EE"),
    ]


def test_sizes_are_drawn_with_and_without_division(figures):
    above, below = figures["figure_8"].rows
    assert [panel.title.partition(",")[0] for panel in above] == [
        *("EU (MI)", "AU (EE)", "PU (PE)", "sizes"),
    ]
    top, bottom = above[0].marks[0], below[0].marks[0]
    assert top.y == pytest.approx(bottom.y * bottom.x)
    assert "TTD" in figures["figure_8"].title


@pytest.fixture(scope="module")
def prepared(tmp_path_factory):
    """Toy images of the demo, few of them."""
    folder = tmp_path_factory.mktemp("data")
    for variant in DEMO.variants[:2]:
        sizes = {"train": 8, "val": 4, "test": 12}
        options = {**variant.dataset.options, "sizes": sizes}
        recipe = find("datasets", "toy_shapes")(**options)
        prepare(recipe, folder / f"toy_shapes-{variant.name}", workers=1)
    return folder


def few(plan):
    """The plan with datasets of the sizes that are prepared."""
    sizes = {"train": 8, "val": 4, "test": 12}
    return replace(
        plan,
        variants=tuple(
            replace(
                variant,
                dataset=replace(
                    variant.dataset, options={**variant.dataset.options, "sizes": sizes}
                ),
            )
            for variant in plan.variants[:2]
        ),
    )


def test_items_are_counted_from_the_data(prepared):
    demo = results_as_published(plan=few(DEMO))
    (table,) = presentation_of(demo).counts(demo, prepared)
    assert table.name == "table_1"
    counts = {
        line.labels[0]: [cell.mean for cell in line.cells] for line in table.lines
    }
    assert counts == {
        "Toy 1": [12, 12, 12, 12, 12, 0],
        "Toy 2": [12, 0, 12, 6, 0, 6],
    }
    assert [cell.published.mean for cell in table.lines[1].cells] == [
        *(200, 0, 42, 21, 0, 21),
    ]
    assert presentation_of(demo).counts(demo, None) == ()


def test_items_are_drawn_from_the_data(prepared, tmp_path):
    demo = results_as_published(plan=few(DEMO), drawn=True)
    made = {
        drawing.name: drawing
        for drawing in presentation_of(demo).figures(demo, prepared)
    }
    titles = [panel.title for panel in made["figure_4"].rows[0]]
    assert titles[:4] == ["training item", "rater 1", "rater 2", "rater 3"]
    titles = [panel.title for panel in made["figure_5"].rows[0]]
    assert titles[2:] == ["test, plain", "test, grey", "test, cube", "test, border"]
    for name in ("figure_4", "figure_9"):
        assert {path.suffix for path in draw(made[name], tmp_path)} == {
            *(".pdf", ".png", ".txt"),
        }


def test_shifts_are_screened_over_folds():
    variants = tuple(v for v in SMALL.variants if "feature" in v.labels)[:10]
    plan = replace(SMALL, variants=variants)
    numbers = []
    for place, line in enumerate(plan.lines):
        for score, subset, value in (
            ("dice", "in_domain", 0.8),
            ("dice", "shifted", 0.6),
            ("dice_drop", "all", 0.25 + 0.01 * (place % 5)),
        ):
            seeds = (value - 0.003, value, value + 0.003)
            labels = {**line.labels, "subset": subset, "score": score}
            numbers.append(result(labels, seeds, released_values=seeds))
    changed = replace(results_as_published(plan=plan), table=ResultsTable.of(numbers))
    table = tables_of(changed)["table_2"]
    assert len(table.lines) == 2
    drop = table.lines[0].cells[2]
    assert drop.mean == pytest.approx(27.0)
    # Over five folds, not over the three seeds of each.
    assert drop.spread == pytest.approx(math.sqrt(2.5))
    assert drop.repeats == 5
    printed_drops = [line.cells[2].published.mean for line in table.lines]
    assert printed_drops == pytest.approx([24.9244, 14.3093])
    # Stand-ins are not compared, however small the difference.
    assert math.isnan(drop.difference)


def test_labels_of_streets_have_different_colours():
    colours = label_picture(np.arange(24)[None], background=False)[0]
    assert len({tuple(colour) for colour in colours.tolist()}) == 24
    assert label_picture(np.array([[255]])).tolist() == [[[255, 255, 255]]]
