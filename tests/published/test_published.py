"""The papers' numbers, read back exactly, with labels that our results have too."""

import csv
import math

import pytest

from qualms.published import published
from qualms.shelf import find

NAMES = ("regression", "retina", "url", "values")
OWN = {"source", "table", "mean", "std", "stderr", "unit", "note"}
"""Columns that are not labels of our results."""


def book_of(name):
    return published(find("benchmarks", name)().published)


def rows(name):
    text = find("benchmarks", name)().published.read_text("utf-8")
    return list(csv.DictReader(text.splitlines()))


@pytest.mark.parametrize("name", NAMES)
def test_every_number_is_read_with_its_labels_and_in_our_unit(name):
    numbers, raw = book_of(name).table, rows(name)
    assert len(numbers) == len(raw) > 100
    for number, row in zip(numbers, raw, strict=True):
        for label, value in number.labels.items():
            assert row[label] in (str(value), str(value).lower(), f"{value}.0") or (
                float(row[label]) == value
            )
        scale = 100.0 if row.get("unit") in ("percent", "x100") else 1.0
        assert number.value * scale == pytest.approx(float(row["mean"]), rel=1e-12)
        spread = row.get("std") or row.get("stderr")
        if spread:
            assert number.spread * scale == pytest.approx(float(spread), rel=1e-12)
        else:
            assert math.isnan(number.spread)


@pytest.mark.parametrize("name", NAMES)
def test_every_number_is_found_by_all_its_labels(name):
    table = book_of(name).table
    for number in list(table)[:: max(1, len(table) // 200)]:
        labels = {label: number.labels.get(label) for label in table.labels}
        assert table.get(**labels).labels == number.labels


@pytest.mark.parametrize("name", ["regression", "retina", "url"])
def test_labels_of_published_numbers_are_those_of_our_results(name):
    benchmark = find("benchmarks", name)()
    lines = [line for p in benchmark.presets for line in benchmark.plan(p).lines]
    ours = {label for line in lines for label in line.labels}
    ours |= {"subset", "score", "referred", "uncertainty"}
    assert set(rows(name)[0]) - OWN <= ours


def test_a_misprint_is_corrected_and_says_so():
    table = book_of("regression").table
    at = {"dataset": "ChairAngle", "alpha": 0.1, "row": "gaussian_knn"}
    at |= {"subset": "test", "score": "prediction_rate"}
    number = table.at(table="A34", **at)
    assert number.value == 0.975465
    assert "0.973465" in number.note
    twin = table.at(table="A4", **at)
    assert (twin.value, twin.spread) == (number.value, number.spread)
    assert twin.note == ""


def test_alpha_is_a_number_however_it_was_printed():
    assert set(book_of("regression").table.distinct("alpha")) == {0.05, 0.1, 0.2}


def test_spreads_are_named():
    assert book_of("retina").spread == "standard error"
    assert book_of("values").spread == "standard deviation"
    assert book_of("url").spread == ""


def test_what_is_not_there_is_a_sentence():
    table = book_of("regression").table
    with pytest.raises(LookupError, match="no result has dataset=Cell"):
        table.at(dataset="Cell")
    with pytest.raises(LookupError, match=r"results have table=A1.*they differ in"):
        table.at(table="A1")
