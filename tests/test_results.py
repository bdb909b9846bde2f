"""Laws of the labelled table of results."""

import math
import re

import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qualms import results as results_module
from qualms.labels import label_key
from qualms.results import (
    Result,
    ResultsTable,
    concatenated,
    harmless,
    read_results,
    result,
    unquoted,
)

TEXTS = st.sampled_from(["map", "mfvi, 2", 'a "b"', "line\nbreak", "=1+1"])
LABELS = st.dictionaries(
    st.sampled_from(["variant", "row", "alpha", "simulated", "score"]),
    st.one_of(TEXTS, st.sampled_from([0.1, 0.2, 1 / 3]), st.booleans()),
)
VALUES = st.lists(st.floats(-1e6, 1e6), max_size=3)
RESULTS = st.lists(st.builds(result, LABELS, VALUES), max_size=8)


def values(results):
    return [one.values for one in results]


@given(RESULTS)
def test_rows_come_back_as_they_were(results):
    table = ResultsTable.of(results)
    assert len(table) == len(results)
    for row, expected in zip(table, results, strict=True):
        assert row.labels == expected.labels
        assert repr((row.values, row.value)) == repr((expected.values, expected.value))


@given(RESULTS, RESULTS)
def test_joining_and_choosing_rows_are_those_of_lists(first, second):
    table = ResultsTable.of(first) + ResultsTable.of(second)
    assert values(table) == values([*first, *second])
    for wanted in ("map", None, True, 0.1):
        keys = [label_key(one.labels.get("row")) for one in (*first, *second)]
        chosen = [key == label_key(wanted) for key in keys]
        expected = [
            one for one, yes in zip((*first, *second), chosen, strict=True) if yes
        ]
        assert values(table.where(row=wanted)) == values(expected)


@given(RESULTS)
def test_a_pivot_holds_the_first_value_of_each_cell(results):
    table = ResultsTable.of(results)
    pivot = table.pivot(("variant", "row"), ("score",))
    for line, labels in enumerate(pivot.rows):
        for column, (score,) in enumerate(pivot.columns):
            wanted = dict(zip(("variant", "row"), labels, strict=True), score=score)
            first = table.get(**wanted)
            assert (pivot.cells[line, column] == -1) == (first is None)
            value = math.nan if first is None else first.value
            assert repr(float(pivot.values[line, column])) == repr(value)


@settings(max_examples=25)
@given(st.lists(TEXTS, max_size=6))
def test_a_csv_file_holds_the_same_results(tmp_path_factory, rows):
    results = [
        result({"row": row, "alpha": 1 / 3, "simulated": True}, (0.5, 0.25), tied=True)
        for row in rows
    ]
    path = tmp_path_factory.mktemp("csv") / "results.csv"
    read = list(read_results(ResultsTable.of(results).to_csv(path)))
    assert [one.labels for one in read] == [one.labels for one in results]
    assert values(read) == values(results)
    assert all(one.tied and one.value == 0.375 for one in read)


COLUMNS = (
    *(*results_module.NUMBERS, *results_module.TEXTS, *results_module.SERIES),
    *(results_module.TIED, *results_module.PROVENANCE),
)


@pytest.mark.parametrize("name", [*COLUMNS, "label value", "label label value"])
def test_a_label_with_the_name_of_another_column_keeps_its_values(name, tmp_path):
    labels = [{"row": "a", name: "resnet50"}, {"row": "b", name: "vit"}, {"row": "c"}]
    table = ResultsTable.of(result(each, (0.5, 1.0)) for each in labels)
    read = read_results(table.to_csv(tmp_path / "results.csv"))
    assert [one.labels for one in read] == labels
    assert values(read) == [(0.5, 1.0)] * 3
    assert [one.value for one in read] == [0.75] * 3
    frame = table.to_frame()
    assert frame[f"label {name}"].tolist()[:2] == ["resnet50", "vit"]
    assert frame["value"].tolist() == [0.75] * 3
    stored = pq.read_table(table.to_parquet(tmp_path / "results.parquet"))
    assert stored[f"label {name}"].to_pylist() == ["resnet50", "vit", None]
    assert stored["value"].to_pylist() == [0.75] * 3


@pytest.mark.parametrize(
    "alphas",
    [
        (1, 0.5, 1e-7),
        (1, 2, 20),
        (np.float64(0.1), 0.2),
        (np.float64(1 / 3), 1),
        (True, False),
        (True, 1, 0.5),
        ("all", 1, 0.5),
    ],
)
def test_labels_of_parquet_are_those_of_csv(alphas, tmp_path):
    table = ResultsTable.of(result({"alpha": alpha}, (1.0,)) for alpha in alphas)
    read = read_results(table.to_csv(tmp_path / "results.csv"))
    path = table.to_parquet(tmp_path / "results.parquet")
    stored = pq.read_table(path)["alpha"].to_pylist()
    assert stored == list(read.column("alpha"))
    if not any(isinstance(alpha, bool | str) for alpha in alphas):
        assert stored == list(alphas)


def test_texts_that_only_resemble_numbers_stay_texts(tmp_path):
    table = ResultsTable.of(result({"row": row}) for row in ("nan", "1_000", "inf"))
    read = read_results(table.to_csv(tmp_path / "results.csv"))
    assert read.distinct("row") == ("nan", "1_000", "inf")


def test_a_label_that_a_table_lacks_is_none_there():
    one, other = (ResultsTable.of([result(each)]) for each in ({"a": 1}, {"b": 2}))
    table = concatenated([one, other])
    assert [row.labels for row in table] == [{"a": 1}, {"b": 2}]
    assert len(table.where(a=None)) == len(table.where(b=None)) == 1
    assert table.with_labels(c="x").distinct("c") == ("x",)


def test_a_join_finds_numbers_with_the_same_labels():
    ours = ResultsTable.of(
        result({"row": row, "alpha": 0.1}, (0.9,), released_values=(0.8,))
        for row in ("a", "b", "c")
    )
    theirs = ResultsTable.of(
        Result(labels={"row": row, "table": "1"}, value=value)
        for row, value in (("b", 0.7), ("a", 0.5))
    )
    joined = ours.join(theirs)
    numbers = [joined.number(row) for row in range(3)]
    assert [number and number.value for number in numbers] == [0.5, 0.7, None]
    assert joined.differences == pytest.approx([0.3, 0.1, np.nan], nan_ok=True)


def test_one_result_is_found_or_a_sentence_says_what_to_name():
    rows = ("a", "b")
    table = ResultsTable.of(result({"row": r, "score": "nll"}, (1.0,)) for r in rows)
    assert table.at(row="a").value == 1.0
    with pytest.raises(LookupError, match="no result has row=c"):
        table.at(row="c")
    with pytest.raises(
        LookupError, match="2 results have score=nll, they differ in row"
    ):
        table.at(score="nll")
    with pytest.raises(LookupError, match="no column 'rwo'"):
        table.column("rwo")


def test_an_empty_table_is_a_table(tmp_path):
    for table in (ResultsTable(), ResultsTable.of(())):
        assert len(table.where(row="a")) == 0
        assert table.get(row="a") is None
        assert table.distinct("row") == ()
        assert table.pivot(("row",), ("score",)).rows == ()
    assert len(read_results(ResultsTable.of(()).to_csv(tmp_path / "none.csv"))) == 0


def test_frames_and_parquet_hold_the_labels(tmp_path):
    pd = pytest.importorskip("pandas")
    first = result({"row": "a", "alpha": 0.1}, (1.0, 2.0))
    table = ResultsTable.of([first, result({"row": "b"}, (3.0,))])
    frame = table.to_frame()
    assert list(frame["row"]) == ["a", "b"]
    assert frame["value"].tolist() == [1.5, 3.0]
    read = pd.read_parquet(table.to_parquet(tmp_path / "results.parquet"))
    assert read["row"].tolist() == ["a", "b"]
    assert [list(each) for each in read["values"]] == [[1.0, 2.0], [3.0]]


FORMULAS = (
    *(
        "=1+1",
        "\n=1+1",
        "\r\n =1",
        "\t=1",
        " @SUM(A1)",
        "\uff1d1+1",
        "\uff0b1",
        "\uff20x",
    ),
    *("a;=1+1", 'x;"=1"', "x; -cmd|'/C calc'!A0", "a\n+1+1", "-2+3", "\uff0d1"),
)


@pytest.mark.parametrize("text", FORMULAS)
def test_no_cell_begins_a_formula_by_any_separator(text):
    written = harmless(text)
    assert not re.search(r'(^|[;\t\r\n])[\s"]*[=+@\uff1d\uff0b\uff0d\uff20-]', written)
    assert unquoted(written) == text


@pytest.mark.parametrize(
    "text",
    ["'=1", "''=1", "a;'=1", "'-5", "x;-5", "-5", "-1;-2e-05", "a=b", "'", ";", "-"],
)
def test_quotes_of_texts_come_back(text):
    assert unquoted(harmless(text)) == text
    assert harmless("-1;-2e-05 -3") == "-1;-2e-05 -3"
