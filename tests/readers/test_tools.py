"""The tools themselves write the kept files anew, in an environment of their own.

`QUALMS_TOOLS_PYTHON` names a Python that has them; else they are installed. Their
probabilities may differ in the last digits between versions.
"""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from qualms.predictions import read
from qualms.readers.monai import monai

HERE = Path(__file__).parent
WRITTEN, ROOT = HERE / "written", HERE.parents[1]
TOOLS = (
    "nnunetv2==2.8.1",
    "monai==1.6.1",
    "nibabel",
    "lightning==2.6.6",
    "datasets==5.2.0",
    "torch>=2.6,<2.14",
    "torchvision>=0.21,<0.29",
)
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def python(tmp_path_factory):
    if named := os.environ.get("QUALMS_TOOLS_PYTHON"):
        return named
    folder = tmp_path_factory.mktemp("tools") / "env"
    subprocess.run([sys.executable, "-m", "venv", folder], check=True)
    made = folder / "bin" / "python"
    subprocess.run([made, "-m", "pip", "install", "-q", *TOOLS, ROOT], check=True)
    return str(made)


def run(python, program, *words):
    done = subprocess.run(
        [python, HERE / "tools" / program, *map(str, words)],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "HF_HUB_OFFLINE": "1", "PYTHONPATH": ""},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def assert_alike(new, kept, **options):
    one, other = read(new, **options), read(kept, **options)
    assert one.header == other.header
    assert one.arrays["item"].tolist() == other.arrays["item"].tolist()
    for maps, wanted in zip(one.maps or (), other.maps or (), strict=True):
        np.testing.assert_allclose(maps.mean_probs, wanted.mean_probs, atol=1e-5)
        np.testing.assert_array_equal(maps.draw_labels, wanted.draw_labels)
        np.testing.assert_array_equal(maps.raters, wanted.raters)
    for name in ("probs", "target"):
        if name in other.arrays:
            np.testing.assert_allclose(one.arrays[name], other.arrays[name], atol=1e-6)


def test_nnunet_writes_what_is_kept(python, tmp_path):
    run(python, "write_nnunet.py", tmp_path / "nnunet")
    kept = WRITTEN / "nnunet"
    assert_alike(tmp_path / "nnunet" / "labels", kept / "labels")
    assert_alike(tmp_path / "nnunet" / "reoriented", kept / "reoriented")
    raters = kept / "regions_raters"
    assert_alike(tmp_path / "nnunet" / "regions", kept / "regions", raters=raters)


def test_monai_writes_what_is_kept(python, tmp_path):
    run(python, "write_monai.py", tmp_path / "monai")
    for name in ("classes", "sigmoid", "flat"):
        assert_alike(tmp_path / "monai" / name, WRITTEN / "monai" / name)
    named = monai(regions=("whole", "core"))
    new, kept = (folder / "monai" / "regions" for folder in (tmp_path, WRITTEN))
    assert_alike(new, kept, reader=named)


def test_a_dataset_of_hugging_face_is_scored(python):
    assert "scored 40" in run(python, "score_dataset.py")


def test_lightning_fills_an_accumulator(python):
    assert "collected 50" in run(python, "run_lightning.py")
