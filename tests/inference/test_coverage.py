"""The simulation of `bench/coverage.py`, in small."""

import json

import pytest
from bench import coverage
from bench.populations import POPULATIONS


@pytest.fixture(scope="module")
def counted():
    """A few repetitions of a few populations, through the lines of the file."""
    lines = []
    for name in ("shifted set", "two models", "segmentation", "conformal"):
        truth = coverage._truth(name) if name != "conformal" else {}
        truth = truth or {case.label: 0.0 for case in POPULATIONS[name].cases}
        task = ("cover", name, "200", "0", "60")
        line = {"task": task, "found": coverage._carried_out(task, truth)}
        lines.append(json.loads(json.dumps(line)))
    for rows in (2, 5):
        task = ("ties", "nll", str(rows), "200", "0", "100")
        lines.append({"task": task, "found": coverage._carried_out(task, {})})
    return lines


def test_intervals_hold_in_every_population(counted):
    for key, (given, held, *_) in coverage._cells(counted).items():
        assert given == 60, key
        assert held >= 50, key


def test_equal_rows_are_rarely_excluded(counted):
    for line in counted[-2:]:
        assert line["found"]["set"] <= 12


def test_the_tables_name_what_fails(counted):
    found = coverage.tables(counted)
    assert found.startswith("18 cells (score, population, n) judged, 0 fail.")
    assert "60 at n = 200" in found
    bad = {("ECE", "balanced", 200): [1000.0, 800.0, 200.0, 1.0, 1000.0, 0.0]}
    assert "ECE, balanced, n = 200: 80.0%, below 93%" in coverage._verdict(bad)
    wide = {("ECE", "balanced", 200): [1000.0, 1000.0, 0.0, 1.0, 1000.0, 0.0]}
    assert "above 97%" in coverage._verdict(wide)
    share = {("Accuracy", "balanced", 200): [1000.0, 1000.0, 0.0, 1.0, 1000.0, 0.0]}
    assert "0 fail" in coverage._verdict(share)
