"""Parts that live outside the package."""

import csv
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from qualms import shelf

PARTS = Path(__file__).parent / "outside_parts"


def qualms(*words, cwd, **environment):
    """Run the command line in a process of its own."""
    return subprocess.run(
        [sys.executable, "-m", "qualms", *map(str, words)],
        cwd=cwd,
        env={**os.environ, "COLUMNS": "200", **environment},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture
def home(tmp_path):
    shutil.copytree(PARTS, tmp_path / "mine", ignore=shutil.ignore_patterns("__py*"))
    return tmp_path


SEVERAL = """
import json, sys
from qualms.cli import app
for words in json.loads(sys.argv[1]):
    app(words, standalone_mode=False)
    print("---")
"""


def several(*commands, cwd):
    """What each command prints, all in one process: importing takes longest."""
    done = subprocess.run(
        [sys.executable, "-c", SEVERAL, json.dumps(commands, default=str)],
        cwd=cwd,
        env={**os.environ, "COLUMNS": "200"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.split("---\n")[:-1]


def test_parts_of_a_file_are_listed_as_such(home):
    file = home / "mine" / "spots.py"
    known = ("plainest", "spots", "tiny", "my_study", "share_above_half", "dimmed")
    shelves = ("methods", "datasets", "networks", "benchmarks", "scores", "corruptions")
    commands = [("list", shelf, "--include", file) for shelf in shelves]
    texts = several(*commands, cwd=home)
    for name, where, text in zip(known, shelves, texts, strict=True):
        (line,) = [line for line in text.splitlines() if line.startswith(f"{name} ")]
        assert f"(from {file})" in line
        assert name not in shelf.names(where)  # of a process that includes nothing


def test_a_benchmark_from_outside_runs_on_two_workers_and_knows_its_code(home):
    words = ("run", "my_study", "--include", home / "mine", "--workers", 2)
    words += ("--data", home / "data", "--device", "cpu")
    made, again = several(words, (*words, "--dry-run"), cwd=home)
    assert "4 runs: 4 done" in made
    assert "plainest" not in again
    # A file beside it, which it takes something from, is part of the code too.
    (home / "mine" / "_scale.py").write_text("BRIGHT = 90\n")
    changed = qualms(*words, "--dry-run", cwd=home)
    assert changed.stdout.count("plainest") == 2
    assert changed.stdout.count(" map ") == 2  # its dataset has changed too


def test_a_benchmark_from_outside_brings_protocol_table_and_published_numbers(home):
    code = f"""
import qualms
options = {{"include": {str(home / "mine")!r}, "data": {str(home / "data")!r}}}
results = qualms.run("paper_study", workers=1, device="cpu", **options)
table = results.table
print(sorted({{row.labels["score"] for row in table}}), len(table))
print("Table 1" in results._repr_html_(), "87.5" in results._repr_html_())
again = qualms.judge("paper_study", write=False, **options)
print(again.table.column("value").tolist() == table.column("value").tolist(), again)
"""
    (home / "script.py").write_text(code)  # without a guard for other processes
    done = subprocess.run(
        [sys.executable, "script.py"],
        cwd=home,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    *_, scores, shown, same = done.stdout.splitlines()
    assert scores == "['accuracy', 'aurc'] 2"
    assert shown == "True True"
    assert same.startswith("True <BenchmarkResults of paper_study, preset demo: 2")
    folder = home / "runs" / "paper_study" / "demo"
    with (folder / "tables" / "table_1.csv").open() as file:
        published = [row["published_mean"] for row in csv.DictReader(file)]
    assert published == ["87.5", "0.125"]
    assert (folder / "index.html").is_file()


def test_the_environment_includes_as_the_option_does(home):
    # A file that lies in an included folder is not another one.
    path = os.pathsep.join([str(home / "mine"), str(home / "mine" / "spots.py")])
    told = qualms("list", "methods", cwd=home, QUALMS_INCLUDE=path)
    assert told.stdout.count("plainest ") == 1


def test_a_score_from_outside_is_judged_with_an_interval(home):
    rng = np.random.default_rng(0)
    target = rng.integers(0, 2, 200)
    prob = np.clip(rng.normal(0.3 + 0.4 * target, 0.2), 0, 1)
    np.savez(home / "mine.npz", target=target, prob=prob)
    np.savez(home / "numbers.npz", target=prob, mean=prob)
    words = ("--include", home / "mine", "--resamples", "100")
    classes, numbers = several(
        ("score", home / "mine.npz", *words, "--json"),
        ("score", home / "numbers.npz", *words, "--all"),
        cwd=home,
    )
    (row,) = [
        row
        for row in json.loads(classes)["files"][0]["scores"]
        if row["score"] == "share_above_half"
    ]
    right = np.mean((prob > 0.5) == target)
    assert row["value"] == pytest.approx(right)
    assert row["low"] < right < row["high"]
    assert "share_above_half is left out: it reads probs" in numbers


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("empty.py", "x = 1\n", "holds no part"),
        ("broken.py", "import nowhere_at_all\n", "ModuleNotFoundError"),
        ("json.py", "x = 1\n", "Python has another module 'json'; rename the file"),
        ("no-name.py", "x = 1\n", "it must be named like NAME.py"),
        ("taken_name.py", "", "methods has 'map' from qualms itself already"),
    ],
)
def test_what_cannot_be_included_is_refused_in_a_sentence(home, name, text, said):
    if name == "taken_name.py":
        text = "from qualms.methods import Method\n\ndef map() -> Method:\n    pass\n"
    file = home / "given" / name  # not in the folder that Python itself looks at
    file.parent.mkdir()
    file.write_text(text)
    told = qualms("list", "methods", "--include", file, cwd=home)
    assert told.returncode == 2
    assert said in told.stderr
    assert "Traceback" not in told.stderr


def test_a_path_that_is_not_there_is_refused():
    with pytest.raises(ValueError, match=r"nothing to include at nowhere\.py"):
        shelf.include(["nowhere.py"])


def test_entry_points_of_installed_packages_are_parts(home):
    """A package is installed where its metadata lies on the path."""
    place = home / "site"
    about = place / "spots_package-1.0.dist-info"
    about.mkdir(parents=True)
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: spots-package\n")
    (about / "entry_points.txt").write_text(
        "[qualms.methods]\nplainest = spots:plainest\n"
    )
    for file in PARTS.glob("*.py"):
        shutil.copy(file, place)
    path = os.pathsep.join([str(place), *filter(None, [os.environ.get("PYTHONPATH")])])
    told = qualms("list", "methods", cwd=home, PYTHONPATH=path)
    (line,) = [line for line in told.stdout.splitlines() if "plainest" in line]
    assert "(from spots-package)" in line
    (about / "entry_points.txt").write_text("[qualms.methods]\nlost = nowhere:lost\n")
    told = qualms("list", "methods", cwd=home, PYTHONPATH=path)
    assert "package spots-package brings 'lost', which cannot be loaded" in told.stderr
    assert "Traceback" not in told.stderr
