"""The file with every number of a judged benchmark, and reading it again."""

import csv
import math
import time

import pytest

from qualms.report._csv_files import write_records, write_results
from qualms.results import ResultsTable, label_order, read_results, result
from report.small_study import small_study

HOSTILE = "=HYPERLINK(1)"


@pytest.fixture
def results():
    return small_study(label=HOSTILE, hardware=("a machine",), seconds=20.0)


def lines_of(path):
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_results_are_read_as_they_were_written(results, tmp_path):
    path = write_results(results, tmp_path / "results.csv", command="qualms run mine")
    table = read_results(path)
    assert table.labels == results.table.labels
    for read, row in zip(table, results.table, strict=True):
        assert read.labels == row.labels
        assert read.values == pytest.approx(row.values)
        assert read.released_values == pytest.approx(row.released_values)
        for name in ("value", "spread", "low", "high", "released", "difference"):
            number = getattr(row, name)
            assert getattr(read, name) == pytest.approx(number, nan_ok=True), name
        for name in ("best", "tied", "interval_method", "no_interval", "why", "note"):
            assert getattr(read, name) == getattr(row, name), name


def test_columns_stand_in_one_order_with_provenance_last(results, tmp_path):
    path = write_results(results, tmp_path / "r.csv", command="qualms run mine")
    names = list(lines_of(path)[0])
    assert names[: names.index("value")] == [
        *("benchmark", "preset", "variant", "dataset", "simulated", "shift"),
        *("row", "method", "pool", "head", "alpha", "uncertainty", "subset", "score"),
    ]
    first, *_, last = lines_of(path)
    assert names[-2:] == ["command", "commit"]
    assert (first["version"], first["network"], first["epochs"]) == (
        *("1", "resnet50", "3"),
    )
    assert (first["seconds"], first["parameters"]) == ("12.5", "1000")
    assert (last["seconds"], last["parameters"]) == ("", "")
    assert {line["seconds_of_all_runs"] for line in (first, last)} == {"20"}
    assert (first["hardware"], first["command"]) == ("a machine", "qualms run mine")


def test_texts_that_a_spreadsheet_would_run_are_quoted(results, tmp_path):
    text = write_results(results, tmp_path / "r.csv", command=HOSTILE).read_text()
    cells = [cell for line in csv.reader(text.splitlines()) for cell in line]
    assert f"'{HOSTILE}" in cells
    assert not any(cell.startswith(("=", "@")) for cell in cells)


def test_a_table_writes_its_own_rows(results, tmp_path):
    night = results.table.where(variant="night")
    table = read_results(night.to_csv(tmp_path / "night.csv"))
    assert len(table) == len(night)
    assert table.distinct("simulated") == (True,)
    assert table.at(row="a", subset="shifted").value == pytest.approx(0.85)
    assert table.at(row="c").why == "was not run"
    columns = night.columns()
    assert columns["row"] == ["a"] * 3 + ["b"] * 3 + ["c"]
    assert columns["alpha"][0] == ""
    assert math.isnan(columns["value"][-1])


def test_an_empty_table_is_written_and_read(tmp_path):
    empty = ResultsTable.of(())
    assert len(read_results(empty.to_csv(tmp_path / "r.csv"))) == 0


def test_labels_of_several_tables_keep_their_order():
    one = ResultsTable.of([result({"variant": "v", "row": "a", "score": "s"}, (1.0,))])
    labels = {"variant": "v", "shift": "x", "row": "a", "alpha": 0.1, "score": "s"}
    both = one + ResultsTable.of([result(labels, (2.0,))])
    assert both.labels == ("variant", "shift", "row", "alpha", "score")
    assert label_order([("score", "subset"), ("row", "preset")]) == [
        *("preset", "row", "subset", "score"),
    ]


def test_many_results_are_written_in_seconds(tmp_path):
    labels = ({"row": f"r{k % 20}", "score": f"s{k % 7}"} for k in range(20_000))
    table = ResultsTable.of(result(each, (0.1, 0.2)) for each in labels)
    started = time.process_time()
    table.to_csv(tmp_path / "r.csv")
    assert time.process_time() - started < 5.0


def test_cells_of_several_numbers_have_no_quote_before_them(tmp_path):
    """Whoever reads the file gets numbers; formulas stay texts."""
    records = [{"values": "-0.3 -0.2", "pairs": "-1;-2e-05", "text": "-0.3 -x"}]
    path = write_records(records, tmp_path / "cells.csv")
    with path.open(encoding="utf-8", newline="") as file:
        (line,) = csv.DictReader(file)
    assert [float(cell) for cell in line["values"].split()] == [-0.3, -0.2]
    assert [float(cell) for cell in line["pairs"].split(";")] == [-1.0, -2e-05]
    assert line["text"] == "'-0.3 -x"
