"""What `qualms score` shows: table, page, JSON and curves."""

import csv
import json
import re

import numpy as np
import pytest
from rich.console import Console

import qualms
from qualms.evaluate import Scored, ScoreOptions, compare
from qualms.report import (
    print_results,
    score_table,
    sparkline,
    to_json,
    write_curves,
    write_page,
)
from qualms.report._json_output import thin
from qualms.report._page import render_page

HOSTILE = "</script><img src=x onerror=alert(1)>"


def scored(*names, group=None, n=200):
    rng = np.random.default_rng(0)
    target = rng.integers(0, 2, n)
    results = []
    for i, name in enumerate(names):
        prob = np.clip(0.3 + 0.4 * target + rng.normal(0, 0.1 + 0.1 * i, n), 0, 1)
        arrays = {"target": target, "prob": prob, "shifted": np.arange(n) > n // 2}
        if group is not None:
            arrays["group"] = np.where(target == 1, group, "other")
        options = ScoreOptions(resamples=20)
        results.append(qualms.score(arrays, options=options, name=name))
    comparison = compare(results) if len(results) > 1 else None
    return Scored(results=tuple(results), comparison=comparison)


@pytest.fixture(scope="module")
def two():
    return scored("mine", "theirs")


def data_of(page):
    return json.loads(
        re.search(
            r'<script type="application/json" id="data">(.*?)</script>', page, re.S
        )[1]
    )


def test_the_table_has_every_score_of_every_file(two):
    table = score_table(two)
    assert [column.label for column in table.columns] == ["mine", "theirs"]
    assert len(table.lines) == len({row.key for r in two.results for row in r.rows})
    line = next(
        line
        for line in table.lines
        if (line.keys["score"], line.section) == ("accuracy", "all")
    )
    row = two.results[0].row("accuracy", subset="all")
    assert (line.cells[0].mean, line.cells[0].low) == (row.value, row.low)
    assert line.labels[0] == "↑ Accuracy"
    assert {line.section for line in table.lines} >= {"all", "in-domain", "shifted"}


@pytest.mark.parametrize("width", [80, 140])
def test_a_terminal_shows_scores_differences_curves_and_notes(two, width):
    console = Console(width=width)
    with console.capture() as capture:
        print_results(two, differences=True, console=console)
    text = capture.get()
    assert max(map(len, text.splitlines())) <= width
    assert "…" not in text
    for words in ("AUROC", "Differences from the best", "curves of mine", "●"):
        assert words in text


def test_the_page_holds_tables_curves_reliability_and_histograms(two):
    page = render_page(two, command="qualms score mine.npz")
    assert "AUROC" in page
    assert "qualms score mine.npz" in page
    assert "Differences from the best" in page
    charts = data_of(page)
    names = {chart["name"] for chart in charts}
    assert {"referral_accuracy", "reliability", "uncertainty/entropy"} <= names
    chart = next(c for c in charts if c["name"] == "referral_accuracy")
    labels = {trace["label"] for trace in chart["traces"]}
    assert labels == {"mine · entropy", "theirs · entropy"}


def test_names_from_files_are_escaped_everywhere():
    page = render_page(scored(HOSTILE, "b", group=HOSTILE), command=HOSTILE)
    assert HOSTILE not in page
    assert "<img src=x" not in page
    assert any(HOSTILE in chart["title"] for chart in data_of(page))


def test_the_page_names_nothing_to_load(two):
    page = render_page(two)
    ours = page.split("<script>")[0] + page.rsplit("</script>", 2)[-2]
    assert not re.search(r'(src|href)\s*=\s*["\']?https?:', ours)
    assert "default-src 'none'" in page


def test_a_name_that_is_no_text_can_be_written(tmp_path):
    strange = b"caf\xe9.npz".decode("utf-8", "surrogateescape")
    scored_files = scored(strange)
    write_page(scored_files, tmp_path / "page.html")
    write_curves(scored_files.results, tmp_path / "curves.csv")
    assert "caf?.npz" in (tmp_path / "page.html").read_text(encoding="utf-8")
    assert json.dumps(to_json(scored_files))


def test_writing_is_atomic(two, tmp_path, monkeypatch):
    monkeypatch.setattr("qualms.report._page.render_page", lambda *_, **__: "x" * 10)
    write_page(two, tmp_path / "page.html")
    assert (tmp_path / "page.html").read_text() == "x" * 10
    assert [p.name for p in tmp_path.iterdir()] == ["page.html"]


def test_json_says_settings_as_mappings(two):
    data = to_json(two)
    assert data["format"] == 4
    rows = data["files"][0]["scores"]
    assert {"uncertainty": "entropy"} in [row["settings"] for row in rows]
    assert all("variant" not in row for row in rows)
    assert data["files"][0]["curves"][0]["settings"]
    assert "settings" in data["comparison"]["contrasts"][0]
    assert json.loads(json.dumps(data)) == data


def test_curves_are_written_at_full_length(tmp_path):
    scored_files = scored("=mine", n=1000)
    write_curves(scored_files.results, tmp_path / "curves.csv")
    with (tmp_path / "curves.csv").open(encoding="utf-8", newline="") as file:
        lines = list(csv.DictReader(file))
    assert len(lines) == sum(len(curve.x) for curve in scored_files.results[0].curves)
    assert {line["file"] for line in lines} == {"'=mine"}


@pytest.mark.parametrize("n", [1, 399, 400, 401, 12_345])
def test_thinning_keeps_ends_and_extremes(n):
    y = np.cumsum(np.random.default_rng(n).standard_normal(n))
    kept = thin(y)
    assert len(kept) <= 400
    assert kept[0] == 0
    assert kept[-1] == n - 1
    assert {int(y.argmin()), int(y.argmax())} <= set(kept.tolist())


def test_thinning_survives_undefined_stretches():
    y = np.full(5000, np.nan)
    y[100] = 3.0
    assert 100 in thin(y)


def test_sparklines_rise_and_leave_gaps():
    assert sparkline(np.array([0.0, 1.0, 2.0])) == "▁▅█"
    assert sparkline(np.array([0.0, np.nan, 1.0])) == "▁ █"
    assert sparkline(np.array([np.nan])) == " "
