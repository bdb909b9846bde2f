"""`qualms check`: what a file holds, in a few lines."""

import subprocess
import sys

import numpy as np
import pytest
from typer.testing import CliRunner

from predictions import made
from qualms.cli import app, main
from qualms.predictions import Maps, SegmentationWriter, write


def check(*arguments):
    done = CliRunner().invoke(app, ["check", *map(str, arguments)])
    assert done.exit_code == 0, done.exception
    return done.output


def test_it_says_what_a_file_holds(tmp_path):
    known = np.arange(made.N) > 2
    arrays = made.classification() | {"known": known}
    path = write(tmp_path / "p.npz", arrays, header={"dataset": "d", "seed": 0})
    first, second, classes, *marks, last = check(path).splitlines()
    assert first == (
        f"{path}: valid classification predictions, 12 items (3 of no known class), "
        "3 draws"
    )
    assert second.startswith("  arrays: target 12, probs 3x12x4, uncertainty/entropy")
    assert classes.startswith("  classes: 4 (items of each: 0: ")
    assert marks[0] == "  shifted: 4 of 12 items"
    assert last == "  header: dataset d, seed 0"


def test_every_file_gets_its_answer(tmp_path, capsys, monkeypatch):
    good = write(tmp_path / "good.npz", made.classification())
    bad, last = tmp_path / "bad.npz", tmp_path / "last.npz"
    bad.write_bytes(b"nothing")
    words = ["qualms", "check", str(bad), str(tmp_path / "none.npz"), str(good)]
    monkeypatch.setattr(sys, "argv", [*words, str(last)])
    with pytest.raises(SystemExit) as stopped:
        main()
    assert stopped.value.code == 2
    said = capsys.readouterr()
    assert said.out.startswith(f"{good}: valid classification predictions")
    for name in ("bad", "none", "last"):
        assert f"{name}.npz" in said.err


def test_one_item_is_no_plural(tmp_path):
    path = write(tmp_path / "p.npz", {"target": [1], "prob": [0.7]})
    assert check(path).splitlines()[0].endswith("predictions, 1 item, 1 draw")


def test_it_shows_the_facts_of_every_task(tmp_path):
    rng = np.random.default_rng(0)
    marks = {"shifted": np.arange(8) > 5, "group": ["a", "b"] * 4}
    path = write(
        tmp_path / "r.npz", {"target": np.arange(8.0), "mean": np.zeros(8)} | marks
    )
    out = check(path)
    assert "  target: 0 to 7, median 3.5\n" in out
    assert "  shifted: 2 of 8 items\n" in out
    assert "  groups: 2 (items of each: a: 4, b: 4)\n" in out
    target = np.repeat(np.arange(4) * 5, 2)
    vectors = {"embedding": rng.normal(size=(8, 3)), "target": target}
    vectors |= {"uncertainty/own": np.arange(8.0), "cluster": target}
    out = check(write(tmp_path / "e.npz", vectors))
    assert "  dimensions: 3\n" in out
    assert "  classes: 4 (items of each: 0: 2, 5: 2, 10: 2, 15: 2)\n" in out
    assert "  clusters: 4" in out


def test_it_shows_classes_sizes_raters_and_what_is_ignored(tmp_path):
    folder = tmp_path / "seg"
    with SegmentationWriter(folder, header={"ignore": 255}) as writer:
        for name, side in (("a", 4), ("b", 6)):
            raters = np.zeros((2, side, 4), np.uint8)
            raters[:, 0] = 255
            raters[0, 1:] = 1
            maps = Maps(
                mean_probs=np.full((2, side, 4), 0.5),
                expected_entropy=np.full((side, 4), 0.5),
                draw_labels=np.zeros((1, side, 4), np.uint8),
                raters=raters,
            )
            writer.add(name, maps)
    out = check(folder)
    assert "  classes: 2 (pixels of each: 0: 50.0%, 1: 50.0%)\n" in out
    assert "  sizes: 4x4, 6x4\n" in out
    assert "  raters: 2\n" in out
    assert "  ignored: 20.0% of the raters' pixels (label 255)" in out


def test_a_file_without_targets_is_valid_and_said_to_be_so(tmp_path):
    path = write(tmp_path / "p.npz", {"prob": [0.1, 0.2]})
    assert "note: there is no 'target'" in check(path)


def test_long_and_odd_names_neither_fill_nor_steer_the_screen(tmp_path):
    arrays = made.classification() | {
        f"extra/{k}\x1b[31m{'x' * 900}": [1] for k in range(50)
    }
    path = write(tmp_path / "p.npz", arrays, header={"dataset": "y" * 9000})
    out = check(path)
    assert len(out) < 4000
    assert "\x1b" not in out
    assert "and 28 more" in out


def test_it_starts_without_loading_the_scores(tmp_path):
    path = write(tmp_path / "p.npz", {"prob": [0.1, 0.2]})
    code = (
        "import sys\n"
        "from qualms.cli import main\n"
        "sys.argv[1:] = ['check', sys.argv[1]]\n"
        "try: main()\n"
        "except SystemExit: pass\n"
        "print(sorted({'numba', 'scipy', 'pandas'} & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, path], capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines()[-1] == "[]"
