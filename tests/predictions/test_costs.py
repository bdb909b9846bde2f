"""A small file costs little: memory and time are bounded before they are spent."""

import subprocess
import sys
import time

import numpy as np
import pytest

from qualms.predictions import PredictionsError, read, write

# Not from getrusage: there a child begins with the peak of its parent.
PEAK = """
import re, sys
from pathlib import Path
from qualms.predictions import PredictionsError, read
def peak():
    status = Path("/proc/self/status").read_text()
    return int(re.search(r"VmHWM:\\s+([0-9]+)", status)[1]) / 1024
before = peak()
try:
    read(sys.argv[1])
    said = "read"
except PredictionsError as error:
    said = str(error)
print(peak() - before, said)
"""


linux = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")


def cost(path):
    """MiB that reading `path` takes in a process of its own, and what came of it."""
    done = subprocess.run(
        [sys.executable, "-c", PEAK, path], capture_output=True, text=True, check=True
    )
    mib, _, said = done.stdout.partition(" ")
    return float(mib), said.strip()


@linux
def test_one_long_cell_does_not_widen_a_table(tmp_path):
    path = tmp_path / "p.csv"
    rows = "".join(f"{row % 2},0.5,{row}\n" for row in range(8000))
    path.write_text(f"target,prob,item\n{rows}0,0.5,{'x' * 100_000}\n")
    mib, said = cost(path)
    assert "an entry of 100000 characters" in said
    assert mib < 100


@linux
def test_repeated_text_in_a_parquet_file_is_not_unpacked(tmp_path):
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    rows = 10_000
    long = pa.DictionaryArray.from_arrays(
        pa.array(np.zeros(rows, np.int32)), pa.array(["x" * 1_000_000])
    )
    table = {"target": np.zeros(rows), "prob": np.zeros(rows), "group": long}
    parquet.write_table(pa.table(table), tmp_path / "p.parquet")
    assert (tmp_path / "p.parquet").stat().st_size < 300_000
    mib, said = cost(tmp_path / "p.parquet")
    assert "which real predictions do not" in said or "machine's memory" in said
    assert mib < 300


@linux
def test_shapes_are_compared_before_an_npz_is_unpacked(tmp_path):
    path = tmp_path / "p.npz"
    np.savez_compressed(path, target=np.zeros(3), probs=np.zeros((40, 1000, 1000)))
    assert path.stat().st_size < 1_000_000
    mib, said = cost(path)
    assert "array 'probs' has 1000 items" in said
    assert mib < 60


@linux
def test_wide_text_in_an_npz_is_not_unpacked(tmp_path):
    path = tmp_path / "p.npz"
    item = np.array(["x" * 20_000, *map(str, range(2000))])
    n = len(item)
    np.savez_compressed(path, target=np.zeros(n), prob=np.zeros(n), item=item)
    mib, said = cost(path)
    assert "an entry of 20000 characters" in said
    assert mib < 60


def test_a_thousand_columns_of_a_parquet_file_take_seconds(tmp_path):
    probs = np.full((3, 1000), 0.001)
    path = write(tmp_path / "p.parquet", {"target": [0, 1, 2], "probs": probs})
    start = time.process_time()
    assert read(path).classes == 1000
    assert time.process_time() - start < 10


@pytest.mark.parametrize("known", [True, False])
def test_a_hundred_thousand_columns_take_seconds(tmp_path, known):
    path = tmp_path / "p.csv"
    head = "prob" if known else "feature"
    names = [f"{head}_{k}" for k in range(100_000)]
    cells = ["1" if k == 0 else "0" for k in range(100_000)]
    path.write_text(
        f"target,prob_0,prob_1,{','.join(names)}\n0,0,1,{','.join(cells)}\n"
    )
    if known:
        path.write_text(f"target,{','.join(names)}\n0,{','.join(cells)}\n")
    start = time.process_time()
    predictions = read(path)
    assert time.process_time() - start < 20
    assert predictions.classes == (100_000 if known else 2)
    assert len(predictions.notes) <= 1


@linux
def test_writing_and_reading_draws_costs_little_more_than_the_file(tmp_path):
    rng = np.random.default_rng(0)
    probs = rng.random((10, 2000, 500), dtype=np.float32)
    probs /= probs.sum(axis=-1, keepdims=True)
    target = rng.integers(0, 500, 2000)
    for ending in (".safetensors", ".npz"):
        path = write(tmp_path / f"p{ending}", {"target": target, "probs": probs})
        size = probs.nbytes / 2**20
        mib, said = cost(path)
        assert said == "read"
        assert mib < 1.5 * size + 10, ending


@pytest.mark.parametrize("name", ["prob", "mean"])
def test_a_small_file_is_judged_by_what_its_normal_form_takes(tmp_path, name):
    """An int8 takes a byte in the file and up to sixteen in normal form."""
    path = tmp_path / "p.npz"
    each = 16 if name == "prob" else 8
    np.savez_compressed(path, **{name: np.zeros((9, 2**30 // 9 // each + 1), np.int8)})
    assert path.stat().st_size < 200_000
    with pytest.raises(PredictionsError, match=r"unpacks from 0\.\d MiB to 1\.0 GiB"):
        read(path)
