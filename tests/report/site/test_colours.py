"""Colours of the style sheet: texts are readable, and series are told apart."""

import re
from itertools import combinations

import numpy as np
import pytest
from skimage.color import deltaE_ciede2000, rgb2lab

from qualms.report.figures import SERIES
from qualms.report.site.assets import style

# Machado, Oliveira & Fernandes (2009), severity 1, for linear RGB.
SIGHTS = {
    "normal": [[1, 0, 0], [0, 1, 0], [0, 0, 1]],
    "protan": [
        [0.152286, 1.052583, -0.204868],
        [0.114503, 0.786281, 0.099216],
        [-0.003882, -0.048116, 1.051998],
    ],
    "deutan": [
        [0.367322, 0.860646, -0.227968],
        [0.280085, 0.672501, 0.047413],
        [-0.011820, 0.042940, 0.968881],
    ],
    "tritan": [
        [1.255528, -0.076749, -0.178779],
        [-0.078411, 0.930809, 0.147602],
        [0.004733, 0.691367, 0.303900],
    ],
}
LEAST = {"light": 15.3, "dark": 12.5}
GROUNDS = ("ground", "panel", "raised")


@pytest.fixture(scope="module")
def themes():
    """The colours of each theme, by name."""
    bodies = re.findall(r":root[^{]*\{([^}]*--ground[^}]*)\}", style())
    light, dark, of_system = (
        dict(re.findall(r"--(\w+): (#[0-9a-f]{6})", body)) for body in bodies
    )
    assert dark == of_system
    return {"light": light, "dark": dark}


def linear(colour):
    rgb = np.array([int(colour[at : at + 2], 16) for at in (1, 3, 5)]) / 255
    return np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)


def contrast(one, other):
    """The contrast of two colours by WCAG 2."""
    weights = (0.2126, 0.7152, 0.0722)
    low, high = sorted(float(linear(colour) @ weights) for colour in (one, other))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("ground", GROUNDS)
def test_texts_are_readable_on_every_ground(themes, theme, ground):
    colours = themes[theme]
    for text in ("ink", "soft", "faint", "mark", "good", "bad", "warn"):
        assert contrast(colours[text], colours[ground]) >= 4.5, text
    assert contrast(colours["ink"], colours[ground]) >= 7


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_chips_and_series_stand_out(themes, theme):
    colours = themes[theme]
    assert contrast(colours["warn"], colours["warned"]) >= 4.5
    for number in range(7):
        assert contrast(colours[f"s{number}"], colours["raised"]) >= 3, number


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("sight", SIGHTS)
def test_series_are_told_apart_by_all_kinds_of_sight(themes, theme, sight):
    seen = []
    for number in range(6):
        rgb = np.array(SIGHTS[sight]) @ linear(themes[theme][f"s{number}"])
        rgb = np.clip(rgb, 0, 1)
        shown = np.where(
            rgb <= 0.0031308, 12.92 * rgb, 1.055 * rgb ** (1 / 2.4) - 0.055
        )
        seen.append(rgb2lab(shown))
    apart = min(float(deltaE_ciede2000(a, b)) for a, b in combinations(seen, 2))
    assert apart >= LEAST[theme]


def test_pages_and_paper_have_the_same_series(themes):
    assert tuple(themes["light"][f"s{number}"] for number in range(6)) == SERIES
