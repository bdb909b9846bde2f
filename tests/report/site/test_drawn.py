"""Figures as data for pages: ranges, colours, pictures, and what panels share."""

import base64
import zlib
from dataclasses import replace

import numpy as np
import pytest

from qualms.report.figures import (
    SERIES,
    BarMark,
    CurveMark,
    Drawing,
    OutlineMark,
    Panel,
    PictureMark,
    PointMark,
)
from qualms.report.site._png import png, reduced, shades
from qualms.report.site.drawn import figure_data
from report.site.made_site import drawing


def of(*panels, rows=None, **more):
    made = Drawing(name="f", title="F", caption="", rows=rows or (panels,), **more)
    return figure_data(made)["panels"]


def curve(y, **more):
    x = np.linspace(0, 1, len(y))
    return CurveMark(x=x, y=np.asarray(y, float), colour=SERIES[0], **more)


def test_panels_that_share_a_word_have_the_same_range():
    low, high, alone = of(
        Panel(marks=(curve([0, 1]),), share="a"),
        Panel(marks=(curve([5, 9]),), share="a"),
        Panel(marks=(curve([5, 9]),)),
    )
    assert low["y"]["range"] == high["y"]["range"]
    assert low["y"]["range"][0] < 0
    assert alone["y"]["range"][0] > 4


def test_ranges_hold_intervals_and_stated_ends():
    (panel,) = of(
        Panel(marks=(PointMark(x=1, y=2, low=-3, high=4),), y_range=(0, None))
    )
    assert panel["y"]["range"][0] == 0
    assert panel["y"]["range"][1] > 4
    (bars,) = of(Panel(marks=(BarMark(x=0, height=3, colour=SERIES[0], high=4),)))
    assert bars["y"]["range"] == (0.0, pytest.approx(4.2))
    (capped,) = of(Panel(marks=(curve([0.5, 1.0]),), y_most=1.01))
    assert capped["y"]["range"][1] == 1.01


@pytest.mark.parametrize("y", [[np.nan, np.nan], [1, 1], [0]])
def test_odd_curves_have_a_range(y):
    (panel,) = of(Panel(marks=(curve(y),)))
    low, high = panel["y"]["range"]
    assert np.isfinite([low, high]).all()
    assert low < high


def test_panels_stand_alone_with_what_they_share_on_paper():
    top = Panel(marks=(curve([0, 1]),), title="curves", y_label="value")
    beside = replace(top, y_label="", title="others")
    below = replace(top, title="", x_label="share")
    panels = of(rows=((top, beside), (below, below)), sides=("one", "two"))
    assert [panel["title"] for panel in panels] == [
        *("curves, one", "others, one"),
        *("curves, two", "others, two"),
    ]
    assert {panel["x"]["label"] for panel in panels} == {"share"}
    assert {panel["y"]["label"] for panel in panels} == {"value"}


def test_other_colours_become_ours():
    red, green = "#ff0000", "#00ff00"
    marks = tuple(
        replace(curve([0, 1]), colour=c) for c in (red, green, red, SERIES[4])
    )
    (panel,) = of(Panel(marks=marks))
    assert [mark["c"] for mark in panel["marks"]] == ["c0", "c1", "c0", "c4"]


def test_words_of_ticks_are_left_out_where_paper_leaves_them_to_another_row():
    marks = (curve([0, 1]),)
    (bare,) = of(Panel(marks=marks, x_ticks={0.0: "", 1.0: ""}))
    assert bare["x"]["ticks"] is None
    (named,) = of(Panel(marks=marks, x_ticks={0.0: "none", 1.0: "full"}))
    assert named["x"]["ticks"] == [(0.0, "none"), (1.0, "full")]


def test_every_mark_has_data():
    kinds = {m["kind"] for p in figure_data(drawing())["panels"] for m in p["marks"]}
    assert kinds == {
        *("curve", "point", "bar", "histogram", "cloud"),
        *("rule", "word", "picture", "outline"),
    }


def pixels_of(data):
    """Decode a PNG without filters, as ours are."""
    width, height = (int.from_bytes(data[at : at + 4], "big") for at in (16, 20))
    depth = {0: 1, 2: 3}[data[25]]
    start = data.index(b"IDAT") + 4
    size = int.from_bytes(data[start - 8 : start - 4], "big")
    raw = zlib.decompress(data[start : start + size])
    lines = np.frombuffer(raw, np.uint8).reshape(height, 1 + width * depth)[:, 1:]
    return lines.reshape(height, width, depth) if depth == 3 else lines


@pytest.mark.parametrize("shape", [(2, 3), (5, 4, 3), (1, 1)])
def test_pictures_hold_their_pixels(shape):
    pixels = np.random.default_rng(0).integers(0, 256, shape).astype(np.uint8)
    assert (pixels_of(png(pixels)) == pixels).all()


def test_a_library_reads_our_pictures():
    image = pytest.importorskip("PIL.Image")
    from io import BytesIO

    pixels = np.random.default_rng(0).integers(0, 256, (7, 5, 3)).astype(np.uint8)
    assert (np.asarray(image.open(BytesIO(png(pixels)))) == pixels).all()


def test_maps_have_one_scale_and_grey_where_undefined():
    values = np.array([[0.0, 0.5, 1.0, np.nan, 2.0]])
    colours = shades(values, (0.0, 1.0), heat=True)[0]
    assert colours[0].tolist() == [68, 1, 84]
    assert colours[2].tolist() == colours[4].tolist() == [253, 231, 37]
    assert colours[3].tolist() == [128, 128, 128]
    grey = shades(values, (0.0, 1.0), heat=False)[0]
    assert grey.tolist() == [0, 127, 255, 127, 255]


def test_large_pictures_are_reduced_by_means():
    pixels = np.zeros((4, 6), np.uint8)
    pixels[:2, :2] = [[0, 100], [100, 200]]
    small = reduced(pixels, 3)
    assert small.tolist() == [[100, 0, 0], [0, 0, 0]]
    assert reduced(pixels, 6) is pixels
    assert reduced(np.zeros((10, 10, 3), np.uint8), 4).shape == (3, 3, 3)


def test_many_pictures_stay_within_a_megabyte():
    noise = np.random.default_rng(0).integers(0, 256, (300, 300, 3)).astype(np.uint8)
    panels = tuple(Panel(marks=(PictureMark(pixels=noise),)) for _ in range(25))
    made = of(*panels)
    addresses = [mark["address"] for panel in made for mark in panel["marks"]]
    assert sum(map(len, addresses)) < 1_000_000
    data = base64.b64decode(addresses[0].partition(",")[2])
    assert pixels_of(data).shape[0] >= 75


def test_outlines_follow_the_edges_of_pixels():
    region = np.zeros((2, 3), bool)
    region[0, 1] = True
    (panel,) = of(Panel(marks=(OutlineMark(region=region, colour=SERIES[0]),)))
    path = panel["marks"][0]["path"]
    assert sorted(path.replace("M", " M").split()) == sorted(
        ["M1,0h1", "M1,1h1", "M1,0v1", "M2,0v1"]
    )
