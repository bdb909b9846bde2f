"""Constants of ImageNet-C and TorchIO, copied from the released code by hand.

Hendrycks & Dietterich: `make_imagenet_c.py` (224 pixels) and `make_cifar_c.py` (32).
"""

from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

from qualms.corruptions._by_size import by_size, is_small

PUBLISHED = {  # name: (of 32 pixels, of 224 pixels)
    "gaussian_noise": ([0.04, 0.06, 0.08, 0.09, 0.10], [0.08, 0.12, 0.18, 0.26, 0.38]),
    "shot_noise": ([500, 250, 100, 75, 50], [60, 25, 12, 5, 3]),
    "impulse_noise": ([0.01, 0.02, 0.03, 0.05, 0.07], [0.03, 0.06, 0.09, 0.17, 0.27]),
    "defocus_blur": (
        [(0.3, 0.4), (0.4, 0.5), (0.5, 0.6), (1, 0.2), (1.5, 0.1)],
        [(3, 0.1), (4, 0.5), (6, 0.5), (8, 0.5), (10, 0.5)],
    ),
    "glass_blur": (
        [(0.05, 1, 1), (0.25, 1, 1), (0.4, 1, 1), (0.25, 1, 2), (0.4, 1, 2)],
        [(0.7, 1, 2), (0.9, 2, 1), (1, 2, 3), (1.1, 3, 2), (1.5, 4, 2)],
    ),
    "motion_blur": (
        [(6, 1), (6, 1.5), (6, 2), (8, 2), (9, 2.5)],
        [(10, 3), (15, 5), (15, 8), (15, 12), (20, 15)],
    ),
    "zoom_blur": (
        [(1.06, 0.01), (1.11, 0.01), (1.16, 0.01), (1.21, 0.01), (1.26, 0.01)],
        [(1.11, 0.01), (1.16, 0.01), (1.21, 0.02), (1.26, 0.02), (1.31, 0.03)],
    ),
    "snow": (
        [
            (0.1, 0.2, 1, 0.6, 8, 3, 0.95),
            (0.1, 0.2, 1, 0.5, 10, 4, 0.9),
            (0.15, 0.3, 1.75, 0.55, 10, 4, 0.9),
            (0.25, 0.3, 2.25, 0.6, 12, 6, 0.85),
            (0.3, 0.3, 1.25, 0.65, 14, 12, 0.8),
        ],
        [
            (0.1, 0.3, 3, 0.5, 10, 4, 0.8),
            (0.2, 0.3, 2, 0.5, 12, 4, 0.7),
            (0.55, 0.3, 4, 0.9, 12, 8, 0.7),
            (0.55, 0.3, 4.5, 0.85, 12, 8, 0.65),
            (0.55, 0.3, 2.5, 0.85, 12, 12, 0.55),
        ],
    ),
    "frost": (
        [(1, 0.2), (1, 0.3), (0.9, 0.4), (0.85, 0.4), (0.75, 0.45)],
        [(1, 0.4), (0.8, 0.6), (0.7, 0.7), (0.65, 0.7), (0.6, 0.75)],
    ),
    "fog": (
        [(0.2, 3), (0.5, 3), (0.75, 2.5), (1, 2), (1.5, 1.75)],
        [(1.5, 2), (2, 2), (2.5, 1.7), (2.5, 1.5), (3, 1.4)],
    ),
    "brightness": ([0.05, 0.1, 0.15, 0.2, 0.3], [0.1, 0.2, 0.3, 0.4, 0.5]),
    "contrast": ([0.75, 0.5, 0.4, 0.3, 0.15], [0.4, 0.3, 0.2, 0.1, 0.05]),
    "elastic_transform": (
        [
            (32 * 0, 32 * 0, 32 * 0.08),
            (32 * 0.05, 32 * 0.2, 32 * 0.07),
            (32 * 0.08, 32 * 0.06, 32 * 0.06),
            (32 * 0.1, 32 * 0.04, 32 * 0.05),
            (32 * 0.1, 32 * 0.03, 32 * 0.03),
        ],
        [
            (244 * 2, 244 * 0.7, 244 * 0.1),
            (244 * 2, 244 * 0.08, 244 * 0.2),
            (244 * 0.05, 244 * 0.01, 244 * 0.02),
            (244 * 0.07, 244 * 0.01, 244 * 0.02),
            (244 * 0.12, 244 * 0.01, 244 * 0.02),
        ],
    ),
    "pixelate": ([0.95, 0.9, 0.85, 0.75, 0.65], [0.6, 0.5, 0.4, 0.3, 0.25]),
    "jpeg_compression": ([80, 65, 58, 50, 40], [25, 18, 15, 10, 7]),
}
SIDES = {"elastic_transform": (32, 244)}
"""Sides that the published constants are multiplied with."""


@pytest.mark.parametrize("name", PUBLISHED)
def test_constants_are_those_of_the_released_code(name):
    module = import_module(f"qualms.corruptions.{name}")
    sides = SIDES.get(name, (1, 1))
    for ours, theirs, side in zip(
        (module.SMALL, module.LARGE), PUBLISHED[name], sides, strict=True
    ):
        np.testing.assert_allclose(np.multiply(ours, side), theirs, rtol=1e-12)


def test_pictures_of_both_published_sizes_take_their_own_constants():
    assert is_small((32, 32))
    assert not is_small((224, 224))
    assert by_size((95, 300), 1, small="abcde", large="fghij") == "a"
    assert by_size((96, 300), 5, small="abcde", large="fghij") == "j"


def test_the_middle_or_the_end_of_the_severities_is_the_default_of_torchio():
    def of(name, constant):
        return getattr(import_module(f"qualms.corruptions.{name}"), constant)

    assert of("gamma", "LOGARITHM")[2] == 0.3
    assert of("scanner_noise", "DEVIATION")[4] == 0.25
    assert of("scanner_blur", "DEVIATION")[4] == 2.0
    assert of("bias_field", "COEFFICIENT")[4] == 0.5
    assert of("bias_field", "ORDER") == 3
    assert of("ghosting", "INTENSITY")[4] == 1.0
    assert (of("ghosting", "FEWEST"), of("ghosting", "MOST")) == (4, 10)
    assert of("patient_motion", "DEGREES")[4] == 10.0
    assert of("patient_motion", "MOVES") == 2


def test_the_page_has_the_constants():
    page = (Path(__file__).parents[2] / "docs" / "corruptions.md").read_text("utf-8")

    def cell(values):
        rows = [np.atleast_1d(value) for value in values]
        between = "; " if len(rows[0]) > 1 else ", "
        return between.join(", ".join(f"{x:g}" for x in row) for row in rows)

    for name in PUBLISHED:
        module = import_module(f"qualms.corruptions.{name}")
        line = next(row for row in page.splitlines() if row.startswith(f"| `{name}` |"))
        assert line.endswith(f"| {cell(module.SMALL)} | {cell(module.LARGE)} |")
