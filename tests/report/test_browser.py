"""The page in a real browser: plots drawn, no error, readable wide and narrow."""

import re
import shutil
import subprocess

import numpy as np
import pytest
from PIL import Image

import qualms
from qualms.evaluate import Scored, ScoreOptions, compare
from qualms.report import write_page

CHROMIUM = shutil.which("chromium")
pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(
        CHROMIUM is None, reason="chromium is not installed: apt install chromium"
    ),
]
QUIET = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
    "--virtual-time-budget=8000",
]
HOSTILE = "<img src=nowhere.png onerror=alert(1)></script>"
# The colours of the first two lines, on white.
BLUE, ORANGE = (0x29, 0x38, 0xB5), (0xA6, 0x2B, 0x05)


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    """A comparison of two files on shifted items, one of them with a hostile name."""
    rng = np.random.default_rng(0)
    target, shifted = rng.integers(0, 2, 200), np.arange(200) >= 150
    results = []
    for name, noise in (("careful", 0.1), (HOSTILE, 0.3)):
        prob = np.clip(0.3 + 0.4 * target + rng.normal(0, noise, 200), 0.01, 0.99)
        arrays = {"target": target, "prob": prob, "shifted": shifted}
        results.append(
            qualms.score(arrays, options=ScoreOptions(resamples=40), name=name)
        )
    path = tmp_path_factory.mktemp("page") / "page.html"
    write_page(
        Scored(results=tuple(results), comparison=compare(results)),
        path,
        command="qualms score careful.npz",
    )
    return path


def browse(tmp_path, path, *options):
    return subprocess.run(
        [
            CHROMIUM,
            *QUIET,
            f"--user-data-dir={tmp_path / 'profile'}",
            *options,
            path.as_uri(),
        ],
        capture_output=True,
        text=True,
        timeout=300,
        check=True,
    )


def shot(tmp_path, path, width, height):
    out = tmp_path / f"{width}.png"
    browse(tmp_path, path, f"--screenshot={out}", f"--window-size={width},{height}")
    return np.asarray(Image.open(out).convert("RGB"))


def holds(pixels, colour):
    return bool((pixels == colour).all(axis=-1).any())


def test_every_plot_is_drawn_without_an_error(page, tmp_path):
    done = browse(tmp_path, page, "--dump-dom", "--enable-logging=stderr", "--v=0")
    assert not re.search(r"Uncaught|ERR_|CONSOLE", done.stderr), done.stderr
    sections = re.findall(r'<section class="chart">.*?</section>', done.stdout, re.S)
    assert len(sections) == len(re.findall(r'id="chart-\d+"', done.stdout)) > 10
    for section in sections:
        assert 'class="main-svg"' in section
        assert re.search(r'class="(js-line|point)"', section), section[:300]
    assert "<img" not in "".join(sections)


def test_an_error_of_the_page_would_be_seen(tmp_path):
    path = tmp_path / "broken.html"
    path.write_text("<script>throw new Error('on purpose')</script><img src=no.png>")
    done = browse(tmp_path, path, "--dump-dom", "--enable-logging=stderr", "--v=0")
    assert "Uncaught Error: on purpose" in done.stderr


def test_the_page_fills_a_wide_window(page, tmp_path):
    pixels = shot(tmp_path, page, 1280, 5000)
    assert pixels.shape == (5000, 1280, 3)
    assert holds(pixels, BLUE)
    assert holds(pixels, ORANGE)
    # Charts stand side by side: both halves hold lines.
    assert holds(pixels[:, :640], ORANGE)
    assert holds(pixels[:, 640:], ORANGE)


def test_the_page_fits_a_narrow_window(page, tmp_path):
    # A headless window is never narrower than 500 pixels; a frame in it may be.
    frame = tmp_path / "frame.html"
    frame.write_text(
        '<body style="margin:0; background:#123456"><iframe style="border:0" '
        f'width="400" height="9000" src="{page.as_uri()}"></iframe>'
    )
    pixels = shot(tmp_path, frame, 500, 9000)
    assert (pixels[:, 400:] == (0x12, 0x34, 0x56)).all()
    inside = pixels[:, :400]
    assert holds(inside, BLUE)
    assert holds(inside, ORANGE)
    # Nothing runs over the right edge of the panels but the ground of the page.
    assert (inside[:, 390:] == inside[0, 399]).all()
