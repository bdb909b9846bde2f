"""The real open_clip embeds pictures, in an environment of its own.

`QUALMS_CLIP_PYTHON` names a Python that has it and qualms; else both are installed.
"""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from qualms.predictions import read

ROOT = Path(__file__).parents[2]
NAME = "ViT-S-32"
LIBRARIES = ("open_clip_torch==3.3.0", "torch>=2.6,<2.14", "torchvision>=0.21,<0.29")
WRITE = """
import sys
import torch
from PIL import Image
from qualms.networks import load_torchvision
load_torchvision()
import open_clip
torch.manual_seed(0)
name, weights, picture, embedding = sys.argv[1:]
made = open_clip.create_model_and_transforms(name, pretrained=None)
model, _, prepare = made
torch.save(model.state_dict(), weights)
with torch.no_grad():
    x = prepare(Image.open(picture).convert("RGB"))[None]
    torch.save(model.eval().encode_image(x), embedding)
"""
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def python(tmp_path_factory):
    if named := os.environ.get("QUALMS_CLIP_PYTHON"):
        return named
    folder = tmp_path_factory.mktemp("clip") / "env"
    subprocess.run([sys.executable, "-m", "venv", folder], check=True)
    made = str(folder / "bin" / "python")
    install = [made, "-m", "pip", "install", "-q", *LIBRARIES, f"{ROOT}[train]"]
    subprocess.run(install, check=True)
    return made


def asked(python, *words, **environment):
    return subprocess.run(
        [python, *map(str, words)],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": "", **environment},
    )


def test_pictures_are_embedded_as_by_open_clip(python, tmp_path):
    picture, weights = tmp_path / "pictures" / "cat" / "0.png", tmp_path / "w.pt"
    picture.parent.mkdir(parents=True)
    rng = np.random.default_rng(0)
    pixels = rng.integers(0, 255, (40, 50, 3), dtype=np.uint8)
    Image.fromarray(pixels).save(picture)
    done = asked(python, "-c", WRITE, NAME, weights, picture, tmp_path / "e.pt")
    assert done.returncode == 0, done.stderr
    request = ["-m", "qualms", "predict", f"open_clip:{NAME}", "--task", "embedding"]
    request += ["--from", picture.parents[1], "--out", tmp_path / "p.npz"]
    done = asked(python, *request, "--weights", weights)
    assert done.returncode == 0, done.stderr
    found = read(tmp_path / "p.npz")
    import torch

    wanted = torch.load(tmp_path / "e.pt", weights_only=True).numpy()
    assert found.arrays["embedding"] == pytest.approx(wanted, abs=1e-5)
    assert list(found.named("uncertainty")) == ["inverse_norm", "flips"]
    # Nobody listens to port 9 of this machine.
    hub = "http://127.0.0.1:9"
    request[3] = "open_clip:ViT-B-32"
    done = asked(python, *request, "--weights", "laion2b_s34b_b79k", HF_ENDPOINT=hub)
    assert done.returncode == 2
    assert f"cannot be loaded: {hub} cannot be reached" in done.stderr
