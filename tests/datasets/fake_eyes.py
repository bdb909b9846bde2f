"""Label files and photographs laid out as Kaggle ships them."""

import cv2
import numpy as np
from skimage.data import retina

EYEPACS = {
    "train": (25_810, 2_443, 5_292, 873, 708),
    "Public": (8_130, 720, 1_579, 237, 240),
    "Private": (31_403, 3_042, 6_282, 977, 966),
}
APTOS = {
    "test": (1_418, 309, 814, 158, 230),
    "val": (387, 61, 185, 35, 65),
}


def eyepacs_rows(counts, seed=0):
    """Shuffled rows of both label files, with `counts` of each grade."""
    rng = np.random.default_rng(seed)
    names = [f"{n // 2 + 1}_{('left', 'right')[n % 2]}" for n in range(200_000)]
    names = iter(rng.permutation(names).tolist())
    rows = {
        usage: [
            (next(names), grade, usage)
            for grade, count in enumerate(per_grade)
            for _ in range(count)
        ]
        for usage, per_grade in counts.items()
    }
    train = rows.pop("train")
    rest = [row for part in rows.values() for row in part]
    return shuffled(train, rng), shuffled(rest, rng)


def aptos_rows(counts, seed=0):
    """Rows of the label file: shuffled inside test, which comes first, and val."""
    rng = np.random.default_rng(seed)
    rows = []
    for split in ("test", "val"):
        grades = np.repeat(np.arange(5), counts[split])
        rows += [
            (f"{rng.bytes(6).hex()}", int(grade)) for grade in rng.permutation(grades)
        ]
    return rows


def shuffled(rows, rng):
    return [rows[i] for i in rng.permutation(len(rows))]


def write_eyepacs(folder, train, rest):
    folder.mkdir(parents=True, exist_ok=True)
    lines = ["image,level", *(f"{name},{grade}" for name, grade, _ in train)]
    (folder / "trainLabels.csv").write_text("\n".join(lines) + "\n")
    lines = ["image,level,Usage", *(f"{n},{g},{usage}" for n, g, usage in rest)]
    (folder / "retinopathy_solution.csv").write_text("\n".join(lines) + "\n")


def write_aptos(folder, rows):
    folder.mkdir(parents=True, exist_ok=True)
    lines = ["id_code,diagnosis", *(f"{name},{grade}" for name, grade in rows)]
    (folder / "train.csv").write_text("\n".join(lines) + "\n")


def photograph(number):
    """The real photograph of scikit-image, made small; or a disc with spots."""
    if number % 3 == 0:
        small = cv2.resize(retina(), (120, 110), interpolation=cv2.INTER_AREA)
        return np.roll(small, number, axis=-1)
    rng = np.random.default_rng(number)
    y, x = np.mgrid[:90, :130]
    image = rng.integers(60, 200, (90, 130, 3))
    image[np.hypot(x - 65, y - 45) > 42] = 0
    return image.astype(np.uint8)


def write_photographs(root, train, rest, aptos):
    """Both folders of EyePACS and that of APTOS below `root`."""
    places = [root / "eyepacs" / "train" / f"{name}.jpeg" for name, *_ in train]
    places += [root / "eyepacs" / "test" / f"{name}.jpeg" for name, *_ in rest]
    places += [root / "aptos" / "train_images" / f"{name}.png" for name, _ in aptos]
    for number, path in enumerate(places):
        path.parent.mkdir(parents=True, exist_ok=True)
        cv2.imwrite(str(path), photograph(number)[..., ::-1])
