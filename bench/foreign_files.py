"""Damaged files of other programs: each is read, or refused in a sentence.

One process reads thousands of damaged copies of a table, an array and folders of maps,
and counts the answers. Anything else ends it with the error, and the seed to repeat.

    python bench/foreign_files.py --calls 50000 --seed 1
"""

import argparse
import faulthandler
import json
import os
import shutil
import sys
import tempfile
import time
from collections import Counter
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from PIL import Image

from qualms.predictions import PredictionsError, read
from qualms.readers.table import table

CELLS = ["", "1_0", "\u0663", "inf", "nan", "01", "0.5", "\0", '"', "1e999", "a" * 99]
WRITTEN = Path(__file__).resolve().parents[1] / "tests" / "readers" / "written"
VOLUMES = ("nnunet/regions", "monai/classes")
LONGEST = 60.0
"""Seconds after which a call counts as hanging."""
LONGEST_SENTENCE = 1000
TEXTS = (".csv", ".json")
KINDS = ("bytes", "cut", "double", "empty", "cell", "line")


def whole_files(folder: Path) -> list[Path]:
    """Write one of each kind and return what is read."""
    rng = np.random.default_rng(0)
    truth, prob = rng.integers(0, 2, 30), rng.uniform(0.01, 0.99, 30)
    pairs = zip(truth.tolist(), prob.round(3).tolist(), strict=True)
    rows = "".join(f"{y},{p},p{k % 5},i{k}\n" for k, (y, p) in enumerate(pairs))
    (folder / "t.csv").write_text(f"y_true,y_prob,cluster,item\n{rows}")
    both = np.stack([1 - prob, prob], axis=1)
    np.savez(folder / "a.npz", y_true=truth, y_prob=both, classes=np.array([0, 1]))
    try:
        from pyarrow import parquet
        from pyarrow import table as arrow_table
    except ImportError:
        sources = ["t.csv", "a.npz"]
    else:
        columns = {
            "y_true": truth,
            "y_prob": prob,
            "item": [f"i{k}" for k in range(30)],
        }
        parquet.write_table(arrow_table(columns), folder / "t.parquet")
        sources = ["t.csv", "a.npz", "t.parquet"]
    maps = folder / "maps"
    for place, top in (("probabilities", 256), ("masks", 2)):
        (maps / place).mkdir(parents=True)
        for case in range(2):
            picture = rng.integers(0, top, (9, 8)).astype(np.uint8)
            Image.fromarray(picture).save(maps / place / f"{case}.png")
    labels = {"background": 0, "vessel": 1}
    (maps / "dataset.json").write_text(json.dumps({"labels": labels}))
    (maps / "items.csv").write_text("item,group,cluster\n0,a,p\n1,b,q\n")
    for name in VOLUMES if find_spec("nibabel") else ():
        shutil.copytree(WRITTEN / name, folder / name)
        sources.append(name)
    for path in folder.rglob("*.*"):
        os.utime(path, (0, 0))
    return [*(folder / name for name in sources), maps]


def damaged(data: bytes, kind: str, rng: np.random.Generator) -> bytes:
    """Return bytes that somebody, or a disk, has spoiled."""
    at = int(rng.integers(len(data) + 1))
    if kind == "bytes":
        spoiled = bytearray(data)
        for place in rng.integers(len(data), size=rng.integers(1, 6)):
            spoiled[place] ^= 1 << int(rng.integers(8))
        return bytes(spoiled)
    if kind in ("cell", "line"):
        parts = data.split(b"," if kind == "cell" else b"\n")
        place = int(rng.integers(len(parts)))
        cell = str(rng.choice(CELLS)).encode()
        parts[place : place + 1] = [cell] if kind == "cell" else [parts[place]] * 2
        return (b"," if kind == "cell" else b"\n").join(parts)
    other = {"cut": data[:at], "double": data[:at] + data, "empty": b""}
    return other[kind]


def call(source: Path, rng: np.random.Generator) -> str:
    """Damage one file of a source, read it, and put the file back."""
    below = sorted(source.rglob("*.*")) if source.is_dir() else [source]
    files = [path for path in below if path.is_file()]
    file = files[int(rng.integers(len(files)))]
    kind = str(rng.choice(KINDS if file.suffix in TEXTS else KINDS[:4]))
    before = file.read_bytes()
    file.write_bytes(damaged(before, kind, rng))
    os.utime(
        file, (0, 0)
    )  # nobody writes to it any more, so that reading waits for none
    named = table(target="y_true", prob="y_prob", cluster="cluster", item="item")
    reader = named if source.suffix == ".csv" and rng.integers(2) else None
    faulthandler.dump_traceback_later(LONGEST, exit=True)
    try:
        found = read(source, reader=reader)
        for maps in found.maps or ():
            assert np.isfinite(maps.mean_probs).all()
        return "read"
    except PredictionsError as error:
        if not 0 < len(str(error)) <= LONGEST_SENTENCE:
            raise AssertionError("a refusal must be one sentence") from error
        return "refused"
    finally:
        faulthandler.cancel_dump_traceback_later()
        file.write_bytes(before)
        os.utime(file, (0, 0))


def main() -> None:
    """Read as many damaged files as were asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--calls", type=int, default=50_000)
    parser.add_argument("--seed", type=int, default=0)
    words = parser.parse_args()
    answers: Counter[str] = Counter()
    start, folder = time.process_time(), Path(tempfile.mkdtemp())
    sources = whole_files(folder)
    for source in sources:
        read(source)  # what is imported once counts for no call
    for number in range(words.calls):
        rng = np.random.default_rng([words.seed, number])
        source = sources[int(rng.integers(len(sources)))]
        try:
            answers[f"{source.name} {call(source, rng)}"] += 1
        except BaseException:
            sys.stderr.write(f"seed {words.seed}, call {number}: {source.name}\n")
            raise
    shutil.rmtree(folder)
    taken = time.process_time() - start
    sys.stdout.write(f"{words.calls} calls, {taken:.0f} s: {dict(answers)}\n")


if __name__ == "__main__":
    main()
