"""What a notebook shows of results: self-contained, and without scripts."""

import re
from xml.etree import ElementTree

import numpy as np
import pytest

import qualms
from qualms.evaluate import ScoreOptions
from qualms.evaluate.notebook import notebook_table, with_intervals
from qualms.inference import Bounded


def arrays(noise, n=300):
    rng = np.random.default_rng(int(noise * 10))
    target = np.arange(n) % 2
    prob = np.clip(0.3 + 0.4 * target + rng.normal(0, noise, n), 0.01, 0.99)
    return {"target": target, "prob": prob}


def pages():
    options = ScoreOptions(resamples=0)
    good, bad = (qualms.score(arrays(noise), options=options) for noise in (0.1, 0.5))
    plan = qualms.refer(arrays(0.3), budget=0.2, on=[arrays(0.4)])
    compared = qualms.compare([good, bad])
    return {"results": good, "comparison": compared, "plan": plan}


def test_results_comparisons_and_plans_draw_intervals_without_scripts():
    for what, shown in pages().items():
        page = shown._repr_html_()
        assert "<svg" in page, what
        assert not re.search(r"<script|<style|style=|src=|href=|\son\w+=", page), what
        ElementTree.fromstring(f"<div>{page.replace('<br>', '<br/>')}</div>")


def test_the_verdict_has_signs():
    page = pages()["results"]._repr_html_()
    assert re.search("<td>[✓✗?]</td>", page)


def drawn(cell):
    """The ends of the interval and the dot, as drawn."""
    low, high = re.search(r'd="M([\d.]+),6H([\d.]+)"', cell.drawing).groups()
    return float(low), float(re.search(r'cx="([\d.]+)"', cell.drawing)[1]), float(high)


def test_intervals_of_a_row_are_on_one_scale():
    first, second = with_intervals(
        ["a", "b"], [Bounded(0.5, 0.0, 0.6), Bounded(0.9, 0.8, 1.0)]
    )
    assert drawn(first) == (4.0, 48.0, pytest.approx(56.8))
    assert drawn(second) == (pytest.approx(74.4), pytest.approx(83.2), 92.0)
    (zero,) = with_intervals(["a"], [Bounded(2.0, 1.0, 4.0)], at=0.0)
    assert 'd="M4.0,0V12"' in zero.drawing


@pytest.mark.parametrize(
    "number",
    [
        None,
        Bounded(np.nan, np.nan, np.nan),
        Bounded(1.0, -np.inf, np.inf),
        Bounded(0.5, 0.5, 0.5),
    ],
)
def test_a_number_without_an_interval_is_a_text(number):
    (cell,) = with_intervals(["<b>"], [number])
    assert notebook_table("c", [], [[cell]]).endswith("<td>&lt;b&gt;</td></tr></table>")
