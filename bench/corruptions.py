"""Pictures of docs/corruptions.md: all corruptions, and curves of one dataset.

    python bench/corruptions.py docs/pictures
    python bench/corruptions.py docs/pictures --curves

The first takes a second. The second also writes the digits of scikit-learn as pictures,
trains networks on them with `qualms run own`, judges them under six corruptions, and
copies a figure; it takes some minutes of CPU time.
"""

import argparse
import csv
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from PIL import Image

from qualms.corruptions import chosen_corruptions, corrupt
from qualms.shelf import find

SIDE, SEVERITIES, ACROSS = 224, (1, 3, 5), 3
METHODS = "map,mc_dropout,deep_ensemble"
CORRUPT = "gaussian_noise,defocus_blur,fog,contrast,elastic_transform,jpeg_compression"


def house(side=SIDE):
    """Return a picture (side, side, 3) of a house on a hill, in uint8."""
    y, x = np.mgrid[:side, :side] / side
    sky = [0.35 + 0.5 * y, 0.55 + 0.2 * y, 0.85 - 0.3 * y]
    picture = np.stack(sky, axis=-1)
    picture[y > 0.62 + 0.08 * np.sin(7 * x)] = 0.25, 0.5, 0.2
    picture[np.hypot(x - 0.75, y - 0.22) < 0.11] = 1.0, 0.9, 0.4
    picture[(abs(x - 0.35) < 0.16) & (y > 0.45) & (y < 0.75)] = 0.75, 0.3, 0.22
    roof = (y < 0.45) & (y > 0.28) & (abs(x - 0.35) < 1.15 * (y - 0.28))
    picture[roof] = 0.35, 0.15, 0.15
    panes = (abs(x - 0.28) < 0.035) | (abs(x - 0.42) < 0.035)
    picture[panes & (y > 0.52) & (y < 0.62)] = 0.9, 0.95, 0.7
    return (255 * picture).round().astype(np.uint8)


def in_order():
    """Return all corruptions: those of ImageNet-C by family, then medical ones."""
    groups = ("noise", "blur", "weather", "digital", "medical")
    names = chosen_corruptions(groups, axes=2)
    medical = [n for n in names if "medical" in find("corruptions", n)().families]
    return [name for name in names if name not in medical] + medical


def draw_all():
    names = in_order()
    rows = -(-len(names) // ACROSS)
    figure = Figure(figsize=(9.6, 1.16 * rows), layout="constrained")
    panels = figure.subplots(rows, ACROSS * len(SEVERITIES))
    picture = house()
    for number, name in enumerate(names):
        column, row = divmod(number, rows)
        for place, severity in enumerate(SEVERITIES):
            axes = panels[row, column * len(SEVERITIES) + place]
            axes.imshow(corrupt(picture, name, severity, item="house"))
            if place == 1:
                axes.set_title(name.replace("_", " "), fontsize=8, pad=2)
    for axes in panels.flat:
        axes.axis("off")
    figure.get_layout_engine().set(w_pad=0.01, h_pad=0.01, wspace=0.01, hspace=0.01)
    return figure


def write_digits(folder):
    """Write the 1,797 digits of scikit-learn as pictures of 16 x 16 with a table."""
    from sklearn.datasets import load_digits

    digits = load_digits()
    pixels = (digits.images / 16 * 255).round().astype(np.uint8)
    rows = []
    for number, (picture, target) in enumerate(zip(pixels, digits.target, strict=True)):
        name = f"{number:04d}.png"
        large = picture.repeat(2, axis=0).repeat(2, axis=1)
        Image.fromarray(large).save(folder / name)
        rows.append((name, target))
    table = folder / "digits.csv"
    with table.open("w", newline="") as file:
        csv.writer(file).writerows([("path", "target"), *rows])
    return table


def run_digits(folder):
    """Run the benchmark in a folder, and return that of its figures."""
    words = ["--corrupt", CORRUPT, "--methods", METHODS, "-o", "epochs=20"]
    command = [sys.executable, "-m", "qualms", "run", "own", "--from"]
    subprocess.run(
        [*command, str(write_digits(folder)), *words, "--device", "cpu"],
        cwd=folder,
        env={**os.environ, "QUALMS_CACHE": str(folder / "cache")},
        check=True,
    )
    (page,) = folder.glob("runs/own/digits/**/index.html")
    return page.parent / "figures"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--curves", action="store_true")
    asked = parser.parse_args()
    options = {"dpi": 110, "pil_kwargs": {"quality": 85}}
    draw_all().savefig(asked.folder / "corruptions.jpg", **options)
    if asked.curves:
        with tempfile.TemporaryDirectory() as folder:
            figures = run_digits(Path(folder))
            name = "figure_corruptions_accuracy.png"
            shutil.copy(figures / name, asked.folder / "corruptions_digits.png")


if __name__ == "__main__":
    main()
