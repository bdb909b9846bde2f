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
)
from qualms.report._json_output import thin
from qualms.report.site import write_page

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


def page_of(scored_files, folder, **more):
    write_page(scored_files, folder / "page.html", **more)
    return (folder / "page.html").read_text("utf-8")


def data_of(page):
    blocks = re.findall(r'data-name="([^"]+)">(.*?)</script>', page)
    return {name: json.loads(value) for name, value in blocks}


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


def test_the_page_holds_a_verdict_curves_and_folded_scores(two, tmp_path):
    page = page_of(two, tmp_path, command="qualms score mine.npz")
    for words in ("AUROC", "qualms score mine.npz", "Differences from the best"):
        assert words in page
    assert page.count('class="verdict"') == 2
    # The verdict comes first, then curves, then scores; all of them are folded.
    parts = ['class="verdict"', "<figure", "Main scores</h2>", "<details><summary>Are"]
    assert [page.index(part) for part in parts] == sorted(map(page.index, parts))
    data = data_of(page)
    assert {"files-figure-reliability", "files-figure-uncertainty-entropy"} <= set(data)
    marks = data["files-figure-referral-accuracy"]["panels"][0]["marks"]
    assert [mark["name"] for mark in marks] == [
        *("mine, in-domain", "mine, shifted"),
        *("theirs, in-domain", "theirs, shifted"),
    ]
    # A file keeps its colour; its shifted items are dashed.
    assert [mark["c"] for mark in marks] == ["c0", "c0", "c1", "c1"]
    assert [mark.get("line", "-") for mark in marks] == ["-", "--"] * 2


def test_a_page_of_one_file_needs_no_comparison(tmp_path):
    page = page_of(scored("mine"), tmp_path)
    assert "<title>mine" in page
    assert "Differences from the best" not in page
    marks = data_of(page)["files-figure-referral-accuracy"]["panels"][0]["marks"]
    assert [mark["name"] for mark in marks] == ["in-domain", "shifted"]
    assert [mark["c"] for mark in marks] == ["c0", "c1"]
    assert 'href="#"' not in page
    targets = set(re.findall(r'href="#([^"]+)"', page))
    assert targets <= set(re.findall(r'id="([^"]+)"', page))


def test_names_from_files_are_escaped_everywhere(tmp_path):
    page = page_of(scored(HOSTILE, "b", group=HOSTILE), tmp_path, command=HOSTILE)
    assert HOSTILE not in page
    assert "<img src=x" not in page
    marks = data_of(page)["files-figure-referral-accuracy"]["panels"][0]["marks"]
    assert marks[0]["name"] == f"{HOSTILE}, in-domain"


def test_the_page_names_nothing_to_load(two, tmp_path):
    page = page_of(two, tmp_path)
    assert not re.search(r'(src|href)\s*=\s*["\']?(https?:|assets|data/|files/)', page)
    assert "default-src &#x27;none&#x27;" in page
    assert len(page) < 1_000_000


def test_a_name_that_is_no_text_can_be_written(tmp_path):
    strange = b"caf\xe9.npz".decode("utf-8", "surrogateescape")
    scored_files = scored(strange)
    write_page(scored_files, tmp_path / "page.html")
    write_curves(scored_files.results, tmp_path / "curves.csv")
    assert "caf\N{REPLACEMENT CHARACTER}.npz" in (tmp_path / "page.html").read_text(
        encoding="utf-8"
    )
    assert json.dumps(to_json(scored_files))


def test_writing_is_atomic(two, tmp_path, monkeypatch):
    (tmp_path / "page.html").write_text("before")
    monkeypatch.setattr("os.fsync", lambda _: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        write_page(two, tmp_path / "page.html")
    assert (tmp_path / "page.html").read_text() == "before"
    assert [p.name for p in tmp_path.iterdir()] == ["page.html"]


def test_json_says_settings_as_mappings(two):
    data = to_json(two)
    assert data["format"] == 5
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
