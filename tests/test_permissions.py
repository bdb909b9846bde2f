"""Files get the permissions that the user's other files get."""

import os
import stat

import numpy as np
import pytest
from typer.testing import CliRunner

from qualms import predictions
from qualms.cli import app
from qualms.report._draw import draw
from qualms.report.figures import CurveMark, Drawing, Panel

SMALL = {"target": np.arange(40) % 2, "prob": np.linspace(0.1, 0.9, 40)}


@pytest.fixture(params=[0o022, 0o077])
def usual(request):
    """The mode of a new file under a common and a careful umask."""
    before = os.umask(request.param)
    yield 0o666 & ~request.param
    os.umask(before)


def _predicted(folder):
    for ending in ("npz", "csv", "parquet", "safetensors"):
        predictions.write(folder / f"a.{ending}", SMALL)
    maps = predictions.Maps(
        mean_probs=np.full((2, 4, 4), 0.5),
        expected_entropy=np.full((4, 4), 0.6),
        draw_labels=np.zeros((1, 4, 4), np.uint8),
        raters=np.zeros((1, 4, 4), np.uint8),
    )
    with predictions.SegmentationWriter(folder / "seg") as writer:
        writer.add("a", maps)


def _reported(folder):
    asked = ("--resamples", "0", "--html", folder / "p.html", "--curves", folder / "c")
    result = CliRunner().invoke(app, ["score", *map(str, (folder / "a.npz", *asked))])
    assert result.exit_code == 0, result.output
    kept = ("--budget", "0.5", "--plan", folder / "plan.json", "--items", folder / "i")
    result = CliRunner().invoke(app, ["refer", *map(str, (folder / "a.npz", *kept))])
    assert result.exit_code == 0, result.output
    line = CurveMark(x=np.arange(2.0), y=np.arange(2.0), colour="black")
    panel = Panel(marks=(line,))
    draw(Drawing(name="f", title="f", caption="f", rows=((panel,),)), folder)


def test_every_file_has_the_usual_permissions(tmp_path, usual):
    _predicted(tmp_path)
    _reported(tmp_path)
    found = {
        str(path.relative_to(tmp_path)): oct(stat.S_IMODE(path.stat().st_mode))
        for path in tmp_path.rglob("*")
        if path.is_file()
    }
    assert {"plan.json", "i", "p.html", "f.png", "a.safetensors"} <= found.keys()
    assert {name: mode for name, mode in found.items() if mode != oct(usual)} == {}


def test_folders_can_be_entered_by_whom_the_user_lets(tmp_path, usual):
    _predicted(tmp_path)
    assert oct(stat.S_IMODE((tmp_path / "seg").stat().st_mode)) == oct(
        usual | (usual & 0o444) >> 2
    )
