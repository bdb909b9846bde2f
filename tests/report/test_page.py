"""The offline page: complete, escaped, and quiet on the network."""

import json
import re

import numpy as np
import pytest

import qualms
from qualms.evaluate import Scored, Settings, compare
from qualms.report import sparkline, write_page
from qualms.report._page import render_page
from qualms.report._thin import thin

HOSTILE = "</script><img src=x onerror=alert(1)>"


def scored(*names, group=None):
    rng = np.random.default_rng(0)
    target = rng.integers(0, 2, 200)
    results = []
    for i, name in enumerate(names):
        prob = np.clip(0.3 + 0.4 * target + rng.normal(0, 0.1 + 0.1 * i, 200), 0, 1)
        arrays = {"target": target, "prob": prob}
        if group is not None:
            arrays["group"] = np.where(target == 1, group, "other")
        results.append(qualms.score(arrays, settings=Settings(resamples=20), name=name))
    comparison = compare(results) if len(results) > 1 else None
    return Scored(results=tuple(results), comparison=comparison)


def data_of(page):
    return json.loads(
        re.search(
            r'<script type="application/json" id="data">(.*?)</script>', page, re.S
        )[1]
    )


def test_the_page_holds_table_curves_reliability_and_histograms():
    page = render_page(scored("mine"), command="qualms score mine.npz")
    assert "AUROC" in page
    assert "qualms score mine.npz" in page
    names = {chart["name"] for chart in data_of(page)}
    assert {"referral_accuracy", "reliability", "uncertainty/entropy"} <= names


def test_several_files_share_charts_and_show_differences():
    page = render_page(scored("mine", "theirs"))
    assert "Differences to the best" in page
    (chart,) = [c for c in data_of(page) if c["name"] == "referral_accuracy"]
    assert {trace["label"] for trace in chart["traces"]} == {
        "mine · entropy",
        "theirs · entropy",
    }


def test_names_from_files_are_escaped_everywhere():
    page = render_page(scored(HOSTILE, "b", group=HOSTILE), command=HOSTILE)
    assert HOSTILE not in page
    assert "<img src=x" not in page
    assert any(HOSTILE in chart["title"] for chart in data_of(page))


def test_the_page_names_nothing_to_load():
    page = render_page(scored("mine"))
    ours = page.split("<script>")[0] + page.rsplit("</script>", 2)[-2]
    assert not re.search(r'(src|href)\s*=\s*["\']?https?:', ours)


def test_writing_is_atomic(tmp_path, monkeypatch):
    monkeypatch.setattr("qualms.report._page.render_page", lambda *_, **__: "x" * 10)
    write_page(scored("mine"), tmp_path / "page.html")
    assert (tmp_path / "page.html").read_text() == "x" * 10
    assert [p.name for p in tmp_path.iterdir()] == ["page.html"]


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
