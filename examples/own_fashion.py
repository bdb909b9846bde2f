"""Your own images with `qualms run own`, shown on Fashion-MNIST with rotated copies.

Writes some pictures of Debian's package `dataset-fashion-mnist` as class folders, with
copies of the test pictures turned by 10 to 30 degrees as what is shifted:

    clothes/train/dress/00012.png
    clothes/test/dress/00034.png
    clothes/shifted/dress/00034.png

and then runs `qualms run own --from clothes`. Five methods take two to three minutes of
CPU time.

    python examples/own_fashion.py [FOLDER] [--train 10000] [--test 2000]
"""

import argparse
import gzip
import subprocess
from pathlib import Path

import numpy as np
from PIL import Image

PLACE = Path("/usr/share/datasets/fashion-mnist")
CLASSES = (
    *("t-shirt", "trouser", "pullover", "dress", "coat"),
    *("sandal", "shirt", "sneaker", "bag", "boot"),
)


def read(part, count):
    """The first `count` pictures (N, 28, 28) and classes (N,) of a part."""
    images, labels = (
        gzip.decompress((PLACE / f"{part}-{kind}-ubyte.gz").read_bytes())
        for kind in ("images-idx3", "labels-idx1")
    )
    pixels = np.frombuffer(images, np.uint8, offset=16).reshape(-1, 28, 28)
    return pixels[:count], np.frombuffer(labels, np.uint8, offset=8)[:count]


def write(folder, pixels, labels):
    for number, (picture, label) in enumerate(zip(pixels, labels, strict=True)):
        path = folder / CLASSES[label] / f"{number:05d}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(picture).save(path)


def rotated(pixels, seed=0):
    """Each picture turned by a random angle of 10 to 30 degrees to either side."""
    rng = np.random.default_rng(seed)
    angles = rng.uniform(10, 30, len(pixels)) * rng.choice([-1, 1], len(pixels))
    bilinear = Image.Resampling.BILINEAR
    return [
        np.asarray(Image.fromarray(picture).rotate(angle, bilinear))
        for picture, angle in zip(pixels, angles, strict=True)
    ]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", nargs="?", type=Path, default=Path("clothes"))
    parser.add_argument("--train", type=int, default=10_000)
    parser.add_argument("--test", type=int, default=2_000)
    options, more = parser.parse_known_args()
    write(options.folder / "train", *read("train", options.train))
    pixels, labels = read("t10k", options.test)
    write(options.folder / "test", pixels, labels)
    write(options.folder / "shifted", rotated(pixels), labels)
    command = ["qualms", "run", "own", "--from", str(options.folder), *more]
    print(" ".join(command))
    subprocess.run(command, check=True)


if __name__ == "__main__":
    main()
