"""Preparing EyePACS with two processes against a plain OpenCV loop with one thread.

`python bench/preprocess.py` makes photographs of the sizes that EyePACS has from the
one that scikit-image carries, and times both end to end, files to files: the loop
decodes, scales, blurs, masks and writes a JPEG for each; `qualms.datasets.prepare` does
the same, to the last byte. It also starts its processes, keeps finished work so that it
can be stopped at any time, gathers everything in one file and hashes that file.
"""

import argparse
import tempfile
import time
from pathlib import Path

import cv2
import numpy as np

from qualms.datasets import cache_folder, prepare
from qualms.datasets.eyepacs import eyepacs

SIZES = ((2592, 3888), (3168, 4752), (2336, 3504), (1944, 2592), (1957, 2196))
MUST = 1.8


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--photographs", type=int, default=150)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=2)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        measure(Path(folder), options)


def measure(folder: Path, options: argparse.Namespace) -> None:
    root = folder / "eyepacs"
    make_tree(root, options.photographs)
    size = sum(path.stat().st_size for path in root.rglob("*.jpeg")) / 1e6
    pixels = sum(h * w for h, w in SIZES) / len(SIZES) / 1e6
    print(f"{options.photographs} photographs, {pixels:.1f} megapixels, {size:.0f} MB")
    loop, ours = [], []
    for turn in range(options.repeats):
        loop.append(timed(lambda turn=turn: plain_loop(root, folder / f"plain{turn}")))
        place = folder / f"cache{turn}"
        ours.append(timed(lambda place=place: prepared(root, place, options.workers)))
    check_same(folder / "plain0", folder / "cache0", root)
    report(min(loop), min(ours), options)


def timed(work) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def make_tree(root: Path, count: int) -> None:
    """Make a folder as Kaggle ships it: a handful of photographs under many names."""
    (root / "train").mkdir(parents=True)
    (root / "test").mkdir()
    sources = [encoded(height, width) for height, width in SIZES]
    rows = {"train": ["image,level"], "test": ["image,level,Usage"]}
    for number in range(count):
        part = "train" if number % 3 == 0 else "test"
        usage = {1: ",Public", 2: ",Private"}.get(number % 3, "")
        item, grade = f"{number + 1}_left", number // 3 % 5
        (root / part / f"{item}.jpeg").write_bytes(sources[number % len(sources)])
        rows[part].append(f"{item},{grade}{usage}")
    (root / "trainLabels.csv").write_text("\n".join(rows["train"]))
    (root / "retinopathy_solution.csv").write_text("\n".join(rows["test"]))


def encoded(height: int, width: int) -> bytes:
    """Return the real photograph, enlarged onto a black canvas, with sensor noise."""
    from skimage.data import retina  # which the other processes do not need

    eye = cv2.resize(retina(), (height, height), interpolation=cv2.INTER_CUBIC)
    canvas = np.zeros((height, width, 3), np.int16)
    left = (width - height) // 2
    canvas[:, left : left + height] = eye
    noise = np.random.default_rng(height).normal(0, 3, canvas.shape)
    image = np.clip(canvas + noise, 0, 255).astype(np.uint8)
    return cv2.imencode(".jpeg", image[..., ::-1], [cv2.IMWRITE_JPEG_QUALITY, 90])[
        1
    ].tobytes()


def plain_loop(root: Path, folder: Path) -> None:
    cv2.setNumThreads(1)
    folder.mkdir()
    for path in sorted(root.rglob("*.jpeg")):
        picture = plainly(cv2.imread(str(path)))
        quality = [cv2.IMWRITE_JPEG_QUALITY, 72]
        cv2.imwrite(str(folder / f"{path.stem}.jpeg"), picture, quality)


def plainly(image, radius: int = 300, blur: int = 30):
    x = image[image.shape[0] // 2].sum(axis=1)
    scale = radius / ((x > x.mean() / 10).sum() / 2)
    scaled = cv2.resize(image, (0, 0), fx=scale, fy=scale)
    mean = cv2.GaussianBlur(scaled, (0, 0), radius / blur)
    contrast = cv2.addWeighted(scaled, 4, mean, -4, 128)
    disc, kept = np.zeros(contrast.shape), int(0.9 * radius)
    row, column = contrast.shape[0] // 2, contrast.shape[1] // 2
    cv2.circle(disc, (column, row), kept, (1, 1, 1), -1, 8, 0)
    whole = contrast * disc + 128 * (1 - disc)
    return whole[
        max(0, row - kept) : row + kept, max(0, column - kept) : column + kept
    ].astype(np.uint8)


def prepared(root: Path, place: Path, workers: int):
    place.mkdir(exist_ok=True)
    recipe = eyepacs(root, shift="severity", size=540)
    folder = cache_folder(place, recipe)
    return prepare(recipe, folder, workers=workers, check_counts=False).dataset


def check_same(plain: Path, place: Path, root: Path) -> None:
    train = prepared(root, place, 1).splits["train"]
    for row, item in enumerate(train.item.tolist()):
        start, stop = train.image.span[row]
        mine = train.image.data[start:stop].tobytes()
        assert mine == (plain / f"{item}.jpeg").read_bytes(), item


def report(loop: float, ours: float, options: argparse.Namespace) -> None:
    count, ratio = options.photographs, loop / ours
    lines = [
        ("plain OpenCV loop, one thread", loop, 1.0),
        (f"qualms prepare, {options.workers} processes", ours, ratio),
    ]
    print("| work | seconds | photographs/s | times the loop |")
    print("|---|---|---|---|")
    for work, seconds, times in lines:
        print(f"| {work} | {seconds:.1f} | {count / seconds:.1f} | {times:.2f} |")
    hours = 92_364 / (count / ours) / 3600
    print(
        f"all 92,364 photographs: {hours:.1f} h; wanted at least {MUST} times the loop"
    )
    print("met" if ratio >= MUST else "NOT met")


if __name__ == "__main__":
    main()
