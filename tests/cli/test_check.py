"""`qualms check`: what a file holds, in a few lines."""

import subprocess
import sys

import numpy as np
from typer.testing import CliRunner

from predictions import made
from qualms.cli import app
from qualms.predictions import write


def check(*arguments):
    done = CliRunner().invoke(app, ["check", *map(str, arguments)])
    assert done.exit_code == 0, done.exception
    return done.output


def test_it_says_what_a_file_holds(tmp_path):
    known = np.arange(made.N) > 2
    arrays = made.classification() | {"known": known}
    path = write(tmp_path / "p.npz", arrays, header={"dataset": "d", "seed": 0})
    first, second, third, *rest = check(path).splitlines()
    assert first == (
        f"{path}: valid classification predictions, 12 items (3 of no known class), "
        "3 draws"
    )
    assert second.startswith("  arrays: target 12, probs 3x12x4, uncertainty/entropy")
    assert third == "  header: dataset d, seed 0"
    assert rest == []


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
