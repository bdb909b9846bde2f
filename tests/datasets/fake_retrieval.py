"""Small trees of photographs, laid out as publishers ship the datasets of URL."""

import json
import zlib

import numpy as np
from PIL import Image

BIRDS = {f"{k + 1:03d}.c{k}": n for k, n in enumerate((5, 4, 7, 1, 6, 3))}
CARS = {"Car D": 7, "Car A": 3, "Car C": 1, "Car F": 5, "Car B": 6, "Car E": 4}
"""Images of each class; those of the golden splits."""
ANIMALS = ("cat", "dog", "bird")


def photograph(path, size=(40, 30)):
    """A smooth picture that depends on the name of its file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(zlib.crc32(path.name.encode()))
    small = Image.fromarray(rng.integers(0, 256, (4, 5, 3), np.uint8))
    kind = "PNG" if path.suffix == ".png" else "JPEG"
    small.resize(size, Image.Resampling.BICUBIC).save(path, kind)


def write_classes(folder, counts):
    """A folder for each class."""
    for name, count in counts.items():
        for number in range(count):
            photograph(folder / name / f"i{number:02d}.jpg")


def write_products(folder, rows):
    """The lists and images of Stanford Online Products, in the publisher's layout."""
    for part in ("train", "test"):
        lines = ["image_id class_id super_class_id path"]
        lines += [" ".join(map(str, row)) for row in rows[f"{part}_rows"]]
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"Ebay_{part}.txt").write_text("\n".join(lines) + "\n")
        for *_, path in rows[f"{part}_rows"]:
            photograph(folder / path)


def annotators():
    """The golden votes: four annotators, one of whom chose no class for an image."""
    rng = np.random.default_rng(240)
    people = []
    for annotator in range(4):
        entries = []
        for image in range(10):
            silent = (annotator, image) == (0, 3)
            label = None if silent else ANIMALS[rng.integers(0, 3)]
            path = f"CIFAR10H/fold{1 + image % 5}/im{image}.png"
            entries.append({"image_path": path, "class_label": label})
        people.append({"name": f"a{annotator}", "annotations": entries})
    return people


def write_votes(root, people):
    """Images and annotations.json of a dataset of DCIC below `root`."""
    for entry in people[0]["annotations"]:
        photograph(root / entry["image_path"])
    (folder := root / "CIFAR10H").mkdir(exist_ok=True)
    (folder / "annotations.json").write_text(json.dumps(people))
