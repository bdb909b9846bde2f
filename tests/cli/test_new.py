"""`qualms new`: skeletons that work as they are."""

import re
import subprocess
import sys

import pytest
from typer.testing import CliRunner

from qualms.cli import app
from qualms.launch import KINDS

LOOKED_AT = """
import sys, pytest
from qualms.cli import app
from qualms.shelf import outside_parts
folder = sys.argv[1]
if pytest.main(["-q", "-p", "no:cacheprovider", folder]):
    sys.exit("a test of a skeleton fails")
app(["list", "networks", "--include", folder], standalone_mode=False)
for shelf in sys.argv[2:]:
    print(shelf, *(part.where for part in outside_parts(shelf).values()))
words = ["run", "my_benchmark", "--include", folder, "--methods", "my_method"]
app([*words, "--data", f"{folder}/data", "--dry-run"])
"""
OTHER = """
from qualms.methods import Method
from qualms.shelf import find

def other_method(*, rate: float = 0.1) -> Method:
    \"""Quantiles, which have neither draws nor probabilities.\"""
    return find("methods", "quantile")()
"""


def new(*words):
    return CliRunner().invoke(app, ["new", *map(str, words)])


def test_skeletons_pass_their_tests_and_are_included(tmp_path):
    folder = tmp_path / "mine"
    for kind in KINDS:
        told = new(kind, f"my_{kind}", "--to", folder)
        assert told.exit_code == 0, told.output
        assert f"pytest {folder / f'test_my_{kind}.py'}" in told.output
    assert len(list(folder.iterdir())) == 2 * len(KINDS)
    # The tests of a method are those of any other one.
    assert new("method", "other_method", "--to", folder).exit_code == 0
    (folder / "other_method.py").write_text(OTHER)
    # One process for all, as importing takes longest; in a folder of its own.
    looked = subprocess.run(
        [sys.executable, "-c", LOOKED_AT, str(folder), *KINDS.values()],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert looked.returncode == 0, looked.stdout + looked.stderr
    for kind, shelf in KINDS.items():
        (line,) = re.findall(rf"^{shelf} (/.*)$", looked.stdout, re.MULTILINE)
        assert str(folder / f"my_{kind}.py") in line.split()
    assert f"(from {folder / 'my_network.py'})" in looked.stdout
    assert "my_method  seed 0" in looked.stdout


def test_nothing_is_overwritten(tmp_path):
    for name in ("mine.py", "test_mine.py"):
        (tmp_path / name).write_text("precious")
        told = new("score", "mine", "--to", tmp_path)
        assert f"{tmp_path / name} is there already" in str(told.exception)
        assert [file.read_text() for file in tmp_path.iterdir()] == ["precious"]
        (tmp_path / name).unlink()


def test_a_folder_that_cannot_be_written_to_is_said(tmp_path):
    (tmp_path / "file").write_text("no folder")
    told = new("method", "mine", "--to", tmp_path / "file" / "parts")
    assert str(told.exception) == (
        f"cannot write to {tmp_path / 'file' / 'parts'}: Not a directory; choose"
        " another folder with --to DIR"
    )


@pytest.mark.parametrize(
    ("kind", "name", "said"),
    [
        ("metod", "mine", "no skeleton of a 'metod'. Did you mean 'method'?"),
        ("method", "my-method", "in lower case, such as my_method, got 'my-method'"),
        ("method", "class", "named like a Python function"),
        ("dataset", "../mine", "named like a Python function"),
        ("network", "MyNet", "in lower case"),
        ("score", "_mine", "hold no parts, got '_mine'"),
        ("method", "swag", "methods has 'swag' already; choose another name"),
        ("score", "auroc", "scores has 'auroc' already"),
        ("benchmark", "json", "Python has a module 'json' already"),
    ],
)
def test_what_cannot_be_a_part_is_refused_in_a_sentence(tmp_path, kind, name, said):
    told = new(kind, name, "--to", tmp_path / "mine")
    assert isinstance(told.exception, ValueError | LookupError)
    assert said in str(told.exception)
    assert not (tmp_path / "mine").exists()


def test_a_full_disk_leaves_nothing_so_that_the_same_command_works_later(
    tmp_path, monkeypatch
):
    written = []

    def full(handle):
        written.append(handle)
        if len(written) == 2:  # the code fits, its test does not
            raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    told = new("score", "mine", "--to", tmp_path)
    assert "No space left on device" in str(told.exception)
    assert not list(tmp_path.iterdir())
    assert new("score", "mine", "--to", tmp_path).exit_code == 0
