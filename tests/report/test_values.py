"""The VALUES benchmark's tables and figures, ours beside the published numbers."""

import csv
import math
from dataclasses import replace

import numpy as np
import pytest
from qualms.report.papers.values.components import TASKS, effects
from qualms.report.papers.values.settings import (
    ACE,
    AUROC,
    NCC,
    Component,
    Study,
    published_components,
    theirs,
    values_data_text,
)
from qualms.report.papers.values.verdicts import (
    FIGURE_2A,
    MeasurePair,
    Verdict,
    verdict,
)
from rich.console import Console

from qualms.datasets import prepare
from qualms.evaluate.results import Cell, Key
from qualms.published import published
from qualms.report._csv_files import write_table_csv
from qualms.report._draw import draw
from qualms.report._html import html_table
from qualms.report._latex import latex_table
from qualms.report.benchmark import paper_of, print_benchmark
from qualms.report.pictures import label_picture
from qualms.shelf import find
from qualms.spec import Part
from report.made_values import BENCHMARK, DEMO, SMALL, add, results_as_published


@pytest.fixture(scope="module")
def results():
    return results_as_published()


@pytest.fixture(scope="module")
def small():
    return results_as_published(preset=SMALL)


@pytest.fixture(scope="module")
def tables(results):
    return {table.name: table for table in paper_of(results).tables(results)}


def tables_of(results):
    return {table.name: table for table in paper_of(results).tables(results)}


def printed(results, width=80, **options):
    console = Console(width=width)
    with console.capture() as capture:
        print_benchmark(results, console=console, **options)
    return capture.get()


def lines_of(path):
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_the_published_components_are_those_of_the_paper():
    # 13 models and measures, each with two aggregations.
    for dataset in ("toy2", "toy3a", "toy3b", "lidc_tex", "lidc_mal", "gta5_cs"):
        assert len(published_components(dataset)) == 26


def test_every_number_of_tables_4_to_6_stands_beside_ours(tables):
    cells = [
        cell
        for name, table in tables.items()
        if name in ("table_4a", "table_4b") or name.startswith(("table_5", "table_6"))
        for cell in table.cells
        if cell.published is not None
    ]
    known = [
        number
        for number in published("values").numbers
        if number.where["table"] in ("4a", "4b", "5", "6")
    ]
    assert len(cells) == len(known)
    for cell in cells:
        assert cell.gap == pytest.approx(0.0, abs=0.0051)
        assert cell.repeats == 3


def test_tables_5_and_6_have_26_lines_and_14_columns(tables):
    for name in ("table_5_lidc_tex", "table_5_lidc_mal", "table_6_gta5_cs"):
        table = tables[name]
        assert (len(table.lines), len(table.columns)) == (26, 14)
        assert not table.main
    heads = [column.head for column in tables["table_5_lidc_tex"].columns]
    assert heads[:4] == ["Dice i.i.d. ↑", "Dice OoD ↑", "AUROC ↑", "AURC i.i.d. ↓"]


def test_a_spread_is_the_sample_deviation_as_in_the_paper(tables):
    cell = tables["table_5_lidc_tex"].lines[0].cells[0]
    assert cell.mean == pytest.approx(81.42)
    assert cell.spread == pytest.approx(1.0)


def test_active_learning_is_not_asked_of_aleatoric_measures(tables):
    table = tables["table_5_lidc_tex"]
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
    table = tables_of(small)["table_5_lidc_tex"]
    assert table.simulated
    assert "simulated data, not the paper's (lidc_contours)" in table.about
    cell = table.lines[0].cells[0]
    assert cell.published is not None
    assert math.isnan(cell.difference)
    assert any("Published numbers in brackets" in note for note in table.notes)


def test_toy_volumes_are_compared_and_toy_images_are_not(small):
    places = {
        gap["dataset"]
        for gap in differences(tables_of(small)["table_4_cells"])
        if gap["published_mean"]
    }
    assert places == {"toy1", "toy2", "toy3a", "toy3b"}
    demo = results_as_published(preset=DEMO)
    assert "table_4_differences" not in tables_of(demo)
    assert "toy images of two dimensions" in tables_of(demo)["table_4b"].about
    low = Part(name="toy_shapes", options={"scenario": "1", "side": 16})
    about = values_data_text([replace(SMALL.variants[0], dataset=low)])
    assert about == "toy shapes of another size, not the paper's volumes"


def differences(table):
    for line in table.lines:
        for column, cell in zip(table.columns, line.cells, strict=True):
            number = cell.published
            yield {
                **line.keys,
                **column.keys,
                "published_mean": "" if number is None else number.mean,
            }


def test_differences_from_table_4_are_counted(small):
    cells = dict(small.cells)
    at = {"measure": "MI", "aggregation": "patch"}
    text = ", ".join(f"{name}={value}" for name, value in at.items())
    one = Component("ensemble", **at)
    for variant, dataset, by in (("toy_2", "toy2", 0.06), ("toy_3a", "toy3a", -0.2)):
        key = Key(variant, "ensemble", text, "ood_auroc")
        add(cells, key, theirs(dataset, one, AUROC) + by)
    table = tables_of(replace(small, cells=cells))["table_4_differences"]
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
        == ("toy2", "tta", "MI", "patch")
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


def of_published(question, dataset):
    study = Study(results_as_published())
    ones = published_components("toy2" if dataset == "toy1" else dataset)
    by = {(one.row, one.aggregation, study.kind(one)): one for one in ones}
    pairs = [
        MeasurePair(one, by[row, over, "EU"])
        for (row, over, kind), one in by.items()
        if kind == "AU"
    ]
    return verdict(question, theirs, dataset, pairs)


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


def test_a_verdict_counts_models_once_where_maps_are_compared():
    assert of_published("Q1", "toy1") == Verdict(4, 4)
    assert of_published("Q2", "toy1") == Verdict(0, 4)
    assert of_published("Q4", "toy3b") == Verdict(0, 8)


def test_verdicts_follow_the_numbers():
    au, eu = Component("ttd", "EE", "patch"), Component("ttd", "MI", "patch")
    pairs = [MeasurePair(au, eu)]

    def asked(question, aleatoric, epistemic):
        def value(_dataset, one, score):
            assert score is (NCC[0] if question in ("Q1", "Q2") else AUROC)
            return aleatoric if one is au else epistemic

        return verdict(question, value, "toy1", pairs).held

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
    assert paper_of(replace(results, cells={})).tables(replace(results, cells={})) == ()


def test_kinds_are_those_that_the_rows_declare():
    study = Study(results_as_published())
    assert study.kind(Component("ssn", "EE", "patch")) == "EU"
    assert study.kind(Component("tta", "EE", "patch")) == "AU"
    assert study.kind(Component("softmax", "MSR", "patch")) == "PU"
    assert {row.name for row in BENCHMARK.rows if row.settings.get("measures")} >= {
        *("softmax", "ttd", "ensemble", "tta", "ssn"),
    }


@pytest.fixture(scope="module")
def drawn():
    return results_as_published(preset=SMALL, drawn=True)


@pytest.fixture(scope="module")
def figures(drawn):
    return {drawing.name: drawing for drawing in paper_of(drawn).figures(drawn, None)}


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
    demo = results_as_published(preset=DEMO, drawn=True)
    names = {drawing.name for drawing in paper_of(demo).figures(demo, None)}
    assert "figure_9" in names
    assert not names & {"figure_3_model", "figure_8", "figure_10", "figure_14"}
    (note,) = paper_of(demo).notes(demo)
    assert "nothing was judged on LIDC TEX, LIDC MAL, GTA5/CS" in note


def test_effects_of_published_numbers_are_what_the_paper_says(results):
    study = Study(results)

    def effect(task, part, dataset):
        return {
            k: v.mean for k, v in effects(study, task, part, dataset, theirs).items()
        }

    real = ("lidc_tex", "lidc_mal", "gta5_cs")
    for dataset in real:
        models = effect("OoD detection", "model", dataset)
        assert models["ensemble"] > 0
        assert effect("OoD detection", "measure", dataset)["EU"] > 0
        kinds = effect("Calibration, i.i.d.", "measure", dataset)
        assert max(kinds, key=kinds.__getitem__) == "PU"
    # "TTD performs at least nearly on average": so the mean is of what is compared.
    assert min(effect("Calibration, i.i.d.", "model", d)["ttd"] for d in real) > -0.002
    # "threshold aggregation is more effective" on i.i.d. items, patches on shifted.
    tex = effect("Failure detection, i.i.d.", "aggregation", "lidc_tex")
    assert tex["threshold"] > 0 > tex["patch"]
    tex = effect("Failure detection, OoD", "aggregation", "lidc_tex")
    assert tex["threshold"] < 0 < tex["patch"]


def test_only_the_papers_data_are_compared_by_the_rule_of_its_code(results, small):
    score, _ = TASKS["Ambiguity, i.i.d."]
    for given, own in ((results, False), (small, True)):
        cells = {
            key: replace(cell, as_published=(99.0,))
            for key, cell in given.cells.items()
        }
        study = Study(replace(given, cells=cells))
        one = study.components([study.variants["lidc_tex"]])[0]
        assert (study.ours("lidc_tex", one, score) < 1) is own


def test_published_effects_are_of_the_models_that_ours_has(results):
    few = {k: c for k, c in results.cells.items() if k.row in ("softmax", "ttd")}
    study = Study(replace(results, cells=few))
    for value in (theirs, study.ours):
        found = effects(study, "OoD detection", "model", "lidc_tex", value)
        assert {*found} == {"softmax", "ttd"}
        assert min(e.mean for e in found.values()) < 0


def test_an_effect_is_the_mean_of_a_group_minus_that_of_all(results):
    study = Study(results)
    found = effects(study, "Calibration, i.i.d.", "model", "lidc_tex", theirs)
    values = {
        one.row: theirs("lidc_tex", one, ACE[0])
        for one in published_components("lidc_tex")
        if study.kind(one) == "PU"
    }
    middle = sum(values.values()) / 5
    for row, value in values.items():
        assert found[row].mean == pytest.approx(middle - value)
        assert found[row].methods == 2
        assert found[row].spread == pytest.approx(0.0, abs=1e-12)


def test_measures_are_compared_without_the_softmax(results):
    study = Study(results)
    found = effects(study, "OoD detection", "measure", "lidc_tex", study.ours)
    assert {kind: effect.methods for kind, effect in found.items()} == {
        **{"PU": 8, "AU": 8, "EU": 8},
    }
    models = effects(study, "OoD detection", "model", "lidc_tex", study.ours)
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


def few(preset):
    """The preset with datasets of the sizes that are prepared."""
    sizes = {"train": 8, "val": 4, "test": 12}
    return replace(
        preset,
        variants=tuple(
            replace(
                variant,
                dataset=replace(
                    variant.dataset, options={**variant.dataset.options, "sizes": sizes}
                ),
            )
            for variant in preset.variants[:2]
        ),
    )


def test_items_are_counted_from_the_data(prepared):
    demo = results_as_published(preset=few(DEMO))
    (table,) = paper_of(demo).counts(demo, prepared)
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
    assert paper_of(demo).counts(demo, None) == ()


def test_items_are_drawn_from_the_data(prepared, tmp_path):
    demo = results_as_published(preset=few(DEMO), drawn=True)
    made = {drawing.name: drawing for drawing in paper_of(demo).figures(demo, prepared)}
    titles = [panel.title for panel in made["figure_4"].rows[0]]
    assert titles[:4] == ["training item", "rater 1", "rater 2", "rater 3"]
    titles = [panel.title for panel in made["figure_5"].rows[0]]
    assert titles[2:] == ["test, plain", "test, grey", "test, cube", "test, border"]
    for name in ("figure_4", "figure_9"):
        assert {path.suffix for path in draw(made[name], tmp_path)} == {
            *(".pdf", ".png", ".txt"),
        }


def test_shifts_are_screened_over_folds():
    variants = tuple(v for v in SMALL.variants if v.settings.get("screening"))[:10]
    preset = replace(SMALL, variants=variants)
    cells = {}
    for number, variant in enumerate(variants):
        for name, value in (
            ("in_domain/dice", 0.8),
            ("shifted/dice", 0.6),
            ("dice_drop", 0.25 + 0.01 * (number % 5)),
        ):
            key = Key(variant.name, "softmax", "", name)
            seeds = (value - 0.003, value, value + 0.003)
            cells[key] = Cell(key=key, values=seeds, as_published=seeds)
    made = replace(results_as_published(preset=preset), cells=cells)
    table = tables_of(made)["table_2"]
    assert len(table.lines) == 2
    drop = table.lines[0].cells[2]
    assert drop.mean == pytest.approx(27.0)
    # Over five folds, not over the three seeds of each.
    assert drop.spread == pytest.approx(math.sqrt(2.5))
    assert drop.repeats == 5
    assert drop.published.mean in (24.9244, 14.3093)


def test_labels_of_streets_have_different_colours():
    colours = label_picture(np.arange(24)[None], background=False)[0]
    assert len({tuple(colour) for colour in colours.tolist()}) == 24
    assert label_picture(np.array([[255]])).tolist() == [[[255, 255, 255]]]
