"""The papers' numbers, read back exactly and found by where they stand."""

import csv
from importlib.resources import files

import pytest

from qualms.published import published

NAMES = ("regression", "retina", "url", "values")


def rows(name):
    text = (files("qualms.published") / f"{name}.csv").read_text("utf-8")
    return list(csv.DictReader(text.splitlines()))


@pytest.mark.parametrize("name", NAMES)
def test_every_number_is_read_with_its_place(name):
    found, raw = published(name).numbers, rows(name)
    assert len(found) == len(raw)
    corrected = 0
    for number, row in zip(found, raw, strict=True):
        for column, value in number.where.items():
            assert row[column] == value or float(row[column]) == value
        printed = float(row.get("mean") or row.get("value"))
        corrected += number.mean != printed
        spread = row.get("std") or row.get("stderr")
        assert number.spread == (float(spread) if spread else None)
    assert corrected == (1 if name == "regression" else 0)


@pytest.mark.parametrize("name", NAMES)
def test_every_number_is_found_by_its_full_place(name):
    book = published(name)
    assert all(book.get(number.where) is number for number in book.numbers)


def test_a_misprint_is_corrected_and_says_so():
    at = {
        "table": "A34",
        "dataset": "ChairAngle",
        "alpha": 0.1,
        "method": "Gaussian + Selective kNN",
        "metric": "test_prediction_rate",
    }
    number = published("regression").get(at)
    assert number.mean == 0.975465
    assert "0.973465" in number.note
    twin = published("regression").get(at | {"table": "A4"})
    assert (twin.mean, twin.spread) == (number.mean, number.spread)
    assert twin.note == ""


def test_tables_with_shifted_labels_are_marked():
    assert set(published("regression").notes) == {"A5", "A6", "A7", "A8", "A9"}


def test_alpha_is_a_number_however_it_was_printed():
    alphas = {number.where["alpha"] for number in published("regression").numbers}
    assert alphas == {0.05, 0.1, 0.2}


def test_spreads_are_named():
    assert published("retina").spread == "standard error"
    assert published("values").spread == "standard deviation"
    assert published("url").spread == ""


def test_a_place_may_leave_out_what_it_need_not_say():
    where = {"table": "A14", "method": "Gaussian", "metric": "test_coverage"}
    number = published("regression").find(where)
    assert number.where["dataset"] == "Cells-Tails"


def test_an_ambiguous_place_is_refused():
    with pytest.raises(LookupError, match=r"numbers of regression have .*; name"):
        published("regression").find({"table": "A1", "method": "Gaussian"})


def test_what_is_not_there_is_none_or_a_sentence():
    book = published("regression")
    assert book.get({"table": "A1"}) is None
    with pytest.raises(
        LookupError, match=r"no column 'datset'.*Did you mean 'dataset'"
    ):
        book.find({"datset": "Cells"})
    with pytest.raises(LookupError, match=r"no dataset 'Cell'.*Did you mean 'Cells'"):
        book.find({"dataset": "Cell"})
    with pytest.raises(LookupError, match=r"no 'regresion'.*Did you mean 'regression'"):
        published("regresion")
