"""Captions and legends promise only what is drawn."""

import math
import re
from dataclasses import replace

import numpy as np
import pytest

from qualms.report.benchmark import presentation_of
from qualms.report.captions import If, banded, caption, hollow, lined, ranged
from qualms.report.figures import (
    WRONG,
    BarMark,
    CurveMark,
    Drawing,
    HistogramMark,
    Panel,
    PointMark,
    is_visible,
)
from report import made_results, made_retina, made_url, made_values

PROMISES = {
    r"[Hh]ollow|\(hollow\)": hollow,
    r"[Dd]ashed line": lined("--"),
    r"dotted line": lined(":"),
    r"Bands (are|reach)": banded,
    r"Ranges are|Whiskers are|Lines up and down|with the lowest": ranged,
    r"\bred\b": lambda mark: isinstance(mark, HistogramMark) and mark.colour == WRONG,
    r"NHS": lambda mark: getattr(mark, "label", "") == "NHS recommendation",
    r"\(filled\)": lambda mark: isinstance(mark, PointMark) and not mark.hollow,
}
"""Words of captions, and the marks that they promise."""
MADE = {
    "retina": lambda: made_retina.results_as_published(drawn=True),
    "retina, simulated": lambda: made_retina.results_as_published(
        plan=made_retina.DEMO, simulated=True, drawn=True
    ),
    "values": lambda: made_values.results_as_published(drawn=True),
    "values, small": lambda: made_values.results_as_published(
        plan=made_values.SMALL, drawn=True
    ),
    "values, demo": lambda: made_values.results_as_published(plan=made_values.DEMO),
    "url": made_url.url_results_as_published,
    "url, small": lambda: made_url.url_results_as_published(made_url.SMALL),
    "url, demo": lambda: made_url.url_results_as_published(made_url.DEMO),
    "regression": made_results.results_as_published,
    "regression, simulated": lambda: made_results.results_as_published(simulated=True),
}


def broken_promises(drawing):
    marks = [mark for panel in drawing.panels for mark in panel.marks]
    for words, drawn in PROMISES.items():
        said = re.search(words, drawing.caption)
        if said and "no bands" not in drawing.caption and not any(map(drawn, marks)):
            yield f"{drawing.name}: {said.group()}"
    for label, mark in drawing.keyed.items():
        if not is_visible(mark):
            yield f"{drawing.name}: legend {label}"


@pytest.mark.parametrize("name", MADE)
def test_captions_promise_only_what_is_drawn(name):
    results = MADE[name]()
    drawings = list(presentation_of(results).figures(results, None))
    assert drawings
    assert [words for each in drawings for words in broken_promises(each)] == []
    if name.startswith("values"):
        return  # it asks for the file of published numbers
    # Without published numbers there is nothing hollow, and nobody is told of it.
    bare = replace(results, plan=without_published(results.plan))
    for drawing in presentation_of(bare).figures(bare, None):
        if "chosen by R@1" not in drawing.title:
            assert "ollow" not in drawing.caption, drawing.name


def without_published(plan):
    return replace(plan, benchmark=replace(plan.benchmark, published=None))


def test_a_sentence_needs_its_mark():
    point = PointMark(x=0, y=0, hollow=True)
    said = If(hollow, "Hollow points are theirs.")
    assert caption([[Panel(marks=(point,))]], "A.", said, "") == (
        "A. Hollow points are theirs."
    )
    assert caption([[Panel(marks=(replace(point, hollow=False),))]], "A.", said) == "A."
    flat = CurveMark(x=np.arange(2), y=np.zeros(2), colour="k", low=np.zeros(2))
    assert not banded(replace(flat, high=np.zeros(2)))
    assert banded(replace(flat, high=np.ones(2)))


def test_a_legend_has_no_entry_for_what_cannot_be_seen():
    marks = (
        PointMark(x=0, y=math.nan, label="lost"),
        BarMark(x=0, height=1.0, colour="k", label="bar"),
        HistogramMark(
            edges=np.arange(3), heights=np.zeros(2), colour="k", label="none"
        ),
    )
    drawing = Drawing(name="n", title="t", caption="", rows=((Panel(marks=marks),),))
    assert drawing.labels == ("bar",)


def test_a_seed_that_is_undefined_leaves_the_others_in_the_band_of_figure_13():
    results = made_url.url_results_as_published()

    def figure(results):
        drawings = presentation_of(results).figures(results, None)
        return next(each for each in drawings if each.name == "figure_13")

    def widths(drawing):
        (panel, *_) = drawing.panels
        curves = [mark for mark in panel.marks if isinstance(mark, CurveMark)]
        return {c.label: c.high - c.low for c in curves}, curves

    def spoilt(one):
        few = one.labels.get("shots") and one.labels["score"] == "r_auroc"
        if not few or len(one.values) < 3:
            return one
        return replace(one, values=(math.nan, *one.values[1:]))

    before, _ = widths(figure(results))
    table = type(results.table).of(map(spoilt, results.table))
    after, curves = widths(figure(replace(results, table=table)))
    assert any((width > 0).all() for width in before.values())
    assert after.keys() == before.keys()
    for curve in curves:
        assert np.isfinite(curve.y).all()
        assert np.isfinite(curve.low).all()
    for label, width in after.items():
        assert ((width > 0) == (before[label] > 0)).all()
