"""`qualms predict` with a network in ONNX, which `tests/readers/tools/write_onnx.py`
exported: a linear network for pictures of 8 x 8 pixels.
"""

import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from typer.testing import CliRunner

from qualms.cli import app
from qualms.networks import onnx_classifier
from qualms.predictions import read

FILE = Path(__file__).parent / "written" / "tiny.onnx"


@pytest.fixture
def pictures(tmp_path):
    """Folders of two classes, blue and red pictures."""
    rng = np.random.default_rng(0)
    for number, name in enumerate(("blue", "red")):
        folder = tmp_path / "pictures" / name
        folder.mkdir(parents=True)
        for row in range(4):
            colours = rng.integers(0, 60, (10, 12, 3)).astype(np.uint8)
            colours[..., 2 - 2 * number] += 180
            Image.fromarray(colours).save(folder / f"{row}.png")
    return tmp_path / "pictures"


def predicted(pictures, *words, network=FILE):
    out = pictures.parent / "out.npz"
    command = ["predict", network, "--from", pictures, "--out", out, "--device", "cpu"]
    return CliRunner().invoke(app, [*map(str, command), *words]), out


def test_pictures_are_predicted_as_the_network_computes(pictures):
    pytest.importorskip("onnxruntime")
    told, out = predicted(
        pictures, "--mean", "0.5", "--std", "0.25", "--outputs=logits"
    )
    assert told.exit_code == 0, told.output + str(told.exception)
    assert "resized to 8 x 8 pixels, as tiny.onnx takes them" in told.output
    found = read(out)
    assert found.arrays["target"].tolist() == [0] * 4 + [1] * 4
    assert found.header.classes == ("blue", "red")
    import onnxruntime

    session = onnxruntime.InferenceSession(str(FILE))
    paths = sorted(pictures.glob("*/*.png"))
    x = [np.asarray(Image.open(p).resize((8, 8)), np.float32) / 255 for p in paths]
    images = ((np.stack(x) - 0.5) / 0.25).transpose(0, 3, 1, 2).astype(np.float32)
    (logits,) = session.run(None, {"pictures": images})
    wanted = np.exp(logits) / np.exp(logits).sum(1, keepdims=True)
    np.testing.assert_allclose(found.arrays["probs"][0], wanted, atol=1e-5)


def test_what_an_onnx_file_does_not_say_must_be_stated(pictures, tmp_path):
    told, _ = predicted(pictures)
    assert "does not say how its pictures are prepared: state" in str(told.exception)
    assert "got --mean not at all" in str(told.exception)
    told, _ = predicted(pictures, "--mean", "0,0", "--std", "1")
    assert "got --mean 0,0" in str(told.exception)
    told, _ = predicted(pictures, "--mean", "half", "--std", "1")
    assert "--mean must be numbers separated by commas" in str(told.exception)
    told, _ = predicted(pictures, "--mean", "0", network="timm:resnet10t")
    assert "--mean is for files .onnx; other networks" in str(told.exception)
    told, _ = predicted(pictures, "--mean", "0", "--std", "1", "--weights", "a.pt")
    assert "has its weights in it; leave out --weights" in str(told.exception)


def test_files_that_are_no_networks_are_refused(tmp_path, monkeypatch):
    pytest.importorskip("onnxruntime")
    colours = {"mean": (0.0,), "deviation": (1.0,)}
    with pytest.raises(
        ValueError, match=r"there is no file .*gone.onnx; check the path"
    ):
        onnx_classifier(tmp_path / "gone.onnx", **colours)
    (tmp_path / "bad.onnx").write_bytes(b"no network")
    with pytest.raises(ValueError, match="cannot be read as ONNX"):
        onnx_classifier(tmp_path / "bad.onnx", **colours)
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    with pytest.raises(ValueError, match="run by onnxruntime, which is not installed"):
        onnx_classifier(FILE, **colours)
