"""Compiled kernels run wherever the cache of compiled code lies, or cannot lie."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import qualms

KERNEL = """
from qualms.jit import jit

@jit
def double(x):
    return 2.0 * x

if __name__ == "__main__":
    print(double(21.0), sum(double.stats.cache_hits.values()))
"""

SUM = """
import numpy as np
from qualms.jit import jit

@jit
def total(x):
    return x.sum()

if __name__ == "__main__":
    value = total(np.arange(7)) + total(np.arange(7.0))
    print(value, sum(total.stats.cache_hits.values()))
"""


def run(folder, **environment):
    """What the kernel prints: its value, and how often the cache was hit."""
    source = str(Path(qualms.__file__).parents[1])
    done = subprocess.run(
        [sys.executable, folder / "kernel.py"],
        capture_output=True,
        text=True,
        env=os.environ | {"PYTHONPATH": source} | environment,
    )
    assert done.returncode == 0, done.stderr[-500:]
    value, hits = done.stdout.split()
    assert value == "42.0"
    return int(hits)


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "kernel.py").write_text(KERNEL)
    return tmp_path


def cut_short(folder, ending):
    (path,) = (folder / "__pycache__").glob(f"*.{ending}")
    path.write_bytes(path.read_bytes()[:40])


def test_a_second_process_compiles_nothing_unless_the_cache_was_cut_short(folder):
    assert run(folder) == 0
    cut_short(folder, "nbi")
    assert run(folder) == 0
    cut_short(folder, "nbc")
    assert run(folder) == 0
    assert run(folder) == 1


def test_code_that_was_compiled_for_other_arrays_is_not_run(folder):
    """As when two processes save at once, and both take the same name for a file."""
    (folder / "kernel.py").write_text(SUM)
    assert run(folder) == 0
    first, second = sorted((folder / "__pycache__").glob("*.nbc"))
    second.write_bytes(first.read_bytes())
    assert run(folder) == 1


def test_a_cache_that_cannot_be_written_is_done_without(folder):
    # A file where the folder should be: not even root can write there.
    (folder / "__pycache__").write_text("")
    (folder / "home").write_text("")
    home = {name: str(folder / "home") for name in ("HOME", "XDG_CACHE_HOME")}
    assert run(folder, **home) == 0
