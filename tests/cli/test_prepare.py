"""`qualms prepare`: what it makes, counts and names."""

import json
import sys

import numpy as np
import pytest
from PIL import Image
from typer.testing import CliRunner

from qualms.cli import app, main
from qualms.launch import required_datasets
from qualms.spec import Part

SIZES = {"train": 12, "val": 6, "test": 6}


def run(*arguments):
    return CliRunner().invoke(app, ["prepare", *map(str, arguments)])


@pytest.fixture
def raw(tmp_path):
    home = tmp_path / "raw" / "Cell200"
    home.mkdir(parents=True)
    for i in range(24):
        picture = np.full((64, 64), i, np.uint8)
        Image.fromarray(picture).save(home / f"{i:02d}_{i + 1}.0.png")
    return tmp_path / "raw"


def options(sizes=SIZES):
    return ["-o", f"sizes={json.dumps(sizes)}", "--workers", 1]


def test_a_simulator_needs_no_source(tmp_path):
    sizes = {"train": 2, "val": 1, "test": 1}
    result = run("cells", "--data", tmp_path, "-o", "variant=tails", *options(sizes))
    assert result.exit_code == 0, result.output
    assert result.output.startswith("cells: train 2, val 1, test 1; in ")
    part = Part(name="cells", options={"variant": "tails", "sizes": sizes})
    assert required_datasets([part], tmp_path)[0].items == sizes


def test_a_real_dataset_is_made_from_its_folder_and_found_again(raw, tmp_path):
    result = run("cell200", "--from", raw, "--data", tmp_path, *options())
    assert result.exit_code == 0, result.output
    assert "cell200: train 12, val 6, test 6; in" in result.output
    assert "could not be read" not in result.output
    (need,) = required_datasets([Part(name="cell200")], tmp_path)
    assert need.items == SIZES


def fails(arguments, capsys, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["qualms", "prepare", *map(str, arguments)])
    with pytest.raises(SystemExit) as stopped:
        main()
    assert stopped.value.code == 2
    return capsys.readouterr().err


def test_unreadable_files_are_refused_or_named_and_counted(
    raw, tmp_path, capsys, monkeypatch
):
    for i in range(12):
        (raw / "Cell200" / f"{i:02d}_{i + 1}.0.png").write_bytes(b"not a picture")
    arguments = ["cell200", "--from", raw, "--data", tmp_path, *options()]
    message = fails(arguments, capsys, monkeypatch)
    assert "accept these numbers with --no-check-counts" in message
    result = run(*arguments, "--no-check-counts")
    assert result.exit_code == 0, result.output
    lines = result.output.splitlines()
    assert lines[1] == "12 files could not be read and are left out:"
    assert len([line for line in lines if ".0.png: " in line]) == 10
    assert lines[-1].startswith("  and 2 more, see ")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["cels"], "Did you mean 'cells'"),
        (["cells", "-o", "varian=tails"], "Did you mean 'variant'"),
        (["cells", "-o", "variant=tail"], "Did you mean 'tails'"),
        (["cells", "--from", "."], "leave out --from"),
        (["cell200"], "name their folder with --from"),
        (["cell200", "--from", "nowhere"], "nowhere"),
    ],
)
def test_mistakes_end_in_a_sentence_and_code_2(arguments, said, capsys, monkeypatch):
    assert said in fails(arguments, capsys, monkeypatch)


def test_an_interrupt_ends_with_code_130(tmp_path, monkeypatch):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("qualms.datasets.prepare", interrupted)
    result = run("cells", "--data", tmp_path)
    assert result.exit_code == 130
    assert "run again to go on" in result.stderr
