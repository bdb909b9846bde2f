"""`qualms report`: one command from runs and files to a site."""

import sys

import numpy as np
import pytest
from typer.testing import CliRunner

from qualms.cli import app, main
from qualms.predictions import write
from qualms.report.benchmark import write_all
from report.small_study import small_study


@pytest.fixture
def sources(tmp_path):
    """A judged benchmark and a predictions file."""
    runs = tmp_path / "runs" / "mine" / "demo"
    runs.mkdir(parents=True)
    write_all(small_study(), runs, command="qualms run mine")
    target = np.arange(60) % 2
    prob = 0.2 + 0.6 * target
    write(tmp_path / "file.npz", {"target": target, "prob": prob})
    return tmp_path / "runs", tmp_path / "file.npz"


def run(*arguments):
    result = CliRunner().invoke(app, ["report", *map(str, arguments)])
    assert result.exit_code == 0, result.output
    return result.output


def test_a_site_is_written_and_its_path_and_size_said(sources, tmp_path):
    out = tmp_path / "site"
    said = run(*sources, "--out", out, "--title", "Ours & theirs")
    assert said.startswith(f"wrote {out / 'index.html'} (")
    assert said.rstrip().endswith("MB)")
    front = (out / "index.html").read_text("utf-8")
    assert "<title>Ours &amp; theirs" in front
    assert {"mine.html", "file-npz.html", "file.html"} & {p.name for p in out.iterdir()}
    run(*sources, "--out", out)  # a former site is replaced


def test_one_file_has_everything(sources, tmp_path):
    run(*sources, "--out", tmp_path / "one.html", "--single")
    text = (tmp_path / "one.html").read_text("utf-8")
    assert 'id="page-mine"' in text
    assert text.count("<script>") == 1


def test_the_text_fits_a_terminal(sources, tmp_path, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.chdir(tmp_path)
    said = run(*sources, "--text")
    assert max(map(len, said.splitlines())) <= 80
    for words in ("My question", "Accuracy", "Calibrated?", "cannot be told apart"):
        assert words in said
    assert not (tmp_path / "site").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nowhere"], "there is no file or folder nowhere"),
        (["s3://bucket/runs"], "in folders, got s3://bucket/runs; mount the bucket"),
        (["file.npz", "--val", "file.npz", "--val", "file.npz"], "given once per file"),
        (["file.npz", "--out", "runs"], "runs holds other files"),
        (["runs", "--out", "file.npz"], "a site needs a folder"),
        (["runs", "--out", "file.npz", "--single"], "a name that ends in .html"),
    ],
)
def test_mistakes_end_in_a_sentence(
    sources, tmp_path, monkeypatch, capsys, arguments, message
):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["qualms", "report", *arguments])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    assert message in capsys.readouterr().err
    assert (tmp_path / "runs" / "mine" / "demo" / "results.csv").is_file()
