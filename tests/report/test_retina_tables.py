"""RETINA's tables with our numbers beside the published ones."""

import csv
import math
import re
import shutil
import subprocess
from dataclasses import replace

import numpy as np
import pytest
from rich.console import Console
from scipy import stats

from evaluate.made_referrals import make_runs
from qualms.evaluate import Settings
from qualms.evaluate.benchmark import Cell, Key, judge
from qualms.published import published
from qualms.report._compared import with_error
from qualms.report._results_file import write_results
from qualms.report.benchmark import print_benchmark, write_all
from qualms.report.papers.retina._files import all_tables, write_tables
from qualms.report.papers.retina._latex import caption, latex
from qualms.report.papers.retina._own_tables import area_tables, truth_tables
from qualms.report.papers.retina._tables import absent_tables, paper_tables
from qualms.scores import TieGroup
from qualms.scores.as_published import retina as released
from qualms.shelf import find, names
from report.made_retina import BENCHMARK, DEMO, PAPER, results_as_published

TRUTH = re.compile("spearman|mae|shift_auroc")
NUMBERS = published("retina").numbers
PRINTED = sorted({(n.where["source"], n.where["table"]) for n in NUMBERS})


@pytest.fixture(scope="module")
def results():
    return results_as_published()


@pytest.fixture(scope="module")
def simulated():
    return results_as_published(preset=DEMO, simulated=True)


@pytest.fixture(scope="module")
def tables(results):
    return {table.name: table for table in paper_tables(results)}


def cells_of(table):
    return [
        (part, line, column, compared)
        for part in table.parts
        for line in part.lines
        for column, compared in zip(part.columns, line.compared, strict=True)
    ]


def lines_of(path):
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def shown(results, width=120, **options):
    console = Console(width=width)
    with console.capture() as capture:
        print_benchmark(results, console=console, **options)
    return capture.get()


def test_every_benchmark_is_shown_by_a_part_of_its_name():
    assert set(names("benchmarks")) <= set(names("report.papers"))
    with pytest.raises(LookupError, match=r"no 'retna' in report\.papers\. Did you"):
        find("report.papers", "retna")


def test_all_13_tables_are_there_for_the_papers_data(tables):
    numbered = {name for name in tables if name.isdecimal()}
    assert numbered == {str(number) for number in range(1, 14)}
    assert not any(table.simulated for table in tables.values())


@pytest.mark.parametrize(("source", "number"), PRINTED)
def test_published_numbers_compared_with_themselves_differ_by_nothing(source, number):
    results = results_as_published(only=(source, number))
    name = number if source == "000_retina" else f"{number}_full_paper"
    table = next(t for t in paper_tables(results) if t.name == name)
    found = [cell for *_, cell in cells_of(table) if cell.number is not None]
    at = {"source": source, "table": number}
    there = [id(n) for n in NUMBERS if at.items() <= n.where.items()]
    assert sorted(id(cell.number) for cell in found) == sorted(there)
    for cell in found:
        assert cell.gap == pytest.approx(0.0, abs=1e-9)
        assert math.isnan(cell.difference) == (not cell.number.spread)


def test_a_difference_is_in_units_of_the_published_standard_error(results):
    key = Key("country", None, "map", "in_domain/auroc")
    cell = Cell(key=key, values=(0.8,), as_published=(0.894,))
    changed = replace(results, cells={**results.cells, key: cell})
    table = paper_tables(changed)[0]
    compared = table.parts[0].lines[0].compared[0]
    assert (compared.number.mean, compared.number.spread) == (87.4, 1.0)
    assert compared.gap == pytest.approx(2.0)
    assert compared.difference == pytest.approx(2.0)


def test_referral_areas_are_compared_with_the_oracles(tables):
    names = {column.score.name for _, _, column, _ in cells_of(tables["6"])}
    assert names == {
        f"referral_{score}_oracle_area"
        for score in ("auroc", "accuracy", "nll", "auprc")
    }


def test_the_study_of_blur_has_four_rows_of_four(tables):
    for name in ("12", "13"):
        lines = tables[name].parts[0].lines
        assert len(lines) == 16
        assert {line.row.method.name for line in lines} == {"map", "mc_dropout"}
        assert lines[3].label == "MAP (Deterministic), blur 30"
        assert lines[3].variants[tables[name].parts[0].columns[0].task].name in (
            "country",
            "severity",
        )


def test_the_study_of_blur_marks_no_best_one(results):
    """It is sought among the rows of one constant, and the lines are of four."""
    key = Key("country_blur5", None, "", "in_domain/auroc")
    group = TieGroup(best="map", members=("map", "mc_dropout"), p={})
    made = replace(results, ties={key: group, key._replace(variant="country"): group})
    tables = {table.name: table for table in paper_tables(made)}
    assert tables["1"].marks
    assert not tables["13"].marks
    assert tables["13"].title.endswith("preprocessing with different blur")


def test_what_was_changed_stands_in_every_table(results, simulated):
    for made in (results, simulated):
        preset = replace(made.preset, changed=("epochs=1", "method.rate=0.2"))
        for table in all_tables(replace(made, preset=preset)):
            told = f"preset {made.preset.name} with epochs=1, method.rate=0.2, onset"
            assert told in caption(table)


def test_table_3_has_both_shifts(tables):
    tasks = [column.task for column in tables["3"].parts[0].columns]
    assert tasks == ["country", "country", "severity", "severity"]


def test_tables_nothing_was_judged_for_are_named(simulated):
    assert absent_tables(paper_tables(simulated)) == ("8", "9", "10", "11", "12", "13")
    assert all(table.simulated for table in paper_tables(simulated))


def test_pools_of_other_sizes_are_not_compared_with_the_papers(results):
    preset = replace(PAPER, rows=(*PAPER.rows, "map_pair"))
    pairs = [
        cell
        for table in paper_tables(replace(results, preset=preset))
        for _, line, _, cell in cells_of(table)
        if line.row.pool == 2
    ]
    assert pairs
    assert all(cell.number is None for cell in pairs)
    assert all("not in the paper" in cell.why for cell in pairs)


def other(results, **options):
    """`results` as if options of all datasets had been changed."""
    variants = tuple(
        replace(v, dataset=replace(v.dataset, options={**v.dataset.options, **options}))
        for v in results.preset.variants
    )
    return replace(results, preset=replace(results.preset, variants=variants))


def says_nothing_published(table):
    # One of our own rules is that of the released code.
    return "ublished" not in latex(table).replace("as published, corrected", "")


@pytest.mark.parametrize("options", [{"onset": "mild"}, {"size": 256}])
def test_numbers_of_another_setting_are_not_compared_with_the_papers(
    results, options, tmp_path
):
    made = other(results, **options)
    for table in all_tables(made):
        assert all(cell.number is None for *_, cell in cells_of(table))
        assert "the paper's photographs in another setting" in caption(table)
        assert says_nothing_published(table)
    assert "second line" not in shown(made, full=True)
    told = "onset mild" if "onset" in options else "onset moderate, 256 pixels"
    assert all(f"preset paper, {told}; " in caption(t) for t in all_tables(made))
    write_tables(made, tmp_path)
    line = lines_of(tmp_path / "table_1.csv")[0]
    assert line["onset"] == options.get("onset", "moderate")
    assert line["ours_mean"]
    assert not line["published_mean"]
    assert not line["difference_in_published_stderr"]
    assert "another setting" in line["remark"]


def test_the_papers_own_options_are_its_setting(results):
    made = other(results, onset="moderate", size=512)
    counts = [
        sum(
            cell.number is not None for t in paper_tables(r) for *_, cell in cells_of(t)
        )
        for r in (made, results)
    ]
    assert counts[0] == counts[1] > 1000


def test_a_blur_that_is_not_the_tables_has_no_number_of_it(results):
    variants = tuple(v for v in PAPER.variants if v.name == "country")
    made = replace(results, preset=replace(PAPER, variants=variants))
    tables = {t.name: t for t in paper_tables(other(made, blur=10))}
    assert set(tables) == {"1", "3", "4", "6"}
    for table in tables.values():
        assert all(cell.number is None for *_, cell in cells_of(table))
        assert "onset moderate, blur 10;" in caption(table)
    # Tables 12 and 13 name the constant in each line.
    (study,) = (t for t in paper_tables(results) if t.name == "13")
    assert "blur" not in study.about


def test_numbers_of_simulated_data_are_not_compared_with_the_papers(
    simulated, tmp_path
):
    for table in all_tables(simulated):
        assert all(cell.number is None for *_, cell in cells_of(table))
        assert says_nothing_published(table)
    assert "second line" not in shown(simulated, full=True)
    for path in write_tables(simulated, tmp_path):
        if path.suffix == ".csv":
            for line in lines_of(path):
                assert not line["published_mean"] + line["difference"]
                assert "simulated data, not the paper's" in line["remark"]


def test_where_published_numbers_stand_a_caption_tells_them_apart(results):
    for table in all_tables(results):
        has_lines = r"\quad published" in latex(table)
        assert has_lines == ("Second: published" in caption(table)) == (not table.own)


def test_every_table_says_its_regime_preset_and_data(results, simulated, tmp_path):
    for made in (results, simulated):
        name = made.preset.name
        for table in all_tables(made):
            (regime,) = {variant.regime for variant in table.variants}
            assert f"regime {regime}: chosen on" in caption(table)
            assert ("simulated data" in caption(table)) == (made is simulated)
            assert f"preset {name}, onset moderate" in caption(table)
        for path in write_tables(made, tmp_path / name):
            if path.suffix == ".csv":
                assert {line["preset"] for line in lines_of(path)} == {name}
    regimes = {t.name: t.variants[0].regime for t in paper_tables(results)}
    joint = {name for name, regime in regimes.items() if regime == "joint"}
    assert joint == {"8", "9", "10", "11"}


def test_a_caption_says_which_epoch_the_regime_did_not_choose(results):
    last = {"select_by": "last"}
    variants = tuple(replace(v, training=last) for v in results.preset.variants)
    made = replace(results, preset=replace(results.preset, variants=variants))
    for table in all_tables(made):
        assert "; the last epoch of each run, chosen on no items" in caption(table)
    for table in all_tables(results):
        assert "epoch" not in caption(table)


def test_tables_are_written_as_csv_and_latex_in_the_papers_units(results, tmp_path):
    written = write_tables(results, tmp_path)
    assert {path.suffix for path in written} == {".csv", ".tex"}
    wanted = {"subset": "in_domain", "score": "referral_nll_oracle_area", "row": "map"}
    (line,) = (
        line
        for line in lines_of(tmp_path / "table_6.csv")
        if wanted.items() <= line.items()
    )
    assert (line["regime"], line["unit"]) == ("in-domain", "x100")
    assert (line["published_mean"], line["published_stderr"]) == ("60.5", "3.6")
    assert float(line["by_their_rule_mean"]) == pytest.approx(60.5)
    assert float(line["ours_low"]) == pytest.approx(0.99 * 60.5)
    assert float(line["difference_in_published_stderr"]) == pytest.approx(0.0, abs=1e-9)


def test_regimes_and_rows_stand_in_the_file_of_all_numbers(results, tmp_path):
    lines = lines_of(write_results(results, tmp_path / "r.csv"))
    assert len(lines) == len(results.cells)
    assert {line["regime"] for line in lines} == {"in-domain", "joint"}
    assert {line["alpha"] for line in lines} == {""}


def test_standard_errors_divide_by_one_less_and_the_released_ones_do_not():
    values = (0.81, 0.84, 0.86, 0.9)
    ours, theirs = (with_error(values, ddof=ddof) for ddof in (1, 0))
    assert ours.std == pytest.approx(stats.sem(values))
    assert theirs.std == pytest.approx(released.stderr(values))
    with_gap = with_error((*values, math.nan), ddof=1, scale=100)
    assert with_gap.mean == pytest.approx(100 * np.mean(values))
    assert with_gap.std == pytest.approx(100 * stats.sem(values))
    assert math.isnan(with_error((), ddof=1).mean)


def test_repeats_that_are_undefined_are_counted(results, tmp_path):
    key = Key("country", None, "map", "in_domain/auroc")
    cell = Cell(key=key, values=(0.8, math.nan, 0.9), why="only one class")
    changed = replace(results, cells={**results.cells, key: cell})
    write_tables(changed, tmp_path)
    line = lines_of(tmp_path / "table_1.csv")[0]
    assert float(line["ours_mean"]) == pytest.approx(85.0)
    assert "1 of 3 repeats are undefined" in line["remark"]
    assert "only one class" in line["remark"]


def test_our_own_table_sets_the_released_rules_beside_the_right_ones(results):
    key = Key("country", None, "map", "balanced/referral_auroc_oracle_area")
    cell = Cell(key=key, values=(0.93, 0.95), as_published=(0.951,))
    changed = replace(results, cells={**results.cells, key: cell})
    table = next(t for t in area_tables(changed) if t.name == "referral_areas_country")
    text = latex(table)
    row = next(line for line in text.splitlines() if line.startswith("MAP"))
    assert row.endswith(r"$95.1$ & $94.0 \pm 1.0$ & $70.0 \pm 0.7$ \\")
    assert "balanced AUROC" in text
    assert "kept only" in text


def test_the_truth_stands_beside_estimates_on_simulated_data_alone(results, simulated):
    assert truth_tables(results) == ()
    truths = truth_tables(simulated)
    assert {t.name for t in truths} == {"truth_country", "truth_severity"}
    columns = {(c.head, c.label) for c in truths[0].parts[0].columns}
    assert ("entropy: rank corr.", "aleatoric ↑") in columns
    assert ("shift: AUROC", "epistemic ↑") in columns
    # What no simulator judged has no column.
    assert ("entropy: distance", "epistemic") not in columns


def test_only_what_an_estimate_is_named_after_has_a_better_direction(simulated):
    cells = dict(simulated.cells)
    for variant in ("country", "severity"):
        for name in (name for name in BENCHMARK.scores if TRUTH.search(name)):
            key = Key(variant, None, "map", name)
            cells[key] = Cell(key=key, values=(0.4,))
    tables = truth_tables(replace(simulated, cells=cells))
    for table in tables:
        columns = table.parts[0].columns
        arrows = {c.score.name: c.label[-1] for c in columns if c.label[-1] in "↑↓"}
        assert arrows == {
            "aleatoric_spearman": "↑",
            "aleatoric_mae": "↓",
            "epistemic_shift_auroc": "↑",
        }
        assert not any(arrow in c.head for c in columns for arrow in "↑↓")
        assert ("shift: AUROC", "true entropy") in [(c.head, c.label) for c in columns]
        assert "columns without an arrow have no better direction" in caption(table)
    by_name = {table.name: caption(table) for table in tables}
    assert "shifted items is 0 by construction" in by_name["truth_severity"]
    assert "by construction" not in by_name["truth_country"]
    text = shown(replace(simulated, cells=cells), width=80)
    assert "is 0 by construction, so that even a perfect" in " ".join(text.split())
    assert "aleatoric ↑" in text


def test_latex_is_balanced_and_escaped(results, simulated):
    for made in (results, simulated):
        for table in all_tables(made):
            check_latex(latex(table))


def check_latex(text):
    assert text.count(r"\begin") == text.count(r"\end") == 2
    assert text.count("{") - text.count(r"\{") == text.count("}") - text.count(r"\}")
    assert text.count("$") % 2 == 0
    assert text.isascii()
    width = len(re.search(r"\\begin{tabular}{(l[r]+)}", text)[1])
    for line in text.splitlines():
        if line.endswith(r"\\"):
            spans = [int(n) - 1 for n in re.findall(r"\\multicolumn{(\d+)}", line)]
            assert line.count(" & ") + sum(spans) < width, line
    plain = re.sub(r"\\[_%&#]", "", text)
    assert not re.search(r"[#%_~]", plain.replace("{!}{%", ""))
    math_free = re.sub(r"\$[^$]*\$", "", plain)
    assert "^" not in math_free


@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="no LaTeX here")
def test_latex_compiles(results, tmp_path):
    body = "\n".join(latex(table) for table in paper_tables(results))
    page = tmp_path / "all.tex"
    page.write_text(
        "\\documentclass{article}\\usepackage{booktabs,graphicx}\n"
        f"\\begin{{document}}\n{body}\\end{{document}}\n"
    )
    command = ["pdflatex", "-halt-on-error", page.name]
    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)


def test_a_terminal_shows_each_variant_with_its_regime(simulated):
    text = shown(simulated)
    said = " ".join(text.split())
    about = "simulated data, not the paper's; preset demo, onset moderate, 64 pixels"
    for shift in ("Country", "Severity"):
        assert f"{shift} Shift: {about}; regime in-domain: chosen on" in said
    line = next(t for t in text.splitlines() if t.startswith("MAP (Deterministic)"))
    # Accuracy and AUROC of table 1; two repeats, one percent to either side.
    assert line.split()[2:4] == ["88.6±0.9", "87.4±0.9"]
    assert "second line" not in text
    assert "nothing was judged for the paper's tables 8, 9, 10, 11, 12, 13" in text


def test_numbers_of_the_paper_stand_below_ours_on_its_own_data(results):
    text = shown(results).splitlines()
    place = next(i for i, t in enumerate(text) if t.startswith("MAP (Deterministic)"))
    assert text[place + 1].split()[:2] == ["88.6±0.6", "87.4±1.0"]
    assert any("second line: the paper's" in line for line in text)


@pytest.mark.parametrize("width", [80, 120])
def test_a_terminal_is_not_overrun(results, simulated, width):
    for made in (results, simulated):
        lines = shown(made, width=width).splitlines()
        assert max(map(len, lines)) <= width
        assert not any("…" in line for line in lines)


def test_a_narrow_terminal_leaves_out_nll_and_spread(simulated):
    text = shown(simulated, width=80)
    assert "±" not in text
    assert "NLL\n" not in text
    assert "acc@0.5" in text


def test_the_best_and_its_equals_are_marked(simulated):
    key = Key("country", None, "", "in_domain/accuracy")
    group = TieGroup(best="fsvi", members=("fsvi", "mc_dropout"), p={})
    text = shown(replace(simulated, ties={key: group}))
    country = text.split("Severity Shift")[0].splitlines()
    marked = [line.split()[0] for line in country if "±" in line and "●" in line]
    assert marked == ["MC", "FSVI"]


def test_dots_of_any_table_are_explained(results):
    name = "in_domain/referral_accuracy_area"
    group = TieGroup(best="fsvi", members=("fsvi", "mfvi"), p={})
    keys = (Key("country", None, "", n) for n in (name, "in_domain/auroc"))
    dotted = replace(results, ties=dict.fromkeys(keys, group))
    explained = {t.name for t in all_tables(dotted) if "A dot marks" in caption(t)}
    assert {"referral_areas_country", "1", "4"} <= explained
    for table in all_tables(dotted):
        assert (table.name in explained) == (r"\bullet" in latex(table))


def test_columns_without_numbers_are_left_out_with_the_reason(simulated):
    key = Key("severity", None, "map", "shifted/auroc")
    cell = Cell(key=key, why="only one class among these items")
    text = shown(replace(simulated, cells={**simulated.cells, key: cell}))
    severity = text.split("Severity Shift")[1].splitlines()
    head = next(line for line in severity if "accuracy" in line)
    assert head.split().count("AUROC") == 1
    assert any("shifted/auroc: only one class" in line for line in severity)


def test_all_tables_are_shown_when_asked_for(results):
    text = shown(results, width=120, full=True)
    assert "Table 13: Country Shift" in text
    assert "regime joint" in text
    # Too many columns for one line go on below.
    assert "…" not in text
    assert max(map(len, text.splitlines())) <= 120
    assert sum(line.startswith("Table 6:") for line in text.splitlines()) == 2
    assert "179.5±1.8" in text


def test_variants_without_predictions_are_not_shown():
    text = shown(replace(results_as_published(), cells={}))
    assert "Country Shift" not in text


def test_everything_is_written_from_predictions_alone(tmp_path, monkeypatch):
    monkeypatch.setattr("qualms.report.benchmark.find_spec", lambda _name: None)
    few = replace(DEMO, rows=("map", "mc_dropout", "mc_dropout_pair"))
    make_runs(BENCHMARK, few, tmp_path)
    judged = judge(BENCHMARK, few, tmp_path, settings=Settings(resamples=0))
    written = write_all(judged, tmp_path / "retina", command="qualms run retina")
    names = {path.stem for path in written.tables}
    assert {f"table_{number}_simulated" for number in range(1, 8)} <= names
    assert "table_truth_severity_simulated" in names
    (auroc,) = (
        line
        for line in lines_of(tmp_path / "retina" / "tables" / "table_1_simulated.csv")
        if (line["subset"], line["score"], line["row"]) == ("shifted", "auroc", "map")
    )
    cell = judged.cell("country", None, "map", "shifted/auroc")
    assert float(auroc["ours_mean"]) == pytest.approx(100 * np.mean(cell.values))
    assert "Country Shift: simulated data" in shown(judged)


def test_tables_of_an_earlier_time_do_not_stay(simulated, tmp_path, monkeypatch):
    monkeypatch.setattr("qualms.report.benchmark.find_spec", lambda _name: None)
    first = write_all(simulated, tmp_path)
    (tmp_path / "figures").mkdir()
    strange = [tmp_path / "tables" / "table_of_mine.txt", tmp_path / "tables" / "a.csv"]
    stale = [tmp_path / "figures" / f"figure_3_country.{end}" for end in ("pdf", "png")]
    for path in (*strange, *stale):
        path.write_text("")
    few = {key: c for key, c in simulated.cells.items() if key.variant == "country"}
    second = write_all(replace(simulated, cells=few), tmp_path)
    assert set(second.tables) < set(first.tables)
    there = set((tmp_path / "tables").iterdir())
    assert there == {*second.tables, *strange}
    assert not any(path.exists() for path in stale)


def test_made_results_hold_what_the_benchmark_names():
    made = results_as_published(preset=DEMO, simulated=True)
    assert {key.score for key in made.cells} <= set(BENCHMARK.scores)
    assert {key.row for key in made.cells} <= set(DEMO.rows)
    assert {v.name for v in PAPER.variants} >= {"country", "severity", "country_blur5"}
